"""Counts in a domain that is almost empty: what the mechanisms for it are given, and what they have in common."""

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import as_integers
from hubbub.noise import laws
from hubbub.noise.discrete import INT64_SCALE
from hubbub.noise.scattered import MOST_SIZE
from hubbub.parameters import positive, probability, whole
from hubbub.privacy.events.event import DiscreteLaplaceEvent
from hubbub.privacy.sensitivity import Neighbors, Norm

MOST_COUNT = 1 << 61
"""Counts are put within ± this: it moves no two of them apart, and noise never wraps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nonzeros:
    """The cells that are not empty: places in order, none twice, and a whole number other than 0 for each.

    ``of`` brings any list into this one form, so that nothing later can depend on how the data was ordered.
    """

    places: Array
    counts: Array

    @classmethod
    def of(cls, places: Any, counts: Any, *, size: int) -> "Nonzeros":
        """From lists in any order; numbers for the same place are added up."""
        where, many = as_integers(places), as_integers(counts)
        if isinstance(where, int) or isinstance(many, int) or where.ndim != 1 or where.shape != many.shape:
            raise ParameterError("counts", "one for each place", "arrays of other shapes")
        if len(where) and not (int(where.min()) >= 0 and int(where.max()) < size):
            raise ParameterError("places", f"from 0 to {size - 1}", "places outside")
        where, many = where.astype(np.int64), _within(many)
        if len(where) and not bool((where[1:] > where[:-1]).all()):
            order = np.argsort(where, kind="stable")
            where, many = where[order], many[order]
            starts = np.flatnonzero(np.concatenate([[True], where[1:] != where[:-1]]))
            if len(starts) < len(where):
                wide = float(np.abs(many.astype(float)).sum()) >= MOST_COUNT
                summed = np.add.reduceat(many.astype(object) if wide else many, starts)
                where, many = where[starts], _within(summed)
        full = many != 0
        return cls(places=where[full], counts=many[full]) if not full.all() else cls(places=where, counts=many)

    @classmethod
    def read(cls, value: Any, *, size: int) -> "Nonzeros":
        """Read the value that a mechanism is handed: nonzero cells, or all cells of a small domain."""
        if isinstance(value, Nonzeros):
            if len(value.places) and int(value.places[-1]) >= size:
                raise ParameterError("places", f"from 0 to {size - 1}", "places outside")
            return value
        cells = as_integers(value)
        if isinstance(cells, int) or cells.shape != (size,):
            raise ParameterError("value", f"Nonzeros, or a row of {size} whole numbers", type(value).__name__)
        return cls.of(np.arange(size), cells, size=size)

    def tile(self, times: int, *, size: int) -> "Nonzeros":
        """Repeat the cells in ``times`` domains, one after the other: independent noise gives independent answers."""
        if times == 1:
            return self
        starts = np.repeat(np.arange(times, dtype=np.int64) * size, len(self.places))
        return Nonzeros(places=starts + np.tile(self.places, times), counts=np.tile(self.counts, times))

    def dense(self, size: int) -> list[int]:
        """All cells, for laws on small domains."""
        cells = [0] * size
        for place, count in zip(self.places.tolist(), self.counts.tolist(), strict=True):
            cells[place] = count
        return cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Scattered:
    """The base of mechanisms that give every cell geometric noise and show only some: fields, needs and event."""

    epsilon: Fraction
    size: int
    """How many cells there are, empty ones included: public, and up to 2^63."""
    sensitivity: int = 1
    """The L1 distance of the cells of neighbouring datasets."""
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    scale: Fraction = field(init=False, repr=False, compare=False)
    needs: Needs = field(init=False, repr=False, compare=False)
    event: DiscreteLaplaceEvent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        epsilon, size = positive("epsilon", self.epsilon), whole("size", self.size, least=1, most=MOST_SIZE)
        sensitivity = whole("sensitivity", self.sensitivity, least=1)
        scale = noise.discrete.check_scale("sensitivity / epsilon", sensitivity / epsilon)
        if scale > INT64_SCALE:
            raise ParameterError("sensitivity / epsilon", "at most 2^50", scale)
        settle(self, epsilon=epsilon, size=size, sensitivity=sensitivity, scale=scale)
        settle(self, needs=Needs(norm=Norm.L1, sensitivity=Fraction(sensitivity), neighbors=self.neighbors))
        settle(self, event=DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity, neighbors=self.neighbors))
        self._settle()

    def _settle(self) -> None:
        """Check and derive what is a subclass's own."""

    def error(self, *, beta: float) -> int:
        """Return the error that one released number exceeds with probability at most ``beta``, before selection."""
        return laws.laplace_quantile(float(probability("beta", beta)), self.scale)

    @property
    def variance(self) -> float:
        """Of one cell's noise."""
        return laws.laplace_variance(self.scale)

    def draw(self, value: Nonzeros | Any) -> Array:
        return self.repeat(value, times=1)[0]

    def repeat(self, value: Nonzeros | Any, *, times: int) -> list[Array]:
        if whole("times", times) * self.size > MOST_SIZE:
            return [self.draw(value) for _ in range(times)]
        if times == 0:
            return []
        cells = Nonzeros.read(value, size=self.size).tile(times, size=self.size)
        noisy = cells.counts + noise.laplace_for_each(scale=self.scale, size=len(cells.counts))
        return self._select_cells(cells, noisy, times)

    def _select_cells(self, cells: Nonzeros, noisy: Array, times: int) -> list[Array]:
        """Return the cells to release of each of ``times`` domains that lie one after the other."""
        raise NotImplementedError


def by_place(*parts: tuple[Array, ...]) -> tuple[Array, ...]:
    """Columns of several parts, the first being the place, in the order of places: never that of the data."""
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return tuple(column[order] for column in columns)


def apart(columns: tuple[Array, ...], size: int, times: int) -> list[tuple[Array, ...]]:
    """Columns in order of place, split into domains of this size."""
    if times == 1:
        return [columns]
    edges = np.searchsorted(columns[0], np.arange(times + 1, dtype=np.int64) * size)
    local = (columns[0] % size, *columns[1:])
    return [tuple(one[a:b] for one in local) for a, b in itertools.pairwise(edges.tolist())]


def enough(places: Array, size: int, times: int, wanted: int) -> bool:
    """Return True if each of the domains has at least ``wanted`` places."""
    if times == 1:
        return len(places) >= wanted
    return bool(np.bincount(places // size, minlength=times).min() >= wanted)


def read_answer(output: Any) -> dict[int, int] | None:
    """Places with their numbers; None where they are not in order."""
    places, numbers = ([int(one) for one in row] for row in output)
    ordered = all(one < other for one, other in itertools.pairwise(places))
    return dict(zip(places, numbers, strict=True)) if ordered else None


def log_at_most(k: int, scale: Fraction) -> float:
    """ln P(Z <= k), also where the probability itself is too small for a float."""
    if k >= 0:
        return math.log1p(-laws.laplace_tail(k + 1, scale))
    rate = float(1 / scale)
    return k * rate - math.log1p(math.exp(-rate))


def _within(counts: Array) -> Array:
    if counts.dtype == object:
        return np.array([min(max(one, -MOST_COUNT), MOST_COUNT) for one in counts.tolist()], dtype=np.int64)
    return np.clip(counts, -MOST_COUNT, MOST_COUNT)
