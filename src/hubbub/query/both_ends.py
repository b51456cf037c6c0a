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
from dataclasses import dataclass
from fractions import Fraction

from hubbub.errors import MayOverflow
from hubbub.mechanisms import Mechanism
from hubbub.policy.tables import Policy
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.ops import Aggregate, Measure, Tally
from hubbub.query.shares import Measured, calibrated, deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class BothEnds:
    """Places of the count and of the total among the tallies, and how far a value is from the middle, in steps."""

    count: int
    total: int
    half: int
    rows: int

    def sensitivity(self, groups: int, neighbors: Neighbors) -> Sensitivity:
        """Of both vectors together, one after the other."""
        most = Fraction(2 * self.half * self.rows)
        many = 2 if neighbors is Neighbors.REPLACE_ONE else 1
        return Sensitivity(l0=2 * many * groups, l1=many * groups * most, l2_squared=many * groups * most**2, linf=most)

    def exact(self, rows: Sequence[Sequence[int]]) -> list[int]:
        """From exact tallies, cell by cell: all distances from below, then all from above."""
        both = [(self.half * row[self.count], row[self.total]) for row in rows]
        return [many + total for many, total in both] + [many - total for many, total in both]

    def told(self, noisy: Sequence[int], cell: int) -> tuple[Fraction, Fraction]:
        """The count and the total of a cell that noisy distances tell."""
        below, above = self.ends(noisy, cell)
        return Fraction(below + above, 2 * self.half), Fraction(below - above, 2)

    @staticmethod
    def ends(noisy: Sequence[int], cell: int) -> tuple[int, int]:
        """Both distances of a cell."""
        return noisy[cell], noisy[len(noisy) // 2 + cell]


def measured_together(
    means: Sequence[tuple[int, int]],
    aggregate: Aggregate,
    measured: Sequence[Measured],
    policy: Policy,
    *,
    epsilon: Fraction,
    apart: Sequence[Mechanism],
) -> tuple[BothEnds, tuple[Mechanism, ...]] | None:
    """The count and the total of the first mean with one share of ε for the two, and all mechanisms: where that errs
    less over everything that is measured than ``apart`` does.

    For accounts of pure ε alone: one mechanism at ε costs twice the ρ of two at ε/2, so that nothing is gained in zCDP.
    """
    found = next((_both_ends(aggregate, count=count, total=total) for count, total in means), None)
    if found is None or policy.budget.delta != 0:
        return None
    others = [place for place in range(len(measured)) if place not in {found.count, found.total}]
    joint = found.sensitivity(aggregate.most_groups, policy.budget.neighbors)
    try:
        both, *rest = calibrated([joint, *(measured[place] for place in others)], policy, epsilon, Fraction(0))
    except MayOverflow:
        return None
    off = deviation(both) / math.sqrt(2)
    errors = [off / found.half, off, *map(deviation, rest)]
    before = [deviation(apart[place]) for place in (found.count, found.total, *others)]
    if math.prod(errors) >= math.prod(before):
        return None
    by_place = dict(zip(others, rest, strict=True))
    return found, tuple(by_place.get(place, both) for place in range(len(measured)))


def _both_ends(aggregate: Aggregate, *, count: int, total: int) -> BothEnds | None:
    """How a count and a total can be measured together, if they can."""
    many, summed = aggregate.tallies[count], aggregate.tallies[total]
    rows = summed.most_rows
    if rows is None or aggregate.together is not None or not _counts(many, rows):
        return None
    half = summed.linf // rows
    return BothEnds(count=count, total=total, half=half, rows=rows) if half and half * rows == summed.linf else None


def _counts(tally: Tally, rows: int) -> bool:
    """Whether it is a count of rows up to so many, or of units for one."""
    if tally.measure is Measure.UNITS:
        return rows == 1
    return tally.measure is Measure.ROWS and tally.bounds == (0, rows)


def sum_error(scale: Fraction, beta: float) -> int:
    """What the sum of two whole Laplace variables of a scale exceeds in size with probability at most ``beta``.

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


def between_error(scale: Fraction, beta: float) -> int:
    """What w·X − (1 − w)·Y exceeds in size with probability at most ``beta``, for two whole Laplace variables of a
    scale and every w from 0 to 1.

    Each is less than 1 from a real Laplace variable (floors of exponential ones are geometric). Of symmetric
    log-concave variables an average is more peaked than one alone, however it is weighed (Proschan 1965), so that the
    mass beyond t is at most exp(−t / scale).
    """
    return math.ceil(-math.log(beta) * float(scale) * (1 + 2.0**-40)) + 1
