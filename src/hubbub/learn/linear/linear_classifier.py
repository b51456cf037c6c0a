"""The base of linear classifiers: rows in a ball, one column of weights for each class.

Privacy:
    Claim: every row is a vector of whole steps of 2^-20 with L2 norm at most 1, whatever its values are.
    Proof: values are cleaned and clipped column by column, shortened to the public norm, and ``Number.shorten`` cuts
        what is left towards zero and checks the whole numbers themselves.
    Needs: bounds that are public or were paid for.
    Ref: SOUNDNESS 29, 31.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.errors import ParameterError
from hubbub.gate.secret import Sealed
from hubbub.learn.estimator import Private, read_labels
from hubbub.learn.linear.gradients import Pulls, take_steps
from hubbub.learn.statistics.bounds import buy_bounds
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.classes import choose_classes, place_labels, read_classes
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import BITS, fill_missing
from hubbub.learn.tuition import Tuition
from hubbub.mechanisms.objective.convex import Examples, MarginLoss
from hubbub.mechanisms.objective.objective import ObjectivePerturbation
from hubbub.parameters import positive, whole
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.totals import beside, combine, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Ball:
    """The map of rows into the ball, and of coefficients out of it. All of it is public."""

    low: Array
    high: Array
    norm: float
    """Rows longer than this, after scaling, are shortened."""
    intercept: bool

    @property
    def middle(self) -> Array:
        """Return what becomes 0: 0 where the range has it, so that sparse rows stay sparse; else the range's middle."""
        return np.where((self.low <= 0) & (self.high >= 0), 0.0, self.low + (self.high - self.low) / 2)

    @property
    def unit(self) -> Array:
        """Return the distance from the middle that becomes 1."""
        far = np.maximum(np.abs(self.low - self.middle), np.abs(self.high - self.middle))
        return np.where(far > 0, far, 1.0)

    @property
    def radius(self) -> float:
        """With the intercept, which is a column of ones."""
        return math.sqrt(self.norm**2 + self.intercept)

    @property
    def width(self) -> int:
        return len(self.low) + self.intercept

    def inside(self, x: Array) -> Array:
        """Values within their ranges; what is no number, at the middle."""
        clipped: Array = np.clip(fill_missing(x, missing=self.middle), self.low, self.high)
        return clipped

    def rows(self, data: Features) -> Array:
        """Return floats that are whole steps of 2^-20, rows of norm at most 1."""
        middle, unit = self.middle.tolist(), (1 / self.unit).tolist()
        scaled = (data.x.fill_missing(middle).clip(self.low.tolist(), self.high.tolist()) - middle) * unit
        length = (scaled * scaled).added().sqrt()
        shorter = scaled * (number(self.norm) / combine("greatest", length, self.norm) / self.radius)
        whole = (beside(shorter, 1 / self.radius) if self.intercept else shorter).shorten(bits=BITS)
        return data.here.arrays.rows(whole * 2.0**-BITS)

    def outside(self, theta: Array) -> tuple[Array, Array]:
        """Coefficients for values as they are, one row a column of ``theta``, and intercepts."""
        width = len(self.low)
        slopes = (theta[:width].T / self.radius) / self.unit
        start = theta[width] / self.radius if self.intercept else np.zeros(theta.shape[1])
        return slopes, np.asarray(start - slopes @ self.middle)


SOLVERS = ("auto", "objective", "newton")


class LinearClassifier(ClassifierMixin, Private):  # type: ignore[misc]
    """A linear decision for each class against the rest (one decision for two classes)."""

    classes: Any
    max_norm: float | None
    fit_intercept: bool

    coef_: Array
    intercept_: Array
    classes_: Array

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:  # noqa: N803
        """Learn from rows and their labels; ``groups`` says whose each row is."""
        data = self._data(X, groups)
        return self._study(partial(self._measure, read_labels(y, data)), data)

    def _check(self, *, width: int, grouped: bool) -> None:
        super()._check(width=width, grouped=grouped)
        read_classes(self.classes, delta=self.delta)
        if self.max_norm is not None:
            positive("max_norm", self.max_norm)

    def _measure(self, named: Array | None, data: Features, tuition: Tuition) -> str:
        """Measure bounds and classes, and learn the coefficients."""
        crowd = data.here.crowd
        norm = float(np.sqrt(data.width) if self.max_norm is None else positive("max_norm", self.max_norm))
        low, high = buy_bounds(self.bounds, data.x, data, tuition=tuition)
        ball = Ball(low=low, high=high, norm=norm, intercept=bool(self.fit_intercept))
        self.classes_ = choose_classes(self.classes, named, data, tuition=tuition)
        assert named is not None
        signs = _signs(place_labels(named, self.classes_), len(self.classes_))
        theta, excess = np.zeros((ball.width, 1)), "One class was known: nothing was learned."
        if signs is not None:
            theta, excess = self._learn(ball.rows(data), signs, crowd=crowd, tuition=tuition)
        self.coef_, self.intercept_ = ball.outside(theta)
        self._ball = ball
        tuition.useless = not np.any(theta)
        return excess

    def _learn(self, features: Array, signs: Array, *, crowd: Crowd, tuition: Tuition) -> tuple[Array, str]:
        """Coefficients in the ball, and what error to expect."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """Return how far on which side each row lies: one number for two classes, else one for each class."""
        check_is_fitted(self)
        x = self._ball.inside(self._features(X))
        scores: Array = x @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) <= 2 else scores

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The class on whose side each row is."""
        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        place = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[place])


