"""The perceptron that asks statistical queries: where are the rows on the wrong side, on average?"""

from typing import Any

import numpy as np

from hubbub.learn.linear.gradients import Pulls
from hubbub.learn.linear.linear_classifier import LinearClassifier
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.parameters import whole

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
