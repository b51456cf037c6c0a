"""Randomized response: each person answers for themselves, and only the crowd can be read."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.noise.exact import Exact, exactly, exp_minus
from hubbub.parameters import between, positive, probability, whole
from hubbub.privacy.events.event import RandomizedResponseEvent
from hubbub.privacy.rounding import log_up
from hubbub.privacy.sensitivity import Neighbors, Norm


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseEstimate:
    """Unbiased counts of each category, and the standard deviation that randomized response itself adds to them."""

    counts: Array
    standard_deviation: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """One of ``categories`` answers 0, 1, …: the truth with probability e^ε / (e^ε + k - 1), else a uniform other one.

    Answers that are no category count as 0, so that a device never fails because of what it holds. ``error(beta)`` is
    for the estimated count from ``reports`` reports.

    Privacy:
        Claim: Pure(epsilon) between any two inputs of one person (the local model).
        Proof: every answer has probability e^ε/(e^ε+k-1) or 1/(e^ε+k-1), whose ratio is e^ε. With a rational ``truth``
            p instead, the ratio is p(k-1)/(1-p), and epsilon is its logarithm, rounded up.
        Needs: noise.bernoulli is exact for irrational p; one report a person.
        Ref: Warner 1965; Kairouz, Oh, Viswanath 2016.
    """

    epsilon: Fraction
    categories: int = 2
    truth: Fraction | None = None
    """The probability of the truth where it is rational; epsilon is then derived from it."""

    def __post_init__(self) -> None:
        settle(self, epsilon=positive("epsilon", self.epsilon))
        k = whole("categories", self.categories, least=2)
        if self.truth is not None:
            p = between("truth", self.truth, Fraction(1, k), 1, low_open=True, high_open=True)
            if self.epsilon < log_up(p * (k - 1) / (1 - p)):
                raise ParameterError("epsilon", "at least the loss of this truth (use with_truth)", float(self.epsilon))

    @classmethod
    def with_truth(cls, *, truth: Fraction | float, categories: int = 2) -> Self:
        """By the probability of a true answer, which must be above that of any other answer."""
        k = whole("categories", categories, least=2)
        p = between("truth", truth, Fraction(1, k), 1, low_open=True, high_open=True)
        return cls(epsilon=log_up(p * (k - 1) / (1 - p)), categories=k, truth=p)

    @classmethod
    def basic(cls) -> Self:
        """The die of the lectures: the truth for 1 to 4, the opposite for 5 and 6; ε = ln 2."""
        return cls.with_truth(truth=Fraction(2, 3))

    @property
    def needs(self) -> Needs:
        return Needs(norm=Norm.REPORT, sensitivity=Fraction(1), neighbors=Neighbors.LOCAL)

    @property
    def event(self) -> RandomizedResponseEvent:
        return RandomizedResponseEvent(bound=self.epsilon, categories=self.categories, neighbors=Neighbors.LOCAL)

    @property
    def honest(self) -> Exact:
        """The probability of the truth, known to any precision."""
        if self.truth is not None:
            return exactly(self.truth)
        return exactly(1) / (exactly(1) + exactly(self.categories - 1) * exp_minus(self.epsilon))

    @property
    def honest_float(self) -> float:
        """The probability of the truth, as a float for estimates."""
        if self.truth is not None:
            return float(self.truth)
        return 1 / (1 + (self.categories - 1) * math.exp(-float(self.epsilon)))

    def draw(self, value: int | Array) -> int | Array:
        """One report, or one report a person for an array of answers."""
        if isinstance(value, np.ndarray | list | tuple):
            return self._reports(np.asarray(value))
        return int(self._reports(np.array([value if isinstance(value, int | float | np.number) else 0]))[0])

    def _reports(self, answers: Array) -> Array:
        if answers.dtype.kind not in "iufb":
            answers = np.array([a if isinstance(a, int | np.integer) else 0 for a in answers.flat]).reshape(
                answers.shape
            )
        inside = (answers >= 0) & (answers < self.categories)
        truths = np.where(inside, answers, 0).astype(np.int64)
        honest = noise.bernoulli(self.honest, size=truths.size).reshape(truths.shape)
        other = noise.uniform_below(self.categories - 1, size=truths.size).reshape(truths.shape)
        return np.where(honest, truths, other + (other >= truths))

    def repeat(self, value: int, *, times: int) -> Array:
        return self._reports(np.full(times, value))

    def log_mass(self, value: int, output: int) -> float:
        if not 0 <= output < self.categories:
            return -math.inf
        truth = value if 0 <= value < self.categories else 0
        p = self.honest_float
        return math.log(p) if output == truth else math.log((1 - p) / (self.categories - 1))

    def estimate(self, reports: Array) -> ResponseEstimate:
        """Unbiased counts: E[c_j] = n_j·p + (n - n_j)·r with r = (1-p)/(k-1), solved for n_j."""
        answers = np.asarray(reports)
        if answers.ndim != 1 or answers.dtype.kind not in "iu":
            raise ParameterError("reports", "a vector of whole numbers", f"{answers.dtype} of shape {answers.shape}")
        p, r = self._chances
        seen = np.bincount(answers[(answers >= 0) & (answers < self.categories)], minlength=self.categories)
        total = len(answers)
        counts = (seen - total * r) / (p - r)
        held = np.clip(counts, 0, total)
        variance = (held * p * (1 - p) + (total - held) * r * (1 - r)) / (p - r) ** 2
        return ResponseEstimate(counts=counts, standard_deviation=np.sqrt(variance))

    def deviation(self, *, reports: int, share: float = 0.5) -> float:
        """The standard deviation of an estimated count when ``share`` of the people hold the category.

        For two categories this is e^(ε/2) / (e^ε - 1) · √n whatever the share.
        """
        p, r = self._chances
        n = whole("reports", reports, least=1)
        held = n * float(between("share", share, 0, 1))
        return math.sqrt((held * p * (1 - p) + (n - held) * r * (1 - r)) / (p - r) ** 2)

    def error(self, *, beta: float, reports: int = 1) -> float:
        """Hoeffding: each report moves the estimate within a range of 1/(p - r)."""
        p, r = self._chances
        n = whole("reports", reports, least=1)
        return math.sqrt(n * math.log(2 / float(probability("beta", beta))) / 2) / (p - r)

    @property
    def _chances(self) -> tuple[float, float]:
        p = self.honest_float
        return p, (1 - p) / (self.categories - 1)
