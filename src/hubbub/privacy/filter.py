"""Budgets, and filters for questions that are chosen by earlier answers: integers in, and refusals that are proven.

A filter is the frozen terms of an account. What has been spent is a frozen ``Spent`` of whole numbers that a ledger
can store and compare inside one transaction; nothing else is remembered, so the hundred-thousandth charge costs no
more than the first. ε and ρ are counted in units of 2^-40, δ in units of 2^-62; charges are rounded up, caps down.

Privacy:
    Claim: however questions are chosen, the answers that a filter lets through are together (ε, δ)-DP.
    Proof: the sum of charges stays below a fixed cap on every path. Pure: losses add, so the total is at most ε. zCDP:
        at each order α the moment e^((α−1)(loss − α·Σρ)) is a supermartingale, so D_α ≤ α·cap at *every* order, and the
        conversion may use the best. Failure masses: a run either had a failure, of chance at most the pool, or every
        draw was from the covered laws; with φ the indicator of an outcome times the chance of no failure,
        E[φ] ≤ e^ε·E'[φ] + δ₁ for those. So δ = δ₁ + pool: half for each.
    Needs: one neighbouring relation; each event's ρ and δ₀ hold whatever was answered before (their mechanisms are
        calibrated before they see data). The cap is one number, never "some Rényi order still fits", which lets the
        answers choose the order and really spends more than δ.
    Ref: Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021; Whitehouse, Ramdas, Rogers, Wu 2023.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from hubbub.errors import AccountingError, BudgetExceeded, ParameterError
from hubbub.parameters import Real, between, positive, probability
from hubbub.privacy import convert
from hubbub.privacy.events.record import Event
from hubbub.privacy.loss import Approx, Loss, Pure, number
from hubbub.privacy.sensitivity import Neighbors


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """A total (ε, δ), for neighbours of one kind: ``Budget(5)``, ``Budget(epsilon=4, delta=1e-9)``."""

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors

    def __init__(self, epsilon: Real, *, delta: Real = 0, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> None:
        """Take numbers of any kind at their exact values: the fields are Fractions."""
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "delta", between("delta", delta, 0, 1, high_open=True))
        if not isinstance(neighbors, Neighbors):
            raise ParameterError("neighbors", "one of the Neighbors", neighbors)
        object.__setattr__(self, "neighbors", neighbors)

    @property
    def filter(self) -> "Filter":
        """Pure sums for δ = 0, zCDP otherwise."""
        return filter_for(epsilon=self.epsilon, delta=self.delta, neighbors=self.neighbors)


LOSS_UNIT = Fraction(1, 1 << 40)
"""The unit in which ε and ρ are counted."""
DELTA_UNIT = Fraction(1, 1 << 62)
"""The unit in which δ is counted."""

_CACHE = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The cost of one event to an account: units of ε or ρ (as its filter counts), and units of failure mass."""

    loss: int
    failure: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """All that an account remembers."""

    loss: int = 0
    failure: int = 0
    charges: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PureFilter:
    """δ = 0: the sum of pure ε stays within ``epsilon``."""

    epsilon: Fraction
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    loss_cap: int = field(init=False)
    """Units of ε, rounded down."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "loss_cap", _units_down(self.epsilon, LOSS_UNIT))

    @property
    def failure_cap(self) -> int:
        """None at all."""
        return 0

    @property
    def budget(self) -> Loss:
        """The guarantee that the account keeps."""
        return Pure(epsilon=self.epsilon)

    def charge_of(self, event: Event) -> Charge:
        """The event's ε in units, rounded up; an AccountingError where it is not pure."""
        _same_relation(event, self.neighbors)
        return _pure_charge(event)

    def fits(self, spent: Spent, charge: Charge) -> bool:
        """Return True if the charge may still be spent."""
        return charge.failure == 0 and spent.loss + charge.loss <= self.loss_cap

    def spend(self, spent: Spent, charge: Charge, *, whose: str = "the account") -> Spent:
        """The account after the charge, or BudgetExceeded, which says whose budget it was."""
        if not self.fits(spent, charge):
            raise refusal(self, charge, left=self.remaining(spent), whose=whose, history=history_of(spent))
        return _after(spent, charge)

    def remaining(self, spent: Spent) -> Charge:
        """The largest charge that still fits."""
        return Charge(loss=max(0, self.loss_cap - spent.loss))

    def odometer(self, spent: Spent) -> Loss:
        """Return the guarantee of everything spent so far."""
        return Pure(epsilon=spent.loss * LOSS_UNIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZcdpFilter:
    """δ > 0: the sum of ρ stays within what (ε, δ/2) allows, the sum of failure masses within the other δ/2."""

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    loss_cap: int = field(init=False)
    """Units of ρ, rounded down."""
    failure_cap: int = field(init=False)
    """Units of δ in the pool for failure masses, rounded down."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        rho = convert.rho_rounded_down(self.epsilon, self.delta / 2)
        object.__setattr__(self, "loss_cap", _units_down(rho, LOSS_UNIT))
        object.__setattr__(self, "failure_cap", _units_down(self.delta / 2, DELTA_UNIT))

    @property
    def budget(self) -> Loss:
        """The guarantee that the account keeps."""
        return Approx(epsilon=self.epsilon, delta=self.delta)

    def charge_of(self, event: Event) -> Charge:
        """The event's ρ and failure mass in units, rounded up; an AccountingError where no ρ is proven."""
        _same_relation(event, self.neighbors)
        return _zcdp_charge(event)

    def fits(self, spent: Spent, charge: Charge) -> bool:
        """Return True if both parts of the charge may still be spent."""
        if charge.failure and spent.failure + charge.failure > self.failure_cap:
            return False
        return spent.loss + charge.loss <= self.loss_cap

    def spend(self, spent: Spent, charge: Charge, *, whose: str = "the account") -> Spent:
        """The account after the charge, or BudgetExceeded, which says whose budget it was."""
        if not self.fits(spent, charge):
            raise refusal(self, charge, left=self.remaining(spent), whose=whose, history=history_of(spent))
        return _after(spent, charge)

    def remaining(self, spent: Spent) -> Charge:
        """The largest charge that still fits, in each part."""
        return Charge(loss=max(0, self.loss_cap - spent.loss), failure=max(0, self.failure_cap - spent.failure))

    def odometer(self, spent: Spent) -> Loss:
        """Return the guarantee of everything spent so far: ε at the account's own conversion δ/2, and the failure
        masses beside it.
        """
        if spent.loss == 0:
            return Approx(epsilon=Fraction(0), delta=spent.failure * DELTA_UNIT)
        half = self.delta / 2
        epsilon = convert.epsilon_of_rho_rounded_up(spent.loss * LOSS_UNIT, half)
        return Approx(epsilon=epsilon, delta=half + spent.failure * DELTA_UNIT)


Filter = PureFilter | ZcdpFilter


def filter_for(*, epsilon: Real, delta: Real = 0, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> Filter:
    """The filter of an account with this budget: δ = 0 counts pure ε, δ > 0 counts ρ."""
    total = positive("epsilon", epsilon)
    slack = between("delta", delta, 0, 1, high_open=True)
    if slack == 0:
        return PureFilter(epsilon=total, neighbors=neighbors)
    return ZcdpFilter(epsilon=total, delta=slack, neighbors=neighbors)


def price_of(terms: Filter, events: Sequence[Event]) -> Charge:
    """Return the cost of events together, each rounded up by itself, so that a prepaid gate can pay them one by one."""
    parts = [terms.charge_of(event) for event in events]
    return Charge(loss=sum(part.loss for part in parts), failure=sum(part.failure for part in parts))


def whole_units_rounded_down(epsilon: Real) -> Fraction:
    """The greatest whole number of units of ε at most this: a question asked at it is charged just that.

    A charge is rounded up, so ten questions at 1/10 would cost a little over 1. Ten at this fit.
    """
    exact = positive("epsilon", epsilon)
    return _units_down(exact, LOSS_UNIT) * LOSS_UNIT or exact


def _units_up(value: Fraction, unit: Fraction) -> int:
    return math.ceil(value / unit)


def _units_down(value: Fraction, unit: Fraction) -> int:
    return math.floor(value / unit)


def _same_relation(event: Event, neighbors: Neighbors) -> None:
    if event.neighbors is not neighbors:
        raise AccountingError(
            f"This account protects {neighbors} neighbours; the event is about {event.neighbors}.", event=event
        )


@lru_cache(maxsize=_CACHE)
def _pure_charge(event: Event) -> Charge:
    if event.epsilon is None or event.failure:
        raise AccountingError(
            f"A {event.tag} event is not pure, and this account has δ = 0. Ask for a pure mechanism, or use an account "
            "with δ > 0.",
            event=event,
        )
    return Charge(loss=_units_up(event.epsilon, LOSS_UNIT))


@lru_cache(maxsize=_CACHE)
def _zcdp_charge(event: Event) -> Charge:
    if event.rho is None:
        raise AccountingError(f"No ρ is proven for a {event.tag} event.", event=event)
    return Charge(loss=_units_up(event.rho, LOSS_UNIT), failure=_units_up(event.failure, DELTA_UNIT))


def _after(spent: Spent, charge: Charge) -> Spent:
    return Spent(loss=spent.loss + charge.loss, failure=spent.failure + charge.failure, charges=spent.charges + 1)


def refusal(terms: Filter, charge: Charge, *, left: Charge, whose: str, history: str = "") -> BudgetExceeded:
    """Make the error for a charge that does not fit; ``history`` is for those whose own charges it is about."""
    symbol = "ε" if isinstance(terms, PureFilter) else "ρ"
    digits = next((d for d in range(6, 17) if not _close(charge, left, d)), 17)

    def parts(amount: Charge) -> str:
        beside = f", δ₀ = {number(amount.failure * DELTA_UNIT)}" if charge.failure else ""
        return f"{symbol} = {number(amount.loss * LOSS_UNIT, digits=digits)}{beside}"

    return BudgetExceeded(
        f"This costs {parts(charge)}; {whose} has {parts(left)} left of its budget {terms.budget}{history}. "
        "Ask for less, or request a grant.",
        charge=charge,
        left=left,
        budget=terms.budget,
    )


def history_of(spent: Spent, *, since: str = "") -> str:
    """Say how often something was charged, and since when."""
    count = "1 charge" if spent.charges == 1 else f"{spent.charges} charges"
    return f" ({count}{f' since {since}' if since else ''})"


def _close(charge: Charge, left: Charge, digits: int) -> bool:
    """Return True where two different amounts would print alike, so that the message needs more digits."""
    same = number(charge.loss * LOSS_UNIT, digits=digits) == number(left.loss * LOSS_UNIT, digits=digits)
    return same and charge.loss != left.loss
