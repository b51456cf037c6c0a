"""Coefficients of a data cube: for each set of columns, what it adds to the smaller sets.

A column of two values is read as +1 and -1 (Hadamard's row); of more values, as itself, and centred after the noise. So
every entry is 0, 1 or -1, each unit is in one number of every set, and coefficients of different sets are orthogonal.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.privacy.sensitivity import Sensitivity
from hubbub.publish.marginals.records import Axes, DenseRecords, MarginalSource
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.terms import Contribution

_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """The coefficients of some sets of columns, one after the other: a layer whose numbers have the same noise.

    Privacy:
        Claim: ``reach`` bounds how far neighbours are apart.
        Proof: a cell is in one number of each set, with weight 1 or -1: columns have L1 norm |sets|. A number of set S
            adds up the cells that agree on the columns of S with more than two values; whatever its signs, a unit's
            share in it is at most what the unit has there, and squares are greatest where few numbers hold all of it.
        Needs: bounds that were enforced on every unit before rows were counted.
        Ref: Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar 2007.
    """

    shape: Shape
    sets: tuple[Axes, ...]

    @property
    def size(self) -> int:
        return sum(math.prod(self.dimensions(one)) for one in self.sets)

    def dimensions(self, one: Axes) -> Shape:
        """Of a set's numbers: its columns of more than two values."""
        return tuple(self.shape[axis] for axis in one if self.shape[axis] > _PAIR)

    def apply(self, cells: Array | MarginalSource) -> Array:
        source: MarginalSource = DenseRecords(cells) if isinstance(cells, np.ndarray) else cells
        return np.concatenate([contrast_pairs(source.marginal(one)).reshape(-1) for one in self.sets])

    def parts(self, values: Array) -> Iterator[tuple[Axes, Array]]:
        """A flat array of numbers as one table a set."""
        start = 0
        for one in self.sets:
            dimensions = self.dimensions(one)
            end = start + math.prod(dimensions)
            yield one, values[start:end].reshape(dimensions)
            start = end

    def transpose(self, values: Array) -> Array:
        total = np.zeros(self.shape)
        for one, table in self.parts(np.asarray(values, dtype=float)):
            total += _spread_pairs(table, one, self.shape)
        return total

    def reach(self, one: Contribution) -> Sensitivity:
        cells = math.prod(self.shape)
        squares = sum(one.pack(cells // math.prod(self.dimensions(axes))) for axes in self.sets)
        pairs = any(self.shape[axis] == _PAIR for axes in self.sets for axis in axes)
        return one.through(column_l1=len(self.sets), squares=squares, signed=pairs)


def contrast_pairs(table: Array) -> Array:
    """First less second value along every axis of two, in the arithmetic of the table whatever its numbers are."""
    kind = object if table.dtype == object else np.int64
    for axis in reversed(range(table.ndim)):
        if table.shape[axis] == _PAIR:
            table = np.asarray(np.take(table, 0, axis=axis) - np.take(table, 1, axis=axis), dtype=kind)
    return table


def _spread_pairs(table: Array, one: Axes, shape: Shape) -> Array:
    """The transpose of summing over other columns and of ``contrast_pairs``."""
    wide = table.reshape([shape[axis] if axis in one and shape[axis] > _PAIR else 1 for axis in range(len(shape))])
    for axis in one:
        if shape[axis] == _PAIR:
            wide = np.concatenate([wide, -wide], axis=axis)
    return np.broadcast_to(wide, shape)


def center(table: Array) -> Array:
    """Without what smaller sets hold: the mean along each axis taken away."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def project(table: Array, one: Axes, to: Axes, shape: Shape) -> Array:
    """Project the numbers of a set to a smaller one, which differs in columns of more than two values only."""
    places = [axis for axis in one if shape[axis] > _PAIR]
    return np.asarray(table.sum(axis=tuple(place for place, axis in enumerate(places) if axis not in to)))


def extend(table: Array, one: Axes, to: Axes, shape: Shape) -> Array:
    """Return the part that a set adds to the marginal of a larger one, from its centred numbers."""
    sizes: list[Any] = [shape[axis] if axis in one and shape[axis] > _PAIR else 1 for axis in to]
    wide = table.reshape(sizes)
    for place, axis in enumerate(to):
        if axis not in one:
            wide = wide / shape[axis]
        elif shape[axis] == _PAIR:
            wide = np.concatenate([wide / 2, -wide / 2], axis=place)
    return np.broadcast_to(wide, [shape[axis] for axis in to])


def cell_share(one: Axes, to: Axes, shape: Shape) -> float:
    """The variance that a set's numbers of variance 1 bring to each cell of a larger marginal."""
    share = 1.0
    for axis in to:
        n = shape[axis]
        if axis not in one:
            share /= n**2
        else:
            share *= 1 / 4 if n == _PAIR else 1 - 1 / n
    return share


def holds(measured: Axes, shape: Shape) -> Iterator[tuple[Axes, int]]:
    """The sets whose numbers are sums of this one's (it has more columns of more than two values), and of how many."""
    many = [axis for axis in measured if shape[axis] > _PAIR]
    for left_out in itertools.chain.from_iterable(itertools.combinations(many, n) for n in range(len(many) + 1)):
        yield tuple(axis for axis in measured if axis not in left_out), math.prod(shape[axis] for axis in left_out)


def below(workload: Sequence[Axes], shape: Shape) -> tuple[Axes, ...]:
    """All subsets of the marginals, small ones first; columns of one value add nothing."""
    found: set[Axes] = set()
    for marginal in workload:
        kept = [axis for axis in marginal if shape[axis] > 1]
        for bits in range(1 << len(kept)):
            found.add(tuple(axis for place, axis in enumerate(kept) if bits >> place & 1))
    return tuple(sorted(found, key=lambda one: (len(one), one)))
