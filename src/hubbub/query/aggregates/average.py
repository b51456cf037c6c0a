"""avg: a noisy total over a noisy count, of the same rows or of units' own averages."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.policy.kinds import outward
from hubbub.query.aggregates.function import (
    CONFIDENCE,
    AggregateFunction,
    Margins,
    NoisyCell,
    NoisyCells,
    divide,
    name_mechanism,
    shorten,
)
from hubbub.query.aggregates.widening import share_of_mean, widen_mean
from hubbub.query.check.bounds import Interval
from hubbub.query.ops import Measure, Tally
from hubbub.query.plan.both_ends import BothEnds
from hubbub.query.plan.collect import Collector, Ingredients, count_steps, middle_of
from hubbub.query.plan.ratios import divide_ends, divide_sums
from hubbub.query.plan.statistic import NoisyNumber, TallyStatistic, scale_steps
from hubbub.query.question import Asked
from hubbub.query.read.aggregate_clauses import PER_GROUP, PER_ROW, BoundedAvg, take_bounds

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Average(AggregateFunction):
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

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return the mean within its bounds."""
        return combine_mean(part, cell)

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the means of all groups, without fractions for each."""
        try:
            found = _combine_means(part, cells)
        except OverflowError:  # beyond what a float holds, before it is clamped
            found = None
        return super(_Average, self).combine_all(asked, part, cells) if found is None else found

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


def combine_mean(part: Ingredients, cell: NoisyCell) -> NoisyNumber:
    """Return a mean of a count and a total, however these were measured."""
    assert part.bounds is not None
    if part.size is not None:
        known, added = part.sums(cell, 1 - cell.confidence)
        return divide(known, added, part.tallies[0].origin, part.bounds)
    assert part.mean is not None
    count, total = part.mean
    own = cell.margins.find(total)
    beta = (1 - cell.confidence) / len(part.tallies)
    rows, added = cell.sum(count, beta), cell.sum(total, beta)
    if isinstance(own.take, BothEnds) and count in own.take.tells:
        off = own.take.bound_mean_error(own.mechanism, 1 - cell.confidence)
        return _mean_of_ends(rows.value, added.value, off, total.origin, part.bounds)
    return divide(rows, added, total.origin, part.bounds)


def _combine_means(part: Ingredients, cells: NoisyCells) -> list[NoisyNumber] | None:
    """Return the means of all groups; None where a count or a total is measured in another way than these."""
    if part.mean is None:
        return None
    assert part.bounds is not None
    count, total = part.mean
    margins = cells.margins
    own, counted = margins.find(total), margins.find(count)
    numbers, beta = cells.numbers(own), (1 - cells.confidence) / len(part.tallies)
    if isinstance(own.take, BothEnds) and count in own.take.tells:
        take, off = own.take, own.take.bound_mean_error(own.mechanism, 1 - cells.confidence)
        ends, half = take.list_ends(numbers, cells.cells), take.half
        found = divide_ends(ends, half=half, grid=total.grid, off=off, origin=total.origin, bounds=part.bounds)
    elif isinstance(own.take, TallyStatistic) and isinstance(counted.take, TallyStatistic):
        totals = scale_steps(numbers, cells.cells, total, margins.bound(total, beta))
        counts = scale_steps(cells.numbers(counted), cells.cells, count, margins.bound(count, beta))
        found = divide_sums(totals, counts, origin=total.origin, bounds=part.bounds)
    else:
        return None
    return [NoisyNumber(*each) for each in found]


def _mean_of_ends(count: Fraction, total: Fraction, off: Fraction, origin: Fraction, bounds: Interval) -> NoisyNumber:
    """Return a mean from distances a and b from both bounds. Of a mean that is the part w of the way down from the
    upper one, w · a = (1 − w) · b: so w · (a + b) − b is noise alone, and within ``off``. That is solved for w."""
    low, high = bounds
    if count <= 0:
        return NoisyNumber(None, float(low), float(high))
    value, away = origin + total / count, off / count
    found = [float(max(low, min(high, end))) for end in (value, value - away, value + away)]
    return NoisyNumber(found[0] if count >= 1 else None, *found[1:])


AVG = _Average(
    name="avg", titles=("AVG",), nodes=(exp.Avg,), spellings=(("AVG", take_bounds("AVG", BoundedAvg, exp.Avg)),)
)
