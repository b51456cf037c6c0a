"""The processor time of a process and all it started, by looking at /proc while they run.

Processes that nobody waits for, as the engine's, are in no account of children when they have ended.
"""

import os
from pathlib import Path
from types import TracebackType

from bench.memory import PAGE, Peak, tree

_TICK = os.sysconf("SC_CLK_TCK")
_SELDOM = 20
"""To look for new processes is to look at everybody's: not each time. The engine's wait before they are asked."""


def spent(process: int) -> float:
    """Seconds of all its threads so far; OSError where it has gone."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


class Busy(Peak):
    """``with Busy() as busy``: seconds of the whole tree since then, and its memory; what a process does after it was
    last looked at is not counted, a twentieth of a second of each, nor one that ends within a second."""

    def __init__(self, root: int | None = None, *, every: float = 0.05) -> None:
        super().__init__(root, every=every)
        self._before: dict[int, float] = {}
        self._seen: dict[int, float] = {}
        self._known: set[int] = set()
        self._looks = 0

    def _look_once(self) -> None:
        if self._looks % _SELDOM == 0:
            self._known = tree(self._root)
        self._looks += 1
        total = 0
        for process in self._known:
            try:
                self._seen[process] = spent(process)
                total += int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
            except OSError:
                continue
        self.bytes = max(self.bytes, total)

    def __enter__(self) -> "Busy":
        self._look_once()
        self._before = dict(self._seen)
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._look_once()

    @property
    def seconds(self) -> float:
        """Of all processes together."""
        return sum(now - self._before.get(process, 0.0) for process, now in dict(self._seen).items())
