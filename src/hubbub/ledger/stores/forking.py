"""SQLite does not survive a fork, so no connection is carried across one.

SQLite keeps in the memory of the process which locks it holds, while the kernel gives a child none of them: a child
would believe in locks that it has not got, or wait for ever for one that only its parent can let go of. So whoever
forks waits for transactions to end, and every connection is closed before the child is made and opened again, on either
side, when it is next needed. A connection that is in the middle of reading stays open; the child then may not use that
file at all.
"""

import os
import threading
import weakref
from typing import Protocol

_PATIENCE = 5.0


class Carried(Protocol):
    """A connection that must not go along."""

    writes: bool

    def put_down(self) -> None:
        """Close it, to be opened again when it is needed, unless it is in the middle of something."""

    def abandon(self) -> None:
        """In the child: it belongs to the parent, and so does its lock."""


class Traffic:
    """Many may work at once; a fork waits until nobody does, and keeps the next ones waiting.

    The marks go through here too: a child must not be born with a file that its parent has locked.
    """

    def __init__(self) -> None:
        self._own = threading.local()
        self._changed = threading.Condition()
        self._working = self._forks = 0
        self._connections: weakref.WeakSet[Carried] = weakref.WeakSet()

    def enter(self) -> None:
        """Begin to use a connection; a thread may do so within itself."""
        depth = getattr(self._own, "depth", 0)
        if not depth:
            with self._changed:
                self._changed.wait_for(lambda: not self._forks)
                self._working += 1
        self._own.depth = depth + 1

    def leave(self) -> None:
        """Have used it."""
        self._own.depth -= 1
        if not self._own.depth:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def watch(self, connection: Carried) -> None:
        """Put this connection down before a fork."""
        with self._changed:
            self._connections.add(connection)

    def stop(self) -> None:
        """Before a fork."""
        with self._changed:
            self._forks += 1
            idle = self._changed.wait_for(lambda: not self._working, timeout=_PATIENCE)
            if idle:
                for connection in sorted(self._connections, key=lambda one: one.writes):
                    connection.put_down()  # a writer last: only it can fold the log into the file

    def go(self) -> None:
        """After it, in the parent."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def begin_anew(self) -> None:
        """After it, in the child, where no other thread lives and a lock may be held by nobody."""
        connections = list(self._connections)
        self._own, self._changed = threading.local(), threading.Condition()
        self._working = self._forks = 0
        self._connections = weakref.WeakSet()
        for connection in connections:
            connection.abandon()


TRAFFIC = Traffic()
os.register_at_fork(before=TRAFFIC.stop, after_in_parent=TRAFFIC.go, after_in_child=TRAFFIC.begin_anew)
