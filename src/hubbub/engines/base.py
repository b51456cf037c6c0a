"""What an engine is: something that turns an Aggregate into exact integers, and tells the owner about sources."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from hubbub.engines.run import Run
from hubbub.policy.tables import Source, Table
from hubbub.query.expression import Expression, Value
from hubbub.query.ops import Aggregate, Relation
from hubbub.query.scope import Fanout


class Engine(Protocol):
    """Runs ops on declared tables. Whatever goes wrong while it reads is one and the same EngineError."""

    def prepare(self, aggregate: Aggregate, *, tables: Mapping[str, Table]) -> Run:
        """What reads the data when it is called. Whatever can go wrong for public reasons, like sums that cannot be
        held, is raised before that, and so before anything is paid.
        """

    def describe(self, source: Source) -> tuple[tuple[str, str], ...]:
        """The columns of a source and the engine's types for them, read off its schema; for the owner's side."""

    def fanout(self, relation: Relation, keys: Sequence[Expression], *, tables: Mapping[str, Table]) -> Fanout:
        """How many rows of a public relation share one combination of keys, at most."""

    def values(
        self, relation: Relation, expression: Expression, *, tables: Mapping[str, Table], most: int
    ) -> tuple[Value, ...]:
        """The distinct values of an expression over a public relation, ascending, missing ones left out: most + 1 at
        most, so that the caller can see that there are too many."""

    def close(self) -> None:
        """Ends every process and removes every file of its own."""
