"""The engine's first process as this process sees it: one for all engines, started when the first one needs it.

It is renewed after many forks or a long time, while others go on with the old one. Where a warm process cannot be
forked (it has threads, or a child did not say its first word in time), later ones are forked before the engine is
opened: each child then opens and warms up its own.
"""

import atexit
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hubbub.engines.duckdb import zygote as program
from hubbub.engines.duckdb.wire import is_readable

START = 60.0
"""Seconds that the first process may take to be ready."""
FIRST_WORD = 10.0
"""Seconds that a child may take to its first word once its parent is ready. It takes 0.02; on a machine with a hundred
times as many processes as processors it has taken one."""
_FORKS, _AGE = 20_000, 3600.0
"""After so many forks or seconds a first process is renewed: whatever it may have lost by then comes back."""
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Environment variables that the engine's processes see: no secrets."""
_MEMORY = {"DUCKDB_JE_MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1,narenas:1"}
"""The engine keeps the memory that it warmed up with: a small question would spend a third of its time on getting more.
The process ends with its question, and everything goes back then."""


@dataclass(slots=True, eq=False)
class Zygote:
    """One first process."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    born: float = field(default_factory=time.monotonic)
    forks: int = 0
    is_ready: bool = False
    refused: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def listen(self, seconds: float = 0.0) -> None:
        """Take in what it says, until it is ready if there is time for that; EOFError where it has gone before."""
        with self._lock:
            while is_readable(self.control, 0.0 if self.is_ready else seconds):
                word = self.control.recv(1)
                if not word:
                    raise EOFError
                self.is_ready |= word == program.READY
                self.refused |= word == program.REFUSED

    def is_old(self) -> bool:
        """Return whether it is time for another one."""
        return self.forks >= _FORKS or time.monotonic() - self.born >= _AGE

    def tell(self, word: bytes) -> None:
        """Say something that has no answer."""
        with contextlib.suppress(OSError):
            self.control.send(word)

    def fork(self, channel: int) -> int:
        """Let it fork a child at the other end of a channel; return the child's number."""
        socket.send_fds(self.control, [program.FORK], [channel])
        self.forks += 1
        return self.forks - 1

    def end(self) -> None:
        """End it, and all its children with it."""
        self.control.close()
        self.process.wait()


@dataclass(frozen=True, slots=True)
class Birth:
    """A child that was asked for."""

    zygote: Zygote
    number: int

    def wait_for_parent(self) -> None:
        """Wait until the first process is warm; EOFError where it ended, TimeoutError where it takes too long."""
        self.zygote.listen(START)
        if not self.zygote.is_ready:
            raise TimeoutError


class Nursery:
    """The first processes of one process of ours: the one that forks now, and those that only wait for their last."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._current: Zygote | None = None
        self._next: Zygote | None = None
        self._retired: list[Zygote] = []
        self._directory: str | None = None
        self.is_warm = os.path.isdir("/proc/self/task")
        """Whether threads can be counted here, and nothing has gone wrong with forking yet."""

    def make_directory(self) -> str:
        """Make a directory that goes with this process, however it ends."""
        with self._lock:
            if self._directory is None:
                self._directory = tempfile.mkdtemp(prefix="hubbub-")
            return tempfile.mkdtemp(prefix="engine-", dir=self._directory)

    def prepare(self) -> None:
        """Start the first process, so that it gets warm while whoever needs it does other things."""
        with self._lock:
            self._find()

    def fork(self, channel: int) -> Birth:
        """Ask for a child at the other end of a channel."""
        with self._lock:
            for _ in range(2):
                zygote = self._find()
                try:
                    return Birth(zygote, zygote.fork(channel))
                except OSError:  # it has ended since
                    self._drop(zygote)
            zygote = self._find()
            return Birth(zygote, zygote.fork(channel))

    def distrust(self, birth: Birth) -> None:
        """End a child that said nothing in time, and fork no warm process from now on."""
        with self._lock:
            birth.zygote.tell(program.KILL + str(birth.number).encode())
            self.is_warm = False
            for zygote in (self._current, self._next):
                if zygote is not None:
                    self._retire(zygote)
            self._current = self._next = None

    def end(self) -> None:
        """End every process, with its children, and remove every file."""
        with self._lock:
            living = [zygote for zygote in (self._current, self._next, *self._retired) if zygote is not None]
            self._current = self._next = None
            self._retired = []
            directory, self._directory = self._directory, None
        for zygote in living:
            zygote.end()
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)

    def _find(self) -> Zygote:
        """Return the first process that forks: a living one that does not refuse, and a young one if it is ready."""
        zygote = self._current
        if zygote is not None and not self._serves(zygote):
            self._drop(zygote)
            zygote = None
        if zygote is None:
            zygote = self._current = self._next or self._start()
            self._next = None
        elif zygote.is_old():
            zygote = self._renew(zygote)
        return zygote

    def _serves(self, zygote: Zygote) -> bool:
        with contextlib.suppress(EOFError, OSError):
            zygote.listen()
            if zygote.refused:
                self.is_warm = False
                self._retire(zygote)
                return False
            return zygote.process.poll() is None
        return False

    def _renew(self, old: Zygote) -> Zygote:
        if self._next is None:
            self._next = self._start()
        if not self._serves(self._next):
            self._next = None
        elif self._next.is_ready:
            self._retire(old)
            self._current, self._next = self._next, None
            return self._current
        return old

    def _retire(self, zygote: Zygote) -> None:
        """It ends when its children have. Its control stays open until then: else it would think that we have gone."""
        zygote.tell(program.RETIRE)
        for one in [one for one in self._retired if one.process.poll() is not None]:
            one.control.close()
            self._retired.remove(one)
        self._retired.append(zygote)

    def _drop(self, zygote: Zygote) -> None:
        if self._current is zygote:
            self._current = None
        if zygote not in self._retired and zygote.process.poll() is not None:
            zygote.control.close()

    def _start(self) -> Zygote:
        if self._directory is None:
            self._directory = tempfile.mkdtemp(prefix="hubbub-")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = [
            str(Path(program.__file__).resolve().parents[3]),
            *(os.path.abspath(path) for path in sys.path if path),
        ]
        environment = {name: value for name, value in os.environ.items() if name in _KEPT}
        how = "warm" if self.is_warm else "cold"
        with theirs:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", program.__name__),
                    *(str(theirs.fileno()), self._directory, str(self._owner), how),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd=self._directory,
                env={**environment, **_MEMORY, "PYTHONPATH": os.pathsep.join(paths)},
            )
        return Zygote(process, ours)


_own: list[Nursery] = []
_guard = [threading.Lock()]


def nursery() -> Nursery:
    """Return the nursery of this process."""
    with _guard[0]:
        if not _own:
            _own.append(Nursery())
            atexit.register(_end, _own[0], os.getpid())
        return _own[0]


def _end(own: Nursery, owner: int) -> None:
    if os.getpid() == owner:
        own.end()


def _begin_anew() -> None:
    """A fork of ours has its own nursery; the sockets of the other one are its parent's business."""
    _own.clear()
    _guard[0] = threading.Lock()


_at_fork: Callable[..., None] | None = getattr(os, "register_at_fork", None)
if _at_fork is not None:
    _at_fork(after_in_child=_begin_anew)
