"""Marginals that were noised independently, made to agree, and without negative counts.

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

from hubbub.errors import ParameterError
from hubbub.publish.marginals.records import Axes
from hubbub.publish.marginals.residual import along, contrast, orthonormal
from hubbub.publish.strategies.layer import Array, Shape

Names = tuple[str, ...]


def reconcile(noisy: Mapping[Names, Array], variances: Mapping[Names, float]) -> dict[Names, Array]:
    """The marginals that agree and are nearest to the noisy ones, each weighed by the variance of its cells.

    An orthonormal change of basis along every axis takes a marginal apart into what each set of its columns adds.
    Equal, independent noise stays equal and independent, so each part is the mean of its estimates, weighed by their
    variances: the least squares solution, part by part. Post-processing of noisy marginals, hence free.
    """
    sizes = _sizes(noisy)
    sums: dict[Names, Array] = defaultdict(lambda: np.zeros(()))
    weights: dict[Names, float] = defaultdict(float)
    for names, values in noisy.items():
        if not variances[names] > 0:
            raise ParameterError("variances", "above 0", variances[names])
        turned = along(np.asarray(values, dtype=float), [orthonormal(sizes[name]) for name in names])
        for part in _parts(names):
            others = math.prod(sizes[name] for name in names if name not in part)
            key = tuple(sorted(part))
            weight = 1 / (variances[names] * others)
            sums[key] = sums[key] + weight * math.sqrt(others) * _take(turned, names, part)
            weights[key] += weight
    return {names: _together(names, sizes, sums, weights) for names in noisy}


def _together(
    names: Names, sizes: Mapping[str, int], sums: Mapping[Names, Array], weights: Mapping[Names, float]
) -> Array:
    turned = np.zeros([sizes[name] for name in names])
    for part in _parts(names):
        others = math.prod(sizes[name] for name in names if name not in part)
        key = tuple(sorted(part))
        order = [key.index(name) for name in part]
        turned[_block(names, part)] = (sums[key] / weights[key]).transpose(order) / math.sqrt(others)
    return along(turned, [orthonormal(sizes[name]).T for name in names])


def _take(turned: Array, names: Names, part: Names) -> Array:
    """Return the part that a set of columns adds, its axes by name."""
    order = [part.index(name) for name in sorted(part)]
    return np.asarray(turned[_block(names, part)]).transpose(order)


def _block(names: Names, part: Names) -> tuple[slice | int, ...]:
    return tuple(slice(1, None) if name in part else 0 for name in names)


def _parts(names: Names) -> list[Names]:
    return [part for length in range(len(names) + 1) for part in itertools.combinations(names, length)]


def _sizes(noisy: Mapping[Names, Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for names, values in noisy.items():
        if np.ndim(values) != len(names) or len(set(names)) != len(names):
            raise ParameterError("noisy", "arrays with one dimension for each of their columns", names)
        for name, size in zip(names, np.shape(values), strict=True):
            if sizes.setdefault(name, size) != size:
                raise ParameterError(name, f"of {sizes[name]} values in every marginal", size)
    return sizes


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
