"""A quantile: the exponential mechanism over the whole of a public range.

A candidate o is scored by how far the wanted rank is from the ranks that o may claim, [#{x < o}, #{x <= o}]. Between
two data points the score is constant, so a range of any size is sampled exactly in O(n log n): values and gaps are the
pieces, their widths in grid steps the counts of ``noise.choice``. Values that are counted already (``StepCounts``,
whole steps of the range) take time for each different value, however many there are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import off_grid
from hubbub.mechanisms.selection.pieces import Far, Pieces, StepCounts, bin_steps
from hubbub.noise.exact import log2_floor
from hubbub.parameters import Real, interval, positive, probability, whole
from hubbub.privacy.events.event import BoundedRangeEvent
from hubbub.privacy.sensitivity import Neighbors, Norm

DENOMINATOR = 1 << 20
"""Targets are fractions with at most this denominator: 0.1 means 1/10, not the float's binary value."""
GRID_STEPS = 1 << 20
"""Steps over the bounds when no grid is declared, at least."""
_FAINT = 24 * math.log(2)
"""Pieces that are looked at only when they might be drawn: together, 2^-24 of all at most."""
_LEAST_RATE = Fraction(1, 1 << 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRange:
    """A public range, divided into whole steps, and the most values that one unit holds."""

    epsilon: Fraction
    bounds: tuple[Fraction, Fraction]
    grid: Fraction | None = None
    rows: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        settle(self, epsilon=positive("epsilon", self.epsilon))
        low, high = interval("bounds", self.bounds)
        if self.grid is None:
            grid = Fraction(2) ** (log2_floor(high - low) - GRID_STEPS.bit_length() + 1)
        else:
            grid = positive("grid", self.grid)
        if not 1 <= (high - low) / grid < 1 << 61:
            raise ParameterError("grid", "a step between 2^-61 of the bounds and the bounds", self.grid)
        if max(-low, high) >= 1 << 1023 or grid < Fraction(1, 1 << 1000):
            raise ParameterError("bounds", "below 2^1023, in steps that floats can tell apart", self.bounds)
        settle(self, bounds=(low, high))
        settle(self, grid=grid)
        whole("rows", self.rows, least=1)

    @property
    def step(self) -> Fraction:
        """The grid's step, declared or chosen."""
        assert self.grid is not None
        return self.grid

    @property
    def needs(self) -> Needs:
        return Needs(norm=Norm.ROWS, sensitivity=Fraction(self.rows), neighbors=self.neighbors, integers=False)

    def steps(self, values: Sequence[Any] | Array) -> Array:
        """Values as sorted whole steps above the lower bound, clamped; NaN counts as the lower bound."""
        return np.sort(self.place_values(values))

    def place_values(self, values: Sequence[Any] | Array) -> Array:
        """The same in the order in which they came."""
        low, high = self.bounds
        array = np.asarray(values, dtype=np.float64).ravel()
        clamped = np.clip(np.nan_to_num(array, nan=float(low)), float(low), float(high))
        scaled = np.floor((clamped - float(low)) / float(self.step) + 0.5)
        return np.clip(scaled, 0, self.top).astype(np.int64)

    def count_values(self, values: "Values") -> StepCounts:
        """Values as whole steps above the lower bound, clamped, each step with how often it is there."""
        return values.within(self.top) if isinstance(values, StepCounts) else bin_steps(self.steps(values))

    def value_of(self, step: int | Array) -> Any:
        """Whole steps back to values."""
        if not isinstance(step, int) and max(-self.bounds[0], self.bounds[1]) >= 1 << 62:
            step = step.astype(object)
        return off_grid(step, self.step) + (
            int(self.bounds[0]) if self.bounds[0].denominator == 1 else float(self.bounds[0])
        )

    def step_of(self, value: Real) -> int:
        """The step that a value of the grid is."""
        return round((Fraction(value) - self.bounds[0]) / self.step)

    @property
    def top(self) -> int:
        """The last step of the range: ⌊(high − low) / step⌋, in whole numbers, since every draw asks."""
        (low, high), step = self.bounds, self.step
        width = high.numerator * low.denominator - low.numerator * high.denominator
        return width * step.denominator // (high.denominator * low.denominator * step.numerator)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(OnRange):
    """One quantile of a multiset of numbers, where each unit holds at most ``rows`` of them.

    ``error(beta)`` is a bound on the *rank* error (how many values lie between the answer and the true quantile), which
    is all that can be promised without looking at the data.

    Privacy:
        Claim: bounded range epsilon: Pure(epsilon) and ε²/8-zCDP.
        Proof: the score -max(#{x<o} - qn, qn - #{x<=o}, 0) is the larger of two terms that one added value moves by 1-q
            or -q, so by at most max(q, 1-q); a unit adds ``rows`` of them. Replacing a value keeps n and moves each
            term by at most 1. Then it is the exponential mechanism. Clamping and rounding act on each value alone.
        Needs: noise.choice and noise.uniform_below draw exactly; bounds and grid are public.
        Ref: Smith 2011; Cormode, lecture notes (median over intervals).
    """

    q: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        OnRange.__post_init__(self)
        settle(self, q=probability("q", self.q).limit_denominator(DENOMINATOR))

    @property
    def rate(self) -> Fraction:
        """The exponent for one step of rank."""
        worst = max(self.q, 1 - self.q) if self.neighbors is Neighbors.ADD_REMOVE else Fraction(1)
        return self.epsilon / (2 * worst * self.rows)

    @property
    def event(self) -> BoundedRangeEvent:
        return BoundedRangeEvent(range=self.epsilon, neighbors=self.neighbors)

    def draw(self, value: "Values") -> Any:
        rate = self._rate_of_levels
        return self.value_of(near_pieces(self.count_values(value), self.q, (0, self.top), rate).choose(rate))

    def repeat(self, value: "Values", *, times: int) -> Array:
        return np.asarray(self.value_of(self._pieces(value).choose_many(self._rate_of_levels, times)))

    def log_mass(self, value: "Values", output: Real) -> float:
        return self._pieces(value).log_mass(self._rate_of_levels, self.step_of(output))

    def _pieces(self, value: "Values") -> Pieces:
        return quantile_pieces(self.count_values(value), self.q, 0, self.top)

    @property
    def _rate_of_levels(self) -> Fraction:
        return self.rate / self.q.denominator

    def error(self, *, beta: float) -> float:
        return math.log((self.top + 1) / float(probability("beta", beta))) / float(self.rate)


Values = Sequence[Any] | Array | StepCounts
"""What a quantile is asked of: numbers, or whole steps of the range that were counted already."""


def quantile_pieces(held: StepCounts, q: Fraction, low: int, high: int) -> Pieces:
    """Return the pieces of low … high on which the score of the q-quantile is constant; levels are rank errors times
    q's denominator.
    """
    return pieces_about(held, q.numerator * len(held), q.denominator, (low, high))


def pieces_about(held: StepCounts, wanted: int, denominator: int, ends: tuple[int, int]) -> Pieces:
    """Return the pieces on which the distance to the rank wanted / denominator is constant; levels are distances times
    the denominator.
    """
    return _Ranked(held.steps, np.cumsum(held.counts), wanted, denominator, ends).pieces(0, len(held.steps))


def near_pieces(held: StepCounts, q: Fraction, ends: tuple[int, int], rate: Fraction) -> Pieces:
    """The pieces of ``quantile_pieces`` about the wanted rank; those that weigh less than 2^-24 of all are far.

    Where there is any value, one lies on the wanted rank and weighs 1; so many steps as are at most ``about`` levels
    down weigh exp(-rate · about) each at least. Of the whole range, what is ``cut`` levels down or more weighs at most
    its steps times exp(-rate · cut).
    """
    at_most = np.cumsum(held.counts)
    many = int(at_most[-1]) if len(at_most) else 0
    ranked = _Ranked(held.steps, at_most, q.numerator * many, q.denominator, ends)
    steps, every = ends[1] - ends[0] + 1, many * q.denominator + 1
    cut = every
    if rate >= _LEAST_RATE:
        about = math.ceil(1 / rate)
        weigh = max(0.0, math.log(max(1, ranked.steps_within(about))) - float(rate) * about)
        cut = min(every, math.ceil((math.log(steps) - weigh + _FAINT) / float(rate)) + 1)
    first, last = ranked.within(cut)
    if last - first == len(at_most):
        return ranked.pieces(0, len(at_most))
    return replace(
        ranked.pieces(first, last), far=Far(level=cut, steps=steps, made=partial(ranked.beyond, first, last))
    )


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Values with their ranks, and how far these are from the one that is wanted."""

    values: Array
    at_most: Array
    wanted: int
    denominator: int
    ends: tuple[int, int]

    def within(self, cut: int) -> tuple[int, int]:
        """Values from first to last (without that one) may be less than ``cut`` levels down; no others are."""
        first = np.searchsorted(self.at_most, -((cut - self.wanted) // self.denominator), side="left")
        last = np.searchsorted(self.at_most, (self.wanted + cut) // self.denominator, side="right") + 1
        return int(first), min(int(last), len(self.at_most))

    def steps_within(self, about: int) -> int:
        """So many steps at least are no more than ``about`` levels down: those between two values whose ranks are so
        near, and between the last of them and the next.
        """
        first = int(self.at_most.searchsorted(-((about - self.wanted) // self.denominator), side="left"))
        after = int(self.at_most.searchsorted((self.wanted + about) // self.denominator, side="right"))
        last = min(after, len(self.at_most) - 1)
        return int(self.values[last]) - int(self.values[first]) - 1 if first < last else 0

    def pieces(self, first: int, last: int) -> Pieces:
        """The values from first to last, the gaps between them, and those at either end."""
        (low, high), values, counted = self.ends, self.values[first:last], self.at_most[first:last]
        under = np.concatenate([self.at_most[first - 1 : first] if first else [0], counted]) * self.denominator
        on_value = np.maximum(np.maximum(under[:-1] - self.wanted, self.wanted - under[1:]), 0)
        gap_starts = np.concatenate([self.values[first - 1 : first] + 1 if first else [low], values + 1])
        gap_ends = np.concatenate([values, self.values[last : last + 1] if last < len(self.values) else [high + 1]])
        return Pieces(
            starts=np.concatenate([values, gap_starts]),
            widths=np.concatenate([np.ones(len(values), dtype=np.int64), gap_ends - gap_starts]),
            levels=np.concatenate([on_value, np.abs(under - self.wanted)]),
        )

    def beyond(self, first: int, last: int) -> Pieces:
        """All other pieces: the gaps on either side of ``first`` and ``last`` are not among them."""
        below, above = self.pieces(0, first), self.pieces(last, len(self.values))
        below.widths[-1], above.widths[len(self.values) - last] = 0, 0
        return Pieces(
            starts=np.concatenate([below.starts, above.starts]),
            widths=np.concatenate([below.widths, above.widths]),
            levels=np.concatenate([below.levels, above.levels]),
        )
