"""Confidence intervals of ratios by inversion of a test, for all groups at once.

Let A and B be functions of exact tallies with A = θ·B for the number θ that is asked for: a total and a count for a
mean. Their noisy values a and b differ from these by known weighted sums of independent noises, so that
a − θ·b is noise alone, whatever the tallies are. A θ is in the interval if that is no larger in size than the exact law
of this very sum allows:

    |a − θ·b| <= q(θ),    P(|noise of a − θ · noise of b| > q(θ)) = β.

Claim: for A and B that are linear in the tallies the interval holds θ with probability 1 − β exactly, up to the
discreteness of the noise (``noise.weighted_sums``). Nothing is divided, so a count near 0 needs no care: there the set
is without end, and it is cut to what the bounds allow.

Variances and the like are ratios of quadratic functions: a = Q − S²/N, b = N. Their noise is linear but for squares of
the noise over N; whoever asks adds the mean of those to a, and takes the weights at the noisy means. The interval
is then approximate, and its coverage is held to by ``bench.intervals``. It is a function of noisy numbers, public laws
and bounds: the true tallies appear nowhere.

q(θ) is κ(θ) deviations of that sum, and κ hardly depends on θ (from 1.96 for many noises to 2.12 for one at 95%). For a
given κ the ends solve a quadratic equation, as in Fieller's theorem; κ is then computed at the ends.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.noise.weighted_sums import Array, NoiseLaw, find_reach

_ROUNDS = 2
"""How often κ is computed anew at the ends; the third time changes the ends by less than 10^-4 of their distance."""


@dataclass(frozen=True, slots=True)
class NoisyArray:
    """A noisy number of each group, and the weight of each independent noise in it."""

    value: Array
    weights: tuple[Any, ...]
    """Of each noise, for all groups or one for each."""

    def plus(self, other: "NoisyArray", times: Any = 1.0) -> "NoisyArray":
        """Add so many times another one."""
        pairs = zip(self.weights, other.weights, strict=True)
        return NoisyArray(self.value + times * other.value, tuple(own + times * its for own, its in pairs))

    def times(self, factor: Any) -> "NoisyArray":
        """Multiply by a number that is known."""
        return NoisyArray(self.value * factor, tuple(weight * factor for weight in self.weights))


def multiply_noise(one: NoisyArray, other: NoisyArray, laws: Sequence[NoiseLaw]) -> Any:
    """Return the mean of the product of the noises of two numbers: the variance where these are one."""
    total: Any = 0.0
    for law, left, right in zip(laws, one.weights, other.weights, strict=True):
        total = total + left * right * law.variance
    return total


def invert_ratio(
    top: NoisyArray,
    bottom: NoisyArray,
    laws: Sequence[NoiseLaw],
    beta: float,
    *,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[Array, Array]:
    """Return both ends of the interval of top / bottom within bounds, or without end where there are none.

    It is all of the bounds where the noisy bottom is not above 0.
    """
    a, b = top.value, bottom.value
    moments = [multiply_noise(*pair, laws) + np.zeros_like(a) for pair in ((top, top), (top, bottom), (bottom, bottom))]

    def weigh(ends: Array) -> Array:
        """Return κ for the sum of noises at an end; at one without end it is that of the bottom."""
        known = np.isfinite(ends)
        at = np.where(known, ends, 1.0)
        own = [np.where(known, one, 0.0) - at * other for one, other in zip(top.weights, bottom.weights, strict=True)]
        spread = np.sqrt(_variance(moments, at, known))
        found = find_reach(own, laws, beta, len(a))
        return np.where(spread > 0, found / np.where(spread > 0, spread, 1.0), 0.0)

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        middle = weigh(a / b)
        low, high = _solve(a, b, moments, middle, within)
        for _ in range(_ROUNDS):
            low = _solve(a, b, moments, weigh(low), within)[0]
            high = _solve(a, b, moments, weigh(high), within)[1]
    low, high = np.where(b > 0, low, within[0]), np.where(b > 0, high, within[1])
    return np.clip(low, *within), np.clip(high, *within)


def _variance(moments: Sequence[Array], at: Array, known: Any) -> Array:
    """Return the variance of the noise of top − at · bottom."""
    return np.maximum(np.where(known, moments[0] - 2 * at * moments[1], 0.0) + at * at * moments[2], 0.0)


def _solve(
    a: Array, b: Array, moments: Sequence[Array], factor: Array, within: tuple[float, float]
) -> tuple[Array, Array]:
    """Solve (a − θ·b)² = factor² · variance(θ) for the ends of the θ where the left side is the lesser."""
    squared = factor * factor
    second, first, rest = (
        own - squared * its for own, its in zip((b * b, a * b, a * a), reversed(moments), strict=True)
    )
    root = np.sqrt(np.maximum(first * first - second * rest, 0.0))
    has_root = first * first >= second * rest
    roots = (first - root) / second, (first + root) / second
    smaller, larger = np.minimum(*roots), np.maximum(*roots)
    bounded, value = second > 0, a / b
    # Where b is within its own noise, the θ that are possible lie on both sides of two roots, or anywhere. One side
    # counts if it has a / b, and the bounds exclude the other.
    above = ~bounded & has_root & (value >= larger) & (smaller < within[0])
    below = ~bounded & has_root & (value <= smaller) & (larger > within[1])
    low = np.where(bounded, smaller, np.where(above, larger, -np.inf))
    high = np.where(bounded, larger, np.where(below, smaller, np.inf))
    return low, high
