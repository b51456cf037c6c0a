"""Statistics that a question measures: each takes exact numbers of what an engine counted, and knows how far one unit
can move them, how they are measured for a share of the budget, and what the noisy numbers say.

A plan's measurement is a statistic with its mechanism. Parts of an answer name the tallies that they are made of, and
find the measurement that tells them; nothing is found by its position.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.gate.measurement import Measurement
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.mechanisms.additive.added import AddedNoise
from hubbub.mechanisms.base import Mechanism
from hubbub.noise.weighted_sums import NoiseLaw
from hubbub.privacy.sensitivity import Neighbors, Norm, Sensitivity
from hubbub.query.ops import Dropped, ExactCounts, Measure, Tally, Together
from hubbub.query.plan.ratios import Ratios, list_intervals

_INT64 = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """In how many groups a unit counts, how its rows are shared out to these, and who is a neighbour."""

    groups: int
    neighbors: Neighbors
    together: Together | None = None
    cells: int | None = None
    """How many groups there are, where that is public: two units with more groups than these share some of them."""

    @property
    def touched(self) -> int:
        """The most groups in which neighbours differ: a replaced unit leaves its groups, and another enters its own."""
        if self.neighbors is not Neighbors.REPLACE_ONE:
            return self.groups
        return 2 * self.groups if self.cells is None else min(2 * self.groups, self.cells)

    def bound_groups(self, *, alone: Fraction, both: Fraction) -> Fraction:
        """Bound what neighbours differ by over all groups, if they differ by at most ``alone`` in a group of one of two
        units, and by at most ``both`` in a group that both are in.

        Privacy:
            Claim: what is returned, for a unit that comes or goes, or is replaced by another.
            Proof: a unit that comes or goes is alone in at most g groups. Of two that replace each other let k groups
                be those of both, and o those of one: 2·k + o <= 2·g, and k + o <= n where there are n groups. The
                bound k·both + o·alone is linear, so it is greatest at a corner: k = 0 and o = min(2·g, n); k = g and
                o = 0; or, with n < 2·g, k = 2·g − n and o = 2·(n − g), since g <= n.
            Needs: at most ``groups`` groups of a unit, of ``cells`` that do not depend on the data.
            Ref: SOUNDNESS 10, 21.
        """
        if self.neighbors is not Neighbors.REPLACE_ONE:
            return self.groups * alone
        forced = 0 if self.cells is None else max(0, 2 * self.groups - self.cells)
        shared = forced * both + 2 * (self.groups - forced) * alone
        return max(self.touched * alone, self.groups * both, shared)


@dataclass(frozen=True, slots=True)
class NoisySum:
    """A noisy sum in its own units, with its margin."""

    value: Fraction
    margin: Fraction


@dataclass(frozen=True, slots=True)
class NoisyNumber:
    """A noisy number, or a value that was chosen, and where the exact one lies; None where nothing can be said.

    A list of values, or a mapping from bins to noisy numbers, is one too; its interval is a mapping like it.
    """

    value: Any
    low: Any = None
    high: Any = None
    ranks: int | None = field(default=None, kw_only=True)
    """Of what was chosen: how many rows it may be away from what was meant."""


@dataclass(frozen=True, slots=True)
class TallySteps:
    """The noisy steps of a tally in some groups, over one denominator."""

    numerators: Sequence[int]
    denominator: int


def law_of(mechanism: Mechanism) -> NoiseLaw:
    """Return the law of noise that is added."""
    if isinstance(mechanism, Geometric):
        return NoiseLaw(float(mechanism.scale))
    assert isinstance(mechanism, Gaussian)
    return NoiseLaw(float(mechanism.sigma), is_normal=True)


class Statistic(ABC):
    """Something that is measured in all groups together."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, counted: ExactCounts) -> Any:
        """Take what is measured from what was counted."""

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """Bound how far one unit can move what is taken."""

    @abstractmethod
    def calibrate_pure(self, epsilon: Fraction) -> Mechanism:
        """Return the mechanism that costs this ε."""

    @abstractmethod
    def calibrate_zcdp(self, rho: Fraction) -> Mechanism:
        """Return the mechanism that costs this ρ."""

    def calibrate_alone(self, epsilon: Fraction, delta: Fraction) -> Mechanism | None:
        """Return the mechanism for (ε, δ) by itself, where that is better than by its ρ."""
        return None

    @property
    def tells(self) -> tuple[Tally, ...]:
        """The tallies that its noisy numbers tell."""
        return ()

    @property
    def is_dropped(self) -> bool:
        """Return whether it is what limits drop of another statistic."""
        return any(tally.dropped is not None for tally in self.tells)

    def is_stored_at(self, tally: Tally) -> bool:
        """Return whether a stored answer has its numbers in the position of this tally; others are empty there."""
        return tally in self.tells

    def count_numbers(self, cells: int) -> int:
        """Return how many numbers it gives for so many groups."""
        return cells

    # What noisy numbers say about a tally; only of those that it tells.

    def decode(self, numbers: Sequence[int], cell: int, tally: Tally) -> int | Fraction:
        """Return the steps of a tally in one group."""
        return numbers[cell]

    def list_steps(self, numbers: Sequence[int], places: Sequence[int], tally: Tally) -> TallySteps:
        """Return the steps of a tally in some groups."""
        return TallySteps([numbers[place] for place in places], 1)

    def list_laws(self, mechanism: Mechanism, steps: TallySteps, beta: float) -> tuple[NoiseLaw, ...]:
        """Return the laws of the independent noises of a group, as they are where intervals of ``beta`` are made."""
        return (law_of(mechanism),)

    def weigh_noises(self, tally: Tally) -> tuple[Fraction, ...]:
        """Return the weight of each of these noises in the steps of a tally."""
        return (Fraction(1),)

    def bound_error(self, mechanism: Mechanism, tally: Tally, beta: float) -> Fraction:
        """Return how far a tally may be off, in its own units, except with probability ``beta``."""
        return Fraction(mechanism.error(beta=beta)) * tally.grid

    def scale_of(self, tally: Tally) -> float:
        """Return the standard deviation of a tally, in steps, for noise of deviation 1."""
        return 1.0

    def estimate_sum(
        self, mechanism: Mechanism, steps: int | Fraction, tally: Tally, margin: Fraction, beta: float
    ) -> NoisySum:
        """Return a tally in its own units, with its margin."""
        return NoisySum(steps * tally.grid, margin)

    def estimate_number(
        self, mechanism: Mechanism, steps: int | Fraction, tally: Tally, margin: Fraction, beta: float
    ) -> NoisyNumber:
        """Return a tally that is shown as it is, with its interval."""
        only = self.estimate_sum(mechanism, steps, tally, margin, beta)
        ends = only.value, only.value - only.margin, only.value + only.margin
        if all(end.denominator == 1 for end in ends):
            return NoisyNumber(*(int(end) for end in ends))
        return NoisyNumber(*(float(end) for end in ends))

    def estimate_numbers(
        self,
        mechanism: Mechanism,
        numbers: Sequence[int],
        tally: Tally,
        *,
        places: Sequence[int],
        margin: Fraction,
        beta: float,
    ) -> list[NoisyNumber]:
        """Do so for several groups."""
        steps = (self.decode(numbers, place, tally) for place in places)
        return [self.estimate_number(mechanism, each, tally, margin, beta) for each in steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMeasurement(Measurement[ExactCounts]):
    """A statistic with the mechanism that measures it."""

    take: Statistic

    @classmethod
    def of(cls, statistic: Statistic, mechanism: Mechanism) -> "QueryMeasurement":
        """Measure a statistic by a mechanism."""
        return cls(mechanism=mechanism, sensitivity=statistic.sensitivity, take=statistic)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedStatistic(Statistic):
    """A vector of whole numbers to which noise is added."""

    reach: Reach

    @property
    def _noise(self) -> AddedNoise:
        return AddedNoise(sensitivity=self.sensitivity, neighbors=self.reach.neighbors)

    def calibrate_pure(self, epsilon: Fraction) -> Mechanism:
        """Return Laplace noise for this ε."""
        return self._noise.calibrate_pure(epsilon)

    def calibrate_zcdp(self, rho: Fraction) -> Mechanism:
        """Return Gaussian noise for this ρ."""
        return self._noise.calibrate_zcdp(rho)

    def calibrate_alone(self, epsilon: Fraction, delta: Fraction) -> Mechanism | None:
        """Return Gaussian noise for (ε, δ)."""
        return self._noise.calibrate_alone(epsilon, delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class TallyStatistic(AddedStatistic):
    """One tally, group by group."""

    tally: Tally
    column: int
    """Where an engine puts it among the numbers of a group."""

    def __call__(self, counted: ExactCounts) -> Any:
        """Take the numbers of all groups."""
        return vector([row[self.column] for row in counted.tallies])

    @property
    def sensitivity(self) -> Sensitivity:
        """Bound how far one unit moves the vector."""
        return bound_tally(self.tally, self.reach)

    @property
    def tells(self) -> tuple[Tally, ...]:
        """The tally itself."""
        return (self.tally,)

    def estimate_numbers(
        self,
        mechanism: Mechanism,
        numbers: Sequence[int],
        tally: Tally,
        *,
        places: Sequence[int],
        margin: Fraction,
        beta: float,
    ) -> list[NoisyNumber]:
        """Do so for several groups, without a fraction for each."""
        steps = self.list_steps(numbers, places, tally)
        return [NoisyNumber(*each) for each in list_intervals(scale_steps(steps, tally), margin)]


def scale_steps(steps: TallySteps, tally: Tally) -> Ratios:
    """Return noisy steps in the tally's own units."""
    grid = tally.grid.numerator
    return Ratios([each * grid for each in steps.numerators], steps.denominator * tally.grid.denominator)


def vector(cells: Sequence[int]) -> Any:
    """Return exact numbers as mechanisms take them: 64-bit integers where all of them fit, else Python's own."""
    fits = all(-_INT64 < cell < _INT64 for cell in cells)
    return np.array(cells, dtype=np.int64 if fits else object)


def bound_tally(tally: Tally, reach: Reach) -> Sensitivity:
    """Bound how far one unit moves a tally's vector.

    Privacy:
        Claim: of values between a and b, a unit that comes or goes moves a group by at most m = max(|a|, |b|), and one
            that is replaced by at most max(b, 0) − min(a, 0), w for short: over all groups in L1, and with the squares
            of m and w in squared L2, as ``Reach.bound_groups`` adds them up. Where there is one group, a count of m
            rows moves by m, and not by 2·m.
        Proof: a unit adds to a group 0 or a number between a and b, so it moves a group by m at most where it is
            alone. Where another one takes its place, both numbers are between min(a, 0) and max(b, 0), and so no
            further apart than w. A unit without a row, or with rows that are filtered or miss a value, adds 0: so 0 is
            among the numbers, whatever a and b are. COUNT(DISTINCT x) loses at most b values and wins at most b.
        Needs: the claim of Aggregate; Reach.bound_groups.
        Ref: SOUNDNESS 21.
    """
    if tally.dropped is not None:
        return _limit_dropped(tally, tally.dropped, reach)
    most = Fraction(tally.linf)
    if reach.neighbors is not Neighbors.REPLACE_ONE:
        each = Sensitivity(l0=reach.groups, linf=most)
    else:
        width = Fraction(max(tally.bounds[1], 0) - min(tally.bounds[0], 0))
        each = Sensitivity(
            l0=reach.touched,
            l1=reach.bound_groups(alone=most, both=width),
            l2_squared=reach.bound_groups(alone=most**2, both=width**2),
            linf=width,
        )
    if reach.together is None or tally.a_row is None:
        return each
    return _bound_over_groups(each, reach.together, tally.a_row, reach.neighbors)


def count_dropped(tally: Tally, limits: Dropped, reach: Reach) -> int:
    """Return how many rows of one unit limits can drop of a tally, as the claim of Aggregate says."""
    least = [limits.within]
    if tally.measure is not Measure.UNITS:
        least += [limits.rows] if reach.together is None else [limits.rows, reach.together.total]
    if reach.cells is None or reach.cells > reach.groups:
        least.append(reach.groups)
    return limits.within - min(least)


def _limit_dropped(tally: Tally, limits: Dropped, reach: Reach) -> Sensitivity:
    """Bound how far one unit moves a tally of what limits drop.

    Privacy:
        Claim: with x rows that limits can drop, each of which adds from −q to p steps, and r = max(p, q): a unit that
            comes or goes moves the vector by at most x · r in L1 and (x · r)² in squared L2, in at most x groups. One
            that is replaced by another moves it by twice that in L1, and by 2 · r · (p + q) · x² in squared L2. Of
            units, that is with x in place of x².
        Proof: the numbers of rows that are dropped in each group add up to at most x: the claim of Aggregate, where a
            unit that is in a group which it does not keep drops a row or more there. So the vector is one of rows
            counted over groups, x in all, and ``_bound_over_groups`` bounds it. In a group two units are between
            −x · q and x · p. Units add 0 or 1 to a group, so that squares add up as the numbers do.
        Needs: the claim of Aggregate.
        Ref: SOUNDNESS 5, 6.
    """
    rows, (low, high) = count_dropped(tally, limits, reach), tally.a_row or (0, 1)
    apart = 2 if reach.neighbors is Neighbors.REPLACE_ONE else 1
    groups = apart * rows if reach.cells is None else min(apart * rows, reach.cells)
    if tally.measure is Measure.UNITS:
        moved = Fraction(apart * rows)
        return Sensitivity(l0=groups, l1=moved, l2_squared=moved, linf=Fraction(1))
    furthest = max(-low, high) if apart == 1 else high - low
    each = Sensitivity(l0=groups, linf=Fraction(rows * furthest))
    return _bound_over_groups(each, Together(rows=rows, total=rows), (low, high), reach.neighbors)


def _bound_over_groups(
    each: Sensitivity, together: Together, a_row: tuple[int, int], neighbors: Neighbors
) -> Sensitivity:
    """Bound the same where the rows of a unit are counted over all groups, if that is less than group by group.

    Privacy:
        Claim: a unit that comes or goes moves the vector by at most T·r in L1 and S·r² in squared L2, with T the total,
            S the most that the squares of its rows add up to, and r = max(p, q) for rows that add from −q to p steps.
            One that is replaced by another moves it by at most 2·T·r and 2·r·(p + q)·S.
        Proof: the first is the claim of Aggregate. Now let u and v be what the two units add, a and b their rows that
            count. L1 is the triangle inequality. |u − v|² = |u|² + |v|² − 2·u·v ≤ 2·r²·S − 2·u·v. Where u and v have
            different signs in a group, one is at most p and the other at most q times its rows: −u·v ≤ p·q·Σ a·b, and
            Σ a·b ≤ S (Cauchy, Schwarz). So it is at most 2·S·(r² + p·q), and r² + p·q = r·(p + q), since r is one of p
            and q. What was proven group by group holds beside it.
        Needs: the claim of Aggregate; Together.squares.
        Ref: SOUNDNESS 5, 6.
    """
    reach, width = max(-a_row[0], a_row[1]), a_row[1] - a_row[0]
    l1, squares = together.total * reach, together.squares * reach**2
    if neighbors is Neighbors.REPLACE_ONE:
        l1, squares = 2 * l1, 2 * reach * width * together.squares
    known = each.in_norm(Norm.L1), each.in_norm(Norm.L2)
    least = [min(Fraction(new), old) for new, old in zip((l1, squares), known, strict=True) if old is not None]
    return replace(each, l1=least[0], l2_squared=least[1])
