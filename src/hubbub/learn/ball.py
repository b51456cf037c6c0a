"""Rows for linear models: columns to public ranges, rows into a ball together with their intercept.

Privacy:
    Claim: every row is a vector of whole steps of 2^-20 with L2 norm at most 1, whatever its values are.
    Proof: values are cleaned and clipped column by column, shortened to the public norm, and ``blocks.shortened`` cuts
        what is left towards zero and checks the whole numbers themselves.
    Needs: bounds that are public or were paid for.
    Ref: SOUNDNESS 29, 31.
"""

import math
from dataclasses import dataclass

import numpy as np

from hubbub.learn.blocks import parts_of, shortened
from hubbub.learn.cells import Array
from hubbub.learn.steps import BITS, cleaned


@dataclass(frozen=True, slots=True, kw_only=True)
class Ball:
    """How rows come into the ball, and coefficients out of it. All of it is public."""

    low: Array
    high: Array
    norm: float
    """Rows longer than this, after scaling, are shortened."""
    intercept: bool

    @property
    def middle(self) -> Array:
        """What becomes 0: 0 itself where the range has it, so that sparse rows stay sparse; else the range's middle."""
        return np.where((self.low <= 0) & (self.high >= 0), 0.0, self.low + (self.high - self.low) / 2)

    @property
    def unit(self) -> Array:
        """What becomes 1."""
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
        clipped: Array = np.clip(cleaned(x, missing=self.middle), self.low, self.high)
        return clipped

    def rows(self, x: Array) -> Array:
        """Floats that are whole steps of 2^-20, rows of norm at most 1."""
        out = np.empty((len(x), self.width))
        middle, inverse, columns = self.middle, 1 / self.unit, len(self.low)
        for part in parts_of(len(x)):
            scaled = np.array(x[part], dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                whole = np.isfinite(scaled.sum())
            if not whole:
                scaled = cleaned(scaled, missing=middle)
            np.clip(scaled, self.low, self.high, out=scaled)
            scaled -= middle
            scaled *= inverse
            length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
            scaled *= (self.norm / np.maximum(length, self.norm) / self.radius)[:, None]
            block = out[part]
            block[:, :columns] = scaled
            block[:, columns:] = 1 / self.radius
            shortened(block, bits=BITS, weights=None)
        out *= 2.0**-BITS
        return out

    def outside(self, theta: Array) -> tuple[Array, Array]:
        """Coefficients for values as they are, one row a column of ``theta``, and intercepts."""
        width = len(self.low)
        slopes = (theta[:width].T / self.radius) / self.unit
        start = theta[width] / self.radius if self.intercept else np.zeros(theta.shape[1])
        return slopes, np.asarray(start - slopes @ self.middle)
