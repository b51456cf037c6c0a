"""The public facts of a database: questions are read against this, and nothing private can be read through it."""

from collections.abc import Sequence

from hubbub.engines.base import Engine
from hubbub.engines.public import PublicFacts, before_the_charge
from hubbub.errors import NotAllowed
from hubbub.policy.paths import qualify
from hubbub.policy.tables import Policy, Value
from hubbub.query.check.keys import MOST_VALUES
from hubbub.query.expression import Column, Expression
from hubbub.query.ops import Relation, Scan, ScanColumn, below
from hubbub.query.read.scope import Fanout


class PublicTables:
    """The policy, and what is read of its public tables."""

    def __init__(self, policy: Policy, *, engine: Engine, facts: PublicFacts) -> None:
        self.policy, self._engine, self._facts = policy, engine, facts

    def fanout(self, relation: Relation, keys: Sequence[Expression]) -> Fanout:
        """Count how many rows of a public relation can share one combination of keys."""
        self._check_public(relation)
        with before_the_charge("A public table of the question could not be read. Ask the owner."):
            return self._facts.recall(
                (relation, tuple(keys)),
                now=self._engine.stamp(relation, tables=self.policy.tables),
                look=lambda: self._engine.fanout(relation, keys, tables=self.policy.tables),
            )

    def values(self, table: str, column: str) -> tuple[Value, ...]:
        """Return the values in a public table's column, sorted."""
        declared = self.policy.tables[table].column(column)
        assert declared is not None
        wanted = Column(qualify(table, column), declared.kind)
        scan = Scan(table=table, columns=(ScanColumn(wanted.name, wanted.kind, declared.name),), unit=None)
        self._check_public(scan)
        with before_the_charge(f"The public table {table} could not be read. Ask the owner."):
            return self._facts.recall(
                (scan, wanted),
                now=self._engine.stamp(scan, tables=self.policy.tables),
                look=lambda: self._engine.values(scan, wanted, tables=self.policy.tables, most=MOST_VALUES),
            )

    def _check_public(self, relation: Relation) -> None:
        """Refuse what reads a private table, whatever the relation says of itself."""
        if isinstance(relation, Scan) and self.policy.tables[relation.table].unit is not None:
            raise NotAllowed(f"{relation.table} is private. Ask about it, which is charged for.")
        for part in below(relation):
            self._check_public(part)
