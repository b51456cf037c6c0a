"""Contrasts of a column, with its total taken away: whole entries, and their inverse."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hubbub.publish.strategies.layer import Array

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
