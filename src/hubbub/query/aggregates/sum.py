"""sum: the total of values that are clamped row by row, or of what a unit adds to a group."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.policy.kinds import outward
from hubbub.query.aggregates.function import AdditiveFunction, Margins, NoisyCell, NoisyCells
from hubbub.query.aggregates.widening import divide_beta, widen_sum
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.collect import Collector, Ingredients, count_steps
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked
from hubbub.query.read.aggregate_clauses import PER_GROUP, PER_ROW, BoundedSum, take_bounds

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum(AdditiveFunction):
    """A total."""

    bounds_taken: ClassVar[tuple[str, ...]] = (PER_GROUP, PER_ROW)
    is_total: ClassVar[bool] = True
    covers_dropped: ClassVar[bool] = True

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read a sum of numbers."""
        return (Asked(function=self, argument=reader.read_number(node, node.this), text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Add up values within their bounds, or within what the question lets a unit add to a group.

        There values are clamped first: as the question says, or the owner, or else to what could matter at all.
        Where the number of values is public they are added up from the middle of their bounds, about which a unit
        moves the sum by b − a and no more, however far both are from 0.
        """
        argument, each = asked.argument, asked.per_group
        assert argument is not None
        if each is None:
            bounds = asked.per_row or collector.bound(argument)
            size = collector.public_count(argument)
            if size is not None and not bounds[0] <= 0 <= bounds[1]:
                return Ingredients(
                    tallies=(collector.add_up(argument, bounds, centred=True),), bounds=bounds, size=size
                )
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

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return the noisy tally, counted from 0."""
        number = cell.number(part.tallies[0])
        if not part.shift:
            return number
        return NoisyNumber(*(_add(end, part.shift) for end in (number.value, number.low, number.high)))

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the noisy tallies, counted from 0."""
        if not part.shift:
            return super(_Sum, self).combine_all(asked, part, cells)
        return [self.combine(asked, part, cell) for cell in cells]

    def divide_beta(self, part: Ingredients, margins: Margins, beta: float) -> float:
        """Return what the noise gets of what an interval may miss."""
        return divide_beta(part, margins, beta)

    def widen(self, asked: Asked, part: Ingredients, number: NoisyNumber, cell: NoisyCell, beta: float) -> NoisyNumber:
        """Add what limits drop."""
        return widen_sum(number, part, cell, beta)


def _add(number: int | float, shift: Fraction) -> int | float:
    whole = isinstance(number, int) and shift.denominator == 1
    return number + int(shift) if whole else float(Fraction(number) + shift)


SUM = _Sum(name="sum", titles=("SUM",), nodes=(exp.Sum,), spellings=(("SUM", take_bounds("SUM", BoundedSum, exp.Sum)),))
