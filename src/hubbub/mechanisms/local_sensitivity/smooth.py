"""Smooth sensitivity: noise in proportion to how far one unit could move *this* answer, or one near it.

Noise in proportion to the local sensitivity is the classic mistake: its size tells which case we are in. A smooth bound
changes by at most a factor e^β between neighbours, and noise that hides a shift and such a dilation together is
private. The scale comes from the data, so no answer has an interval, and ``error`` is what is public: the whole range.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.local_sensitivity.dilation import LaplaceDilated, Student
from hubbub.mechanisms.local_sensitivity.distance import by_unit, quantile_rank, quantile_smooth_bound, smooth_bound
from hubbub.mechanisms.selection.quantile import DENOMINATOR, OnRange
from hubbub.parameters import Real, probability, whole
from hubbub.privacy.events.event import Event
from hubbub.privacy.sensitivity import Norm

Profile = tuple[Real, Sequence[Real]]
"""An answer, and how far one row can move it once 0, 1, 2, … rows were changed."""

_MOST_SCALE = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class _Smooth(OnRange, ABC):
    """The common part of both: an answer in whole steps, a smooth bound, and noise in proportion to it.

    With ``delta`` the noise is Laplace, without it Student's with ``degrees`` degrees of freedom; ``beta`` is how fast
    trouble far away is forgotten, and chosen from epsilon alone unless given.
    """

    delta: Fraction | None = None
    degrees: int = 2
    beta: Fraction | None = None
    law: Student | LaplaceDilated = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        OnRange.__post_init__(self)
        law: Student | LaplaceDilated
        if self.delta is None:
            law = Student(epsilon=self.epsilon, degrees=self.degrees, beta=self.beta)
        else:
            law = LaplaceDilated(epsilon=self.epsilon, delta=self.delta, beta=self.beta)
            settle(self, delta=law.delta)
            if law.multiplier * self.top > _MOST_SCALE:
                raise ParameterError("grid", "a step for which the noise stays below 2^50 steps", self.step)
        settle(self, law=law, beta=law.beta)

    @property
    def event(self) -> Event:
        return self.law.event(self.neighbors)

    @property
    def decay(self) -> Fraction:
        """β, given or chosen."""
        assert self.beta is not None
        return self.beta

    @abstractmethod
    def measure(self, value: Any) -> tuple[int, Fraction]:
        """The exact answer and its smooth bound, in steps: both are secret."""

    def draw(self, value: Any) -> Any:
        exact, bound = self.measure(value)
        drawn = self.law.draw(bound, reach=self.top)
        assert isinstance(drawn, int)
        return self.value_of(min(max(exact + drawn, 0), self.top))

    def repeat(self, value: Any, *, times: int) -> Array:
        exact, bound = self.measure(value)
        drawn = np.clip(exact + np.asarray(self.law.draw(bound, reach=self.top, size=times)), 0, self.top)
        return np.asarray(self.value_of(drawn))

    def log_mass(self, value: Any, output: Real) -> float:
        at = self.step_of(output)
        if not 0 <= at <= self.top:
            return -math.inf
        exact, bound = self.measure(value)
        away = abs(at - exact)
        beyond, further = self.law.tail(np.array([float(away), away + 1.0]), bound)
        if at in (0, self.top):
            mass = beyond if away else 1 - further
        else:
            mass = beyond - further if away else 1 - 2 * further
        return math.log(mass) if mass > 0 else -math.inf

    def error(self, *, beta: float) -> float:
        """Return the width of the range: the size of the noise depends on the data, and is not released."""
        probability("beta", beta)
        return float(self.bounds[1] - self.bounds[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothQuantile(_Smooth):
    """One quantile of a multiset of numbers, where each unit holds at most ``rows`` of them.

    Where data is dense its mean error is about 2.5·e^(0.35ε)/ε² ranks, that of the exponential mechanism (``Quantile``)
    1/ε: it pays from an ε of about 5 on, where the gap between two values matters.

    Privacy:
        Claim: Pure(epsilon), or with ``delta`` Approx(epsilon, delta), under add/remove and under replace-one.
        Proof: distance.quantile_smooth_bound is a smooth bound of the local sensitivity of x_(⌈qn⌉) for changes of
            ``rows`` values; then Student or LaplaceDilated. Clamping the answer is post-processing.
        Needs: bounds and grid are public; the samplers of noise.rounded are exact; nothing but the answer is shown.
        Ref: Nissim, Raskhodnikova, Smith 2007.
    """

    q: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        _Smooth.__post_init__(self)
        settle(self, q=probability("q", self.q).limit_denominator(DENOMINATOR))

    def measure(self, value: Sequence[Any] | Array) -> tuple[int, Fraction]:
        """The exact quantile and its smooth bound, in steps: both are secret."""
        steps = self.steps(value)
        rank = quantile_rank(len(steps), self.q)
        exact = int(steps[rank - 1]) if rank else 0
        return exact, quantile_smooth_bound(steps, rank, self.top, beta=self.decay, rows=self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothSensitivity(_Smooth):
    """Any number whose local sensitivity is bounded at distances 0, 1, … ``distances`` - 1, counted in rows.

    The value is (answer, bounds): bounds[k] is how far one more row can move the answer once k rows were changed.
    Beyond the bounds given it may move over the whole range. A unit holds at most ``rows`` rows.

    Privacy:
        Claim: Pure(epsilon), or with ``delta`` Approx(epsilon, delta), if bounds[k] of a dataset is at most bounds[k+1]
            of every dataset one row away, and bounds[0] is at least its local sensitivity.
        Proof: summed by unit (distance.by_unit) the bounds keep that property for units, so max e^(-βk)·A_k is smooth;
            rounding to the grid moves answers apart by at most ⌈A_k/grid⌉ steps. Then Student or LaplaceDilated.
        Needs: that property, proven for the function; ``distances``, bounds and grid are public.
        Ref: Nissim, Raskhodnikova, Smith 2007.
    """

    distances: int

    def __post_init__(self) -> None:
        _Smooth.__post_init__(self)
        whole("distances", self.distances, least=self.rows)

    @property
    def needs(self) -> Needs:
        return Needs(norm=Norm.LOCAL, sensitivity=Fraction(self.rows), neighbors=self.neighbors, integers=False)

    def measure(self, value: Profile) -> tuple[int, Fraction]:
        """The exact answer and its smooth bound, in steps: both are secret."""
        exact, bounds = profile_in_steps(self, value, self.distances)
        return exact, smooth_bound(bounds, self.top, beta=self.decay)


def profile_in_steps(on: OnRange, value: Profile, distances: int) -> tuple[int, list[int]]:
    """An answer in whole steps, and by how many steps one unit can move it at each distance in units."""
    answer, bounds = value
    if len(bounds) != distances:
        raise ParameterError("bounds", f"one for each of the {distances} distances", f"{len(bounds)} bounds")
    low, high = on.bounds
    inside = min(max(_finite(answer, low), low), high)
    exact = min(math.floor((inside - low) / on.step + Fraction(1, 2)), on.top)
    moved = by_unit([max(_finite(bound, high - low), Fraction(0)) for bound in bounds], on.rows)
    return exact, [min(math.ceil(bound / on.step), on.top) for bound in moved]


def _finite(number: Real, otherwise: Fraction) -> Fraction:
    return Fraction(number) if math.isfinite(number) else otherwise
