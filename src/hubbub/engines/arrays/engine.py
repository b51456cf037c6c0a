"""Add up whole numbers of rows that are arrays in memory, a block at a time, exactly.

Floats that are whole numbers are added exactly as long as no partial sum leaves 53 bits; blocks are small enough for
that, and are added up in integers. Nothing as large as the table is ever copied.

Privacy:
    Claim: what is proven of ``Totals`` holds here: a unit's rows have weights that sum to at most ``most``.
    Proof: ``weigh_rows``. Rows of nobody have the weight 0, and values are multiplied by it where they are written.
        A row's numbers are computed from it alone: every operation of a block treats its rows alike, and where the
        order of a sum could depend on the rows beside it (products of matrices), all of it is whole numbers.
    Needs: units that say whose each row is.
    Ref: SOUNDNESS 1, 3, 29, 31.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hubbub.engines.arrays.blocks import Array, BlockProgram
from hubbub.gate.secret import Sealed
from hubbub.query.totals import SHARED, Code, Exact, Number, SumsRequest, check_weighed

BLOCK = 1 << 13
"""Rows at a time: those of ten columns stay in a processor's cache."""
_HELD = 53
_FEW = 6
"""Places up to which sums are products with a matrix of zeros and ones; beyond, each value is counted into them."""
_HALF = 26


class Arrays:
    """Tables of floats side by side, with one owner for each row; None: every row is a unit's only one."""

    def __init__(self, *tables: Array, units: Array | None = None, most: int = 1) -> None:
        self._tables, self._units, self._most = tables, units, most
        self._weights: Array | None = None

    def __len__(self) -> int:
        return len(self._tables[0])

    def beside(self, column: Array) -> "Arrays":
        """Return the same rows with one more column."""
        return Arrays(*self._tables, column[:, None], units=self._units, most=self._most)

    def total(self, sums: SumsRequest) -> Sealed[Exact]:
        """Prepare to add up. Whatever can be refused is refused now, and rows are read when the seal is opened."""
        check_weighed(sums, single=self._units is None)
        if sums.products and 2 * sums.bits + BLOCK.bit_length() > _HELD:
            raise OverflowError("products of these values are not exact")
        return Sealed.later(lambda: self._add_up(sums))

    def count(self) -> Sealed[Array]:
        """Count rows, each unit's at most ``most``, as a vector of one number."""
        return Sealed.later(lambda: np.array([self._count()], dtype=np.int64))

    def rows(self, wanted: Number) -> Array:
        """Return numbers of each row, for what looks at rows one by one: it is as private as the table."""
        program = BlockProgram([wanted])
        out = np.empty((len(self), *([] if wanted.width is None else [wanted.width])))
        with np.errstate(all="ignore"):
            for part, weights in self._parts():
                (found,) = program.run([table[part] for table in self._tables], weights)
                out[part] = found.T
        return out

    def _count(self) -> int:
        if self._units is None:
            return len(self)
        return int(np.minimum(np.bincount(self._units[self._units >= 0]), self._most).sum())

    def _parts(self) -> Iterator[tuple[slice, Array | None]]:
        if self._units is not None and self._weights is None:
            self._weights = weigh_rows(self._units, most=self._most)
        for start in range(0, len(self), BLOCK):
            part = slice(start, min(start + BLOCK, len(self)))
            yield part, None if self._weights is None else self._weights[part]

    def _add_up(self, sums: SumsRequest) -> Exact:
        wide = sums.bits * (1 + sums.products) + len(self).bit_length() > 62
        kind: Any = object if wide else np.int64
        totals = [np.zeros(shape, dtype=kind) for shape in sums.shapes]
        program = BlockProgram([*(code.number for code in sums.codes), *([] if sums.values is None else [sums.values])])
        with np.errstate(all="ignore"):
            for part, weights in self._parts():
                found = program.run([table[part] for table in self._tables], weights)
                values = np.ones((1, part.stop - part.start)) if sums.values is None else np.atleast_2d(found.pop())
                for place, exact in enumerate(_add_block(sums, found, values)):
                    totals[place] += exact.astype(kind, copy=False)
        return totals


def weigh_rows(units: Array, *, most: int) -> Array:
    """Return what each row counts for: a unit's weights sum to at most ``most``, and none is above 1."""
    owned = np.append(np.bincount(units[units >= 0], minlength=int(units.max(initial=-1)) + 1), 0)[units]
    shared: Array = np.where(owned > most, most / np.maximum(owned, 1) * SHARED, 1.0)
    return np.where(units >= 0, shared, 0.0)


def _add_block(sums: SumsRequest, codes: Sequence[Array], values: Array) -> Iterator[Array]:
    """Yield the sums of one block, for each family."""
    if sums.values is not None and not sums.products and sums.bits + BLOCK.bit_length() > _HELD:
        high = np.floor(np.ldexp(values, -_HALF))
        halves = high, values - np.ldexp(high, _HALF)
        for upper, lower in zip(*(list(_add_exactly(sums, codes, half)) for half in halves), strict=True):
            yield upper.astype(object) * (1 << _HALF) + lower
    else:
        yield from _add_exactly(sums, codes, values)


def _add_exactly(sums: SumsRequest, codes: Sequence[Array], values: Array) -> Iterator[Array]:
    if not codes:
        yield _whole(values @ values.T if sums.products else np.einsum("ij->i", values)[None])
    for code, block in zip(sums.codes, codes, strict=True):
        for family in np.atleast_2d(block):
            yield _in_places(code, family.astype(np.intp), None if sums.values is None else values)


def _in_places(code: Code, places: Array, values: Array | None) -> Array:
    """Add up values in the places of one family."""
    if values is None:
        return np.bincount(places, minlength=code.size + 1)[: code.size, None]
    if code.size <= _FEW and len(values) > 1:
        member = (places == np.arange(code.size)[:, None]).astype(np.float64)
        return _whole(member @ values.T)
    each = [np.bincount(places, weights=value, minlength=code.size + 1)[: code.size] for value in values]
    return _whole(np.stack(each, axis=1))


def _whole(exact: Any) -> Array:
    return np.asarray(exact).astype(np.int64)
