"""Nested quadrants that are all measured: nothing depends on the data but, if it is asked for, what is pruned after."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.staged.quads import Quads
from hubbub.parameters import Real, non_negative, whole
from hubbub.privacy.sensitivity import Norm
from hubbub.publish.inference.tree_inference import TreeInference
from hubbub.publish.spatial.prepared import flat_map
from hubbub.publish.strategies.layer import Array, Layer, Nodes, Shape, gather, spread
from hubbub.publish.strategies.split import POWER, Demand, fractions_rounded_down, gains, tree_shares
from hubbub.publish.strategies.strategy import Foretold, NoisyLayer, PreparedLayers, no_public_error, prepare_layers
from hubbub.publish.terms import Noise, Terms
from hubbub.publish.workload.workload import Workload


class Shares(StrEnum):
    """The rule that splits the price over the levels."""

    GEOMETRIC = "geometric"
    """Each level gets 2^(1/3) of the one above: least, if a query needs 2^level nodes of each level."""
    OPTIMISED = "optimised"
    """So that the mean variance of all rectangles after least squares is least, which is public."""
    UNIFORM = "uniform"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadTree(Foretold):
    """Noisy counts of nested quadrants, down to ``height`` (cells, where none is named), and cells by least squares.

    Below the leaves counts are spread evenly. ``stop`` prunes: a node whose estimate is below it, or which has fewer
    than ``least`` cells, is spread evenly over its cells and what was measured below it is not shown; the error is then
    no longer public. Without ``least_squares`` the leaves alone are used, which is there for comparisons.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution.
        Proof: one layer a level with a reach of its own (``Nodes.reach``), at shares that sum to at most 1
            (``publish.terms``) and follow from shape and terms. Least squares and pruning see noisy numbers alone.
        Needs: mechanisms.Geometric or mechanisms.Gaussian.
        Ref: Cormode, Procopiuc, Srivastava, Shen, Yu 2012; Hay, Rastogi, Miklau, Suciu 2010.
    """

    height: int | None = None
    shares: Shares = Shares.GEOMETRIC
    least_squares: bool = True
    stop: Real | None = None
    least: int = 1
    noise: Noise | None = None
    workload: Workload | None = None
    """What shares are optimised for: all rectangles, where none is named."""
    name: str = "quadtree"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", Shares(self.shares))
        whole("least", self.least, least=1)
        if self.height is not None:
            whole("height", self.height, least=0, most=30)
        if self.stop is not None:
            object.__setattr__(self, "stop", non_negative("stop", self.stop))

    def prepare(self, shape: Shape, terms: Terms) -> "PreparedLayers | Pruned":
        quads = Quads(flat_map(shape))
        height = quads.height if self.height is None else min(self.height, quads.height)
        levels = tuple(quads.parts(depth) for depth in range(height + 1))
        plan = _Levels(strategy=self, levels=levels, terms=terms)
        found = prepare_layers(plan, shape, terms, noise=self.noise, workload=self.workload)
        if self.stop is None and self.least == 1:
            return found
        return Pruned(inner=found, levels=levels, stop=float(self.stop or 0), least=self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    strategy: QuadTree
    levels: tuple[Shape, ...]
    terms: Terms
    name: str = "quadtree"

    def layers(self, shape: Shape, noise: Noise) -> tuple[Layer, ...]:
        return tuple(Nodes(shape=shape, parts=parts) for parts in self.levels)

    def shares(self, shape: Shape, noise: Noise) -> tuple[Fraction, ...]:
        kind, count = self.strategy.shares, len(self.levels)
        if kind is Shares.UNIFORM:
            return (Fraction(1, count),) * count
        if kind is Shares.GEOMETRIC:
            weights = 2 ** (np.arange(count) / 3)
            return fractions_rounded_down(weights / weights.sum())
        norm = Norm.L1 if noise is Noise.LAPLACE else Norm.L2
        reaches = [one.reach(self.terms.contribution).in_norm(norm) for one in self.layers(shape, noise)]
        sizes = [[n / m for n, m in zip(shape, parts, strict=True)] for parts in self.levels]
        squared = np.array([float(reach or 1) ** POWER[noise] for reach in reaches])
        units = np.prod(sizes, axis=1) / squared
        return fractions_rounded_down(tree_shares(gains(Demand.of(shape, self.strategy.workload), sizes), units, noise))

    def inference(self, shape: Shape, noise: Noise, variances: Sequence[float]) -> "EvenBelow":
        inner = TreeInference(levels=self.levels, variances=variances) if self.strategy.least_squares else None
        return EvenBelow(shape=shape, levels=self.levels, inner=inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenBelow:
    """The leaves by least squares, or as they are; and the cells of a leaf alike."""

    shape: Shape
    levels: tuple[Shape, ...]
    inner: TreeInference | None

    def estimate(self, noisy: Sequence[Array]) -> Array:
        leaves = noisy[-1].reshape(self.levels[-1]) if self.inner is None else self.inner.estimate(noisy)
        return evenly(leaves, self.shape)

    def leaves(self, noisy: Sequence[Any]) -> Array:
        """The same for all data: the blocks of the last level."""
        return _number_blocks(self.levels[-1], self.shape)

    def influence(self, queries: Array) -> list[Array]:
        """A leaf counts by the mean of the query over its cells."""
        leaves = self.levels[-1]
        means = gather(queries, leaves) / gather(np.ones(self.shape), leaves)
        if self.inner is not None:
            return self.inner.influence(means)
        empty = [np.zeros((len(queries), math.prod(level))) for level in self.levels[:-1]]
        return [*empty, means.reshape(len(queries), -1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """A quadtree from which small nodes are cut after the noise: its error depends on the data."""

    inner: PreparedLayers
    levels: tuple[Shape, ...]
    stop: float
    least: int

    @property
    def shape(self) -> Shape:
        return self.inner.shape

    @property
    def terms(self) -> Terms:
        return self.inner.terms

    @property
    def noise(self) -> Noise:
        return self.inner.noise

    @property
    def measurements(self) -> tuple[NoisyLayer, ...]:
        return self.inner.measurements

    def estimate(self, noisy: Sequence[Any]) -> Array:
        """A node is kept whole where its estimate or its children are too small, or a node above it was."""
        cells = self.inner.estimate(noisy)
        found = cells
        for level, ends in self._ends(cells):
            mean = spread(gather(cells, level) / gather(np.ones(self.shape), level), self.shape)
            found = np.where(spread(ends, self.shape), mean, found)
        return found

    def leaves(self, noisy: Sequence[Any]) -> Array:
        """The node that each cell was kept whole in, or the cell's own of the last level; for maps to draw."""
        found, used = _number_blocks(self.levels[-1], self.shape), math.prod(self.levels[-1])
        for level, ends in self._ends(self.inner.estimate(noisy)):
            found = np.where(spread(ends, self.shape), used + _number_blocks(level, self.shape), found)
            used += math.prod(level)
        return found

    def _ends(self, cells: Array) -> Iterator[tuple[Shape, Array]]:
        """Level by level, which of its nodes are kept whole."""
        ended = np.zeros(self.levels[0], dtype=bool)
        for level, below in zip(self.levels, [*self.levels[1:], None], strict=True):
            parts = 0.0 if below is None else gather(np.ones(self.shape), below).min()
            small = (gather(cells, level) < self.stop) | np.full(level, parts < self.least)
            ends = ~spread(ended, level) & small
            yield level, ends
            ended = spread(ended, level) | ends

    def variances(self, queries: Array) -> Array:
        raise no_public_error("which nodes were pruned depends on the noisy counts, and so on the data.")


def _number_blocks(parts: Shape, shape: Shape) -> Array:
    """Return the number of the block that each cell is in."""
    return spread(np.arange(math.prod(parts)).reshape(parts), shape)


def evenly(leaves: Array, shape: Shape) -> Array:
    """Each leaf's number shared out among its cells."""
    if leaves.shape == shape:
        return leaves
    if any(few > many for few, many in zip(leaves.shape, shape, strict=True)):
        raise ParameterError("leaves", f"at most as many as the cells {shape}", leaves.shape)
    return spread(leaves / gather(np.ones(shape), leaves.shape), shape)
