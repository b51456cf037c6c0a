"""The linear queries that a publication is for, without their matrix: along one axis (see ``products`` for several).

A workload W has a row a query. It gives WᵀW in closed form, which is all that expected error and the optimisation of
strategies need, answers its queries by sums, and writes out single rows on request.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hubbub.parameters import whole
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.workload.gram import Identity, Kronecker, Ordered

Factors = tuple[Array | int, ...]
"""Of ``gram.Covariance``: one an axis, or one for all cells in a row."""


class Workload(Protocol):
    """Frozen and public."""

    @property
    def shape(self) -> Shape:
        """Of the cells."""
        ...

    @property
    def count(self) -> int:
        """The number of queries."""
        ...

    @property
    def axes(self) -> int:
        """The number of factors in the terms of ``gram``; 0 where it has no structure and is as large as cells²."""
        ...

    @property
    def gram(self) -> tuple[Kronecker, ...]:
        """WᵀW, as a sum."""
        ...

    def answers(self, cells: Array) -> Array:
        """All of them, in the order of the rows."""
        ...

    def rows(self, places: Array) -> Array:
        """Some queries written out, with the cells' dimensions behind the first."""
        ...

    def worst(self, covariance: Factors) -> float:
        """The greatest variance of any one query."""
        ...


class OneAxis(Workload, Protocol):
    """Along a single axis; other dimensions are carried along."""

    def spreads(self, covariance: Array) -> Array:
        """The variance of every query: the first two dimensions of a covariance become one."""
        ...


class _OneAxis:
    """The common part of workloads along an axis. ``longest`` is the most cells in any query."""

    __slots__ = ()

    @property
    def longest(self: "_Sized") -> int:
        return self.length

    @property
    def shape(self: "_Sized") -> Shape:
        return (self.length,)

    @property
    def axes(self) -> int:
        return 1

    def worst(self: "_Sized", covariance: Factors) -> float:
        (only,) = covariance
        return float(self.longest) if isinstance(only, int) else float(np.max(self.spreads(only)))


class _Sized(OneAxis, Protocol):
    @property
    def length(self) -> int: ...

    @property
    def longest(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes(_OneAxis):
    """The counts up to each place."""

    length: int

    def __post_init__(self) -> None:
        whole("length", self.length, least=1)

    @property
    def count(self) -> int:
        return self.length

    @property
    def gram(self) -> tuple[Kronecker, ...]:
        last = np.arange(self.length, 0, -1, dtype=float)
        return (Kronecker(factors=(Ordered(first=np.ones(self.length), last=last),)),)

    def answers(self, cells: Array) -> Array:
        return np.cumsum(cells, axis=0)

    def rows(self, places: Array) -> Array:
        return (np.arange(self.length) <= np.asarray(places)[:, np.newaxis]).astype(float)

    def spreads(self, covariance: Array) -> Array:
        summed = np.cumsum(np.cumsum(covariance, axis=0), axis=1)
        places = np.arange(self.length)
        found: Array = summed[places, places]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges(_OneAxis):
    """All n(n+1)/2 ranges, by their first place and then by their last."""

    length: int

    def __post_init__(self) -> None:
        whole("length", self.length, least=1)

    @property
    def count(self) -> int:
        return self.length * (self.length + 1) // 2

    @property
    def gram(self) -> tuple[Kronecker, ...]:
        up = np.arange(1, self.length + 1, dtype=float)
        return (Kronecker(factors=(Ordered(first=up, last=up[::-1].copy()),)),)

    def answers(self, cells: Array) -> Array:
        starts, ends = np.triu_indices(self.length + 1, k=1)
        up_to = _from_zero(np.cumsum(cells, axis=0), axis=0)
        found: Array = up_to[ends] - up_to[starts]
        return found

    def rows(self, places: Array) -> Array:
        wanted = np.asarray(places)
        starts = np.arange(self.length)
        firsts = starts * self.length - starts * (starts - 1) // 2
        start = np.searchsorted(firsts, wanted, side="right") - 1
        end = start + wanted - firsts[start]
        within: Array = (starts >= start[:, np.newaxis]) & (starts <= end[:, np.newaxis])
        return within.astype(float)

    def spreads(self, covariance: Array) -> Array:
        summed = _from_zero(np.cumsum(covariance, axis=0), axis=0)
        summed = _from_zero(np.cumsum(summed, axis=1), axis=1)
        starts, ends = np.triu_indices(self.length + 1, k=1)
        found: Array = summed[ends, ends] + summed[starts, starts] - summed[starts, ends] - summed[ends, starts]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(_OneAxis):
    """Everything, once."""

    length: int

    def __post_init__(self) -> None:
        whole("length", self.length, least=1)

    @property
    def count(self) -> int:
        return 1

    @property
    def gram(self) -> tuple[Kronecker, ...]:
        return (Kronecker(factors=(Ordered(first=np.ones(self.length), last=np.ones(self.length)),)),)

    def answers(self, cells: Array) -> Array:
        found: Array = np.sum(cells, axis=0, keepdims=True)
        return found

    def rows(self, places: Array) -> Array:
        return np.ones((len(places), self.length))

    def spreads(self, covariance: Array) -> Array:
        found: Array = np.sum(covariance, axis=(0, 1))[np.newaxis]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class EachCell(_OneAxis):
    """Every cell by itself."""

    length: int

    def __post_init__(self) -> None:
        whole("length", self.length, least=1)

    @property
    def longest(self) -> int:
        return 1

    @property
    def count(self) -> int:
        return self.length

    @property
    def gram(self) -> tuple[Kronecker, ...]:
        return (Kronecker(factors=(Identity(length=self.length),)),)

    def answers(self, cells: Array) -> Array:
        return np.array(cells)

    def rows(self, places: Array) -> Array:
        found = np.zeros((len(places), self.length))
        found[np.arange(len(places)), np.asarray(places)] = 1
        return found

    def spreads(self, covariance: Array) -> Array:
        places = np.arange(self.length)
        found: Array = covariance[places, places]
        return found


def _from_zero(summed: Array, *, axis: int) -> Array:
    """With a zero in front, so that differences are sums of ranges."""
    return np.insert(summed, 0, 0, axis=axis)
