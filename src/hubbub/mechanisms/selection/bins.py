"""A multiset of whole steps, each with how often it is there: what a histogram hands to a mechanism."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array


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
