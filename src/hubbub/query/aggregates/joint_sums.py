"""The noisy sums of an aggregate in all groups together with the joint law of their noise.

A noise that is in two sums, as that of a distance from a bound is in a count and in a total, has a weight in both: what
is computed from them is known to be off by one noise and not by two. Sums are in units of half the width of their
values' bounds, where means are between −1 and 1 and nothing is beyond what a float holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.noise.weighted_sums import NoiseLaw
from hubbub.query.aggregates.function import NoisyCells
from hubbub.query.check.bounds import Interval
from hubbub.query.ops import Tally
from hubbub.query.plan.collect import Ingredients
from hubbub.query.plan.inversion import NoisyArray, invert_ratio, multiply_noise
from hubbub.query.plan.ratios import Ratios, divide_sums
from hubbub.query.plan.statistic import NoisyNumber


@dataclass(frozen=True, slots=True)
class JointSums:
    """The count of values, noisy or public, and the other sums, with the laws of all their noises."""

    count: NoisyArray
    others: tuple[NoisyArray, ...]
    laws: tuple[NoiseLaw, ...]
    beta: float

    def multiply(self, one: NoisyArray, other: NoisyArray) -> Any:
        """Return the mean of the product of the noises of two numbers."""
        return multiply_noise(one, other, self.laws)

    def vary_square(self, one: NoisyArray) -> Any:
        """Return the variance of the square of a number's noise: twice the square of its variance, and the fourth
        cumulants of the noises, which are three times the square of the variance of a Laplace one."""
        total: Any = 2 * np.square(self.multiply(one, one))
        for law, weight in zip(self.laws, one.weights, strict=True):
            total = total + (0 if law.is_normal else 3) * np.square(np.square(weight) * law.variance)
        return total


def join_sums(part: Ingredients, cells: NoisyCells, units: Sequence[Fraction]) -> JointSums:
    """Return the count of a part and its other tallies, each in its own unit; a size that is public is the count."""
    margins, beta, tallies = cells.margins, 1 - cells.confidence, part.tallies
    own = [margins.find(tally) for tally in tallies]
    measured = list({id(one): one for one in own}.values())
    steps = [
        each.take.list_steps(cells.numbers(each), cells.places, tally) for each, tally in zip(own, tallies, strict=True)
    ]
    laws: list[NoiseLaw] = []
    starts: dict[int, int] = {}
    for one in measured:
        starts[id(one)] = len(laws)
        laws += one.take.list_laws(one.mechanism, steps[own.index(one)], beta)
    found = []
    if part.size is None:
        units = (Fraction(1), *units)
    else:
        found.append(NoisyArray(np.full(len(cells.places), float(part.size)), (0.0,) * len(laws)))
    for each, tally, counted, unit in zip(own, tallies, steps, units, strict=True):
        scale = tally.grid / unit
        top, bottom = scale.numerator, scale.denominator * counted.denominator
        value = np.array([top * one / bottom for one in counted.numerators], dtype=np.float64)
        weights = [0.0] * len(laws)
        for at, weight in enumerate(each.take.weigh_noises(tally), start=starts[id(each)]):
            weights[at] = float(weight * scale)
        found.append(NoisyArray(value, tuple(weights)))
    count, *others = found
    return JointSums(count, tuple(others), tuple(laws), beta)


@dataclass(frozen=True, slots=True)
class Middle:
    """The middle of the bounds of a value, and half their width: the unit in which it is added up."""

    point: Fraction
    half: Fraction

    @classmethod
    def of(cls, bounds: Interval) -> "Middle":
        """Return that of some bounds; of a single point the unit is 1."""
        low, high = bounds
        return cls((low + high) / 2, (high - low) / 2 or Fraction(1))

    def shift(self, tally: Tally) -> float:
        """Return how far the origin of a total is from the middle, in units."""
        return float((tally.origin - self.point) / self.half)


def make_numbers(values: Sequence[Any], lows: Sequence[float], highs: Sequence[float]) -> list[NoisyNumber]:
    """Pair numbers with their intervals, which hold them; an end is None where there is none."""
    found = []
    for value, low, high in zip(values, lows, highs, strict=True):
        ends = (low, high) if value is None else (min(low, value), max(high, value))
        found.append(NoisyNumber(value, *(end if abs(end) < np.inf else None for end in ends)))
    return found


def divide_sums_of(
    part: Ingredients, cells: NoisyCells, *, origin: Fraction, bounds: Interval, least: int
) -> list[NoisyNumber]:
    """Return ratios of a total to a count, or to another total, within bounds; None where the latter is below the least
    that it is where there is anything, or not above 0.

    The interval is that of ``invert_ratio``, whose coverage is exact.
    """
    counted = (
        Ratios([part.size] * len(cells.places), 1) if part.size is not None else cells.list_ratios(part.tallies[0])
    )
    totals = cells.list_ratios(part.tallies[-1])
    values = list(divide_sums(totals, counted, origin=origin, bounds=bounds, least=least))
    half = (bounds[1] - bounds[0]) / 2 or Fraction(1)
    sums = join_sums(part, cells, (half,))
    (total,) = sums.others
    edges = tuple(float((end - origin) / half) for end in bounds)
    ends = invert_ratio(total, sums.count, sums.laws, sums.beta, within=(edges[0], edges[1]))
    scaled = [np.clip(float(origin) + end * float(half), float(bounds[0]), float(bounds[1])) for end in ends]
    return make_numbers(values, *(end.tolist() for end in scaled))
