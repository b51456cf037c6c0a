"""Covariance, correlation and regression out of noisy sums over the rows that have both values.

All sums are about the middles of the bounds, where they are smallest. Each interval is the image of the box of all
margins: the exact number lies in it whenever every sum lies within its own margin, so it is wide, and it is everything
that the bounds allow (or there is none) where a denominator may be 0.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from hubbub.query.aggregates.function import AggregateFunction, NoisyCell, list_clamps
from hubbub.query.check.bounds import Interval
from hubbub.query.expression import Expression
from hubbub.query.functions import call
from hubbub.query.ops import Tally
from hubbub.query.plan.collect import Collector, Ingredients, beside, distance
from hubbub.query.plan.statistic import NoisyNumber, NoisySum
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from hubbub.query.read.aggregates import AggregateReader


class Moment(StrEnum):
    """A statistic that is computed from the sums over pairs."""

    COVAR_POP = "covar_pop"
    COVAR_SAMP = "covar_samp"
    CORR = "corr"
    REGR_SLOPE = "regr_slope"
    REGR_INTERCEPT = "regr_intercept"

    @property
    def of_first_squares(self) -> bool:
        """Return whether the squares of the first value are needed."""
        return self is Moment.CORR

    @property
    def of_second_squares(self) -> bool:
        """Return whether the squares of the second value are needed."""
        return self in {Moment.CORR, Moment.REGR_SLOPE, Moment.REGR_INTERCEPT}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paired(AggregateFunction):
    """A function of two values, over rows that have both."""

    moment: Moment
    operands: ClassVar[frozenset[str]] = frozenset({"expression"})

    def read(self, node: exp.Expr, order: exp.Expr | None, reader: "AggregateReader") -> tuple[Asked, ...]:
        """Read two numbers."""
        first, second = (reader.read_number(node, operand) for operand in (node.this, node.expression))
        return (Asked(function=self, argument=first, second=second, text=""),)

    def measure(self, asked: Asked, collector: Collector) -> Ingredients:
        """Add up both values, what squares are needed, and their products, each about the middle of its bounds."""
        first, second = asked.arguments
        bounds = collector.bound(first), collector.bound(second)
        grids = collector.grid(first, bounds[0]), collector.grid(second, bounds[1])
        one, other = beside(first, second), beside(second, first)
        reach = (bounds[0][1] - bounds[0][0]) / 2 * ((bounds[1][1] - bounds[1][0]) / 2)
        product = call("multiply", distance(one, bounds[0]), distance(second, bounds[1]))
        size = collector.public_count(one)
        counted = [] if size is not None else [collector.count(one)]
        total = collector.add_up(one, bounds[0], centred=True, grid=grids[0])
        squares = [collector.add_squares(one, bounds[0])] if self.moment.of_first_squares else []
        products = collector.add_reals(product, (-reach, reach))
        others = [collector.add_up(other, bounds[1], centred=True, grid=grids[1])]
        others += [collector.add_squares(other, bounds[1])] if self.moment.of_second_squares else []
        return Ingredients(
            tallies=(*counted, total, *squares, products, *others),
            bounds=bounds[0],
            other_bounds=bounds[1],
            mean=(counted[0], total) if counted else None,
            size=size,
        )

    def combine(self, asked: Asked, part: Ingredients, cell: NoisyCell) -> NoisyNumber:
        """Return the number that was asked for."""
        sums = part.sums(cell, (1 - cell.confidence) / len(part.tallies))
        at = 3 if self.moment.of_first_squares else 2  # where the products stand
        assert part.bounds is not None
        assert part.other_bounds is not None
        first = _sums(part, sums, range(1, at), part.bounds)
        second = _sums(part, sums, range(at + 1, len(sums)), part.other_bounds)
        return NoisyNumber(*combine_moments(self.moment, sums[0], first, second, sums[at]))

    def clamps(self, asked: Asked, part: Ingredients) -> Iterator[tuple[str, Expression, Interval]]:
        """Say where either value is clamped."""
        first = 1 if part.size is None else 0
        second = first + (3 if self.moment.of_first_squares else 2)
        named = ((first, "first"), (second, "second"))
        return list_clamps([(f"{asked.text} ({called} value)", part.tallies[at]) for at, called in named])


def _sums(part: Ingredients, sums: Sequence[NoisySum], at: range, bounds: Interval) -> "PairSums":
    total, *squares = at
    tallies = part.tallies if part.size is None else (None, *part.tallies)
    return PairSums(
        sums[total],
        _origin(tallies[total]),
        bounds,
        sums[squares[0]] if squares else None,
        _origin(tallies[squares[0]]) if squares else Fraction(0),
    )


def _origin(tally: Tally | None) -> Fraction:
    return Fraction(0) if tally is None else tally.origin


@dataclass(frozen=True, slots=True)
class PairSums:
    """Sums about one value: of it and of its squares, each counted from an origin, and its bounds."""

    total: NoisySum
    origin: Fraction
    bounds: Interval
    squares: NoisySum | None = None
    shift: Fraction = Fraction(0)

    @property
    def middle(self) -> Fraction:
        return (self.bounds[0] + self.bounds[1]) / 2

    @property
    def half(self) -> Fraction:
        return (self.bounds[1] - self.bounds[0]) / 2


@dataclass(frozen=True, slots=True)
class Range:
    """A number and where it may lie."""

    value: Fraction
    low: Fraction
    high: Fraction

    @classmethod
    def around(cls, value: Fraction, ends: Iterable[Fraction]) -> "Range":
        """The number and all that it may be."""
        every = [value, *ends]
        return cls(value, min(every), max(every))

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        return self.low, self.high

    def cut(self, low: Fraction, high: Fraction) -> "Range":
        """Within what the bounds allow."""
        return Range(*(max(low, min(high, one)) for one in (self.value, self.low, self.high)))

    def times(self, other: "Range") -> "Range":
        """A product."""
        return Range.around(self.value * other.value, (a * b for a in self.ends for b in other.ends))

    def less(self, other: "Range") -> "Range":
        """A difference."""
        return Range(self.value - other.value, self.low - other.high, self.high - other.low)


Found = tuple[float | None, float | None, float | None]
"""A number, and the two ends of its interval; None where nothing can be said."""


def combine_moments(moment: Moment, count: NoisySum, first: PairSums, second: PairSums, products: NoisySum) -> Found:
    """Return the number that was asked for. ``first`` depends on ``second`` where there is a regression."""
    reach = first.half * second.half
    whole: Found = None, None, None
    if moment is Moment.CORR:
        whole = None, -1.0, 1.0
    elif moment in {Moment.COVAR_POP, Moment.COVAR_SAMP}:
        whole = None, float(-reach), float(reach)
    if count.value < 1:
        return whole
    sizes = _sizes(count)
    if sizes is None:
        exact = [count.value]
        found = _numbers(moment, count, exact, first, second, products)
        return found[0], *whole[1:]
    return _numbers(moment, count, sizes, first, second, products)


def _sizes(count: NoisySum) -> list[Fraction] | None:
    """The ends of what the count may be; None where it may be below 1."""
    least = count.value - count.margin
    return None if least < 1 else [least, count.value + count.margin]


def _numbers(  # noqa: PLR0917
    moment: Moment, count: NoisySum, sizes: list[Fraction], first: PairSums, second: PairSums, products: NoisySum
) -> Found:
    n, reach = count.value, first.half * second.half
    means = [_ratio(one.total, n, sizes).less(_exactly(one.middle - one.origin)) for one in (first, second)]
    together = _ratio(products, n, sizes).less(means[0].times(means[1])).cut(-reach, reach)
    match moment:
        case Moment.COVAR_POP:
            return float(together.value), float(together.low), float(together.high)
        case Moment.COVAR_SAMP:
            if n < 2:
                return None, float(-reach), float(reach)
            factor = n / (n - 1)
            return float(together.value * factor), float(together.low * factor), float(together.high * factor)
        case Moment.CORR:
            spreads = [_variance(one, at, n, sizes) for one, at in zip((first, second), means, strict=True)]
            return _correlation(together, spreads)
    spread = _variance(second, means[1], n, sizes)
    slope = _quotient(together, spread)
    if slope is None or moment is Moment.REGR_SLOPE:
        return (None, None, None) if slope is None else slope
    return _intercept(slope, first, second, means)


def _intercept(slope: Found, first: PairSums, second: PairSums, means: list[Range]) -> Found:
    value, low, high = slope
    assert value is not None
    at = [means[0].value + first.middle, means[1].value + second.middle]
    exact = float(at[0]) - value * float(at[1])
    if low is None or high is None:
        return exact, None, None
    ends = [
        float(y + first.middle) - tilt * float(x + second.middle)
        for y in means[0].ends
        for x in means[1].ends
        for tilt in (low, high)
    ]
    return exact, min(ends), max(ends)


def _exactly(value: Fraction) -> Range:
    return Range(value, value, value)


def _ratio(total: NoisySum, count: Fraction, sizes: list[Fraction]) -> Range:
    ends = (total.value + sign * total.margin for sign in (-1, 1))
    return Range.around(total.value / count, (end / size for end in ends for size in sizes))


def _variance(sums: PairSums, mean: Range, count: Fraction, sizes: list[Fraction]) -> Range:
    """Mean square less squared mean, about the middle of the bounds."""
    assert sums.squares is not None
    mean_square = _ratio(sums.squares, count, sizes).less(_exactly(-sums.shift))
    square = mean.times(mean)
    nearest = Fraction(0) if mean.low <= 0 <= mean.high else min(end * end for end in mean.ends)
    return mean_square.less(Range(square.value, nearest, square.high)).cut(Fraction(0), sums.half**2)


def _quotient(top: Range, bottom: Range) -> Found | None:
    if bottom.value <= 0:
        return None
    value = float(top.value / bottom.value)
    if bottom.low <= 0:
        return value, None, None
    ends = [float(a / b) for a in top.ends for b in bottom.ends]
    return value, min(ends), max(ends)


def _correlation(together: Range, spreads: list[Range]) -> Found:
    def scale(top: Fraction, bottoms: Iterable[Fraction]) -> float:
        return max(-1.0, min(1.0, float(top) / math.sqrt(math.prod(float(one) for one in bottoms))))

    if any(one.value <= 0 for one in spreads):
        return None, -1.0, 1.0
    value = scale(together.value, [one.value for one in spreads])
    if any(one.low <= 0 for one in spreads):
        return value, -1.0, 1.0
    ends = [scale(end, [getattr(one, side) for one in spreads]) for end in together.ends for side in ("low", "high")]
    return value, min(ends), max(ends)


COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE, REGR_INTERCEPT = (
    _Paired(name=moment.value, titles=(moment.value.upper(),), nodes=(node,), moment=moment)
    for moment, node in (
        (Moment.COVAR_POP, exp.CovarPop),
        (Moment.COVAR_SAMP, exp.CovarSamp),
        (Moment.CORR, exp.Corr),
        (Moment.REGR_SLOPE, exp.RegrSlope),
        (Moment.REGR_INTERCEPT, exp.RegrIntercept),
    )
)
