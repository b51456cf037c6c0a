"""WᵀW of a workload along one axis, in closed form: what the expected error of every strategy is computed from.

A workload of n(n+1)/2 ranges has a Gram matrix with n² entries that two vectors describe, so that products with it take
linear time and no workload is ever written out.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hubbub.publish.strategies.layer import Array


class Gram(Protocol):
    """A symmetric matrix, positive semi-definite."""

    @property
    def length(self) -> int: ...

    @property
    def diagonal(self) -> Array: ...

    def times(self, columns: Array) -> Array:
        """G·X."""
        ...

    def among(self, places: Array) -> "Gram":
        """The same for some places only: what coarser searches start with."""
        ...

    def dense(self) -> Array: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ordered:
    """Entries first[min(i, j)] · last[max(i, j)]: prefixes, ranges, and the total."""

    first: Array
    last: Array

    @property
    def length(self) -> int:
        return len(self.first)

    @property
    def diagonal(self) -> Array:
        product: Array = self.first * self.last
        return product

    def times(self, columns: Array) -> Array:
        first, last = self.first[:, np.newaxis], self.last[:, np.newaxis]
        above = np.cumsum(first * columns, axis=0)
        below = last * columns
        after = np.cumsum(below[::-1], axis=0)[::-1] - below
        product: Array = last * above + first * after
        return product

    def among(self, places: Array) -> "Gram":
        return Ordered(first=self.first[places], last=self.last[places])

    def dense(self) -> Array:
        upper = np.triu(np.outer(self.first, self.last))
        whole: Array = upper + np.triu(upper, 1).T
        return whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Each cell once."""

    length: int

    @property
    def diagonal(self) -> Array:
        return np.ones(self.length)

    def times(self, columns: Array) -> Array:
        return columns.copy()

    def among(self, places: Array) -> "Gram":
        return Identity(length=len(places))

    def dense(self) -> Array:
        return np.eye(self.length)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dense:
    """Written out: for workloads without structure."""

    entries: Array

    @property
    def length(self) -> int:
        return len(self.entries)

    @property
    def diagonal(self) -> Array:
        return np.diagonal(self.entries)

    def times(self, columns: Array) -> Array:
        product: Array = self.entries @ columns
        return product

    def among(self, places: Array) -> "Gram":
        return Dense(entries=self.entries[np.ix_(places, places)])

    def dense(self) -> Array:
        return self.entries


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedGram:
    """Several, each times its weight."""

    parts: tuple[Gram, ...]
    weights: tuple[float, ...]

    @property
    def length(self) -> int:
        return self.parts[0].length

    @property
    def diagonal(self) -> Array:
        return self._sum([part.diagonal for part in self.parts])

    def times(self, columns: Array) -> Array:
        return self._sum([part.times(columns) for part in self.parts])

    def among(self, places: Array) -> "Gram":
        return WeightedGram(parts=tuple(part.among(places) for part in self.parts), weights=self.weights)

    def dense(self) -> Array:
        return self._sum([part.dense() for part in self.parts])

    def _sum(self, arrays: list[Array]) -> Array:
        total: Array = sum(
            (weight * array for weight, array in zip(self.weights, arrays, strict=True)), start=np.zeros(1)
        )
        return total


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kronecker:
    """scale · G₁⊗G₂⊗…: one factor an axis, or one for all cells in a row."""

    factors: tuple[Gram, ...]
    scale: float = 1.0

    def dense(self) -> Array:
        """For as many cells as a matrix can be written out for."""
        product = np.full((1, 1), self.scale)
        for factor in self.factors:
            product = np.kron(product, factor.dense())
        return product


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covariance:
    """scale · C₁⊗C₂⊗… of estimated cells: a matrix an axis, or a whole number for the identity of that length."""

    factors: tuple[Array | int, ...]
    scale: float = 1.0

    def dense(self) -> Array:
        """One matrix for all cells in a row."""
        product = np.full((1, 1), self.scale)
        for factor in self.factors:
            product = np.kron(product, np.eye(factor) if isinstance(factor, int) else factor)
        return product


def along(gram: Gram, covariance: Array | int) -> float:
    """tr(G·C) along one axis, where a whole number stands for the identity of that length."""
    if isinstance(covariance, int):
        return float(np.sum(gram.diagonal))
    return float(np.sum(gram.dense() * covariance))
