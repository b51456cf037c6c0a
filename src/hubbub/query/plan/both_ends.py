"""A count and a total of the same rows, measured together: how far all values are from either bound.

A mean needs both. Let values lie within ± half of a middle, and let n rows add up to s about it. What is measured are
``half · n + s`` and ``half · n − s``: the distances from the lower bound, and from the upper one. A row adds 2 · half
to the two together, wherever its value is, so that one Laplace mechanism with the whole of ε does for both. The mean of
these has half the variance that it has from a sum and a count with half of ε each, and so has the count.

Privacy:
    Claim: one unit moves the two vectors together by at most 2 · half · rows in L1 in each of its groups, and by the
        square of that in squared L2; if it is replaced, by twice as much in each.
    Proof: in a group a unit adds n rows, at most ``rows``, and a total s of at most half · n in size: it is a sum of so
        many values, or their average ``rows`` times, cut towards zero. Both distances are then at least 0, and add up
        to 2 · half · n; their squares add up to at most the square of that. A replaced unit goes from one point of the
        triangle {a, b >= 0, a + b <= w} to another: at most 2 · w in L1, and 2 · w² in squared L2, in a group that
        both are in; and where one is in a group alone, w and w², in at most twice as many groups.
    Needs: the claim of ops.Aggregate; a total that is cut in proportion at the very rows that the count is clamped to,
        and a count of the rows that have a value.
    Ref: Dwork, McSherry, Nissim, Smith 2006, for the sensitivity of all numbers together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hubbub.errors import MayOverflow
from hubbub.mechanisms import Geometric, Mechanism
from hubbub.noise.weighted_sums import NoiseLaw
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.privacy.shares import calibrate_alike, deviation
from hubbub.query.ops import Aggregate, ExactCounts, Measure, Tally
from hubbub.query.plan.ratios import Ratios, list_intervals, list_whole_intervals
from hubbub.query.plan.statistic import (
    AddedStatistic,
    NoisyNumber,
    QueryMeasurement,
    Statistic,
    TallyStatistic,
    TallySteps,
    law_of,
    scale_steps,
    vector,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BothEnds(AddedStatistic):
    """A count and a total of which the distances from both bounds are measured, ``half`` steps from the middle."""

    count: TallyStatistic
    total: TallyStatistic
    half: int
    rows: int

    @property
    def sensitivity(self) -> Sensitivity:
        """Bound how far one unit moves both vectors together, one after the other."""
        most, reach = Fraction(2 * self.half * self.rows), self.reach
        return Sensitivity(
            l0=2 * reach.touched,
            l1=reach.bound_groups(alone=most, both=2 * most),
            l2_squared=reach.bound_groups(alone=most**2, both=2 * most**2),
            linf=most,
        )

    def __call__(self, counted: ExactCounts) -> Any:
        """Take all distances from below, cell by cell, then all from above."""
        both = [(self.half * row[self.count.column], row[self.total.column]) for row in counted.tallies]
        return vector([rows + total for rows, total in both] + [rows - total for rows, total in both])

    @property
    def tells(self) -> tuple[Tally, ...]:
        """The count and the total."""
        return self.count.tally, self.total.tally

    def is_stored_at(self, tally: Tally) -> bool:
        """Return whether it is the total: in the position of the count a stored answer has nothing."""
        return tally == self.total.tally

    def count_numbers(self, cells: int) -> int:
        """Return two for each group."""
        return 2 * cells

    def decode(self, numbers: Sequence[int], cell: int, tally: Tally) -> Fraction:
        """Return the count or the total of a group that noisy distances tell."""
        below, above = self.read_ends(numbers, cell)
        return Fraction(below + above, 2 * self.half) if tally == self.count.tally else Fraction(below - above, 2)

    def scale_of(self, tally: Tally) -> float:
        """Return half of the root of 2 noises, over ``half`` for the count."""
        return math.sqrt(0.5) / (self.half if tally == self.count.tally else 1)

    @staticmethod
    def read_ends(numbers: Sequence[int], cell: int) -> tuple[int, int]:
        """Return both distances of a group."""
        return numbers[cell], numbers[len(numbers) // 2 + cell]

    def bound_error(self, mechanism: Mechanism, tally: Tally, beta: float) -> Fraction:
        """Return how far the count, or the total, may be off."""
        error = Fraction(sum_error(_scale(mechanism), beta), 2)
        return error / self.half if tally == self.count.tally else error * tally.grid

    def list_steps(self, numbers: Sequence[int], places: Sequence[int], tally: Tally) -> TallySteps:
        """Return the counts or the totals that noisy distances tell."""
        ends = [self.read_ends(numbers, place) for place in places]
        if tally == self.count.tally:
            return TallySteps([below + above for below, above in ends], 2 * self.half)
        return TallySteps([below - above for below, above in ends], 2)

    def list_laws(self, mechanism: Mechanism, steps: TallySteps, beta: float) -> tuple[NoiseLaw, ...]:
        """Return the law of the noise of either distance."""
        return law_of(mechanism), law_of(mechanism)

    def weigh_noises(self, tally: Tally) -> tuple[Fraction, ...]:
        """Return the weights of both distances."""
        if tally == self.count.tally:
            return Fraction(1, 2 * self.half), Fraction(1, 2 * self.half)
        return Fraction(1, 2), Fraction(-1, 2)

    def estimate_number(
        self, mechanism: Mechanism, steps: int | Fraction, tally: Tally, margin: Fraction, beta: float
    ) -> NoisyNumber:
        """Return the count as a whole number."""
        if tally != self.count.tally:
            return super(BothEnds, self).estimate_number(mechanism, steps, tally, margin, beta)
        value = Fraction(steps)
        (whole,) = list_whole_intervals(Ratios([value.numerator], value.denominator), margin)
        return NoisyNumber(*whole)

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
        found = scale_steps(self.list_steps(numbers, places, tally), tally)
        listed = list_whole_intervals if tally == self.count.tally else list_intervals
        return [NoisyNumber(*each) for each in listed(found, margin)]


def _scale(mechanism: Mechanism) -> Fraction:
    assert isinstance(mechanism, Geometric)
    return mechanism.scale


def measure_both_ends(
    pairs: Sequence[tuple[Tally, Tally]],
    aggregate: Aggregate,
    apart: Sequence[QueryMeasurement],
    *,
    epsilon: Fraction,
) -> tuple[QueryMeasurement, ...]:
    """Measure the count and the total of the first mean with one share of ε for the two, where that errs less over
    everything that is measured than ``apart`` does.

    For pure noise that its ε pays for: one mechanism at ε costs twice the ρ of two at ε/2, so that nothing is gained
    where ρ pays.
    """
    pair = next(((_statistic(apart, count), _statistic(apart, total)) for count, total in pairs), None)
    both = None if pair is None else _join(aggregate, *pair)
    if both is None:
        return tuple(apart)
    within = (both.count, both.total)
    others = [one for one in apart if one.take not in within]
    joined: list[Statistic] = [both, *(one.take for one in others)]
    try:
        mechanism, *rest = calibrate_alike(joined, epsilon=epsilon)
    except MayOverflow:
        return tuple(apart)
    errors = [*(deviation(mechanism) * both.scale_of(tally) for tally in both.tells), *map(deviation, rest)]
    known = [next(one for one in apart if one.take == statistic) for statistic in within]
    if math.prod(errors) >= math.prod(deviation(one.mechanism) for one in (*known, *others)):
        return tuple(apart)
    measured = dict(zip((id(one) for one in others), rest, strict=True))
    return tuple(
        QueryMeasurement.of(both, mechanism)
        if one.take == both.total
        else QueryMeasurement.of(one.take, measured[id(one)])
        for one in apart
        if one.take != both.count
    )


def _statistic(measurements: Sequence[QueryMeasurement], tally: Tally) -> TallyStatistic:
    found = next(one.take for one in measurements if tally in one.take.tells)
    assert isinstance(found, TallyStatistic)
    return found


def _join(aggregate: Aggregate, count: TallyStatistic, total: TallyStatistic) -> BothEnds | None:
    """Return how a count and a total can be measured together, if they can."""
    summed = total.tally
    rows = summed.most_rows
    if rows is None or aggregate.together is not None or not _counts(count.tally, rows):
        return None
    half = summed.linf // rows
    if not half or half * rows != summed.linf:
        return None
    reach = replace(total.reach, groups=aggregate.most_groups, together=None)
    return BothEnds(reach=reach, count=count, total=total, half=half, rows=rows)


def _counts(tally: Tally, rows: int) -> bool:
    """Return whether it is a count of rows up to so many, or of units for one."""
    if tally.measure is Measure.UNITS:
        return rows == 1
    return tally.measure is Measure.ROWS and tally.bounds == (0, rows)


def sum_error(scale: Fraction, beta: float) -> int:
    """Return what the sum of two whole Laplace variables of a scale exceeds in size with probability at most ``beta``.

    With q = exp(−1/scale) a sum of k has mass c · q^|k| · (|k| + m), c = ((1 − q) / (1 + q))², m = (1 + q²) / (1 − q²):
    the mass beyond t is what two geometric series add up to.
    """
    gap, q = -math.expm1(-1 / scale), math.exp(-1 / scale)
    c, m = (gap / (1 + q)) ** 2, (1 + q * q) / (gap * (1 + q))

    def beyond(t: int) -> float:
        return 2 * c * math.exp(-(t + 1) / scale) * ((t + 1 + m) / gap + q / gap**2)

    low, high = -1, max(1, math.ceil(scale))
    while beyond(high) > beta:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if beyond(middle) > beta else (low, middle)
    return high
