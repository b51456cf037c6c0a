"""The base of naive Bayes classifiers, and the one for numbers."""

import math
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.engines.arrays.engine import Arrays
from hubbub.learn.bayes.score_calibration import Calibration, calibrate
from hubbub.learn.estimator import Private, read_labels
from hubbub.learn.statistics.bounds import buy_bounds
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.classes import buy_classes, code_classes, read_classes
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.moments import widen
from hubbub.learn.statistics.row_steps import scale_columns
from hubbub.learn.statistics.row_sums import box_sums, unit_rows
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.query.totals import Number, columns

SCORES = Fraction(1, 10)
"""Of the price, for a histogram of scores that says where two classes part."""
MOST_ODDS = 1e4
"""Log-odds beyond this are all alike."""
SMOOTH = 2.0
"""Means are pulled towards those of all classes as if so many standard deviations of noise had been rows there."""


class _Bayes(ClassifierMixin, Private):  # type: ignore[misc]
    """Labels and probabilities from log-likelihoods, which for two classes are calibrated."""

    classes: Any
    classes_: Array
    calibration_: Calibration | None

    def _check(self, *, width: int, grouped: bool) -> None:
        super()._check(width=width, grouped=grouped)
        read_classes(self.classes, delta=self.delta)

    def _joint_log_likelihood(self, x: Array) -> Array:
        """Unnormalised log-probabilities, one column a class."""
        raise NotImplementedError

    def _odds(self, x: Number) -> Number:
        """Return the log-odds of the second of two classes."""
        raise NotImplementedError

    def _score(self, x: Number) -> Number:
        """Return a score for the second of two classes, between 0 and 1."""
        return self._odds(x).clip(-MOST_ODDS, MOST_ODDS).asinh() / (2 * math.asinh(MOST_ODDS)) + 0.5

    def _places(self, x: Array) -> Array:
        """Return the scores of rows that are passed."""
        return Arrays(x).rows(self._score(columns(0, x.shape[1])))

    def _even_score(self) -> float | None:
        """The score at which either class is as likely, if scores say so: naive ones are far from it."""
        return None

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """Log-odds of the second of two classes; for more, one log-likelihood a class."""
        check_is_fitted(self)
        x = self._features(X)
        if self.calibration_ is not None:
            return self.calibration_.log_odds(self._places(x))
        scores = self._joint_log_likelihood(x)
        return scores if len(self.classes_) > 2 else np.zeros(len(x))

    def predict_log_proba(self, X: Any) -> Array:  # noqa: N803
        """Logarithms of what ``predict_proba`` gives."""
        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.zeros((len(scores), 1))
        both = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
        return np.asarray(both - np.logaddexp.reduce(both, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """One probability a class."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The most probable class."""
        likely = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likely])

    def _calibrate(self, data: Features, *, tuition: Tuition) -> None:
        """Calibrate scores of two classes, with all that is left of the price."""
        self.calibration_ = None
        if len(self.classes_) == 2:
            self.calibration_ = calibrate(
                self._score(data.x), data, tuition=tuition, share=tuition.left, expected=self._even_score()
            )


class GaussianNB(_Bayes):
    """Each column normal within each class, with means and variances that were paid for.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: bounds and classes that are declared or bought; (1, u, 2u² − 1) summed within classes, a row in one class
            only, so that it moves 2d + 1 coordinates by at most 1, times its weight; then ``calibrate``. Everything
            else is computed from these releases.
        Needs: ``Tuition``.
        Ref: Vaidya, Shafiq, Basu, Hong 2013, with joint sensitivities.
    """

    def __init__(
        self, *, epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None, classes: Any = None, max_rows: int = 1,
        meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:  # noqa: N803
        """Measure moments within classes, then where they part."""
        data = self._data(X, groups)
        return self._study(partial(self._measure, read_labels(y, data)), data)

    def _measure(self, named: Array | None, data: Features, tuition: Tuition) -> str:
        """Measure classes, bounds, moments and scores."""
        self.classes_, data = buy_classes(self.classes, named, data, tuition=tuition)
        low, high = buy_bounds(self.bounds, data.x, data, tuition=tuition)
        share = tuition.left * (1 - SCORES if len(self.classes_) == 2 else 1)
        sums, noise = box_sums(
            widen(unit_rows(data.x, low, high)), data, code=code_classes(data, len(self.classes_)), tuition=tuition,
            share=share, label="moments of classes",
        )  # fmt: skip
        width, half = data.width, (high - low) / 2
        counts = np.maximum(sums[:, 0], 1.0)
        pull = SMOOTH * noise
        every = sums.sum(axis=0) / counts.sum()
        mixed = (sums[:, 1:] + pull * np.clip(every[1:], -1, 1)) / (counts + pull)[:, None]
        mean, square = np.clip(mixed[:, :width], -1, 1), np.clip((mixed[:, width:] + 1) / 2, 0, 1)
        least = np.minimum(1.0, np.maximum(pull, 1.0) / (counts + pull))[:, None]
        self.low_, self.high_ = low, high
        self.class_count_ = counts
        self.class_prior_ = counts / counts.sum()
        self.theta_ = low + half + mean * half
        self.var_ = np.maximum(square - mean * mean, least) * half * half
        self._calibrate(data, tuition=tuition)
        error = noise / float(counts.min())
        tuition.useless = error >= 1
        return f"Expected error of a mean: {min(error, 1.0):.2g} of half its column's range."

    def _odds(self, x: Number) -> Number:
        """Compare squared distances from both classes' means, of rows clipped to their bounds."""
        half = (self.high_ - self.low_) / 2
        middle, side = (self.low_ + half).tolist(), np.where(half > 0, half, 1.0).tolist()
        inside = (((x.fill_missing(middle) - middle) / side).clip(-1.0, 1.0) + 1.0) * half.tolist() + self.low_.tolist()
        one, other = (
            (far := inside - mean.tolist()) * far / (2 * variance).tolist()
            for mean, variance in zip(self.theta_, self.var_, strict=True)
        )
        prior, spread = (each[1] / each[0] for each in (self.class_prior_, self.var_))
        odds: Number = (one - other).added() + float(np.log(prior) - 0.5 * np.sum(np.log(spread)))
        return odds

    def _joint_log_likelihood(self, x: Array) -> Array:
        inside = (scale_columns(x, self.low_, self.high_) + 1) * ((self.high_ - self.low_) / 2) + self.low_
        each = [
            np.log(prior) - 0.5 * np.sum(np.log(2 * np.pi * var)) - 0.5 * ((inside - mean) ** 2 / var).sum(axis=1)
            for prior, mean, var in zip(self.class_prior_, self.theta_, self.var_, strict=True)
        ]
        return np.column_stack(each)
