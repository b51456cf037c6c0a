"""From noisy tallies to the numbers that were asked for, each with the interval that its law gives.

Everything here is post-processing: it sees noisy numbers and public facts, and nothing else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hubbub.query.plan import Part, Plan
from hubbub.query.question import COUNTS, Aggregation

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Number:
    """A noisy number and where the exact one lies; None where nothing can be said."""

    value: int | float | None
    low: int | float | None = None
    high: int | float | None = None


@dataclass(frozen=True, slots=True)
class _Side:
    """A noisy sum in its own units, with its margin."""

    value: Fraction
    margin: Fraction


def combined(plan: Plan, noisy: Sequence[Sequence[int]], *, confidence: float = CONFIDENCE) -> list[list[Number]]:
    """For each cell, one number for each aggregate that was asked."""
    return [
        [
            _number(plan, asked.function, part, [steps[cell] for steps in noisy], confidence)
            for asked, part in zip(plan.question.asked, plan.parts, strict=True)
        ]
        for cell in range(plan.cells)
    ]


def margin(plan: Plan, place: int, beta: float) -> Fraction:
    """How far a tally may be off, in its own units, except with probability ``beta``."""
    return Fraction(plan.mechanisms[place].error(beta=beta)) * plan.aggregate.tallies[place].grid


def _number(plan: Plan, function: Aggregation, part: Part, steps: Sequence[int], confidence: float) -> Number:
    used = [place for place in (part.count, part.total, part.squares) if place is not None]
    beta = (1 - confidence) / len(used)

    def side(place: int | None) -> _Side:
        assert place is not None
        return _Side(steps[place] * plan.aggregate.tallies[place].grid, margin(plan, place, beta))

    if function in COUNTS or function is Aggregation.SUM:
        only = side(used[0])
        ends = only.value, only.value - only.margin, only.value + only.margin
        if all(one.denominator == 1 for one in ends):
            return Number(*(int(one) for one in ends))
        return Number(*(float(one) for one in ends))
    assert part.total is not None
    assert part.bounds is not None
    origin = plan.aggregate.tallies[part.total].origin
    if function is Aggregation.AVG:
        return _mean(side(part.count), side(part.total), origin, part.bounds)
    assert part.squares is not None
    shift = plan.aggregate.tallies[part.squares].origin
    variance = _variance(side(part.count), side(part.total), side(part.squares), shift, part.bounds, origin)
    return _spread(function, variance, side(part.count).value)


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

    def scaled(value: int | float | None) -> float | None:
        if value is None:
            return None
        return math.sqrt(value * factor) if rooted else value * factor

    return Number(scaled(variance.value), scaled(variance.low), scaled(variance.high))
