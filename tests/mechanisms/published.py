"""Sparse vectors as they were published and as a slide has them: most are not private, and audits have to see it.

Ref: Lyu, Su, Li 2017, whose numbers the forms have here.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.mechanisms import SparseVector
from hubbub.noise import laws

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Laplace noise of any scale (0: none) on threshold 0 and questions; None for what is called below."""

    threshold_scale: Fraction = Fraction(0)
    question_scale: Fraction = Fraction(0)
    count: int | None = None
    """How many answers above end it; None: it never ends."""
    shows_noisy: bool = False
    """An answer above is the very noisy number that was compared."""

    def repeat(self, value: Any, *, times: int) -> list[tuple[Any, ...]]:
        exact = np.asarray(value)
        bars = _noise(self.threshold_scale, (times, 1))
        noisy = exact + _noise(self.question_scale, (times, len(exact)))
        above = noisy >= bars
        ended = np.zeros(above.shape, dtype=bool)
        if self.count is not None:
            ended[:, 1:] = above.cumsum(axis=1)[:, :-1] >= self.count
        rows = zip(noisy.tolist(), above.tolist(), ended.tolist(), strict=True)
        return [tuple(self._shown(x, up) for x, up, over in zip(*row, strict=True) if not over) for row in rows]

    def _shown(self, noisy: int, above: bool) -> Any:
        return (noisy if self.shows_noisy else "above") if above else None

    def log_mass(self, value: tuple[int, ...], output: tuple[Any, ...]) -> float:
        """By summing over the threshold's noise; for answers that have not ended, or end with this one."""
        reach = math.ceil(60 * self.threshold_scale + 1)
        total = 0.0
        for bar in range(-reach, reach + 1):
            mass = math.exp(laws.laplace_log_mass(bar, self.threshold_scale))
            for x, seen in zip(value, output, strict=True):
                if seen is None:
                    mass *= 1 - laws.laplace_tail(bar - x, self.question_scale)
                elif seen == "above":
                    mass *= laws.laplace_tail(bar - x, self.question_scale)
                else:
                    mass *= math.exp(laws.laplace_log_mass(seen - x, self.question_scale)) * (seen >= bar)
            total += mass
        return math.log(total)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSided:
    """Our own noise with its directions turned round: only up and up is private."""

    epsilon: Fraction
    threshold_up: bool
    question_up: bool

    def repeat(self, value: Any, *, times: int) -> list[Any]:
        right = SparseVector(epsilon=self.epsilon, threshold=0)
        exact = np.asarray(value)
        bars = noise.geometric(scale=right.bar_scale, size=times)[:, None]
        drawn = noise.geometric(scale=right.question_scale, size=times * len(exact)).reshape(times, len(exact))
        above = exact + (drawn if self.question_up else -drawn) >= (bars if self.threshold_up else -bars)
        return [int(row.argmax()) if row.any() else None for row in above]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleNumbers:
    """The gap and the number of the first above from one and the same noise, instead of a fresh one for the number."""

    mechanism: SparseVector

    def repeat(self, value: Any, *, times: int) -> list[Any]:
        drawn = noise.geometric(scale=self.mechanism.question_scale, size=times * len(value))
        noisy = np.asarray(value) + drawn.reshape(times, len(value))
        bars = self.mechanism.bars(times)[:, 0]
        return [_first(row, bar) for row, bar in zip(noisy.tolist(), bars.tolist(), strict=True)]


def _first(noisy: list[int], bar: int) -> Any:
    return next(((place, x - bar, x) for place, x in enumerate(noisy) if x >= bar), None)


def _noise(scale: Fraction, shape: tuple[int, int]) -> Array:
    if scale == 0:
        return np.zeros(shape, dtype=np.int64)
    drawn: Array = noise.discrete_laplace(scale=scale, size=shape[0] * shape[1])
    return drawn.reshape(shape)


def lyu(epsilon: Fraction, count: int) -> Published:
    """Algorithms 1 and 7 with equal shares: right."""
    return Published(threshold_scale=2 / epsilon, question_scale=4 * count / epsilon, count=count)


def slide(epsilon: Fraction, count: int) -> Published:
    """Lecture 001, and Roth's lecture notes of 2011 (algorithm 3): half the noise, and what was compared is shown."""
    return Published(threshold_scale=2 / epsilon, question_scale=2 * count / epsilon, count=count, shows_noisy=True)


def slide_places(epsilon: Fraction, count: int) -> Published:
    """The same without its numbers: the noise alone is too little."""
    return Published(threshold_scale=2 / epsilon, question_scale=2 * count / epsilon, count=count)


def right_but_shows_noisy(epsilon: Fraction, count: int) -> Published:
    """Enough noise, but what was compared is shown."""
    return Published(threshold_scale=2 / epsilon, question_scale=4 * count / epsilon, count=count, shows_noisy=True)


def lee_clifton(epsilon: Fraction, count: int) -> Published:
    """Algorithm 4, of 2014: the noise does not grow with the answers above."""
    return Published(threshold_scale=4 / epsilon, question_scale=4 / (3 * epsilon), count=count)


def stoddard(epsilon: Fraction) -> Published:
    """Algorithm 5, of 2014: no noise on questions, and no end."""
    return Published(threshold_scale=2 / epsilon)


def chen(epsilon: Fraction) -> Published:
    """Algorithm 6, of 2015: no end."""
    return Published(threshold_scale=2 / epsilon, question_scale=2 / epsilon)


def bare_threshold(epsilon: Fraction, count: int) -> Published:
    """Nothing on the threshold: then every answer below costs too."""
    return Published(question_scale=2 * count / epsilon, count=count)
