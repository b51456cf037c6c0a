"""Bugs in mechanisms: noise that is too small, in the wrong place, or not there where it matters."""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.mechanisms.additive import laplace
from hubbub.mechanisms.additive.laplace import Geometric, TruncatedGeometric
from hubbub.mechanisms.additive.reals import _OnGrid
from hubbub.mechanisms.additive.response import RandomizedResponse
from hubbub.mechanisms.base import Array, settle
from hubbub.mechanisms.integers import off_grid
from hubbub.mechanisms.keys.threshold import KeySelection, LaplaceThreshold
from hubbub.mechanisms.local_sensitivity import distance, smooth
from hubbub.mechanisms.local_sensitivity.propose import StabilityTest
from hubbub.mechanisms.selection.select import _Selection
from hubbub.noise import laws
from hubbub.noise.exact import Exact, exactly, exp_minus
from tests.planted.plant import Caught, Planted, both, in_place, specimen
from tests.query import planted

# Too little noise

_settled = Geometric.__post_init__


def _for_one(self: Geometric) -> None:
    """Noise for a value that moves by 1, whatever it was said to move by."""
    _settled(self)
    settle(self, scale=1 / self.epsilon)


_smooth_bound = distance.quantile_smooth_bound


def _local(steps: Array, rank: int, top: int, *, beta: Fraction, rows: int) -> Fraction:
    """How far one row can move this very answer, and nothing about answers near it."""
    return _smooth_bound(steps, rank, top, beta=Fraction(1000), rows=rows)


def _two_answers(self: RandomizedResponse) -> Exact:
    """e^ε/(e^ε + 1), which is right for two answers and for no more."""
    return exactly(1) / (exactly(1) + exp_minus(self.epsilon))


def _full_rate(self: _Selection) -> Fraction:
    return self.epsilon / math.ceil(self.sensitivity / self.grid)


# In the wrong place


def _rejected(self: TruncatedGeometric, value: int, *, times: int) -> Array:
    """Drawn again until it lies within the ends, instead of put on them."""
    drawn = np.asarray(self._inner.repeat(self._clamp(value), times=times))
    while (outside := (drawn < self.low) | (drawn > self.high)).any():
        drawn[outside] = self._inner.repeat(self._clamp(value), times=int(outside.sum()))
    return drawn


def _renormalised(self: TruncatedGeometric, value: int, output: int) -> float:
    centre, scale = self._clamp(value), self._inner.scale
    logs = [laws.laplace_log_mass(one - centre, scale) for one in range(self.low, self.high + 1)]
    inside = self.low <= output <= self.high
    return laws.laplace_log_mass(output - centre, scale) - float(np.logaddexp.reduce(logs)) if inside else -math.inf


def _raw_and_noisy(self: _OnGrid, value: float, *, times: int) -> Array:
    """Noise on the grid is added to the raw real: the digits below the grid come through."""
    return np.round(value + np.asarray(off_grid(self.steps.repeat(0, times=times), self.grid)), 12)


def _tail(self: LaplaceThreshold, threshold: int) -> Fraction:
    """P(Z >= T), though the unit's key starts at 1 and not at 0."""
    _, high = laws.laplace_tail_exactly(threshold, self.scale).bounds(192)
    return Fraction(high, 1 << 192)


def _one_lower(self: KeySelection, value: Mapping[Any, int]) -> dict[Any, int]:
    noisy = [int(count) + int(extra) for count, extra in zip(value.values(), self.noise_of(len(value)), strict=True)]
    return {key: count for key, count in zip(value, noisy, strict=True) if count >= self.threshold - 1}


# Not there where it matters


def _exact_test(self: StabilityTest, number: int, times: int) -> Array:
    """Stable or not, decided by the data and not by noise."""
    return np.full(times, self._steps(number) >= self.threshold)


_laplace = noise.discrete_laplace


@cache
def _remembered(scale: Fraction, size: int | None) -> Any:
    return _laplace(scale=scale, size=size)


def _reused(*, scale: Fraction, size: int | None = None) -> Any:
    """Drawn once for each scale, and then always the same: sticky noise."""
    return _remembered(scale, size)


