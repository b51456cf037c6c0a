"""Private keys (partition selection): a key is released if its noisy number of units reaches a threshold.

The value is a mapping from key to the number of distinct units that hold it, after each unit was cut to
``keys_per_unit`` keys; only keys that someone holds are in it. The noisy count that is released is the very draw that
passed. Keys come out in their own order, never in the data's.

The danger is a key that only one unit holds: if it appears, so does that unit. A unit may bring up to ``keys_per_unit``
such keys at once, and δ covers all of them: the chance that at least one of t new keys passes is 1 - (1 - p)^t,
greatest at the cap.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive.gaussian import Gaussian
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import exact_sum
from hubbub.noise import laws
from hubbub.parameters import positive, probability, whole
from hubbub.privacy.events.event import DiscreteLaplaceEvent, Event, WithFailure
from hubbub.privacy.rounding import short_up
from hubbub.privacy.sensitivity import Neighbors, Norm

Counts = Mapping[Hashable, int]
Shown = dict[Hashable, int]

LEAST_DELTA = Fraction(1, 1 << 100)
_TAIL_BITS = 192


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySelection(ABC):
    """The common part of selections of unknown keys."""

    epsilon: Fraction
    delta: Fraction
    keys_per_unit: int = 1
    threshold: int = field(init=False)
    """The least noisy count that is shown."""

    def __post_init__(self) -> None:
        settle(self, epsilon=positive("epsilon", self.epsilon), delta=probability("delta", self.delta))
        if self.delta < LEAST_DELTA:
            raise ParameterError("delta", "at least 2^-100 for the selection of unknown keys", self.delta)
        whole("keys_per_unit", self.keys_per_unit, least=1, most=1 << 20)
        settle(self, threshold=self._calibrate())

    @abstractmethod
    def _calibrate(self) -> int:
        """The threshold, once and for all, from the parameters alone."""

    @property
    def needs(self) -> Needs:
        return Needs(norm=Norm.UNITS, sensitivity=Fraction(self.keys_per_unit), neighbors=Neighbors.ADD_REMOVE)

    @property
    @abstractmethod
    def event(self) -> Event:
        """The cost of one run."""

    @abstractmethod
    def noise_of(self, size: int) -> Array:
        """Draw independent noise for each of ``size`` keys."""

    @abstractmethod
    def noise_log_mass(self, k: int) -> float:
        """ln P(noise = k)."""

    @abstractmethod
    def noise_tail(self, k: int) -> float:
        """P(noise >= k)."""

    def draw(self, value: Counts) -> Shown:
        keys = sorted(value, key=key_order)
        noisy = exact_sum(np.array([value[key] for key in keys], dtype=np.int64), self.noise_of(len(keys)))
        assert not isinstance(noisy, int)
        return {key: int(count) for key, count in zip(keys, noisy, strict=True) if count >= self.threshold}

    def repeat(self, value: Counts, *, times: int) -> list[Shown]:
        keys = sorted(value, key=key_order)
        exact = np.array([value[key] for key in keys], dtype=np.int64)
        noisy = exact + self.noise_of(times * len(keys)).reshape(times, len(keys))
        shown = (noisy >= self.threshold).tolist()
        return [
            {key: count for key, count, passes in zip(keys, counts, passed, strict=True) if passes}
            for counts, passed in zip(noisy.tolist(), shown, strict=True)
        ]

    def log_mass(self, value: Counts, output: Counts | tuple[tuple[Hashable, int], ...]) -> float:
        output = dict(output)
        if not set(output) <= set(value) or any(count < self.threshold for count in output.values()):
            return -math.inf
        total = 0.0
        for key, count in value.items():
            if key in output:
                total += self.noise_log_mass(output[key] - count)
            else:
                hidden = 1 - self.noise_tail(self.threshold - count)
                total += math.log(hidden) if hidden > 0 else -math.inf
        return total

    def half_point(self) -> float:
        """Return the number of units at which a key is released half of the time: strategies are compared by it."""
        return float(self.threshold)

    def error(self, *, beta: float) -> float:
        """Return the number of units with which a key is released with probability at least 1 - ``beta``."""
        exact = float(probability("beta", beta))
        units = self.threshold
        while 1 - self.noise_tail(self.threshold - units) > exact:
            units += 1
        return float(units)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceThreshold(KeySelection):
    """Discrete Laplace noise on the counts; the threshold comes from the exact tail q^(T-1) / (1 + q).

    Privacy:
        Claim: Pure(epsilon) outside a failure mass of at most delta.
        Proof: on keys that both neighbours hold it is Geometric with L1 sensitivity keys_per_unit. A key that only one
            of them holds has one unit and passes with probability P(1 + Z >= T); the chance that any of the at most
            keys_per_unit such keys passes is the failure mass. Without one of them nothing else depends on those keys.
        Needs: counts of distinct units after the cut; noise.discrete_laplace draws exactly.
        Ref: Korolova, Kenthapadi, Mishra, Ntoulas 2009.
    """

    @property
    def scale(self) -> Fraction:
        """The scale of the noise."""
        return self.keys_per_unit / self.epsilon

    @property
    def event(self) -> Event:
        base = DiscreteLaplaceEvent(scale=self.scale, sensitivity=self.keys_per_unit)
        return WithFailure(event=base, failure=any_of(self._passes(self.threshold), self.keys_per_unit))

    def _calibrate(self) -> int:
        noise.discrete.check_scale("keys_per_unit / epsilon", self.scale)
        each = float(self.delta) / self.keys_per_unit
        passing = each * (1 + math.exp(-float(1 / self.scale)))
        guess = max(2, 1 + math.floor(float(self.scale) * -math.log(passing)) - 2)
        return least_threshold(lambda t: any_of(self._passes(t), self.keys_per_unit) <= self.delta, guess)

    def _passes(self, threshold: int) -> Fraction:
        """Return an upper bound, within 2^-192, on the probability that one unit's own key is released."""
        _, high = laws.laplace_tail_exactly(threshold - 1, self.scale).bounds(_TAIL_BITS)
        return Fraction(high, 1 << _TAIL_BITS)

    def noise_of(self, size: int) -> Array:
        return noise.laplace_for_each(scale=self.scale, size=size)

    def noise_log_mass(self, k: int) -> float:
        return laws.laplace_log_mass(k, self.scale)

    def noise_tail(self, k: int) -> float:
        return laws.laplace_tail(k, self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianThreshold(KeySelection):
    """Discrete Gaussian noise on the counts: less noise than Laplace when a unit holds many keys.

    Privacy:
        Claim: (epsilon, delta/2)-DP and its zCDP on shared keys, outside a failure mass of at most delta/2; with rho,
            rho-zCDP in place of the former.
        Proof: on keys that both neighbours hold it is Gaussian with L2² sensitivity keys_per_unit. New keys as in
            LaplaceThreshold, with an upper bound on the discrete Gaussian's tail.
        Needs: counts of distinct units after the cut; noise.discrete_gaussian draws exactly.
        Ref: Google's differential privacy libraries, delta for thresholding (2020); Canonne, Kamath, Steinke 2020.
    """

    rho: Fraction | None = None
    """The zCDP of shared keys, for accounts that count in it; None: the least noise for (epsilon, delta/2)."""
    inner: Gaussian = field(init=False, repr=False)
    """The mechanism on shared keys."""

    @property
    def event(self) -> Event:
        return WithFailure(event=self.inner.event, failure=self._failure(self.threshold, self.inner.sigma))

    def _calibrate(self) -> int:
        inner = (
            Gaussian.at(epsilon=self.epsilon, delta=self.delta / 2, coordinates=self.keys_per_unit)
            if self.rho is None
            else Gaussian.at_rho(rho=self.rho, sensitivity_squared=self.keys_per_unit)
        )
        settle(self, inner=inner)
        sigma = inner.sigma
        each = float(self.delta) / 2 / self.keys_per_unit
        guess = max(2, laws.gaussian_quantile(min(2 * each, 0.5), sigma) - 2)
        return least_threshold(lambda t: self._failure(t, sigma) <= self.delta / 2, guess)

    def _failure(self, threshold: int, sigma: Fraction) -> Fraction:
        return any_of(Fraction(laws.gaussian_tail_rounded_up(threshold - 1, sigma)), self.keys_per_unit)

    def noise_of(self, size: int) -> Array:
        return noise.gaussian_for_each(sigma=self.inner.sigma, size=size)

    def noise_log_mass(self, k: int) -> float:
        return laws.gaussian_log_mass(k, self.inner.sigma)

    def noise_tail(self, k: int) -> float:
        return laws.gaussian_tail(k, self.inner.sigma)


def any_of(each: Fraction, times: int) -> Fraction:
    """1 - (1 - each)^times, rounded up: the chance that at least one of independent events happens."""
    if each >= 1:
        return Fraction(1)
    if times == 1:
        return short_up(each)
    product = Fraction(1)
    for bit in bin(times)[2:]:
        product = product * product
        if bit == "1":
            product *= 1 - each
        product = Fraction(math.floor(product * (1 << _TAIL_BITS * 2)), 1 << _TAIL_BITS * 2)
    return short_up(min(1 - product, times * each))


def least_threshold(enough: Callable[[int], bool], guess: int, *, least: int = 2) -> int:
    """The least whole number from ``least`` on that is enough, searched from a guess."""
    while guess > least and enough(guess - 1):
        guess -= 1
    while not enough(guess):
        guess += 1
    return guess


def key_order(key: Hashable) -> tuple[str, str]:
    """An order on keys of any kind that does not depend on the data."""
    return type(key).__name__, key if isinstance(key, str) else repr(key)
