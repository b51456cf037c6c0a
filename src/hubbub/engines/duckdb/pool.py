"""Prepared processes, one for each request: forked ahead of time, used once, and gone afterwards.

A first process has the engine open and forks the others, so that one costs a few milliseconds (``nursery``). It holds a
socket of ours and looks for its parent: when either goes, so do all of them, and the files with them.
"""

import contextlib
import os
import queue
import shutil
import signal
import socket
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hubbub.engines.duckdb.nursery import FIRST_WORD, START, Birth, nursery
from hubbub.engines.duckdb.wire import GO, ROUSE, is_readable, receive, send

_PAUSE = 0.05
_BACKLOG = 32
"""Processes that may wait for their end at a time. Beyond that, whoever has an answer ends its own: on a busy machine,
those who ask without a pause would else have ever more of them, with their descriptors and files."""
_ROUSED = 0.05
"""Seconds in which a process is roused once. A rehearsal takes 0.002: none waits for one that waits for another."""
_LOOK = 60.0
"""Seconds after which a thread without work looks whether anybody needs it still."""


class Late(Exception):
    """It took longer than it may."""


@dataclass(slots=True)
class Standby:
    """A process that waits for its one request."""

    channel: socket.socket
    scratch: str
    birth: Birth
    owner: int = field(default_factory=os.getpid)
    process: int | None = None
    handle: int | None = None
    """A descriptor of the process itself: its number may be given to another one after its end."""
    roused: float = -_ROUSED

    def ready(self) -> None:
        """Wait until it has loaded everything; EOFError where it has ended instead, or since."""
        if self.process is None:
            self.birth.wait_for_parent()
            self.channel.settimeout(FIRST_WORD)
            self.process = int(receive(self.channel)["ready"])
            if hasattr(os, "pidfd_open"):
                self.handle = os.pidfd_open(self.process)
        if is_readable(self.channel):
            raise EOFError

    def waits(self) -> bool:
        """Return whether a request would be taken up at once."""
        return self.process is not None or is_readable(self.channel)

    def rouse(self) -> None:
        """Let it rehearse, so that it is quick when the request comes; what fails here fails then."""
        if self.waits() and time.monotonic() - self.roused >= _ROUSED:
            self.roused = time.monotonic()
            with contextlib.suppress(OSError):
                send(self.channel, ROUSE)

    def begin(self, request: Any) -> None:
        """Hands over the request: it is read, and prepared as far as that goes without touching any data."""
        self.channel.settimeout(START)
        send(self.channel, request)

    def answer(self, seconds: float) -> Any:
        """Its answer within so many seconds of wall time from now; the rest of the message included."""
        deadline = time.monotonic() + seconds
        try:
            self.channel.settimeout(seconds)
            send(self.channel, GO)
            return receive(_Deadline(self.channel, deadline))  # type: ignore[arg-type]
        except TimeoutError:
            raise Late(f"The engine took longer than {seconds:g} seconds and was stopped.") from None
        except (EOFError, OSError):
            raise RuntimeError("The engine's process ended without an answer.") from None

    def kill(self) -> None:
        """Kill it, if it still runs."""
        with contextlib.suppress(OSError):
            if self.handle is not None:
                signal.pidfd_send_signal(self.handle, signal.SIGKILL)
            elif self.process is not None:
                os.kill(self.process, signal.SIGKILL)

    def end(self) -> None:
        """Kill it, if it still runs, and wait until it has gone."""
        self.kill()
        with contextlib.suppress(OSError):
            self.channel.settimeout(START)
            while self.channel.recv(1 << 16):
                pass
            if self.handle is not None:
                is_readable(self.handle, START)
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


