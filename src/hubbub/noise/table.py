"""Exact inversion by table: most samples cost one lookup of 16 random bits in cumulative probabilities that are
bracketed.

Powers are formed one after the other in fixed point, lower bounds rounded down and upper bounds up, with guard bits for
the rounding of as many steps as there are entries.

A law over outcomes 0, 1, 2, … is given by its cumulative probabilities, each bracketed to any precision. A uniform real
U falls between two of them and that is the outcome. Sixteen random bits name a bucket of [0, 1); a bucket without a
cumulative probability in it belongs to one outcome, which a guide table knows. Otherwise 48 more bits and a binary
search on 64-bit thresholds settle it, unless the 64-bit word is a threshold's own: then digits of both are added until
they differ. So the result is exact, not close, and the slow path is taken with probability about (number of outcomes) /
2^64.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.noise.entropy import Integers, Source, words
from hubbub.noise.exact import WORD, Uniform, exp_minus_bounds, log2_floor

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


def gaussian(variance: Fraction, count: int) -> Callable[[int], BoundsList]:
    """Weights g(k) = exp(-k²/2v) over 0, 1, -1, 2, -2, … up to ``count`` - 1 on both sides."""

    def bounds(bits: int) -> BoundsList:
        weights, (total_low, total_high) = _gaussian_weights(variance, count, bits + GUARD)
        least, most = 2 * total_low - weights[0][1], 2 * total_high - weights[0][0]
        low_sum = high_sum = 0
        out = []
        for j in range(2 * count - 1):
            low, high = weights[(j + 1) // 2]
            low_sum += low
            high_sum += high
            out.append(((low_sum << bits) // most, -(-(high_sum << bits) // least)))
        return out

    return bounds


def laplace_blocks(rate: Fraction, count: int) -> Callable[[int], BoundsList]:
    """``blocks`` with G(h) = exp(-rate·h), whose sum over h >= 0 is 1 / (1 - exp(-rate))."""

    def bounds(bits: int) -> BoundsList:
        wide = bits + GUARD
        one = 1 << wide
        powers = _powers(rate, count + 1, wide)
        ratio_low, ratio_high = powers[1]
        total = (one << wide) // (one - ratio_low), -(-(one << wide) // (one - ratio_high))
        return _blocks(powers, total, one, bits)

    return bounds


def gaussian_blocks(variance: Fraction, count: int) -> Callable[[int], BoundsList]:
    """``blocks`` with G(h) = exp(-h²/2v)."""

    def bounds(bits: int) -> BoundsList:
        wide = bits + GUARD
        weights, total = _gaussian_weights(variance, count + 1, wide)
        return _blocks(weights[: count + 1], total, 1 << wide, bits)

    return bounds


def _blocks(weights: BoundsList, total: tuple[int, int], one: int, bits: int) -> BoundsList:
    """Weights G(h + 1) for the pairs of blocks h = 0, 1, … below a count, then G(h) - G(h + 1) for the same again.

    All envelopes together are 2·(G(0) + G(1) + …), twice the ``total``. The differences after j entries telescope to
    2 - G(⌈j/2⌉) - G(⌊j/2⌋).
    """
    least, most = 2 * total[0], 2 * total[1]
    count = len(weights) - 1
    low_sum = high_sum = 0
    sums = []
    for j in range(2 * count):
        low, high = weights[j // 2 + 1]
        low_sum += low
        high_sum += high
        sums.append((low_sum, high_sum))
    for j in range(1, 2 * count + 1):
        (a_low, a_high), (b_low, b_high) = weights[(j + 1) // 2], weights[j // 2]
        sums.append((low_sum + 2 * one - a_high - b_high, high_sum + 2 * one - a_low - b_low))
    return [((low << bits) // most, -(-(high << bits) // least)) for low, high in sums]


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


def _gaussian_weights(variance: Fraction, count: int, wide: int) -> tuple[BoundsList, tuple[int, int]]:
    """Bounds on exp(-h²/2v) · 2^wide for h = 0, 1, … until they vanish, but at least ``count`` of them; and on the sum.

    What follows term h sums to at most g(h) · v / h, because g(h + j) <= g(h) · exp(-hj/v).
    """
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
    tail = high * math.ceil(variance / (len(out) - 1))
    return out, (sum(low for low, _ in out), sum(high for _, high in out) + tail)


Bounds = Sequence[tuple[int, int]]

BUCKET_BITS = 16
GUIDE_FROM = 2048
CHUNK = 1 << 15
_TOP = (1 << WORD) - 1
_PRECISION = 2 * WORD


class LawTable:
    """A law on ``values``, the last of which takes whatever probability the others leave.

    ``cumulative(bits)`` returns, in order, bounds on P(U falls on one of the first j values), for j = 1, 2, …, one
    fewer than there are values.
    """

    __slots__ = ("_cumulative", "_first", "_first_list", "_guide", "_last", "_last_list", "_undecided", "values")

    def __init__(self, values: Sequence[int], cumulative: Callable[[int], Bounds]) -> None:
        self.values: Integers = np.array(values, dtype=np.int64)
        self._cumulative = cumulative
        bounds = cumulative(_PRECISION)
        self._first_list = [min(low >> WORD, _TOP) for low, _ in bounds]
        self._last_list = [min(high >> WORD, _TOP) for _, high in bounds]
        self._first = np.array(self._first_list, dtype=np.uint64)
        self._last = np.array(self._last_list, dtype=np.uint64)
        self._guide: np.ndarray[Any, Any] | None = None
        self._undecided = 0

    def one(self, source: Source) -> int:
        """One sample."""
        word = source.word()
        at = bisect_right(self._first_list, word)
        if at and word <= self._last_list[at - 1]:
            at = self._resolve(source, word)
        return int(self.values[at])

    def many(self, source: Source, size: int) -> np.ndarray[Any, Any]:
        """Independent samples, in a dtype that holds every value."""
        if size < GUIDE_FROM:
            few: Integers = self.values[self._outcomes(source, words(source, size))]
            return few
        guide = self._build_guide()
        out = np.empty(size, dtype=guide.dtype)
        buckets = np.empty(min(size, CHUNK), dtype=np.uint16)
        for start in range(0, size, CHUNK):
            piece = out[start : start + CHUNK]
            drawn = buckets[: len(piece)]
            source.fill(drawn.view(np.uint8).data)
            np.take(guide, drawn, out=piece, mode="clip")
            open_at = np.flatnonzero(piece == self._undecided)
            if len(open_at):
                low = words(source, len(open_at)) >> np.uint64(BUCKET_BITS)
                word = drawn[open_at].astype(np.uint64) << np.uint64(WORD - BUCKET_BITS) | low
                piece[open_at] = self.values[self._outcomes(source, word)]
        return out

    def _outcomes(self, source: Source, word: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, Any]:
        at = np.searchsorted(self._first, word, side="right")
        if len(self._last):
            for index in np.flatnonzero((at > 0) & (word <= self._last[at - 1])):
                at[index] = self._resolve(source, int(word[index]))
        return at

    def _resolve(self, source: Source, word: int) -> int:
        """The outcome of a uniform real whose first 64 digits are a threshold's own."""
        uniform = Uniform(source, word, WORD)
        while True:
            uniform.extend()
            bounds = self._cumulative(uniform.bits)
            surely_passed = bisect_right([high for _, high in bounds], uniform.value)
            perhaps_passed = bisect_right([low for low, _ in bounds], uniform.value)
            if surely_passed == perhaps_passed:
                return surely_passed

    def _build_guide(self) -> np.ndarray[Any, Any]:
        if self._guide is None:
            extent = int(np.abs(self.values).max(initial=0))
            dtype = np.int16 if extent < np.iinfo(np.int16).max else np.int64
            shift = np.uint64(WORD - BUCKET_BITS)
            starts = np.arange(1 << BUCKET_BITS, dtype=np.uint64) << shift
            guide = self.values[np.searchsorted(self._first, starts, side="right")].astype(dtype)
            self._undecided = int(np.iinfo(dtype).min)
            guide[self._first >> shift] = self._undecided
            guide[self._last >> shift] = self._undecided
            self._guide = guide
        return self._guide
