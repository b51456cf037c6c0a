"""Public facts about a column of a relation: computed where the column is made, and gone where it is redefined.

Bounds are where values are clamped when they are added up, so bounds that do not hold cost accuracy and never privacy.
Whether a column is the unit itself decides who owns rows: only a column that is passed on as it is keeps that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.policy.kinds import Kind
from hubbub.policy.tables import Policy, Table
from hubbub.policy.tables import TableColumn as Declared
from hubbub.query.check.bounds import Interval, interval_of
from hubbub.query.expression import Column, Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """One column."""

    kind: Kind
    bounds: Interval | None = None
    """Where its values are clamped when they are added up."""
    step: Fraction | None = None
    """The grid that they are put on then."""
    unit: bool = False
    """Whether it names the unit that the row belongs to, in every row that has a value here."""
    optional: bool = False
    """Whether rows may lack it although their table has it: an outer join kept them."""
    leads: frozenset[tuple[str, str]] = frozenset()
    """Tables, each with a key that was seen to be unique: a value here is that of a row there, of the same unit."""

    @property
    def tells_unit(self) -> bool:
        """Return whether all rows with equal values here belong to one unit."""
        return bool(self.leads) and not self.kind.nullable and not self.optional


def facts_of_declaration(
    column: Declared, *, unit: bool, leads: frozenset[tuple[str, str]] = frozenset()
) -> ColumnFacts:
    """Return the facts that the owner declared about a column."""
    return ColumnFacts(kind=column.kind, bounds=column.clamp, step=column.step, unit=unit, leads=leads)


def leads_of(table: Table, column: str, policy: Policy) -> frozenset[tuple[str, str]]:
    """Keys of which a column's values are: that which it is itself, and that by which rows find their unit.

    Privacy:
        Claim: rows whose columns lead to the same key, and have the same value, belong to the same unit.
        Proof: every row that is read has found its unit. If it did so by this column, the row there with this key has
            the same unit; if the column is the key, that row is itself. The key is unique, so it is one row for both.
            A column that is passed on stays beside the unit of its row, as every operation keeps the unit.
        Needs: keys that the owner's check has seen to be unique (policy.paths).
        Ref: SOUNDNESS, ruling 7.
    """
    own = {(table.name, column)} if table.unit is not None and policy.has_key(table.name, column) else set()
    steps = {(step.table, step.key) for step in table.path[:1] if step.column == column}
    return frozenset(own | {one for one in steps if policy.has_key(*one)})


def missing_too(facts: ColumnFacts) -> ColumnFacts:
    """The same column where an outer join may have left it out."""
    return replace(facts, kind=replace(facts.kind, nullable=True), optional=True)


def facts_of_expression(
    expression: Expression, below: Mapping[str, ColumnFacts] | Callable[[str], ColumnFacts]
) -> ColumnFacts:
    """Derive the facts of a new column: an old column's if it is one, else what follows from how it is computed."""
    found = below.__getitem__ if isinstance(below, Mapping) else below
    if isinstance(expression, Column):
        return replace(found(expression.name), kind=expression.kind)
    return ColumnFacts(kind=expression.kind, bounds=interval_of(expression, lambda name: found(name).bounds))
