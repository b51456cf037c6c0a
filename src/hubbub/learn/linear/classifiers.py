"""Linear classifiers: logistic regression, a support vector machine, and the perceptron."""

from typing import Any

import numpy as np

from hubbub.learn.linear.gradients import ROUNDS, Pulls
from hubbub.learn.linear.linear_classifier import ConvexClassifier, LinearClassifier
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.mechanisms.objective.convex import MarginLoss
from hubbub.parameters import whole


class LogisticRegression(ConvexClassifier):
    """Logistic regression: probabilities of classes from columns with public ranges.

    ``bounds`` are those of the columns: a range with 0 in it is scaled, any other one centred as well. ``max_norm`` is
    a public bound on the L2 norm of a row after that (None: the root of the number of columns, which no row exceeds;
    of one-hot columns from k categories, √k): longer rows are shortened. ``C`` is scikit-learn's, None chooses
    from the noise, and a ridge below what the proof needs is raised. More than two classes are told apart one against
    the rest, in one joint release.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: that of ``ConvexClassifier``, with the logistic loss: slopes within [−1, 0], curvature at most 1/4.
        Needs: ``ConvexClassifier``.
        Ref: Chaudhuri, Monteleoni, Sarwate 2011; Kifer, Smith, Thakurta 2012.
    """

    _loss = MarginLoss.LOGISTIC

    def __init__(
        self, *, epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None, classes: Any = None,
        max_norm: float | None = None, C: float | None = None, fit_intercept: bool = True, solver: str = "auto",  # noqa: N803
        rounds: int = ROUNDS, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """One column a class; of more than two, each one's own probability over their sum."""
        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.ones((len(scores), 1))
        each = -MarginLoss.LOGISTIC.slope(-scores)
        if scores.ndim == 1:
            return np.column_stack([1 - each, each])
        total: Array = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1 / len(self.classes_))

    def predict_log_proba(self, X: Any) -> Array:  # noqa: N803
        """Logarithms of those."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class LinearSVC(ConvexClassifier):
    """A separating plane with a wide margin: the hinge loss, made smooth between margins 1/2 and 3/2.

    Parameters are those of ``LogisticRegression``.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: that of ``ConvexClassifier``, with the rounded hinge: slopes within [−1, 0], curvature at most 1.
        Needs: ``ConvexClassifier``.
        Ref: Chaudhuri, Monteleoni, Sarwate 2011; Kifer, Smith, Thakurta 2012.
    """

    _loss = MarginLoss.HINGE

    def __init__(
        self, *, epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None, classes: Any = None,
        max_norm: float | None = None, C: float | None = None, fit_intercept: bool = True, solver: str = "auto",  # noqa: N803
        rounds: int = ROUNDS, max_rows: int = 1, meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())


ROUNDS = 12


class Perceptron(LinearClassifier):
    """The perceptron of the statistical-query model: each round adds the noisy sum of all rows on the wrong side.

    Rounds are a public number, since when to stop would be a question of its own. What is kept is the average over
    rounds, each at length 1. Other parameters are those of ``LogisticRegression``.

    Privacy:
        Claim: (ε, δ) for each unit, as stated in ``claim_``.
        Proof: each round is one measurement of ``Pulls``, with slope −1 for a margin of at most 0 and 0 for others: an
            equal share of the price each.
        Needs: ``Pulls``, ``Tuition``.
        Ref: Blum, Dwork, McSherry, Nissim 2005 (SuLQ); Blum, Frieze, Kannan, Vempala 1998.
    """

    def __init__(
        self, *, epsilon: float = 1.0, delta: float = 0.0, bounds: Any = None, classes: Any = None,
        max_norm: float | None = None, fit_intercept: bool = True, rounds: int = ROUNDS, max_rows: int = 1,
        meter: Any = None, account: str = ACCOUNT, random_state: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def _check(self, *, width: int, grouped: bool) -> None:
        super()._check(width=width, grouped=grouped)
        whole("rounds", self.rounds, least=1)

    def _learn(self, features: Array, signs: Array, *, crowd: Crowd, tuition: Tuition) -> tuple[Array, str]:
        rounds = whole("rounds", self.rounds, least=1)
        pulls = Pulls(features=features, signs=signs, crowd=crowd, tuition=tuition)
        share, spread = tuition.left / rounds, 0.0
        theta, mean = np.zeros(pulls.shape), np.zeros(pulls.shape)
        for made in range(rounds):
            noisy, spread = pulls.measure(_wrong, theta, share=share, label=f"round {made + 1}")
            theta = theta - noisy
            mean = mean + theta / np.maximum(np.linalg.norm(theta, axis=0), 1e-300) / rounds
        return mean, f"Each of {rounds} sums had noise of standard deviation {spread:.3g} rows a coefficient."


def _wrong(margins: Array) -> Array:
    return -(margins <= 0).astype(np.float64)
