"""Linear maps with whole entries: the exact measurements of a vector of cells, before noise is added.

Maps with other entries are rounded to a grid first, and it is the rounded map that is applied, bounded and inverted.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hubbub.errors import CapacityError
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.publish.contribution import Contribution

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
        return one.through(column_l1=1, squares=one.pack(1), signed=False)


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
