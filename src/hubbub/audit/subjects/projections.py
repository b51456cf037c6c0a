"""Projections of an answer of many numbers, and likelihood ratios: the one number that separates two neighbours best.

Whatever is made of an answer without looking at the data is no less private than the answer. So each is brought down to
the difference of its log-likelihoods on both sides, as the plan's own mechanisms state them, and to the numbers whose
exact values differ most between the sides: an event that is spread over many numbers is then an event of one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.mechanisms import Gaussian, Geometric, Mechanism, ObjectivePerturbation, PerGroup, Quantiles
from hubbub.mechanisms.base import Array
from hubbub.mechanisms.integers import as_integers

if TYPE_CHECKING:
    from hubbub.query.ops import ExactCounts
    from hubbub.query.plan.plan import Plan

_COARSE = 8
_MOST = 50.0
"""Logarithms beyond this are cut: one side is then impossible, for every purpose."""


def ratio(
    mechanism: Mechanism, value: Any, near: Any, far: Any, *, times: int, known: dict[Any, float] | None = None
) -> Array:
    """Return ln P(answer | far) − ln P(answer | near) of ``times`` answers on ``value``.

    ``known`` is what was worked out before of the answers of this mechanism on these two, and is added to.
    """
    known = {} if known is None else known
    if isinstance(mechanism, Geometric | Gaussian):
        return _ratio_of_noise(mechanism, value, near, far, times=times)
    if isinstance(mechanism, ObjectivePerturbation):
        answers = np.asarray(mechanism.repeat(value, times=times))
        loss = mechanism.log_masses(far, answers) - mechanism.log_masses(near, answers)
        return np.asarray(np.clip(loss, -_MOST, _MOST))
    if np.array_equal(_flat(near), _flat(far)):
        return np.zeros(times)
    if isinstance(mechanism, Quantiles) and mechanism.tie_bits:
        # Random digits that tell ties apart make a law without a formula; without them its choices are the same. So are
        # they on a coarse grid, where few answers are different and each one's chances are worked out once.
        low, high = mechanism.bounds
        mechanism = replace(mechanism, tie_bits=0, grid=(high - low) / _COARSE)
    drawn = mechanism.repeat(value, times=times)
    return np.array([_look_up(known, mechanism, near, far, answer) for answer in drawn])


def _ratio_of_noise(mechanism: Geometric | Gaussian, value: Any, near: Any, far: Any, *, times: int) -> Array:
    """Noise that is added: only the numbers that differ tell anything."""
    exact, low, high = (np.atleast_1d(np.asarray(as_integers(one))).reshape(-1) for one in (value, near, far))
    if low.shape != high.shape:
        return np.full(times, _MOST)
    differ = np.flatnonzero(low != high)
    if not len(differ):
        return np.zeros(times)
    drawn = np.asarray(mechanism.draw(np.tile(exact[differ], (times, 1))))
    a, b = ((drawn - side[differ]).astype(np.float64) for side in (low, high))
    if isinstance(mechanism, Geometric):
        each = (np.abs(a) - np.abs(b)) / float(mechanism.scale)
    else:
        each = (a**2 - b**2) / (2 * float(mechanism.sigma) ** 2)
    total: Array = each.sum(axis=1)
    return total


def _flat(value: Any) -> Array:
    return np.asarray(value, dtype=object).reshape(-1)


def _look_up(known: dict[Any, float], mechanism: Mechanism, near: Any, far: Any, answer: Any) -> float:
    key = answer.tobytes() if isinstance(answer, np.ndarray) else answer
    if isinstance(answer, dict):
        key = tuple(sorted(answer.items(), key=repr))
    if key not in known:
        here, there = mechanism.log_mass(near, answer), mechanism.log_mass(far, answer)
        known[key] = 0.0 if here == there else float(np.clip(there - here, -_MOST, _MOST))
    return known[key]


_KEPT = 2
_MOST_STEPS = 4096
"""Steps of a histogram up to which the law of a choice is looked up."""


class Looked:
    """A function of answers, fixed by the plan and the exact numbers of two databases that were made up."""

    def __init__(self, plan: "Plan", x: "Sequence[ExactCounts]", y: "Sequence[ExactCounts]") -> None:
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
    def at(cls, plan: "Plan", x: "Sequence[ExactCounts]", y: "Sequence[ExactCounts]") -> "Looked | None":
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
