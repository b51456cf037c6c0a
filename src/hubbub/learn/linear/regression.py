"""Linear regression from sums that were paid for: standardised, measured once, and regularised as noise requires."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.learn.estimator import Private, column_bounds, read_labels
from hubbub.learn.statistics.bounds import SHARE as BOUNDS
from hubbub.learn.statistics.bounds import buy_bounds
from hubbub.learn.statistics.cells import Array, numbers
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.moments import GramMatrix, measure_moments, measure_products
from hubbub.learn.statistics.row_steps import fill_missing
from hubbub.learn.statistics.row_sums import ball_sums, unit_rows
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.parameters import between
from hubbub.query.totals import Number, columns, combine, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """A positive definite reading of a noisy matrix, in its eigenvectors.

    The ridge is the noise's own size, as in AdaSSP (Wang 2018), where the spectral norm of symmetric noise with entries
    of deviation s is about 2s√width; no eigenvalue is taken for less than the ridge.
    """

    values: Array
    vectors: Array

    @classmethod
    def of(cls, found: GramMatrix, *, width: int, penalty: Array | float = 0.0, times: float = 1.0) -> "Solver":
        """For the first ``width`` columns; ``penalty`` is added to the diagonal, the noise's size so many times."""
        ridge = times * found.spread
        added = found.matrix[:width, :width] + np.diag(np.broadcast_to(penalty, (width,))) + ridge * np.eye(width)
        values, vectors = np.linalg.eigh(added)
        return cls(values=np.maximum(values, max(ridge, np.finfo(float).tiny)), vectors=vectors)

    def solve(self, right: Array, *, noise: float) -> Array:
        """Solve for a noisy right side, and shrink towards 0 by the part of it that noise explains (James, Stein)."""
        inside = self.vectors.T @ right
        explained = float(np.sum(inside * inside / self.values))
        by_noise = noise * noise * float(np.sum(1 / self.values))
        believed = max(0.0, 1.0 - by_noise / explained) if explained > 0 else 0.0
        return np.asarray(self.vectors @ (inside / self.values)) * believed


MOMENTS = Fraction(3, 10)
"""Of what the bounds left, for means and variances: they let columns be standardised, and clipping waste little."""
CORRECTION = Fraction(1, 3)
"""Of what is then left, for one round on residuals."""
REACH = 2.0
"""Residuals are clipped at so many of their standard deviations."""


class _Linear(RegressorMixin, Private):  # type: ignore[misc]
    """The base of both regressions.

    Columns are standardised by noisy means and variances, the matrix of products of (1, x, y) is measured once with
    rows shortened to its mean length (a shortened row keeps the relation of x and y, and only counts for less), and one
    more round measures Σ x·residual, whose noise is as small as the residuals are.
    """

    fit_intercept: bool
    y_bounds: Any

    def _penalty(self, deviation: Array) -> Array:
        """Return what is added to the diagonal for each standardised column, over the variance of y."""
        return np.zeros_like(deviation)

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:  # noqa: N803
        """Measure, solve, correct."""
        return self._study(self._measure, read_targets(y, self._data(X, groups)))

    def _check(self, *, width: int, grouped: bool) -> None:
        super()._check(width=width, grouped=grouped)
        column_bounds(self.y_bounds, columns=1)
        self._penalty(np.ones(width))

    def _measure(self, data: Features, tuition: Tuition) -> str:
        """Measure bounds, moments, products and residuals."""
        both, width = columns(0, data.width + 1), data.width + 1
        low, high = buy_bounds(self.bounds, data.x, data, tuition=tuition)
        y_bounds = buy_bounds(
            self.y_bounds, columns(data.width, 1), data, tuition=tuition, share=BOUNDS / 2, label="bounds of y"
        )
        low, high = np.append(low, y_bounds[0]), np.append(high, y_bounds[1])
        half, middle = (high - low) / 2, (high + low) / 2
        known = measure_moments(
            unit_rows(both, low, high), data, tuition=tuition, share=tuition.left * MOMENTS, label="means and variances"
        )
        centre = middle + half * known.mean if self.fit_intercept else np.zeros(width)
        size = half * known.deviation
        if not self.fit_intercept:
            size = np.hypot(size, middle + half * known.mean)
        radius = float(np.sqrt(width + bool(self.fit_intercept)))
        rows = unit_rows(
            both, low, high, slope=half / size / radius, shift=(middle - centre) / size / radius,
            leading=1 / radius if self.fit_intercept else None,
        )  # fmt: skip
        weights, found = _solve(rows, data, self._penalty(size[:-1]), radius, tuition=tuition, count=known.count)
        slopes = weights[1:] if self.fit_intercept else weights
        self.coef_ = slopes * size[-1] / size[:-1]
        inner = centre[-1] + weights[0] * size[-1] - float(self.coef_ @ centre[:-1]) if self.fit_intercept else 0.0
        self.intercept_ = float(inner)
        self.low_, self.high_ = low, high
        excess = found.spread**2 / max(1.0, known.count) ** 2
        tuition.useless = excess >= 1
        return f"Expected excess error: about {min(1.0, excess):.2g} of y's variance if no columns are collinear."

    def predict(self, X: Any) -> Array:  # noqa: N803
        """X·coef_ + intercept_, with X clipped to its bounds and the answer to those of y."""
        check_is_fitted(self)
        x = self._features(X)
        low, high = self.low_[:-1], self.high_[:-1]
        inside = np.clip(fill_missing(x, missing=(low + high) / 2), low, high)
        return np.asarray(np.clip(inside @ self.coef_ + self.intercept_, self.low_[-1], self.high_[-1]))


