"""The seam between questions and the systems that hold data: an engine reads, and returns what it read under seal.

To begin is to hand the request to a process that parses it and shuts its doors. It touches no file until it is called.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.gate.secret import Sealed
from hubbub.policy.stamps import Stamp
from hubbub.policy.tables import Table, TableSource
from hubbub.query.expression import Expression, Value
from hubbub.query.ops import Relation
from hubbub.query.read.scope import Fanout
from hubbub.query.requests import Request

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


class Engine(Protocol):
    """Runs requests on declared tables. Whatever goes wrong while it reads is one and the same EngineError."""

    def prepare(self, request: Request, *, tables: Mapping[str, Table]) -> Run[Any]:
        """Return what reads the data when it is called, and returns its result under seal.

        Whatever can go wrong for public reasons, like sums that cannot be held, is raised here, and so before anything
        is paid.
        """

    def show(self, request: Request, *, tables: Mapping[str, Table]) -> SqlStatement:
        """Return the statement that a request would run, as the owner may read it: no secret number is in it."""

    def rouse(self) -> None:
        """Say that a request may come soon, so that whatever will read for it gets ready. It reads nothing."""

    def describe(self, source: TableSource) -> tuple[tuple[str, str], ...]:
        """Return the columns of a source and the engine's types for them, read off its schema; for the owner's side."""

    def stamp(self, relation: Relation, *, tables: Mapping[str, Table]) -> Stamp:
        """Return the state of the files that a relation is read from."""

    def fanout(self, relation: Relation, keys: Sequence[Expression], *, tables: Mapping[str, Table]) -> Fanout:
        """Count how many rows of a public relation share one combination of keys, at most."""

    def values(
        self, relation: Relation, expression: Expression, *, tables: Mapping[str, Table], most: int
    ) -> tuple[Value, ...]:
        """Return the distinct values of an expression over a public relation, ascending, missing ones left out.

        They are ``most`` + 1 at most, so that the caller can see that there are too many.
        """

    def close(self) -> None:
        """End every process and remove every file of its own."""
