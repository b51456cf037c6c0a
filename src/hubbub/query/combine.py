"""From noisy tallies to the numbers that were asked for, each with the interval that its law gives.

Everything here is post-processing: it sees noisy numbers and public facts, and nothing else.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from hubbub.errors import LedgerCorrupt
from hubbub.mechanisms import Geometric
from hubbub.policy.kinds import Type
from hubbub.query.both_ends import BothEnds, between_error, sum_error
from hubbub.query.choices import Wanted
from hubbub.query.expression import Value
from hubbub.query.moments import Side as _Side
from hubbub.query.moments import Sums, paired
from hubbub.query.plan import Part, Plan
from hubbub.query.question import COUNTS, NESTED, PAIRED, Aggregation, Asked
from hubbub.query.selection import interval, spread
from hubbub.query.tops import shown

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Number:
    """A noisy number, or a value that was chosen, and where the exact one lies; None where nothing can be said.

    A list of values, or a mapping from bins to noisy numbers, is one too; its interval is a mapping like it.
    """

    value: Any
    low: Any = None
    high: Any = None


def combined(
    plan: Plan, noisy: Sequence[Sequence[int]], *, confidence: float = CONFIDENCE, cells: int | None = None
) -> list[list[Number]]:
    """For each cell, one number for each aggregate that was asked; with private keys, of so many cells."""
    many = plan.cells if cells is None else cells
    tallies = _told(plan, noisy[: len(plan.aggregate.tallies)], many)
    off = lru_cache(maxsize=None)(partial(margin, plan))  # the same in every cell
    return [
        [
            _chosen(plan, asked, part, noisy, cell, confidence)
            if part.choice is not None
            else _number(plan, asked.function, part, [steps[cell] for steps in tallies], confidence, off)
            for asked, part in zip(plan.question.asked, plan.parts, strict=True)
        ]
        for cell in range(many)
    ]


def _told(plan: Plan, noisy: Sequence[Sequence[int]], cells: int) -> list[Sequence[int | Fraction]]:
    """Steps of every tally, cell by cell; those that were measured together are worked out."""
    found: list[Sequence[int | Fraction]] = list(noisy)
    ends = plan.both_ends
    if ends is not None:
        if noisy[ends.count]:
            raise LedgerCorrupt("A stored answer cannot be read by this version of Hubbub.")  # measured by itself
        both = [ends.told(noisy[ends.total], cell) for cell in range(cells)]
        found[ends.count], found[ends.total] = [count for count, _ in both], [total for _, total in both]
    return found


def margin(plan: Plan, place: int, beta: float) -> Fraction:
    """How far a tally may be off, in its own units, except with probability ``beta``."""
    passed, ends = plan.passed_by(place), plan.both_ends
    if ends is not None and place in {ends.count, ends.total}:
        error = Fraction(sum_error(_scale(plan, ends), beta), 2)
        return error / ends.half if place == ends.count else error * plan.aggregate.tallies[place].grid
    error = Fraction(plan.mechanisms[place].error(beta=beta) if passed is None else spread(passed, beta))
    return error * plan.aggregate.tallies[place].grid


def _scale(plan: Plan, ends: BothEnds) -> Fraction:
    mechanism = plan.mechanisms[ends.total]
    assert isinstance(mechanism, Geometric)
    return mechanism.scale


def counts_margin(plan: Plan, choice: int, beta: float) -> int:
    """How far each count of a histogram may be off; 0 where nothing was counted but chosen."""
    if plan.choices[choice].wanted is not Wanted.COUNTS:
        return 0
    return math.ceil(plan.mechanisms[len(plan.aggregate.tallies) + choice].error(beta=beta))


def _chosen(  # noqa: PLR0917
    plan: Plan, asked: Asked, part: Part, noisy: Sequence[Sequence[int]], cell: int, confidence: float
) -> Number:
    """A value out of the step that was chosen. Its error is one of ranks, so there is no interval of values."""
    assert part.choice is not None
    choice, place = plan.choices[part.choice], len(plan.aggregate.tallies) + part.choice
    drawn = noisy[place][cell * choice.many : (cell + 1) * choice.many]
    if asked.function in NESTED:
        return Number(*shown(asked, drawn, counts_margin(plan, part.choice, 1 - confidence)))
    step = drawn[part.level]
    if asked.function is Aggregation.MODE:
        return Number(asked.values[step])
    wanted = plan.aggregate.histograms[choice.histogram]
    value = wanted.origin + step * wanted.grid
    whole = wanted.argument.kind.type is Type.INTEGER and asked.function is not Aggregation.QUANTILE_CONT
    return Number(int(value) if whole else float(value))


def _number(  # noqa: PLR0917
    plan: Plan,
    function: Aggregation,
    part: Part,
    steps: Sequence[int | Fraction],
    confidence: float,
    off: Callable[[int, float], Fraction],
) -> Number:
    used = part.places
    beta = (1 - confidence) / len(used)

    def side(place: int | None) -> _Side:
        assert place is not None
        passed = plan.passed_by(place)
        if passed is not None:  # a count of units that is shown because it is large enough
            shown_as = int(steps[place])
            low, high = interval(passed, shown_as, beta)
            return _Side(Fraction(shown_as), Fraction(max(shown_as - low, high - shown_as)))
        return _Side(steps[place] * plan.aggregate.tallies[place].grid, off(place, beta))

    if function in COUNTS or function is Aggregation.SUM:
        passed = plan.passed_by(used[0])
        if passed is not None:
            shown_as = int(steps[used[0]])
            return Number(shown_as, *interval(passed, shown_as, beta))
        only = side(used[0])
        ends = only.value, only.value - only.margin, only.value + only.margin
        if plan.is_within(used[0]):
            return Number(round(ends[0]), math.floor(ends[1]), math.ceil(ends[2]))
        if all(one.denominator == 1 for one in ends):
            return Number(*(int(one) for one in ends))
        return Number(*(float(one) for one in ends))
    if function in PAIRED:
        assert part.second is not None
        first, second = _sums(plan, part, side), _sums(plan, part.second, side)
        return Number(*paired(function, side(part.count), first, second, side(part.products)))
    assert part.total is not None
    assert part.bounds is not None
    origin = plan.aggregate.tallies[part.total].origin
    if function is Aggregation.AVG:
        both = plan.both_ends
        if both is not None and (part.count, part.total) == (both.count, both.total):
            away = between_error(_scale(plan, both), 1 - confidence) * plan.aggregate.tallies[both.total].grid
            return _mean_of_ends(side(both.count).value, side(both.total).value, away, origin, part.bounds)
        return _mean(side(part.count), side(part.total), origin, part.bounds)
    assert part.squares is not None
    shift = plan.aggregate.tallies[part.squares].origin
    variance = _variance(side(part.count), side(part.total), side(part.squares), shift, part.bounds, origin)
    return _spread(function, variance, side(part.count).value)


def _sums(plan: Plan, part: Part, side: Callable[[int | None], _Side]) -> Sums:
    assert part.total is not None
    assert part.bounds is not None
    tallies = plan.aggregate.tallies
    squares = None if part.squares is None else side(part.squares)
    shift = Fraction(0) if part.squares is None else tallies[part.squares].origin
    return Sums(side(part.total), tallies[part.total].origin, part.bounds, squares, shift)


def _mean(count: _Side, total: _Side, origin: Fraction, bounds: tuple[Fraction, Fraction]) -> Number:
    """A ratio: its interval is the box of both margins, and all of the bounds where the count may be below 1."""
    low, high = bounds
    if count.value < 1:
        return Number(None, float(low), float(high))

    def clamped(value: Fraction) -> float:
        return float(max(low, min(high, value)))

    value = clamped(origin + total.value / count.value)
    least, most = count.value - count.margin, count.value + count.margin
    if least < 1:
        return Number(value, float(low), float(high))
    ends = [origin + (total.value + sign * total.margin) / size for sign in (-1, 1) for size in (least, most)]
    return Number(value, clamped(min(ends)), clamped(max(ends)))


def _mean_of_ends(
    count: Fraction, total: Fraction, off: Fraction, origin: Fraction, bounds: tuple[Fraction, Fraction]
) -> Number:
    """The same from distances a and b from both bounds. Of a mean that is the part w of the way down from the upper
    one, w · a = (1 − w) · b: so w · (a + b) − b is noise alone, and within ``off``. That is solved for w."""
    low, high = bounds
    if count <= 0:
        return Number(None, float(low), float(high))
    value, away = origin + total / count, off / count
    found = [float(max(low, min(high, one))) for one in (value, value - away, value + away)]
    return Number(found[0] if count >= 1 else None, *found[1:])


def _variance(  # noqa: PLR0917
    count: _Side,
    total: _Side,
    squares: _Side,
    shift: Fraction,
    bounds: tuple[Fraction, Fraction],
    origin: Fraction,
) -> Number:
    """Mean square less squared mean, about the middle of the bounds; at most a quarter of their squared width."""
    most = ((bounds[1] - bounds[0]) / 2) ** 2
    if count.value < 1:
        return Number(None, 0.0, float(most))
    middle = (bounds[0] + bounds[1]) / 2
    mean = total.value / count.value + origin - middle
    value = float(max(Fraction(0), min(most, shift + squares.value / count.value - mean**2)))
    least, biggest = count.value - count.margin, count.value + count.margin
    if least < 1:
        return Number(value, 0.0, float(most))
    sizes = (least, biggest)
    mean_ends = [origin - middle + (total.value + s * total.margin) / n for s in (-1, 1) for n in sizes]
    square_ends = [shift + (squares.value + s * squares.margin) / n for s in (-1, 1) for n in sizes]
    nearest = 0 if min(mean_ends) <= 0 <= max(mean_ends) else min(one**2 for one in mean_ends)
    low = min(square_ends) - max(one**2 for one in mean_ends)
    high = max(square_ends) - nearest
    return Number(value, float(max(Fraction(0), min(most, low))), float(max(Fraction(0), min(most, high))))


def _spread(function: Aggregation, variance: Number, count: Fraction) -> Number:
    sample = function in {Aggregation.VAR_SAMP, Aggregation.STDDEV_SAMP}
    if sample and count < 2:
        return Number(None, variance.low, variance.high)
    factor = float(count / (count - 1)) if sample else 1.0
    rooted = function in {Aggregation.STDDEV_POP, Aggregation.STDDEV_SAMP}

    def scaled(value: Value) -> float | None:
        if not isinstance(value, int | float):
            return None
        return math.sqrt(value * factor) if rooted else value * factor

    return Number(scaled(variance.value), scaled(variance.low), scaled(variance.high))
