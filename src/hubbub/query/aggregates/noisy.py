"""The noise of a plan: how far each tally may be off, known before anything is drawn, and the noisy values afterwards.

Everything here is post-processing: it sees noisy numbers and public facts, and nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from hubbub.mechanisms.base import Mechanism
from hubbub.query.ops import Tally
from hubbub.query.plan.choice import HistogramStatistic
from hubbub.query.plan.statistic import NoisyNumber, NoisySum, QueryMeasurement, Statistic

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Margins:
    """The margin of error of each tally of a plan: the same in every group."""

    measurements: Sequence[QueryMeasurement]
    rows: int | None
    """The most rows of one unit that count in one group."""
    single: bool = False
    """Whether a unit has one row at most."""
    _telling: dict[int, tuple[Tally, QueryMeasurement]] = field(default_factory=dict, compare=False, repr=False)
    _known: dict[tuple[int, float], Fraction] = field(default_factory=dict, compare=False, repr=False)

    def find(self, tally: Tally) -> QueryMeasurement:
        """Return the measurement that tells a tally."""
        known = self._telling.get(id(tally))
        if known is None:
            known = tally, next(one for one in self.measurements if tally in one.take.tells)
            self._telling[id(tally)] = known  # it is kept, so that nothing else gets its id
        return known[1]

    def find_choice(self, statistic: Statistic | None) -> QueryMeasurement:
        """Return the measurement of what is chosen, or counted, from a histogram."""
        return next(one for one in self.measurements if one.take == statistic)

    def mechanism(self, tally: Tally) -> Mechanism:
        """Return what measures a tally."""
        return self.find(tally).mechanism

    def bound(self, tally: Tally, beta: float) -> Fraction:
        """Return how far a tally may be off, in its own units, except with probability ``beta``."""
        own = self.find(tally)
        if (id(tally), beta) not in self._known:
            self._known[id(tally), beta] = own.take.bound_error(own.mechanism, tally, beta)
        return self._known[id(tally), beta]


@dataclass(frozen=True, slots=True)
class NoisyCell:
    """The noisy numbers of one group."""

    margins: Margins
    numbers: Callable[[QueryMeasurement], Sequence[int]]
    cell: int
    confidence: float

    def sum(self, tally: Tally, beta: float) -> NoisySum:
        """Return a noisy sum or count in its own units, with its margin."""
        own = self.margins.find(tally)
        return own.take.estimate_sum(
            own.mechanism, self._steps(own, tally), tally, self.margins.bound(tally, beta), beta
        )

    def number(self, tally: Tally) -> NoisyNumber:
        """Return a sum or count that is shown as it is, with its interval."""
        own, beta = self.margins.find(tally), 1 - self.confidence
        steps = self._steps(own, tally)
        return own.take.estimate_number(own.mechanism, steps, tally, self.margins.bound(tally, beta), beta)

    def _steps(self, own: QueryMeasurement, tally: Tally) -> int | Fraction:
        return own.take.decode(self.numbers(own), self.cell, tally)

    def read(self, statistic: HistogramStatistic) -> Sequence[int]:
        """Return what was drawn for a choice, or for the bins of a histogram."""
        return statistic.read_group(self.numbers(self.margins.find_choice(statistic)), self.cell)
