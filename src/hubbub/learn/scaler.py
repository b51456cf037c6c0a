"""Standardise columns by means and variances that were paid for."""

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.learn.blocks import unit_rows
from hubbub.learn.bought import bounds_of
from hubbub.learn.cells import Array
from hubbub.learn.crowd import Crowd
from hubbub.learn.estimator import Private
from hubbub.learn.moments import moments
from hubbub.learn.steps import cleaned
from hubbub.learn.tuition import ACCOUNT, Tuition


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, Private):  # type: ignore[misc]
    """Mean 0 and variance 1, roughly: as exact as the budget allows.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: bounds are public or bought (``bounds_of``), and ``moments`` takes what is left of the price.
        Needs: ``Tuition``, ``moments``.
        Ref: Dwork, McSherry, Nissim, Smith 2006.
    """

    def __init__(
        self, *, with_mean: bool = True, with_std: bool = True, epsilon: float = 1.0, delta: float = 0.0,
        bounds: Any = None, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.with_mean = with_mean
        self.with_std = with_std
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.max_rows = max_rows
        self.meter = meter
        self.account = account
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:  # noqa: N803
        """Measure means and variances."""
        x = self._features(X, reset=True)
        return self._study(partial(self._measure, x), x=x, groups=groups)

    def _measure(self, x: Any, tuition: Tuition, crowd: Crowd) -> str:
        """Measure bounds and moments."""
        low, high = bounds_of(self.bounds, x, crowd=crowd, tuition=tuition)
        half = (high - low) / 2
        found = moments(
            unit_rows([x], low, high), width=x.shape[1], crowd=crowd, tuition=tuition,
            share=tuition.left, label="moments",
        )  # fmt: skip
        self.low_, self.high_ = low, high
        self.mean_ = low + half + found.mean * half
        self.var_ = found.variance * half * half
        self.scale_ = np.sqrt(self.var_) if self.with_std else np.ones(x.shape[1])
        self.n_samples_seen_ = found.count
        error = float(np.max(found.noise * half / self.scale_))
        return f"Expected error of a mean: at most {error:.3g} standard deviations (one in three)."

    def transform(self, X: Any) -> Array:  # noqa: N803
        """(x − mean) / scale, values outside the bounds at the bounds."""
        check_is_fitted(self)
        x = self._features(X, reset=False)
        inside = np.clip(cleaned(x, missing=self.mean_), self.low_, self.high_)
        return np.asarray((inside - self.mean_ * self.with_mean) / self.scale_)

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Back again."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) * self.scale_ + self.mean_ * self.with_mean)
