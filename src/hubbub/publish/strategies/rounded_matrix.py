"""Matrices of reals, rounded to a grid and used as whole numbers from there on: applied, bounded and inverted.

What is measured is the rounded matrix, so rounding costs a little accuracy and no privacy at all.
"""

import hashlib
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.errors import ParameterError
from hubbub.privacy.sensitivity import Neighbors, Sensitivity
from hubbub.publish.strategies.layer import Array, Shape, check_cells, fits_int64, refuse_overflow
from hubbub.publish.terms import Contribution

_EXACT_FLOATS = 1 << 53
_BITS = 63
_LEAST_DIGIT = 12
"""Bits of a cell that are at least applied at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded:
    """Whole entries, and their exact norms. Equal where all entries are."""

    entries: Array = field(compare=False, repr=False)
    column_l1: int = field(init=False)
    column_squares: int = field(init=False)
    row_l1: int = field(init=False)
    digest: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        entries = np.array(self.entries)
        if entries.dtype.kind not in "iu" or entries.ndim != 2 or not entries.size:
            raise TypeError(f"a matrix of whole numbers is needed, not {entries.dtype} of shape {entries.shape}")
        entries = entries.astype(np.int64)
        largest = max(int(entries.max()), -int(entries.min()), 1)
        # Every sum below, in whatever order, stays within what floats and 64 bits hold exactly.
        if largest**2 * max(entries.shape) >= _EXACT_FLOATS:
            raise refuse_overflow("A rounded matrix")
        entries.flags.writeable = False
        sizes = np.abs(entries)
        named = f"{entries.shape}".encode() + np.ascontiguousarray(entries).astype("<i8").tobytes()
        object.__setattr__(self, "entries", entries)
        object.__setattr__(self, "digest", hashlib.sha256(named).hexdigest())
        object.__setattr__(self, "column_l1", int(sizes.sum(axis=0).max()))
        object.__setattr__(self, "row_l1", int(sizes.sum(axis=1).max()))
        object.__setattr__(self, "column_squares", int((entries**2).sum(axis=0).max()))
        if self.column_squares * max(entries.shape) >= 1 << _BITS - 2:
            raise refuse_overflow("The product of a rounded matrix with itself")

    @classmethod
    def of(cls, matrix: Array, *, bits: int) -> "Rounded":
        """To the nearest multiples of 2^-bits."""
        return cls(entries=np.rint(np.ldexp(matrix, bits)).astype(np.int64))

    @classmethod
    def with_even_columns(cls, matrix: Array, *, bits: int) -> "Rounded":
        """[diagonal; rest] with columns of L1 norm 1: the rest is rounded, and the diagonal takes what is left.

        Every column then has the same L1 norm again, 2^bits, and none pays for another's rounding. Rows of zeros go;
        where only the diagonal is left, it is 1: noise on a grid of 1 varies a little less than on a finer one.
        """
        columns = matrix.shape[1]
        rest = np.rint(np.ldexp(matrix[columns:], bits)).astype(np.int64)
        rest = rest[np.any(rest, axis=1)]
        if not len(rest):
            return cls(entries=np.eye(columns, dtype=np.int64))
        left = (1 << bits) - np.abs(rest).sum(axis=0)
        return cls(entries=np.vstack([np.diag(np.maximum(left, 1)), rest]))

    @property
    def gram(self) -> Array:
        """AᵀA in whole numbers. Floats hold every partial sum exactly (see the check above), and are faster."""
        return _gram(self)

    @property
    def inverse(self) -> Array:
        """(AᵀA)⁻¹: the covariance of least squares where the noise has variance 1."""
        return _inverse(self)

    @property
    def solution(self) -> Array:
        """(AᵀA)⁻¹Aᵀ: cells from measurements, by least squares."""
        return _solution(self)


@lru_cache(maxsize=16)
def _gram(matrix: Rounded) -> Array:
    floats = matrix.entries.astype(float)
    product: Array = floats.T @ floats
    return product.astype(np.int64)


@lru_cache(maxsize=16)
def _inverse(matrix: Rounded) -> Array:
    return _solve(matrix, np.eye(matrix.entries.shape[1]))


@lru_cache(maxsize=16)
def _solution(matrix: Rounded) -> Array:
    return _solve(matrix, matrix.entries.T.astype(float))


def _solve(matrix: Rounded, right: Array) -> Array:
    from scipy.linalg import cho_factor, cho_solve  # late: it takes longer to load than all of ours

    try:
        whole: Array = cho_solve(cho_factor(matrix.gram.astype(float)), right)
    except np.linalg.LinAlgError:
        raise ParameterError("matrices", "such that cells can be solved for", matrix) from None
    return whole


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Along:
    """A₁⊗A₂⊗… on cells: each matrix along its axis, so that their product is never written out."""

    shape: Shape
    """Of the cells; a single factor takes all of them in a row."""
    factors: tuple[Rounded, ...]

    def __post_init__(self) -> None:
        lengths = tuple(factor.entries.shape[1] for factor in self.factors)
        if lengths not in (self.shape, (math.prod(self.shape),)):
            raise ParameterError("matrices", f"for cells of shape {self.shape}", lengths)
        if not fits_int64(most=1 << _LEAST_DIGIT, row_l1=self._row_l1):
            raise refuse_overflow("A product of rounded matrices")

    @property
    def size(self) -> int:
        return math.prod(factor.entries.shape[0] for factor in self.factors)

    @property
    def _row_l1(self) -> int:
        return math.prod(factor.row_l1 for factor in self.factors)

    def apply(self, cells: Array) -> Array:
        """Exactly. Cells that may leave 64 bits on the way are split into digits that cannot; results are equal."""
        cells = check_cells(cells, self.shape).reshape([factor.entries.shape[1] for factor in self.factors])
        most = max(int(cells.max()), -int(cells.min()))
        if fits_int64(most=most, row_l1=self._row_l1):
            return self._within(cells.astype(np.int64))
        digits = _BITS - self._row_l1.bit_length()
        wide = cells.astype(object)
        total, place = np.zeros(self.size, dtype=object), 0
        while np.any(wide):
            low = np.asarray(wide & ((1 << digits) - 1) if most >> place >= 1 << digits else wide)
            total = total + (self._within(low.astype(np.int64)).astype(object) << place)
            wide, place = (wide - low) >> digits, place + digits
        return total

    def _within(self, cells: Array) -> Array:
        for axis, factor in enumerate(self.factors):
            moved = np.moveaxis(cells, axis, 0)
            product = factor.entries @ moved.reshape(len(moved), -1)
            cells = np.moveaxis(product.reshape(-1, *moved.shape[1:]), 0, axis)
        return cells.reshape(-1)

    def transpose(self, values: Array) -> Array:
        shaped = np.asarray(values, dtype=float).reshape([factor.entries.shape[0] for factor in self.factors])
        return along_axes(shaped, [factor.entries.T.astype(float) for factor in self.factors]).reshape(self.shape)

    def reach(self, one: Contribution) -> Sensitivity:
        """Exact norms of the whole matrix; of several cells a unit, a bound that uses how columns overlap.

        Privacy:
            Claim: neighbours are at most so far apart in A·x, in L1 and in L2.
            Proof: norms of the columns of a Kronecker product are products of norms. For L2, with X = AᵀA and c >= 0 a
                unit's cells, ‖Ac‖² = Σ c_i·(Xc)_i <= total · max_i max_c (Xc)_i, and (Xc)_i is greatest where c fills
                the greatest positive entries of a row of X; over several axes by the triangle inequality. One cell
                against another: ‖k·A_i - l·A_j‖² is convex in (k, l), hence greatest at ends, for a pair of columns.
            Needs: whole entries, which ``Rounded`` has.
            Ref: Li, Miklau, Hay, McGregor, Rastogi 2015.
        """
        column_l1 = math.prod(factor.column_l1 for factor in self.factors)
        squares = one.total**2 * math.prod(factor.column_squares for factor in self.factors)
        if one.cells > 1 and len(self.factors) == 1:
            squares = min(squares, one.total * _fullest(self.factors[0].gram, one))
        if one.neighbors is Neighbors.ADD_REMOVE:
            return one.through(column_l1=column_l1, squares=squares, signed=False)
        signed = any(bool((factor.gram < 0).any()) for factor in self.factors)
        found = one.through(column_l1=column_l1, squares=squares, signed=signed)
        if one.cells > 1 or len(self.factors) > 1:
            return found
        return Sensitivity(l1=found.l1, l2_squared=Fraction(one.each**2 * _apart(self.factors[0].gram)))


def along_axes(values: Array, matrices: list[Array], *, first: int = 0) -> Array:
    """Each matrix along its axis, in floating point; ``first`` is the axis of the first."""
    for axis, matrix in enumerate(matrices, start=first):
        values = np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)
    return values


def _fullest(gram: Array, one: Contribution) -> int:
    """The greatest (Xc)_i that a unit's cells can have in any row."""
    full, rest = divmod(one.total, one.each)
    held = min(full + (rest > 0), one.cells, len(gram))
    top = -np.sort(-np.maximum(gram, 0), axis=1)[:, :held]
    sums = top[:, :full].sum(axis=1)
    last = top[:, full] if held > full else np.zeros(len(top), dtype=np.int64)
    return max(one.each * int(whole) + rest * int(part) for whole, part in zip(sums, last, strict=True))


def _apart(gram: Array) -> int:
    """The greatest squared distance of two columns, or of one from nothing."""
    own = np.diagonal(gram)
    return max(int((own[:, np.newaxis] + own - 2 * gram).max()), int(own.max()))