class Pool:
    """Standbys, kept at a number. After a fork of our own process the child starts its own."""

    def __init__(self, *, directory: str, limits: Mapping[str, Any], standbys: int) -> None:
        self._directory = directory
        self._limits = limits
        self._wanted = max(1, standbys)
        self._waiting: deque[Standby] = deque()
        self._asking = 0
        self._keeper: _Keeper | None = None
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._closed = False
        self._last = weakref.finalize(self, _remove, directory, os.getpid())
        self._fill()

    def rouse(self) -> None:
        """Let the next process rehearse while somebody makes up a request, unless others need the processors."""
        with self._lock:
            if self._waiting and not self._asking and self._owner == os.getpid():
                self._waiting[0].rouse()

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
        standby.end()
        self._fill()

    def ask(self, request: dict[str, Any], *, seconds: float, begun: Standby | None = None) -> Any:
        """The answer of a fresh process. It is killed and its files go; after an answer, nobody waits for that."""
        with self._lock:
            self._asking += 1
        try:
            standby = begun or self._take()
            try:
                if begun is None:
                    standby.begin(request)
                found = standby.answer(seconds)
            except BaseException:
                self.drop(standby)
                raise
        finally:
            with self._lock:
                self._asking -= 1
        with self._lock:
            if self._keeper is None or not self._keeper.serves():
                self._keeper = _Keeper(self._fill_later)
        self._keeper.end(standby)
        return found

    def _fill_later(self, pause: Callable[[float], object]) -> None:
        """The next one gets ready after a pause, if others wait: whoever asked has something to do with the answer."""
        if self._waiting and not self._asking:
            pause(_PAUSE)
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
        with self._lock:
            self._closed = True
            standbys, self._waiting = list(self._waiting), deque()
            keeper, self._keeper = self._keeper, None
        if keeper is not None and keeper.serves():
            keeper.close()
        for standby in standbys:
            if standby.owner == os.getpid():
                with contextlib.suppress(EOFError, OSError):
                    standby.ready()
                standby.end()
            else:
                standby.forget()
        self._last()

    def _take(self) -> Standby:
        """A standby that is ready. One that died waiting is not held against the question, nor one that hangs."""
        for _ in range(self._wanted + 3):
            with self._lock:
                self._mend()
                standby = self._waiting.popleft() if self._waiting else self._fork(hurry=True)
            try:
                standby.ready()
                return standby
            except TimeoutError:
                nursery().distrust(standby.birth)
                standby.forget()
            except (EOFError, OSError):
                standby.forget()
        raise RuntimeError("The engine's process cannot be started.")

    def _fill(self) -> None:
        with contextlib.suppress(OSError), self._lock:
            if not self._closed:
                self._mend()
                while len(self._waiting) < self._wanted:
                    self._waiting.append(self._fork(hurry=self._asking > 0))

    def _mend(self) -> None:
        """Leaves what belongs to another process: this one is a fork of it."""
        if self._closed:
            raise RuntimeError("The engine is closed.")
        if self._owner == os.getpid():
            return
        for standby in self._waiting:
            standby.forget()
        self._waiting.clear()
        self._owner = os.getpid()
        self._directory = nursery().make_directory()
        self._last = weakref.finalize(self, _remove, self._directory, self._owner)

    def _fork(self, *, hurry: bool) -> Standby:
        scratch = tempfile.mkdtemp(prefix="scratch-", dir=self._directory)
        ours, theirs = socket.socketpair()
        with theirs:
            birth = nursery().fork(theirs.fileno())
        send(ours, {**self._limits, "scratch": scratch, "hurry": hurry})
        return Standby(ours, scratch, birth)


class _Keeper:
    """A thread that ends processes which have answered, and has others made in their place."""

    def __init__(self, fill: Callable[[Callable[[float], object]], None]) -> None:
        self._fill = weakref.WeakMethod(fill)
        self._owner = os.getpid()
        self._leaving = threading.Event()
        self._ended: queue.SimpleQueue[Standby | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="hubbub-keeper", daemon=True)
        self._thread.start()

    def serves(self) -> bool:
        """Return whether its thread is of this process: a fork of ours has none."""
        return self._owner == os.getpid()

    def end(self, standby: Standby) -> None:
        """End a process soon, or now where too many are to end."""
        standby.kill()
        if self._ended.qsize() < _BACKLOG:
            self._ended.put(standby)
        else:
            standby.end()

    def close(self) -> None:
        """End what is to be ended, and stop."""
        self._leaving.set()
        self._ended.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _serve(self) -> None:
        while (standby := self._next()) is not None:
            standby.end()
            fill = self._fill()
            if fill is not None and self._ended.empty():
                with contextlib.suppress(RuntimeError):  # it was closed meanwhile
                    fill(self._leaving.wait)

    def _next(self) -> Standby | None:
        """Return the next one that is to go; None when there will be none."""
        while True:
            try:
                return self._ended.get(timeout=_LOOK)
            except queue.Empty:
                if self._fill() is None:  # the pool is gone, and was never closed
                    return None


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
