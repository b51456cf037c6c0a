"""The matrix mechanism: measure what is best for the queries that will be asked, and solve for the cells.

A strategy is optimised for its workload before any data is seen, along one axis or as a product over several, and kept
for the next time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from threading import Lock

import numpy as np
from threadpoolctl import threadpool_limits

from hubbub.errors import ParameterError
from hubbub.publish.strategies import optimise
from hubbub.publish.strategies.layer import Array, Layer, Shape
from hubbub.publish.strategies.rounded_matrix import Along, Rounded, along_axes
from hubbub.publish.strategies.strategy import Foretold, PreparedLayers, prepare_layers
from hubbub.publish.terms import Noise, Terms
from hubbub.publish.workload.gram import Covariance, Dense, Kronecker, WeightedGram, along
from hubbub.publish.workload.products import all_ranges
from hubbub.publish.workload.workload import Workload

_GRID = (16, 12, 10)
"""Bits of the grid that matrices are rounded to, for one axis, two, and more: products have the sum of them."""
_ROUNDS = 3
"""How often each axis is optimised again with what was found for the others, where a workload is a sum of products."""
_SEARCHING = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix(Foretold):
    """Optimised for a workload: all ranges along every axis where none is named.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution.
        Proof: one layer, a matrix of whole numbers that depends on the workload alone, at the whole price
            (``publish.terms``), with the exact norms of that very matrix (``rounded_matrix.Along.reach``). Cells are
            solved for from the noisy numbers: post-processing.
        Needs: mechanisms.Geometric or mechanisms.Gaussian; a workload that does not depend on the data.
        Ref: Li, Hay, Rastogi, Miklau, McGregor 2010; McKenna, Miklau, Hay, Machanavajjhala 2018.
    """

    workload: Workload | None = None
    noise: Noise | None = None
    matrices: tuple[Rounded, ...] = ()
    """What to measure along each axis; searched for where left out. A search may end elsewhere on another machine, so
    what was measured is kept with a release (``pin``)."""
    name: str = "matrix"

    def prepare(self, shape: Shape, terms: Terms) -> PreparedLayers:
        return prepare_layers(self, shape, terms, noise=self.noise, workload=self._workload(shape))

    def layers(self, shape: Shape, noise: Noise) -> tuple[Layer, ...]:
        return (Along(shape=shape, factors=self.factors(shape, noise)),)

    def shares(self, shape: Shape, noise: Noise) -> tuple[Fraction, ...]:
        return (Fraction(1),)

    def inference(self, shape: Shape, noise: Noise, variances: Sequence[float]) -> "LeastSquares":
        return LeastSquares(shape=shape, factors=self.factors(shape, noise))

    def factors(self, shape: Shape, noise: Noise) -> tuple[Rounded, ...]:
        """The matrices along each axis, or one for all cells in a row."""
        return self.matrices or optimise_matrices(self._workload(shape), noise)

    def pin(self, made: PreparedLayers) -> "Matrix":
        """The same, with the matrices and the law that were really used."""
        layer = made.measurements[0].layer
        assert isinstance(layer, Along)
        return replace(self, noise=made.noise, matrices=layer.factors)

    def _workload(self, shape: Shape) -> Workload:
        workload = all_ranges(shape) if self.workload is None else self.workload
        if workload.shape != shape:
            raise ParameterError("workload", f"for cells of shape {shape}", workload.shape)
        return workload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeastSquares:
    """The unbiased estimate of least variance, axis by axis: products are inverted factor by factor."""

    shape: Shape
    factors: tuple[Rounded, ...]

    def estimate(self, noisy: Sequence[Array]) -> Array:
        values = noisy[0].reshape([factor.entries.shape[0] for factor in self.factors])
        return along_axes(values, [factor.solution for factor in self.factors]).reshape(self.shape)

    def influence(self, queries: Array) -> list[Array]:
        rows = queries.reshape(len(queries), *(factor.entries.shape[1] for factor in self.factors))
        found = along_axes(rows, [factor.solution.T for factor in self.factors], first=1)
        return [found.reshape(len(queries), -1)]

    def covariance(self, variances: Sequence[float]) -> Covariance:
        factors = tuple(factor.inverse for factor in self.factors)
        return Covariance(factors=factors, scale=variances[0])


def optimise_matrices(workload: Workload, noise: Noise) -> tuple[Rounded, ...]:
    """Return the result of ``search``, on the grid; kept, since it depends on public parameters alone.

    One search at a time: what is measured and what is solved for must be the same, whoever searched.
    """
    with _SEARCHING:
        return _optimise_matrices(workload, noise)  # type: ignore[arg-type]  # frozen, so it has a hash


@lru_cache(maxsize=64)
def _optimise_matrices(workload: Workload, noise: Noise) -> tuple[Rounded, ...]:
    found = search(workload.gram, noise)
    bits = _GRID[min(len(found), len(_GRID)) - 1]
    if noise is Noise.LAPLACE:
        return tuple(Rounded.with_even_columns(matrix, bits=bits) for matrix in found)
    return tuple(Rounded.of(matrix, bits=bits) for matrix in found)


def search(terms: Sequence[Kronecker], noise: Noise) -> list[Array]:
    """A matrix for each axis, of sensitivity 1, with little error on a sum of products.

    Of one product, the best of each factor is the best that products can do. Of several, an axis sees the sum of its
    factors, each weighted with the error that the other axes leave: axes take turns, and keep what is better. They
    start from the cells themselves, and so are never worse than flat.
    """
    axes = len(terms[0].factors)
    if any(len(term.factors) != axes for term in terms):
        terms = [Kronecker(factors=(Dense(entries=term.dense()),)) for term in terms]
        axes = 1
    found = [np.eye(factor.length) for factor in terms[0].factors]
    errors = np.array([[along(factor, factor.length) for factor in term.factors] for term in terms])
    for _ in range(1 if len(terms) == 1 or axes == 1 else _ROUNDS):
        for axis in range(axes):
            others = np.prod(np.delete(errors, axis, axis=1), axis=1)
            weights = np.array([term.scale for term in terms]) * others
            own = tuple(term.factors[axis] for term in terms)
            seen = own[0] if len(own) == 1 else WeightedGram(parts=own, weights=tuple(weights / weights.sum()))
            with threadpool_limits(limits=1):  # thousands of small products: threads would wait for each other
                matrix = optimise.laplace(seen) if noise is Noise.LAPLACE else optimise.gaussian(seen)
            inverse = np.linalg.inv(matrix.T @ matrix)
            left = np.array([along(gram, inverse) for gram in own])
            if weights @ left < weights @ errors[:, axis]:
                found[axis], errors[:, axis] = matrix, left
    return found
