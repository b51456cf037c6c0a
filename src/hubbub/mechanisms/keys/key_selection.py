"""The optimal ways to show unknown keys, the weighted one for units with many keys, and the choice between them."""

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hubbub import noise
from hubbub.mechanisms.additive.gaussian import Gaussian
from hubbub.mechanisms.base import Array, Needs, draw_each, settle
from hubbub.mechanisms.keys.threshold import (
    Counts,
    GaussianThreshold,
    KeySelection,
    LaplaceThreshold,
    any_of,
    key_order,
    least_threshold,
)
from hubbub.noise import laws
from hubbub.noise.exact import Exact, exactly, exp_minus
from hubbub.parameters import Real, between, positive, probability, whole
from hubbub.privacy import calibrate
from hubbub.privacy.events.event import ApproxEvent, Event, WithFailure
from hubbub.privacy.rounding import short_down
from hubbub.privacy.sensitivity import Neighbors, Norm

_BITS = 192
_GUARD = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedThreshold(KeySelection):
    """Geometric noise cut off at ±k, where k is the threshold less one: the least noise for which one unit's key stays
    hidden.

    Privacy:
        Claim: (epsilon, delta)-DP, as Pure(epsilon) outside a failure mass of at most delta.
        Proof: for one key at ε' = ε/keys_per_unit: shifting the cut law by one unit changes each mass by a factor
            within e^±ε', but for the one outcome at the end that the other law cannot give, of mass p = q^k (1-q) / (1
            + q - 2q^(k+1)). A key of one unit passes only at that very end. So each of the unit's keys fails with
            probability p, all together with 1 - (1-p)^cap.
        Needs: counts of distinct units after the cut; noise.discrete_laplace draws exactly (rejection cuts its tails
            exactly).
        Ref: Desfontaines, Voss, Gipson, Mandayam 2022.
    """

    @property
    def scale(self) -> Fraction:
        """The scale of the noise before it is cut."""
        return self.keys_per_unit / self.epsilon

    @property
    def reach(self) -> int:
        """The noise lies within ± this."""
        return self.threshold - 1

    def _calibrate(self) -> int:
        noise.discrete.check_scale("keys_per_unit / epsilon", self.scale)
        each = float(self.delta) / self.keys_per_unit
        rate = float(1 / self.scale)
        guess = max(1, math.floor(math.log((math.expm1(rate) + 2 * each) / ((math.exp(rate) + 1) * each)) / rate) - 1)
        return 1 + least_threshold(lambda k: any_of(self._end(k), self.keys_per_unit) <= self.delta, guess, least=1)

    def _end(self, reach: int) -> Fraction:
        """An upper bound, within 2^-190, on the mass at one end."""
        ratio, power = exp_minus(1 / self.scale), exp_minus(reach / self.scale)
        end = (power * ratio.complement()).bounds(_BITS)[1]
        total = (1 << _BITS) + ratio.bounds(_BITS)[0] - 2 * (ratio * power).bounds(_BITS)[1]
        return Fraction(end, total)

    @property
    def event(self) -> Event:
        return ApproxEvent(bound=self.epsilon, failure=any_of(self._end(self.reach), self.keys_per_unit))

    def noise_of(self, size: int) -> Array:
        return noise.truncated_laplace(scale=self.scale, reach=self.reach, size=size)

    def noise_log_mass(self, k: int) -> float:
        if abs(k) > self.reach:
            return -math.inf
        inside = 1 - 2 * laws.laplace_tail(self.reach + 1, self.scale)
        return laws.laplace_log_mass(k, self.scale) - math.log(inside)

    def noise_tail(self, k: int) -> float:
        beyond = laws.laplace_tail(self.reach + 1, self.scale)
        inside = laws.laplace_tail(k, self.scale) - beyond
        return min(1.0, max(0.0, inside / (1 - 2 * beyond)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalKeys(KeySelection):
    """Selection of keys alone, without counts: each is released with the greatest probability that (ε, δ) allows for
    its number of units.

    ``draw`` gives each shown key the count 0: nothing about its size is released.

    Privacy:
        Claim: (epsilon, delta)-DP, as Pure(epsilon) outside a failure mass of at most delta.
        Proof: for one key at ε' <= ε/keys_per_unit and δ' with 1 - (1-δ')^cap <= δ, the probabilities π₀ = 0 and
            π_{n+1} = min(e^ε' π_n + δ', 1 - e^-ε' (1 - π_n - δ'), 1) meet both (ε', δ') inequalities between n and n+1,
            by definition. A unit changes at most cap keys by one each, independently.
        Needs: counts of distinct units after the cut; noise.bernoulli is exact for irrational probabilities.
        Ref: Desfontaines, Voss, Gipson, Mandayam 2022.
    """

    each: Fraction = field(init=False, repr=False)
    """δ' for one key, rounded down."""

    @property
    def rate(self) -> Fraction:
        """ε' for one key: at most 40, since e^-40 is as good as nothing and a smaller ε' keeps the claim."""
        return min(self.epsilon / self.keys_per_unit, Fraction(40))

    def _calibrate(self) -> int:
        share = self.delta / self.keys_per_unit
        wider = Fraction(-math.expm1(math.log1p(-min(float(self.delta), 1 - 2.0**-53)) / self.keys_per_unit)) * (
            1 - Fraction(1, 1 << 40)
        )
        if wider > share and any_of(wider, self.keys_per_unit) <= self.delta:
            share = wider
        settle(self, each=short_down(share))
        return 0

    @property
    def event(self) -> Event:
        return ApproxEvent(bound=self.epsilon, failure=any_of(self.each, self.keys_per_unit))

    def chances(self) -> list[float]:
        """Return π₀, π₁, … as floats, up to the first that floats cannot distinguish from 1:
        ``draw`` takes the length only.
        """
        up, delta = math.exp(float(self.rate)), float(self.each)
        out = [0.0]
        while out[-1] < 1:
            after = min(up * out[-1] + delta, 1 - (1 - out[-1] - delta) / up, 1.0)
            if after <= out[-1]:
                break
            out.append(after)
        return out

    def chance(self, units: int) -> Exact:
        """Return π of a number of units, to any precision."""
        rate, delta = self.rate, self.each

        def bounds(bits: int) -> tuple[int, int]:
            wide = bits + _GUARD + math.ceil(-math.log2(float(delta)))
            one = 1 << wide
            down_low, down_high = exp_minus(rate).bounds(wide)
            d_low, d_high = exactly(delta).bounds(wide)
            low = high = 0
            for _ in range(units):
                low = min((low << wide) // down_high + d_low, one - (-(-(one - low - d_low) * down_high >> wide)), one)
                high = min(
                    -(-(high << wide) // down_low) + d_high, one - ((one - high - d_high) * down_low >> wide), one
                )
            return low >> wide - bits, -(-high >> wide - bits)

        return Exact(bounds)

    def noise_of(self, size: int) -> Array:
        return np.zeros(size, dtype=np.int64)

    def noise_log_mass(self, k: int) -> float:
        return 0.0 if k == 0 else -math.inf

    def noise_tail(self, k: int) -> float:
        return 1.0 if k <= 0 else 0.0

    def draw(self, value: Counts) -> dict[Hashable, int]:
        keys = sorted(value, key=key_order)
        sure = len(self.chances()) - 1
        chances = {units: self.chance(units) for units in {min(value[key], sure) for key in keys}}
        shown = noise.bernoulli_for_each([chances[min(value[key], sure)] for key in keys])
        return {key: 0 for key, passes in zip(keys, shown, strict=True) if passes}

    def repeat(self, value: Counts, *, times: int) -> list[dict[Hashable, int]]:
        return draw_each(self, value, times)

    def log_mass(self, value: Counts, output: Counts | tuple[tuple[Hashable, int], ...]) -> float:
        output = dict(output)
        if not set(output) <= set(value):
            return -math.inf
        chances = self.chances()
        total = 0.0
        for key, units in value.items():
            chance = chances[min(units, len(chances) - 1)]
            part = chance if key in output else 1 - chance
            total += math.log(part) if part > 0 else -math.inf
        return total

    def half_point(self) -> float:
        return float(next(units for units, chance in enumerate(self.chances()) if chance >= 1 / 2))

    def error(self, *, beta: float) -> float:
        exact = float(probability("beta", beta))
        return float(next(units for units, chance in enumerate(self.chances()) if chance >= 1 - exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedGaussianThreshold(KeySelection):
    """A unit with t keys gives each the weight 1/√t, so that its L2 norm is 1 however many it holds, up to the cap.

    The value maps keys to sums of whole weights, in steps of 2^-weight_bits, rounded down (``weigh``); so does the
    answer.

    Privacy:
        Claim: (epsilon, delta/2)-DP and its zCDP on shared keys, outside a failure mass of at most delta/2; with rho,
            rho-zCDP in place of the former.
        Proof: t·⌊2^b/√t⌋² <= 2^2b for every t, so the L2 sensitivity is at most 1 in weights. A unit with t new keys
            shows one with chance at most 1 - (1 - P(w_t + N >= T))^t; T covers the greatest of these over t = 1 … cap.
        Needs: weights from ``weigh`` (the norm alone does not bound new keys); noise.discrete_gaussian draws exactly.
        Ref: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020 (weighted Gaussian).
    """

    @property
    def needs(self) -> Needs:
        return Needs(norm=Norm.WEIGHTS, sensitivity=Fraction(self.keys_per_unit), neighbors=Neighbors.ADD_REMOVE)

    rho: Fraction | None = None
    """The zCDP of shared keys, for accounts that count in it; None: the least noise for (epsilon, delta/2)."""
    weight_bits: int = 20
    """Weights are whole steps of 2^-weight_bits."""
    inner: Gaussian = field(init=False, repr=False)
    """The mechanism on shared keys, in steps of weight."""

    @property
    def event(self) -> Event:
        inner = self.inner
        return WithFailure(event=inner.event, failure=self._failure(self.threshold, inner.sigma))

    def weight(self, keys: int) -> int:
        """Return the weight of each key of a unit that holds ``keys`` of them, in steps: ⌊2^weight_bits / √keys⌋."""
        return math.isqrt((1 << 2 * self.weight_bits) // keys)

    def weigh(self, keys_of_units: Iterable[Iterable[Hashable]]) -> dict[Hashable, int]:
        """Sum up the weights of units whose keys were cut to the cap already."""
        total: dict[Hashable, int] = {}
        for held in keys_of_units:
            distinct = set(held)
            for key in distinct:
                total[key] = total.get(key, 0) + self.weight(len(distinct))
        return total

    def _calibrate(self) -> int:
        whole("weight_bits", self.weight_bits, least=1, most=30)
        squared = Fraction(1 << 2 * self.weight_bits)
        sigma = (
            calibrate.gaussian_sigma_vector(
                epsilon=self.epsilon, delta=self.delta / 2, sensitivity_squared=squared, coordinates=self.keys_per_unit
            )
            if self.rho is None
            else calibrate.gaussian_sigma_zcdp(rho=self.rho, sensitivity_squared=squared)
        )
        settle(self, inner=Gaussian(sigma=sigma, sensitivity_squared=squared))
        half = self.delta / 2
        guess = _first(lambda t: self._about(t, sigma) <= half, 0, math.ceil(40 * sigma) + (1 << self.weight_bits))
        low, high, step = guess - 1, guess, 1
        while self._failure(high, sigma) > half:
            low, high, step = high, high + step, 2 * step
        while low > 0 and self._failure(low, sigma) <= half:
            low, high, step = max(0, low - step), low, 2 * step
        return _first(lambda t: self._failure(t, sigma) <= half, low, high)

    def _about(self, threshold: int, sigma: Fraction) -> float:
        """Compute the failure mass in floats, to search for the threshold."""
        tails = [
            laws.gaussian_tail_rounded_up(threshold - self.weight(t), sigma) for t in range(1, self.keys_per_unit + 1)
        ]
        return max(-math.expm1(t * math.log1p(-min(tail, 1 - 2.0**-53))) for t, tail in enumerate(tails, start=1))

    def _failure(self, threshold: int, sigma: Fraction) -> Fraction:
        return max(
            any_of(Fraction(laws.gaussian_tail_rounded_up(threshold - self.weight(keys), sigma)), keys)
            for keys in range(1, self.keys_per_unit + 1)
        )

    def noise_of(self, size: int) -> Array:
        return noise.gaussian_for_each(sigma=self.inner.sigma, size=size)

    def noise_log_mass(self, k: int) -> float:
        return laws.gaussian_log_mass(k, self.inner.sigma)

    def noise_tail(self, k: int) -> float:
        return laws.gaussian_tail(k, self.inner.sigma)

    def half_point(self) -> float:
        return self.threshold / self.weight(self.keys_per_unit)

    def error(self, *, beta: float) -> float:
        exact = 2 * float(between("beta", beta, 0, 0.5, low_open=True, high_open=True))
        return (self.threshold + laws.gaussian_quantile(exact, self.inner.sigma)) / self.weight(self.keys_per_unit)


def _first(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number above ``low`` that is enough; ``high`` is."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def select_keys(*, epsilon: Real, delta: Real, keys_per_unit: int = 1, counts: bool = True) -> KeySelection:
    """The strategy that shows a key at the smallest number of units, for units that hold ``keys_per_unit`` keys each.

    The choice is analytic: it depends on the parameters alone. Without ``counts`` only the keys are released, and the
    weighted Gaussian is among the candidates; it takes weights, as its ``needs`` say, and not counts.
    """
    exact = {"epsilon": positive("epsilon", epsilon), "delta": probability("delta", delta)}
    kinds: tuple[type[KeySelection], ...] = (OptimalKeys, WeightedGaussianThreshold)
    if counts:
        kinds = (TruncatedThreshold, LaplaceThreshold, GaussianThreshold)
    return min((kind(**exact, keys_per_unit=keys_per_unit) for kind in kinds), key=lambda kind: kind.half_point())