class ConvexClassifier(LinearClassifier):
    """A classifier with a smooth convex loss.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: one ``ObjectivePerturbation`` of rows in the ball, or ``newton.take_steps``: noisy sums, each of which
            the crowd and the ball bound. Which of the two follows from parameters, the number of classes and what was
            bought before. At δ = 0, and where a fit pays for itself alone and buys nothing else, the first; where it
            shares an account or has bought bounds or classes, losses are added up in zCDP, in which objective
            perturbation is proven for two classes and one row a unit: there the first too, elsewhere the second. A row
            whose label is none of the classes weighs nothing.
        Needs: ``Tuition``, ``ObjectivePerturbation``, ``Pulls``.
        Ref: SOUNDNESS 31.
    """

    C: float | None
    solver: str
    rounds: int
    _loss: MarginLoss

    def _check(self, *, width: int, grouped: bool) -> None:
        super()._check(width=width, grouped=grouped)
        if self.solver not in SOLVERS:
            raise ParameterError("solver", f"one of {', '.join(SOLVERS)}", self.solver)
        whole("rounds", self.rounds, least=1)
        if self.C is not None:
            positive("C", self.C)
        alone = self.meter is None and self.bounds is not None and self.classes is not None
        two = self.classes is not None and np.size(self.classes) <= 2
        if self.solver == "objective" and self.delta and not alone and (grouped or not two):
            raise ParameterError(
                "solver",
                '"newton" or "auto": where losses are added up in zCDP, this is proven for two declared classes and '
                "one row a unit",
                "objective",
            )

    def _learn(self, features: Array, signs: Array, *, crowd: Crowd, tuition: Tuition) -> tuple[Array, str]:
        ridge = None if self.C is None else float(1 / positive("C", self.C))
        single = crowd.units is None
        alone = self.meter is None and tuition.left == 1
        joint = tuition.rho is not None and not alone and not (single and signs.shape[1] == 1)
        if self.solver == "newton" or (self.solver == "auto" and joint):
            rounds = whole("rounds", self.rounds, least=1)
            pulls = Pulls(features=features, signs=signs, crowd=crowd, tuition=tuition)
            theta, kept, spread = take_steps(self._loss, pulls, ridge=ridge, rounds=rounds)
            return theta, (
                f"Each of {rounds} gradients had noise of standard deviation {spread:.3g} a coefficient; "
                f"ridge {kept:.3g}."
            )
        shape: dict[str, Any] = {
            "loss": self._loss, "width": features.shape[1], "columns": signs.shape[1], "rows": crowd.most,
            "single": single, "ridge": ridge,
        }  # fmt: skip
        part = tuition.spend(tuition.left)
        if tuition.rho is None:
            mechanism = ObjectivePerturbation.at(**shape, epsilon=tuition.pure(part))
        elif alone:
            mechanism = ObjectivePerturbation.at(**shape, epsilon=tuition.epsilon, delta=tuition.delta)
        else:
            mechanism = ObjectivePerturbation.at(**shape, rho=tuition.rho * part)

        def value() -> Examples:
            weights = np.where(signs[:, 0] == 0, 0.0, crowd.weights)
            return Examples(features=features, signs=np.where(signs == 0, 1.0, signs), weights=weights)

        drawn = tuition.measure(
            mechanism, Sealed.later(value), Sensitivity(rows=crowd.most), grid=None, label="coefficients"
        )
        noise, kept = float(mechanism.scale) * (1 if mechanism.gaussian else 2**0.5), float(mechanism.ridge)
        return np.asarray(drawn, dtype=np.float64).reshape(features.shape[1], signs.shape[1]), (
            f"The gradient had noise of standard deviation {noise:.3g} a coefficient; ridge {kept:.3g}: "
            f"noise alone moves a decision by at most about {noise / kept:.2g}, and by far less where there are rows."
        )


def _signs(codes: Array, classes: int) -> Array | None:
    """±1, one column for each class, or one for the second of two; 0 where a label is none of them."""
    if classes < 2:
        return None
    columns = np.arange(1, 2) if classes == 2 else np.arange(classes)
    signs: Array = np.where(codes[:, None] == columns, 1.0, -1.0)
    signs[codes < 0] = 0.0
    return signs
