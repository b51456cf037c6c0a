"""Exact choice among weighted outcomes: weights count · exp(-rate · level) with whole counts and levels.

This is the exponential mechanism's sampler. Utilities on an integer grid are the levels; counts are a prior, or the
widths of intervals on which the score is constant. Cumulative weights are summed in floating point with a proven
allowance; a uniform that falls within it of a boundary is settled in exact arithmetic, so even an outcome too unlikely
for floats to see has exactly its probability.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np

from hubbub.errors import ParameterError
from hubbub.noise import entropy
from hubbub.noise.bernoulli import Floats, flips_exp
from hubbub.noise.entropy import Integers, Source, words
from hubbub.noise.exact import WORD, Uniform, exp_minus_bounds
from hubbub.parameters import Real, non_negative, size_of_draw

Whole = np.ndarray[Any, Any]

MOST_COUNT_BITS = 256
_GUARD = 32
_NEVER_WRAPS = 1 << 61
_FAR = Fraction(10_000)
_LEAST_FLOAT_RATE = Fraction(1, 1 << 900)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Further outcomes, numbered on after the others, that hardly ever happen: they are listed where one might have.

    ``level`` is at most that of any of them, and ``count`` at least the sum of their counts.
    """

    level: int
    count: int
    listed: Callable[[], tuple[Whole, Whole]]
    """Their levels and counts."""


@overload
def choice(
    *, levels: Whole, rate: Real, counts: Whole | None = None, size: None = None, rest: Rest | None = None
) -> int: ...
@overload
def choice(
    *, levels: Whole, rate: Real, counts: Whole | None = None, size: int, rest: Rest | None = None
) -> Integers: ...
def choice(
    *, levels: Whole, rate: Real, counts: Whole | None = None, size: int | None = None, rest: Rest | None = None
) -> int | Integers:
    """An index i with probability exactly proportional to counts[i] · exp(-rate · levels[i])."""
    exact_rate, size = non_negative("rate", rate), size_of_draw(size)
    weights = _Weights(_whole_vector("levels", levels), exact_rate, counts, rest)
    source = entropy.begin("choice", rate=exact_rate, size=size)
    return weights.one(source) if size is None else weights.sample(source, size)


@overload
def race(*, levels: Whole, rate: Real, size: None = None) -> int: ...
@overload
def race(*, levels: Whole, rate: Real, size: int) -> Integers: ...
def race(*, levels: Whole, rate: Real, size: int | None = None) -> int | Integers:
    """Permute and flip: outcome i passes with probability exp(-rate · (levels[i] - least)); a uniform one of those
    wins.

    Visiting outcomes in random order and stopping at the first that passes is the same as letting all of them flip and
    choosing uniformly among those that passed: the order is independent of the coins. A least level always passes.
    """
    exact_rate, size = non_negative("rate", rate), size_of_draw(size)
    levels = _whole_vector("levels", levels)
    steps = levels - levels.min()
    source = entropy.begin("race", rate=exact_rate, size=size)
    approximate = _exponents(steps, exact_rate)
    if size is None:
        return _one_race(source, steps, approximate, exact_rate)
    return np.array([_one_race(source, steps, approximate, exact_rate) for _ in range(size)], dtype=np.int64)


def _one_race(source: Source, steps: Whole, approximate: Floats, rate: Fraction) -> int:
    passed = np.flatnonzero(flips_exp(source, approximate, lambda i: int(steps[i]) * rate))
    width = (len(passed) - 1).bit_length()
    while True:
        at = entropy.bits(source, width) if width else 0
        if at < len(passed):
            return int(passed[at])


def _whole_vector(name: str, values: object) -> Whole:
    """int64 where differences cannot wrap, Python ints otherwise; floats are refused."""
    array = np.asarray(values)
    integers = array.dtype.kind in "iu" or (array.dtype == object and all(isinstance(item, int) for item in array.flat))
    if array.ndim != 1 or not len(array) or not integers:
        raise ParameterError(name, "a non-empty vector of whole numbers", f"{array.dtype} of shape {array.shape}")
    if array.dtype == object or array.max() >= _NEVER_WRAPS or array.min() <= -_NEVER_WRAPS:
        return array.astype(object)
    return array.astype(np.int64, copy=False)


def _exponents(steps: Whole, rate: Fraction) -> Floats:
    """rate · steps within 2^-51 of themselves; beyond 10,000, where exp(-x) is far below every float, just that."""
    if steps.dtype == object or (rate and not _LEAST_FLOAT_RATE <= rate <= 1 / _LEAST_FLOAT_RATE):
        return np.array([float(min(int(step) * rate, _FAR)) for step in steps])
    return np.minimum(steps.astype(np.float64) * float(rate), float(_FAR))


