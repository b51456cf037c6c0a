"""What naive Bayes classifiers share, and the one for numbers."""

from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.learn.asked import Asked, Formula
from hubbub.learn.bayes_asked import class_totals, log_odds, scored
from hubbub.learn.blocks import NONE, Rows, parts_of, unit_rows
from hubbub.learn.bought import bounds_of
from hubbub.learn.calibration import CELLS, Calibration, calibrated, calibrated_by
from hubbub.learn.cells import Array
from hubbub.learn.classes import classes_of, codes_of, declared
from hubbub.learn.crowd import Crowd
from hubbub.learn.estimator import Private, labels
from hubbub.learn.moments import widened
from hubbub.learn.steps import BITS, Steps, scaled
from hubbub.learn.tuition import ACCOUNT, Tuition, reached
from hubbub.query.totals import Number

SCORES = Fraction(1, 10)
"""Of the price, for a histogram of scores that says where two classes part."""
SMOOTH = 2.0
"""Means are pulled towards those of all classes as if so many standard deviations of noise had been rows there."""


class _Bayes(ClassifierMixin, Private):  # type: ignore[misc]
    """Labels and probabilities from log-likelihoods, which for two classes are calibrated."""

    classes: Any
    classes_: Array
    calibration_: Calibration | None

    def _check(self, *, width: int, grouped: bool) -> None:
        super()._check(width=width, grouped=grouped)
        declared(self.classes, delta=self.delta)

    def _joint_log_likelihood(self, x: Array) -> Array:
        """Unnormalised log-probabilities, one column a class."""
        raise NotImplementedError

    def _asked_odds(self, x: Asked) -> Number:
        """The log-odds of the second of two classes, for rows that stay in an engine."""
        raise NotImplementedError

    def _places(self, x: Array) -> Array:
        """Scores for the second of two classes, between 0 and 1."""
        both = self._joint_log_likelihood(x)
        return np.asarray(0.5 + np.arcsinh(np.clip(both[:, 1] - both[:, 0], -1e4, 1e4)) / (2 * np.arcsinh(1e4)))

    def _expected(self) -> float | None:
        """The score at which either class is as likely, if scores say so: naive ones are far from it."""
        return None

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """Log-odds of the second of two classes; for more, one log-likelihood a class."""
        check_is_fitted(self)
        x = self._features(X, reset=False)
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

    def _calibrate(self, x: Any, codes: Any, *, crowd: Crowd, tuition: Tuition) -> None:
        """For two classes, with all that is left of the price."""
        self.calibration_ = None
        if isinstance(x, Asked) and len(self.classes_) == 2:
            scores = scored(x, codes, self._asked_odds(x), cells=CELLS)
            self.calibration_ = calibrated_by(
                scores, crowd=crowd, tuition=tuition, share=tuition.left, expected=self._expected()
            )
        elif len(self.classes_) == 2:
            places = np.concatenate([np.empty(0), *(self._places(x[part]) for part in parts_of(len(x)))])
            self.calibration_ = calibrated(
                places, codes, crowd=crowd, tuition=tuition, share=tuition.left, expected=self._expected()
            )


class GaussianNB(_Bayes):
    """Each column normal within each class, with means and variances that were paid for.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: bounds and classes that are declared or bought; (1, u, 2u² − 1) summed within classes, a row in one class
            only, so that it moves 2d + 1 coordinates by at most 1, times its weight; then ``calibrated``. Everything
            else is computed from these releases.
        Needs: ``Tuition``.
        Ref: Vaidya, Shafiq, Basu, Hong 2013, with joint sensitivities.
    """

    def __init__(
        self, *, epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None, classes: Any = None, max_rows: int = 1,
        meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.max_rows = max_rows
        self.meter = meter
        self.account = account
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:  # noqa: N803
        """Measure moments within classes, then where they part."""
        x = self._features(X, reset=True)
        named: Any = y if isinstance(y, Asked) else labels(y, rows=len(x))
        return self._study(partial(self._measure, x, named), x=x, groups=groups)

    def _measure(self, x: Any, named: Any, tuition: Tuition, crowd: Crowd) -> str:
        """Measure classes, bounds, moments and scores."""
        self.classes_ = classes_of(self.classes, named, crowd=crowd, tuition=tuition)
        codes = named if isinstance(named, Asked) else codes_of(named, self.classes_)
        low, high = bounds_of(self.bounds, x, crowd=crowd, tuition=tuition)
        share = tuition.left * (1 - SCORES if len(self.classes_) == 2 else 1)
        sums, noise = class_sums(
            unit_rows([x], low, high), codes, len(self.classes_), width=x.shape[1], crowd=crowd,
            tuition=tuition, share=share,
        )  # fmt: skip
        width, half = x.shape[1], (high - low) / 2
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
        self._calibrate(x, codes, crowd=crowd, tuition=tuition)
        error = noise / float(counts.min())
        return f"Expected error of a mean: {min(error, 1.0):.2g} of half its column's range."

    def _asked_odds(self, x: Asked) -> Number:
        return log_odds(x, self.low_, self.high_, priors=self.class_prior_, means=self.theta_, variances=self.var_)

    def _joint_log_likelihood(self, x: Array) -> Array:
        inside = (scaled(x, self.low_, self.high_) + 1) * ((self.high_ - self.low_) / 2) + self.low_
        each = [
            np.log(prior) - 0.5 * np.sum(np.log(2 * np.pi * var)) - 0.5 * ((inside - mean) ** 2 / var).sum(axis=1)
            for prior, mean, var in zip(self.class_prior_, self.theta_, self.var_, strict=True)
        ]
        return np.column_stack(each)


def class_sums(
    units: Rows, codes: Array | Asked, classes: int, *, width: int, crowd: Crowd, tuition: Tuition, share: Fraction
) -> tuple[Array, float]:
    """Noisy sums of (1, u, 2u² − 1) within each class, one row a class, and the deviation of each sum's noise."""
    most, moved = 1 << BITS, 1 + 2 * width
    steps = Steps(
        parts=NONE, grid=Fraction(1, most), l1=moved * most, l2_squared=moved * most * most, linf=most, l0=moved
    )
    reach = reached(steps, crowd)
    mechanism = tuition.additive(tuition.spend(share), reach)

    def exact() -> Array:
        return _class_total(widened(units), codes, classes, width=moved, crowd=crowd).reshape(-1)

    noisy = tuition.measure(mechanism, exact, reach, grid=steps.grid, label="moments of classes")
    return np.asarray(noisy, dtype=np.float64).reshape(classes, moved), mechanism.standard_deviation / most


def _class_total(rows: Rows, codes: Array | Asked, classes: int, *, width: int, crowd: Crowd) -> Array:
    """Exact sums of rows within [−1, 1]^width in each class, in steps of 2^-BITS."""
    if isinstance(rows, Formula) or isinstance(codes, Asked):
        assert isinstance(rows, Formula)
        assert isinstance(codes, Asked)
        return class_totals(rows, codes, classes, bits=BITS)
    total = np.zeros((classes, width), dtype=np.int64)
    weights = None if crowd.units is None else crowd.weights
    for part in parts_of(crowd.rows):
        wide = np.clip(rows(part), -1.0, 1.0) * (1 << BITS)
        whole = np.trunc(wide if weights is None else wide * weights[part, None])
        member = (codes[part] == np.arange(classes)[:, None]).astype(np.float64)
        total += (member @ whole).astype(np.int64)
    return total
