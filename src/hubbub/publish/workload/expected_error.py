"""The error of answers before anything is spent: exact, for any strategy with a public error and any workload.

The variance of all queries together is tr(WᵀW·C), with C the covariance of the estimated cells: both are Kronecker
products for product workloads and strategies, and are never written out there. C comes from the strategy's own
inference, and the variance of the noise from its discrete law.
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from hubbub.errors import CapacityError, ParameterError
from hubbub.parameters import Real
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.terms import Contribution, Terms
from hubbub.publish.workload.gram import Covariance, along
from hubbub.publish.workload.listed_queries import batches
from hubbub.publish.workload.workload import Workload

DENSE = 1 << 12
"""The most cells whose covariance is written out."""
_LISTED = 1 << 15
"""The most queries that are looked at one by one where there is no covariance."""


class Foreseeable(Protocol):
    """A strategy that is prepared for a shape and a price (``strategy.Prepared``)."""

    @property
    def shape(self) -> Shape: ...

    def variances(self, queries: Array) -> Array: ...


@runtime_checkable
class Covariant(Protocol):
    """A prepared strategy that knows the covariance of all its cells."""

    def covariance(self) -> Covariance | None:
        """None where it has no structure, and too many cells to be written out."""
        ...


class Preparing(Protocol):
    """A strategy."""

    def prepare(self, shape: Shape, terms: Terms) -> Foreseeable: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The error of a workload's answers: standard deviations, since nothing here is biased."""

    queries: int
    variance: float
    """Of all queries together."""
    worst: float
    """The standard deviation of the query that has the greatest."""

    @property
    def rmse(self) -> float:
        """Of one query: the root of the mean of squared errors."""
        return math.sqrt(self.variance / self.queries)


def error(
    strategy: Preparing,
    workload: Workload,
    *,
    epsilon: Real,
    delta: Real = 0,
    contribution: Contribution | None = None,
) -> Expected:
    """Return the error of a strategy on a workload at a price. Free: no data is involved."""
    terms = Terms.at(epsilon, delta, contribution=contribution)
    return expect(strategy.prepare(workload.shape, terms), workload)


def expect(prepared: Foreseeable, workload: Workload) -> Expected:
    """The same for a strategy that is prepared already."""
    if prepared.shape != workload.shape:
        raise ParameterError("workload", f"for cells of shape {prepared.shape}", workload.shape)
    cells = math.prod(workload.shape)
    found = prepared.covariance() if isinstance(prepared, Covariant) else None
    if found is not None and len(found.factors) == workload.axes:
        return _from(workload, found)
    if found is not None and cells <= DENSE:
        return _from(workload, Covariance(factors=(found.dense(),)))
    if workload.count > _LISTED:
        raise CapacityError(
            f"The covariance of {cells} cells cannot be written out, and {workload.count} queries are too many to look "
            "at one by one. Ask about some of them (publish.Boxes)."
        )
    each = np.concatenate([prepared.variances(workload.rows(some)) for some in batches(workload.count, cells)])
    return Expected(queries=workload.count, variance=float(each.sum()), worst=math.sqrt(float(each.max())))


def _from(workload: Workload, covariance: Covariance) -> Expected:
    variance = 0.0
    for term in workload.gram:
        if len(term.factors) == len(covariance.factors):
            parts = zip(term.factors, covariance.factors, strict=True)
            variance += term.scale * math.prod(along(gram, one) for gram, one in parts)
        else:
            (whole,) = covariance.factors
            variance += float(np.sum(term.dense() * whole))
    worst = covariance.scale * workload.worst(covariance.factors)
    return Expected(queries=workload.count, variance=covariance.scale * variance, worst=math.sqrt(worst))
