"""avg: a noisy total over a noisy count, of the same rows or of units' own averages."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.policy.kinds import outward
from hubbub.query.aggregates.function import (
    CONFIDENCE,
    JointFunction,
    Margins,
    NoisyCell,
    NoisyCells,
    name_mechanism,
    shorten,
)
from hubbub.query.aggregates.joint_sums import divide_sums_of
from hubbub.query.aggregates.widening import share_of_mean, widen_mean
from hubbub.query.check.bounds import Interval
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.collect import Collector, Ingredients, count_steps, middle_of
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked
from hubbub.query.read.aggregate_clauses import PER_GROUP, PER_ROW, BoundedAvg, take_bounds

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Average(JointFunction):
    """A mean."""

    bounds_taken: ClassVar[tuple[str, ...]] = (PER_GROUP, PER_ROW)
    covers_dropped: ClassVar[bool] = True

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read an average of numbers."""
        return (Asked(function=self, argument=reader.read_number(node, node.this), text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Add up values from the middle of their bounds, and count them, unless their number is public."""
        assert asked.argument is not None
        if asked.per_group is not None:
            return _measure_averages(asked, collector, asked.per_group)
        bounds = asked.per_row or collector.bound(asked.argument)
        total = collector.add_up(asked.argument, bounds, centred=True)
        size = collector.public_count(asked.argument)
        if size is not None:
            return Ingredients(tallies=(total,), bounds=bounds, size=size)
        count = collector.count(asked.argument)
        return Ingredients(tallies=(count, total), bounds=bounds, mean=(count, total))

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the means of all groups within their bounds."""
        return combine_means(part, cells)

    def divide_beta(self, part: Ingredients, margins: Margins, beta: float) -> float:
        """Return what the mean gets of what an interval may miss."""
        return share_of_mean(beta)

    def widen(self, asked: Asked, part: Ingredients, number: NoisyNumber, cell: NoisyCell, beta: float) -> NoisyNumber:
        """Add the rows that limits drop."""
        return widen_mean(number, part, cell, beta)

    def describe_error(self, part: Ingredients, margins: Margins) -> tuple[str, float | None]:
        """Say the margin of the mean, which is known beforehand where the number of rows is."""
        if part.size is None:
            return super(_Average, self).describe_error(part, margins)
        around = margins.bound(part.tallies[0], 1 - CONFIDENCE) / part.size
        name = name_mechanism(part.tallies[0], margins)
        return f"± {shorten(around)} ({CONFIDENCE:.0%}), {name}, over {part.size:,} rows, as declared", float(around)

    def describe_group_bounds(self) -> str:
        """Say whose averages are clamped."""
        return "a unit's own average"


def _measure_averages(asked: Asked, collector: Collector, each: Interval) -> Ingredients:
    """Add up units' own averages within bounds, and count units; values are clamped first."""
    argument = asked.argument
    assert argument is not None
    values = asked.per_row or collector.bound_if_declared(argument) or each
    grid = collector.grid(argument, values)
    values, within = outward(values, grid), outward(each, grid)
    origin = middle_of(within, grid)
    count_steps(values, origin, grid)
    total = Tally(
        measure=Measure.TOTAL,
        argument=argument,
        clamp=values,
        origin=origin,
        grid=grid,
        bounds=count_steps(within, origin, grid),
        most_rows=1,
    )
    count = collector.add(Tally(measure=Measure.UNITS, argument=collector.drop_if_always_there(argument)))
    total = collector.add(total)
    return Ingredients(tallies=(count, total), bounds=each, per_group=each, mean=(count, total))


def combine_means(part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
    """Return means of a count and a total, however these were measured."""
    assert part.bounds is not None
    total = part.tallies[-1]
    return divide_sums_of(part, cells, origin=total.origin, bounds=part.bounds, least=1)


AVG = _Average(
    name="avg", titles=("AVG",), nodes=(exp.Avg,), spellings=(("AVG", take_bounds("AVG", BoundedAvg, exp.Avg)),)
)
