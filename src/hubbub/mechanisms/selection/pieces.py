"""A score that is constant on pieces of a range of whole steps: sampled exactly, however long the range."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub import noise
from hubbub.mechanisms.base import Array
from hubbub.noise.choice import Rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Far:
    """Pieces so far down in level that they are hardly ever chosen, and are made only where one might be."""

    level: int
    """None of them has less."""
    steps: int
    """At least as many as they have together."""
    made: Callable[[], "Pieces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Disjoint runs of steps (some may be empty), each with how many whole levels its score is below zero."""

    starts: Array
    widths: Array
    levels: Array
    far: Far | None = None
    """What else there is, beside these: ``choose`` knows it."""

    def choose(self, rate: Fraction) -> int:
        """A step with probability exactly proportional to exp(-rate · level of its piece)."""
        at, here = noise.choice(levels=self.levels, rate=rate, counts=self.widths, rest=self._rest()), self
        if at >= len(self.starts):
            assert self.far is not None
            at, here = at - len(self.starts), self.far.made()
        return int(here.starts[at]) + noise.uniform_within(int(here.widths[at]))

    def _rest(self) -> Rest | None:
        far = self.far
        if far is None:
            return None

        def list_pieces() -> tuple[Array, Array]:
            made = far.made()
            return made.levels, made.widths

        return Rest(level=far.level, count=far.steps, listed=list_pieces)

    def choose_many(self, rate: Fraction, times: int) -> Array:
        """Independent answers of ``choose``, for audits."""
        drawn = noise.choice(levels=self.levels, rate=rate, counts=self.widths, size=times)
        out: Array = self.starts[drawn]
        for at in np.unique(drawn):
            inside = np.flatnonzero(drawn == at)
            out[inside] += noise.uniform_below(int(self.widths[at]), size=len(inside))
        return out

    def log_mass(self, rate: Fraction, step: int) -> float:
        """ln of the probability that ``choose`` gives ``step``."""
        exponents = -float(rate) * self.levels.astype(np.float64)
        inside = np.flatnonzero((self.starts <= step) & (step < self.starts + self.widths))
        if not len(inside):
            return -math.inf
        with np.errstate(divide="ignore"):
            weights = np.log(self.widths.astype(np.float64)) + exponents
        return float(exponents[inside[0]] - np.logaddexp.reduce(weights))
