"""Errors of the answers of a prepared strategy: deviations, intervals, and a curve over lengths of ranges.

All of it is public, and known before anything is spent.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hubbub.errors import HubbubError
from hubbub.publish.release.margin import from_variance, margin, noises
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import Prepared
from hubbub.publish.workload.expected_error import Covariant

_MOST_COEFFICIENTS = 12_000_000
_MOST_UNIT_QUERIES = 1 << 12
_BATCH = 1 << 22
_PLACES = 8


@runtime_checkable
class Influenced(Protocol):
    """A linear estimate that can say how much each noisy number counts."""

    def influence(self, queries: Array) -> list[Array]: ...


def of(prepared: Prepared, query: Array, *, beta: float) -> tuple[float, float]:
    """The standard deviation of one answer, and how far it is off at most but for a probability of ``beta``.

    From the coefficients of all noises where these can be written out, else from the variance.
    """
    variance = float(prepared.variances(query[np.newaxis])[0])
    parts, laws = None, [one.mechanism for one in prepared.measurements]
    inference = getattr(prepared, "inference", prepared)
    many = sum(one.layer.size for one in prepared.measurements)
    if isinstance(inference, Influenced) and many <= _MOST_COEFFICIENTS:
        rows = [row[0] for row in inference.influence(query[np.newaxis])]
        parts = noises(rows, laws)
    found = from_variance(variance, laws, beta=beta) if parts is None else margin(parts, beta=beta)
    return math.sqrt(variance), found


def deviation(prepared: Prepared, query: Array) -> float | None:
    """The standard deviation of one answer; None where it depends on the data."""
    try:
        return math.sqrt(float(prepared.variances(query[np.newaxis])[0]))
    except HubbubError:
        return None


def deviations(prepared: Prepared) -> Array | None:
    """Of every cell by itself; None where there is no public error, or none that is cheap."""
    cells = math.prod(prepared.shape)
    try:
        if isinstance(prepared, Covariant):
            found = prepared.covariance()
            if found is not None:
                whole: Array = np.sqrt(found.scale * _diagonal(found.factors)).reshape(prepared.shape)
                return whole
        if cells > _MOST_UNIT_QUERIES:
            return None
        step = max(1, _BATCH // cells)
        parts = [
            prepared.variances(np.eye(min(step, cells - start), cells, k=start).reshape(-1, *prepared.shape))
            for start in range(0, cells, step)
        ]
        each: Array = np.sqrt(np.concatenate(parts)).reshape(prepared.shape)
        return each
    except HubbubError:
        return None


def _diagonal(factors: Sequence[Any]) -> Array:
    """Of a Kronecker product; a number stands for the identity of that size."""
    parts = [np.ones(one) if isinstance(one, int) else np.diag(one) for one in factors]
    return reduce(np.multiply.outer, parts).reshape(-1)


def by_length(prepared: Prepared) -> list[tuple[int, float]] | None:
    """Cells in a box, and the root mean square error of boxes of that size: a few places for each of a few sizes.

    None where the error depends on the data.
    """
    shape = prepared.shape
    if math.prod(shape) > _MOST_COEFFICIENTS:  # nobody lists so many
        return None
    found: dict[int, float] = {}
    try:
        for sides in _sizes(shape):
            queries = _boxes(shape, sides, places=_PLACES if math.prod(shape) <= _BATCH // 64 else 1)
            variances = np.concatenate([prepared.variances(query[np.newaxis]) for query in queries])
            found[math.prod(sides)] = math.sqrt(float(np.mean(variances)))
    except HubbubError:
        return None
    return sorted(found.items())


def true_errors(cells: Array, truth: Array) -> list[tuple[int, float]]:
    """The same for errors that were made, on data that was generated: boxes of the same sizes, at more places."""
    found: dict[int, float] = {}
    gone = np.asarray(cells, dtype=float) - truth
    for sides in _sizes(truth.shape):
        queries = _boxes(truth.shape, sides, places=4 * _PLACES if truth.size <= _BATCH // 64 else 1)
        found[math.prod(sides)] = math.sqrt(float(np.mean([np.sum(query * gone) ** 2 for query in queries])))
    return sorted(found.items())


def _sizes(shape: Shape) -> list[Shape]:
    """From one cell to all of them, doubling along every axis."""
    steps = max(1, math.ceil(math.log2(max(shape))))
    return [
        tuple(max(1, min(length, round(length ** (step / steps)))) for length in shape) for step in range(steps + 1)
    ]


def _boxes(shape: Shape, sides: Shape, *, places: int) -> list[Array]:
    """Boxes of one size, spread evenly over the domain."""
    made: dict[Shape, Array] = {}
    for number in range(places):
        share = (number + 0.5) / places
        start = tuple(math.floor(share * (length - side + 1)) for length, side in zip(shape, sides, strict=True))
        if start not in made:
            query = np.zeros(shape)
            query[tuple(slice(low, low + side) for low, side in zip(start, sides, strict=True))] = 1
            made[start] = query
    return list(made.values())
