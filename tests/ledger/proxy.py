"""A wire between a ledger and PostgreSQL that can be cut at the worst moments."""

import select
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

_SOCKET = ".s.PGSQL.5432"
_COMMIT = b"COMMIT\0"


class Proxy:
    """Forwards everything until it is told to cut; then the next COMMITs are cut, ``times`` of them.

    ``before``: the server never hears it. ``sent``: the server hears it, and nobody waits for what it says.
    ``after``: the server has committed and said so, and its word is lost on the way.
    """

    def __init__(self, server: Path, url: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hubbub-proxy-", dir="/tmp"))
        self.url = url.replace(quote(str(server)), quote(str(self.folder)))
        """The same place as ``url``, by way of here."""
        self._server = str(server / _SOCKET)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / _SOCKET))
        self._listener.listen()
        self._where, self._times = "", 0
        self._gate = threading.Lock()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self, where: str, *, times: int = 1) -> None:
        """Be ready to cut."""
        with self._gate:
            self._where, self._times = where, times

    @property
    def uncut(self) -> int:
        """How many cuts are still to come."""
        with self._gate:
            return self._times

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()
        shutil.rmtree(self.folder)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            thread = threading.Thread(target=self._carry, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            try:
                server.connect(self._server)
                while self._pass_on(client, server):
                    pass
            except OSError:
                return  # a side is gone, so the other one goes

    def _pass_on(self, client: socket.socket, server: socket.socket) -> bool:
        ready, _, _ = select.select([client, server], [], [])
        for source, target in ((client, server), (server, client)):
            if source in ready:
                data = source.recv(1 << 16)
                where = self._cut_now() if source is client and _COMMIT in data else ""
                if not data or where == "before":
                    return False
                target.sendall(data)
                if where == "after":
                    said = b""
                    while _COMMIT not in said:
                        more = server.recv(1 << 16)
                        if not more:
                            break
                        said += more
                if where:
                    return False
        return True

    def _cut_now(self) -> str:
        with self._gate:
            if self._times == 0:
                return ""
            self._times -= 1
            return self._where
