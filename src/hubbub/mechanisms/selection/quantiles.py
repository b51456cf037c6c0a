"""Many quantiles from one budget."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, settle
from hubbub.mechanisms.selection.pieces import Pieces, StepCounts, runs
from hubbub.mechanisms.selection.quantile import DENOMINATOR, OnRange, Values, near_pieces, quantile_pieces
from hubbub.parameters import Real, probability, whole
from hubbub.privacy.events.event import BoundedRangeEvent, Event, RepeatedEvent
from hubbub.privacy.sensitivity import Neighbors

WORTH = 15
"""A level is asked if its parts hold this many times the values that one question errs by.

Of 10, 15, 20, 25, 30, 40 and 60 it has the least mean regret on uniform, lognormal, bimodal, exponential and Cauchy
values: 300 to 10,000 of them, ε from 0.3 to 3, 9 to 99 quantiles. It affects accuracy only, never the guarantee.
"""


@dataclass(frozen=True, slots=True)
class _Part:
    """The targets first … last-1, the values they are asked of, the share of all values these are, the range."""

    held: StepCounts
    first: int
    last: int
    share: tuple[Fraction, Fraction]
    ends: tuple[int, int]
    depth: int

    @property
    def middle(self) -> int:
        return (self.first + self.last) // 2


@lru_cache(maxsize=4096)  # every group of a grouping asks the same
def _rate(epsilon: Fraction, q: Fraction, times: int) -> Fraction:
    return epsilon / (times * max(q, 1 - q))


@lru_cache(maxsize=4096)
def _within(target: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """A target among all values as one among those of a share."""
    return ((target - low) / (high - low)).limit_denominator(DENOMINATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(OnRange):
    """Many quantiles from one budget: the middle one first, then each half by itself, on the values that lie there.

    A value takes part in one question a level, so m quantiles cost log₂(m+1) questions and not m. Where the parts would
    hold fewer values than the noise can tell apart, asking on only adds noise: with ``about`` (roughly how many values
    there are) the questions stop there, and the quantiles in between are read off a straight line. Answers come in
    order. ``error(beta)`` bounds the rank error of every quantile that is asked for.

    Privacy:
        Claim: ``levels`` releases of bounded range ε/levels each: Pure(epsilon), and ε²/8·levels in zCDP.
        Proof: the parts of one level are disjoint ranges fixed by earlier answers, so an added value moves the scores
            of one part only, by at most max(q, 1-q) of that part's own target. Several rows of a unit spread over parts
            add up to at most ``rows``. A replaced value is one removed and one added: twice that. Random digits that
            tell ties apart are drawn for each value alone. Lines between answers are post-processing.
        Needs: Quantile's choice, on each part; levels compose adaptively.
        Ref: Kaplan, Schnapp, Stemmer 2022 (approximate quantiles).
    """

    targets: tuple[Fraction, ...] = ()
    tie_bits: int = 20
    """Random digits below the grid that tell equal values apart, so that a crowd on one value can be divided."""

    about: int | None = None
    """A public figure, or an earlier noisy count: never the exact number of values. None asks for every quantile."""

    def __post_init__(self) -> None:
        OnRange.__post_init__(self)
        exact = tuple(probability("targets", q).limit_denominator(DENOMINATOR) for q in self.targets)
        if not exact or any(a >= b for a, b in pairwise(exact)):
            raise ParameterError("targets", "at least one quantile, each above the one before", self.targets)
        settle(self, targets=exact)
        whole("tie_bits", self.tie_bits, most=61 - self.top.bit_length())
        if self.about is not None:
            whole("about", self.about, least=1)

    @property
    def levels(self) -> int:
        """The number of questions each value takes part in: all that are needed, or as many as are worth their noise.

        The last of L levels has parts of about/2^(L-1) values, and each question errs by some L·rows/ε of them.
        """
        levels = len(self.targets).bit_length()
        if self.about is not None:
            while levels > 1 and self.about * self.epsilon < WORTH * levels * self.rows << levels - 1:
                levels -= 1
        return levels

    @property
    def event(self) -> Event:
        one = BoundedRangeEvent(range=self.epsilon / self.levels, neighbors=self.neighbors)
        return RepeatedEvent(event=one, count=self.levels) if self.levels > 1 else one

    def rate(self, q: Fraction) -> Fraction:
        """The exponent for one step of rank, for a part whose own target is ``q``."""
        twice = 2 if self.neighbors is Neighbors.ADD_REMOVE else 4
        return _rate(self.epsilon, q, twice * self.levels * self.rows)

    def draw(self, value: Values) -> Array:
        if self.tie_bits:
            steps = value.within(self.top).each() if isinstance(value, StepCounts) else self.place_values(value)
            steps = np.sort((steps << self.tie_bits) | noise.uniform_digits(len(steps), self.tie_bits))
        else:
            steps = self._each(value)
        out = np.zeros(len(self.targets), dtype=np.int64)

        def choose(part: _Part, q: Fraction) -> int:
            rate = self.rate(q) / q.denominator
            out[part.middle] = near_pieces(part.held, q, part.ends, rate).choose(rate)
            return int(out[part.middle])

        self._read_off(out, self._divide(steps, choose))
        return np.asarray(self.value_of(out >> self.tie_bits))

    def _each(self, value: Values) -> Array:
        """Sort the steps, value by value: ties are broken by digits that each value draws for itself."""
        return value.within(self.top).each() if isinstance(value, StepCounts) else self.steps(value)

    def _divide(self, steps: Array, choose: Callable[[_Part, Fraction], int]) -> list[_Part]:
        """Walk the tree of questions: ``choose`` answers each, and its answer divides the values for the next two.

        What comes back is the parts that are not worth a question, in order.
        """
        open_parts, left = [self._whole(steps)], []
        while open_parts:
            part = open_parts.pop()
            if part.depth < self.levels:
                open_parts += self._sides(part, choose(part, self._target(part)))
            else:
                left.append(part)
        return sorted(left, key=lambda part: part.first)

    def _read_off(self, out: Array, parts: list[_Part]) -> None:
        """Interpolate the quantiles that were not asked, on straight lines between answers.

        In the first and the last part one end is only a bound, so there the line is that of the part beside it.
        """
        for index, part in enumerate(parts):
            (low, high), (start, stop) = part.share, part.ends
            slope = Fraction(stop - start) / (high - low)
            if len(parts) > 1 and (low == 0 or high == 1):
                beside = parts[1] if index == 0 else parts[-2]
                slope = Fraction(beside.ends[1] - beside.ends[0]) / (beside.share[1] - beside.share[0])
            for place in range(part.first, part.last):
                above, below = slope * (self.targets[place] - low), slope * (high - self.targets[place])
                guess = stop - below if low == 0 else start + above
                out[place] = min(max(math.floor(guess), start), stop)

    def _pieces(self, part: _Part, q: Fraction) -> Pieces:
        return quantile_pieces(part.held, q, *part.ends)

    def _whole(self, steps: Array) -> _Part:
        last_step = ((self.top + 1) << self.tie_bits) - 1
        return _Part(runs(steps), 0, len(self.targets), (Fraction(0), Fraction(1)), (0, last_step), 0)

    def _target(self, part: _Part) -> Fraction:
        """The middle target as a quantile of the part's own values."""
        return _within(self.targets[part.middle], *part.share)

    def _sides(self, part: _Part, answer: int) -> list[_Part]:
        """Return the parts that are left to ask above and below an answer."""
        wanted, (low, high) = self.targets[part.middle], part.share
        under, over = part.held.split_at(answer)
        depth = part.depth + 1
        above = _Part(over, part.middle + 1, part.last, (wanted, high), (answer, part.ends[1]), depth)
        below = _Part(under, part.first, part.middle, (low, wanted), (part.ends[0], answer), depth)
        return [side for side in (above, below) if side.first < side.last]

    def repeat(self, value: Values, *, times: int) -> list[tuple[Any, ...]]:
        if self.tie_bits or self.about is not None:
            return [tuple(self.draw(value).tolist()) for _ in range(times)]
        out = np.zeros((times, len(self.targets)), dtype=np.int64)
        self._fill(out, self._whole(self._each(value)))
        return [tuple(row) for row in np.asarray(self.value_of(out)).tolist()]

    def _fill(self, out: Array, part: _Part) -> None:
        """Answer one part for all rows that agree so far, then divide each group of equal answers."""
        q = self._target(part)
        drawn = self._pieces(part, q).choose_many(self.rate(q) / q.denominator, len(out))
        for answer in np.unique(drawn):
            rows = out[drawn == answer]
            rows[:, part.middle] = answer
            for side in self._sides(part, int(answer)):
                self._fill(rows, side)
            out[drawn == answer] = rows

    def log_mass(self, value: Values, output: tuple[Real, ...]) -> float:
        """Exact without ``tie_bits``; with them the law is a mixture over the random digits, and is not computed."""
        if self.tie_bits:
            raise ParameterError("tie_bits", "0 for an exact mass", self.tie_bits)
        answers = [self.step_of(one) for one in output]
        masses: list[float] = []

        def choose(part: _Part, q: Fraction) -> int:
            masses.append(self._pieces(part, q).log_mass(self.rate(q) / q.denominator, answers[part.middle]))
            return answers[part.middle]

        expected = np.array(answers, dtype=np.int64)
        self._read_off(expected, self._divide(self._each(value), choose))
        return sum(masses) if expected.tolist() == answers else -math.inf

    def error(self, *, beta: float) -> float:
        each = float(probability("beta", beta)) / len(self.targets)
        slowest = float(self.rate(Fraction(1)))
        return self.levels * math.log(((self.top + 1) << self.tie_bits) / each) / slowest

    def bound_rank(self, place: int, beta: float) -> float:
        """Return how many values lie between one answer and its quantile, except with probability ``beta``.

        Only the questions on the way to it matter. Let one of them, about m values, be answered e ranks away from its
        own quantile p, and let the wanted quantile be the share t of the values above the answer. Of F values below
        it, the wanted rank is F + t·(m − F) in place of p·m + t·(m − p·m): the error is (1 − t)·e, and t·e on the
        other side. The question itself errs as ``Quantile`` does, at its own rate and over all steps; the values with
        the very digits of an answer are on one side of it.
        """
        if self.levels < len(self.targets).bit_length():
            return self.error(beta=beta)
        first, last, share, target = 0, len(self.targets), (Fraction(0), Fraction(1)), self.targets[place]
        parts: list[tuple[Fraction, float, int]] = []
        while True:
            middle, (low, high) = (first + last) // 2, share
            wanted = self.targets[middle]
            rate = float(self.rate(_within(wanted, low, high)))
            if middle == place:
                parts.append((Fraction(1), rate, 0))
                break
            if place > middle:
                parts.append((1 - _within(target, wanted, high), rate, 1))
                first, share = middle + 1, (wanted, high)
            else:
                parts.append((_within(target, low, wanted), rate, 1))
                last, share = middle, (low, wanted)
        steps = math.log(((self.top + 1) << self.tie_bits) * len(parts) / float(probability("beta", beta)))
        return sum(float(weight) * (steps / rate + rest) for weight, rate, rest in parts)
