"""What reads the data of one question: prepared for nothing, begun while it is being paid for, called when it is paid.

To begin is to hand the request to a process that parses it and shuts its doors. It touches no file until it is called.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hubbub.engines.pool import Standby
from hubbub.query.ops import Counted


@dataclass(frozen=True, slots=True)
class Begun:
    """A request, and the process that has it already."""

    request: dict[str, Any]
    standby: Standby | None = None


def _nothing() -> None:
    return None


def _drops(begun: Begun) -> None:
    return None


class Run:
    """Call it to read. ``begin`` may come before, and ``end`` must come after wherever it did."""

    def __init__(
        self,
        read: Callable[[Begun | None], Counted],
        *,
        begin: Callable[[], Begun | None] = _nothing,
        drop: Callable[[Begun], None] = _drops,
    ) -> None:
        self._read, self._begin, self._drop = read, begin, drop
        self._begun: Begun | None = None

    def begin(self) -> None:
        """As far as it goes without reading; what fails here fails later, if it is called at all."""
        if self._begun is None:
            with contextlib.suppress(Exception):
                self._begun = self._begin()

    def end(self) -> None:
        """Let go of what was begun and never called."""
        begun, self._begun = self._begun, None
        if begun is not None:
            self._drop(begun)

    def __call__(self) -> Counted:
        begun, self._begun = self._begun, None
        return self._read(begun)
