"""What is public about a column of a relation: computed where the column is made, and gone where it is redefined.

Bounds are where values are clamped when they are added up, so bounds that do not hold cost accuracy and never privacy.
Whether a column is the unit itself decides who owns rows: only a column that is passed on as it is keeps that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.policy.kinds import Kind
from hubbub.policy.tables import Column as Declared
from hubbub.query.bounds import Interval, interval_of
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


def declared(column: Declared, *, unit: bool) -> ColumnFacts:
    """What the owner said of a column."""
    return ColumnFacts(kind=column.kind, bounds=column.clamp, step=column.step, unit=unit)


def missing_too(facts: ColumnFacts) -> ColumnFacts:
    """The same column where an outer join may have left it out."""
    return replace(facts, kind=replace(facts.kind, nullable=True), optional=True)


def made(expression: Expression, below: Mapping[str, ColumnFacts] | Callable[[str], ColumnFacts]) -> ColumnFacts:
    """What is known of a new column: all of it if it is an old one, else what follows from how it is computed."""
    found = below.__getitem__ if isinstance(below, Mapping) else below
    if isinstance(expression, Column):
        return replace(found(expression.name), kind=expression.kind)
    return ColumnFacts(kind=expression.kind, bounds=interval_of(expression, lambda name: found(name).bounds))
