"""Exact integer noise at table speed: geometric, discrete Laplace and discrete Gaussian.

The geometric law is memoryless, so a large scale splits exactly into independent digits, X = B·H + L: each digit has a
table of at most 1024 entries. The Gaussian is not, but above a table's reach x = B·h + l can be proposed with h from a
table and l uniform, and accepted with probability exp(-(2·B·h·l + l²) / 2σ²), which is near 1 and compared exactly.

Privacy:
    Claim: every function here draws from exactly the law its docstring names.
    Proof: each table is inverted exactly (``table``); a product of independent digits is the geometric law because
        q^(B·h + l) = (q^B)^h · q^l; tails beyond a table restart by memorylessness (geometric) or by rejection from a
        geometric (Gaussian); rejections accept with exactly the stated probability (``bernoulli.flips_exp``).
    Needs: uniform, independent, secret bits from ``entropy``.
    Ref: Canonne, Kamath, Steinke 2020 for the laws; Karney 2016 for the shape of the Gaussian rejection.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, overload

import numpy as np

from hubbub.errors import CapacityError
from hubbub.noise import entropy
from hubbub.noise import table as tables
from hubbub.noise.bernoulli import flip, flips_exp
from hubbub.noise.entropy import Source, bits, words
from hubbub.noise.exact import WORD, exp_minus, log2_floor
from hubbub.noise.table import CHUNK, Bounds, Integers, LawTable
from hubbub.parameters import Real, between, size_of_draw, whole

LEAST_SCALE = Fraction(1, 1 << 20)
MOST_SCALE = Fraction(1 << 60)

DIGIT_BITS = 10
DIRECT_SCALE = 32
INT64_SCALE = Fraction(1 << 50)
"""Up to this scale noise is int64: the chance of passing 2^62 is under exp(-4096), and then it raises."""


@overload
def geometric(*, scale: Real, size: None = None) -> int: ...
@overload
def geometric(*, scale: Real, size: int) -> np.ndarray[Any, Any]: ...
def geometric(*, scale: Real, size: int | None = None) -> int | np.ndarray[Any, Any]:
    """P(k) = (1 - q) q^k for k = 0, 1, 2, … with q = exp(-1/scale)."""
    exact, size = check_scale("scale", scale), size_of_draw(size)
    source = entropy.begin("geometric", scale=exact, size=size)
    law = geometric_sampler(1 / exact)
    if size is None:
        return law.one(source)
    return _many(law, source, exact, size)


@overload
def discrete_laplace(*, scale: Real, size: None = None) -> int: ...
@overload
def discrete_laplace(*, scale: Real, size: int) -> np.ndarray[Any, Any]: ...
def discrete_laplace(*, scale: Real, size: int | None = None) -> int | np.ndarray[Any, Any]:
    """P(k) = (1 - q) / (1 + q) · q^|k| for every integer k, with q = exp(-1/scale)."""
    exact, size = check_scale("scale", scale), size_of_draw(size)
    source = entropy.begin("discrete-laplace", scale=exact, size=size)
    law = _laplace(exact)
    if size is None:
        return law.one(source)
    return _many(law, source, exact, size)


def truncated_laplace(*, scale: Real, reach: int, size: int) -> Integers:
    """Draw discrete Laplace noise given that it lies within ± ``reach``; the source is not given the number of keys."""
    exact, reach, size = check_scale("scale", scale), whole("reach", reach, least=1), whole("size", size)
    source = entropy.begin("truncated-laplace", scale=exact, reach=reach)
    law = _laplace(exact)
    out = law.many(source, size)
    outside = np.flatnonzero(np.abs(out) > reach)
    while len(outside):
        out[outside] = law.many(source, len(outside))
        outside = outside[np.abs(out[outside]) > reach]
    return out


def laplace_for_each(*, scale: Real, size: int) -> np.ndarray[Any, Any]:
    """Draw ``discrete_laplace`` for a number of keys that comes from the data, so that the source is not given it."""
    exact, size = check_scale("scale", scale), whole("size", size)
    return _many(_laplace(exact), entropy.begin("laplace-for-each", scale=exact), exact, size)


def gaussian_for_each(*, sigma: Real, size: int) -> np.ndarray[Any, Any]:
    """Draw ``discrete_gaussian`` for a number of keys that comes from the data, so that the source is not given it."""
    exact, size = check_scale("sigma", sigma), whole("size", size)
    return _many(_gaussian(exact), entropy.begin("gaussian-for-each", sigma=exact), exact, size)


@overload
def discrete_gaussian(*, sigma: Real, size: None = None) -> int: ...
@overload
def discrete_gaussian(*, sigma: Real, size: int) -> np.ndarray[Any, Any]: ...
def discrete_gaussian(*, sigma: Real, size: int | None = None) -> int | np.ndarray[Any, Any]:
    """P(k) proportional to exp(-k² / 2σ²) for every integer k."""
    exact, size = check_scale("sigma", sigma), size_of_draw(size)
    source = entropy.begin("discrete-gaussian", sigma=exact, size=size)
    law = _gaussian(exact)
    if size is None:
        return law.one(source)
    return _many(law, source, exact, size)


class _Law(Protocol):
    def one(self, source: Source) -> int: ...

    def many(self, source: Source, size: int) -> Integers: ...


@dataclass(frozen=True, slots=True)
class _Geometric:
    """Digits 0 to 1023 below, and above them a digit without end whose table starts again when it is passed."""

    digits: tuple[LawTable, ...]
    top: LawTable
    reach: int

    def one(self, source: Source) -> int:
        value = self._top_one(source)
        for digit in reversed(self.digits):
            value = value << DIGIT_BITS | digit.one(source)
        return value

    def _top_one(self, source: Source) -> int:
        passed = 0
        while (value := self.top.one(source)) == self.reach:
            passed += self.reach
        return passed + value

    def many(self, source: Source, size: int) -> Integers:
        high = self.top.many(source, size).astype(np.int64)
        for index in np.flatnonzero(high == self.reach):
            high[index] = self.reach + self._top_one(source)
        return _with_digits(source, high, self.digits)


@dataclass(frozen=True, slots=True)
class _Signed:
    """A table of signed values; the last one stands for all that lies beyond, where ``beyond`` draws the magnitude."""

    table: LawTable
    reach: int
    beyond: Callable[[Source], int]

    def one(self, source: Source) -> int:
        value = self.table.one(source)
        return value if value != self.reach else self._far(source)

    def _far(self, source: Source) -> int:
        magnitude = self.beyond(source)
        return magnitude if bits(source, 1) else -magnitude

    def many(self, source: Source, size: int) -> Integers:
        out = self.table.many(source, size).astype(np.int64)
        for index in np.flatnonzero(out == self.reach):
            out[index] = self._far(source)
        return out


@dataclass(frozen=True, slots=True)
class _WideLaplace:
    """A sign and a geometric magnitude; minus zero is thrown away and drawn again, so that zero counts once."""

    magnitude: _Geometric

    def one(self, source: Source) -> int:
        while True:
            magnitude, negative = self.magnitude.one(source), bits(source, 1)
            if magnitude or not negative:
                return -magnitude if negative else magnitude

    def many(self, source: Source, size: int) -> Integers:
        return _in_chunks(self._chunk, source, size)

    def _chunk(self, source: Source, size: int) -> Integers:
        return _give_signs(source, self.magnitude.many(source, size), self._chunk)


@dataclass(frozen=True, slots=True)
class _WideGaussian:
    """x = 2^shift · h + l: h from the table of a half Gaussian, l uniform, accepted with probability near 1."""

    top: LawTable
    reach: int
    shift: int
    variance: Fraction

    def one(self, source: Source) -> int:
        while True:
            high = self.top.one(source)
            if high == self.reach:
                high = _gaussian_tail(source, self.reach, self.variance / (1 << 2 * self.shift))
            low, negative = bits(source, self.shift), bits(source, 1)
            value = (high << self.shift) + low
            if flip(source, exp_minus(self._exponent(high, low))) and (value or not negative):
                return -value if negative else value

    def _exponent(self, high: int, low: int) -> Fraction:
        return ((high * low << self.shift + 1) + low * low) / (2 * self.variance)

    def many(self, source: Source, size: int) -> Integers:
        return _in_chunks(self._chunk, source, size)

    def _chunk(self, source: Source, size: int) -> Integers:
        high = self.top.many(source, size).astype(np.int64)
        for index in np.flatnonzero(high == self.reach):
            high[index] = _gaussian_tail(source, self.reach, self.variance / (1 << 2 * self.shift))
        low = (words(source, size) >> np.uint64(WORD - self.shift)).astype(np.int64)
        low_float = low.astype(np.float64)
        approximate = low_float * (high * float(2 << self.shift) + low_float) * float(1 / (2 * self.variance))
        kept = flips_exp(source, approximate, lambda i: self._exponent(int(high[i]), int(low[i])))
        value = (high[kept] << self.shift) + low[kept]
        value = _give_signs(source, value, self._chunk)
        missing = size - len(value)
        return np.concatenate([value, self._chunk(source, missing)]) if missing else value


def _with_digits(source: Source, high: Integers, digits: tuple[LawTable, ...]) -> Integers:
    if len(high) and int(high.max()) >= 1 << 62 - DIGIT_BITS * len(digits):
        raise CapacityError("A noise sample passed 2^62; no wrapped value was used. Ask again.")
    for digit in reversed(digits):
        high <<= DIGIT_BITS
        high += digit.many(source, len(high))
    return high


def _in_chunks(chunk: Callable[[Source, int], Integers], source: Source, size: int) -> Integers:
    """Fill a large array piece by piece, so that the intermediate arrays stay in the processor's cache."""
    if size <= CHUNK:
        return chunk(source, size)
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        piece = out[start : start + CHUNK]
        piece[:] = chunk(source, len(piece))
    return out


