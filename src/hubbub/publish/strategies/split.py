"""The best split of a price over levels, by the mean variance of a workload's answers.

Let Q_k average over the blocks of level k, and T_k be what a workload asks of these averages (``demand``). Blocks of
one size make the Q_k commute: least squares on levels with block size s_k and variance v_k has mean variance
Σ_j (T_j - T_{j-1}) / Σ_{k≥j} s_k/v_k, and Haar coefficients, which span what Q_k adds to Q_{k-1}, have theirs weighted
by the same differences. Nothing here sees data, and no claim of privacy rests on it.

Let Q average over blocks of one size along each axis. tr(WᵀW·Q), divided by the number of queries, tells how much of W
depends on these averages; for prefixes and ranges it has a closed form, so that no matrix of the cells is needed. Sizes
may be fractions: blocks whose sizes differ by one are taken to be of their mean size, which is right to choose by.
Nothing here sees data, and no claim of privacy rests on it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.terms import Noise
from hubbub.publish.workload.gram import Gram, Identity, Ordered, WeightedGram
from hubbub.publish.workload.workload import Workload

_STRAIGHT = 1e-9
_DENSE = 1 << 12
NEGLIGIBLE = 1e-10
"""A part of what a workload asks: the least that any level is taken to matter, so that all cells can be estimated."""


class AxisDemand(Protocol):
    """One axis of a workload."""

    def at(self, size: float) -> float:
        """tr(G·Q) for blocks of this size."""
        ...


@dataclass(frozen=True, slots=True)
class LinearDemand:
    """G_ij = first(min(i, j)) · last(max(i, j)), both straight lines, at places from 1: ranges, prefixes, totals."""

    length: int
    first: tuple[float, float]
    last: tuple[float, float]

    def at(self, size: float) -> float:
        """Σ of entries over the blocks, over their size.

        In the block behind ``before`` cells, min(i, j) adds up to size²·before + size(size+1)(2·size+1)/6, and i·j to
        the square of Σi; max(i, j) is i + j - min(i, j). ``before`` runs over multiples of the size.
        """
        size = min(size, float(self.length))
        blocks = self.length / size
        (a, b), (c, d) = self.first, self.last
        before = size * blocks * (blocks - 1) / 2
        minima = size**2 * before + blocks * size * (size + 1) * (2 * size + 1) / 6
        places = size * before + blocks * size * (size + 1) / 2
        squares = size**2 * (
            size**2 * (blocks - 1) * blocks * (2 * blocks - 1) / 6 + (size + 1) * before + blocks * (size + 1) ** 2 / 4
        )
        maxima = 2 * size * places - minima
        return (blocks * size**2 * a * c + a * d * maxima + b * c * minima + b * d * squares) / size


@dataclass(frozen=True, slots=True)
class CellDemand:
    """Each cell by itself: the trace of Q."""

    length: int

    def at(self, size: float) -> float:
        return self.length / min(size, float(self.length))


@dataclass(frozen=True, slots=True, eq=False)
class MatrixDemand:
    """A matrix without a structure that is known."""

    entries: Array

    def at(self, size: float) -> float:
        length = len(self.entries)
        size = min(size, float(length))
        starts = np.floor(np.arange(math.ceil(length / size - _STRAIGHT)) * size + _STRAIGHT).astype(int)
        sums = np.add.reduceat(np.add.reduceat(self.entries, starts, axis=0), starts, axis=1)
        return float(np.trace(sums)) / size


@dataclass(frozen=True, slots=True)
class Several:
    """A weighted sum."""

    parts: tuple[tuple[float, AxisDemand], ...]

    def at(self, size: float) -> float:
        return sum(weight * part.at(size) for weight, part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A sum of products over axes."""

    terms: tuple[tuple[float, tuple[AxisDemand, ...]], ...]

    @classmethod
    def of(cls, shape: Shape, workload: Workload | None) -> "Demand":
        """Of all ranges, where none is named or where it has no factor for each axis, and many cells for a matrix."""
        if workload is not None and workload.shape != shape:
            raise ParameterError("workload", f"for cells of shape {shape}", workload.shape)
        if workload is None or not (workload.axes == len(shape) or (len(shape) == 1 and shape[0] <= _DENSE)):
            return cls(terms=((1.0, tuple(_ranges(length) for length in shape)),))
        found = workload.gram
        each = [(term.scale / workload.count, tuple(_axis(factor) for factor in term.factors)) for term in found]
        return cls(terms=tuple(each))

    def share_of(self, sizes: Sequence[float]) -> float:
        """tr(WᵀW·Q) / queries, for blocks of these sizes along the axes."""
        return sum(
            scale * math.prod(axis.at(size) for axis, size in zip(axes, sizes, strict=True))
            for scale, axes in self.terms
        )


