"""The units of the rows: sums over people in which nobody counts for more than a stated number of rows.

Privacy:
    Claim: where every row's vector of whole numbers has norm at most B, adding or removing one unit moves the total by
        at most ``most``·B in that norm, whatever the unit's rows are.
    Proof: a unit with r rows adds S = Σ v if r <= most, and S·most/r with every coordinate cut towards zero if not. In
        the first case ‖S‖ <= r·B <= most·B; in the second ‖S·most/r‖ <= most·B, and cutting coordinates towards zero
        makes no L1, L2 or L∞ norm larger. The total is a sum over units, in exact integers; rows of nobody are left
        out, whatever else the table holds.
    Needs: rows whose norms were bounded one by one; ``units`` that say whose each row is, compared by ``values``.
    Ref: SOUNDNESS 1, 3, 29, 31.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.engines.arrays.engine import weigh_rows
from hubbub.learn.statistics.cells import Array, column
from hubbub.learn.statistics.labels import values_of
from hubbub.parameters import whole

MOST_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """The owners of the rows of one table. Without ``units`` every row is a person's only one."""

    rows: int
    units: Array | None = None
    """A code from 0 on for each row; −1 for rows of nobody, which count nowhere."""
    most: int = 1
    """A unit counts for at most so many rows: those of a unit with more share this weight evenly."""

    @classmethod
    def of(cls, groups: Any, *, rows: int, most: int = 1) -> "Crowd":
        """Read the ids that a user gave; rows without one that has a value (None, NaN, an object) are nobody's."""
        held = whole("max_rows", most, least=1, most=MOST_ROWS)
        if groups is None:
            return cls(rows=rows, most=1)
        return cls(rows=rows, units=_code_units(column(groups, name="groups", rows=rows)), most=held)

    @property
    def count(self) -> int:
        """Count the units: data, so for what is measured and nothing else."""
        return self.rows if self.units is None else int(self.units.max(initial=-1)) + 1

    @property
    def weights(self) -> Array:
        """Return each row's weight, rounded down: a unit's weights sum to at most ``most``, and none is above 1."""
        return np.ones(self.rows) if self.units is None else weigh_rows(self.units, most=self.most)

    def each(self, parts: Array) -> Array:
        """Return what each unit adds, one row a unit, exactly."""
        if parts.dtype.kind != "i" or parts.shape[:1] != (self.rows,):
            raise TypeError(f"whole numbers for {self.rows} rows are needed, not {parts.dtype} {parts.shape}")
        if self.units is None:
            return parts
        sums = np.zeros((self.count, *parts.shape[1:]), dtype=np.int64)
        there = self.units >= 0
        np.add.at(sums, self.units[there], parts[there])
        owned = np.bincount(self.units[there], minlength=self.count)
        shared = owned > self.most
        if shared.any():
            among = owned[shared].reshape(-1, *([1] * (parts.ndim - 1)))
            part = sums[shared]
            sums[shared] = np.sign(part) * (np.abs(part) * self.most // among)
        return sums

    def total(self, parts: Array) -> Array:
        """Σ over units, exactly, as whole numbers of 64 bits."""
        total: Array = self.each(parts).sum(axis=0, dtype=np.int64)
        return total


def _code_units(ids: Array) -> Array:
    """Codes from 0 on, and −1 where there is no owner.

    Ids that are equal are one owner's, whatever their types: 7 and 7.0 in one list are the same person.
    """
    if ids.dtype.kind in "iuUSb":
        return np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)
    codes: dict[Hashable, int] = {}
    found = np.empty(len(ids), dtype=np.int64)
    for place, value in enumerate(values_of(ids)):
        found[place] = -1 if value is None else codes.setdefault(value, len(codes))
    return found
