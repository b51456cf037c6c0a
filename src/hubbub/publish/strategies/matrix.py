"""The matrix mechanism: measure what is best for the queries that will be asked, and solve for the answers.

Both searches minimise tr(G·(AᵀA)⁻¹), the variance of all answers, over matrices A of sensitivity 1. For Laplace noise
that is the L1 norm of every column, and A = [I; Θ] with columns scaled to 1 (McKenna, Miklau, Hay, Machanavajjhala
2018): Θ has few rows, so that a step of the search is linear in n. For Gaussian noise it is the L2 norm, the problem is
convex in AᵀA, and its optimality condition is iterated.

A strategy is optimised for its workload before any data is seen, along one axis or as a product over several, and kept
for the next time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from threading import Lock

import numpy as np
from threadpoolctl import threadpool_limits

from hubbub.errors import CapacityError, ParameterError
from hubbub.publish.strategies.layer import Array, Layer, Shape
from hubbub.publish.strategies.rounded_matrix import Along, Rounded, along_axes
from hubbub.publish.strategies.strategy import Foretold, PreparedLayers, prepare_layers
from hubbub.publish.terms import Noise, Terms
from hubbub.publish.workload.gram import Covariance, Dense, Gram, Kronecker, WeightedGram, along
from hubbub.publish.workload.products import all_ranges
from hubbub.publish.workload.workload import Workload

LONGEST = 1 << 12
"""The longest axis that is searched for: inference is dense along an axis."""
_GROUP = 16
"""Cells that share a row of the coarser strategy which a search starts from; twice as many where axes are long."""
_SHORT = 1 << 10
_STEPS = 250
_ROUNDS = 4
_WORK = 5e10
"""Multiplications that a search may take; long axes get fewer steps, from a start that is good already."""
_GOLDEN = (math.sqrt(5) - 1) / 2
_CLOSE = 0.01
"""How far diagonals may be from even: the error is of second order in it."""
_RIDGE = 1e-6
"""Of the mean cell: keeps cells estimable that a workload does not ask about one by one."""


def laplace(gram: Gram) -> Array:
    """[I; Θ]·D with columns of L1 norm 1."""
    added = _search(_check_gram(gram), _start(gram))
    whole: Array = np.vstack([np.eye(gram.length), added.T]) / (1 + added.sum(axis=1))
    return whole


def gaussian(gram: Gram) -> Array:
    """An upper triangular A with columns of L2 norm 1.

    The least tr(G·X⁻¹) over X with a diagonal of ones has X·V·X = G for a diagonal V, so that
    V^½·X·V^½ = (V^½·G·V^½)^½, whose diagonal is V again: that is repeated. The first round, after which columns are
    scaled to 1, is the scaled square root of G: within a thousandth or two, and all that long axes get.
    """
    from scipy.linalg import eigh  # late: it takes longer to load than all of ours

    rounds = _ROUNDS if gram.length <= _SHORT else 1
    dense = _check_gram(gram).dense() + _RIDGE * float(np.mean(gram.diagonal)) * np.eye(gram.length)
    weights = np.ones(gram.length)
    for done in range(1, rounds + 1):
        roots = np.sqrt(weights)
        values, vectors = eigh(roots[:, np.newaxis] * dense * roots, overwrite_a=True, check_finite=False)
        square_root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        found = np.diagonal(square_root).copy()
        if done == rounds or np.max(np.abs(found / weights / np.mean(found / weights) - 1)) < _CLOSE:
            break
        weights = found
    lengths = np.sqrt(np.diagonal(square_root))
    upper: Array = np.linalg.cholesky(square_root / np.outer(lengths, lengths)).T
    return upper


def _check_gram(gram: Gram) -> Gram:
    if gram.length > LONGEST:
        raise CapacityError(
            f"An axis of {gram.length} cells is too long to optimise for: at most {LONGEST}. Use a hierarchy, or bins."
        )
    return gram


def _start(gram: Gram) -> Array:
    """The strategy for groups of cells, found in the same way, as the rows that are added to the cells themselves."""
    length = gram.length
    places = np.arange(length)
    if length <= _GROUP:
        uneven: Array = 0.5 + 0.5 * np.modf((places + 1) * _GOLDEN)[0][:, np.newaxis]
        return uneven
    group = _GROUP if length <= _SHORT else 2 * _GROUP
    middles = np.minimum(np.arange(0, length, group) + group // 2, length - 1)
    coarse = laplace(gram.among(middles))
    return np.ascontiguousarray(coarse.T[places // group])


def _search(gram: Gram, start: Array) -> Array:
    """Descent from there, among matrices without negative entries."""
    from scipy.optimize import Bounds, minimize

    length, rows = start.shape
    diagonal = gram.diagonal
    most = float(np.sum(diagonal))

    def variance(flat: Array) -> tuple[float, Array]:
        """tr(XGX·B) with X = diag(1 + row sums of T) and B = (I + TTᵀ)⁻¹ = I - T·K⁻¹·Tᵀ, and its gradient."""
        added = flat.reshape(length, rows)
        scales = (1 + added.sum(axis=1))[:, np.newaxis]
        inverse = np.linalg.inv(np.eye(rows) + added.T @ added)
        kept = gram.times(scales * added) @ inverse
        solved = scales * kept
        by_scale = 2 * (diagonal * scales[:, 0] - np.sum(kept * added, axis=1))
        found = np.sum(diagonal * scales[:, 0] ** 2) - np.sum(added * solved)
        slope = by_scale[:, np.newaxis] - 2 * (solved - added @ (inverse @ (added.T @ solved)))
        return found / most, slope.reshape(-1) / most

    steps = int(min(_STEPS, max(10, _WORK / (10 * length * rows**2))))
    options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-10, "gtol": 1e-9}
    found = minimize(
        variance, start.reshape(-1), jac=True, method="L-BFGS-B", bounds=Bounds(0, np.inf), options=options
    )
    best: Array = found.x.reshape(length, rows) if found.fun < 1 else np.zeros((length, rows))
    return best


_GRID = (16, 12, 10)
"""Bits of the grid that matrices are rounded to, for one axis, two, and more: products have the sum of them."""
_SWEEPS = 3
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
    for _ in range(1 if len(terms) == 1 or axes == 1 else _SWEEPS):
        for axis in range(axes):
            others = np.prod(np.delete(errors, axis, axis=1), axis=1)
            weights = np.array([term.scale for term in terms]) * others
            own = tuple(term.factors[axis] for term in terms)
            seen = own[0] if len(own) == 1 else WeightedGram(parts=own, weights=tuple(weights / weights.sum()))
            with threadpool_limits(limits=1):  # thousands of small products: threads would wait for each other
                matrix = laplace(seen) if noise is Noise.LAPLACE else gaussian(seen)
            inverse = np.linalg.inv(matrix.T @ matrix)
            left = np.array([along(gram, inverse) for gram in own])
            if weights @ left < weights @ errors[:, axis]:
                found[axis], errors[:, axis] = matrix, left
    return found
