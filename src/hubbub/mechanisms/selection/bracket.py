"""A quantile with two others that hold it between them: an interval of values, and not of ranks alone."""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.base import Array, settle
from hubbub.mechanisms.selection.pieces import Pieces, StepCounts
from hubbub.mechanisms.selection.quantile import DENOMINATOR, OnRange, Values, pieces_about
from hubbub.parameters import Real, probability
from hubbub.privacy.events.event import BoundedRangeEvent, Event, RepeatedEvent
from hubbub.privacy.sensitivity import Neighbors

_DRAWS = 3
"""The quantile, the lower and the upper end: each has the same share, so that an end is as noisy as the quantile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileBracket(OnRange):
    """The ``q``-quantile, and two values between which the exact one lies with probability 1 − ``beta`` at least.

    The ends aim at the ranks that are ``aside`` values below and above the quantile's, so many that chance brings an
    end to the wrong side of it with probability beta/2 at most, whatever the values are: ln(2 · steps / beta) / rate.
    So that an end is there where fewer than ``aside`` values are on its side, as many are taken to lie on that bound
    of the range: the end is then the bound. An answer is (quantile, lower end, upper end), and ``error(beta)`` bounds
    the rank error of the first.

    Privacy:
        Claim: three releases of bounded range epsilon/3 each: Pure(epsilon), and ε²/24-zCDP.
        Proof: each is the exponential mechanism of Quantile at a third of ε. For an end, as many values are added on a
            bound of the range to both neighbours, and the rank that is wanted moves by as many: both are public. Ranks
            of points move as before, by 1 − q or −q against the wanted one for an added value, and by at most 1 for a
            replaced one; on the bound itself one of the two terms of the score falls away. Three draws compose.
        Needs: Quantile's choice; bounds, grid, q and beta are public.
        Ref: Smith 2011; SOUNDNESS 11 for intervals that a shown share buys.
    """

    q: Fraction = Fraction(1, 2)
    beta: Fraction = Fraction(1, 20)

    aside: int = field(init=False, repr=False, compare=False)
    """How many ranks either end aims away from the quantile's."""

    def __post_init__(self) -> None:
        OnRange.__post_init__(self)
        settle(self, q=probability("q", self.q).limit_denominator(DENOMINATOR))
        settle(self, beta=probability("beta", self.beta))
        settle(self, aside=math.ceil(math.log(2 * (self.top + 1) / float(self.beta)) / float(self.rate)))

    @property
    def rate(self) -> Fraction:
        """The exponent for one step of rank in each of the draws."""
        worst = max(self.q, 1 - self.q) if self.neighbors is Neighbors.ADD_REMOVE else Fraction(1)
        return self.epsilon / (_DRAWS * 2 * worst * self.rows)

    @property
    def event(self) -> Event:
        return RepeatedEvent(
            event=BoundedRangeEvent(range=self.epsilon / _DRAWS, neighbors=self.neighbors), count=_DRAWS
        )

    def draw(self, value: Values) -> Array:
        chosen = [pieces.choose(self._rate_of_levels) for pieces in self._list_pieces(value)]
        return np.asarray(self.value_of(np.array(chosen, dtype=np.int64)))

    def repeat(self, value: Values, *, times: int) -> list[tuple[Real, ...]]:
        drawn = [pieces.choose_many(self._rate_of_levels, times) for pieces in self._list_pieces(value)]
        return [tuple(row) for row in np.asarray(self.value_of(np.stack(drawn, axis=1))).tolist()]

    def log_mass(self, value: Values, output: tuple[Real, ...]) -> float:
        pairs = zip(self._list_pieces(value), output, strict=True)
        return sum(pieces.log_mass(self._rate_of_levels, self.step_of(end)) for pieces, end in pairs)

    def error(self, *, beta: float) -> float:
        return math.log((self.top + 1) / float(probability("beta", beta))) / float(self.rate)

    @property
    def _rate_of_levels(self) -> Fraction:
        return self.rate / self.q.denominator

    def _list_pieces(self, value: Values) -> tuple[Pieces, Pieces, Pieces]:
        held = self.count_values(value)
        wanted, by, ends = self.q.numerator * len(held), self.q.denominator, (0, self.top)
        below, above = (_add_values(held, step, self.aside) for step in ends)
        return (
            pieces_about(held, wanted, by, ends),
            pieces_about(below, wanted, by, ends),
            pieces_about(above, wanted + self.aside * by, by, ends),
        )


def _add_values(held: StepCounts, step: int, many: int) -> StepCounts:
    """Add values on a step."""
    steps, counts = np.append(held.steps, step), np.append(held.counts, many)
    found, places = np.unique(steps, return_inverse=True)
    return StepCounts(found, np.bincount(places, weights=counts).astype(np.int64))
