"""Events of single laws: additive noise, responses, and mechanisms known only by a bound on their loss."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from hubbub.parameters import positive, whole
from hubbub.privacy import curves
from hubbub.privacy.curves import Curve
from hubbub.privacy.events.record import OPTIONAL_WHOLE, RATIONAL, WHOLE, Codec, Event, register


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceEvent(Event):
    """Continuous Laplace noise of a rational scale.

    Privacy:
        Claim: Pure(Δ/b) and Zcdp(ε + e^-ε − 1), for values within ``sensitivity`` Δ in L1; the worst case for every
            divergence is the whole shift in one coordinate.
        Proof: with b = 1 the hockey-stick curve of a shift d is h_d(t) = 1 − e^((t−d)/2) for t in [−d, d] and 0 beyond.
            For a shift (d₁, d₂) with d₁ ≥ d₂, and t ≥ 0, it is E[h_d₁(t − ℓ)], ℓ the loss of the second coordinate. If
            t − ℓ never passes d₁ this is 1 − e^((t−d₁−d₂)/2)(1 + d₂/2); otherwise at most half of 1 − e^((t−d₁−d₂)/2),
            from ℓ = d₂, and as much again, from ℓ between t − d₁ and d₂. Both are at most h of d₁ + d₂; t < 0 follows
            by symmetry, more coordinates by induction.
        Needs: real-valued noise, which only a proof has: our mechanisms use the discrete laws.
        Ref: Dwork, McSherry, Nissim, Smith 2006; Harrison, Manurangsi 2025.
    """

    tag: ClassVar[str] = "laplace"
    schema: ClassVar[Mapping[str, Codec]] = {"scale": RATIONAL, "sensitivity": RATIONAL}

    scale: Fraction
    sensitivity: Fraction = Fraction(1)

    def _check(self) -> None:
        self._set(scale=positive("scale", self.scale), sensitivity=positive("sensitivity", self.sensitivity))

    @property
    def epsilon(self) -> Fraction:
        return self.sensitivity / self.scale

    @property
    def rho(self) -> Fraction:
        return curves.laplace_rho_rounded_up(self.sensitivity / self.scale)

    def _curve(self, orders: Curve) -> Curve:
        return curves.laplace_rdp(orders, self.epsilon)

    def double_shift(self) -> Event:
        return replace(self, sensitivity=2 * self.sensitivity)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceEvent(Event):
    """Two-sided geometric noise P(k) ∝ e^(−|k|/scale) on integers.

    Privacy:
        Claim: Pure(Δ/s) and the ρ of ``curves.discrete_laplace_rho_rounded_up``, for integer vectors within
            ``sensitivity`` Δ in L1; the worst case for every divergence is the whole shift in one coordinate.
        Proof: as for the continuous law. With q = e^(−1/s) the hockey-stick curve of a shift d is linear in e^t between
            the points t = (d − 2k)/s, where it is 1 − q^k; a shift (d₁, d₂), d₁ ≥ d₂, has its kinks at the same points
            of d₁ + d₂, so only those with t ≥ 0 matter. There the second coordinate's loss is (d₂ − 2j)/s with mass
            1/(1+q) at j = 0 and (1−q)q^j/(1+q) inside, and the sum of mass·(1 − q^(k−j)) over j < k is at most
            (1 + q − 2q^k)/(1 + q) ≤ 1 − q^k for k ≤ d₂, and 1 − q^k·E[q^(−j)] ≤ 1 − q^k beyond.
        Needs: noise.discrete draws exactly from that law.
        Ref: Ghosh, Roughgarden, Sundararajan 2009; Harrison, Manurangsi 2025.
    """

    tag: ClassVar[str] = "discrete-laplace"
    schema: ClassVar[Mapping[str, Codec]] = {"scale": RATIONAL, "sensitivity": WHOLE}

    scale: Fraction
    sensitivity: int = 1

    def _check(self) -> None:
        self._set(scale=positive("scale", self.scale), sensitivity=whole("sensitivity", self.sensitivity, least=1))

    @property
    def epsilon(self) -> Fraction:
        return self.sensitivity / self.scale

    @property
    def rho(self) -> Fraction:
        return curves.discrete_laplace_rho_rounded_up(self.scale, self.sensitivity)

    def _curve(self, orders: Curve) -> Curve:
        return curves.discrete_laplace_rdp(orders, self.scale, self.sensitivity)

    def double_shift(self) -> Event:
        return replace(self, sensitivity=2 * self.sensitivity)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianEvent(Event):
    """Continuous Gaussian noise.

    Privacy:
        Claim: Zcdp(Δ²/2σ²), for values within ``sensitivity`` Δ in L2; no pure ε.
        Proof: the Rényi divergence of two normal laws is αΔ²/2σ² exactly; a vector is rotated into one coordinate.
        Needs: real-valued noise, which only a proof has: our mechanisms use the discrete law.
        Ref: Bun, Steinke 2016.
    """

    tag: ClassVar[str] = "gaussian"
    schema: ClassVar[Mapping[str, Codec]] = {"sigma": RATIONAL, "sensitivity": RATIONAL}

    sigma: Fraction
    sensitivity: Fraction = Fraction(1)

    def _check(self) -> None:
        self._set(sigma=positive("sigma", self.sigma), sensitivity=positive("sensitivity", self.sensitivity))

    @property
    def rho(self) -> Fraction:
        return (self.sensitivity / self.sigma) ** 2 / 2

    def double_shift(self) -> Event:
        return replace(self, sensitivity=2 * self.sensitivity)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianEvent(Event):
    """Gaussian noise P(k) ∝ e^(−k²/2σ²) on integers.

    ``sensitivity_squared`` is the square of the L2 sensitivity, so that the root of a whole number stays exact.
    ``dimension`` is 1 where one integer is released (the shift is a whole number and the exact δ(ε) applies); otherwise
    the number of coordinates, or None where it is not known: only ρ is used then.

    Privacy:
        Claim: Zcdp(Δ²/2σ²) for integer vectors within Δ in L2; no pure ε.
        Proof: Σ_k e^(−(k−c)²/2σ²) over integers is greatest at integer c (Poisson summation), so for integer shifts the
            discrete divergence is at most the continuous one; coordinates are independent and their squares add.
        Needs: noise.discrete draws exactly from that law; shifts are whole numbers in every coordinate.
        Ref: Canonne, Kamath, Steinke 2020, theorem 4.
    """

    tag: ClassVar[str] = "discrete-gaussian"
    schema: ClassVar[Mapping[str, Codec]] = {
        "sigma": RATIONAL,
        "sensitivity_squared": RATIONAL,
        "dimension": OPTIONAL_WHOLE,
    }

    sigma: Fraction
    sensitivity_squared: Fraction = Fraction(1)
    dimension: int | None = 1

    def _check(self) -> None:
        self._set(
            sigma=positive("sigma", self.sigma),
            sensitivity_squared=positive("sensitivity_squared", self.sensitivity_squared),
            dimension=None if self.dimension is None else whole("dimension", self.dimension, least=1),
        )

    @property
    def rho(self) -> Fraction:
        return self.sensitivity_squared / (2 * self.sigma * self.sigma)

    def double_shift(self) -> Event:
        return replace(self, sensitivity_squared=4 * self.sensitivity_squared)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class PureEvent(Event):
    """Anything that is only known to be ε-DP.

    Privacy:
        Claim: Pure(ε) and Zcdp(ε·tanh(ε/2)), which is at most ε²/2.
        Proof: randomized response at ε dominates every ε-DP pair of laws; its Rényi curve stays below α times its KL
            divergence ε·tanh(ε/2).
        Needs: the mechanism is ε-DP.
        Ref: Kairouz, Oh, Viswanath 2015; Bun, Steinke 2016; Harrison, Manurangsi 2025.
    """

    tag: ClassVar[str] = "pure"
    schema: ClassVar[Mapping[str, Codec]] = {"bound": RATIONAL}

    bound: Fraction

    def _check(self) -> None:
        self._set(bound=positive("bound", self.bound))

    @property
    def epsilon(self) -> Fraction:
        return self.bound

    @property
    def rho(self) -> Fraction:
        return curves.response_rho_rounded_up(self.bound)

    def _curve(self, orders: Curve) -> Curve:
        return curves.response_rdp(orders, self.bound)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponseEvent(Event):
    """One of ``categories`` answers: the truth with e^bound times the weight of each lie.

    Privacy:
        Claim: Pure(ε) and Zcdp(ε(e^ε − 1)/(e^ε + k − 1)) with k = min(categories, 6).
        Proof: the loss is ε with chance e^ε/(e^ε + k − 1), −ε with chance 1/(e^ε + k − 1), else 0; the bound holds for
            k ≤ 6, and more categories only erase the informative answers with a fixed probability.
        Needs: the drawn weights are within e^bound of each other.
        Ref: Warner 1965; Harrison, Manurangsi 2025.
    """

    tag: ClassVar[str] = "randomized-response"
    schema: ClassVar[Mapping[str, Codec]] = {"bound": RATIONAL, "categories": WHOLE}

    bound: Fraction
    categories: int = 2

    def _check(self) -> None:
        self._set(bound=positive("bound", self.bound), categories=whole("categories", self.categories, least=2))

    @property
    def epsilon(self) -> Fraction:
        return self.bound

    @property
    def rho(self) -> Fraction:
        return curves.response_rho_rounded_up(self.bound, self.categories)

    def _curve(self, orders: Curve) -> Curve:
        return curves.response_rdp(orders, self.bound, self.categories)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedRangeEvent(Event):
    """A mechanism whose privacy loss, for each pair of neighbours, lies in an interval of length ``range``.

    Privacy:
        Claim: Pure(ε) and Zcdp(ε²/8).
        Proof: the interval contains 0 (both laws have mass one), so the loss is at most ε; the Rényi bound is
            Hoeffding's lemma applied to the loss.
        Needs: the loss really lies in such an interval, as it does for the exponential mechanism.
        Ref: Durfee, Rogers 2019; Dong, Durfee, Rogers 2020; Cesar, Rogers 2021.
    """

    tag: ClassVar[str] = "bounded-range"
    schema: ClassVar[Mapping[str, Codec]] = {"range": RATIONAL}

    range: Fraction

    def _check(self) -> None:
        self._set(range=positive("range", self.range))

    @property
    def epsilon(self) -> Fraction:
        return self.range

    @property
    def rho(self) -> Fraction:
        return curves.bounded_range_rho(self.range)

    def _curve(self, orders: Curve) -> Curve:
        return curves.response_rdp(orders, self.range)
