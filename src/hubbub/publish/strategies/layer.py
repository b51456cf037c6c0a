"""Linear maps with whole entries: the exact measurements of a vector of cells before noise, sums over blocks among
them.

Maps with other entries are rounded to a grid first, and it is the rounded map that is applied, bounded and inverted.

A length of n in m blocks is cut at ⌊i·n/m⌋, so that sizes differ by at most one, any length will do, and the cuts for m
are also cuts for every multiple of m: levels whose numbers of blocks divide each other are nested, and the cells
themselves are nested in all of them. Everything works on whole axes at once, and on leading dimensions beside them.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hubbub.errors import CapacityError
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.publish.terms import Contribution

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
_INT64 = 1 << 63


class Layer(Protocol):
    """One map, all of whose results get noise of the same law."""

    @property
    def size(self) -> int:
        """The number of values that come out."""
        ...

    def apply(self, cells: Array) -> Array:
        """A·x for whole numbers, exactly: a flat array of ``size`` whole numbers."""
        ...

    def transpose(self, values: Array) -> Array:
        """Aᵀ·y, in floating point and in the shape of the cells: for what comes after the noise."""
        ...

    def reach(self, one: Contribution) -> Sensitivity:
        """Bound the distance of neighbours in A·x: L1 and L2 at least, proven."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLayer:
    """The cells themselves."""

    shape: Shape

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def apply(self, cells: Array) -> Array:
        return check_cells(cells, self.shape).reshape(-1)

    def transpose(self, values: Array) -> Array:
        return np.asarray(values, dtype=float).reshape(self.shape)

    def reach(self, one: Contribution) -> Sensitivity:
        """One row a cell: a unit's squares are greatest where it fills as few cells as it may."""
        return one.through(column_l1=1, squares=one.pack(1), signed=False, results=(self.size, one.each))


def check_cells(cells: Array, shape: Shape) -> Array:
    """Whole numbers in the right shape; anything else is a mistake of ours and not of the data."""
    if cells.shape != shape or (cells.dtype.kind not in "iu" and cells.dtype != object):
        raise TypeError(f"whole numbers of shape {shape} are needed, not {cells.dtype} of shape {cells.shape}")
    return cells


def fits_int64(*, most: int, row_l1: int) -> bool:
    """Return True if a map whose rows have this absolute sum stays within 64 bits on cells of at most ``most``."""
    return most * row_l1 < _INT64


def refuse_overflow(what: str) -> CapacityError:
    """For maps that are bounded before anything is read."""
    return CapacityError(f"{what} could leave 64 bits. Use a coarser grid or fewer cells.")


_SLICED = 4
"""Up to so many terms it is quicker to add slices than to add within each block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The cells of each block added up: one number a block."""

    shape: Shape
    parts: Shape
    """How many blocks along each axis."""

    @property
    def size(self) -> int:
        return math.prod(self.parts)

    @property
    def holds(self) -> int:
        """The most cells in a block."""
        return math.prod(-(-length // parts) for length, parts in zip(self.shape, self.parts, strict=True))

    def apply(self, cells: Array) -> Array:
        return gather(exact(check_cells(cells, self.shape), terms=self.holds), self.parts).reshape(-1)

    def transpose(self, values: Array) -> Array:
        return spread(np.asarray(values, dtype=float).reshape(self.parts), self.shape)

    def reach(self, one: Contribution) -> Sensitivity:
        """Each cell lies in one block, and several cells of a unit may lie in the same one.

        Privacy:
            Claim: L1 and L2 for neighbours, as ``Contribution.through``; where there is one block, its L1 is the
                unit's total and L2² its square for both relations.
            Proof: entries are 0 and 1, one of them 1 in each column. A unit's totals over blocks are at most what a
                block holds, and squares are greatest where blocks are filled one after the other
                (``Contribution.pack``). To each block a unit adds between 0 and the most that it may have there.
            Needs: bounds that were enforced on every unit before cells were counted.
            Ref: Hay, Rastogi, Miklau, Suciu 2010 for one cell a unit.
        """
        most = min(one.total, min(self.holds, one.cells) * one.each)
        return one.through(column_l1=1, squares=one.pack(self.holds), signed=False, results=(self.size, most))


def gather(values: Array, parts: Shape) -> Array:
    """Sums over blocks along the last axes, as many as there are ``parts``; exact for whole numbers."""
    for axis, blocks in zip(range(-len(parts), 0), parts, strict=True):
        values = _gather(values, blocks, axis % values.ndim)
    return values


def spread(values: Array, parts: Shape) -> Array:
    """Each number copied to all finer blocks within its block, along the last axes: the transpose of ``gather``."""
    for axis, blocks in zip(range(-len(parts), 0), parts, strict=True):
        coarse = values.shape[axis]
        if coarse == blocks:
            continue
        even = blocks % coarse == 0
        counts = blocks // coarse if even else np.diff(starts(blocks, coarse), append=blocks)
        values = np.repeat(values, counts, axis=axis % values.ndim)
    return values


def starts(length: int, parts: int) -> Array:
    """Return the place where each block begins."""
    found: Array = np.arange(parts, dtype=np.int64) * length // parts
    return found


def exact(cells: Array, *, terms: int) -> Array:
    """Return the cells in arithmetic that cannot wrap when ``terms`` of them are added or subtracted.

    Which arithmetic that is depends on the data and its results do not: they are exact in both.
    """
    if cells.dtype == object or (cells.dtype == np.int64 and terms == 1):
        return cells
    most = max(int(cells.max()), -int(cells.min()))
    return cells.astype(np.int64 if fits_int64(most=most, row_l1=terms) else object, copy=False)


def _gather(values: Array, parts: int, axis: int) -> Array:
    length = values.shape[axis]
    if parts == length:
        return values
    if length % parts:
        total: Array = np.add.reduceat(values, starts(length, parts), axis=axis)
        return total
    each = length // parts
    if each <= _SLICED:
        return _slice(values, each, axis)
    if axis == values.ndim - 1:
        total = np.add.reduceat(values, np.arange(0, length, each), axis=axis)
        return total
    split = (*values.shape[:axis], parts, each, *values.shape[axis + 1 :])
    total = values.reshape(split).sum(axis=axis + 1)
    return total


def _slice(values: Array, each: int, axis: int) -> Array:
    before = (slice(None),) * axis
    total: Array = values[(*before, slice(0, None, each))] + values[(*before, slice(1, None, each))]
    for place in range(2, each):
        total += values[(*before, slice(place, None, each))]
    return total
