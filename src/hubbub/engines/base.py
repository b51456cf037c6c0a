"""The seam between questions and the systems that hold data: an engine reads, and returns what it read under seal."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hubbub.engines.run import Run
from hubbub.policy.stamps import Stamp
from hubbub.policy.tables import Table, TableSource
from hubbub.query.expression import Expression, Value
from hubbub.query.ops import Relation
from hubbub.query.read.scope import Fanout
from hubbub.query.requests import Request


class Engine(Protocol):
    """Runs requests on declared tables. Whatever goes wrong while it reads is one and the same EngineError."""

    def prepare(self, request: Request, *, tables: Mapping[str, Table]) -> Run[Any]:
        """Return what reads the data when it is called, and returns its result under seal.

        Whatever can go wrong for public reasons, like sums that cannot be held, is raised here, and so before anything
        is paid.
        """

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
