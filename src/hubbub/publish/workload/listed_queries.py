"""Workloads without structure: queries that somebody listed, as boxes or as a matrix."""

import math
from dataclasses import dataclass

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.workload.gram import Dense, Kronecker
from hubbub.publish.workload.workload import Factors

_BATCH = 1 << 22
"""Numbers of queries that are written out at a time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explicit:
    """A matrix with a row a query; cells of several dimensions lie in a row."""

    matrix: Array
    shape: Shape = ()
    """One axis where left out."""

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=float)
        if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
            raise ParameterError("matrix", "numbers in rows and columns", matrix.shape)
        matrix.flags.writeable = False
        shape = self.shape or (matrix.shape[1],)
        if math.prod(shape) != matrix.shape[1]:
            raise ParameterError("shape", f"of {matrix.shape[1]} cells", shape)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "shape", shape)

    @property
    def count(self) -> int:
        return len(self.matrix)

    @property
    def axes(self) -> int:
        return 0

    @property
    def gram(self) -> tuple[Kronecker, ...]:
        return (Kronecker(factors=(Dense(entries=self.matrix.T @ self.matrix),)),)

    def answers(self, cells: Array) -> Array:
        rest = cells.shape[len(self.shape) :]
        found: Array = np.tensordot(self.matrix, cells.reshape(self.matrix.shape[1], *rest), axes=1)
        return found

    def rows(self, places: Array) -> Array:
        found: Array = self.matrix[np.asarray(places)]
        return found.reshape(-1, *self.shape)

    def worst(self, covariance: Factors) -> float:
        return _greatest(self.matrix.reshape(-1, *self.shape), covariance)

    def spreads(self, covariance: Array) -> Array:
        """For products: the matrix is along one axis."""
        found: Array = np.einsum("qi,ij...,qj->q...", self.matrix, covariance, self.matrix, optimize=True)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boxes:
    """Ranges along every axis at once: from ``lows`` up to, but not including, ``highs``; a row a box."""

    shape: Shape
    lows: Array
    highs: Array

    def __post_init__(self) -> None:
        lows, highs = (np.array(ends, dtype=np.int64).reshape(-1, len(self.shape)) for ends in (self.lows, self.highs))
        if lows.shape != highs.shape or not len(lows) or (lows < 0).any() or (lows >= highs).any():
            raise ParameterError("lows", "at least 0 and below highs, a row a box", lows.shape)
        if (highs > np.array(self.shape)).any():
            raise ParameterError("highs", f"within {self.shape}", int(highs.max()))
        for name, ends in (("lows", lows), ("highs", highs)):
            ends.flags.writeable = False
            object.__setattr__(self, name, ends)

    @property
    def count(self) -> int:
        return len(self.lows)

    @property
    def axes(self) -> int:
        return 0

    @property
    def gram(self) -> tuple[Kronecker, ...]:
        total = np.zeros((math.prod(self.shape),) * 2)
        for places in batches(self.count, math.prod(self.shape)):
            rows = self.rows(places).reshape(len(places), -1)
            total += rows.T @ rows
        return (Kronecker(factors=(Dense(entries=total),)),)

    def answers(self, cells: Array) -> Array:
        """From sums over all boxes that start at the corner: 2^d of them a box."""
        up_to = np.asarray(cells)
        for axis in range(len(self.shape)):
            up_to = np.insert(np.cumsum(up_to, axis=axis), 0, 0, axis=axis)
        found = np.zeros(self.count, dtype=up_to.dtype)
        for corner in np.ndindex(*(2,) * len(self.shape)):
            ends = np.where(np.array(corner, dtype=bool), self.highs, self.lows)
            found = found + (-1) ** (len(corner) - sum(corner)) * up_to[tuple(ends.T)]
        return found

    def rows(self, places: Array) -> Array:
        wanted = np.asarray(places)
        found = np.ones((len(wanted), *(1 for _ in self.shape)), dtype=bool)
        for axis, length in enumerate(self.shape):
            line = np.arange(length)
            within = (line >= self.lows[wanted, axis, np.newaxis]) & (line < self.highs[wanted, axis, np.newaxis])
            lengths = [1] * len(self.shape)
            lengths[axis] = length
            found = found & within.reshape(len(wanted), *lengths)
        return found.astype(float)

    def worst(self, covariance: Factors) -> float:
        parts = batches(self.count, math.prod(self.shape))
        return max(_greatest(self.rows(places), covariance) for places in parts)


def batches(count: int, cells: int) -> list[Array]:
    """Places of queries, so many at a time that they can be written out."""
    step = max(1, _BATCH // cells)
    return [np.arange(first, min(first + step, count)) for first in range(0, count, step)]


def variances(queries: Array, covariance: Factors) -> Array:
    """qᵀCq of each, with C applied axis by axis, or to all cells in a row."""
    rows = queries if len(covariance) == queries.ndim - 1 else queries.reshape(len(queries), -1)
    moved = rows
    for axis, one in enumerate(covariance, start=1):
        if not isinstance(one, int):
            moved = np.moveaxis(np.tensordot(moved, one, axes=(axis, 0)), -1, axis)
    found: Array = np.sum((rows * moved).reshape(len(rows), -1), axis=1)
    return found


def _greatest(queries: Array, covariance: Factors) -> float:
    return float(np.max(variances(queries, covariance)))
