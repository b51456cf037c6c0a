"""The read of one request's data: prepared for nothing, begun while it is being paid for, called when it is paid.

To begin is to hand the request to a process that parses it and shuts its doors. It touches no file until it is called.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from hubbub.gate.sealed import Sealed

T = TypeVar("T")


class Begun(Protocol):
    """A request that some process has already, as an engine holds it."""

    def drop(self) -> None:
        """Let go of it, unread."""


def _begin_nothing() -> None:
    return None


class Run(Generic[T]):
    """Call it to read; the result is sealed. ``begin`` may come before, and ``end`` must come after wherever it did."""

    def __init__(self, read: Callable[[Any], T], *, begin: Callable[[], Begun | None] = _begin_nothing) -> None:
        self._read, self._begin = read, begin
        self._begun: Begun | None = None

    def begin(self) -> None:
        """Go as far as is possible without reading; what fails here fails later, if it is called at all."""
        if self._begun is None:
            with contextlib.suppress(Exception):
                self._begun = self._begin()

    def end(self) -> None:
        """Let go of what was begun and never called."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.drop()

    def __call__(self) -> Sealed[T]:
        begun, self._begun = self._begun, None
        return Sealed(self._read(begun))
