"""A guarantee, read for a person: what it lets anyone learn, and how many people a study needs.

Everything follows from the definition P(S) ≤ e^ε·P'(S) + δ, applied to S and to its complement, in both directions.

Privacy:
    Claim: an answer after which odds have moved by more than t·e^ε, t > 1, comes with a chance of δ·t/(t − 1) at most,
        and never where δ = 0.
    Proof: let S be the outcomes of which P is more than t·e^ε times P'. Then P(S) ≤ e^ε·P'(S) + δ ≤ P(S)/t + δ. A
        chance of δ beside e^ε itself would be too little: with Gaussian noise for (1, 1e-6) it is 20 times that.
    Needs: the two neighbours that the odds are about; others are further apart.
    Ref: Kasiviswanathan, Smith 2014.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from hubbub.errors import CapacityError, ParameterError
from hubbub.parameters import Real, between, non_negative, positive, probability
from hubbub.privacy.loss import Approx, number
from hubbub.privacy.rounding import exp_up, log_up

Range = tuple[float, float]
_LARGEST = 700
_BEYOND = 1.01
"""How far beyond e^ε odds are read where there is a δ. Nearer to 1 the chance that is named beside them grows, further
away the odds: a hundredth more is not seen, and a hundred times δ is still small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The meaning of (ε, δ) for one person who decides about taking part, and for an observer."""

    epsilon: float
    delta: float
    prior: float

    @property
    def odds(self) -> Range:
        """The factors by which an observer's odds about a person may change, except with probability ``chance``."""
        factor = math.exp(self.epsilon) * (_BEYOND if self.delta else 1.0)
        return 1 / factor, factor

    @property
    def chance(self) -> float:
        """The greatest probability with which odds change by more than that."""
        return min(1.0, self.delta * _BEYOND / (_BEYOND - 1))

    @property
    def posterior(self) -> Range:
        """The range of the posterior probability after the answer is seen, except with probability ``chance``."""
        low, high = (factor * self.prior / (1 - self.prior + factor * self.prior) for factor in self.odds)
        return low, high

    @property
    def harm(self) -> Range:
        """The factors between which the expected harm (or gain) of taking part lies, beside δ of the greatest harm."""
        return math.exp(-self.epsilon), math.exp(self.epsilon)

    def probability_of(self, without: Real) -> Range:
        """The range of an event's probability with the person's data, where it is ``without`` without them."""
        p = float(between("without", without, 0, 1))
        grow, d = math.exp(self.epsilon), self.delta
        low = max(0.0, (p - d) / grow, 1 - d - grow * (1 - p))
        high = min(1.0, grow * p + d, 1 - (1 - p - d) / grow)
        return low, high

    def power(self, false_positives: Real) -> float:
        """The greatest chance of a right accusation for a test that wrongs the innocent with this chance."""
        return self.probability_of(between("false_positives", false_positives, 0, 1))[1]

    @property
    def advantage(self) -> float:
        """The best chance of guessing right, from a coin's 1/2, which of two neighbouring datasets was used."""
        return 0.5 + (self.delta + (1 - self.delta) * math.tanh(self.epsilon / 2)) / 2

    def __str__(self) -> str:
        low, high = self.posterior
        fewer, more = self.probability_of(0.1)
        but = f", but for a chance {number(self.chance)}" if self.delta else ""
        beside = f", and {number(self.delta)} of the greatest harm more" if self.delta else ""
        loss = Approx(epsilon=Fraction(self.epsilon), delta=Fraction(self.delta))
        return "\n".join(
            [
                f"{loss}:",
                f"  Odds about a person move by a factor between {self.odds[0]:.3g} and {self.odds[1]:.3g}{but}.",
                f"  Whoever thought {self.prior:.3g} likely thinks between {low:.3g} and {high:.3g} afterwards{but}.",
                f"  Anything that would happen with probability 0.1 happens with {fewer:.3g} to {more:.3g}.",
                f"  The expected harm of taking part is at most {self.harm[1]:.3g} times that of staying out{beside}.",
                f"  A test that wrongs 5% of the innocent finds at most {self.power(0.05):.3g} of the others; the best "
                f"guess is right with {self.advantage:.3g}.",
            ]
        )


def explain(epsilon: Real, delta: Real = 0, *, prior: Real = 0.5) -> Reading:
    """Read a guarantee for a person; ``prior`` is what an observer thought before."""
    loss = non_negative("epsilon", epsilon)
    if loss > _LARGEST:
        raise CapacityError(f"ε above {_LARGEST} promises nothing that can be read.", epsilon=epsilon)
    slack = between("delta", delta, 0, 1, high_open=True)
    return Reading(epsilon=float(loss), delta=float(slack), prior=float(probability("prior", prior)))


def sample_size(
    *,
    alpha: Real,
    epsilon: Real,
    beta: Real | None = None,
    method: Literal["laplace", "randomized-response"] = "laplace",
) -> int:
    """Return the number of people a study of a proportion needs, so that the noise for privacy errs by at most
    ``alpha``.

    Without ``beta``: the least n whose standard deviation is at most α, √2/(nε) for Laplace noise on the count and
    e^(ε/2)/((e^ε − 1)√n) for randomized response. With ``beta``: an n at which the error is at most α with probability
    1 − β: e^(−αεn) ≤ β, the least for Laplace; by Hoeffding's inequality for randomized response. Halving α or ε
    doubles n for Laplace and makes it four times as large for randomized response (in ε, where ε is small). The error
    of sampling people from a population comes on top.
    """
    error, loss = positive("alpha", alpha), positive("epsilon", epsilon)
    chance = None if beta is None else probability("beta", beta)
    if method not in _PLANS:
        raise ParameterError("method", f"one of {', '.join(_PLANS)}", method)
    return _PLANS[method](error, loss, chance)


def _laplace(alpha: Fraction, epsilon: Fraction, beta: Fraction | None) -> int:
    if beta is not None:
        return math.ceil(log_up(1 / beta) / (alpha * epsilon))
    return math.isqrt(math.floor(2 / (alpha * epsilon) ** 2)) + 1  # twice a square of a rational is no square


def _response_size(alpha: Fraction, epsilon: Fraction, beta: Fraction | None) -> int:
    shrink = exp_up(-min(epsilon, Fraction(1000)), bits=240)
    if beta is None:
        return math.ceil(shrink / ((1 - shrink) * alpha) ** 2)
    stretch = (1 + shrink) / (1 - shrink)
    return math.ceil(stretch**2 * log_up(2 / beta) / (2 * alpha**2))


_PLANS = {"laplace": _laplace, "randomized-response": _response_size}
