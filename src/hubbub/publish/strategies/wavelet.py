"""Haar wavelets: a range cuts through few blocks on each level, and all other coefficients cancel out of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.errors import ParameterError
from hubbub.privacy.sensitivity import Norm
from hubbub.publish.strategies.haar import Haar, block, depth
from hubbub.publish.strategies.layer import Array, Layer, Shape
from hubbub.publish.strategies.split import NEGLIGIBLE, POWER, AxisDemand, Demand, fractions_rounded_down, free_shares
from hubbub.publish.strategies.strategy import Foretold, PreparedLayers, prepare_layers
from hubbub.publish.terms import Noise, Terms, variance
from hubbub.publish.workload.workload import Workload

_MOST_BANDS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Wavelet(Foretold):
    """Noisy Haar coefficients, and the cells by the inverse transform, in as many dimensions as there are (Privelet).

    The noise of every range is that of O(log n) coefficients, O(log³ n) in variance. Shares of the price are those with
    the least expected error of the workload (all ranges, where none is named). With Laplace noise, whose price counts
    each level, the coarsest few are better replaced by the sums of a few dozen blocks. ``even`` does without either:
    all levels, down from the sum of all, at the same share, which is what Privelet's weights come to.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution.
        Proof: one layer a band with a reach of its own (``Band.reach``), at shares that sum to at most 1
            (``publish.terms``). Bands and shares come from shape and terms. The inverse is post-processing.
        Needs: mechanisms.Geometric or mechanisms.Gaussian.
        Ref: Xiao, Wang, Gehrke 2011.
    """

    noise: Noise | None = None
    even: bool = False
    workload: Workload | None = None
    name: str = "wavelet"

    def prepare(self, shape: Shape, terms: Terms) -> PreparedLayers:
        demand = Demand.of(shape, self.workload)
        kinds = terms.kinds if self.noise is None else (self.noise,)
        plans = [(noise, coarse) for noise in kinds for coarse in self._coarse(demand, shape, noise)]
        found = [
            prepare_layers(self._plan(shape, terms, noise, demand, coarse), shape, terms, noise=noise)
            for noise, coarse in plans
        ]
        return min(found, key=lambda one: expected_variance(demand, one))

    def _coarse(self, demand: Demand, shape: Shape, noise: Noise) -> list[Shape]:
        """The best by the model, and the cells alone: what they really cost is compared after calibration."""
        if self.even:
            return [(0,) * len(shape)]
        return [coarsest(demand, shape, noise), tuple(depth(length) for length in shape)]

    def _plan(self, shape: Shape, terms: Terms, noise: Noise, demand: Demand, coarse: Shape) -> "_Plan":
        haar = Haar(shape=shape, coarse=coarse)
        if math.prod(haar.counts) > _MOST_BANDS:
            raise ParameterError("shape", f"of at most {_MOST_BANDS} combinations of levels over all axes", shape)
        norm = Norm.L1 if noise is Noise.LAPLACE else Norm.L2
        reaches = [band.reach(terms.contribution).in_norm(norm) for band in haar.bands]
        squared = np.array([float(reach or 1) ** POWER[noise] for reach in reaches])
        costs = np.ones(len(reaches)) if self.even else weights(demand, haar) * squared
        return _Plan(haar=haar, split=fractions_rounded_down(free_shares(costs, noise)))


def expected_variance(demand: Demand, ready: PreparedLayers) -> float:
    """The mean variance of a workload, with the laws that were calibrated; exact for powers of two."""
    assert isinstance(ready.inference, Inverse)
    each = np.array([variance(one.mechanism) for one in ready.measurements])  # type: ignore[arg-type]
    return float(np.sum(weights(demand, ready.inference.haar) * each))


def coarsest(demand: Demand, shape: Shape, noise: Noise) -> Shape:
    """Return the level at which each axis should stop to compare blocks: with shares at their best,
    errors of axes multiply.
    """
    root = 1 / (POWER[noise] + 1)

    def price(axis: int, coarse: int) -> float:
        each = sum((scale * _along(axes[axis], shape[axis], coarse) for scale, axes in demand.terms), start=np.zeros(1))
        return float(np.sum(each**root))

    return tuple(
        min(range(depth(length) + 1), key=lambda coarse: price(axis, coarse)) for axis, length in enumerate(shape)
    )


def weights(demand: Demand, haar: Haar) -> Array:
    """Return the weight of the variance of each band in the mean variance of a workload.

    Coefficients of one band are orthogonal, with as many entries ±1 as a block has cells; what they span is what
    averages over the next finer blocks know beyond those over coarser ones (``publish.strategies.split``).
    """
    found = np.zeros(math.prod(haar.counts))
    for scale, axes in demand.terms:
        total = np.full(1, scale)
        for axis, length, coarse in zip(axes, haar.shape, haar.coarse, strict=True):
            total = np.multiply.outer(total, _along(axis, length, coarse)).reshape(-1)
        found += total
    return found


def _along(axis: AxisDemand, length: int, coarse: int) -> Array:
    """The weights of one axis."""
    bands = range(depth(length) - coarse + 1)
    known = [axis.at(block(length, coarse + band, 0)) for band in bands]
    least = NEGLIGIBLE * known[-1]
    found: Array = np.maximum(np.diff(known, prepend=0.0), least) / [block(length, coarse, band) for band in bands]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    haar: Haar
    split: tuple[Fraction, ...]
    name: str = "wavelet"

    def layers(self, shape: Shape, noise: Noise) -> tuple[Layer, ...]:
        return self.haar.bands

    def shares(self, shape: Shape, noise: Noise) -> tuple[Fraction, ...]:
        return self.split

    def inference(self, shape: Shape, noise: Noise, variances: Sequence[float]) -> "Inverse":
        return Inverse(haar=self.haar)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverse:
    """The inverse transform, and its transpose."""

    haar: Haar

    def estimate(self, noisy: Sequence[Array]) -> Array:
        parts = [band.parts for band in self.haar.bands]
        return self.haar.combine([one.reshape(part) for one, part in zip(noisy, parts, strict=True)])

    def influence(self, queries: Array) -> list[Array]:
        return [one.reshape(len(queries), -1) for one in self.haar.analyse(queries)]
