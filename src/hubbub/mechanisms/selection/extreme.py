"""The least or the greatest of many values, as far as privacy allows its release."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.base import Array, settle
from hubbub.mechanisms.selection.pieces import Pieces
from hubbub.mechanisms.selection.quantile import OnRange, Values, pieces_about
from hubbub.parameters import Real, probability, whole
from hubbub.privacy.events.event import BoundedRangeEvent

OUTSIDE = 1 / 20
"""The chance of an answer beyond the data, at most, if only one point of the range is on target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme(OnRange):
    """A value that only about ``inside`` values are beyond: the highest, or the lowest, that many others vouch for.

    The greatest value itself is one person's, and beyond it every point of the range has the same rank: an exponential
    mechanism for the quantile 1 answers anywhere between it and the upper bound. So the aim is a rank that lies a fixed
    number of values inside. With ln(20 · steps) / rate of them, all points beyond the data together weigh no more than
    a twentieth of one point on target, and mostly far less, as there are more points near it. ``error(beta)`` bounds
    how many values lie between the answer and the true extreme.

    Privacy:
        Claim: bounded range epsilon: Pure(epsilon) and ε²/8-zCDP.
        Proof: the score -max(#{x>o} - k, k - #{x>=o}, 0), with k public, is the larger of two terms that one added
            value moves by at most 1, and a replaced one too; a unit adds, removes or replaces ``rows`` of them. Then it
            is the exponential mechanism. Clamping and rounding act on each value alone.
        Needs: noise.choice and noise.uniform_below draw exactly; bounds, grid and ``inside`` are public.
        Ref: Smith 2011; Durfee 2023 (unbounded quantiles and maxima) for aiming inside the data.
    """

    highest: bool = True
    inside: int | None = None
    """How many values lie beyond what is aimed at; None for ln(20 · steps) / rate, rounded up."""

    def __post_init__(self) -> None:
        OnRange.__post_init__(self)
        if self.inside is None:
            settle(self, inside=math.ceil(math.log((self.top + 1) / OUTSIDE) / float(self.rate)))
        whole("inside", self.inside)

    @property
    def rate(self) -> Fraction:
        """The exponent for one step of rank."""
        return self.epsilon / (2 * self.rows)

    @property
    def beyond(self) -> int:
        """The number of values that lie beyond the target."""
        assert self.inside is not None
        return self.inside

    @property
    def event(self) -> BoundedRangeEvent:
        return BoundedRangeEvent(range=self.epsilon, neighbors=self.neighbors)

    def draw(self, value: Values) -> Real:
        chosen: Real = self.value_of(self._pieces(value).choose(self.rate))
        return chosen

    def repeat(self, value: Values, *, times: int) -> Array:
        return np.asarray(self.value_of(self._pieces(value).choose_many(self.rate, times)))

    def log_mass(self, value: Values, output: Real) -> float:
        return self._pieces(value).log_mass(self.rate, self.step_of(output))

    def _pieces(self, value: Values) -> Pieces:
        held = self.count_values(value)
        return pieces_about(held, len(held) - self.beyond if self.highest else self.beyond, 1, (0, self.top))

    def error(self, *, beta: float) -> float:
        return self.beyond + math.log((self.top + 1) / float(probability("beta", beta))) / float(self.rate)
