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
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import TooHeavy
from hubbub.mechanisms import Exponential, Extreme, Mechanism, PerGroup, Quantile, Quantiles, TopK
from hubbub.mechanisms.bins import Bins
from hubbub.policy.grid import ceil_log2, finest, outward, power
from hubbub.policy.kinds import Type
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.bounds import Interval
from hubbub.query.expression import Expression, Value, literal
from hubbub.query.functions import call
from hubbub.query.ops import Histogram

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


class Wanted(StrEnum):
    """What is chosen."""

    QUANTILES = "quantiles"
    LEAST = "least"
    MOST = "most"
    MODE = "mode"
    TOP = "top"
    COUNTS = "counts"
    """Nothing is chosen: all counts are shown, with noise (query.tops)."""


_COUNTED = frozenset({Wanted.MODE, Wanted.TOP, Wanted.COUNTS})
"""What looks at counts of candidates, not at ranks of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is chosen in each group from one histogram, by one mechanism."""

    histogram: int
    wanted: Wanted
    levels: tuple[Fraction, ...] = ()
    """Of quantiles, which; ascending."""
    top: int
    """The last step."""
    rows: int
    """Of one unit in one group."""
    best: int = 1
    """Of a top-k, the k."""

    @property
    def many(self) -> int:
        """How many numbers it gives for each group."""
        return self.top + 1 if self.wanted is Wanted.COUNTS else max(self.best, len(self.levels))

    def value(self, bins: Sequence[Bins]) -> Any:
        """What the mechanism is asked of: for each group its steps, or a count for each candidate; or all counts."""
        if self.wanted not in _COUNTED:
            return tuple(bins)
        scores = tuple(_scores(one, self.top) for one in bins)
        return np.concatenate(scores) if self.wanted is Wanted.COUNTS else scores


def _scores(bins: Bins, top: int) -> Any:
    counts = np.zeros(top + 1, dtype=np.int64)
    held = bins.within(top)
    counts[held.steps] = held.counts
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """A choice where it is known in how many groups one unit can be, and who is a neighbour."""

    choice: Choice
    groups: int
    neighbors: Neighbors

    @property
    def sensitivity(self) -> Sensitivity:
        """What one unit can do to what the choice is made of."""
        rows = self.choice.rows
        if self.choice.wanted is Wanted.COUNTS:
            touched = self.groups * min(rows, self.choice.top + 1)
            together = Fraction(self.groups * rows)
            return Sensitivity(l0=touched, l1=together, l2_squared=together * rows, linf=Fraction(rows))
        if self.choice.wanted not in _COUNTED:
            return Sensitivity(l0=self.groups, rows=rows)
        return Sensitivity(l0=self.groups, linf=Fraction(self.choice.rows), monotone=self._monotone)

    @property
    def _monotone(self) -> bool:
        return self.neighbors is Neighbors.ADD_REMOVE

    def pure(self, epsilon: Fraction) -> Mechanism:
        """For this ε over all groups of a unit."""
        return PerGroup(mechanism=self._in_one(epsilon / self.groups), groups=self.groups)

    def zcdp(self, rho: Fraction) -> Mechanism:
        """For this ρ: a range of ε costs ε²/8 in each group, or 1/k of it if it is spent in k equal parts."""
        parts = len(self.choice.levels).bit_length() or self.choice.best
        return PerGroup(mechanism=self._in_one(_root_rounded_down(8 * rho * parts / self.groups)), groups=self.groups)

    def _in_one(self, epsilon: Fraction) -> Mechanism:
        choice = self.choice
        moved = Fraction(choice.rows)
        if choice.wanted is Wanted.MODE:
            return Exponential(epsilon=epsilon, sensitivity=moved, monotone=self._monotone, neighbors=self.neighbors)
        if choice.wanted is Wanted.TOP:
            return TopK(
                epsilon=epsilon, sensitivity=moved, monotone=self._monotone, neighbors=self.neighbors, k=choice.best
            )
        ends, step = (Fraction(0), Fraction(choice.top)), Fraction(1)
        if choice.wanted is not Wanted.QUANTILES:
            highest = choice.wanted is Wanted.MOST
            return Extreme(
                epsilon=epsilon, bounds=ends, grid=step, rows=choice.rows, neighbors=self.neighbors, highest=highest
            )
        if len(choice.levels) == 1:
            (level,) = choice.levels
            return Quantile(
                epsilon=epsilon, bounds=ends, grid=step, rows=choice.rows, neighbors=self.neighbors, q=level
            )
        return Quantiles(
            epsilon=epsilon,
            bounds=ends,
            grid=step,
            rows=choice.rows,
            neighbors=self.neighbors,
            targets=choice.levels,
        )


def _root_rounded_down(value: Fraction) -> Fraction:
    unit = 1 << 60
    return Fraction(math.isqrt(value.numerator * unit * unit // value.denominator), unit)


def error_of(mechanism: Mechanism, choice: Choice, beta: float) -> float:
    """By how many rows the rank, or the count of a mode, may be off in one group."""
    assert isinstance(mechanism, PerGroup)
    inner = mechanism.mechanism
    if isinstance(inner, Exponential | TopK):
        return inner.error(beta=beta, candidates=choice.top + 1)
    return inner.error(beta=beta)


# Histograms


def histogram(argument: Expression, bounds: Interval, step: Fraction | None, *, rows: int, cells: int) -> Histogram:
    """From the bounds and the declared step, or a power of two: at most so many steps over all groups."""
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


def codes(argument: Expression, values: Sequence[Value], *, rows: int) -> Histogram:
    """The place of a value among public ones; rows with any other are left out."""
    pairs = [
        part for place, value in enumerate(values) for part in (call("eq", argument, literal(value)), literal(place))
    ]
    place = call("case", *pairs, literal(None, Type.INTEGER))
    ends = Fraction(0), Fraction(len(values) - 1)
    return Histogram(argument=place, clamp=ends, origin=Fraction(0), grid=Fraction(1), most_rows=rows)
