"""Hierarchies of block sums: a long range is few blocks, so it adds up few noises."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.parameters import whole
from hubbub.privacy.sensitivity import Norm
from hubbub.publish.inference.tree_inference import TreeInference
from hubbub.publish.strategies.layer import Array, Layer, Nodes, Shape
from hubbub.publish.strategies.split import POWER, Demand, fractions_rounded_down, gains, tree_shares, tree_variance
from hubbub.publish.strategies.strategy import Foretold, PreparedLayers, prepare_layers
from hubbub.publish.terms import Noise, Terms, variance
from hubbub.publish.workload.workload import Workload

_WIDEST = 64
_LEAST_SHARE = 1e-3
"""A level that would get less is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy(Foretold):
    """Noisy sums over blocks on several levels, and the cells by least squares; every level splits every axis.

    ``branching`` None leaves everything to the expected error of the workload (all ranges, where none is named), which
    is public: with Laplace noise a wide tree is right (about 16 children, and no tree at all for short domains), with
    Gaussian noise a binary one. A number fixes the children that a node has along each axis. Shares, and which levels
    are worth having, follow from the same error; ``even`` keeps all levels and gives them the same share, as the first
    papers do.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution, however many of its cells
            meet in one block.
        Proof: one layer a level with a reach of its own (``Nodes.reach``), at shares that sum to at most 1
            (``publish.terms``). Levels and shares come from shape and terms. Least squares is post-processing.
        Needs: mechanisms.Geometric or mechanisms.Gaussian.
        Ref: Hay, Rastogi, Miklau, Suciu 2010; Qardaji, Yang, Li 2013.
    """

    branching: int | None = None
    noise: Noise | None = None
    even: bool = False
    workload: Workload | None = None
    name: str = "hierarchy"

    def __post_init__(self) -> None:
        if self.branching is not None:
            whole("branching", self.branching, least=2)

    def prepare(self, shape: Shape, terms: Terms) -> PreparedLayers:
        demand = Demand.of(shape, self.workload)
        kinds = terms.kinds if self.noise is None else (self.noise,)
        plans = [(noise, plan) for noise in kinds for plan in self._plans(_Setting(shape, terms, noise, demand))]
        found = [(plan, prepare_layers(plan, shape, terms, noise=noise)) for noise, plan in plans]
        return min(found, key=lambda one: one[0].expect(demand, one[1]))[1]

    def _plans(self, setting: "_Setting") -> list["LevelPlan"]:
        """The best tree by the model, and the cells alone: what they really cost is compared after calibration."""
        shape, alone = setting.shape, (setting.shape,)
        if self.branching is not None:
            return [self._plan(setting, nest_levels(shape, self.branching))]
        most = 2 if setting.noise is Noise.GAUSSIAN else min(_WIDEST, max(2, *shape))
        trees = dict.fromkeys(nest_levels(shape, width) for width in range(2, most + 1))
        best = min((self._plan(setting, levels) for levels in trees), key=lambda one: one.model)
        return [best] if best.levels == alone else [best, self._plan(setting, alone)]

    def _plan(self, setting: "_Setting", levels: tuple[Shape, ...]) -> "LevelPlan":
        if self.even:
            return setting.plan(levels, np.full(len(levels), 1 / len(levels)))
        shares = setting.shares(levels)
        worth = [level for level, share in zip(levels[:-1], shares, strict=False) if share >= _LEAST_SHARE]
        kept = (*worth, levels[-1])
        return setting.plan(kept, setting.shares(kept))


def nest_levels(shape: Shape, branching: int) -> tuple[Shape, ...]:
    """Levels from the whole to the cells: ``branching`` blocks in each along every axis that still can be split.

    An axis of length n is split round(log n) times, and its last split has as many children as are left.
    """
    depths = [max(1, round(math.log(length, branching))) if length > 1 else 0 for length in shape]
    return tuple(
        tuple(length if step >= depth else branching**step for length, depth in zip(shape, depths, strict=True))
        for step in range(max(depths) + 1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPlan:
    """Levels, and what each gets of the price, for one law of noise."""

    levels: tuple[Shape, ...]
    split: tuple[Fraction, ...]
    model: float
    """The mean variance of the workload, up to a factor that all plans at one price with one law have in common."""
    name: str = "hierarchy"

    def layers(self, shape: Shape, noise: Noise) -> tuple[Layer, ...]:
        return tuple(Nodes(shape=shape, parts=parts) for parts in self.levels)

    def shares(self, shape: Shape, noise: Noise) -> tuple[Fraction, ...]:
        return self.split

    def inference(self, shape: Shape, noise: Noise, variances: Sequence[float]) -> TreeInference:
        return TreeInference(levels=self.levels, variances=variances)

    def expect(self, demand: Demand, ready: PreparedLayers) -> float:
        """The mean variance of a workload, with the laws that were calibrated."""
        each = np.array([variance(one.mechanism) for one in ready.measurements])  # type: ignore[arg-type]
        sizes = _sizes(ready.shape, self.levels)
        return tree_variance(gains(demand, sizes), np.prod(sizes, axis=1) / each)


@dataclass(frozen=True, slots=True)
class _Setting:
    """The setting that a tree is planned for."""

    shape: Shape
    terms: Terms
    noise: Noise
    demand: Demand

    def shares(self, levels: tuple[Shape, ...]) -> Array:
        return tree_shares(gains(self.demand, _sizes(self.shape, levels)), self._units(levels), self.noise)

    def plan(self, levels: tuple[Shape, ...], shares: Array) -> LevelPlan:
        precisions = self._units(levels) * shares ** POWER[self.noise]
        model = tree_variance(gains(self.demand, _sizes(self.shape, levels)), precisions)
        return LevelPlan(levels=levels, split=fractions_rounded_down(shares), model=model)

    def _units(self, levels: tuple[Shape, ...]) -> Array:
        """Return the worth of one share of a level: cells a block, over the squared reach."""
        one, norm = self.terms.contribution, Norm.L1 if self.noise is Noise.LAPLACE else Norm.L2
        reaches = [Nodes(shape=self.shape, parts=parts).reach(one).in_norm(norm) for parts in levels]
        squared = np.array([float(reach or 1) ** POWER[self.noise] for reach in reaches])
        units: Array = np.prod(_sizes(self.shape, levels), axis=1) / squared
        return units


def _sizes(shape: Shape, levels: Sequence[Shape]) -> list[list[float]]:
    """Of the blocks of each level, along each axis."""
    return [[length / parts for length, parts in zip(shape, level, strict=True)] for level in levels]
