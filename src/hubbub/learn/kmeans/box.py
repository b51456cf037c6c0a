"""Rows as whole steps within public ends, so that whatever is decided about a row is decided exactly, by it alone.

Which cell a row is in, and which centre is nearest, is decided in whole numbers that 53 bits hold. So it does not
depend on which rows stand beside it, as the last bit of a product of matrices does.
"""

from dataclasses import dataclass

import numpy as np

from hubbub import noise
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import BITS
from hubbub.query.totals import Number

DEEP = 12
"""In more columns than this a grid has too many cells: random directions have fewer."""
_HELD = 51
"""2·d·(2^bits)² stays below 2^53."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The rows of a table in one unit of length for all columns; ``ends`` says how far each reaches on either side."""

    low: Array
    high: Array
    ends: Array
    unit: float
    """The length of one step, in the units of the table."""
    rows: Number
    """Whole numbers within ± ``ends``."""

    @classmethod
    def of(cls, data: Features, low: Array, high: Array) -> "Box":
        half = (high - low) / 2
        most = float(half.max(initial=0.0))
        bits = min(BITS, (_HELD - data.width.bit_length()) // 2)
        ends = np.floor(half / most * (1 << bits)) if most > 0 else np.zeros(len(low))
        middle, side = (low + half).tolist(), np.where(half > 0, half, 1.0).tolist()
        unit = ((data.x.fill_missing(middle) - middle) / side).clip(-1.0, 1.0)
        return cls(
            low=low, high=high, ends=ends, unit=most / (1 << bits) if most > 0 else 1.0,
            rows=(unit * ends.tolist()).truncate(),
        )  # fmt: skip

    def place(self, centres: Array) -> Array:
        """Return points in steps in the units of the table."""
        middle = self.low + (self.high - self.low) / 2
        return np.asarray(np.clip(middle + centres * self.unit, self.low, self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """The same rows seen from fewer directions: sums of their coordinates with signs that were drawn beforehand.

    Distances between rows are kept up to a factor near 1, and a grid of so few dimensions has few cells.
    """

    ends: Array
    shrunk: float
    """A length in steps of the box, for each step here, in the mean over directions."""
    rows: Number
    """Sums of whole numbers with signs are exact in any order; what lies far outside is moved to the ends."""

    @classmethod
    def of(cls, box: Box, *, directions: int) -> "Shadow":
        """Draw signs, which do not depend on the data (SOUNDNESS 29)."""
        width, end = len(box.ends), float(1 << (BITS - 1))
        signs = 2.0 * np.asarray(noise.uniform_below(2, size=width * directions)).reshape(width, directions) - 1.0
        reach = max(1.0, 2.0 * float(np.sqrt((box.ends * box.ends).sum())))
        seen = box.rows.project(signs.tolist()).clip(-reach, reach)
        return cls(
            ends=np.full(directions, end), shrunk=reach / end / float(np.sqrt(width)),
            rows=(seen * (end / reach)).truncate(),
        )  # fmt: skip
