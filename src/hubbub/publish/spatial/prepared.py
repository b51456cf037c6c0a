"""The common part of strategies that adapt to the map: one staged mechanism, and least squares on its answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.staged.staged import GRAIN, Staged, StagedPlan, Sums
from hubbub.publish.inference.nested_groups import Stage, solve_cells
from hubbub.publish.strategies.fourier import RowCells
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import NoisyLayer, no_public_error
from hubbub.publish.terms import Terms

COUNTING = Fraction(1, 50)
"""The share that buys the number of rows, where sizes follow from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMap:
    """One shape at one price."""

    shape: Shape
    terms: Terms
    mechanism: Staged

    @property
    def measurements(self) -> tuple[NoisyLayer, ...]:
        return (NoisyLayer(layer=RowCells(shape=self.shape), mechanism=self.mechanism),)

    def stages(self, noisy: Any) -> list[Stage]:
        """The sums that were released, stage by stage."""
        steps, told = self.mechanism.parse(noisy)
        return [
            Stage(labels=step.labels, noisy=one, variances=step.variances(self.mechanism.price))
            for step, one in zip(steps, told, strict=True)
            if isinstance(step, Sums)
        ]

    def estimate(self, noisy: Sequence[Any]) -> Array:
        return solve_cells(self.stages(noisy[0]))

    def leaves(self, noisy: Sequence[Any]) -> Array:
        """The finest group that each cell was measured in, for maps to draw."""
        found, used = np.zeros(self.shape, dtype=np.int64), 0
        for stage in self.stages(noisy[0]):
            found = np.where(stage.labels >= 0, used + stage.labels, found)
            used += len(stage.noisy)
        return found

    def variances(self, queries: Array) -> Array:
        raise no_public_error(
            "where the map is measured finely depends on the data, and so does what is spread evenly."
        )


def prepare_map(plan: StagedPlan, terms: Terms) -> PreparedMap:
    """At the whole of ε, in pure terms: a δ would not buy anything here."""
    one = terms.contribution
    mechanism = Staged(epsilon=terms.epsilon, plan=plan, rows=one.total, neighbors=one.neighbors)
    return PreparedMap(shape=plan.shape, terms=terms, mechanism=mechanism)


def flat_map(shape: Shape) -> Shape:
    """A shape that is a map."""
    if len(shape) != 2:
        raise ParameterError("shape", "two axes: a map", shape)
    return shape


def parts(share: Fraction) -> int:
    """A share as whole parts of the price, rounded down, at least one."""
    return max(1, int(share * GRAIN))


def everything(shape: Shape, share: int) -> Sums:
    """The noisy number of all rows."""
    return Sums(labels=np.zeros(shape, dtype=np.int64), weights=np.array([share]))


def rows_at_least_one(told: Sequence[Array]) -> float:
    """The noisy number of rows, from the first answer."""
    return max(float(told[0][0]), 1.0)


def grid_labels(shape: Shape, sides: Sequence[int]) -> Array:
    """Return the block of each cell, where each axis is divided into ``sides`` blocks."""
    each = [_places(length, min(side, length)) for length, side in zip(shape, sides, strict=True)]
    across = min(sides[1], shape[1])
    labels: Array = each[0][:, np.newaxis] * across + each[1]
    return labels


def _places(length: int, blocks: int) -> Array:
    """Return the block of each of ``length`` cells, divided at ⌊i·length/blocks⌋."""
    starts = np.arange(blocks) * length // blocks
    return np.searchsorted(starts, np.arange(length), side="right") - 1
