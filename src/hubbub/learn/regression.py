"""Linear regression from sums that were paid for: standardised, measured once, corrected once."""

from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.learn.asked import Asked, Formula, residual_formula
from hubbub.learn.blocks import Rows, ball_sums, row_products, unit_rows
from hubbub.learn.bought import SHARE as BOUNDS
from hubbub.learn.bought import bounds_of
from hubbub.learn.cells import Array, column, numbers
from hubbub.learn.crowd import Crowd
from hubbub.learn.estimator import Private, column_bounds
from hubbub.learn.gram import Gram, gram
from hubbub.learn.moments import moments
from hubbub.learn.solving import Solver
from hubbub.learn.steps import cleaned
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.parameters import between

MOMENTS = Fraction(3, 10)
"""Of what the bounds left, for means and variances: they let columns be standardised, and clipping waste little."""
CORRECTION = Fraction(1, 3)
"""Of what is then left, for one round on residuals."""
REACH = 2.0
"""Residuals are clipped at so many of their standard deviations."""


class _Linear(RegressorMixin, Private):  # type: ignore[misc]
    """What both regressions share.

    Columns are standardised by noisy means and variances, the matrix of products of (1, x, y) is measured once with
    rows shortened to its mean length (a shortened row keeps the relation of x and y, and only counts for less), and one
    more round measures Σ x·residual, whose noise is as small as the residuals are.
    """

    fit_intercept: bool
    y_bounds: Any

    def _penalty(self, deviation: Array) -> Array:
        """What is added to the diagonal for each standardised column, over the variance of y."""
        return np.zeros_like(deviation)

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:  # noqa: N803
        """Measure, solve, correct."""
        x = self._features(X, reset=True)
        target = targets(y, rows=len(x))
        return self._study(partial(self._measure, x, target), x=x, groups=groups)

    def _check(self, *, width: int, grouped: bool) -> None:
        super()._check(width=width, grouped=grouped)
        column_bounds(self.y_bounds, columns=1)
        self._penalty(np.ones(width))

    def _measure(self, x: Any, target: Any, tuition: Tuition, crowd: Crowd) -> str:
        """Measure bounds, moments, products and residuals."""
        low, high = bounds_of(self.bounds, x, crowd=crowd, tuition=tuition)
        beside = target if isinstance(target, Asked) else target[:, None]
        y_bounds = bounds_of(self.y_bounds, beside, crowd=crowd, tuition=tuition, share=BOUNDS / 2, label="bounds of y")
        low, high = np.append(low, y_bounds[0]), np.append(high, y_bounds[1])
        width, half, middle = x.shape[1] + 1, (high - low) / 2, (high + low) / 2

        tables = (x, beside)
        known = moments(
            unit_rows(tables, low, high), width=width, crowd=crowd, tuition=tuition, share=tuition.left * MOMENTS,
            label="means and variances",
        )  # fmt: skip
        centre = middle + half * known.mean if self.fit_intercept else np.zeros(width)
        size = half * known.deviation
        if not self.fit_intercept:
            size = np.hypot(size, middle + half * known.mean)
        radius = float(np.sqrt(width + bool(self.fit_intercept)))
        rows = unit_rows(
            tables, low, high, slope=half / size / radius, shift=(middle - centre) / size / radius,
            leading=1 / radius if self.fit_intercept else None,
        )  # fmt: skip
        weights, found = _fitted(
            rows, self._penalty(size[:-1]), radius, crowd=crowd, tuition=tuition, count=known.count
        )
        slopes = weights[1:] if self.fit_intercept else weights
        self.coef_ = slopes * size[-1] / size[:-1]
        inner = centre[-1] + weights[0] * size[-1] - float(self.coef_ @ centre[:-1]) if self.fit_intercept else 0.0
        self.intercept_ = float(inner)
        self.low_, self.high_ = low, high
        excess = found.spread**2 / max(1.0, known.count) ** 2
        return f"Expected excess error: about {min(1.0, excess):.2g} of y's variance if no columns are collinear."

    def predict(self, X: Any) -> Array:  # noqa: N803
        """X·coef_ + intercept_, with X clipped to its bounds and the answer to those of y."""
        check_is_fitted(self)
        x = self._features(X, reset=False)
        low, high = self.low_[:-1], self.high_[:-1]
        inside = np.clip(cleaned(x, missing=(low + high) / 2), low, high)
        return np.asarray(np.clip(inside @ self.coef_ + self.intercept_, self.low_[-1], self.high_[-1]))


def _fitted(
    rows: Rows, penalty: Array, radius: float, *, crowd: Crowd, tuition: Tuition, count: float
) -> tuple[Array, Gram]:  # fmt: skip
    """Standardised coefficients, after a measurement of all products and one of residuals. Rows come over radius."""
    width = round(radius**2) - 1
    added = np.append(np.zeros(width - len(penalty)), penalty)
    found = gram(
        rows, width=width + 1, radius=radius, crowd=crowd, tuition=tuition, share=tuition.left * (1 - CORRECTION)
    )
    solver = Solver.of(found, width=width, penalty=added)
    right, inner = found.matrix[:-1, -1], found.matrix[:-1, :-1]
    weights = solver.solve(right, noise=found.beside)
    left = found.matrix[-1, -1] - 2 * weights @ right + weights @ inner @ weights
    known = max(left, 3 * found.on_diagonal, 0.0) / count
    reach = float(np.clip(REACH * np.sqrt(known), 1e-3, radius))
    short = float(np.sqrt(width))

    def residuals(part: slice) -> Array:
        assert not isinstance(rows, Formula)
        block = rows(part)
        x = block[:, :-1]
        length = np.sqrt(np.einsum("ij,ij->i", x, x)) * radius
        kept = radius * np.minimum(1.0, short / np.maximum(length, short))
        off = np.clip((block[:, -1] - row_products(x, weights)) * kept, -reach, reach)
        return np.asarray(x * (kept * off / (short * reach))[:, None])

    off_rows: Rows = residuals
    if isinstance(rows, Formula):
        off_rows = residual_formula(rows, weights, radius=radius, short=short, reach=reach)
    sums, noise = ball_sums(
        off_rows, width=width, radius=short * reach, crowd=crowd, tuition=tuition, share=tuition.left,
        label="residuals",
    )  # fmt: skip
    return weights + solver.solve(sums - added * weights, noise=noise), found


def targets(y: Any, *, rows: int) -> Any:
    """Targets as floats, one for each row; only their number and type are checked, since values are data."""
    if isinstance(y, Asked):
        return y
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    return numbers(column(y, name="y", rows=rows), name="y")


class LinearRegression(_Linear):
    """Least squares, with as much ridge as its own noise asks for.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: bounds that are declared or bought, then ``moments``, ``gram`` and ``ball_sums``, each for its share; a
            row of the later ones depends on itself and on earlier releases alone. The rest is computed from releases.
        Needs: ``Tuition``.
        Ref: Wang 2018 (AdaSSP); Tang, Aydore, Kearns, Rho, Roth, Wang, Wang, Wu 2023 (boosted AdaSSP).
    """

    def __init__(
        self, *, fit_intercept: bool = True, epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None,
        y_bounds: Any = None, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.fit_intercept = fit_intercept
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.max_rows = max_rows
        self.meter = meter
        self.account = account
        self.random_state = random_state


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
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.max_rows = max_rows
        self.meter = meter
        self.account = account
        self.random_state = random_state

    def _penalty(self, deviation: Array) -> Array:
        alpha = float(between("alpha", self.alpha, 0, 1e300))
        return np.asarray(alpha / deviation**2)
