"""Sample-and-aggregate: any program, run on fixed blocks of units, with its outputs averaged or put in the middle.

Nothing need be known about the program. Each unit goes with all its rows to one of m blocks, so it changes the output
of one block, and that lies within public bounds whatever the program does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.mechanisms.additive.laplace import Geometric
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.selection.quantile import GRID_STEPS, OnRange, Quantile
from hubbub.parameters import Real, interval, positive, whole
from hubbub.privacy.events.event import BoundedRangeEvent, DiscreteLaplaceEvent
from hubbub.privacy.sensitivity import Neighbors, Norm


def count_changed_blocks(neighbors: Neighbors) -> int:
    """Return the number of blocks that differ between neighbours: the one that lost a unit, the one
    that got it, or both.
    """
    return 2 if neighbors is Neighbors.REPLACE_ONE else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMean:
    """The mean of the outputs of ``blocks`` blocks, each snapped to a grid over the bounds.

    Outputs that are missing or not finite count as the middle of the bounds. ``error(beta)`` is the error that noise
    adds to the mean of the snapped outputs; how far that mean is from the program's answer on all rows is another
    matter, and nobody can promise it.

    Privacy:
        Claim: Pure(epsilon).
        Proof: neighbours differ in the outputs of one block (two under replace-one), and each output, snapped, is one
            of 0 … w steps whatever the program did. So the sum of steps moves by at most w (2w), and it gets geometric
            noise for that. Dividing by the public number of blocks is post-processing.
        Needs: a unit's rows go to one block, chosen by a keyed hash of the unit alone; a block's output is a function
            of its own rows; bounds, grid and the number of blocks are public; Geometric.
        Ref: Nissim, Raskhodnikova, Smith 2007; Mohan et al. 2012 (GUPT).
    """

    epsilon: Fraction
    bounds: tuple[Fraction, Fraction]
    blocks: int
    grid: Fraction | None = None
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        low, high = interval("bounds", self.bounds)
        grid = (high - low) / GRID_STEPS if self.grid is None else positive("grid", self.grid)
        settle(self, bounds=(low, high), grid=grid, epsilon=positive("epsilon", self.epsilon))
        settle(self, blocks=whole("blocks", self.blocks, least=1, most=1 << 24))
        whole("steps of the grid within the bounds", math.floor((high - low) / grid), least=1, most=1 << 36)

    @property
    def top(self) -> int:
        """The last step of the bounds."""
        assert self.grid is not None
        return math.floor((self.bounds[1] - self.bounds[0]) / self.grid)

    @property
    def _noisy(self) -> Geometric:
        moved = self.top * count_changed_blocks(self.neighbors)
        return Geometric(epsilon=self.epsilon, sensitivity=moved, neighbors=self.neighbors)

    @property
    def needs(self) -> Needs:
        moved = Fraction(count_changed_blocks(self.neighbors))
        return Needs(norm=Norm.BLOCKS, sensitivity=moved, neighbors=self.neighbors, integers=False)

    @property
    def event(self) -> DiscreteLaplaceEvent:
        return self._noisy.event

    def steps(self, outputs: Sequence[Any] | Array) -> int:
        """The sum of the outputs in steps above the lower bound."""
        assert self.grid is not None
        if len(outputs) != self.blocks:
            raise ValueError(f"{self.blocks} outputs, one a block")
        return sum(snap(one, self.bounds, self.grid, self.top) for one in outputs)

    def value_of(self, steps: int) -> float:
        """A sum of steps as a mean."""
        assert self.grid is not None
        return float(self.bounds[0] + steps * self.grid / self.blocks)

    def draw(self, value: Sequence[Any] | Array) -> float:
        return self.value_of(int(self._noisy.draw(self.steps(value))))

    def repeat(self, value: Sequence[Any] | Array, *, times: int) -> Array:
        drawn = self._noisy.repeat(self.steps(value), times=times)
        return np.asarray([self.value_of(int(one)) for one in drawn])

    def log_mass(self, value: Sequence[Any] | Array, output: Real) -> float:
        assert self.grid is not None
        steps = round((Fraction(output) - self.bounds[0]) * self.blocks / self.grid)
        return self._noisy.log_mass(self.steps(value), steps)

    def error(self, *, beta: float) -> float:
        assert self.grid is not None
        return float(self._noisy.error(beta=beta) * self.grid / self.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMedian:
    """The output in the middle, by the exponential mechanism: a few wild blocks do not move it.

    Outputs that are missing or not finite count as the middle of the bounds. ``error(beta)`` is a bound on the rank
    error among the blocks.

    Privacy:
        Claim: bounded range epsilon: Pure(epsilon) and ε²/8-zCDP.
        Proof: neighbours replace the outputs of one block (two under replace-one), so the rank scores of Quantile under
            replacement of so many values move by at most that many.
        Needs: as BlockMean; Quantile.
        Ref: Nissim, Raskhodnikova, Smith 2007; Smith 2011 for the median.
    """

    epsilon: Fraction
    bounds: tuple[Fraction, Fraction]
    blocks: int
    grid: Fraction | None = None
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        settle(self, blocks=whole("blocks", self.blocks, least=1, most=1 << 24))
        settle(self, epsilon=self._inner.epsilon, bounds=self._inner.bounds, grid=self._inner.step)

    @property
    def _inner(self) -> Quantile:
        return Quantile(
            epsilon=self.epsilon,
            bounds=self.bounds,
            grid=self.grid,
            rows=count_changed_blocks(self.neighbors),
            neighbors=Neighbors.REPLACE_ONE,
        )

    @property
    def needs(self) -> Needs:
        moved = Fraction(count_changed_blocks(self.neighbors))
        return Needs(norm=Norm.BLOCKS, sensitivity=moved, neighbors=self.neighbors, integers=False)

    @property
    def event(self) -> BoundedRangeEvent:
        return BoundedRangeEvent(range=self.epsilon, neighbors=self.neighbors)

    def _outputs(self, outputs: Sequence[Any] | Array) -> list[float]:
        if len(outputs) != self.blocks:
            raise ValueError(f"{self.blocks} outputs, one a block")
        inner: OnRange = self._inner
        return [float(inner.value_of(snap(one, inner.bounds, inner.step, inner.top))) for one in outputs]

    def draw(self, value: Sequence[Any] | Array) -> float:
        return float(self._inner.draw(self._outputs(value)))

    def repeat(self, value: Sequence[Any] | Array, *, times: int) -> Array:
        return self._inner.repeat(self._outputs(value), times=times)

    def log_mass(self, value: Sequence[Any] | Array, output: Real) -> float:
        return self._inner.log_mass(self._outputs(value), output)

    def error(self, *, beta: float) -> float:
        return self._inner.error(beta=beta)


def snap(output: Any, bounds: tuple[Fraction, Fraction], grid: Fraction, top: int) -> int:
    """Return an output in steps above the lower bound, clamped and rounded half up; anything that
    is no number is the middle.
    """
    low, high = bounds
    if isinstance(output, int) or (isinstance(output, float) and math.isfinite(output)):
        value = min(max(Fraction(output), low), high)
    else:
        value = (low + high) / 2
    return min(math.floor((value - low) / grid + Fraction(1, 2)), top)
