"""Standardise columns by means and variances that were paid for."""

from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.learn.estimator import Private
from hubbub.learn.statistics.bounds import buy_bounds
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.moments import measure_moments
from hubbub.learn.statistics.row_steps import fill_missing
from hubbub.learn.statistics.row_sums import unit_rows
from hubbub.learn.tuition import ACCOUNT, Tuition


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, Private):  # type: ignore[misc]
    """Mean 0 and variance 1, roughly: as exact as the budget allows.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: bounds are public or bought (``buy_bounds``), and ``measure_moments`` takes what is left of the price.
        Needs: ``Tuition``, ``measure_moments``.
        Ref: Dwork, McSherry, Nissim, Smith 2006.
    """

    def __init__(
        self, *, with_mean: bool = True, with_std: bool = True, epsilon: float = 1.0, delta: float = 0.0,
        bounds: Any = None, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:  # noqa: N803
        """Measure means and variances."""
        return self._study(self._measure, self._data(X, groups))

    def _measure(self, data: Features, tuition: Tuition) -> str:
        """Measure bounds and moments."""
        low, high = buy_bounds(self.bounds, data.x, data, tuition=tuition)
        half = (high - low) / 2
        found = measure_moments(
            unit_rows(data.x, low, high), data, tuition=tuition, share=tuition.left, label="moments"
        )
        self.low_, self.high_ = low, high
        self.mean_ = low + half + found.mean * half
        self.var_ = found.variance * half * half
        self.scale_ = np.sqrt(self.var_) if self.with_std else np.ones(data.width)
        self.n_samples_seen_ = found.count
        error = float(np.max(found.noise * half / self.scale_))
        tuition.useless = error >= 1
        return f"Expected error of a mean: at most {error:.3g} standard deviations (one in three)."

    def transform(self, X: Any) -> Array:  # noqa: N803
        """(x − mean) / scale, values outside the bounds at the bounds."""
        check_is_fitted(self)
        x = self._features(X)
        inside = np.clip(fill_missing(x, missing=self.mean_), self.low_, self.high_)
        return np.asarray((inside - self.mean_ * self.with_mean) / self.scale_)

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Back again."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) * self.scale_ + self.mean_ * self.with_mean)
