"""The cumulative probabilities behind the tables of ``discrete``, bracketed to any number of bits.

Powers are formed one after the other in fixed point, lower bounds rounded down and upper bounds up, with guard bits for
the rounding of as many steps as there are entries.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from hubbub.noise.exact import exp_minus_bounds, log2_floor

BoundsList = list[tuple[int, int]]

GUARD = 40
REACH_IN_SCALES = 17
REACH_IN_SIGMAS = Fraction(13, 2)


def reach(rate: Fraction) -> int:
    """Return the last entry of a geometric table of this rate: at most exp(-17) of the samples lie beyond."""
    return max(2, math.ceil(REACH_IN_SCALES / rate))


def gaussian_reach(sigma: Fraction) -> int:
    """Return the last entry of a Gaussian table: less than 1e-9 of the samples lie beyond."""
    return max(2, math.ceil(REACH_IN_SIGMAS * sigma))


def value_at(index: int) -> int:
    """The values 0, 1, -1, 2, -2, … in the order in which signed tables hold them."""
    return (index + 1) // 2 if index & 1 else -(index // 2)


def digit(rate: Fraction, base: int) -> Callable[[int], BoundsList]:
    """P(L < j) = (1 - r^j) / (1 - r^base), r = exp(-rate), for j = 1 … base - 1."""

    def bounds(bits: int) -> BoundsList:
        wide = bits + GUARD + max(0, -log2_floor(rate))
        one = 1 << wide
        powers = _powers(rate, base + 1, wide)
        least, most = one - powers[base][1], one - powers[base][0]
        return [(((one - high) << bits) // most, -(-((one - low) << bits) // least)) for low, high in powers[1:base]]

    return bounds


def geometric(rate: Fraction, count: int) -> Callable[[int], BoundsList]:
    """P(G < j) = 1 - r^j for j = 1 … count."""

    def bounds(bits: int) -> BoundsList:
        wide = bits + GUARD
        one = 1 << wide
        return [(one - high >> GUARD, -(low - one >> GUARD)) for low, high in _powers(rate, count + 1, wide)[1:]]

    return bounds


def laplace(rate: Fraction, count: int) -> Callable[[int], BoundsList]:
    """Discrete Laplace in the order 0, 1, -1, …: what remains after j values is (r^⌈j/2⌉ + r^(⌊j/2⌋+1)) / (1 + r)."""

    def bounds(bits: int) -> BoundsList:
        wide = bits + GUARD
        one = 1 << wide
        powers = _powers(rate, count + 1, wide)
        ratio_low, ratio_high = powers[1]
        share_low = (one << wide) // (one + ratio_high)
        share_high = -(-(one << wide) // (one + ratio_low))
        out = []
        for j in range(1, 2 * count):
            (a_low, a_high), (b_low, b_high) = powers[(j + 1) // 2], powers[j // 2 + 1]
            left_least = (a_low + b_low) * share_low >> wide
            left_most = -(-(a_high + b_high) * share_high >> wide)
            out.append((max(0, one - left_most) >> GUARD, -(left_least - one >> GUARD)))
        return out

    return bounds


def gaussian(variance: Fraction, count: int, *, signed: bool) -> Callable[[int], BoundsList]:
    """Weights g(h) = exp(-h²/2v): over 0, 1, -1, 2, … (signed, each value once) or over h = 0, 1, 2, … below ``count``.

    The normaliser is the sum of all weights. Terms are added until they vanish at the working precision; what follows
    term h sums to at most g(h) · v / h, because g(h + j) <= g(h) · exp(-hj/v).
    """

    def bounds(bits: int) -> BoundsList:
        wide = bits + GUARD
        weights = _gaussian_weights(variance, count, wide)
        times = 2 if signed else 1
        tail = weights[-1][1] * math.ceil(variance / (len(weights) - 1))
        total_low = weights[0][0] + times * sum(low for low, _ in weights[1:])
        total_high = weights[0][1] + times * (sum(high for _, high in weights[1:]) + tail)
        low_sum = high_sum = 0
        out = []
        for j in range(2 * count - 1 if signed else count):
            low, high = weights[(j + 1) // 2 if signed else j]
            low_sum += low
            high_sum += high
            out.append(((low_sum << bits) // total_high, -(-(high_sum << bits) // total_low)))
        return out

    return bounds


def _powers(rate: Fraction, count: int, wide: int) -> BoundsList:
    """Bounds on exp(-rate·j) · 2^wide for j = 0 … count - 1."""
    ratio_low, ratio_high = exp_minus_bounds(rate, wide)
    low = high = 1 << wide
    out = [(low, high)]
    for _ in range(count - 1):
        low = low * ratio_low >> wide
        high = -(-high * ratio_high >> wide)
        out.append((low, high))
    return out


def _gaussian_weights(variance: Fraction, count: int, wide: int) -> BoundsList:
    """Bounds on exp(-h²/2v) · 2^wide for h = 0, 1, … until they vanish, but at least ``count`` of them."""
    step_low, step_high = exp_minus_bounds(1 / variance, wide)
    ratio_low, ratio_high = exp_minus_bounds(1 / (2 * variance), wide)
    low = high = 1 << wide
    out = [(low, high)]
    while high > 1 or len(out) < count:
        low = low * ratio_low >> wide
        high = -(-high * ratio_high >> wide)
        out.append((low, high))
        ratio_low = ratio_low * step_low >> wide
        ratio_high = -(-ratio_high * step_high >> wide)
    return out
