"""Strategies with little error on a workload along one axis, from its Gram matrix G alone: public, and free to search.

Both searches minimise tr(G·(AᵀA)⁻¹), the variance of all answers, over matrices A of sensitivity 1. For Laplace noise
that is the L1 norm of every column, and A = [I; Θ] with columns scaled to 1 (McKenna, Miklau, Hay, Machanavajjhala
2018): Θ has few rows, so that a step of the search is linear in n. For Gaussian noise it is the L2 norm, the problem is
convex in AᵀA, and its optimality condition is iterated.
"""

import math

import numpy as np

from hubbub.errors import CapacityError
from hubbub.publish.strategies.layer import Array
from hubbub.publish.workload.gram import Gram

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
