"""Intervals that cover what limits drop, made of intervals that cover the noise.

Let b be what limits let count and c what they drop, so that the number that was asked for is b + c. The noise of b and
that of c are independent of the data, and each has a margin that its law gives.

Privacy:
    Claim: nothing is spent here.
    Proof: it is post-processing of noisy numbers, and of margins that follow from the plan.

Coverage: with probability 1 − β at least, b is in its interval and c is in its own, where β is divided among the ends
that are used (union bound). Then b + c is between the sums of the ends. A count, and a sum of values of one sign, can
only lose what is dropped, so c is clamped to that side of 0, and most of β goes to the far end of c: where nothing is
dropped, the near end is 0 anyway. A mean is (n · m + s) / (n + d), of n rows with mean m that count and d rows with sum
s that are dropped; it is monotone in each, but for s that lies within d times the bounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hubbub.query.aggregates.function import Margins, NoisyCell
from hubbub.query.ops import Tally
from hubbub.query.plan.collect import Ingredients
from hubbub.query.plan.statistic import NoisyNumber

NEAR = Fraction(1, 50)
"""Of what an interval may miss, for the end of c next to 0: the end is above 0 by chance once in 1,000 at 95%. There
the noisy c is added to the number that is shown, which costs more than it brings where nothing is dropped."""
_PARTS = tuple(Fraction(part, 20) for part in (1, 2, 4, 7, 10, 13, 16, 18, 19))
_OF_MEAN = Fraction(7, 10)
"""Of what the interval of a mean may miss, for the mean itself; a tenth is for each of three numbers beside it."""


@dataclass(frozen=True, slots=True)
class DroppedSum:
    """What limits drop of a sum, noisy, in its own units, and where the exact number lies."""

    value: Fraction
    low: Fraction
    high: Fraction

    @property
    def is_plain(self) -> bool:
        """Return whether something is dropped, beyond what noise explains."""
        return self.low > 0 or self.high < 0


def divide_beta(part: Ingredients, margins: Margins, beta: float) -> float:
    """Return how much of ``beta`` the noise of a sum gets: that with which its interval is the least."""
    kept, dropped = part.tallies[0], part.dropped[0]

    def width(share: Fraction) -> Fraction:
        own = float(share) * beta
        return 2 * margins.bound(kept, own) + margins.bound(dropped, 2 * (1 - float(NEAR)) * (beta - own))

    return float(min(_PARTS, key=width)) * beta


def read_dropped(cell: NoisyCell, tally: Tally, beta: float) -> DroppedSum:
    """Return what limits drop of a sum, and where it lies except with probability ``beta``."""
    margins = cell.margins
    own = margins.find(tally)
    value = Fraction(own.take.decode(cell.numbers(own), cell.cell, tally)) * tally.grid
    low_row, high_row = tally.a_row or (0, 1)
    if low_row < 0 < high_row:
        around = margins.bound(tally, beta)
        return DroppedSum(value, value - around, value + around)
    near, far = (_bound_one_side(margins, tally, float(part) * beta) for part in (NEAR, 1 - NEAR))
    if low_row < 0:
        return DroppedSum(value, min(Fraction(0), value - far), min(Fraction(0), value + near))
    return DroppedSum(value, max(Fraction(0), value - near), max(Fraction(0), value + far))


def _bound_one_side(margins: Margins, tally: Tally, beta: float) -> Fraction:
    """Return what noise exceeds in one direction with probability ``beta`` at most: half as often as in both."""
    return margins.bound(tally, 2 * beta) if 2 * beta < 1 else Fraction(0)


def widen_sum(number: NoisyNumber, part: Ingredients, cell: NoisyCell, beta: float) -> NoisyNumber:
    """Return a sum with an interval that covers what limits drop; the sum with that, where it is plain."""
    dropped = read_dropped(cell, part.dropped[0], beta)
    shift = dropped.value if dropped.is_plain else Fraction(0)
    ends = ((number.value, shift), (number.low, dropped.low), (number.high, dropped.high))
    return NoisyNumber(*(_add(end, moved) for end, moved in ends))


def _add(number: int | float, moved: Fraction) -> int | float:
    if isinstance(number, int) and moved.denominator == 1:
        return number + int(moved)
    return float(Fraction(number) + moved)


def share_of_mean(beta: float) -> float:
    """Return how much of ``beta`` a mean gets by itself."""
    return float(_OF_MEAN) * beta


def widen_mean(number: NoisyNumber, part: Ingredients, cell: NoisyCell, beta: float) -> NoisyNumber:
    """Return a mean with an interval that covers what limits drop; where it is plain that the mean is another, that."""
    assert part.bounds is not None
    count, total = part.tallies
    origin, bounds = total.origin, part.bounds
    rows = cell.sum(count, beta / 3)
    lost, added = (read_dropped(cell, tally, beta / 3) for tally in part.dropped)
    fewest, most = rows.value - rows.margin, rows.value + rows.margin
    if number.value is None or fewest < 1:
        return NoisyNumber(number.value, float(bounds[0]), float(bounds[1]))
    ends = [end - origin for end in bounds]
    held = [_clamp(Fraction(end) - origin, ends) for end in (number.value, number.low, number.high)]
    high = _furthest(held[2], (fewest, most), lost, added.high, ends[1])
    low = -_furthest(-held[1], (fewest, most), lost, -added.low, -ends[0])
    value = held[0]
    if lost.is_plain and _is_moved(value, lost, added):
        value = (rows.value * value + added.value) / (rows.value + lost.value)
    shown = _clamp(value, (low, high))
    return NoisyNumber(*(float(origin + _clamp(end, ends)) for end in (shown, low, high)))


def _clamp(value: Fraction, ends: Sequence[Fraction]) -> Fraction:
    return max(ends[0], min(ends[1], value))


def _is_moved(mean: Fraction, lost: DroppedSum, added: DroppedSum) -> bool:
    """Return whether what is dropped has another mean, beyond what noise explains."""
    away = added.value - mean * lost.value
    return abs(away) > (added.high - added.low) / 2 + abs(mean) * (lost.high - lost.low) / 2


def _furthest(mean: Fraction, rows: Sequence[Fraction], lost: DroppedSum, added: Fraction, bound: Fraction) -> Fraction:
    """Return the greatest mean of rows that count and rows that are dropped, of which each is at most ``bound``.

    The sum of the dropped ones is at most ``added`` and at most ``bound`` each: with more of them the mean rises until
    these are equal, and falls then. In the number of rows that count it is monotone.
    """
    many = {lost.low, lost.high}
    if bound and lost.low < added / bound < lost.high:
        many.add(added / bound)
    return max((own * mean + min(added, bound * each)) / (own + each) for own in rows for each in many)
