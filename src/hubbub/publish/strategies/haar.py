"""The Haar transform in whole numbers: on each level, the sum of a block's left half less that of its right half.

An axis of length n is thought of as followed by zeros up to 2^depth, and cut into 2^coarse blocks. Band 0 has the sums
of these; band j > 0 has one coefficient for each block of 2^(depth-coarse-j+1) cells whose right half begins within the
axis. Nothing is built for the zeros, and a block without a right half has the sum of its left one, so that there are n
numbers in all. In several dimensions a band is named by one number an axis, and its coefficients are those of all axes
one after the other.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from hubbub.privacy.sensitivity import Sensitivity
from hubbub.publish.strategies.layer import Array, Shape, check_cells, exact
from hubbub.publish.terms import Contribution


def depth(length: int) -> int:
    """Return the number of times an axis can be halved."""
    return (length - 1).bit_length()


def block(length: int, coarse: int, band: int) -> int:
    """Return the number of cells of one coefficient, zeros behind the end included."""
    return 1 << (depth(length) - coarse - max(band - 1, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Haar:
    """The transform of one shape."""

    shape: Shape
    coarse: Shape
    """log₂ of the number of blocks along each axis that are not compared with each other; all 0 for the textbook's."""

    @property
    def counts(self) -> Shape:
        """The number of bands of each axis."""
        return tuple(depth(length) - coarse + 1 for length, coarse in zip(self.shape, self.coarse, strict=True))

    @property
    def bands(self) -> tuple["Band", ...]:
        """All of them, in the order in which ``combine`` takes them and ``analyse`` gives them."""
        return tuple(Band(haar=self, band=band) for band in product(*(range(count) for count in self.counts)))

    def combine(self, found: list[Array]) -> Array:
        """The cells from the coefficients of all bands, each an array of its ``parts``: the inverse."""
        for axis in range(len(self.shape) - 1, -1, -1):
            length, together = self.shape[axis], self.counts[axis]
            groups = [found[first : first + together] for first in range(0, len(found), together)]
            found = [_synthesis(group, length, axis) for group in groups]
        return found[0]

    def analyse(self, queries: Array) -> list[Array]:
        """The transpose of ``combine``: how much each coefficient counts in each query (along the first axis)."""
        found = [queries]
        for axis, count in enumerate(self.counts):
            found = [part for one in found for part in _analysis(one, count - 1, axis + 1)]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """All coefficients of one band."""

    haar: Haar
    band: Shape

    @property
    def blocks(self) -> Shape:
        """The number of cells of one coefficient along each axis."""
        haar = self.haar
        return tuple(block(*one) for one in zip(haar.shape, haar.coarse, self.band, strict=True))

    @property
    def parts(self) -> Shape:
        """The number of coefficients along each axis."""
        each = zip(self.haar.shape, self.blocks, self.band, strict=True)
        return tuple(-(-length // (cells // 2)) // 2 if band else -(-length // cells) for length, cells, band in each)

    @property
    def size(self) -> int:
        return math.prod(self.parts)

    def apply(self, cells: Array) -> Array:
        values = exact(check_cells(cells, self.haar.shape), terms=math.prod(self.blocks))
        for axis in reversed(range(len(self.band))):  # the last lies together in memory, and is quickest to shorten
            cells_each, band = self.blocks[axis], self.band[axis]
            values = _differences(values, cells_each // 2, axis) if band else _in_blocks(values, cells_each, axis)
        return values.reshape(-1)

    def transpose(self, values: Array) -> Array:
        found = np.asarray(values, dtype=float).reshape(self.parts)
        for axis, (length, cells, band) in enumerate(zip(self.haar.shape, self.blocks, self.band, strict=True)):
            if band:
                pairs = np.stack([found, -found], axis=axis + 1)
                found = pairs.reshape(*found.shape[:axis], -1, *found.shape[axis + 1 :])
            found = np.repeat(found, cells // 2 if band else cells, axis=axis)[_first(length, axis)]
            short = length - found.shape[axis]
            found = np.pad(found, [(0, short if place == axis else 0) for place in range(found.ndim)])
        return found

    def reach(self, one: Contribution) -> Sensitivity:
        """Each cell counts in at most one coefficient, as +1 or -1, and half of a coefficient's cells count as +1.

        Privacy:
            Claim: L1 and L2 for neighbours, as ``Contribution.through``; for the sum of all, where that is a band, L1
                is the unit's total and L2² its square for both relations.
            Proof: at most one entry of ±1 in each column. What a unit adds is not negative, so a coefficient is at most
                the larger of its sums over cells of one sign, of which there are half a block: these sums together are
                at most the unit's total, and their squares are greatest where half blocks are filled one by one
                (``Contribution.pack``). Replacing can move a coefficient twice as far (from all of it in cells of one
                sign to all of it in cells of the other), so L2² is four times that. Band 0 has no signs, and blocks are
                filled whole; where it is the sum of all, that holds a unit's total, which lies between 0 and ``total``
                before and after.
            Needs: bounds that were enforced on every unit before cells were counted.
            Ref: Xiao, Wang, Gehrke 2011 for one cell a unit.
        """
        whole = math.prod(self.blocks)
        if any(self.band):
            return one.through(column_l1=1, squares=one.pack(whole // 2), signed=True)
        if self.size == 1:
            return Sensitivity(l0=1, l1=Fraction(one.total), l2_squared=Fraction(one.total**2))
        return one.through(column_l1=1, squares=one.pack(whole), signed=False)


def _differences(values: Array, half: int, axis: int) -> Array:
    left, right = _alternate(_in_blocks(values, half, axis), axis)
    difference: Array = left[_first(right.shape[axis], axis)] - right
    return difference


def _in_blocks(values: Array, size: int, axis: int) -> Array:
    """Return sums over blocks of ``size`` cells; the last may be short."""
    if size == 1:
        return values
    if size == 2:
        left, right = _alternate(values, axis)
        found = left.copy()
        found[_first(right.shape[axis], axis)] += right
        return found
    length = values.shape[axis]
    total: Array
    if axis == values.ndim - 1:
        total = np.add.reduceat(values, np.arange(0, length, size), axis=axis)
        return total
    full = length // size
    whole = values[_first(full * size, axis)].reshape(*values.shape[:axis], full, size, *values.shape[axis + 1 :])
    total = whole.sum(axis=axis + 1)
    if length % size:
        total = np.concatenate([total, values[_behind(full * size, axis)].sum(axis=axis, keepdims=True)], axis=axis)
    return total


def _synthesis(found: list[Array], length: int, axis: int) -> Array:
    """Each sum into those of its halves, level by level: (sum + difference) / 2 and (sum - difference) / 2."""
    sums = found[0]
    for band in range(1, len(found)):
        nodes = -(-length // (1 << (len(found) - 1 - band)))
        finer = np.empty((*sums.shape[:axis], nodes, *sums.shape[axis + 1 :]))
        left, right = _alternate(finer, axis)
        whole, rest = _first(right.shape[axis], axis), _behind(right.shape[axis], axis)
        np.add(sums[whole], found[band], out=left[whole])
        np.subtract(sums[whole], found[band], out=right)
        left[rest] = 2 * sums[rest]
        finer *= 0.5
        sums = finer
    return sums


def _analysis(queries: Array, halvings: int, axis: int) -> list[Array]:
    """The transpose of ``_synthesis``."""
    found: list[Array] = []
    for _ in range(halvings):
        left, right = _alternate(queries, axis)
        whole = _first(right.shape[axis], axis)
        total = left.copy()
        total[whole] += right
        total[whole] *= 0.5
        found.append((left[whole] - right) * 0.5)
        queries = total
    return [queries, *reversed(found)]


def _alternate(values: Array, axis: int) -> tuple[Array, Array]:
    before = (slice(None),) * axis
    return values[(*before, slice(0, None, 2))], values[(*before, slice(1, None, 2))]


def _first(count: int, axis: int) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, slice(count))


def _behind(count: int, axis: int) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, slice(count, None))
