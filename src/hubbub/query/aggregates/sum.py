"""sum: the total of values that are clamped row by row, or of what a unit adds to a group."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.policy.kinds import outward
from hubbub.query.aggregates.function import AdditiveFunction
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.collect import Collector, Ingredients, count_steps
from hubbub.query.question import Asked
from hubbub.query.read.aggregate_clauses import PER_GROUP, PER_ROW, BoundedSum, take_bounds

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum(AdditiveFunction):
    """A total."""

    bounds_taken: ClassVar[tuple[str, ...]] = (PER_GROUP, PER_ROW)
    is_total: ClassVar[bool] = True

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read a sum of numbers."""
        return (Asked(function=self, argument=reader.read_number(node, node.this), text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Add up values within their bounds, or within what the question lets a unit add to a group.

        There values are clamped first: as the question says, or the owner, or else to what could matter at all.
        """
        argument, each = asked.argument, asked.per_group
        assert argument is not None
        if each is None:
            bounds = asked.per_row or collector.bound(argument)
            return Ingredients(tallies=(collector.add_up(argument, bounds, centred=False),), bounds=bounds)
        reach = max(abs(end) for end in each)
        values = asked.per_row or collector.bound_if_declared(argument) or (-reach, reach)
        grid = collector.grid(argument, values)
        values, within = outward(values, grid), outward(each, grid)
        count_steps(values, Fraction(0), grid)
        tally = Tally(
            measure=Measure.TOTAL,
            argument=argument,
            clamp=values,
            grid=grid,
            bounds=count_steps(within, Fraction(0), grid),
        )
        return Ingredients(tallies=(collector.add(tally),), bounds=values, per_group=each)


SUM = _Sum(name="sum", titles=("SUM",), nodes=(exp.Sum,), spellings=(("SUM", take_bounds("SUM", BoundedSum, exp.Sum)),))
