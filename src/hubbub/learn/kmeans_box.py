"""Rows as whole steps within public ends, so that whatever is decided about a row is decided exactly, by it alone.

Which cell a row is in, and which centre is nearest, is decided in whole numbers that 53 bits hold. So it does not
depend on which rows stand beside it, as the last bit of a product of matrices does.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hubbub import noise
from hubbub.errors import NotAllowed
from hubbub.learn.asked import Asked
from hubbub.learn.blocks import parts_of
from hubbub.learn.cells import Array
from hubbub.learn.steps import BITS, scaled

DEEP = 12
"""In more columns than this a grid has too many cells: random directions have fewer."""
_HELD = 51
"""2·d·(2^bits)² stays below 2^53."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The rows of a table in one unit of length for all columns; ``ends`` says how far each reaches on either side."""

    x: Array | Asked
    low: Array
    high: Array
    ends: Array
    unit: float
    """The length of one step, in the units of the table."""

    @classmethod
    def of(cls, x: Array | Asked, low: Array, high: Array) -> "Box":
        half = (high - low) / 2
        most = float(half.max(initial=0.0))
        bits = min(BITS, (_HELD - int(x.shape[1]).bit_length()) // 2)
        ends = np.floor(half / most * (1 << bits)) if most > 0 else np.zeros(len(low))
        return cls(x=x, low=low, high=high, ends=ends, unit=most / (1 << bits) if most > 0 else 1.0)

    @property
    def middle(self) -> Array:
        middle: Array = self.low + (self.high - self.low) / 2
        return middle

    @property
    def count(self) -> int:
        return len(self.x)

    def rows(self, part: slice) -> Array:
        """Whole numbers within ± ``ends``, as floats."""
        assert not isinstance(self.x, Asked)
        return np.asarray(np.trunc(scaled(self.x[part], self.low, self.high) * self.ends))

    def placed(self, centres: Array) -> Array:
        """Points in steps, in the units of the table."""
        return np.asarray(np.clip(self.middle + centres * self.unit, self.low, self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """The same rows seen from fewer directions: sums of their coordinates with signs that were drawn beforehand.

    Distances between rows are kept up to a factor near 1, and a grid of so few dimensions has few cells.
    """

    box: Box
    signs: Array
    reach: float
    ends: Array

    @classmethod
    def of(cls, box: Box, *, directions: int) -> "Shadow":
        """Signs do not depend on the data (SOUNDNESS 29)."""
        if isinstance(box.x, Asked):
            raise NotAllowed(f"In an engine a grid has at most {DEEP} columns. Choose some, or fit it on an array.")
        width = len(box.ends)
        signs = 2.0 * np.asarray(noise.uniform_below(2, size=width * directions)).reshape(width, directions) - 1.0
        reach = max(1.0, 2.0 * float(np.sqrt((box.ends * box.ends).sum())))
        return cls(box=box, signs=signs, reach=reach, ends=np.full(directions, float(1 << (BITS - 1))))

    @property
    def count(self) -> int:
        return self.box.count

    @property
    def shrunk(self) -> float:
        """A length in steps of the box, for each step here, in the mean over directions."""
        return self.reach / float(self.ends[0]) / float(np.sqrt(len(self.box.ends)))

    def rows(self, part: slice) -> Array:
        """Sums of whole numbers with signs are exact in any order; what lies far outside is moved to the ends."""
        seen = np.clip(self.box.rows(part) @ self.signs, -self.reach, self.reach)
        return np.asarray(np.trunc(seen * (self.ends / self.reach)))


def nearest(rows: Array, centres: Array) -> Array:
    """The first of the nearest centres of each row, in exact whole numbers."""
    return np.asarray(((centres * centres).sum(axis=1) - 2.0 * (rows @ centres.T)).argmin(axis=1))


def nearest_each(points: Box | Shadow, centres: Array) -> Iterator[tuple[slice, Array, Array]]:
    """Each block of rows with its rows and their nearest centres."""
    steps = np.rint(centres)
    for part in parts_of(points.count):
        rows = points.rows(part)
        yield part, rows, nearest(rows, steps)
