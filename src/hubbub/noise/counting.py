"""Binomial and hypergeometric counts, exact for populations beyond 2^62 and for probabilities known only by their
digits.

A binomial with an irrational p is refined like everything here: all trials draw their next 64 digits together. Those
surely below p succeed, those surely above it fail, and the few that cannot be told yet draw on. Each step needs only
binomials of rational probability, and those are drawn by rejection under a log-concave envelope.

Privacy:
    Claim: ``binomial`` and ``hypergeometric`` draw from exactly the laws they name.
    Proof: P(k) is proportional to odds^k / Π (aᵢ ± k)!, which is log-concave, so from W steps beyond the mode it falls
        at least as fast as the geometric envelope that touches it at W; a proposal from the envelope is kept with
        probability P(k) / envelope(k), compared exactly through bracketed logarithms.
    Needs: ``logarithm`` brackets, ``table`` inverts exactly.
    Ref: Devroye 1987, "A simple generator for discrete log-concave distributions".
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np

from hubbub.noise import entropy
from hubbub.noise.bernoulli import as_probability, below, flips
from hubbub.noise.digits import geometric_sampler
from hubbub.noise.entropy import Source
from hubbub.noise.exact import (
    WORD,
    Exact,
    exactly,
    exp_minus,
    exp_minus_bounds,
    fresh_uniform,
    log2_floor,
    log_bounds,
    log_factorial_bounds,
)
from hubbub.noise.table import LawTable
from hubbub.parameters import Real, size_of_draw, whole

FEW_TRIALS = 512
_LEFT, _MIDDLE, _RIGHT = 0, 1, 2


@overload
def binomial(*, n: int, p: Real | Exact, size: None = None) -> int: ...
@overload
def binomial(*, n: int, p: Real | Exact, size: int) -> np.ndarray[Any, Any]: ...
def binomial(*, n: int, p: Real | Exact, size: int | None = None) -> int | np.ndarray[Any, Any]:
    """Draw the number of heads among ``n`` independent coins of probability exactly ``p``."""
    n, number, size = whole("n", n), as_probability("p", p), size_of_draw(size)
    source = entropy.begin("binomial", n=n, size=size)
    if size is None:
        return _binomial(source, n, number)
    return _integers([_binomial(source, n, number) for _ in range(size)], n)


@overload
def hypergeometric(*, population: int, marked: int, draws: int, size: None = None) -> int: ...
@overload
def hypergeometric(*, population: int, marked: int, draws: int, size: int) -> np.ndarray[Any, Any]: ...
def hypergeometric(*, population: int, marked: int, draws: int, size: int | None = None) -> int | np.ndarray[Any, Any]:
    """Draw the number of ``marked`` members among ``draws`` drawn without replacement."""
    population = whole("population", population)
    marked = whole("marked", marked, most=population)
    draws = whole("draws", draws, most=population)
    size = size_of_draw(size)
    source = entropy.begin("hypergeometric", population=population, marked=marked, draws=draws, size=size)
    law = _hypergeometric(population, marked, draws)
    return law.one(source) if size is None else _integers([law.one(source) for _ in range(size)], draws)


def _binomial(source: Source, trials: int, p: Exact) -> int:
    """Trials are uniform reals; those still open lie in ``cells`` cells of width 2^-digits that start at ``start``."""
    if trials <= FEW_TRIALS:
        return int(flips(source, p, trials).sum())
    successes, digits, start, cells = 0, 0, 0, 1
    while trials:
        digits, start, cells = digits + WORD, start << WORD, cells << WORD
        low, high = p.bounds(digits)
        below_p = min(max(low - start, 0), cells)
        above_p = min(max(start + cells - high, 0), cells - below_p)
        open_cells = cells - below_p - above_p
        now = _rational_binomial(source, trials, below_p, cells)
        successes += now
        trials = _rational_binomial(source, trials - now, open_cells, cells - below_p) if open_cells else 0
        start, cells = start + below_p, open_cells
    return successes


def _rational_binomial(source: Source, trials: int, numerator: int, denominator: int) -> int:
    if numerator == 0 or trials == 0:
        return 0
    if numerator == denominator:
        return trials
    if trials <= FEW_TRIALS:
        return int(flips(source, exactly(Fraction(numerator, denominator)), trials).sum())
    return _binomial_law(trials, Fraction(numerator, denominator)).one(source)


@dataclass(frozen=True, slots=True)
class _LogConcave:
    """P(k) proportional to odds^k / Π (offset + sign·k)! on low … high."""

    terms: tuple[tuple[int, int], ...]
    odds: Fraction
    low: int
    high: int
    mode: int
    variance: Fraction

    def log_ratio(self, k: int, precision: int) -> tuple[int, int]:
        """Bounds on ln(P(k) / P(mode)) · 2^precision."""
        above, under = log_bounds(self.odds.numerator, precision), log_bounds(self.odds.denominator, precision)
        step = k - self.mode
        tilt = sorted((step * (above[0] - under[1]), step * (above[1] - under[0])))
        low, high = tilt[0], tilt[1]
        for offset, sign in self.terms:
            at_mode = log_factorial_bounds(offset + sign * self.mode, precision)
            at_k = log_factorial_bounds(offset + sign * k, precision)
            low += at_mode[0] - at_k[1]
            high += at_mode[1] - at_k[0]
        return low, high

    def falls_below(self, step: int, rate: Fraction) -> bool:
        """Return True where P(mode + step) <= P(mode) · exp(-rate·|step|) is certain."""
        k = self.mode + step
        if not self.low <= k <= self.high:
            return True
        _, high = self.log_ratio(k, _PRECISION + self.high.bit_length())
        return Fraction(high) <= -abs(step) * rate * (1 << _PRECISION + self.high.bit_length())

    def envelope(self) -> "_Envelope":
        rate = Fraction(2) ** (-log2_floor(self.variance + 1) // 2)
        width = max(1, math.ceil(2 * rate * self.variance))
        while not (self.falls_below(width, rate) and self.falls_below(-width, rate)):
            width += width // 4 + 1
        middle = exactly(2 * width - 1)
        side = exp_minus(rate * width) / exp_minus(rate).complement()
        total = side + middle + side

        def cumulative(precision: int) -> list[tuple[int, int]]:
            return [(side / total).bounds(precision), ((side + middle) / total).bounds(precision)]

        return _Envelope(self, rate, width, LawTable([_LEFT, _MIDDLE, _RIGHT], cumulative))


@dataclass(frozen=True, slots=True)
class _Envelope:
    """Flat within ``width`` of the mode, geometric beyond."""

    law: _LogConcave
    rate: Fraction
    width: int
    region: LawTable

    def one(self, source: Source) -> int:
        law = self.law
        while True:
            region = self.region.one(source)
            if region == _MIDDLE:
                step = below(source, 2 * self.width - 1) - self.width + 1
            else:
                step = self.width + geometric_sampler(self.rate).one(source)
                step = -step if region == _LEFT else step
            k = law.mode + step
            if law.low <= k <= law.high and fresh_uniform(source).below(self._acceptance(k, region)):
                return k

    def _acceptance(self, k: int, region: int) -> Exact:
        """P(k) / (P(mode) · envelope), which is at most one."""
        law = self.law
        lift = Fraction(0) if region == _MIDDLE else self.rate * abs(k - law.mode)

        def bounds(precision: int) -> tuple[int, int]:
            wide = precision + _PRECISION
            low, high = law.log_ratio(k, wide)
            least = max(Fraction(0), -Fraction(high, 1 << wide) - lift)
            most = max(Fraction(0), -Fraction(low, 1 << wide) - lift)
            return exp_minus_bounds(most, precision)[0], exp_minus_bounds(least, precision)[1]

        return Exact(bounds)


@lru_cache(maxsize=256)
def _binomial_law(trials: int, p: Fraction) -> _Envelope:
    return _LogConcave(
        terms=((0, 1), (trials, -1)),
        odds=p / (1 - p),
        low=0,
        high=trials,
        mode=math.floor((trials + 1) * p),
        variance=trials * p * (1 - p),
    ).envelope()


@lru_cache(maxsize=256)
def _hypergeometric(population: int, marked: int, draws: int) -> _Envelope:
    unmarked = population - marked
    low, high = max(0, draws - unmarked), min(draws, marked)
    variance = Fraction(draws * marked * unmarked * (population - draws), max(1, population**2 * (population - 1)))
    return _LogConcave(
        terms=((0, 1), (marked, -1), (draws, -1), (unmarked - draws, 1)),
        odds=Fraction(1),
        low=low,
        high=high,
        mode=(draws + 1) * (marked + 1) // (population + 2),
        variance=variance,
    ).envelope()


def _integers(values: list[int], most: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.int64 if most < 1 << 63 else object)


_PRECISION = 64
