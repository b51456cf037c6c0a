"""Divide a budget among things that are measured together, and calibrate each for its share.

Privacy:
    Claim: what is calibrated for (ε, δ) costs no more than that over all of it.
    Proof: with weights that add up to w, parts at ε · wᵢ / w each, rounded down, add up to at most ε (pure
        composition); at ρ · wᵢ / w each to at most a ρ that gives (ε, δ) (zCDP). One vector alone is calibrated for
        (ε, δ) exactly. Which of the ways is taken (``privacy.ways``) follows from sensitivities, ε, δ and balances
        that whoever asks may see.
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


def calibrate_alike(
    measured: Sequence[Calibratable[M]], *, epsilon: Fraction, weights: Sequence[Fraction] | None = None
) -> tuple[M, ...]:
    """Calibrate everything for ε together, purely: each part for its weight's share, an equal one without weights."""
    return calibrate_pure(measured, _shares(len(measured), weights), epsilon=epsilon)


def calibrate_gaussian(
    measured: Sequence[Calibratable[M]],
    *,
    epsilon: Fraction,
    delta: Fraction,
    weights: Sequence[Fraction] | None = None,
) -> tuple[M, ...]:
    """Calibrate everything for (ε, δ) together, by zCDP; one part alone by its own law, where that is better known.

    One rule for δ: all of it is for the conversion from ρ to (ε, δ), and none is divided among the parts. A part with a
    failure mass of its own (a selection of keys) is no part of this: whoever has one takes its mass off δ first.
    """
    alone = measured[0].calibrate_alone(epsilon, delta) if len(measured) == 1 else None
    if alone is not None:
        return (alone,)
    return calibrate_zcdp(measured, _shares(len(measured), weights), epsilon=epsilon, delta=delta)


def choose_as_before(pure: Sequence[M], other: Sequence[M], budget: Budget) -> Sequence[M]:
    """Choose as the first version did, which stored no choice: its answers are read again with its noise.

    It took pure noise where that has the lesser standard deviations and the account's ρ could ever pay for it.
    """
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
    """Return whether an account could ever pay for them by its ρ alone, as accounts of the first version did."""
    charges = [terms.charge_of(mechanism.event) for mechanism in mechanisms]
    loss, failure = sum(charge.loss for charge in charges), sum(charge.failure for charge in charges)
    return loss <= terms.loss_cap and failure <= terms.failure_cap


def deviation(mechanism: Costly) -> float:
    """Return the standard deviation of the noise, or the error of a choice: what calibrations are compared by."""
    found = getattr(mechanism, "standard_deviation", None)
    return mechanism.error(beta=0.05) if found is None else float(found)
