"""The most memory that a process and all it started held at one moment, by looking at /proc while they run."""

import os
import threading
from pathlib import Path
from types import TracebackType

PAGE = os.sysconf("SC_PAGE_SIZE")
GB = 1e9


def tree(root: int) -> set[int]:
    """A process and all that descend from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {root}
    grown = True
    while grown:
        more = {process for process, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found


def resident(root: int) -> int:
    """Bytes resident in the whole tree. Pages that processes share are counted for each of them: never too few."""
    total = 0
    for process in tree(root):
        try:
            total += int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
        except OSError:
            continue
    return total


class Peak:
    """``with Peak() as peak``: what the tree under a process holds at most, looked at twenty times a second."""

    def __init__(self, root: int | None = None, *, every: float = 0.05) -> None:
        self._root = os.getpid() if root is None else root
        self._every = every
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.bytes = 0

    def _look(self) -> None:
        while not self._done.wait(self._every):
            self._look_once()

    def _look_once(self) -> None:
        self.bytes = max(self.bytes, resident(self._root))

    def __enter__(self) -> "Peak":
        self.bytes = resident(self._root)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    @property
    def gigabytes(self) -> float:
        """In units of 10^9 bytes."""
        return self.bytes / GB
