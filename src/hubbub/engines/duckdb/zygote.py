"""The first process of the engine: it loads the engine, warms it up on made-up numbers, and then only forks.

Each request is answered by a child of its own, which inherits an engine that is open, settled and warm. What a child
is told comes by a channel that this process passes on without reading from it, so that nothing of any question is ever
here to be inherited by the next one.

An engine with threads of its own cannot be forked safely: a lock that one of them holds would be held in the child for
ever. So it is opened with one thread alone, and the threads are counted before every fork; a child starts its own.
"""

import contextlib
import gc
import os
import shutil
import signal
import socket
import sys
import time
from typing import Any

from hubbub.engines.duckdb import worker
from hubbub.engines.duckdb.wire import is_readable

FORK, KILL, RETIRE = b"+", b"-", b"."
"""What this process is told: fork, with a channel; end the child of a number; fork no more, and end after the last."""
READY, REFUSED = b"r", b"!"
"""What it says: it is warm; and: it has more than one thread, and does not fork any more."""
ALONE: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "async_threads": 0}
"""DuckDB 2.0 starts eight threads for reading ahead when it is opened, and as many workers as there are processors."""
_IDLE = 60.0
"""Seconds without a child or a request after which it ends: whoever needs one starts another in a third of a second."""
_TASKS = "/proc/self/task"


def main(control: socket.socket, directory: str, parent: int, *, warm: bool) -> None:
    """Fork a child for each channel that is sent; end with the parent, and leave nothing of it behind."""
    made_up = f"{directory}/made_up-{os.getpid()}.parquet"
    connection = open_warm(made_up) if warm else None
    gc.collect()
    gc.freeze()  # objects that are never looked at again are never copied
    zygote = _Zygote(control, connection, made_up)
    if zygote.serve(parent):
        zygote.end_children()
        shutil.rmtree(directory, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(made_up)


def open_warm(made_up: str) -> Any:
    """Open an engine and do what every question does for the first time; None where it cannot be opened like that."""
    import duckdb

    try:
        connection = duckdb.connect(":memory:", config=ALONE)
        worker.settle(connection)
        worker.warm_up(connection, worker.ROUNDS)
        worker.make_up(connection, made_up)
        for _ in range(worker.ROUNDS):
            worker.rehearse(connection, made_up)
    except duckdb.Error:
        return None
    return connection


class _Zygote:
    def __init__(self, control: socket.socket, connection: Any, made_up: str) -> None:
        self._control, self._connection = control, connection
        self._made_up = None if connection is None else made_up
        self._children: dict[int, int] = {}
        self._forks = 0
        self._retired = False
        self._last = time.monotonic()

    def serve(self, parent: int) -> bool:
        """Do as told until the parent has gone (true), or until nobody needs this process any more (false)."""
        self._say(READY)
        while os.getppid() == parent:
            self._reap()
            if not self._children and (self._retired or time.monotonic() - self._last > _IDLE):
                return False
            if not is_readable(self._control, 1.0):
                continue
            word, channels, _, _ = socket.recv_fds(self._control, 64, 1)
            if not word:
                return True
            self._do(word, channels)
        return True

    def _do(self, word: bytes, channels: list[int]) -> None:
        self._last = time.monotonic()
        if word == RETIRE:
            self._retired = True
        elif word.startswith(KILL):
            child = self._children.get(int(word[1:]))
            if child is not None:  # not waited for yet, so that its number is nobody else's
                os.kill(child, signal.SIGKILL)
        for channel in channels:
            if self._connection is not None and not is_single():
                self._retired = True
                self._say(REFUSED)
            elif not self._retired:
                self._fork(channel)
            os.close(channel)

    def _fork(self, channel: int) -> None:
        own = os.getpid()
        child = os.fork()
        if child == 0:
            self._control.close()
            worker.live(socket.socket(fileno=channel), own, self._connection, self._made_up)
        self._children[self._forks] = child
        self._forks += 1

    def _say(self, word: bytes) -> None:
        with contextlib.suppress(OSError):
            self._control.send(word)

    def _reap(self) -> None:
        """Forget children that have ended."""
        for number, child in list(self._children.items()):
            if os.waitpid(child, os.WNOHANG)[0] == child:
                del self._children[number]

    def end_children(self) -> None:
        """Kill every child that still runs."""
        for child in self._children.values():
            os.kill(child, signal.SIGKILL)


def is_single() -> bool:
    """Return whether this process is known to have one thread alone."""
    try:
        return len(os.listdir(_TASKS)) == 1
    except OSError:
        return False


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], int(sys.argv[3]), warm=sys.argv[4] == "warm")
