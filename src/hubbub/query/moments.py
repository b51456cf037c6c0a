"""Covariance, correlation and regression out of noisy sums over the rows that have both values.

All sums are about the middles of the bounds, where they are smallest. Each interval is the image of the box of all
margins: the exact number lies in it whenever every sum lies within its own margin, so it is wide, and it is everything
that the bounds allow (or there is none) where a denominator may be 0.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from hubbub.query.bounds import Interval
from hubbub.query.question import Aggregation


@dataclass(frozen=True, slots=True)
class Side:
    """A noisy sum in its own units, with its margin."""

    value: Fraction
    margin: Fraction


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums about one value: of it and of its squares, each counted from an origin, and its bounds."""

    total: Side
    origin: Fraction
    bounds: Interval
    squares: Side | None = None
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


def paired(function: Aggregation, count: Side, first: Sums, second: Sums, products: Side) -> Found:
    """The number that was asked for. ``first`` depends on ``second`` where there is a regression."""
    reach = first.half * second.half
    whole: Found = None, None, None
    if function is Aggregation.CORR:
        whole = None, -1.0, 1.0
    elif function in {Aggregation.COVAR_POP, Aggregation.COVAR_SAMP}:
        whole = None, float(-reach), float(reach)
    if count.value < 1:
        return whole
    sizes = _sizes(count)
    if sizes is None:
        exact = [count.value]
        found = _numbers(function, count, exact, first, second, products)
        return found[0], *whole[1:]
    return _numbers(function, count, sizes, first, second, products)


def _sizes(count: Side) -> list[Fraction] | None:
    """The ends of what the count may be; None where it may be below 1."""
    least = count.value - count.margin
    return None if least < 1 else [least, count.value + count.margin]


def _numbers(  # noqa: PLR0917
    function: Aggregation, count: Side, sizes: list[Fraction], first: Sums, second: Sums, products: Side
) -> Found:
    n, reach = count.value, first.half * second.half
    means = [_ratio(one.total, n, sizes).less(_exactly(one.middle - one.origin)) for one in (first, second)]
    together = _ratio(products, n, sizes).less(means[0].times(means[1])).cut(-reach, reach)
    match function:
        case Aggregation.COVAR_POP:
            return float(together.value), float(together.low), float(together.high)
        case Aggregation.COVAR_SAMP:
            if n < 2:
                return None, float(-reach), float(reach)
            factor = n / (n - 1)
            return float(together.value * factor), float(together.low * factor), float(together.high * factor)
        case Aggregation.CORR:
            spreads = [_variance(one, at, n, sizes) for one, at in zip((first, second), means, strict=True)]
            return _correlation(together, spreads)
    spread = _variance(second, means[1], n, sizes)
    slope = _quotient(together, spread)
    if slope is None or function is Aggregation.REGR_SLOPE:
        return (None, None, None) if slope is None else slope
    return _intercept(slope, first, second, means)


def _intercept(slope: Found, first: Sums, second: Sums, means: list[Range]) -> Found:
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


def _ratio(total: Side, count: Fraction, sizes: list[Fraction]) -> Range:
    ends = (total.value + sign * total.margin for sign in (-1, 1))
    return Range.around(total.value / count, (end / size for end in ends for size in sizes))


def _variance(sums: Sums, mean: Range, count: Fraction, sizes: list[Fraction]) -> Range:
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
    def scaled(top: Fraction, bottoms: Iterable[Fraction]) -> float:
        return max(-1.0, min(1.0, float(top) / math.sqrt(math.prod(float(one) for one in bottoms))))

    if any(one.value <= 0 for one in spreads):
        return None, -1.0, 1.0
    value = scaled(together.value, [one.value for one in spreads])
    if any(one.low <= 0 for one in spreads):
        return value, -1.0, 1.0
    ends = [scaled(end, [getattr(one, side) for one in spreads]) for end in together.ends for side in ("low", "high")]
    return value, min(ends), max(ends)
