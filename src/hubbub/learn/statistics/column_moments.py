"""Noisy means and variances of columns: what standardising needs, and what clipping well needs.

Privacy:
    Claim: the share of the price that is taken.
    Proof: one vector (1, u, 2u² − 1) a row with u ∈ [−1, 1]^width after clipping to public or bought bounds: every
        coordinate lies within [−1, 1], so ``box_sums`` bounds it; the rest is computed from the noisy sums.
    Needs: ``box_sums``.
    Ref: Dwork, McSherry, Nissim, Smith 2006.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_sums import box_sums
from hubbub.learn.tuition import Tuition
from hubbub.query.totals import Number, beside

SLACK = 2.0
"""A variance below so many standard deviations of its own noise is not known, and is taken for that much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Of columns within [−1, 1]."""

    count: float
    """A noisy number of rows, at least 1."""
    mean: Array
    variance: Array
    """Never below what the noise can tell from 0."""
    noise: float
    """The standard deviation of the noise of one mean."""

    @property
    def deviation(self) -> Array:
        return np.sqrt(self.variance)


def widen(units: Number) -> Number:
    """Return (1, u, 2u² − 1)."""
    return beside(1.0, units, units * units * 2.0 - 1.0)


def measure_moments(units: Number, data: Features, *, tuition: Tuition, share: Fraction, label: str) -> Moments:
    """Measure means and variances of rows within [−1, 1]^width."""
    width = units.width or 1
    sums, noise = box_sums(widen(units), data, tuition=tuition, share=share, label=label)
    count = max(1.0, sums[0])
    mean = np.clip(sums[1 : 1 + width] / count, -1.0, 1.0)
    square = np.clip((sums[1 + width :] / count + 1.0) / 2.0, 0.0, 1.0)
    least = min(1.0, max(SLACK * noise, 1.0) / count)
    return Moments(count=count, mean=mean, variance=np.maximum(square - mean * mean, least), noise=noise / count)
