"""Logistic regression with one noisy linear term, or by noisy gradients."""

from typing import Any

import numpy as np

from hubbub.learn.linear.linear_classifier import ConvexClassifier
from hubbub.learn.linear.newton import ROUNDS
from hubbub.learn.statistics.cells import Array
from hubbub.learn.tuition import ACCOUNT
from hubbub.mechanisms.objective.convex import MarginLoss


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
