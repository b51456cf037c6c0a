"""Prepared processes, one for each request: started ahead of time, used once, and gone afterwards.

A first process loads the engine and forks the others, so that one costs a few milliseconds. It holds a socket of ours
and looks for its parent: when either goes, so do all of them, and the files with them.
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hubbub.engines.duckdb import worker

_START = 60.0
"""Seconds that a process may take to be ready."""
_PAUSE = 0.05
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Environment variables that the engine's processes see: no secrets."""
_MEMORY = {"DUCKDB_JE_MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1,narenas:1"}
"""The engine keeps the memory that it warmed up with: a small question would spend a third of its time on getting more.
The process ends with its question, and everything goes back then."""


class Late(Exception):
    """It took longer than it may."""


@dataclass(slots=True)
class Standby:
    """A process that waits for its one request."""

    channel: socket.socket
    scratch: str
    owner: int = field(default_factory=os.getpid)
    process: int | None = None
    handle: int | None = None
    """A descriptor of the process itself: its number may be given to another one after its end."""

    def ready(self) -> None:
        """Waits until it has loaded everything; EOFError where it has ended instead, or since."""
        if self.process is None:
            self.channel.settimeout(_START)
            self.process = int(worker.receive(self.channel)["ready"])
            if hasattr(os, "pidfd_open"):
                self.handle = os.pidfd_open(self.process)
        if select.select([self.channel], [], [], 0)[0]:
            raise EOFError

    def waits(self) -> bool:
        """Return whether a request would be taken up at once."""
        return self.process is not None or bool(select.select([self.channel], [], [], 0)[0])

    def begin(self, request: Any) -> None:
        """Hands over the request: it is read, and prepared as far as that goes without touching any data."""
        self.channel.settimeout(_START)
        worker.send(self.channel, request)

    def answer(self, seconds: float) -> Any:
        """Its answer within so many seconds of wall time from now; the rest of the message included."""
        deadline = time.monotonic() + seconds
        try:
            self.channel.settimeout(seconds)
            worker.send(self.channel, worker.GO)
            return worker.receive(_Deadline(self.channel, deadline))  # type: ignore[arg-type]
        except TimeoutError:
            raise Late(f"The engine took longer than {seconds:g} seconds and was stopped.") from None
        except (EOFError, OSError):
            raise RuntimeError("The engine's process ended without an answer.") from None

    def end(self) -> None:
        """Kills it, if it still runs, and waits until it has gone."""
        with contextlib.suppress(OSError):
            if self.handle is not None:
                signal.pidfd_send_signal(self.handle, signal.SIGKILL)
            elif self.process is not None:
                os.kill(self.process, signal.SIGKILL)
            self.channel.settimeout(_START)
            while self.channel.recv(1 << 16):
                pass
            if self.handle is not None:
                select.select([self.handle], [], [], _START)
        self.forget()

    def forget(self) -> None:
        """Closes our side of it, and removes its files."""
        self.channel.close()
        if self.owner == os.getpid():
            shutil.rmtree(self.scratch, ignore_errors=True)
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


class _Deadline:
    """A socket for reading until a moment, however many pieces the message comes in."""

    def __init__(self, channel: socket.socket, deadline: float) -> None:
        self._channel = channel
        self._deadline = deadline

    def recv(self, size: int) -> bytes:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._channel.settimeout(left)
        return self._channel.recv(size)


