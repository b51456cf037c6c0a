"""Two-sided geometric noise on integers, and on integers with fixed ends."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import as_integers, exact_sum
from hubbub.noise import laws
from hubbub.parameters import positive, probability, whole
from hubbub.privacy.events.event import DiscreteLaplaceEvent
from hubbub.privacy.sensitivity import Neighbors, Norm


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometric:
    """Integers plus two-sided geometric noise, P(k) ∝ exp(-ε|k| / sensitivity): the Laplace mechanism without floats.

    ``sensitivity`` is the L1 distance of the values of neighbouring datasets; a vector gets independent noise in each
    coordinate. ``error(beta)`` is in the units of the value.

    Privacy:
        Claim: Pure(epsilon) for integer values with ‖x - x'‖₁ <= sensitivity.
        Proof: log p(y|x) - log p(y|x') = (‖y-x'‖₁ - ‖y-x‖₁) · ε/sensitivity <= ‖x-x'‖₁ · ε/sensitivity <= ε.
        Needs: noise.discrete_laplace draws exactly from its law, independently for each coordinate.
        Ref: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009.
    """

    epsilon: Fraction
    sensitivity: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    scale: Fraction = field(init=False, repr=False, compare=False)
    """The scale of the noise, sensitivity / ε, exactly."""
    needs: Needs = field(init=False, repr=False, compare=False)
    event: DiscreteLaplaceEvent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        epsilon = positive("epsilon", self.epsilon)
        sensitivity = whole("sensitivity", self.sensitivity, least=1)
        scale = noise.discrete.check_scale("sensitivity / epsilon", sensitivity / epsilon)
        event = DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity, neighbors=self.neighbors)
        needs = Needs(norm=Norm.L1, sensitivity=Fraction(sensitivity), neighbors=self.neighbors)
        settle(self, epsilon=epsilon, sensitivity=sensitivity, scale=scale, event=event, needs=needs)

    def draw(self, value: int | Array) -> int | Array:
        exact = as_integers(value)
        if isinstance(exact, int):
            return exact + noise.discrete_laplace(scale=self.scale)
        return exact_sum(exact, noise.discrete_laplace(scale=self.scale, size=exact.size).reshape(exact.shape))

    def repeat(self, value: int, *, times: int) -> Array:
        return np.asarray(exact_sum(as_integers([value]), noise.discrete_laplace(scale=self.scale, size=times)))

    def log_mass(self, value: int, output: int) -> float:
        return laws.laplace_log_mass(output - value, self.scale)

    def error(self, *, beta: float, dimension: int = 1) -> int:
        """The least t that the largest of ``dimension`` errors exceeds with probability at most ``beta``."""
        return laws.laplace_quantile(each_of(beta, dimension), self.scale)

    @property
    def mean_error(self) -> float:
        """The expected absolute error of one coordinate."""
        return laws.laplace_mean_error(self.scale)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of one coordinate's noise."""
        return math.sqrt(laws.laplace_variance(self.scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGeometric:
    """The geometric mechanism on the integers from ``low`` to ``high``: what falls outside is put on the nearest end.

    Privacy:
        Claim: Pure(epsilon) for integer values with |x - x'| <= sensitivity.
        Proof: clamping a value to fixed ends does not move two values apart, and clamping the noisy sum is
            post-processing. So P(low | n) is the whole tail q^(n-low)/(1+q), and the inner values keep (1-q)/(1+q) ·
            q^|m-n|.
        Needs: noise.discrete_laplace draws exactly from its law; low and high are public.
        Ref: Ghosh, Roughgarden, Sundararajan 2009.
    """

    epsilon: Fraction
    low: int
    high: int
    sensitivity: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        low = whole("low", self.low, least=-(1 << 62))
        high = whole("high", self.high, least=low + 1, most=1 << 62)
        settle(self, low=low, high=high, epsilon=self._inner.epsilon)

    @property
    def _inner(self) -> Geometric:
        return Geometric(epsilon=self.epsilon, sensitivity=self.sensitivity, neighbors=self.neighbors)

    @property
    def needs(self) -> Needs:
        return self._inner.needs

    @property
    def event(self) -> DiscreteLaplaceEvent:
        return self._inner.event

    def draw(self, value: int | Array) -> int | Array:
        inside = self._clamp(as_integers(value))
        clamped: int | Array = self._clamp(self._inner.draw(inside))
        return clamped

    def repeat(self, value: int, *, times: int) -> Array:
        inside = self._clamp(value)
        return np.asarray(self._clamp(self._inner.repeat(inside, times=times)))

    def log_mass(self, value: int, output: int) -> float:
        if not self.low <= output <= self.high:
            return -math.inf
        centre, scale = self._clamp(value), self._inner.scale
        if self.low < output < self.high:
            return laws.laplace_log_mass(output - centre, scale)
        beyond = centre - output if output == self.low else output - centre
        rate = float(1 / scale)
        return float(-beyond * rate - math.log1p(math.exp(-rate)))

    def error(self, *, beta: float) -> int:
        return min(self._inner.error(beta=beta), self.high - self.low)

    def _clamp(self, value: Any) -> Any:
        if isinstance(value, int):
            return min(max(value, self.low), self.high)
        return np.minimum(np.maximum(value, self.low), self.high)


def each_of(beta: float, dimension: int) -> float:
    """The probability for one coordinate that gives ``beta`` for the largest of independent ones."""
    exact = float(probability("beta", beta))
    return -math.expm1(math.log1p(-exact) / whole("dimension", dimension, least=1))
