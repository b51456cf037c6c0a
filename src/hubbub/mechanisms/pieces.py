"""A score that is constant on pieces of a range of whole steps: sampled exactly, however long the range."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub import noise
from hubbub.mechanisms.base import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Disjoint runs of steps (some may be empty), each with how many whole levels its score is below zero."""

    starts: Array
    widths: Array
    levels: Array

    def choose(self, rate: Fraction) -> int:
        """A step with probability exactly proportional to exp(-rate · level of its piece)."""
        at = noise.choice(levels=self.levels, rate=rate, counts=self.widths)
        return int(self.starts[at]) + noise.uniform_within(int(self.widths[at]))

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
