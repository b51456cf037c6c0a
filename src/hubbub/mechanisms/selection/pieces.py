"""Scores that are constant on pieces of a range: multisets of whole steps, and exact sampling."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array
from hubbub.noise.choice import Rest


@dataclass(frozen=True, slots=True, eq=False)
class StepCounts:
    """Ascending steps, all different, and how many values lie on each: at least one."""

    steps: Array
    counts: Array

    def __post_init__(self) -> None:
        ordered = len(self.steps) == len(self.counts) and bool(np.all(np.diff(self.steps) > 0))
        if not ordered or bool(np.any(self.counts < 1)):
            raise ParameterError("bins", "ascending steps, each with a count from 1 on", "others")

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> "StepCounts":
        """From steps with their counts, in any order; counts of equal steps add up."""
        listed = list(pairs)
        given = np.array(listed, dtype=np.int64).reshape(len(listed), 2)
        steps, places = np.unique(given[:, 0], return_inverse=True)
        counts = np.zeros(len(steps), dtype=np.int64)
        np.add.at(counts, places, given[:, 1])
        return cls(steps, counts)

    def within(self, top: int) -> "StepCounts":
        """Every value clamped to 0 … top, by itself."""
        if not len(self.steps) or (self.steps[0] >= 0 and self.steps[-1] <= top):
            return self
        clamped = np.clip(self.steps, 0, top).tolist()
        return StepCounts.of(zip(clamped, self.counts.tolist(), strict=True))

    def pairs(self) -> list[tuple[int, int]]:
        """Steps with their counts."""
        return list(zip(self.steps.tolist(), self.counts.tolist(), strict=True))

    def each(self) -> Array:
        """Every value by itself, ascending."""
        return np.repeat(self.steps, self.counts)

    def split_at(self, step: int) -> tuple["StepCounts", "StepCounts"]:
        """Split the bins into those below a step, and the rest."""
        cut = int(np.searchsorted(self.steps, step, side="left"))
        return _slice(self, None, cut), _slice(self, cut, None)

    def __len__(self) -> int:
        """Return the number of values."""
        return int(self.counts.sum())

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, StepCounts) and self.pairs() == other.pairs()

    __hash__ = None  # type: ignore[assignment]


def _slice(whole: StepCounts, start: int | None, stop: int | None) -> StepCounts:
    """Some of the bins, one beside the other: what holds for all of them need not be checked again."""
    return _make_bins(whole.steps[start:stop], whole.counts[start:stop])


def _make_bins(steps: Array, counts: Array) -> StepCounts:
    """Of what is known to be ascending and from 1 on."""
    made = object.__new__(StepCounts)
    object.__setattr__(made, "steps", steps)
    object.__setattr__(made, "counts", counts)
    return made


def runs(steps: Array) -> StepCounts:
    """Ascending steps one by one."""
    if len(steps) and bool((steps[1:] > steps[:-1]).all()):
        return _make_bins(steps, np.ones(len(steps), dtype=np.int64))
    starts = np.flatnonzero(np.concatenate([[True], steps[1:] != steps[:-1]])) if len(steps) else EMPTY.steps
    return StepCounts(steps[starts], np.diff(starts, append=len(steps)))


def bin_steps(steps: Array) -> StepCounts:
    """Steps one by one, in any order."""
    values, counts = np.unique(steps, return_counts=True)
    return StepCounts(values, counts)


EMPTY = StepCounts.of(())
"""No values at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Far:
    """Pieces so far down in level that they are hardly ever chosen, and are made only where one might be."""

    level: int
    """None of them has less."""
    steps: int
    """At least as many as they have together."""
    made: Callable[[], "Pieces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Disjoint runs of steps (some may be empty), each with how many whole levels its score is below zero."""

    starts: Array
    widths: Array
    levels: Array
    far: Far | None = None
    """What else there is, beside these: ``choose`` knows it."""

    def choose(self, rate: Fraction) -> int:
        """A step with probability exactly proportional to exp(-rate · level of its piece)."""
        at, here = noise.choice(levels=self.levels, rate=rate, counts=self.widths, rest=self._rest()), self
        if at >= len(self.starts):
            assert self.far is not None
            at, here = at - len(self.starts), self.far.made()
        return int(here.starts[at]) + noise.uniform_within(int(here.widths[at]))

    def _rest(self) -> Rest | None:
        far = self.far
        if far is None:
            return None

        def list_pieces() -> tuple[Array, Array]:
            made = far.made()
            return made.levels, made.widths

        return Rest(level=far.level, count=far.steps, listed=list_pieces)

    def choose_many(self, rate: Fraction, times: int) -> Array:
        """Independent answers of ``choose``, for audits."""
        drawn = noise.choice(levels=self.levels, rate=rate, counts=self.widths, size=times)
        out: Array = self.starts[drawn]
        for at in np.unique(drawn):
            inside = np.flatnonzero(drawn == at)
            out[inside] += noise.uniform_below(int(self.widths[at]), size=len(inside))
        return out

    def log_mass(self, rate: Fraction, step: int) -> float:
        """ln of the probability that ``choose`` gives ``step``."""
        exponents = -float(rate) * self.levels.astype(np.float64)
        inside = np.flatnonzero((self.starts <= step) & (step < self.starts + self.widths))
        if not len(inside):
            return -math.inf
        with np.errstate(divide="ignore"):
            weights = np.log(self.widths.astype(np.float64)) + exponents
        return float(exponents[inside[0]] - np.logaddexp.reduce(weights))
