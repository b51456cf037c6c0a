"""Values that are chosen in each group from a histogram: quantiles, the least and the greatest, the most frequent.

The histogram has whole steps of a grid that follows from public facts; a unit has at most ``most_rows`` rows of a group
in it. Everything about a choice is in steps: what is drawn, what is stored, and the error, which is one of ranks.

Privacy:
    Claim: choosing in all groups costs ``groups`` times the event of choosing in one, and that is what is charged.
    Proof: a unit is in at most ``groups`` groups (replaced: in those of both), with at most most_rows rows in each,
        which are a function of its own rows (ops.Histogram). That is what the mechanism in each group is calibrated
        for: rows that are added, removed or replaced for ranks; counts that move by as many for a mode, all in one
        direction if a unit is added. PerGroup has the rest of the proof.
    Needs: mechanisms.quantile, quantiles, extreme, select and grouped; ops.Aggregate for the bounds.
    Ref: SOUNDNESS 5 and 10.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import TooHeavy
from hubbub.mechanisms import Mechanism, PerGroup
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.policy.kinds import Type, ceil_log2, finest, outward, power
from hubbub.privacy.sensitivity import Neighbors, Sensitivity
from hubbub.query.check.bounds import Interval
from hubbub.query.expression import Expression, Value, literal
from hubbub.query.functions import call
from hubbub.query.ops import ExactCounts, Histogram
from hubbub.query.plan.statistic import Reach, Statistic

MOST_STEPS = 1 << 20
"""Steps of one histogram: ranks are told apart no better by more, and each doubling costs ln 2 in every error."""
MOST_BINS = 1 << 20
"""Steps of one histogram over all groups: what the engine hands over at most."""
LEAST_STEPS = 1 << 8
"""A histogram with fewer steps than this would say little."""
MOST_VALUES = 256
"""Values among which the most frequent is chosen."""
UNLISTED = 1 << 8
"""How many groups are reckoned with where nobody listed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramStatistic(Statistic):
    """A statistic of one histogram, measured in all groups."""

    histogram: Histogram
    column: int
    """Where an engine puts the histogram among those of a question."""
    reach: Reach

    @property
    def top(self) -> int:
        """The last step."""
        return round((self.histogram.clamp[1] - self.histogram.clamp[0]) / self.histogram.grid)

    @property
    def rows(self) -> int:
        """The most rows of one unit in one group."""
        return self.histogram.most_rows

    @property
    def numbers(self) -> int:
        """Return how many numbers it gives for each group."""
        return 1

    def count_numbers(self, cells: int) -> int:
        """Return as many for each group."""
        return self.numbers * cells

    def bins(self, counted: ExactCounts) -> Sequence[StepCounts]:
        """Return the histogram of each group."""
        return counted.histograms[self.column]

    def scores(self, counted: ExactCounts) -> tuple[Any, ...]:
        """Return a count for each step, group by group."""
        return tuple(_scores(bins, self.top) for bins in self.bins(counted))

    def read_group(self, numbers: Sequence[int], cell: int) -> Sequence[int]:
        """Return the numbers of one group."""
        return numbers[cell * self.numbers : (cell + 1) * self.numbers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(HistogramStatistic):
    """A choice of steps in each group, by one mechanism."""

    def __call__(self, counted: ExactCounts) -> Any:
        """Take the steps of each group, with the number of rows on each."""
        return tuple(self.bins(counted))

    @property
    def sensitivity(self) -> Sensitivity:
        """Bound what one unit can do to ranks: it adds, removes or replaces so many rows in so many groups."""
        return Sensitivity(l0=self.reach.touched, rows=self.rows)

    def calibrate_pure(self, epsilon: Fraction) -> Mechanism:
        """Return a choice for this ε over all groups of a unit."""
        groups = self.reach.touched
        return PerGroup(mechanism=self.choose_in_group(epsilon / groups), groups=groups)

    def calibrate_zcdp(self, rho: Fraction) -> Mechanism:
        """Return a choice for this ρ: a range of ε costs ε²/8 in each group, or 1/k of it in k equal parts."""
        groups = self.reach.touched
        epsilon = _root_rounded_down(8 * rho * self.equal_parts / groups)
        return PerGroup(mechanism=self.choose_in_group(epsilon), groups=groups)

    @property
    def equal_parts(self) -> int:
        """In how many equal parts ε is spent within a group."""
        return 1

    @abstractmethod
    def choose_in_group(self, epsilon: Fraction) -> Mechanism:
        """Return the mechanism that chooses in one group."""

    def bound_rank_error(self, mechanism: Mechanism, beta: float, level: Fraction | None = None) -> float:
        """Return by how many rows the rank, or the count of what is chosen, may be off in one group; of several levels
        at this one."""
        assert isinstance(mechanism, PerGroup)
        return mechanism.mechanism.error(beta=beta)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyChoice(Choice):
    """A choice by how often candidates are there."""

    def __call__(self, counted: ExactCounts) -> Any:
        """Take a count for each candidate, group by group."""
        return self.scores(counted)

    @property
    def is_monotone(self) -> bool:
        """Return whether a unit that is added moves all counts in one direction."""
        return self.reach.neighbors is Neighbors.ADD_REMOVE

    @property
    def sensitivity(self) -> Sensitivity:
        """Bound what one unit can do to the counts."""
        return Sensitivity(l0=self.reach.touched, linf=Fraction(self.rows), monotone=self.is_monotone)

    def bound_rank_error(self, mechanism: Mechanism, beta: float, level: Fraction | None = None) -> float:
        """Return by how many rows the count of what is chosen may be below that of another candidate."""
        assert isinstance(mechanism, PerGroup)
        inner: Any = mechanism.mechanism
        found: float = inner.error(beta=beta, candidates=self.top + 1)
        return found


def _scores(bins: StepCounts, top: int) -> Any:
    counts = np.zeros(top + 1, dtype=np.int64)
    held = bins.within(top)
    counts[held.steps] = held.counts
    return counts


def _root_rounded_down(value: Fraction) -> Fraction:
    unit = 1 << 60
    return Fraction(math.isqrt(value.numerator * unit * unit // value.denominator), unit)


# Histograms


def lay_out(argument: Expression, bounds: Interval, step: Fraction | None, *, rows: int, cells: int) -> Histogram:
    """Lay a histogram over the bounds, by the declared step or a power of two, with few steps over all groups."""
    most = min(MOST_STEPS, MOST_BINS // max(1, cells))
    if most < LEAST_STEPS:
        raise TooHeavy(
            f"Quantiles, MIN and MAX are chosen in at most {MOST_BINS // LEAST_STEPS:,} groups; here are {cells:,}. "
            "Ask for fewer groups."
        )
    width = bounds[1] - bounds[0]
    if argument.kind.type is Type.INTEGER:
        grid = Fraction(1)
    else:
        grid = step or max(power(ceil_log2(width / most)), finest(bounds))
    if width / grid > most:
        grid *= power(ceil_log2(width / grid / most))
    clamp = outward(bounds, grid)
    return Histogram(argument=argument, clamp=clamp, origin=clamp[0], grid=grid, most_rows=rows)


def encode_values(argument: Expression, values: Sequence[Value], *, rows: int) -> Histogram:
    """Count the place of a value among public ones; rows with any other are left out."""
    pairs = [
        part for place, value in enumerate(values) for part in (call("eq", argument, literal(value)), literal(place))
    ]
    place = call("case", *pairs, literal(None, Type.INTEGER))
    ends = Fraction(0), Fraction(len(values) - 1)
    return Histogram(argument=place, clamp=ends, origin=Fraction(0), grid=Fraction(1), most_rows=rows)