class _Weights:
    """Cumulative weights in floating point, and exactly on demand."""

    def __init__(self, levels: Whole, rate: Fraction, counts: Whole | None, rest: Rest | None = None) -> None:
        self.rate, self.rest = rate, rest
        # The least level that can happen is step 0, or else every weight might be too small for floats to see well.
        if counts is None:
            self.counts, self.least = np.ones(len(levels), dtype=np.int64), levels.min()
            self.steps = levels - self.least
        else:
            self.counts = _whole_vector("counts", counts)
            fewest, most = self.counts.min(), self.counts.max()
            if len(self.counts) != len(levels) or fewest < 0 or most == 0:
                expected = "whole numbers at least 0, one a level and not all 0"
                raise ParameterError("counts", expected, type(counts).__name__)
            if int(most).bit_length() > MOST_COUNT_BITS:
                raise ParameterError("counts", f"below 2^{MOST_COUNT_BITS}", "more")
            if fewest:
                self.least = levels.min()
                self.steps = levels - self.least
            else:
                happens = self.counts > 0
                self.least = levels[happens].min()
                self.steps = np.where(happens, levels - self.least, 0)
        self.running = np.cumsum(self.counts.astype(np.float64) * np.exp(-_exponents(self.steps, rate)))
        # A weight is off by a factor under 1 + 2^-41 (exponent at most 745 with relative error 2^-52, then exp itself),
        # and each of the additions by 2^-53 of the sum so far.
        self.allowance = float(self.running[-1]) * (2.0**-40 + len(levels) * 2.0**-51)
        if rest is not None:
            self.allowance += _at_most(rest, int(self.least), rate)

    def one(self, source: Source) -> int:
        """Draw what ``sample`` would draw first, from the same word."""
        drawn = int(words(source, 1)[0])
        target = drawn * 2.0**-WORD * self.running[-1]
        at = min(int(self.running.searchsorted(target, side="right")), len(self.running) - 1)
        near = abs(self.running[at] - target) <= self.allowance
        if near or (at > 0 and abs(self.running[at - 1] - target) <= self.allowance):
            return self._settle(Uniform(source, drawn, WORD))
        return at

    def sample(self, source: Source, size: int) -> Integers:
        drawn = words(source, size)
        target = drawn * 2.0**-WORD * self.running[-1]
        at = np.minimum(np.searchsorted(self.running, target, side="right"), len(self.running) - 1)
        near = np.abs(self.running[at] - target) <= self.allowance
        near |= (at > 0) & (np.abs(self.running[at - 1] - target) <= self.allowance)
        for index in np.flatnonzero(near):
            at[index] = self._settle(Uniform(source, int(drawn[index]), WORD))
        chosen: Integers = at.astype(np.int64)
        return chosen

    def _settle(self, uniform: Uniform) -> int:
        """The outcome on which U · total falls, where cumulative weights are bracketed ever more closely."""
        steps, counts = self.steps, self.counts
        if self.rest is not None:
            levels, more = self.rest.listed()
            steps, counts = np.concatenate([steps, levels - self.least]), np.concatenate([counts, more])
        while True:
            wide = uniform.bits + _GUARD
            powers = {int(step): exp_minus_bounds(int(step) * self.rate, wide) for step in np.unique(steps)}
            low, high = 0, 0
            lows, highs = [], []
            for step, count in zip(steps.tolist(), counts.tolist(), strict=True):
                low += int(count) * powers[int(step)][0]
                high += int(count) * powers[int(step)][1]
                lows.append(low)
                highs.append(high)
            # outcome j holds where running[j-1] <= U·total < running[j], with U in [value, value + 1) / 2^bits
            least, most = uniform.value * low, (uniform.value + 1) * high
            surely = sum(1 for h in highs if h << uniform.bits <= least)
            perhaps = sum(1 for s in lows if s << uniform.bits < most)
            if surely == perhaps:
                return surely
            uniform.extend()


def _at_most(rest: Rest, least: int, rate: Fraction) -> float:
    """Bound the weight of the whole rest from above: a target this near to a boundary is settled exactly."""
    if rest.level < least:
        raise ParameterError("rest", "nothing that is likelier than what comes first", rest.level)
    exponent = float(min((rest.level - least) * rate, Fraction(700))) * (1 - 2.0**-40)
    return float(rest.count) * math.exp(-exponent) * (1 + 2.0**-40)