def _sampled(value: Array, added: Array) -> Array:
    """Every other unit is counted, twice; the secret sample is thought to be noise enough."""
    counts = np.maximum(np.broadcast_to(value, np.shape(added)), 0).astype(np.int64)
    coins = noise.bernoulli(Fraction(1, 2), size=int(counts.sum()))
    whose = np.repeat(np.arange(counts.size), counts.ravel())
    return 2 * np.bincount(whose, weights=coins, minlength=counts.size).astype(np.int64).reshape(counts.shape)


MECHANISMS = (
    Planted(
        name="wrong sensitivity",
        about="Noise for a value that one unit moves by 1, where it moves it by 2.",
        subject=specimen("geometric, replace-one"),
        patch=in_place(Geometric, "__post_init__", _for_one),
        caught=Caught.MASSES,
    ),
    Planted(
        name="half noise",
        about="The scale of the noise is halved where it is drawn.",
        subject=specimen("geometric"),
        patch=planted.halved_scale,
        caught=Caught.LAW,
    ),
    Planted(
        name="local sensitivity",
        about="Noise in proportion to how far one unit could move this very answer.",
        subject=specimen("smooth median"),
        patch=in_place(smooth, "quantile_smooth_bound", _local),
        caught=Caught.MASSES,
    ),
    Planted(
        name="randomized response for two answers among four",
        about="The chance of the truth is that of a yes or no, and other answers are rarer than that allows.",
        subject=specimen("randomized response"),
        patch=both(
            in_place(RandomizedResponse, "honest", property(_two_answers)),
            in_place(
                RandomizedResponse, "honest_float", property(lambda self: 1 / (1 + math.exp(-float(self.epsilon))))
            ),
        ),
        caught=Caught.MASSES,
    ),
    Planted(
        name="a choice at twice its rate",
        about="The exponential mechanism for scores that all move the same way, used for scores that do not.",
        subject=specimen("exponential"),
        patch=in_place(_Selection, "rate", property(_full_rate)),
        caught=Caught.MASSES,
    ),
    Planted(
        name="truncated noise renormalised",
        about="What falls outside the ends is drawn again: how often that happens depends on the value.",
        subject=specimen("truncated geometric"),
        patch=both(
            in_place(TruncatedGeometric, "repeat", _rejected),
            in_place(TruncatedGeometric, "draw", lambda self, value: int(_rejected(self, value, times=1)[0])),
            in_place(TruncatedGeometric, "log_mass", _renormalised),
        ),
        caught=Caught.MASSES,
    ),
    Planted(
        name="rounding after noise",
        about="A real is rounded once the noise is in, so that its digits below the grid come through.",
        subject=specimen("laplace"),
        patch=both(
            in_place(_OnGrid, "repeat", _raw_and_noisy),
            in_place(_OnGrid, "draw", lambda self, value: float(_raw_and_noisy(self, value, times=1)[0])),
        ),
        caught=Caught.LAW,
    ),
    Planted(
        name="threshold off by one",
        about="The tail of the noise is taken one further out than a key of one unit really has to come.",
        subject=specimen("laplace threshold"),
        patch=in_place(LaplaceThreshold, "_passes", _tail),
        caught=Caught.MASSES,
    ),
    Planted(
        name="at the threshold or one below it",
        about="A key is shown from one below the threshold on: > where >= was meant, the other way round.",
        subject=specimen("truncated threshold"),
        patch=in_place(KeySelection, "draw", _one_lower),
        caught=Caught.LAW,
    ),
    Planted(
        name="a test without noise",
        about="Propose-test-release whose test looks at the data and adds nothing to what it sees.",
        subject=specimen("propose-test-release"),
        patch=in_place(StabilityTest, "passes", _exact_test),
        caught=Caught.LAW,
    ),
    Planted(
        name="noise reused",
        about="The same question gets the same noise again, so that differences of answers are exact.",
        subject=specimen("geometric"),
        patch=in_place(noise, "discrete_laplace", _reused),
        caught=Caught.LAW,
    ),
    Planted(
        name="sampling without noise",
        about="A count of a secret sample, scaled up: nobody is hidden who is not left out.",
        subject=specimen("geometric"),
        patch=in_place(laplace, "exact_sum", _sampled),
        caught=Caught.LAW,
    ),
)
