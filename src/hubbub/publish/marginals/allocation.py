"""Division of one price over sets of columns: the best division in closed form, from public sizes alone.

All sets get noise of one law after multiplication by their scales t. Gaussian noise then has a variance in proportion
to Σ c·t² (c: squared reach), Laplace noise in proportion to (Σ l·t)². Set A counts with v/t² in what is to be small, so
the best scales are t² ∝ √(v/c), or t ∝ (v/l)^⅓.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hubbub.publish.marginals.records import Axes
from hubbub.publish.marginals.residual import contrast
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.terms import Noise

_LEAST_SCALE = 64
"""Scales are whole; the smallest is this, so that rounding them changes an error by 1 in 10,000 at most."""
_ROUNDS = 2000
_GAP = 1e-3


class Least(StrEnum):
    """The quantity that a division minimises."""

    SUM = "sum"
    """The variances of all cells of all marginals, added up."""
    MEAN = "mean"
    """The mean variance of a cell, added up over marginals: large tables count no more than small ones."""
    MAX = "max"
    """The mean variance of a cell in the marginal where it is greatest (to 1 in 1,000)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Influence:
    """The weight of the variance of each set in each marginal: lists of (marginal, set, weight)."""

    marginals: Array
    sets: Array
    weights: Array
    counts: tuple[int, int]

    @classmethod
    def of(cls, workload: Sequence[Axes], sets: Sequence[Axes], shape: Shape, least: Least) -> "Influence":
        """Of the cells of a marginal added up, or on the average."""
        place = {one: number for number, one in enumerate(sets)}
        traces = [contrast(n).spread.sum(axis=0) for n in shape]
        found: list[tuple[int, int, float]] = []
        for number, marginal in enumerate(workload):
            cells = 1 if least is Least.SUM else math.prod(shape[axis] for axis in marginal)
            for part in _parts(marginal, place):
                weight = math.prod(float(traces[axis][1 if axis in part else 0]) for axis in marginal)
                found.append((number, place[part], weight / cells))
        columns = list(zip(*found, strict=True))
        return cls(
            marginals=np.array(columns[0]),
            sets=np.array(columns[1]),
            weights=np.array(columns[2]),
            counts=(len(workload), len(sets)),
        )

    def on_sets(self, importance: Array) -> Array:
        return np.bincount(self.sets, self.weights * importance[self.marginals], minlength=self.counts[1])

    def on_marginals(self, variances: Array) -> Array:
        return np.bincount(self.marginals, self.weights * variances[self.sets], minlength=self.counts[0])


def best_scales(influence: Influence, reach: Array, noise: Noise, least: Least) -> tuple[int, ...]:
    """Whole scales, one a set. ``reach`` is squared L2 for Gaussian noise, L1 for Laplace."""
    importance = np.ones(influence.counts[0])
    if least is Least.MAX:
        importance = _worst_case(influence, reach, noise)
    exact = _scales(influence.on_sets(importance), reach, noise)
    return tuple(int(scale) for scale in np.rint(exact * (_LEAST_SCALE / exact.min())))


def cost(influence: Influence, scales: Array, reach: Array, noise: Noise) -> Array:
    """The variance of each marginal per unit of price."""
    spent = float((reach * scales**2).sum()) if noise is Noise.GAUSSIAN else 2 * float((reach * scales).sum()) ** 2
    return spent * influence.on_marginals(1 / scales**2)


def _scales(weights: Array, reach: Array, noise: Noise) -> Array:
    if noise is Noise.GAUSSIAN:
        return np.asarray((weights / reach) ** 0.25)
    return np.asarray((weights / reach) ** (1 / 3))


def _worst_case(influence: Influence, reach: Array, noise: Noise) -> Array:
    """Return the weights of the marginals for which the greatest variance is least.

    By duality: the best weighted mean of variances, over all weights, is at most the least maximum; weights grow where
    variances are above the mean until both are equal but for the gap.
    """
    importance = np.full(influence.counts[0], 1 / influence.counts[0])
    for _ in range(_ROUNDS):
        # A set that only unimportant marginals hold keeps a little weight, so that its scale stays finite.
        weights = influence.on_sets(np.maximum(importance, 1e-9))
        variances = cost(influence, _scales(weights, reach, noise), reach, noise)
        mean = float(importance @ variances)
        if variances.max() <= (1 + _GAP) * mean:
            break
        importance = importance * variances / mean
    return np.asarray(np.maximum(importance, 1e-9))


def _parts(marginal: Axes, place: Mapping[Axes, int]) -> list[Axes]:
    found: list[Axes] = [()]
    for axis in marginal:
        found += [(*part, axis) for part in found]
    return [part for part in found if part in place]
