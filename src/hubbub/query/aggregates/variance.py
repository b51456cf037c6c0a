"""Variance and standard deviation, of a population or a sample: mean square less squared mean, about the middle."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from hubbub.noise.weighted_sums import Array, NoiseLaw
from hubbub.query.aggregates.function import JointFunction, NoisyCells, list_clamps
from hubbub.query.aggregates.joint_sums import JointSums, Middle, join_sums, make_numbers
from hubbub.query.plan.collect import Collector, Ingredients
from hubbub.query.plan.inversion import NoisyArray, invert_ratio
from hubbub.query.plan.statistic import NoisyNumber
from hubbub.query.question import Asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hubbub.query.check.bounds import Interval
    from hubbub.query.expression import Expression
    from hubbub.query.read.aggregates import AggregateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variance(JointFunction):
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

    def combine_all(self, asked: Asked, part: Ingredients, cells: NoisyCells) -> list[NoisyNumber]:
        """Return the variances of all groups, or their roots, within what the bounds allow."""
        total, squares = part.tallies[-2:]
        assert part.bounds is not None
        middle = Middle.of(part.bounds)
        sums = join_sums(part, cells, (middle.half, middle.half**2))
        first = sums.others[0].plus(sums.count, middle.shift(total))
        second = sums.others[1].plus(sums.count, float(squares.origin / middle.half**2))
        found = combine_variances(sums, first, second, of_sample=self.of_sample)
        scale = float(middle.half) ** 2 if part.bounds[0] < part.bounds[1] else 0.0

        def read(value: float | None) -> float | None:
            if value is None:
                return None
            return math.sqrt(value * scale) if self.is_rooted else value * scale

        return [NoisyNumber(*map(read, (number.value, number.low, number.high))) for number in found]

    def clamps(self, asked: Asked, part: Ingredients) -> "Iterator[tuple[str, Expression, Interval]]":
        """Say where the values are clamped; squares of them cannot be beyond."""
        return list_clamps([(asked.text, part.tallies[-2])])


def combine_variances(sums: JointSums, total: NoisyArray, squares: NoisyArray, *, of_sample: bool) -> list[NoisyNumber]:
    """Return mean square less squared mean in all groups, of values between −1 and 1.

    Let n rows have the mean m and the mean square v + m², and let N, S and Q be the noisy sums. With the noises z of
    these and e = z_S − m·z_N it is an identity that

        Q − S²/N − v·N = z_Q − 2·m·z_S + (m² − v)·z_N − e²/N.

    The mean of e²/N is added. What it is off by counts as one more noise of its variance, which matters where there are
    few rows: it is not independent of the others, but not correlated with them either. The rest is a weighted sum of
    noises, so that v is found by inverting a test. For m its weights have S/N, and also S/N less what the noise of S is
    expected to be if v is at the end in question; the outer end counts. With the first alone the weights of few rows
    are too small just where the noise is large, with the second alone just where it is small. Of a sample, n − 1 takes
    the place of n beside v.
    """
    count, least = sums.count, 2 if of_sample else 1
    known = np.where(count.value >= 1, count.value, 1.0)
    mean = np.clip(total.value / known, -1.0, 1.0)
    away = total.plus(count, -mean)
    rest = squares.value - total.value**2 / known
    mended = rest + sums.multiply(away, away) / known
    bottom = NoisyArray(count.value - (least - 1), count.weights)
    most = known / np.maximum(known - 1, 1.0) if of_sample else np.ones_like(known)
    law = NoiseLaw(1.0, is_normal=all(one.is_normal for one in sums.laws))
    off = np.sqrt(sums.vary_square(away) / law.variance) / known

    def weigh(at: Array) -> NoisyArray:
        return NoisyArray(mended, squares.plus(total, -2 * at).plus(count, at * at).weights)

    def invert(at: Array) -> tuple[Array, Array]:
        top, rows = NoisyArray(mended, (*weigh(at).weights, off)), NoisyArray(bottom.value, (*bottom.weights, 0.0))
        return invert_ratio(top, rows, (*sums.laws, law), sums.beta, within=(0.0, float(least)))

    def expect_mean(end: Array) -> Array:
        """Return the mean that is expected if the variance is at this end: without the part of its noise that the
        noise of the variance is known to bring along."""
        noise = weigh(mean).plus(bottom, -end)
        spread = sums.multiply(noise, noise)
        part = sums.multiply(away, noise) / np.where(spread > 0, spread, 1.0)
        found: Array = np.clip(mean - part * noise.value / known, -1.0, 1.0)
        return found

    plain = invert(mean)
    low, high = invert(expect_mean(plain[0]))[0], invert(expect_mean(plain[1]))[1]
    ends = np.minimum(low, plain[0]), np.maximum(high, plain[1])
    lows, highs = (end.tolist() for end in ends)  # within what any number of rows allows, and not the noisy one
    values = np.clip(rest / np.maximum(bottom.value, 1.0), 0.0, most).tolist()
    shown = [value if size >= least else None for value, size in zip(values, count.value.tolist(), strict=True)]
    return make_numbers(shown, lows, highs)


VAR_POP = _Variance(name="var_pop", titles=("VAR_POP",), nodes=(exp.VariancePop,), of_sample=False, is_rooted=False)
VAR_SAMP = _Variance(name="var_samp", titles=("VAR_SAMP",), nodes=(exp.Variance,), of_sample=True, is_rooted=False)
STDDEV_POP = _Variance(
    name="stddev_pop", titles=("STDDEV_POP",), nodes=(exp.StddevPop,), of_sample=False, is_rooted=True
)
STDDEV_SAMP = _Variance(
    name="stddev_samp", titles=("STDDEV_SAMP",), nodes=(exp.Stddev, exp.StddevSamp), of_sample=True, is_rooted=True
)
