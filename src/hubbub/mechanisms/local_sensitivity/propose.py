"""Propose, test, release: noise for a proposed sensitivity, if the data is far enough from any where that is too low.

How far is itself a secret number that one unit moves by at most 1, and the test spends ε and δ on it: pass or fail is
decided with cut geometric noise, the best that (ε, δ) allows for a yes or no. Test and release are charged together,
whatever the test will say; ⊥ (None) is an answer like any other.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.additive.laplace import Geometric
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.keys.key_selection import TruncatedThreshold
from hubbub.mechanisms.keys.threshold import Counts, key_order
from hubbub.mechanisms.local_sensitivity.distance import distance, quantile_distance, quantile_rank
from hubbub.mechanisms.local_sensitivity.smooth import Profile, profile_in_steps
from hubbub.mechanisms.selection.quantile import DENOMINATOR, OnRange
from hubbub.parameters import Real, between, positive, probability, whole
from hubbub.privacy.events.event import ApproxEvent, ComposedEvent, Event
from hubbub.privacy.sensitivity import Neighbors, Norm


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityTest:
    """Yes or no: is a number that neighbours change by at most ``moves`` above 0? The chance of a yes at 0 is 0.

    Privacy:
        Claim: Approx(epsilon, delta), and a dataset at ``moves`` or below says yes with probability at most delta.
        Proof: TruncatedThreshold for a single key held by ⌈number / moves⌉ units: one step at a time its chance of
            passing is within (ε, δ); at 0 it is 0 and at 1 at most δ.
        Needs: noise.truncated_laplace draws exactly.
        Ref: Dwork, Lei 2009; Thakurta, Smith 2013; Desfontaines, Voss, Gipson, Mandayam 2022 for the law.
    """

    epsilon: Fraction
    delta: Fraction
    moves: int = 1
    key: TruncatedThreshold = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("moves", self.moves, least=1)
        key = TruncatedThreshold(epsilon=self.epsilon, delta=self.delta)
        settle(self, key=key, epsilon=key.epsilon, delta=key.delta)

    @property
    def failure(self) -> Fraction:
        """The exact chance of a yes one step from 0: at most delta."""
        return self.key.event.failure

    @property
    def threshold(self) -> int:
        """The least noisy number that passes, in steps of ``moves``."""
        return self.key.threshold

    def passes(self, number: int, times: int) -> Array:
        """Independent answers."""
        noisy = self._steps(number) + self.key.noise_of(times)
        passed: Array = noisy >= self.threshold
        return passed

    def chance(self, number: int) -> float:
        """The probability of a yes."""
        return self.key.noise_tail(self.threshold - self._steps(number))

    def _steps(self, number: int) -> int:
        return min(-(-max(number, 0) // self.moves), 2 * self.threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposing(OnRange, ABC):
    """The common part of both. ``proposed`` is in units of the value; ``test_share`` of epsilon goes to the test."""

    delta: Fraction
    proposed: Fraction
    test_share: Fraction = Fraction(1, 2)
    test: StabilityTest = field(init=False, repr=False, compare=False)
    noise: Geometric = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        OnRange.__post_init__(self)
        proposed = positive("proposed", self.proposed)
        share = between("test_share", self.test_share, 0, 1, low_open=True, high_open=True)
        if self.steps_proposed < 1 or proposed > self.bounds[1] - self.bounds[0]:
            raise ParameterError("proposed", "at least one step of the grid and at most the bounds", self.proposed)
        test = StabilityTest(epsilon=share * self.epsilon, delta=self.delta)
        noise = Geometric(epsilon=(1 - share) * self.epsilon, sensitivity=self.steps_proposed, neighbors=self.neighbors)
        settle(self, proposed=proposed, test_share=share, delta=test.delta, test=test, noise=noise)

    @property
    def steps_proposed(self) -> int:
        """The proposed bound in whole steps, rounded down: where it holds, whole steps lie no further apart."""
        return math.floor(positive("proposed", self.proposed) / self.step)

    @property
    def event(self) -> Event:
        test = ApproxEvent(bound=self.test.epsilon, failure=self.test.failure, neighbors=self.neighbors)
        return ComposedEvent(events=(test, self.noise.event))

    @abstractmethod
    def measure(self, value: Any) -> tuple[int, int]:
        """The exact answer in steps, and how many units have to change before the proposed bound fails: both secret."""

    def draw(self, value: Any) -> Any:
        return self.repeat(value, times=1)[0]

    def repeat(self, value: Any, *, times: int) -> list[Any]:
        exact, away = self.measure(value)
        passed = self.test.passes(away + 1, times)
        noisy = np.clip(self.noise.repeat(exact, times=times), 0, self.top)
        return [self.value_of(int(step)) if yes else None for yes, step in zip(passed, noisy, strict=True)]

    def log_mass(self, value: Any, output: Real | None) -> float:
        exact, away = self.measure(value)
        chance = self.test.chance(away + 1)
        if output is None:
            return math.log1p(-chance) if chance < 1 else -math.inf
        at = self.step_of(output)
        if not 0 <= at <= self.top or chance == 0:
            return -math.inf
        if 0 < at < self.top:
            return math.log(chance) + self.noise.log_mass(exact, at)
        rate = float(1 / self.noise.scale)
        return math.log(chance) - abs(at - exact) * rate - math.log1p(math.exp(-rate))

    def error(self, *, beta: float) -> float:
        """Of an answer that is given; whether one is given depends on the data."""
        return float(self.noise.error(beta=beta) * self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestRelease(_Proposing):
    """Any number whose local sensitivity is bounded at distances 0, 1, … ``distances`` - 1, counted in rows.

    The value is (answer, bounds), as for ``SmoothSensitivity``. The answer is a number, or None where the test failed.

    Privacy:
        Claim: Pure(epsilon) outside a failure mass of at most delta.
        Proof: let D be the least k with A_k > proposed; neighbours change it by at most 1. If either of two neighbours
            has D >= 1 their answers differ by at most ``proposed``, so test (ε₁, δ) and Geometric (ε₂) compose. If both
            have D = 0 each passes with probability at most δ (StabilityTest at D + 1 = 1), and says None otherwise.
        Needs: bounds[k] of a dataset is at most bounds[k+1] of every dataset one row away, and bounds[0] at least its
            local sensitivity; StabilityTest; Geometric; clamping is post-processing.
        Ref: Dwork, Lei 2009.
    """

    distances: int

    def __post_init__(self) -> None:
        _Proposing.__post_init__(self)
        whole("distances", self.distances, least=self.rows)

    @property
    def needs(self) -> Needs:
        return Needs(norm=Norm.LOCAL, sensitivity=Fraction(self.rows), neighbors=self.neighbors, integers=False)

    def measure(self, value: Profile) -> tuple[int, int]:
        """The exact answer in steps, and how many units have to change before the proposed bound fails: both secret."""
        exact, bounds = profile_in_steps(self, value, self.distances)
        return exact, distance(bounds, bound=self.steps_proposed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedQuantile(_Proposing):
    """One quantile with noise for a proposed bound on how far one unit can move it, or None.

    Privacy:
        Claim: Pure(epsilon) outside a failure mass of at most delta, under add/remove and under replace-one.
        Proof: ProposeTestRelease, with the A_k that ``distance`` proves for quantiles of ``rows`` values a unit.
        Needs: bounds and grid are public; StabilityTest; Geometric.
        Ref: Dwork, Lei 2009; Nissim, Raskhodnikova, Smith 2007 for A_k.
    """

    q: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        _Proposing.__post_init__(self)
        settle(self, q=probability("q", self.q).limit_denominator(DENOMINATOR))

    def measure(self, value: Sequence[Any] | Array) -> tuple[int, int]:
        """The exact quantile in steps, and how many units have to change before the proposed bound fails."""
        steps = self.steps(value)
        rank = quantile_rank(len(steps), self.q)
        most = 2 * self.test.threshold
        away = quantile_distance(steps, rank, self.top, bound=self.steps_proposed, rows=self.rows, most=most)
        return (int(steps[rank - 1]) if rank else 0), away


@dataclass(frozen=True, slots=True, kw_only=True)
class StableMode:
    """The key that most units hold, exactly, if it leads by enough; None otherwise. Nobody needs to declare the keys.

    ``error(beta)`` is the lead at which the mode is shown with probability at least 1 - beta.

    Privacy:
        Claim: Approx(epsilon, delta), as Pure(epsilon) outside a failure mass of at most delta.
        Proof: let g be the lead of the largest count over the second (0 where a key is missing). A unit adds or removes
            1 on some keys, the same way on all, so both counts and g move by at most 1 (2 when replaced). If neighbours
            have the same mode, StabilityTest answers for g. If not, the lead of each over the other's mode is at most
            what g moves by, so both are shown with probability at most δ.
        Needs: counts of distinct units; StabilityTest.
        Ref: Thakurta, Smith 2013; Dwork, Roth 2014, section 7.3.
    """

    epsilon: Fraction
    delta: Fraction
    keys_per_unit: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    test: StabilityTest = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("keys_per_unit", self.keys_per_unit, least=1)
        moves = 1 if self.neighbors is Neighbors.ADD_REMOVE else 2
        test = StabilityTest(epsilon=self.epsilon, delta=self.delta, moves=moves)
        settle(self, test=test, epsilon=test.epsilon, delta=test.delta)

    @property
    def needs(self) -> Needs:
        return Needs(norm=Norm.UNITS, sensitivity=Fraction(self.keys_per_unit), neighbors=self.neighbors)

    @property
    def event(self) -> Event:
        return ApproxEvent(bound=self.epsilon, failure=self.test.failure, neighbors=self.neighbors)

    def draw(self, value: Counts) -> Hashable | None:
        mode, lead = _leader(value)
        return mode if self.test.passes(lead, 1)[0] else None

    def repeat(self, value: Counts, *, times: int) -> list[Hashable | None]:
        mode, lead = _leader(value)
        return [mode if passed else None for passed in self.test.passes(lead, times)]

    def log_mass(self, value: Counts, output: Hashable | None) -> float:
        mode, lead = _leader(value)
        chance = self.test.chance(lead)
        mass = 1 - chance if output is None else chance if output == mode else 0.0
        return math.log(mass) if mass > 0 else -math.inf

    def error(self, *, beta: float) -> float:
        exact, lead = float(probability("beta", beta)), 0
        while 1 - self.test.chance(lead) > exact:
            lead += 1
        return float(lead)


def _leader(counts: Counts) -> tuple[Hashable | None, int]:
    """The key with the largest count, the first in key order among equals, and how far it leads."""
    order = sorted(counts, key=key_order)
    ranked = sorted(order, key=lambda key: -counts[key])
    if not ranked:
        return None, 0
    return ranked[0], counts[ranked[0]] - (counts[ranked[1]] if len(ranked) > 1 else 0)
