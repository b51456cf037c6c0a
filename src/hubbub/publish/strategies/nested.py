"""Levels of a geography, each inside the next (blocks, counties, states), and least squares over all of them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.publish.marginals.records import sum_of_sizes
from hubbub.publish.strategies.layer import Array, Shape, check_cells
from hubbub.publish.terms import Contribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level: which of its places each cell lies in."""

    called: str
    places: tuple[Any, ...]
    """Labels, in the order of their numbers."""
    of: tuple[int, ...]
    """For every cell, the number of its place."""


def levels(cells: Sequence[Hashable], above: Mapping[str, Mapping[Any, Hashable]]) -> tuple[Level, ...]:
    """From mappings that each lead one level up: ``{"county": {block: county}, "state": {county: state}}``."""
    found, below = [], list(cells)
    for name, parent in above.items():
        missing = next((one for one in below if one not in parent), None)
        if missing is not None:
            raise ParameterError(name, "given for every place below it", missing)
        below = [parent[one] for one in below]
        numbers = {label: number for number, label in enumerate(dict.fromkeys(below))}
        found.append(Level(called=name, places=tuple(numbers), of=tuple(numbers[one] for one in below)))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The sums of cells over the places of one level."""

    shape: Shape
    of: tuple[int, ...]

    @property
    def size(self) -> int:
        return max(self.of) + 1

    def apply(self, cells: Array) -> Array:
        exact = check_cells(cells, self.shape)
        wide = exact.dtype == object or sum_of_sizes(exact) >= 1 << 63
        out = np.zeros(self.size, dtype=object if wide else np.int64)
        np.add.at(out, np.array(self.of), exact.astype(out.dtype))
        return out

    def transpose(self, values: Array) -> Array:
        return np.asarray(np.asarray(values, dtype=float)[np.array(self.of)])

    def reach(self, one: Contribution) -> Sensitivity:
        """A cell lies in one place: a unit's squares are greatest where it fills one place after the other."""
        holds = int(np.bincount(np.array(self.of)).max())
        return one.through(column_l1=1, squares=one.pack(holds), signed=False)


@dataclass(frozen=True, slots=True, eq=False)
class NestedInference:
    """Least squares for noisy sums over nested levels, the cells first: linear time, without a matrix.

    With weights w the cells solve H·x = Σ w·Gᵀy. Inside a place, H is what it is for its parts plus w·11ᵀ, so every
    level changes a solution z by a multiple of k = H⁻¹1 (Sherman–Morrison), and k by a factor.
    """

    groups: tuple[Array, ...]
    variances: tuple[float, ...]

    def estimate(self, noisy: Sequence[Array]) -> Array:
        pulls = sum(y[group] / v for y, group, v in zip(noisy, self.groups, self.variances, strict=True))
        return np.asarray(self._solve(np.asarray(pulls)[np.newaxis])[0])

    def influence(self, queries: Array) -> list[Array]:
        solved = self._solve(queries.reshape(len(queries), -1))
        return [_sum_groups(solved, group) / v for group, v in zip(self.groups, self.variances, strict=True)]

    def _solve(self, right: Array) -> Array:
        z = right * self.variances[0]
        k = np.full(right.shape[1], self.variances[0])
        for group, variance in zip(self.groups[1:], self.variances[1:], strict=True):
            grown = variance + np.bincount(group, k)
            z = z - k * (_sum_groups(z, group) / grown)[:, group]
            k = k * (variance / grown)[group]
        return z


def _sum_groups(rows: Array, group: Array) -> Array:
    return np.stack([np.bincount(group, row) for row in rows]) if len(rows) else np.zeros((0, int(group.max()) + 1))
