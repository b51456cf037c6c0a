"""The files of a request: each is opened once, and the answer says what was opened.

What is read is what a descriptor leads to, whatever its path leads to by then.
"""

import contextlib
import ctypes
import os
import resource
import stat
from typing import Any

_BIND = 0x1000
"""Mount one file elsewhere."""
LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""As ``policy.stamps`` has it."""
_OPEN = "/proc/self/fd"
"""Where Linux has a name for each descriptor that leads to what was opened, whatever its path leads to now."""
_SPARE = 256
"""Descriptors that are left for other things than a request's files."""


class Opened:
    """The files of a request, each opened once; whoever reads by the names given here reads what was opened.

    A system without names for descriptors, or too many files for one process, leaves the paths themselves, and then
    there are no marks.
    """

    mounts = False
    """Whether this process has mounts of its own."""

    def __init__(self, paths: list[str], scratch: str) -> None:
        """Set descriptors aside, so that files have names before any is opened."""
        self.names = {path: path for path in paths}
        self._scratch = scratch
        self._descriptors: dict[str, int | None] = {}
        self._unread: dict[str, Any] = {}
        self._reserved: dict[str, int] = {}
        if not os.path.isdir(_OPEN) or not _room(2 * len(paths) + _SPARE):  # the engine may open each once more
            return
        for path in paths:
            self._reserved[path] = os.open(os.devnull, os.O_RDONLY)
            self.names[path] = f"{_OPEN}/{self._reserved[path]}"
        if any("=" in path for path in paths):  # folders may be called by what is in them (year=2024)
            for place, (path, name) in enumerate(self.names.items()):  # one name each: none is a pattern of another
                self.names[path] = link = f"{scratch}/files{os.path.dirname(path)}/{place}.parquet"
                os.makedirs(os.path.dirname(link), exist_ok=True)
                os.symlink(name, link)

    def open(self) -> None:
        """Open the files, each under the descriptor that was set aside for it."""
        for path, reserved in self._reserved.items():
            opened = _open_file(path)
            os.dup2(opened, reserved, inheritable=False)
            os.close(opened)
            self._descriptors[path] = reserved

    def bind(self, path: str) -> str | None:
        """Open a database with its logs, and give them a place of their own that is attached in place of the path.

        The engine takes the real path of what it attaches, and reads logs that lie beside that and closes them again.
        Here none but those that were opened lie beside it. None where this process may not mount.
        """
        real = os.path.realpath(path)
        if not self.mounts or not self._scratch:
            return None
        place = f"{self._scratch}/database{len(self._descriptors)}"
        beside, found = os.open(os.path.dirname(real), os.O_RDONLY | os.O_DIRECTORY), dict[str, int | None]()
        try:
            for log in ("", *LOGS):
                try:
                    found[log] = opened = _open_file(os.path.basename(real) + log, beside)
                except FileNotFoundError:
                    found[log] = None
                else:
                    with open(place + log, "xb"):
                        pass
                    if not _mount(f"{_OPEN}/{opened}", place + log):
                        return None
        finally:
            os.close(beside)
        self._descriptors[path] = found.pop("")
        for log, one in found.items():
            self._descriptors[real + log] = one
            if real != path:  # nobody reads it there
                self._unread[path + log] = _mark_at(path + log)
        return place

    def find_attached(self, path: str, before: set[int]) -> None:
        """Find the file that the engine has opened for a database since ``before``; of two, nobody knows which."""
        new = open_files() - before
        if os.path.isdir(_OPEN):
            self._descriptors[path] = new.pop() if len(new) == 1 else None

    def close(self) -> None:
        """Close what was opened here; a process that ends needs not."""
        for descriptor in self._reserved.values():
            os.close(descriptor)
        self._reserved = {}
        self._descriptors = {}

    def marks(self) -> list[tuple[str, Any]]:
        """Return what the system says of each file that was opened; nothing of one that cannot be found."""
        opened = [(path, None if one is None else _mark(os.fstat(one))) for path, one in self._descriptors.items()]
        return [*opened, *self._unread.items()]


def literal(name: str) -> str:
    """Write a name so that the engine takes it for no pattern of names."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _open_file(path: str, folder: int | None = None) -> int:
    """Open a file, and nothing that would have to be waited for (a pipe) or never ends (a device)."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError("not a file")
    return opened


def _mount(what: str, place: str) -> bool:
    found: int = ctypes.CDLL(None).mount(what.encode(), place.encode(), None, _BIND, None)
    return found == 0


def _mark_at(path: str) -> tuple[int, ...] | None:
    try:
        return _mark(os.stat(path))
    except OSError:
        return None


def _mark(status: os.stat_result) -> tuple[int, ...]:
    """As ``policy.stamps`` has it."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def open_files() -> set[int]:
    """The descriptors of files that are open here."""
    found = set()
    for name in os.listdir(_OPEN) if os.path.isdir(_OPEN) else []:
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            if stat.S_ISREG(os.fstat(int(name)).st_mode):
                found.add(int(name))
    return found


def _room(many: int) -> bool:
    """Return whether ``many`` files can be open at a time, after asking for as many as we may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < many:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return soft == resource.RLIM_INFINITY or soft >= many
