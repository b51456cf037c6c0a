"""count: rows, values that are not missing, units, and different values; count_if, as a count of CASE."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.errors import NotAllowed
from hubbub.policy.kinds import Kind, Type
from hubbub.query.aggregates.function import (
    AdditiveFunction,
    Margins,
    NoisyCell,
    NoisyCells,
    lift_count,
    whole_numbers,
)
from hubbub.query.aggregates.widening import divide_beta, widen_sum
from hubbub.query.expression import Expression, Literal
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked
from hubbub.query.read.aggregate_clauses import PER_GROUP, filter_value, find_case_value, take_bounds

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count(AdditiveFunction):
    """A number of something."""

    buys_bounds: ClassVar[bool] = False
    covers_dropped: ClassVar[bool] = True

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read COUNT in all its forms; a constant, or a value in every row, counts rows."""
        inner = node.this
        if isinstance(node, exp.ApproxDistinct):
            return (_read_distinct(inner, reader),)
        if inner is None or (isinstance(inner, exp.Star) and not any(inner.args.values())):
            return (Asked(function=ROWS, argument=None, text=""),)
        if isinstance(inner, exp.Distinct):
            if len(inner.expressions) != 1:
                raise NotAllowed("COUNT(DISTINCT …) takes one value.")
            return (_read_distinct(inner.expressions[0], reader),)
        value = reader.read_value(inner)
        constant = isinstance(value, Literal) and value.value is not None
        if constant or not value.kind.nullable:
            return (Asked(function=ROWS, argument=None, text=""),)
        return (Asked(function=VALUES, argument=value, text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Count rows, of a unit at most as many as the question lets count."""
        most = None if asked.per_group is None else int(asked.per_group[1])
        return Ingredients(tallies=(collector.count(asked.argument, most),), per_group=asked.per_group)

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return the noisy count, and 0 where noise brought it below."""
        return lift_count(super(_Count, self).combine(asked, part, cell))

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the noisy counts."""
        return [lift_count(number) for number in super(_Count, self).combine_all(asked, part, cells)]

    def divide_beta(self, part: Ingredients, margins: Margins, beta: float) -> float:
        """Return what the noise gets of what an interval may miss."""
        return divide_beta(part, margins, beta)

    def widen(self, asked: Asked, part: Ingredients, number: NoisyNumber, cell: NoisyCell, beta: float) -> NoisyNumber:
        """Add what limits drop."""
        return widen_sum(number, part, cell, beta)

    def kind(self, asked: Asked) -> Kind:
        """Return whole numbers, which are always there."""
        return whole_numbers(nullable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountRows(_Count):
    """A number of rows, of which the question may say how many of a unit count."""

    bounds_taken: ClassVar[tuple[str, ...]] = (PER_GROUP,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountUnits(_Count):
    """A number of units: each is one, however many rows it has."""

    counts_rows: ClassVar[bool] = False

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Count units that have a value, or a row."""
        return Ingredients(tallies=(collector.add(Tally(measure=Measure.UNITS, argument=asked.argument)),))


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountDistinct(_Count):
    """A number of different values, of which a unit brings as many as it may have rows."""

    covers_dropped: ClassVar[bool] = False

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Count different values."""
        assert asked.argument is not None
        most = min(collector.rows, _count_possible(asked.argument))
        tally = Tally(measure=Measure.DISTINCT, argument=asked.argument, bounds=(0, most))
        return Ingredients(tallies=(collector.add(tally),))


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountIf(_Count):
    """count_if(c), which is count(CASE WHEN c THEN 1 END)."""

    def rewrite(self, node: exp.Expr) -> exp.Expr:
        """Return the count of CASE."""
        if node.this is None or isinstance(node.this, exp.Distinct):
            return node
        return exp.Count(this=filter_value(node.this, exp.Literal.number(1)))

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Refuse a form that is not rewritten."""
        raise reader.refuse(node)


def _read_distinct(node: exp.Expr, reader: "AggregateReader") -> Asked:
    """Count units, or the different values of anything else."""
    value, scope = reader.read_value(node), reader.scope
    if isinstance(node.unnest(), exp.Column | exp.Coalesce) and scope.names_unit(value):
        own = None if scope.is_unit(value) else value
        return Asked(function=UNITS, argument=own, text="")
    chosen = find_case_value(node)
    if isinstance(chosen.unnest(), exp.Column) and scope.names_unit(reader.read_value(chosen)):
        return Asked(function=UNITS, argument=value, text="")  # the unit, or missing
    if isinstance(value, Literal):
        raise NotAllowed("COUNT(DISTINCT …) counts different values, and this is one constant.")
    return Asked(function=DISTINCT, argument=value, text="")


def _count_possible(argument: Expression) -> int:
    """Return how many different values there can be at all, where that is known."""
    if argument.kind.type is Type.BOOLEAN:
        return 2
    if argument.kind.type is Type.INTEGER:
        return argument.kind.range[1] - argument.kind.range[0] + 1
    return 1 << 62


ROWS = _CountRows(
    name="count(*)",
    titles=("COUNT",),
    nodes=(exp.Count, exp.ApproxDistinct),
    spellings=(("COUNT", take_bounds("COUNT", None)),),
)
VALUES = _CountRows(name="count")
UNITS = _CountUnits(name="count distinct units")
DISTINCT = _CountDistinct(name="count(DISTINCT x)")
COUNT_IF = _CountIf(name="count_if", nodes=(exp.CountIf,))
