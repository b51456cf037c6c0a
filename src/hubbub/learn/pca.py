"""Principal components of a noisy matrix of second moments (Analyze Gauss), about means that were paid for."""

from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.learn.estimator import Private
from hubbub.learn.statistics.bounds import buy_bounds
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.moments import foresee_deviation, measure_moments, measure_products
from hubbub.learn.statistics.row_steps import fill_missing
from hubbub.learn.statistics.row_sums import unit_rows
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.parameters import whole

MOMENTS = Fraction(1, 8)
"""Of what the bounds left, for means and variances: how long rows are clipped at follows from them."""
ROOM = (1.0, 8.0)
"""Rows are shortened to the root of so many times the variance of all columns together: at least, and at most."""
NOISE = 0.016
"""As far as the noise of an eigenvalue stays within this share of that variance, rows may be longer."""


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Private):  # type: ignore[misc]
    """Directions of most variance.

    The largest row that the bounds allow is far longer than most rows are: means and variances are measured first, and
    rows are shortened to about their usual distance from the mean, which is what the noise of all products depends on.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: bounds that are declared or bought, then ``measure_moments`` and ``measure_products``, each for
            its share; the length at which rows are cut comes from the former. Components and variances are computed
            from releases alone.
        Needs: ``Tuition``.
        Ref: Dwork, Talwar, Thakurta, Zhang 2014.
    """

    def __init__(
        self, n_components: int | None = None, *, whiten: bool = False, epsilon: float = 1.0, delta: float = 0.0,
        bounds: Any = None, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:  # noqa: N803
        """Measure means, then products."""
        data = self._data(X, groups)
        width = data.width
        kept = width if self.n_components is None else whole("n_components", self.n_components, least=1, most=width)
        return self._study(partial(self._measure, kept), data)

    def _measure(self, kept: int, data: Features, tuition: Tuition) -> str:
        """Measure bounds, means and products."""
        x, width = data.x, data.width
        low, high = buy_bounds(self.bounds, x, data, tuition=tuition)
        half = (high - low) / 2
        known = measure_moments(
            unit_rows(x, low, high), data, tuition=tuition, share=tuition.left * MOMENTS, label="means and variances"
        )
        noise = foresee_deviation(width=width, most=data.most, tuition=tuition, share=tuition.left)
        one = 2 * np.sqrt(width) * noise / known.count
        room = float(np.clip(NOISE / one, *ROOM))
        radius = float(np.sqrt(min(room * float(np.sum(known.variance * half**2)), 4 * float(np.sum(half**2)))))
        found = measure_products(
            unit_rows(x, low, high, slope=half / radius, shift=-known.mean * half / radius), data, radius=radius,
            tuition=tuition, share=tuition.left,
        )  # fmt: skip
        values, vectors = np.linalg.eigh(found.matrix / known.count)
        order = np.argsort(values)[::-1]
        # Noise cannot tell a variance of 0 from what it adds itself, and a variance is never below 0.
        variance, total = np.maximum(values[order], 0.0), max(float(np.trace(found.matrix)) / known.count, 0.0)
        components = _fix_signs(vectors[:, order].T)
        self.low_, self.high_ = low, high
        self.mean_ = low + half + known.mean * half
        self.n_components_ = kept
        self.n_samples_ = known.count
        self.components_ = components[:kept]
        self.explained_variance_ = variance[:kept]
        self.explained_variance_ratio_ = variance[:kept] / max(total, float(variance.sum()), np.finfo(float).tiny)
        self.singular_values_ = np.sqrt(variance[:kept] * known.count)
        self.noise_variance_ = float(variance[kept:].mean()) if kept < width else 0.0
        noise = 2 * found.spread / known.count
        share = noise / max(total, noise)
        tuition.useless = noise >= total
        return f"Expected error of a variance: at most about {share:.2g} of that of all columns."

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Coordinates along the components."""
        check_is_fitted(self)
        x = self._features(X)
        along = (np.clip(fill_missing(x, missing=self.mean_), self.low_, self.high_) - self.mean_) @ self.components_.T
        return np.asarray(along / self._scale() if self.whiten else along)

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """From coordinates back to the nearest points."""
        check_is_fitted(self)
        along = np.asarray(X, dtype=np.float64)
        return np.asarray((along * self._scale() if self.whiten else along) @ self.components_ + self.mean_)

    def _scale(self) -> Array:
        floor = max(float(self.explained_variance_.max(initial=0.0)) * 1e-12, np.finfo(float).tiny)
        return np.asarray(np.sqrt(np.maximum(self.explained_variance_, floor)))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)


def _fix_signs(components: Array) -> Array:
    """Each with its largest entry above 0, so that two fits can be compared."""
    largest = components[np.arange(len(components)), np.abs(components).argmax(axis=1)]
    return np.asarray(components * np.where(largest < 0, -1.0, 1.0)[:, None])
