"""The exponential mechanism over an interval: any score that is constant between breakpoints."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import on_grid
from hubbub.mechanisms.selection.pieces import Pieces
from hubbub.mechanisms.selection.quantile import OnRange
from hubbub.mechanisms.selection.select import levels_of
from hubbub.parameters import Real, positive, probability
from hubbub.privacy.events.event import BoundedRangeEvent
from hubbub.privacy.sensitivity import Neighbors, Norm

Scored = tuple[Sequence[Any] | Array, Sequence[Any] | Array]
"""Breakpoints in ascending order, and the score of each piece: one more than there are breakpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalExponential(OnRange):
    """A point of ``bounds``, with probability ∝ exp(rate · score there), for a score given on pieces.

    The value is (breakpoints, scores): piece i reaches from breakpoint i-1 (included) to breakpoint i. Both may depend
    on the data. ``error(beta)`` is how far the score of the answer falls short of the best one.

    Privacy:
        Claim: bounded range epsilon: Pure(epsilon) and ε²/8-zCDP, if one unit moves the score at no point of the
            interval by more than ``sensitivity``.
        Proof: rounding breakpoints half up to whole steps gives step o the score just below o + 1/2, the same point for
            both neighbours; rounding scores to their grid moves two of them apart by less than a step more
            (⌈sensitivity/score_grid⌉ in all). What is left is Exponential over the steps.
        Needs: noise.choice and noise.uniform_within draw exactly; bounds and grids are public.
        Ref: McSherry, Talwar 2007; Smith 2011 for sampling by pieces.
    """

    sensitivity: Fraction = Fraction(1)
    monotone: bool = False
    score_grid: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        OnRange.__post_init__(self)
        settle(self, sensitivity=positive("sensitivity", self.sensitivity))
        settle(self, score_grid=positive("score_grid", self.score_grid))
        if self.monotone and self.neighbors is not Neighbors.ADD_REMOVE:
            raise ParameterError("monotone", "False unless neighbours add or remove one unit", self.monotone)

    @property
    def rate(self) -> Fraction:
        """The exponent for one step of score."""
        moved = math.ceil(self.sensitivity / self.score_grid)
        return self.epsilon / (moved if self.monotone else 2 * moved)

    @property
    def needs(self) -> Needs:
        return Needs(
            norm=Norm.SCORE,
            sensitivity=self.sensitivity,
            neighbors=self.neighbors,
            integers=False,
            monotone=self.monotone,
        )

    @property
    def event(self) -> BoundedRangeEvent:
        return BoundedRangeEvent(range=self.epsilon, neighbors=self.neighbors)

    def pieces(self, value: Scored) -> Pieces:
        """The same score on whole steps."""
        breakpoints, scores = value
        if len(scores) != len(breakpoints) + 1:
            raise ParameterError("scores", "one more than there are breakpoints", f"{len(scores)} scores")
        starts = np.concatenate([[0], self.steps(breakpoints)])
        widths = np.diff(np.concatenate([starts, [self.top + 1]]))
        return Pieces(starts=starts, widths=widths, levels=levels_of(on_grid(np.asarray(scores), self.score_grid)))

    def draw(self, value: Scored) -> Any:
        return self.value_of(self.pieces(value).choose(self.rate))

    def repeat(self, value: Scored, *, times: int) -> Array:
        return np.asarray(self.value_of(self.pieces(value).choose_many(self.rate, times)))

    def log_mass(self, value: Scored, output: Real) -> float:
        return self.pieces(value).log_mass(self.rate, self.step_of(output))

    def error(self, *, beta: float) -> float:
        """P(score < best - t) <= steps · exp(-rate · t), solved for t, plus the rounding of two scores."""
        steps = math.log((self.top + 1) / float(probability("beta", beta))) / float(self.rate)
        return float((Fraction(steps) + 1) * self.score_grid)