def _give_signs(source: Source, magnitude: Integers, again: Callable[[Source, int], Integers]) -> Integers:
    """Give each magnitude a fair sign; where that made minus zero, put a fresh signed sample."""
    negative = np.unpackbits(np.frombuffer(words(source, -(-len(magnitude) // WORD)), dtype=np.uint8))[: len(magnitude)]
    mask = -negative.astype(np.int64)
    rejected = np.flatnonzero((mask != 0) & (magnitude == 0))
    magnitude ^= mask
    magnitude -= mask
    if len(rejected):
        magnitude[rejected] = again(source, len(rejected))
    return magnitude


def _gaussian_tail(source: Source, reach: int, variance: Fraction) -> int:
    """A half Gaussian given that it is at least ``reach``: exp(-(r+g)²/2v) = exp(-r²/2v) · exp(-rg/v) · exp(-g²/2v)."""
    beyond = geometric_sampler(reach / variance)
    while True:
        excess = beyond.one(source)
        if flip(source, exp_minus(excess * excess / (2 * variance))):
            return reach + excess


@lru_cache(maxsize=512)
def geometric_sampler(rate: Fraction) -> _Geometric:
    """P(k) proportional to exp(-rate·k): digits below while the scale is large, then one open table."""
    digits = []
    while rate * DIRECT_SCALE < 1:
        digits.append(LawTable(range(1 << DIGIT_BITS), tables.digit(rate, 1 << DIGIT_BITS)))
        rate *= 1 << DIGIT_BITS
    reach = tables.reach(rate)
    return _Geometric(tuple(digits), LawTable(range(reach + 1), tables.geometric(rate, reach)), reach)


@lru_cache(maxsize=512)
def _laplace(scale: Fraction) -> _Signed | _WideLaplace:
    rate = 1 / scale
    if rate * DIRECT_SCALE < 1:
        return _WideLaplace(geometric_sampler(rate))
    reach = tables.reach(rate)
    table = _two_sided_table(reach, tables.laplace(rate, reach))
    return _Signed(table, reach, lambda source: reach + geometric_sampler(rate).one(source))


@lru_cache(maxsize=512)
def _gaussian(sigma: Fraction) -> _Signed | _WideGaussian:
    if sigma <= DIRECT_SCALE:
        reach = tables.gaussian_reach(sigma)
        table = _two_sided_table(reach, tables.gaussian(sigma**2, reach, signed=True))
        return _Signed(table, reach, lambda source: _gaussian_tail(source, reach, sigma**2))
    shift = log2_floor(sigma / DIRECT_SCALE) + 1
    narrow = sigma / (1 << shift)
    reach = tables.gaussian_reach(narrow)
    top = LawTable(range(reach + 1), tables.gaussian(narrow**2, reach, signed=False))
    return _WideGaussian(top, reach, shift, sigma**2)


def _two_sided_table(reach: int, cumulative_of: Callable[[int], Bounds]) -> LawTable:
    """The values 0, 1, -1, … within the reach, and the reach itself for whatever lies beyond."""
    return LawTable([*(tables.value_at(index) for index in range(2 * reach - 1)), reach], cumulative_of)


def check_scale(name: str, value: object) -> Fraction:
    """A scale that these samplers take, exactly: from 2^-20 to 2^60."""
    return between(name, value, LEAST_SCALE, MOST_SCALE)


def _many(law: _Law, source: Source, scale: Fraction, size: int) -> np.ndarray[Any, Any]:
    """int64 where the scale allows, Python ints beyond."""
    if scale <= INT64_SCALE:
        return law.many(source, size)
    out = np.empty(size, dtype=object)
    for index in range(size):
        out[index] = law.one(source)
    return out
