"""Workloads over several axes: products of workloads along each, and weighted unions of workloads."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.workload.gram import Kronecker
from hubbub.publish.workload.workload import EachCell, Factors, OneAxis, Ranges, Total, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Every combination of one query along each axis: W₁⊗W₂⊗…"""

    parts: tuple[OneAxis, ...]

    def __post_init__(self) -> None:
        if not self.parts or any(len(part.shape) != 1 or len(part.gram) != 1 for part in self.parts):
            raise ParameterError("parts", "a workload along one axis for each axis", self.parts)

    @property
    def shape(self) -> Shape:
        return tuple(part.shape[0] for part in self.parts)

    @property
    def axes(self) -> int:
        return len(self.parts)

    @property
    def count(self) -> int:
        return math.prod(part.count for part in self.parts)

    @property
    def gram(self) -> tuple[Kronecker, ...]:
        grams = [part.gram[0] for part in self.parts]
        factors = tuple(factor for gram in grams for factor in gram.factors)
        return (Kronecker(factors=factors, scale=math.prod(gram.scale for gram in grams)),)

    def answers(self, cells: Array) -> Array:
        for axis, part in enumerate(self.parts):
            cells = np.moveaxis(part.answers(np.moveaxis(cells, axis, 0)), 0, axis)
        return cells.reshape(-1)

    def rows(self, places: Array) -> Array:
        split = np.unravel_index(np.asarray(places), tuple(part.count for part in self.parts))
        found = np.ones((len(places), *(1 for _ in self.parts)))
        for axis, (part, own) in enumerate(zip(self.parts, split, strict=True)):
            lengths = [1] * len(self.parts)
            lengths[axis] = part.shape[0]
            found = found * part.rows(own).reshape(len(places), *lengths)
        return found

    def worst(self, covariance: Factors) -> float:
        """Variances of products are products of variances; else axis after axis of the whole covariance."""
        if len(covariance) == len(self.parts):
            return math.prod(part.worst((one,)) for part, one in zip(self.parts, covariance, strict=True))
        (whole,) = covariance
        assert not isinstance(whole, int)
        rest = whole.reshape(*self.shape, *self.shape)
        for done, part in enumerate(self.parts):
            pair = np.moveaxis(rest, (done, len(self.parts)), (0, 1))
            rest = np.moveaxis(part.spreads(pair), 0, done)
        return float(np.max(rest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """Several workloads over the same cells, each row times its workload's weight."""

    parts: tuple[Workload, ...]
    weights: tuple[float, ...] = ()
    """1 each where left out."""

    def __post_init__(self) -> None:
        if not self.parts or len({part.shape for part in self.parts}) != 1:
            raise ParameterError("parts", "workloads over the same cells", self.parts)
        weights = self.weights or (1.0,) * len(self.parts)
        if len(weights) != len(self.parts) or min(weights) <= 0 or not all(map(math.isfinite, weights)):
            raise ParameterError("weights", "a positive number for each part", weights)
        object.__setattr__(self, "weights", tuple(weights))

    @property
    def shape(self) -> Shape:
        return self.parts[0].shape

    @property
    def axes(self) -> int:
        each = {part.axes for part in self.parts}
        return each.pop() if len(each) == 1 else 0

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def gram(self) -> tuple[Kronecker, ...]:
        return tuple(
            Kronecker(factors=term.factors, scale=term.scale * weight**2)
            for part, weight in zip(self.parts, self.weights, strict=True)
            for term in part.gram
        )

    def answers(self, cells: Array) -> Array:
        each = zip(self.parts, self.weights, strict=True)
        return np.concatenate([weight * part.answers(cells) for part, weight in each])

    def rows(self, places: Array) -> Array:
        wanted = np.asarray(places)
        found, first = np.zeros((len(wanted), *self.shape)), 0
        for part, weight in zip(self.parts, self.weights, strict=True):
            own = (wanted >= first) & (wanted < first + part.count)
            if own.any():
                found[own] = weight * part.rows(wanted[own] - first)
            first += part.count
        return found

    def worst(self, covariance: Factors) -> float:
        return max(w**2 * part.worst(covariance) for part, w in zip(self.parts, self.weights, strict=True))


def all_ranges(shape: Shape) -> Product:
    """All boxes: every range along each axis, with every other."""
    return Product(parts=tuple(Ranges(length=length) for length in shape))


def one_marginal(shape: Shape, axes: Sequence[int]) -> Product:
    """The counts by these axes, summed over the others."""
    kept = set(axes)
    if not kept <= set(range(len(shape))):
        raise ParameterError("axes", f"whole numbers below {len(shape)}", tuple(axes))
    lengths = enumerate(shape)
    return Product(parts=tuple(EachCell(length=n) if axis in kept else Total(length=n) for axis, n in lengths))


def all_marginals(shape: Shape, *, ways: int) -> Union:
    """All marginals of so many axes each."""
    chosen = itertools.combinations(range(len(shape)), ways)
    parts = tuple(one_marginal(shape, axes) for axes in chosen)
    if not parts:
        raise ParameterError("ways", f"at most {len(shape)}", ways)
    return Union(parts=parts)
