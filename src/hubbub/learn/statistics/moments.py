"""Noisy means and variances of columns, and a noisy second-moment matrix: exact whole numbers, measured once.

Privacy:
    Claim: adding or removing a unit moves the measured vector by at most the stated L1 and L2 norms.
    Proof: a row is shortened to the ball, multiplied by the root of its weight and cut towards zero, and its whole
        numbers p are checked to have ‖p‖² <= weight·2^2b; so a unit adds a positive semidefinite matrix of trace at
        most most·2^2b. Its Frobenius norm is no larger than its trace. The measured vector has the diagonal, times a,
        and what lies above it, times c, with c² <= 2a²: its square is at most a² times that of the Frobenius norm.
        Its L1 norm: what a row puts above the diagonal is (‖p‖₁² − ‖p‖₂²)/2 in sum, and ‖p‖₁² <= width·‖p‖₂².
    Needs: products of whole numbers below 2^53 in every partial sum, so that floating point adds them exactly.
    Ref: Dwork, Talwar, Thakurta, Zhang 2014 (Analyze Gauss); SOUNDNESS 29.

What lies off the diagonal appears twice in the matrix and is measured once with weight √2 (almost: 41/29): for the same
privacy its noise has half the variance.

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
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.totals import Number, SumsRequest, beside

GRAM_BITS = 16
FROBENIUS = (29, 41)
"""Weights of the diagonal and of the rest: 41² = 1681 <= 1682 = 2·29²."""
EVEN = (1, 1)
"""The same in L1, where nothing is to be gained by weights."""
NARROW = 1 << 57
"""41 times any sum below this fits into 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GramMatrix:
    """A symmetric matrix of noisy sums of products, in the units of the rows, and how noisy it is."""

    matrix: Array
    beside: float
    """The standard deviation of the noise of an entry off the diagonal."""
    on_diagonal: float

    @property
    def spread(self) -> float:
        """About half of the noise's largest eigenvalue: beside·√width."""
        return self.beside * float(np.sqrt(len(self.matrix)))


def products(rows: Number, data: Features, *, bits: int = GRAM_BITS) -> SumsRequest:
    """Ask for Σ p pᵀ in whole numbers, with p the row, shortened to length 1, times the root of its weight."""
    return SumsRequest(values=rows.shorten(bits=bits, weight=data.weight), products=True, bits=bits)


def reach_of_products(*, width: int, most: int, weights: tuple[int, int], bits: int = GRAM_BITS) -> Sensitivity:
    """Return how far one unit can move the weighted upper triangle, in steps."""
    diagonal, beside = weights
    trace = most << 2 * bits
    l1 = diagonal * trace + -(-beside * trace * (width - 1) // 2)
    return Sensitivity(l1=Fraction(l1), l2_squared=Fraction((diagonal * trace) ** 2), linf=Fraction(diagonal * trace))


def triangle(total: Array, *, weights: tuple[int, int]) -> Array:
    """Return the diagonal and what is above it as one vector, weighted, without overflow."""
    width = len(total)
    if total.dtype != object and np.abs(total).max(initial=0) >= NARROW:
        total = total.astype(object)
    each = np.full((width, width), weights[1], dtype=total.dtype)
    np.fill_diagonal(each, weights[0])
    weighted: Array = (total * each)[np.triu_indices(width)]
    return weighted


def foresee_deviation(*, width: int, most: int, tuition: Tuition, share: Fraction) -> float:
    """Return the deviation of an entry off the diagonal before anything is measured, for rows of length at most 1."""
    weights = EVEN if tuition.rho is None else FROBENIUS
    mechanism = tuition.additive(share, reach_of_products(width=width, most=most, weights=weights))
    return mechanism.standard_deviation / (weights[1] << 2 * GRAM_BITS)


def measure_products(
    rows: Number, data: Features, *, radius: float, tuition: Tuition, share: Fraction, label: str = "products"
) -> GramMatrix:
    """Measure Σ x xᵀ over rows that come as x / radius and are shortened to length 1; a row counts for its weight."""
    width = rows.width or 1
    weights = EVEN if tuition.rho is None else FROBENIUS
    reach = reach_of_products(width=width, most=data.most, weights=weights)
    mechanism = tuition.additive(tuition.spend(share), reach)
    sealed = data.add_up(products(rows, data)).map(lambda exact: triangle(exact[0], weights=weights))
    step = Fraction(1, 1 << 2 * GRAM_BITS)
    noisy = np.asarray(tuition.measure(mechanism, sealed, reach, grid=step, label=label), dtype=np.float64)
    unit = radius * radius
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = noisy * unit
    diagonal = np.diag(matrix) / weights[0]
    matrix = (matrix + matrix.T) / weights[1]
    np.fill_diagonal(matrix, diagonal)
    spread = mechanism.standard_deviation * float(step) * unit
    return GramMatrix(matrix=matrix, beside=spread / weights[1], on_diagonal=spread / weights[0])


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
