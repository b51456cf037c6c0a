"""Marginals without negative counts that still agree: the nearest ones in the metric of the noise.

The truth is among all marginals that agree and are not negative; that set is convex, so its point nearest to the noisy
residuals is nearer to the truth than they are (in that metric, for every draw). It is found through the dual: one price
a cell, raised while the cell is negative. Whatever the prices, residuals determine all marginals, so they agree.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.publish.marginals.contrast import contrast
from hubbub.publish.marginals.records import Axes
from hubbub.publish.marginals.residual import along
from hubbub.publish.strategies.layer import Array, Shape

_GAP = 1e-6
"""Of the squared distance that was gone: what is left of the way is less than 1 in 500 of it."""
_MARGIN = 1.05
"""Contrasts are orthogonal but for rounding; the step is a little smaller than if they were exactly."""


def nonnegative_residuals(
    workload: Sequence[Axes],
    shape: Shape,
    residuals: Mapping[Axes, Array],
    variances: Mapping[Axes, float],
    *,
    rounds: int,
    tolerance: float,
) -> dict[Axes, Array]:
    """Residuals of the same sets, whose marginals are at least -``tolerance`` everywhere or ran out of ``rounds``."""
    sets = list(residuals)
    offsets = dict(zip(sets, np.cumsum([0] + [residuals[one].size for one in sets]), strict=False))
    noisy = np.concatenate([residuals[one].reshape(-1) for one in sets])
    spread = np.concatenate([np.full(residuals[one].size, variances[one]) for one in sets])
    groups = _groups(workload, shape, residuals, offsets)
    step = 1 / (_MARGIN * _steepest(workload, shape, variances))
    prices = [np.zeros(group.index.shape) for group in groups]
    ahead = [price.copy() for price in prices]
    found, momentum = noisy, 1.0
    for _ in range(rounds):
        pull = sum(group.gather(price, noisy.size) for group, price in zip(groups, ahead, strict=True))
        found = noisy + spread * pull
        tables = [group.tables(found) for group in groups]
        # Σ price·count is the gap of duality: half the squared distance to the nearest point, or more.
        gap = sum(abs(float(np.sum(price * table))) for price, table in zip(ahead, tables, strict=True))
        if min(float(table.min()) for table in tables) >= -tolerance and gap <= _GAP * float(np.sum(spread * pull**2)):
            break
        raised = [np.maximum(price - step * table, 0) for price, table in zip(ahead, tables, strict=True)]
        uphill = sum(float(np.sum((a - r) * (r - p))) for a, r, p in zip(ahead, raised, prices, strict=True)) > 0
        momentum, before = (1.0, 1.0) if uphill else ((1 + math.sqrt(1 + 4 * momentum**2)) / 2, momentum)
        drift = (before - 1) / momentum
        ahead = [np.maximum(r + drift * (r - p), 0) for r, p in zip(raised, prices, strict=True)]
        prices = raised
    return {
        one: found[start : start + residuals[one].size].reshape(residuals[one].shape) for one, start in offsets.items()
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Marginals of the same shape, worked on together."""

    index: Array
    """For each marginal, where its stacked residuals are."""
    inverses: tuple[Array, ...]

    def tables(self, flat: Array) -> Array:
        return along(np.moveaxis(flat[self.index], 0, -1), self.inverses)

    def gather(self, prices: Array, size: int) -> Array:
        back = along(np.moveaxis(prices, 0, -1), [inverse.T for inverse in self.inverses])
        return np.bincount(self.index.reshape(-1), back.reshape(-1), minlength=size)


def _groups(
    workload: Sequence[Axes], shape: Shape, residuals: Mapping[Axes, Array], offsets: Mapping[Axes, int]
) -> list[_Group]:
    alike: dict[Shape, list[Axes]] = defaultdict(list)
    for marginal in workload:
        alike[tuple(shape[axis] for axis in marginal)].append(marginal)
    return [
        _Group(
            np.stack([_stack(marginal, shape, residuals, offsets) for marginal in members]),
            tuple(contrast(n).inverse for n in sizes),
        )
        for sizes, members in alike.items()
    ]


def _stack(marginal: Axes, shape: Shape, residuals: Mapping[Axes, Array], offsets: Mapping[Axes, int]) -> Array:
    place = np.zeros([shape[axis] for axis in marginal], dtype=np.intp)
    for length in range(len(marginal) + 1):
        for one in itertools.combinations(marginal, length):
            if one in residuals:
                block = tuple(slice(1, None) if axis in one else 0 for axis in marginal)
                place[block] = np.arange(residuals[one].size).reshape(residuals[one].shape) + offsets[one]
    return place


def _steepest(workload: Sequence[Axes], shape: Shape, variances: Mapping[Axes, float]) -> float:
    """The greatest eigenvalue of the covariance of all cells, for orthogonal contrasts."""
    total = [float(contrast(n).spread[:, 0].sum()) for n in shape]
    others = [float(np.linalg.norm(contrast(n).inverse[:, 1:], 2)) ** 2 if n > 1 else 0.0 for n in shape]
    found: dict[Axes, float] = defaultdict(float)
    for marginal in workload:
        for length in range(len(marginal) + 1):
            for one in itertools.combinations(marginal, length):
                if one in variances:
                    found[one] += math.prod(others[axis] if axis in one else total[axis] for axis in marginal)
    return max(variances[one] * weight for one, weight in found.items())