def _solve(
    rows: Number, data: Features, penalty: Array, radius: float, *, tuition: Tuition, count: float
) -> tuple[Array, GramMatrix]:
    """Return standardised coefficients, after all products and the residuals were measured. Rows come over radius."""
    width = round(radius**2) - 1
    added = np.append(np.zeros(width - len(penalty)), penalty)
    found = measure_products(rows, data, radius=radius, tuition=tuition, share=tuition.left * (1 - CORRECTION))
    solver = Solver.of(found, width=width, penalty=added)
    right, inner = found.matrix[:-1, -1], found.matrix[:-1, :-1]
    weights = solver.solve(right, noise=found.beside)
    left = found.matrix[-1, -1] - 2 * weights @ right + weights @ inner @ weights
    known = max(left, 3 * found.on_diagonal, 0.0) / count
    reach = float(np.clip(REACH * np.sqrt(known), 1e-3, radius))
    short = float(np.sqrt(width))

    residuals = _residuals(rows, weights, radius=radius, short=short, reach=reach)
    sums, noise = ball_sums(
        residuals, data, radius=short * reach, tuition=tuition, share=tuition.left, label="residuals"
    )
    return weights + solver.solve(sums - added * weights, noise=noise), found


def _residuals(rows: Number, weights: Array, *, radius: float, short: float, reach: float) -> Number:
    """Return x·(y − x·weights) over short·reach, rows shortened and residuals clipped."""
    x, y = rows[:-1], rows[-1]
    length = (x * x).added().sqrt() * radius
    kept = combine("least", 1.0, number(short) / combine("greatest", length, short)) * radius
    off = ((y - (x * weights.tolist()).added()) * kept).clip(-reach, reach)
    found: Number = x * (kept * off / (short * reach))
    return found


def read_targets(y: Any, data: Features) -> Features:
    """Put targets beside rows, as floats; only their number and type are checked, since values are data."""
    given = read_labels(y, data)
    return data if given is None else data.beside(numbers(given, name="y"))


class LinearRegression(_Linear):
    """Least squares, with as much ridge as its own noise asks for.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: bounds that are declared or bought, then ``measure_moments``, ``measure_products`` and
            ``ball_sums``, each for its share; a row of the later ones depends on itself and on earlier releases alone.
            The rest is computed from releases.
        Needs: ``Tuition``.
        Ref: Wang 2018 (AdaSSP); Tang, Aydore, Kearns, Rho, Roth, Wang, Wang, Wu 2023 (boosted AdaSSP).
    """

    def __init__(
        self, *, fit_intercept: bool = True, epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None,
        y_bounds: Any = None, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())


class Ridge(_Linear):
    """Least squares with ``alpha`` times the squared length of the coefficients, and the ridge that its noise asks for.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: as LinearRegression; the penalty is applied to released sums.
        Needs: ``Tuition``.
        Ref: Wang 2018 (AdaSSP).
    """

    def __init__(
        self, alpha: float = 1.0, *, fit_intercept: bool = True, epsilon: float = 1.0, delta: float = 0.0,
        bounds: Any = None, y_bounds: Any = None, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def _penalty(self, deviation: Array) -> Array:
        alpha = float(between("alpha", self.alpha, 0, 1e300))
        return np.asarray(alpha / deviation**2)
