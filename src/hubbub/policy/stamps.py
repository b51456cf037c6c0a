"""Stamps of files: what the file system says about their content without reading it.

Two equal stamps of a file, both taken from the file system while the file was at rest, mean that nobody has written to
it in between. A stamp is never a hash of the content: it says nothing about rows.
"""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.policy.tables import TableSource

GRAIN_NS = 2_000_000_000
"""The coarsest clock of a file system that is in use: FAT counts in steps of 2 seconds."""
TICK_NS = 50_000_000
"""Five ticks of the slowest clock (100 a second) by which Linux stamps files where times have nanoseconds."""
_COARSE_NS = 10_000_000
"""Times that are multiples of this come from a coarse clock: those of FAT, ext3 and HFS+ all are. One of a fine clock
is by chance once in 10^7, and is waited for longer then."""
LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""What DuckDB 2.0 appends to a database's path to name files whose rows it reads as part of the database."""
_OPEN = "/proc/self/fd"
"""Where Linux has a name for each descriptor."""

Mark = tuple[int, int, int, int, int]
"""Device, inode, size, and the nanoseconds of the last change of the content and of the inode."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The marks of files under their paths; a file that is not there has none.

    Privacy:
        Claim: if the stamps before and after a read are equal, and the first was settled when it was taken, then the
            read saw one state of the files, and any other read between two equal stamps saw the same state.
        Proof: a write sets the change time of the inode, which no user can set, to the clock's present tick. A settled
            stamp is older than a tick of its clock, so that a write after it has another time. A file that was put in
            place of another has another inode, or a later change time if the number was used again.
        Needs: a read of the files that were stamped. Of a read through descriptors ``covers`` knows it, whatever links
            and folders did meanwhile; one by paths needs that none leads elsewhere during it and back before its end.
            Further a clock that is not set back, shared with the file system up to GRAIN_NS; no writes through a memory
            map that was made before the stamp and is written back after it, whose time the kernel sets late.
        Ref: the "racy git" problem (git's Documentation/technical/racy-git.txt); SOUNDNESS 36.
    """

    files: tuple[tuple[str, Mark | None], ...] = ()

    def is_settled(self, now_ns: int) -> bool:
        """Return whether every file was at rest at ``now_ns``: a write after that would change the stamp."""
        return all(mark is None or mark[4] <= now_ns - _grain(mark) for _, mark in self.files)

    def holds(self) -> bool:
        """Return whether the files are still as they were."""
        return stamp_files(path for path, _ in self.files) == self

    def agrees(self, read: "Stamp") -> bool:
        """Return whether files that were read through descriptors, and marked after that, are those stamped here.

        Files that only one of the two knows are not compared. One mark after the read is enough: a write since this
        stamp, before or during the read, has left a later change time, which nobody can set back.
        """
        known = dict(self.files)
        return all(known[path] == mark for path, mark in read.files if path in known)

    def covers(self, read: "Stamp") -> bool:
        """Return whether every file stamped here was read through a descriptor, and is the one stamped here."""
        return set(self.files) <= set(read.files)

    def __or__(self, other: "Stamp") -> "Stamp":
        """Return the stamp of both; where they disagree about a file, it never holds."""
        return Stamp(tuple(dict.fromkeys((*self.files, *other.files))))

    def as_json(self) -> list[list[Any]]:
        """Return what a record keeps; ``Stamp.of_json`` reads it again."""
        return [[path, None if mark is None else list(mark)] for path, mark in self.files]

    @classmethod
    def of_json(cls, kept: Any) -> "Stamp":
        """Read what ``as_json`` gave; ValueError for anything else."""
        try:
            return cls(tuple((_text(path), None if mark is None else _mark(mark)) for path, mark in kept))
        except (TypeError, ValueError) as problem:
            raise ValueError("This is no stamp.") from problem


NO_FILES = Stamp()
"""The stamp of what is in no file, which always holds."""


def stamp_of(source: "TableSource") -> Stamp:
    """Stamp the files of a source, with the logs that a DuckDB file is read with; frames and servers have none."""
    if source.format == "postgres":
        return NO_FILES
    if source.format == "duckdb":
        return stamp_files(file for path in source.paths for file in database_files(path))
    return stamp_files(source.paths)


def database_files(path: str) -> tuple[str, ...]:
    """List the files that a DuckDB database is read from: itself and its logs, which lie beside the real file."""
    places = dict.fromkeys((path, os.path.realpath(path)))
    return (path, *(place + log for place in places for log in LOGS))


def stamp_at_rest(take: Callable[[], Stamp]) -> Stamp | None:
    """Stamp files that nobody writes to, waiting for a tick of their clock where they were just written; else None."""
    deadline = time.monotonic_ns() + 2 * GRAIN_NS
    while not (stamp := take()).is_settled(time.time_ns()):
        if time.monotonic_ns() > deadline:
            return None
        time.sleep(TICK_NS / 1e9)
    return stamp


def _grain(mark: Mark) -> int:
    """Return how long a write may leave no trace, by the clock that the time of the last change was read from."""
    return GRAIN_NS if mark[4] % _COARSE_NS == 0 else TICK_NS


def stamp_files(paths: Iterable[str]) -> Stamp:
    """Stamp files by their paths."""
    return Stamp(tuple((path, _find_mark(path)) for path in paths))


def stamp_opened(path: str, descriptor: int) -> Stamp:
    """Stamp a file by a descriptor of it, under the path that it was opened by."""
    return Stamp(((path, _mark_of(os.fstat(descriptor))),))


def name_of(descriptor: int, path: str) -> str:
    """Name what a descriptor leads to, wherever the path leads now; the path where the system has no such names."""
    return f"{_OPEN}/{descriptor}" if os.path.isdir(_OPEN) else path


def _mark_of(status: os.stat_result) -> Mark:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _find_mark(path: str) -> Mark | None:
    try:
        return _mark_of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # a link to itself, a folder without rights: nobody can say what is there, and it never holds
        return -1, -1, -1, -1, time.time_ns()


def _text(path: Any) -> str:
    if not isinstance(path, str):
        raise TypeError
    return path


def _mark(kept: Any) -> Mark:
    device, inode, size, changed, touched = kept
    mark = device, inode, size, changed, touched
    if any(type(number) is not int for number in mark):
        raise TypeError
    return mark
