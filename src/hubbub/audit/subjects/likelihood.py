"""Likelihood ratios of an answer for two exact values, drawn and examined many times at once."""

from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.mechanisms import Gaussian, Geometric, ObjectivePerturbation, Quantiles
from hubbub.mechanisms.base import Array, Mechanism
from hubbub.mechanisms.integers import as_integers

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
