"""Projections of an answer of many numbers: the one number that separates two neighbours best, and a few of the rest.

Whatever is made of an answer without looking at the data is no less private than the answer. So each is brought down to
the difference of its log-likelihoods on both sides, as the plan's own mechanisms state them, and to the numbers whose
exact values differ most between the sides: an event that is spread over many numbers is then an event of one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.mechanisms import Gaussian, Geometric, Mechanism, PerGroup
from hubbub.query.ops import ExactCounts
from hubbub.query.plan.plan import Plan

_KEPT = 2
_MOST_STEPS = 4096
"""Steps of a histogram up to which the law of a choice is looked up."""


class Looked:
    """A function of answers, fixed by the plan and the exact numbers of two databases that were made up."""

    def __init__(self, plan: Plan, x: Sequence[ExactCounts], y: Sequence[ExactCounts]) -> None:
        self._parts = [
            (measurement.mechanism, *(measurement.take(side) for side in sides))
            for one, *sides in zip(plan.sets or (plan,), x, y, strict=True)
            for measurement in one.measurements
        ]
        self._laws: dict[tuple[int, int, Any], float] = {}
        moved = [(-step, at) for at, step in enumerate(self._distances())]
        kept = [at for _, at in sorted(moved)[:_KEPT]]
        self._kept = sorted({*kept, max(at for _, at in moved)}) if moved else []

    @classmethod
    def at(cls, plan: Plan, x: Sequence[ExactCounts], y: Sequence[ExactCounts]) -> "Looked | None":
        """None where an answer is one number, or keys are selected, so that there is nothing to bring down."""
        parts = plan.sets or (plan,)
        if any(one.selection is not None for one in parts):
            return None
        found = cls(plan, x, y)
        return found if len(found._distances()) > 1 else None

    def of(self, raw: Sequence[Any]) -> list[Any]:
        """Each answer brought down; what is not an answer stays as it is."""
        size = len(self._distances())
        places = [at for at, one in enumerate(raw) if isinstance(one, tuple) and len(one) == size]
        out = list(raw)
        if not places:
            return out
        numbers = _array([raw[at] for at in places])
        score = self._score(numbers)
        kept = numbers[:, self._kept].tolist()
        for at, found, rest in zip(places, score.tolist(), kept, strict=True):
            out[at] = (round(found, 6), *rest)
        return out

    def _distances(self) -> list[float]:
        """Return the distance by which the exact value behind each number moves, in units of its
        noise; for choices, in rows.
        """
        found: list[float] = []
        for mechanism, x, y in self._parts:
            scale = _scale(mechanism)
            if scale is not None:
                found += [abs(int(a) - int(b)) / scale for a, b in zip(x, y, strict=True)]
            else:
                found += [float(repr(a) != repr(b)) for a, b in zip(x, y, strict=True) for _ in range(_many(mechanism))]
        return found

    def _score(self, numbers: Any) -> Any:
        total = np.zeros(len(numbers))
        start = 0
        for part, (mechanism, x, y) in enumerate(self._parts):
            scale = _scale(mechanism)
            if scale is None:
                each = _many(mechanism)
                for group, (a, b) in enumerate(zip(x, y, strict=True)):
                    if each == 1 and repr(a) != repr(b) and isinstance(mechanism, PerGroup):
                        own = numbers[:, start + group].tolist()
                        total += [self._law(part, group, mechanism.mechanism, (a, b), step) for step in own]
                start += each * len(x)
                continue
            for a, b in zip(x, y, strict=True):
                if a != b:
                    here, there = ((numbers[:, start] - int(end)).astype(np.float64) / scale for end in (a, b))
                    gaussian = isinstance(mechanism, Gaussian)
                    total += (there**2 - here**2) / 2 if gaussian else np.abs(there) - np.abs(here)
                start += 1
        return total

    def _law(self, part: int, group: int, mechanism: Mechanism, sides: tuple[Any, Any], step: Any) -> float:
        known = part, group, step
        if known not in self._laws:
            if getattr(mechanism, "top", 0) > _MOST_STEPS:
                self._laws[known] = 0.0
            else:
                here, there = (mechanism.log_mass(side, step) for side in sides)
                self._laws[known] = float(np.clip(here - there, -50.0, 50.0)) if here != there else 0.0
        return self._laws[known]


def _array(rows: list[Any]) -> Any:
    try:
        return np.array(rows, dtype=np.int64)
    except OverflowError:
        return np.array(rows, dtype=object)


def _scale(mechanism: Mechanism) -> float | None:
    if isinstance(mechanism, Geometric):
        return float(mechanism.scale)
    return float(mechanism.sigma) if isinstance(mechanism, Gaussian) else None


def _many(mechanism: Mechanism) -> int:
    """Return the number of values that a choice gives for each group."""
    inner = mechanism.mechanism if isinstance(mechanism, PerGroup) else mechanism
    targets = getattr(inner, "targets", None)
    return len(targets) if targets is not None else int(getattr(inner, "k", 1))
