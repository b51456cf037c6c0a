"""Grids whose fineness follows from a noisy count: one for the whole map, or one for each block of a coarser one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.staged.staged import GRAIN, Step, Sums
from hubbub.parameters import Real, probability, whole
from hubbub.publish.spatial.prepared import (
    COUNTING,
    PreparedMap,
    everything,
    flat_map,
    grid_labels,
    parts,
    prepare_map,
    rows_at_least_one,
)
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import OfCells
from hubbub.publish.terms import Terms

_COUNTED = 2
UNIFORM = 5
"""Of a uniform grid: √(Nε/5) blocks a side."""
FIRST, COARSE, LEAST, FINE = 10, 5, 10, Fraction(5, 2)
"""Of an adaptive one: a fifth of √(Nε/10), at least 10, and √(N'ε'/2.5) below. Rules of thumb have 10 instead of 5, a
quarter, and 5; these suit made-up maps (cities, roads, spikes, uniform) better at ε = 0.1 and 10^4 or 10^6 rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformGrid(OfCells):
    """Blocks of about one size, √(Nε/5) a side, evenly spread within: coarse where there is little to tell.

    Privacy:
        Claim: ε of the terms for cells that one unit moves within its contribution.
        Proof: one run of mechanisms.Staged. ``counting`` of the price buys the noisy number of rows, clamped to at
            least 1, and the side follows from that; the rest buys the blocks, which are disjoint. With a ``side`` of
            their own they get everything.
        Needs: mechanisms.Staged; a contribution that was enforced before cells were counted.
        Ref: Qardaji, Yang, Li 2013.
    """

    side: int | None = None
    counting: Real = COUNTING
    name: str = "uniform grid"

    def __post_init__(self) -> None:
        if self.side is not None:
            whole("side", self.side, least=1)
        object.__setattr__(self, "counting", probability("counting", self.counting))

    def prepare(self, shape: Shape, terms: Terms) -> PreparedMap:
        worth = float(terms.epsilon) / terms.contribution.total
        plan = UniformPlan(shape=flat_map(shape), side=self.side, counting=parts(Fraction(self.counting)), worth=worth)
        return prepare_map(plan, terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformPlan:
    """First how many rows, then the blocks."""

    shape: Shape
    side: int | None
    counting: int
    worth: float
    """ε for each row of a unit."""

    def step(self, told: Sequence[Array]) -> Step | None:
        if self.side is not None:
            return None if told else self._grid(self.side, GRAIN)
        if not told:
            return everything(self.shape, self.counting)
        if len(told) > 1:
            return None
        rest = GRAIN - self.counting
        side = math.ceil(math.sqrt(rows_at_least_one(told) * self.worth * rest / GRAIN / UNIFORM))
        return self._grid(side, rest)

    def _grid(self, side: int, share: int) -> Sums:
        labels = grid_labels(self.shape, (side, side))
        return Sums(labels=labels, weights=np.full(int(labels.max()) + 1, share))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveGrid(OfCells):
    """A coarse grid first, then each of its blocks as finely as its noisy count deserves; the cells by least squares.

    Privacy:
        Claim: ε of the terms for cells that one unit moves within its contribution.
        Proof: one run of mechanisms.Staged: ``counting`` of the price for the noisy number of rows, clamped to at
            least 1, which sets the first grid; ``first`` of the rest for that grid, whose noisy counts set the second;
            what is left for the second. The groups of each step are disjoint.
        Needs: mechanisms.Staged; a contribution that was enforced before cells were counted.
        Ref: Qardaji, Yang, Li 2013.
    """

    first: Real = Fraction(1, 2)
    counting: Real = COUNTING
    fine: Real = FINE
    """A block with noisy count N' is cut into √(N'·ε'/fine) a side."""
    name: str = "adaptive grid"

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", probability("first", self.first))
        object.__setattr__(self, "counting", probability("counting", self.counting))

    def prepare(self, shape: Shape, terms: Terms) -> PreparedMap:
        counting = parts(Fraction(self.counting))
        plan = AdaptivePlan(
            shape=flat_map(shape),
            counting=counting,
            first=int((GRAIN - counting) * Fraction(self.first)),
            fine=float(self.fine),
            worth=float(terms.epsilon) / terms.contribution.total,
        )
        return prepare_map(plan, terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptivePlan:
    """The plan in steps: the number of rows, the coarse grid, the fine ones."""

    shape: Shape
    counting: int
    first: int
    fine: float
    worth: float

    def step(self, told: Sequence[Array]) -> Step | None:
        if not told:
            return everything(self.shape, self.counting)
        rows, columns = self.coarse(told)
        if len(told) == 1:
            labels = join_blocks(rows, columns)
            return Sums(labels=labels, weights=np.full(int(labels.max()) + 1, self.first))
        return self._fine(rows, columns, told[1]) if len(told) == _COUNTED else None

    def coarse(self, told: Sequence[Array]) -> tuple[Array, Array]:
        """Return the coarse block of each row of cells, and of each column."""
        rest = (GRAIN - self.counting) / GRAIN
        side = math.sqrt(rows_at_least_one(told) * self.worth * rest / FIRST)
        wanted = max(LEAST, math.ceil(side / COARSE))
        return _equal(self.shape[0], wanted), _equal(self.shape[1], wanted)

    def _fine(self, rows: Array, columns: Array, noisy: Array) -> Sums:
        left = GRAIN - self.counting - self.first
        wanted = np.sqrt(np.maximum(noisy.astype(float), 0) * self.worth * left / GRAIN / self.fine)
        across, used = int(columns.max()) + 1, 0
        labels = np.zeros(self.shape, dtype=np.int64)
        for block, many in enumerate(wanted.tolist()):
            inside = tuple(_extent(one, at) for one, at in zip((rows, columns), divmod(block, across), strict=True))
            size = (inside[0].stop - inside[0].start, inside[1].stop - inside[1].start)
            blocks = tuple(max(1, min(length, math.ceil(many))) for length in size)
            labels[inside] = used + grid_labels(size, blocks)
            used += math.prod(blocks)
        return Sums(labels=labels, weights=np.full(used, left))


def join_blocks(rows: Array, columns: Array) -> Array:
    """The block of each cell, numbered row by row."""
    found: Array = rows[:, np.newaxis] * (int(columns.max()) + 1) + columns
    return found


def _equal(length: int, wanted: int) -> Array:
    """Return the block of each of ``length`` cells, where all but the last have ⌈length/wanted⌉ of them."""
    found: Array = np.arange(length) // -(-length // max(wanted, 1))
    return found


def _extent(blocks: Array, one: int) -> slice:
    """Return the extent of a block."""
    begin, end = np.searchsorted(blocks, [one, one + 1])
    return slice(int(begin), int(end))
