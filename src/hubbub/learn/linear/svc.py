"""A linear support vector machine, its hinge rounded off."""

from typing import Any

from hubbub.learn.linear.linear_classifier import ConvexClassifier
from hubbub.learn.linear.newton import ROUNDS
from hubbub.learn.tuition import ACCOUNT
from hubbub.mechanisms.objective.convex import MarginLoss


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