def _ranges(length: int) -> AxisDemand:
    """Of n(n+1)/2 ranges, i·(n+1-j) contain both of i <= j."""
    each = 2 / (length * (length + 1))
    return LinearDemand(length, (0.0, each), (length + 1.0, -1.0))


def _axis(gram: Gram) -> AxisDemand:
    if isinstance(gram, Identity):
        return CellDemand(gram.length)
    if isinstance(gram, WeightedGram):
        return Several(tuple((w, _axis(part)) for w, part in zip(gram.weights, gram.parts, strict=True)))
    if isinstance(gram, Ordered):
        first, last = _line(gram.first), _line(gram.last)
        if first is not None and last is not None:
            return LinearDemand(gram.length, first, last)
    return MatrixDemand(gram.dense())


def _line(values: Array) -> tuple[float, float] | None:
    """Height at place 0 and slope, if the values at places 1, 2, … lie on a line."""
    slope = float(values[-1] - values[0]) / max(1, len(values) - 1)
    start = float(values[0]) - slope
    bend = np.abs(values - (start + slope * np.arange(1, len(values) + 1))).max()
    return (start, slope) if bend <= _STRAIGHT * max(1.0, float(np.abs(values).max())) else None


_STEPS = 400
_SETTLED = 1e-7
_GRAIN = 1 << 24
POWER = {Noise.LAPLACE: 2, Noise.GAUSSIAN: 1}
"""Precision is proportional to this power of a share: 1/v is (ε·w)² / 2Δ² or 2ρ·w / Δ²."""


def gains(demand: Demand, sizes: Sequence[Sequence[float]]) -> Array:
    """T_j - T_{j-1} for nested levels, coarsest first, given by the sizes of their blocks along each axis."""
    known = [demand.share_of(one) for one in sizes]
    found: Array = np.maximum(np.diff(known, prepend=0.0), NEGLIGIBLE * known[-1])
    return found


def tree_variance(gain: Array, precisions: Array) -> float:
    """The mean over all queries; ``precisions`` are s_k/v_k."""
    return float(np.sum(gain / np.cumsum(precisions[::-1])[::-1]))


def tree_shares(gain: Array, units: Array, noise: Noise) -> Array:
    """Shares for levels whose precisions are ``units`` times a power of their share, by a fixed-point iteration.

    At the best split every level gains alike from a little more, so each share is multiplied by a root of what it gains
    until they agree. Gaussian noise makes the problem convex; with Laplace noise it has local optima, in which levels
    that do not pay are left at nearly nothing: callers compare several sets of levels.
    """
    power = POWER[noise]
    shares = np.full(len(gain), 1 / len(gain))
    for _ in range(_STEPS):
        behind = np.cumsum((units * shares**power)[::-1])[::-1]
        slope = units * shares ** (power - 1) * np.cumsum(gain / behind**2)
        moved = shares * slope ** (1 / (power + 1))
        moved /= moved.sum()
        if np.abs(moved - shares).max() < _SETTLED:
            break
        shares = np.maximum(moved, 1e-12)
    return shares


def free_shares(costs: Array, noise: Noise) -> Array:
    """Shares for numbers that do not help each other: Σ cost / share^power is least at these."""
    shares: Array = costs ** (1 / (POWER[noise] + 1))
    shares /= shares.sum()
    return shares


def fractions_rounded_down(shares: Array) -> tuple[Fraction, ...]:
    """As exact fractions that sum to at most 1."""
    whole = [max(1, math.floor(share * _GRAIN)) for share in shares]
    return tuple(Fraction(one, max(_GRAIN, sum(whole))) for one in whole)
