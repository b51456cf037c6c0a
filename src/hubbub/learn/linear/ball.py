"""Rows for linear models: columns to public ranges, rows into a ball together with their intercept.

Privacy:
    Claim: every row is a vector of whole steps of 2^-20 with L2 norm at most 1, whatever its values are.
    Proof: values are cleaned and clipped column by column, shortened to the public norm, and ``Number.shorten`` cuts
        what is left towards zero and checks the whole numbers themselves.
    Needs: bounds that are public or were paid for.
    Ref: SOUNDNESS 29, 31.
"""

import math
from dataclasses import dataclass

import numpy as np

from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import BITS, fill_missing
from hubbub.query.totals import beside, combine, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Ball:
    """The map of rows into the ball, and of coefficients out of it. All of it is public."""

    low: Array
    high: Array
    norm: float
    """Rows longer than this, after scaling, are shortened."""
    intercept: bool

    @property
    def middle(self) -> Array:
        """Return what becomes 0: 0 where the range has it, so that sparse rows stay sparse; else the range's middle."""
        return np.where((self.low <= 0) & (self.high >= 0), 0.0, self.low + (self.high - self.low) / 2)

    @property
    def unit(self) -> Array:
        """Return the distance from the middle that becomes 1."""
        far = np.maximum(np.abs(self.low - self.middle), np.abs(self.high - self.middle))
        return np.where(far > 0, far, 1.0)

    @property
    def radius(self) -> float:
        """With the intercept, which is a column of ones."""
        return math.sqrt(self.norm**2 + self.intercept)

    @property
    def width(self) -> int:
        return len(self.low) + self.intercept

    def inside(self, x: Array) -> Array:
        """Values within their ranges; what is no number, at the middle."""
        clipped: Array = np.clip(fill_missing(x, missing=self.middle), self.low, self.high)
        return clipped

    def rows(self, data: Features) -> Array:
        """Return floats that are whole steps of 2^-20, rows of norm at most 1."""
        middle, unit = self.middle.tolist(), (1 / self.unit).tolist()
        scaled = (data.x.fill_missing(middle).clip(self.low.tolist(), self.high.tolist()) - middle) * unit
        length = (scaled * scaled).added().sqrt()
        shorter = scaled * (number(self.norm) / combine("greatest", length, self.norm) / self.radius)
        whole = (beside(shorter, 1 / self.radius) if self.intercept else shorter).shorten(bits=BITS)
        return data.here.arrays.rows(whole * 2.0**-BITS)

    def outside(self, theta: Array) -> tuple[Array, Array]:
        """Coefficients for values as they are, one row a column of ``theta``, and intercepts."""
        width = len(self.low)
        slopes = (theta[:width].T / self.radius) / self.unit
        start = theta[width] / self.radius if self.intercept else np.zeros(theta.shape[1])
        return slopes, np.asarray(start - slopes @ self.middle)
