"""Marginals that were noised independently, made to agree: least squares without the cells of the whole table."""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from hubbub.errors import ParameterError
from hubbub.publish.marginals.contrast import orthonormal
from hubbub.publish.marginals.residual import along
from hubbub.publish.strategies.layer import Array

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