@dataclass(slots=True)
class _Nursery:
    """The first process, as this process sees it."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    owner: int


class Pool:
    """Standbys, kept at a number. After a fork of our own process the child starts its own."""

    def __init__(self, *, directory: str, limits: Mapping[str, Any], standbys: int) -> None:
        self._directory = directory
        self._limits = limits
        self._wanted = max(1, standbys)
        self._waiting: deque[Standby] = deque()
        self._ending: list[threading.Thread] = []
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        self._nursery: _Nursery | None = None
        self._closed = False
        self._last = weakref.finalize(self, _remove, directory, os.getpid())
        self._fill()

    def begin(self, request: dict[str, Any]) -> Standby | None:
        """A process that has the request and waits for the word to read; None where none is ready at this moment."""
        with self._lock:
            if self._closed or not self._waiting or not self._waiting[0].waits():
                return None
        standby = self._take()
        try:
            standby.begin(request)
        except BaseException:
            self.drop(standby)
            raise
        return standby

    def drop(self, standby: Standby) -> None:
        """Drop a process whose request was begun and is not wanted after all."""
        self._finish(standby)

    def ask(self, request: dict[str, Any], *, seconds: float, begun: Standby | None = None) -> Any:
        """The answer of a fresh process. It is killed and its files go; after an answer, nobody waits for that."""
        standby = begun or self._take()
        try:
            if begun is None:
                standby.begin(request)
            found = standby.answer(seconds)
        except BaseException:
            self._finish(standby)
            raise
        ending = threading.Thread(target=self._finish, args=(standby,), daemon=True)
        with self._lock:
            self._ending = [*(one for one in self._ending if one.is_alive()), ending]
            ending.start()
        return found

    def _finish(self, standby: Standby) -> None:
        """The next one gets ready after a pause, if others wait: whoever asked has something to do with the answer."""
        standby.end()
        if self._waiting:
            self._leaving.wait(_PAUSE)
        self._fill()

    def renew(self, limits: Mapping[str, Any]) -> None:
        """Other limits from now on: those that wait have been prepared for the old ones, and go."""
        with self._lock:
            for standby in self._waiting:
                standby.forget()
            self._waiting.clear()
            self._limits = limits
        self._fill()

    def close(self) -> None:
        """Ends every process and removes the directory."""
        self._leaving.set()
        with self._lock:
            self._closed = True
            standbys, self._waiting = list(self._waiting), deque()
            nursery, self._nursery = self._nursery, None
            ending, self._ending = self._ending, []
        for one in ending:
            one.join()
        for standby in standbys:
            if standby.owner == os.getpid():
                with contextlib.suppress(EOFError, OSError):
                    standby.ready()
                standby.end()
            else:
                standby.forget()
        if nursery is not None:
            nursery.control.close()
            if nursery.owner == os.getpid():
                nursery.process.wait()
        self._last()

    def _take(self) -> Standby:
        """A standby that is ready. One that died waiting is not held against the question."""
        for _ in range(self._wanted + 1):
            with self._lock:
                self._mend()
                standby = self._waiting.popleft() if self._waiting else self._fork()
            try:
                standby.ready()
                return standby
            except (EOFError, OSError):
                standby.forget()
        raise RuntimeError("The engine's process cannot be started.")

    def _fill(self) -> None:
        with contextlib.suppress(OSError), self._lock:
            if not self._closed:
                self._mend()
                while len(self._waiting) < self._wanted:
                    self._waiting.append(self._fork())

    def _mend(self) -> None:
        """Starts the first process, if there is none, it died, or it is another process's."""
        if self._closed:
            raise RuntimeError("The engine is closed.")
        nursery = self._nursery
        if nursery is not None and nursery.owner == os.getpid() and nursery.process.poll() is None:
            return
        for standby in self._waiting:
            standby.forget()
        self._waiting.clear()
        if nursery is not None:
            nursery.control.close()
            if nursery.owner != os.getpid():
                self._directory = tempfile.mkdtemp(prefix="hubbub-")
                self._last = weakref.finalize(self, _remove, self._directory, os.getpid())
        self._nursery = _start(self._directory)

    def _fork(self) -> Standby:
        if self._nursery is None:
            raise RuntimeError("The engine is closed.")
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._nursery.control, [b"+"], [theirs.fileno()])
        scratch = tempfile.mkdtemp(prefix="scratch-", dir=self._directory)
        worker.send(ours, {**self._limits, "scratch": scratch})
        return Standby(ours, scratch)


def _start(directory: str) -> _Nursery:
    ours, theirs = socket.socketpair()
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
    environment = {name: value for name, value in os.environ.items() if name in _KEPT}
    program = str(Path(worker.__file__).resolve())
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", program, str(theirs.fileno()), directory, str(os.getpid())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=directory,
            env={**environment, **_MEMORY, "PYTHONPATH": paths},
        )
    return _Nursery(process, ours, os.getpid())


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
