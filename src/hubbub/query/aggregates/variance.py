"""Variance and standard deviation, of a population or a sample: mean square less squared mean, about the middle."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from hubbub.query.aggregates.function import AggregateFunction, NoisyCell, list_clamps
from hubbub.query.check.bounds import Interval
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.plan.statistic import NoisyNumber, NoisySum
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hubbub.query.expression import Expression
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variance(AggregateFunction):
    """A variance, or its root."""

    of_sample: bool
    is_rooted: bool

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read the variance of numbers."""
        return (Asked(function=self, argument=reader.read_number(node, node.this), text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Add up values and their squares, and count them, unless their number is public."""
        argument = asked.argument
        assert argument is not None
        bounds = asked.per_row or collector.bound(argument)
        total = collector.add_up(argument, bounds, centred=True)
        squares = collector.add_squares(argument, bounds)
        size = collector.public_count(argument)
        if size is not None:
            return Ingredients(tallies=(total, squares), bounds=bounds, size=size)
        count = collector.count(argument)
        return Ingredients(tallies=(count, total, squares), bounds=bounds, mean=(count, total))

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return the variance, or its root, within what the bounds allow."""
        total, squares = part.tallies[-2:]
        sums = part.sums(cell, (1 - cell.confidence) / len(part.tallies))
        assert part.bounds is not None
        variance = combine_variance(*sums, shift=squares.origin, bounds=part.bounds, origin=total.origin)
        return self._scale(variance, sums[0].value)

    def _scale(self, variance: NoisyNumber, count: Fraction) -> NoisyNumber:
        if self.of_sample and count < 2:
            return NoisyNumber(None, variance.low, variance.high)
        factor = float(count / (count - 1)) if self.of_sample else 1.0

        def scale(value: float | None) -> float | None:
            if value is None:
                return None
            return math.sqrt(value * factor) if self.is_rooted else value * factor

        return NoisyNumber(scale(variance.value), scale(variance.low), scale(variance.high))

    def clamps(self, asked: Asked, part: Ingredients) -> "Iterator[tuple[str, Expression, Interval]]":
        """Say where the values are clamped; squares of them cannot be beyond."""
        return list_clamps([(asked.text, part.tallies[-2])])


def combine_variance(
    count: NoisySum, total: NoisySum, squares: NoisySum, *, shift: Fraction, bounds: Interval, origin: Fraction
) -> NoisyNumber:
    """Return mean square less squared mean, about the middle of the bounds, within what these allow."""
    most = ((bounds[1] - bounds[0]) / 2) ** 2
    if count.value < 1:
        return NoisyNumber(None, 0.0, float(most))
    middle = (bounds[0] + bounds[1]) / 2
    mean = total.value / count.value + origin - middle
    value = float(max(Fraction(0), min(most, shift + squares.value / count.value - mean**2)))
    least, biggest = count.value - count.margin, count.value + count.margin
    if least < 1:
        return NoisyNumber(value, 0.0, float(most))
    sizes = (least, biggest)
    mean_ends = [origin - middle + (total.value + s * total.margin) / n for s in (-1, 1) for n in sizes]
    square_ends = [shift + (squares.value + s * squares.margin) / n for s in (-1, 1) for n in sizes]
    nearest = 0 if min(mean_ends) <= 0 <= max(mean_ends) else min(end**2 for end in mean_ends)
    low = min(square_ends) - max(end**2 for end in mean_ends)
    high = max(square_ends) - nearest
    return NoisyNumber(value, float(max(Fraction(0), min(most, low))), float(max(Fraction(0), min(most, high))))


VAR_POP = _Variance(name="var_pop", titles=("VAR_POP",), nodes=(exp.VariancePop,), of_sample=False, is_rooted=False)
VAR_SAMP = _Variance(name="var_samp", titles=("VAR_SAMP",), nodes=(exp.Variance,), of_sample=True, is_rooted=False)
STDDEV_POP = _Variance(
    name="stddev_pop", titles=("STDDEV_POP",), nodes=(exp.StddevPop,), of_sample=False, is_rooted=True
)
STDDEV_SAMP = _Variance(
    name="stddev_samp", titles=("STDDEV_SAMP",), nodes=(exp.Stddev, exp.StddevSamp), of_sample=True, is_rooted=True
)
