"""Choosing one of many: exponential mechanism, permute-and-flip, report noisy max, top-k.

Scores live on an integer grid. One unit moves any score by at most ``sensitivity``; where adding a unit moves all
scores the same way (``monotone``, which never holds when units are replaced) half the noise does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import on_grid
from hubbub.noise import laws
from hubbub.parameters import positive, probability, whole
from hubbub.privacy.events.event import BoundedRangeEvent, Event, PureEvent, RepeatedEvent
from hubbub.privacy.sensitivity import Neighbors, Norm


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    """The common part of selections. ``grid`` is the step that real scores are rounded to before anything else."""

    epsilon: Fraction
    sensitivity: Fraction = Fraction(1)
    monotone: bool = False
    grid: Fraction = Fraction(1)
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        settle(self, **{name: positive(name, getattr(self, name)) for name in ("epsilon", "sensitivity", "grid")})
        if self.monotone and self.neighbors is not Neighbors.ADD_REMOVE:
            raise ParameterError("monotone", "False unless neighbours add or remove one unit", self.monotone)

    @property
    def rate(self) -> Fraction:
        """The exponent a step: ε / 2Δ, or ε / Δ for monotone scores, with Δ in whole steps of the grid."""
        steps = math.ceil(self.sensitivity / self.grid)
        return self.epsilon / (steps if self.monotone else 2 * steps)

    @property
    def needs(self) -> Needs:
        return Needs(
            norm=Norm.SCORE,
            sensitivity=self.sensitivity,
            neighbors=self.neighbors,
            integers=False,
            monotone=self.monotone,
        )

    def levels(self, scores: Sequence[Any] | Array) -> Array:
        """Return the number of steps by which each score is below zero: whole numbers, smaller is
        better. NaN scores count as 0.
        """
        steps = np.asarray(on_grid(np.asarray(scores), self.grid))
        if steps.ndim != 1 or not len(steps):
            raise ParameterError("scores", "a non-empty list, one score a candidate", f"shape {steps.shape}")
        return levels_of(steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(_Selection):
    """Index i with probability ∝ prior[i] · exp(rate · score[i]): any finite set, any score.

    ``error(beta, candidates)`` bounds by how much the chosen score falls short of the best one (without a prior).

    Privacy:
        Claim: the privacy loss lies in an interval of length epsilon (bounded range), hence Pure(epsilon) and
            ε²/8-zCDP.
        Proof: log p(i|D)/p(i|D') = rate·(s_i - s'_i) + ln Z'/Z. The second term is the same for all i. The first lies
            in [-rate·Δ, rate·Δ], or in [0, rate·Δ] (or its negative) if all scores move the same way; rate is set so
            that this interval has length ε. A prior that does not depend on the data cancels.
        Needs: noise.choice draws exactly; |s_i - s'_i| <= sensitivity, grown by the rounding to ⌈sensitivity/grid⌉
            steps.
        Ref: McSherry, Talwar 2007; Durfee, Rogers 2019; Cesar, Rogers 2021 for zCDP.
    """

    prior: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _Selection.__post_init__(self)
        if self.prior is not None:
            weights = tuple(whole("prior", weight, most=1 << 128) for weight in self.prior)
            if not any(weights):
                raise ParameterError("prior", "whole numbers, not all 0", weights)
            settle(self, prior=weights)

    @property
    def event(self) -> BoundedRangeEvent:
        return BoundedRangeEvent(range=self.epsilon, neighbors=self.neighbors)

    def draw(self, value: Sequence[Any] | Array) -> int:
        return noise.choice(levels=self.levels(value), rate=self.rate, counts=self._counts(len(value)))

    def repeat(self, value: Sequence[Any] | Array, *, times: int) -> Array:
        return noise.choice(levels=self.levels(value), rate=self.rate, counts=self._counts(len(value)), size=times)

    def log_mass(self, value: Sequence[Any] | Array, output: int) -> float:
        weights = -float(self.rate) * self.levels(value).astype(np.float64)
        prior = self._counts(len(value))
        if prior is not None:
            with np.errstate(divide="ignore"):
                weights = weights + np.log(prior.astype(np.float64))
        return float(weights[output] - np.logaddexp.reduce(weights))

    def error(self, *, beta: float, candidates: int = 1) -> float:
        return _shortfall(self, beta, candidates)

    def _counts(self, candidates: int) -> Array | None:
        if self.prior is None:
            return None
        if len(self.prior) != candidates:
            raise ParameterError("prior", f"as long as the scores ({candidates})", f"{len(self.prior)} weights")
        return np.array(self.prior, dtype=object)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(_Selection):
    """Candidates in random order, each taken with probability exp(rate · (score - best)): never worse than Exponential.

    Privacy:
        Claim: Pure(epsilon).
        Proof: it is report noisy max with exponential noise of the same rate, whose outcome i needs its noise above a
            threshold set by the others; neighbouring scores move that threshold by at most 2Δ (Δ if monotone).
        Needs: noise.race flips exactly. Its loss is not of bounded range: it costs ε·tanh(ε/2) in zCDP, not ε²/8.
        Ref: McKenna, Sheldon 2020; Ding, Kifer, et al. 2021.
    """

    @property
    def event(self) -> PureEvent:
        return PureEvent(bound=self.epsilon, neighbors=self.neighbors)

    def draw(self, value: Sequence[Any] | Array) -> int:
        return noise.race(levels=self.levels(value), rate=self.rate)

    def repeat(self, value: Sequence[Any] | Array, *, times: int) -> Array:
        return noise.race(levels=self.levels(value), rate=self.rate, size=times)

    def log_mass(self, value: Sequence[Any] | Array, output: int) -> float:
        """P(i) = p_i ∫₀¹ Π_{j≠i} (1 - p_j t) dt: t is where i stands in the random order."""
        levels = self.levels(value).astype(np.float64)
        passes = np.exp(-float(self.rate) * (levels - levels.min()))
        polynomial = np.ones(1)
        for chance in np.delete(passes, output):
            polynomial = np.convolve(polynomial, [1.0, -chance])
        area = float((polynomial / np.arange(1, len(polynomial) + 1)).sum())
        return math.log(passes[output] * area)

    def error(self, *, beta: float, candidates: int = 1) -> float:
        return _shortfall(self, beta, candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMax(_Selection):
    """The index of the largest score plus discrete Laplace noise; ties go to the smallest index.

    Privacy:
        Claim: Pure(epsilon).
        Proof: fix the noise of the others; i wins iff its noise reaches a whole threshold t (the tie rule only decides
            between t and t + 1 by public indices). Between neighbours t moves by at most 2Δ steps (Δ if monotone), and
            P(Z >= t + 1) >= exp(-rate) · P(Z >= t) for every integer t.
        Needs: noise.discrete_laplace draws exactly and independently; only the index is released.
        Ref: Dwork, Roth 2014, claim 3.9, restated for integers with ties.
    """

    def __post_init__(self) -> None:
        _Selection.__post_init__(self)
        noise.discrete.check_scale("2 · sensitivity / epsilon", self.scale)

    @property
    def event(self) -> PureEvent:
        return PureEvent(bound=self.epsilon, neighbors=self.neighbors)

    @property
    def scale(self) -> Fraction:
        """The scale of each score's noise, in steps of the grid."""
        return 1 / self.rate

    def draw(self, value: Sequence[Any] | Array) -> int:
        levels = self.levels(value)
        drawn = noise.discrete_laplace(scale=self.scale, size=len(levels))
        return int(np.argmax(drawn - levels))

    def repeat(self, value: Sequence[Any] | Array, *, times: int) -> Array:
        levels = self.levels(value)
        drawn = noise.discrete_laplace(scale=self.scale, size=times * len(levels)).reshape(times, len(levels))
        return np.asarray(np.argmax(drawn - levels, axis=1))

    def log_mass(self, value: Sequence[Any] | Array, output: int) -> float:
        levels = self.levels(value)
        reach = laws.laplace_quantile(1e-18, self.scale)
        points = range(int(-levels.max()) - reach, int(-levels.min()) + reach + 1)
        total = 0.0
        for point in points:
            mass = math.exp(laws.laplace_log_mass(point + int(levels[output]), self.scale))
            for other, level in enumerate(levels):
                if other != output:
                    ties_lose = other < output
                    mass *= laws.laplace_tail((1 if ties_lose else 0) - point - int(level), self.scale)
            total += mass
        return math.log(total)

    def error(self, *, beta: float, candidates: int = 1) -> float:
        """Twice what the largest of the candidates' noises exceeds with probability beta."""
        each = -math.expm1(math.log1p(-float(probability("beta", beta))) / whole("candidates", candidates, least=1))
        return float(2 * laws.laplace_quantile(each, self.scale) * self.grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(_Selection):
    """The ``k`` best candidates, best first, by ``k`` rounds of the exponential mechanism on those that are left.

    Privacy:
        Claim: k bounded-range releases of ε/k each: Pure(epsilon), and ε²/8k-zCDP.
        Proof: each round is Exponential at ε/k on a set that earlier, released answers fixed; adaptive composition.
        Needs: Exponential.
        Ref: Durfee, Rogers 2019.
    """

    k: int = 1

    def __post_init__(self) -> None:
        _Selection.__post_init__(self)
        whole("k", self.k, least=1)

    @property
    def round(self) -> Exponential:
        """One round."""
        return Exponential(
            epsilon=self.epsilon / self.k,
            sensitivity=self.sensitivity,
            monotone=self.monotone,
            grid=self.grid,
            neighbors=self.neighbors,
        )

    @property
    def event(self) -> Event:
        return RepeatedEvent(event=self.round.event, count=self.k) if self.k > 1 else self.round.event

    def draw(self, value: Sequence[Any] | Array) -> tuple[int, ...]:
        levels = self.levels(value)
        if len(levels) < self.k:
            raise ParameterError("k", f"at most the number of candidates ({len(levels)})", self.k)
        left = np.arange(len(levels))
        chosen = []
        for _ in range(self.k):
            at = noise.choice(levels=levels[left], rate=self.round.rate)
            chosen.append(int(left[at]))
            left = np.delete(left, at)
        return tuple(chosen)

    def repeat(self, value: Sequence[Any] | Array, *, times: int) -> list[tuple[int, ...]]:
        out = np.empty((times, self.k), dtype=np.int64)
        self._fill(out, self.levels(value), np.arange(len(value)), 0)
        return [tuple(row) for row in out.tolist()]

    def _fill(self, out: Array, levels: Array, left: Array, depth: int) -> None:
        """Draw one round for all rows that agree so far, then go on with each group of equal answers."""
        drawn = noise.choice(levels=levels[left], rate=self.round.rate, size=len(out))
        for at in np.unique(drawn):
            rows = out[drawn == at]
            rows[:, depth] = left[at]
            if depth + 1 < self.k:
                self._fill(rows, levels, np.delete(left, at), depth + 1)
            out[drawn == at] = rows

    def log_mass(self, value: Sequence[Any] | Array, output: tuple[int, ...]) -> float:
        weights = -float(self.round.rate) * self.levels(value).astype(np.float64)
        left = list(range(len(weights)))
        total = 0.0
        for index in output:
            total += float(weights[index] - np.logaddexp.reduce(weights[left]))
            left.remove(index)
        return total

    def error(self, *, beta: float, candidates: int = 1) -> float:
        return _shortfall(self.round, float(probability("beta", beta)) / self.k, candidates)


def levels_of(steps: int | Array) -> Array:
    """Scores in whole steps, negated without wrapping."""
    array = np.asarray(steps)
    if array.dtype != object and not -(1 << 61) < array.min() <= array.max() < 1 << 61:
        array = array.astype(object)
    levels: Array = -array
    return levels


def _shortfall(selection: _Selection, beta: float, candidates: int) -> float:
    """P(score < best - t) <= candidates · exp(-rate · t): solved for t, plus the rounding of two scores to the grid."""
    exact = float(probability("beta", beta))
    steps = math.log(whole("candidates", candidates, least=1) / exact) / float(selection.rate)
    rounding = 0 if selection.grid == 1 else 1
    return float((steps + rounding) * selection.grid)
