"""Exact integer noise at table speed: geometric, discrete Laplace and discrete Gaussian.

A small scale is one table. The geometric law is memoryless, so a large scale splits exactly into independent digits
(``digits``). The symmetric laws are cut into flat blocks at large scales (``flat_blocks``).

Privacy:
    Claim: every function here draws from exactly the law its docstring names.
    Proof: each table is inverted exactly (``table``); digits and blocks are exact too; tails beyond a table restart by
        memorylessness (Laplace) or by rejection from a geometric (Gaussian), which keeps with exactly the stated
        probability (``bernoulli.flip``).
    Needs: uniform, independent, secret bits from ``entropy``.
    Ref: Canonne, Kamath, Steinke 2020 for the laws; Karney 2016 for the Gaussian's tail.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, overload

import numpy as np

from hubbub.noise import entropy
from hubbub.noise import table as tables
from hubbub.noise.bernoulli import flip
from hubbub.noise.digits import DIRECT_SCALE, geometric_sampler
from hubbub.noise.entropy import Integers, Source, bits
from hubbub.noise.exact import exp_minus, log2_floor
from hubbub.noise.flat_blocks import FlatBlocks, table_of_blocks
from hubbub.noise.table import Bounds, LawTable
from hubbub.parameters import Real, between, size_of_draw, whole

LEAST_SCALE = Fraction(1, 1 << 20)
MOST_SCALE = Fraction(1 << 60)

SHIFT = 0
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


def _gaussian_tail(source: Source, reach: int, variance: Fraction) -> int:
    """A half Gaussian given that it is at least ``reach``: exp(-(r+g)²/2v) = exp(-r²/2v) · exp(-rg/v) · exp(-g²/2v)."""
    beyond = geometric_sampler(reach / variance)
    while True:
        excess = beyond.one(source)
        if flip(source, exp_minus(excess * excess / (2 * variance))):
            return reach + excess


@lru_cache(maxsize=512)
def _laplace(scale: Fraction) -> _Signed | FlatBlocks:
    rate, shift = 1 / scale, _shift_of(scale)
    narrow = rate * (1 << shift)
    reach = tables.reach(narrow)

    def beyond(source: Source) -> int:
        return reach + geometric_sampler(narrow).one(source)

    if not shift:
        return _Signed(_two_sided_table(reach, tables.laplace(rate, reach)), reach, beyond)
    table = table_of_blocks(reach, tables.laplace_blocks(narrow, reach))
    return FlatBlocks(table=table, reach=reach, shift=shift, drop=_laplace_drop, unit=rate, beyond=beyond)


@lru_cache(maxsize=512)
def _gaussian(sigma: Fraction) -> _Signed | FlatBlocks:
    shift = _shift_of(sigma)
    narrow = (sigma / (1 << shift)) ** 2
    reach = tables.gaussian_reach(sigma / (1 << shift))

    def beyond(source: Source) -> int:
        return _gaussian_tail(source, reach, narrow)

    if not shift:
        return _Signed(_two_sided_table(reach, tables.gaussian(narrow, reach)), reach, beyond)

    def drop(height: Any, along: Any, unit: Any) -> Any:
        """(B·h + l)² - (B·h)², in units of 1/2σ²."""
        return along * (height * (2 << shift) + along) * unit

    table = table_of_blocks(reach, tables.gaussian_blocks(narrow, reach))
    return FlatBlocks(table=table, reach=reach, shift=shift, drop=drop, unit=1 / (2 * sigma**2), beyond=beyond)


def _laplace_drop(height: Any, along: Any, unit: Any) -> Any:
    """Return how far ln g falls over l steps: the same from any block, in units of 1/scale."""
    return along * unit


def _shift_of(scale: Fraction) -> int:
    """Return the length of blocks, as a power of two, that brings the scale down to a table's; 0 for no blocks."""
    return 0 if scale <= DIRECT_SCALE else log2_floor(scale / DIRECT_SCALE) + 1


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
