"""The part that each set of columns adds to the smaller sets: contrasts with whole entries, and their measurement."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.errors import CapacityError
from hubbub.privacy.sensitivity import Neighbors, Sensitivity
from hubbub.publish.marginals.records import Axes, DenseRecords, MarginalSource
from hubbub.publish.strategies.layer import Array, Shape, check_cells, fits_int64
from hubbub.publish.terms import Contribution

_GRID = 1 << 7


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """n - 1 rows over n values; together with the row of ones they determine every value.

    Rows are orthogonal, and all columns have the same length, but for rounding to whole numbers; bounds and inverse
    are those of the rounded matrix.
    """

    matrix: Array
    """Whole numbers, (n - 1) × n."""
    inverse: Array
    """Of the ones above the matrix: column 0 gives the values that the total stands for, the others those of a row."""
    spread: Array
    """For each value, the square of column 0 and the sum of squares of the others: n × 2."""
    squares: int
    """The greatest squared length of a column."""
    least_product: int
    """Of two columns, which may be the same."""
    column_l1: int
    largest: int
    """Absolute entry."""


@lru_cache(maxsize=1024)
def contrast(n: int) -> Contrast:
    """For two values exactly 1, -1; for more on a grid of a power of two."""
    grid = math.sqrt(2) if n == 2 else _GRID
    matrix = np.rint(_splits(n) * grid).astype(np.int64)
    square = np.vstack([np.ones((1, n), dtype=np.int64), matrix])
    inverse = np.linalg.inv(square.astype(float))
    gram = matrix.T.astype(float) @ matrix.astype(float)  # exact: whole numbers, and their sums, far below 2^53
    return Contrast(
        matrix=matrix,
        inverse=inverse,
        spread=np.stack([inverse[:, 0] ** 2, (inverse[:, 1:] ** 2).sum(axis=1)], axis=1),
        squares=int(gram.diagonal().max()),
        least_product=int(gram.min()),
        column_l1=int(np.abs(matrix).sum(axis=0).max(initial=0)),
        largest=int(np.abs(matrix).max(initial=0)),
    )


@lru_cache(maxsize=1024)
def orthonormal(n: int) -> Array:
    """The ones and the contrasts as an orthonormal matrix of floats: for what comes after the noise."""
    return np.vstack([np.full((1, n), 1 / math.sqrt(n)), _splits(n)])


def _splits(n: int) -> Array:
    """Halves against halves (Haar's rows, for any n): as short as all orthonormal contrasts, and with few entries."""
    rows = np.zeros((n - 1, n))
    parts, row = [(0, n)], 0
    while parts:
        low, high = parts.pop()
        if high - low < 2:
            continue
        middle = (low + high + 1) // 2
        left, right = middle - low, high - middle
        rows[row, low:middle] = math.sqrt(right / (left * (left + right)))
        rows[row, middle:high] = -math.sqrt(left / (right * (left + right)))
        row += 1
        parts += [(middle, high), (low, middle)]
    return rows


_EXACT_FLOAT = 1 << 53
MOST_CELLS = 1 << 26
"""Of a whole domain that is made in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """For every set of columns, the product of their contrasts applied to its marginal, times a whole ``scale``.

    The scales are how the price is divided: all numbers get noise of one law, so a set with a larger scale is measured
    the better. The empty set is the number of rows.

    Privacy:
        Claim: ``reach`` bounds the change for rows that a unit adds, removes or replaces.
        Proof: a row moves the numbers of a set by the product of one column from each contrast, whose L1 and squared L2
            norms are the products of theirs; ``total`` rows move them by at most ``total`` times that (triangle).
            Replacing a row by another: ‖a - b‖² = ‖a‖² + ‖b‖² - 2⟨a, b⟩, and ⟨a, b⟩ is the product of one inner
            product from each contrast, all of which lie between ``least_product`` and ``squares``. Rows of the two
            units are paired; those left over move no more than ‖a‖². Squares of sets add up. All of it in whole
            numbers, of the very matrices that are applied.
        Needs: exact application (``apply``); rows bounded per unit before they are counted, in each marginal.
        Ref: Xiao, He, Zhang, Kifer 2023 (ResidualPlanner), with independent noise on orthogonal contrasts.
    """

    shape: Shape
    sets: tuple[Axes, ...]
    scales: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(coefficients(self.shape, one) for one in self.sets)

    def apply(self, cells: Array | MarginalSource) -> Array:
        source = DenseRecords(check_cells(cells, self.shape)) if isinstance(cells, np.ndarray) else cells
        if source.shape != self.shape:
            raise TypeError(f"counts over {self.shape} are needed, not over {source.shape}")
        rows = source.rows
        parts = [self._part(source, one, scale, rows) for one, scale in zip(self.sets, self.scales, strict=True)]
        return np.concatenate(parts)

    def _part(self, source: MarginalSource, one: Axes, scale: int, rows: int) -> Array:
        """In floats while every partial sum is a whole number below 2^53, in 64 bits or in any number of them beyond.

        All three are exact, so which one is taken changes the time and nothing else.
        """
        largest = math.prod(contrast(self.shape[axis]).largest for axis in one)
        matrices = [contrast(self.shape[axis]).matrix for axis in one]
        counts = source.marginal(one)
        if not fits_int64(most=max(rows, 1), row_l1=largest * scale):
            return along(counts.astype(object), [matrix.astype(object) for matrix in matrices]).reshape(-1) * scale
        if rows * largest < _EXACT_FLOAT:
            exact = along(counts.astype(float), [matrix.astype(float) for matrix in matrices])
            return exact.reshape(-1).astype(np.int64) * scale
        return along(counts.astype(np.int64), matrices).reshape(-1) * scale

    def transpose(self, values: Array) -> Array:
        refuse_large(self.shape)
        out = np.zeros(self.shape)
        flat = np.asarray(values, dtype=float)
        for (one, part), scale in zip(self.blocks(flat), self.scales, strict=True):
            spread = along(part * scale, [contrast(self.shape[axis]).matrix.T.astype(float) for axis in one])
            out += spread.reshape([n if axis in one else 1 for axis, n in enumerate(self.shape)])
        return out

    def blocks(self, flat: Array) -> Iterator[tuple[Axes, Array]]:
        """The numbers of each set, in the shape of its contrasts."""
        start = 0
        for one in self.sets:
            size = coefficients(self.shape, one)
            yield one, flat[start : start + size].reshape([self.shape[axis] - 1 for axis in one])
            start += size

    def reach(self, one: Contribution) -> Sensitivity:
        replaced = one.neighbors is not Neighbors.ADD_REMOVE
        squares = sum(
            scale**2 * (_most_replaced(self.shape, held) if replaced else _most_added(self.shape, held))
            for held, scale in zip(self.sets, self.scales, strict=True)
        )
        absolute = sum(scale * column_l1(self.shape, held) for held, scale in zip(self.sets, self.scales, strict=True))
        return Sensitivity(
            l1=Fraction((2 if replaced else 1) * one.total * absolute), l2_squared=Fraction(one.total**2 * squares)
        )


def column_l1(shape: Shape, one: Axes) -> int:
    """The greatest absolute sum of a column of a set's residuals."""
    return math.prod(contrast(shape[axis]).column_l1 for axis in one)


def _most_added(shape: Shape, one: Axes) -> int:
    return math.prod(contrast(shape[axis]).squares for axis in one)


def _most_replaced(shape: Shape, one: Axes) -> int:
    low, high = 1, 1
    for axis in one:
        found = contrast(shape[axis])
        ends = [a * b for a in (low, high) for b in (found.least_product, found.squares)]
        low, high = min(ends), max(ends)
    squares = _most_added(shape, one)
    return max(squares, 2 * squares - 2 * low)


def squares_of(shape: Shape, one: Axes, neighbors: Neighbors) -> int:
    """The square of the reach of one row in a set's residuals, at scale 1."""
    return _most_added(shape, one) if neighbors is Neighbors.ADD_REMOVE else _most_replaced(shape, one)


def coefficients(shape: Shape, one: Axes) -> int:
    """Return the number of coefficients of a set."""
    return math.prod(shape[axis] - 1 for axis in one)


def below(workload: Iterable[Axes], shape: Shape) -> tuple[Axes, ...]:
    """All subsets of the sets of a workload that add anything: columns of one value do not."""
    found = {
        part
        for one in workload
        for length in range(len(one) + 1)
        for part in itertools.combinations(one, length)
        if all(shape[axis] > 1 for axis in part)
    }
    return tuple(sorted(found, key=lambda part: (len(part), part)))


def along(values: Array, matrices: Sequence[Array]) -> Array:
    """A matrix along each axis of an array."""
    for matrix in matrices:
        values = np.tensordot(values, matrix, axes=([0], [1]))
    return np.asarray(values)


def refuse_large(shape: Shape) -> None:
    """Before cells are made of marginals."""
    if math.prod(shape) > MOST_CELLS:
        raise CapacityError(f"The domain has {math.prod(shape):.3g} cells. Ask for marginals of it instead.")
