"""Five measures of privacy loss, their order, their conversions and how they are printed.

    Pure(ε) ──► Zcdp(ρ) ──► Rdp(curve) ──► Approx(ε, δ) ◄── Pld(distribution)

Arrows are proven implications. ``a.implies(b)`` says that whatever satisfies ``a`` satisfies ``b``; ``a <= b`` is the
same question where an arrow exists, so neither of two losses need be below the other. Every conversion rounds towards
privacy: the guarantee it returns is one that holds.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import AccountingError, ParameterError
from hubbub.parameters import between, non_negative
from hubbub.privacy import convert, curves
from hubbub.privacy.rounding import exp_down, float_down, short_up

_ONE, _ZERO = Fraction(1), Fraction(0)


def number(value: Fraction | float, *, digits: int = 6) -> str:
    """Six digits for a person, or more: 0.5, 1e-9, 1.36292."""
    text = f"{float(value):.{digits}g}"
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else text


def _delta(value: object) -> Fraction:
    return between("delta", value, 0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss(ABC):
    """A guarantee; smaller is stronger."""

    @abstractmethod
    def delta_at(self, epsilon: Fraction | float) -> Fraction:
        """A δ for which the guarantee gives (ε, δ), rounded up; 1 where it gives nothing."""

    @abstractmethod
    def epsilon_at(self, delta: Fraction | float) -> Fraction:
        """An ε for which the guarantee gives (ε, δ), rounded up; an AccountingError where there is none."""

    def to_approx(self, *, delta: Fraction | float) -> "Approx":
        """The (ε, δ) guarantee at a δ."""
        return Approx(epsilon=self.epsilon_at(delta), delta=_delta(delta))

    def implies(self, other: "Loss") -> bool:
        """Return True if everything that satisfies this loss satisfies ``other``, as far as is proven here."""
        rule = _ARROWS.get((type(self), type(other)))
        return rule is not None and rule(self, other)

    def __le__(self, other: object) -> bool:
        if not isinstance(other, Loss) or (type(self), type(other)) not in _ARROWS:
            return NotImplemented
        return self.implies(other)

    def _none(self, delta: Fraction) -> AccountingError:
        sentence = f"The guarantee ({self}) gives no finite ε at δ = {number(delta)}."
        return AccountingError(sentence, loss=self, delta=delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pure(Loss):
    """ε-differential privacy: no event's probability changes by more than a factor e^ε."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))

    def delta_at(self, epsilon: Fraction | float) -> Fraction:
        return response_delta_rounded_up(self.epsilon, non_negative("epsilon", epsilon))

    def epsilon_at(self, delta: Fraction | float) -> Fraction:
        _delta(delta)
        return self.epsilon

    def to_zcdp(self) -> "Zcdp":
        """ε·tanh(ε/2), the zCDP of randomized response, which dominates every ε-DP law."""
        return Zcdp(rho=curves.response_rho_rounded_up(self.epsilon)) if self.epsilon else Zcdp(rho=_ZERO)

    def __str__(self) -> str:
        return f"ε = {number(self.epsilon)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approx(Loss):
    """(ε, δ)-differential privacy: ε, but for events of probability at most δ."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _delta(self.delta))

    def delta_at(self, epsilon: Fraction | float) -> Fraction:
        rest = response_delta_rounded_up(self.epsilon, non_negative("epsilon", epsilon))
        return self.delta + (1 - self.delta) * rest

    def epsilon_at(self, delta: Fraction | float) -> Fraction:
        if _delta(delta) < self.delta:
            raise self._none(_delta(delta))
        return self.epsilon

    def __str__(self) -> str:
        return f"ε = {number(self.epsilon)}, δ = {number(self.delta)}" if self.delta else f"ε = {number(self.epsilon)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zcdp(Loss):
    """ρ-zero-concentrated differential privacy, outside a failure mass: Rényi divergence at most αρ at every α."""

    rho: Fraction
    failure: Fraction = _ZERO

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", non_negative("rho", self.rho))
        object.__setattr__(self, "failure", between("failure", self.failure, 0, 1))

    def delta_at(self, epsilon: Fraction | float) -> Fraction:
        return min(_ONE, self.failure + convert.delta_of_rho_rounded_up(self.rho, non_negative("epsilon", epsilon)))

    def epsilon_at(self, delta: Fraction | float) -> Fraction:
        rest = _delta(delta) - self.failure
        if rest <= 0 and (self.rho or rest < 0):
            raise self._none(_delta(delta))
        return convert.epsilon_of_rho_rounded_up(self.rho, rest)

    def __str__(self) -> str:
        return f"ρ = {number(self.rho)}" + (f", δ₀ = {number(self.failure)}" if self.failure else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rdp(Loss):
    """Rényi differential privacy at a list of orders, outside a failure mass: *every* order holds."""

    orders: tuple[float, ...]
    values: tuple[float, ...]
    failure: Fraction = _ZERO

    def __post_init__(self) -> None:
        orders = np.asarray(self.orders, dtype=np.float64)
        rising = orders.size > 0 and bool((orders > 1).all() and (np.diff(orders) > 0).all())
        if not rising or len(self.values) != orders.size:
            raise ParameterError("orders", "rising numbers above 1, one for each value", self.orders)
        if not (np.asarray(self.values) >= 0).all():
            raise ParameterError("values", "numbers at least 0", self.values)
        object.__setattr__(self, "failure", between("failure", self.failure, 0, 1))

    def delta_at(self, epsilon: Fraction | float) -> Fraction:
        curve = convert.delta_of_curve_rounded_up(*self._arrays(), non_negative("epsilon", epsilon))
        return min(_ONE, self.failure + Fraction(curve))

    def epsilon_at(self, delta: Fraction | float) -> Fraction:
        rest = _delta(delta) - self.failure
        epsilon = convert.epsilon_of_curve_rounded_up(*self._arrays(), rest) if rest > 0 else np.inf
        if not np.isfinite(epsilon):
            raise self._none(_delta(delta))
        return Fraction(epsilon)

    def value_at(self, order: float) -> float:
        """The bound at any order: divergences grow with the order, so the next one listed holds."""
        place = int(np.searchsorted(self.orders, order))
        return self.values[place] if place < len(self.orders) else float("inf")

    def _arrays(self) -> tuple[curves.Curve, curves.Curve]:
        return np.asarray(self.orders, dtype=np.float64), np.asarray(self.values, dtype=np.float64)

    def __str__(self) -> str:
        first, last = number(self.orders[0]), number(self.orders[-1])
        beside = f", δ₀ = {number(self.failure)}" if self.failure else ""
        return f"Rényi curve at {len(self.orders)} orders, α = {first} to {last}{beside}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pld(Loss):
    """A privacy loss distribution of dp_accounting, outside a failure mass.

    ``rounding`` is added to every δ for the float error of its convolutions, which are not pessimistic by themselves;
    ``pure`` is the sum of ε where every event has one: beyond it there is no loss to be uncertain about.
    """

    distribution: Any
    failure: Fraction = _ZERO
    rounding: Fraction = _ZERO
    pure: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "failure", between("failure", self.failure, 0, 1))
        object.__setattr__(self, "rounding", between("rounding", self.rounding, 0, 1))

    def delta_at(self, epsilon: Fraction | float) -> Fraction:
        at = non_negative("epsilon", epsilon)
        if self.pure is not None and at >= self.pure:
            return self.failure
        inside = Fraction(max(0.0, float(self.distribution.get_delta_for_epsilon(float_down(at)))))
        return min(_ONE, self.failure + self.rounding + inside)

    def epsilon_at(self, delta: Fraction | float) -> Fraction:
        rest = _delta(delta) - self.failure
        found = [] if self.pure is None or rest < 0 else [self.pure]
        if rest > self.rounding:
            near = float(self.distribution.get_epsilon_for_delta(float_down(rest - self.rounding)))
            found += [Fraction(near)] if math.isfinite(near) else []
        if not found:
            raise self._none(_delta(delta))
        return min(found)

    def __str__(self) -> str:
        return "privacy loss distribution" + (f", δ₀ = {number(self.failure)}" if self.failure else "")


def response_delta_rounded_up(claim: Fraction, epsilon: Fraction) -> Fraction:
    """The δ at ``epsilon`` of randomized response at ``claim``: (e^c − e^ε)/(1 + e^c), and 0 from c on."""
    if epsilon >= claim:
        return _ZERO
    # With s = e^-c this is (1 − e^(ε−c))/(1 + s): both exponentials are rounded down.
    return short_up((1 - exp_down(epsilon - claim, bits=240)) / (1 + exp_down(-claim)))


def _approx(a: Any, b: Any) -> bool:
    return bool(a.delta_at(b.epsilon) <= b.delta)


def _zcdp_zcdp(a: Any, b: Any) -> bool:
    return bool(a.rho <= b.rho and a.failure <= b.failure)


def _pure_rdp(a: Any, b: Any) -> bool:
    curve = curves.response_rdp(np.asarray(b.orders, dtype=np.float64), a.epsilon)
    return bool((curve <= np.asarray(b.values)).all())


def _zcdp_rdp(a: Any, b: Any) -> bool:
    held = all(a.rho * Fraction(order) <= value for order, value in zip(b.orders, b.values, strict=True))
    return bool(held and a.failure <= b.failure)


def _rdp_rdp(a: Any, b: Any) -> bool:
    held = all(a.value_at(order) <= value for order, value in zip(b.orders, b.values, strict=True))
    return bool(held and a.failure <= b.failure)


_ARROWS: dict[tuple[type[Loss], type[Loss]], Callable[[Any, Any], bool]] = {
    (Pure, Pure): lambda a, b: bool(a.epsilon <= b.epsilon),
    (Pure, Approx): _approx,
    (Pure, Zcdp): lambda a, b: _zcdp_zcdp(a.to_zcdp(), b),
    (Pure, Rdp): _pure_rdp,
    (Approx, Pure): lambda a, b: bool(a.delta == 0 and a.epsilon <= b.epsilon),
    (Approx, Approx): _approx,
    (Zcdp, Zcdp): _zcdp_zcdp,
    (Zcdp, Rdp): _zcdp_rdp,
    (Zcdp, Approx): _approx,
    (Rdp, Rdp): _rdp_rdp,
    (Rdp, Approx): _approx,
    (Pld, Approx): _approx,
}
