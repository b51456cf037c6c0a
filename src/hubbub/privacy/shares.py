"""Divide a budget among things that are measured together, and calibrate each for its share.

Privacy:
    Claim: what is calibrated for (ε, δ) costs no more than that over all of it.
    Proof: with weights that add up to w, parts at ε · wᵢ / w each, rounded down, add up to at most ε (pure
        composition); at ρ · wᵢ / w each to at most a ρ that gives (ε, δ) (zCDP). One vector alone is calibrated for
        (ε, δ) exactly. Which of the ways is taken follows from sensitivities, ε and δ, which are public.
    Needs: the events of the mechanisms; privacy.convert for ρ.
    Ref: Dwork et al. 2006; Bun, Steinke 2016.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import Budget, Filter, whole_units_rounded_down


class Costly(Protocol):
    """A mechanism, as far as its price and its error go."""

    @property
    def event(self) -> Event:
        """Return what a run costs."""

    def error(self, *, beta: float) -> float:
        """Return what its error exceeds with probability at most ``beta``."""


M = TypeVar("M", bound=Costly)
M_co = TypeVar("M_co", bound=Costly, covariant=True)


class Calibratable(Protocol[M_co]):
    """Something that is measured, before it is known with how much noise."""

    def calibrate_pure(self, epsilon: Fraction) -> M_co:
        """Return the mechanism that costs this ε."""

    def calibrate_zcdp(self, rho: Fraction) -> M_co:
        """Return the mechanism that costs this ρ."""

    def calibrate_alone(self, epsilon: Fraction, delta: Fraction) -> M_co | None:
        """Return the mechanism that is (ε, δ)-DP by itself, where its law is known better than by its ρ."""


def calibrate(
    measured: Sequence[Calibratable[M]],
    budget: Budget,
    *,
    epsilon: Fraction,
    delta: Fraction,
    weights: Sequence[Fraction] | None = None,
) -> tuple[M, ...]:
    """Calibrate everything for (ε, δ) together: purely, or by zCDP, whichever errs less of what the account could pay.

    Each part gets its weight's share, an equal one where none are given.

    One rule for δ: all of it is for the conversion from ρ to (ε, δ), and none is divided among the parts. A part with a
    failure mass of its own (a selection of keys) is no part of this: whoever has one takes its mass off δ first. With
    δ = 0, here or in the account, everything is pure.
    """
    shares = _shares(len(measured), weights)
    pure = calibrate_pure(measured, shares, epsilon=epsilon)
    if budget.delta == 0 or delta == 0:
        return pure
    alone = measured[0].calibrate_alone(epsilon, delta) if len(measured) == 1 else None
    other = (alone,) if alone is not None else calibrate_zcdp(measured, shares, epsilon=epsilon, delta=delta)
    ratios = [deviation(new) / deviation(old) for new, old in zip(other, pure, strict=True)]
    return pure if math.prod(ratios) >= 1 and is_payable(pure, budget.filter) else other


def calibrate_pure(
    measured: Sequence[Calibratable[M]], shares: Sequence[Fraction], *, epsilon: Fraction
) -> tuple[M, ...]:
    """Calibrate each part for its share of ε, in whole units of an account."""
    return tuple(
        part.calibrate_pure(whole_units_rounded_down(epsilon * share))
        for part, share in zip(measured, shares, strict=True)
    )


def calibrate_zcdp(
    measured: Sequence[Calibratable[M]], shares: Sequence[Fraction], *, epsilon: Fraction, delta: Fraction
) -> tuple[M, ...]:
    """Calibrate each part for its share of the ρ that converts into (ε, δ)."""
    rho = rho_rounded_down(epsilon, delta)
    return tuple(part.calibrate_zcdp(rho * share) for part, share in zip(measured, shares, strict=True))


def _shares(parts: int, weights: Sequence[Fraction] | None) -> list[Fraction]:
    if weights is None:
        return [Fraction(1, parts)] * parts
    whole = sum(weights, Fraction(0))
    return [Fraction(weight) / whole for weight in weights]


def is_payable(mechanisms: Sequence[Costly], terms: Filter) -> bool:
    """Return whether an account could ever pay for them: in zCDP a pure mechanism may cost more than there is."""
    charges = [terms.charge_of(mechanism.event) for mechanism in mechanisms]
    loss, failure = sum(charge.loss for charge in charges), sum(charge.failure for charge in charges)
    return loss <= terms.loss_cap and failure <= terms.failure_cap


def deviation(mechanism: Costly) -> float:
    """Return the standard deviation of the noise, or the error of a choice: what calibrations are compared by."""
    found = getattr(mechanism, "standard_deviation", None)
    return mechanism.error(beta=0.05) if found is None else float(found)
