"""Covariance, correlation and regression of two values from their noisy sums, with intervals by inversion of tests.

Let n rows have the means m and k of two values, the covariance c, and the variance v of the second. Let N, S, T, P and
Q be the noisy count, sums of either value, sum of products and sum of squares of the second, with noises z, and let
e = z_S − m·z_N, f = z_T − k·z_N. These are identities:

    P − S·T/N − c·N = z_P − m·z_T − k·z_S + (m·k − c)·z_N − e·f/N
    Q − T²/N − v·N = z_Q − 2·k·z_T + (k² − v)·z_N − f²/N

The first one gives the interval of a covariance. A slope is s = c/v: s times the second is taken off the first, where
c·N and s·v·N cancel, so that nothing else that is unknown is in it. A correlation is r = c/√(u·v), with u the
variance of the first: the root is taken to be linear in the noises of u and v. An intercept is where the line is at a
known point, m + s·(x − k), linear in the noises of all four. The means of what is quadratic in noises are added,
and weights are taken at the noisy means. All that is divided by are variances: the interval has no end where one of
them is not above three of its own deviations.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from hubbub.noise.weighted_sums import Array
from hubbub.query.aggregates.joint_sums import JointSums, Middle, make_numbers
from hubbub.query.plan.inversion import NoisyArray, invert_ratio
from hubbub.query.plan.statistic import NoisyNumber

_SURE = 3.0
"""Deviations by which a noisy variance must exceed 0, so that something may be divided by it. A normal noise is below
minus three of its deviations once in 740 times, so what is said is hardly ever about the wrong sign."""


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


@dataclass(frozen=True, slots=True)
class PairMoments:
    """The noisy sums of two values about the middles of their bounds, in units of half widths."""

    sums: JointSums
    first: NoisyArray
    second: NoisyArray
    products: NoisyArray
    first_squares: NoisyArray | None
    second_squares: NoisyArray | None

    @property
    def size(self) -> Array:
        """Return the noisy count, or 1 where there is none to speak of."""
        return np.where(self.sums.count.value >= 1, self.sums.count.value, 1.0)

    def means(self) -> tuple[Array, Array]:
        """Return the means of both values."""
        first, second = (np.clip(one.value / self.size, -1.0, 1.0) for one in (self.first, self.second))
        return first, second

    def spread(self, one: NoisyArray, other: NoisyArray, products: NoisyArray) -> NoisyArray:
        """Return n times a covariance, with the mean of what is quadratic in noises added; of one value its variance.

        The weights are those at the noisy means, without the part that belongs to the count beside the covariance.
        """
        count, size = self.sums.count, self.size
        means = [np.clip(each.value / size, -1.0, 1.0) for each in (one, other)]
        away = [each.plus(count, -mean) for each, mean in zip((one, other), means, strict=True)]
        value = products.value - one.value * other.value / size + self.sums.multiply(*away) / size
        found = products.plus(other, -means[0]).plus(one, -means[1]).plus(count, means[0] * means[1])
        return NoisyArray(value, found.weights)

    def raw_spread(self, one: NoisyArray, other: NoisyArray, products: NoisyArray) -> Array:
        """Return n times a covariance as it is shown: without anything added."""
        return products.value - one.value * other.value / self.size

    @property
    def together(self) -> NoisyArray:
        """Return n times the covariance."""
        return self.spread(self.first, self.second, self.products)

    def variances(self) -> Iterator[tuple[NoisyArray, NoisyArray]]:
        """Yield each value whose squares are known, and these."""
        for own, squares in ((self.first, self.first_squares), (self.second, self.second_squares)):
            if squares is not None:
                yield own, squares


def combine_moments(moment: Moment, pairs: PairMoments, middles: tuple[Middle, Middle]) -> list[NoisyNumber]:
    """Return the number that was asked for, of all groups. The first value depends on the second in a regression."""
    by = [float(middle.half) for middle in middles]
    if moment is Moment.CORR:
        return _correlate(pairs)
    if moment in {Moment.COVAR_POP, Moment.COVAR_SAMP}:
        return _scale(_covary(pairs, 2 if moment is Moment.COVAR_SAMP else 1), by[0] * by[1])
    if moment is Moment.REGR_SLOPE:
        return _scale(_slope(pairs), by[0] / by[1])
    points = [float(middle.point) for middle in middles]
    return _scale(_predict(pairs, -points[1] / by[1]), by[0], points[0])


def _scale(found: tuple[Array, Array, Array], factor: float, shift: float = 0.0) -> list[NoisyNumber]:
    values, lows, highs = ((each * factor + shift).tolist() for each in found)
    return make_numbers([None if math.isnan(value) else value for value in values], lows, highs)


def _covary(pairs: PairMoments, least: int) -> tuple[Array, Array, Array]:
    """Return covariances; with ``least`` of 2 those of a sample."""
    count, size = pairs.sums.count, pairs.size
    rows = NoisyArray(count.value - (least - 1), count.weights)
    most = size / np.maximum(size - 1, 1.0) if least == 2 else np.ones_like(size)
    raw = pairs.raw_spread(pairs.first, pairs.second, pairs.products)
    values = np.clip(raw / np.maximum(rows.value, 1.0), -most, most)
    reach = float(least)
    low, high = invert_ratio(pairs.together, rows, pairs.sums.laws, pairs.sums.beta, within=(-reach, reach))
    return np.where(count.value >= least, values, np.nan), low, high


def _slope(pairs: PairMoments) -> tuple[Array, Array, Array]:
    """Return slopes in units of both half widths."""
    ((own, squares),) = list(pairs.variances())[-1:]
    raw = _limit(pairs, pairs.raw_spread(own, own, squares))
    top = np.clip(pairs.raw_spread(pairs.first, pairs.second, pairs.products) / pairs.size, -1.0, 1.0)
    known = raw > 0
    spread = pairs.spread(own, own, squares)
    low, high = invert_ratio(pairs.together, spread, pairs.sums.laws, pairs.sums.beta)
    return _where(pairs, known, top / np.where(known, raw, 1.0), low, high, [spread], np.inf)


def _limit(pairs: PairMoments, raw: Array) -> Array:
    """Return a variance within what the bounds allow."""
    return np.clip(raw / pairs.size, 0.0, 1.0)


def _where(  # noqa: PLR0917
    pairs: PairMoments, known: Any, values: Array, low: Array, high: Array, spreads: list[NoisyArray], reach: float
) -> tuple[Array, Array, Array]:
    """Return numbers and ends where there are any: none of the latter where a variance may be nothing."""
    there = pairs.sums.count.value >= 1
    sure = there & known
    size = pairs.size
    for spread in spreads:
        own = spread.plus(pairs.sums.count, -spread.value / size)
        sure &= spread.value > _SURE * np.sqrt(np.maximum(pairs.sums.multiply(own, own), 0.0))
    return np.where(there & known, values, np.nan), np.where(sure, low, -reach), np.where(sure, high, reach)


def _correlate(pairs: PairMoments) -> list[NoisyNumber]:
    """Return correlations: c/√(u·v), with the root linear in the noises of u and v about what these are.

    The mean of a root is less than the root of the means, by an eighth of the variance of ln u − ln v.
    """
    raw = [_limit(pairs, pairs.raw_spread(own, own, squares)) for own, squares in pairs.variances()]
    known = (raw[0] > 0) & (raw[1] > 0)
    shared = np.clip(pairs.raw_spread(pairs.first, pairs.second, pairs.products) / pairs.size, -1.0, 1.0)
    values = np.clip(shared / np.sqrt(np.where(known, raw[0] * raw[1], 1.0)), -1.0, 1.0)
    spreads = [pairs.spread(own, own, squares) for own, squares in pairs.variances()]
    some = [np.where(one.value > 0, one.value, 1.0) for one in spreads]
    root = np.sqrt(some[0] * some[1])
    parts = [one.times(0.5 / size) for one, size in zip(spreads, some, strict=True)]
    apart = parts[0].plus(parts[1], -1.0).times(2.0)
    mended = NoisyArray(root * (1 + pairs.sums.multiply(apart, apart) / 8), parts[0].plus(parts[1]).times(root).weights)
    low, high = invert_ratio(pairs.together, mended, pairs.sums.laws, pairs.sums.beta, within=(-1.0, 1.0))
    return _scale(_where(pairs, known, values, low, high, spreads, 1.0), 1.0)


def _predict(pairs: PairMoments, point: float) -> tuple[Array, Array, Array]:
    """Return where the line of a regression is at a point, in units of the first half width."""
    slope, _, _ = _slope(pairs)
    means, size = pairs.means(), pairs.size
    ((own, squares),) = list(pairs.variances())[-1:]
    spread, count = pairs.spread(own, own, squares), pairs.sums.count
    away = point - means[1]
    values = means[0] + slope * away
    firsts, seconds = (one.plus(count, -mean) for one, mean in zip((pairs.first, pairs.second), means, strict=True))
    variance, shared = spread.value / size, pairs.together.value / size
    moved = spread.plus(count, -variance), pairs.together.plus(count, -shared)
    quadratic = pairs.sums.multiply(moved[0], firsts) - pairs.sums.multiply(moved[1], seconds)
    weights = moved[1].times(away).plus(seconds, -shared).plus(firsts, variance).plus(moved[0], means[0]).weights
    top = NoisyArray((variance * means[0] + shared * away) * size - quadratic / size, weights)
    bottom = NoisyArray(spread.value, moved[0].weights)
    low, high = invert_ratio(top, bottom, pairs.sums.laws, pairs.sums.beta)
    return _where(pairs, np.isfinite(values), values, low, high, [spread], np.inf)
