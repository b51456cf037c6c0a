"""Budgets, and filters for questions that are chosen by earlier answers: integers in, and refusals that are proven.

A filter is the frozen terms of an account. What has been spent is a frozen ``Spent`` of whole numbers that a ledger
can store and compare inside one transaction; nothing else is remembered, so the hundred-thousandth charge costs no
more than the first. ε and ρ are counted in units of 2^-40, δ in units of 2^-62; charges are rounded up, caps down.

Privacy:
    Claim: however questions are chosen, the answers that a filter lets through are together (ε, δ)-DP.
    Proof: each member's sum of all charges stays below a fixed cap as long as that member admits. Pure: losses add, so
        the total is at most ε. zCDP: at each order α the moment e^((α−1)(loss − α·Σρ)) is a supermartingale, so D_α ≤
        α·cap at *every* order, and the conversion may use the best. A family admits what some member admits: sums only
        grow, so the member that admits the last charge of a transcript would have admitted all before, and the
        transcript has the probability that it has under that member alone. Its part of the hockey-stick divergence at
        ε is at most δ_k: 0 for the pure sum, δ₁ for zCDP. Failure masses: a run either had a failure, of chance at most
        the pool whichever member admits, or every draw was from the covered laws, which are the same for all members.
        So δ = δ₁ + pool: half for each. ``docs/accounting.md`` writes it out.
    Needs: one neighbouring relation; each event's ε, ρ and δ₀ hold whatever was answered before (their mechanisms are
        calibrated before they see data), and ε and ρ hold of the same laws outside δ₀. A charge without pure ε counts
        as infinite in the pure sum, and every sum is of every charge. Caps are fixed numbers, never "some Rényi order
        still fits", which lets the answers choose the order and really spends more than δ.
    Ref: Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021; Whitehouse, Ramdas, Rogers, Wu 2023; SOUNDNESS 41.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from hubbub.errors import AccountingError, BudgetExceeded, ParameterError
from hubbub.parameters import Real, between, positive, probability
from hubbub.privacy import convert
from hubbub.privacy.charge import DELTA_UNIT, FREE, LOSS_UNIT, Charge, Room, Spent
from hubbub.privacy.events.record import Event
from hubbub.privacy.loss import Approx, Loss, Pure, number
from hubbub.privacy.sensitivity import Neighbors

__all__ = [
    "DELTA_UNIT",
    "FREE",
    "LOSS_UNIT",
    "Budget",
    "Charge",
    "FamilyFilter",
    "Filter",
    "PureFilter",
    "Room",
    "Spent",
    "filter_for",
    "history_of",
    "price_of",
    "refusal",
    "share_spent",
    "whole_units_rounded_down",
    "words_of",
]


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
        """The sum of pure ε for δ = 0; otherwise that, or the sum of ρ."""
        return filter_for(epsilon=self.epsilon, delta=self.delta, neighbors=self.neighbors)


_CACHE = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class PureFilter:
    """δ = 0: the sum of pure ε stays within ``epsilon``."""

    epsilon: Fraction
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    closed: bool = False
    """Whether nothing more may be spent, whatever is left."""
    loss_cap: int = field(init=False)
    """Units of ε, rounded down."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "loss_cap", 0 if self.closed else _units_down(self.epsilon, LOSS_UNIT))

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
        return charge == FREE or (charge.failure == 0 and spent.loss + charge.loss <= self.loss_cap)

    def spend(self, spent: Spent, charge: Charge, *, whose: str = "the account") -> Spent:
        """The account after the charge, or BudgetExceeded, which says whose budget it was."""
        if not self.fits(spent, charge):
            raise refusal(self, charge, left=self.remaining(spent), whose=whose, history=history_of(spent))
        return spent.plus(charge)

    def remaining(self, spent: Spent) -> Room:
        """The room that is left."""
        left = max(0, self.loss_cap - spent.loss)
        return Room(parts=(Charge(loss=left, pure=left),))

    def odometer(self, spent: Spent) -> Loss:
        """Return the guarantee of everything spent so far."""
        return Pure(epsilon=spent.loss * LOSS_UNIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyFilter:
    """δ > 0: the sum of pure ε stays within ε, *or* the sum of ρ within what (ε, δ/2) allows; and in either case the
    sum of failure masses within the other δ/2.
    """

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    closed: bool = False
    """Whether nothing more may be spent, whatever is left."""
    pure_cap: int = field(init=False)
    """Units of ε, rounded down."""
    loss_cap: int = field(init=False)
    """Units of ρ, rounded down."""
    failure_cap: int = field(init=False)
    """Units of δ in the pool for failure masses, rounded down."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        rho = convert.rho_rounded_down(self.epsilon, self.delta / 2)
        caps = {
            "pure_cap": _units_down(self.epsilon, LOSS_UNIT),
            "loss_cap": _units_down(rho, LOSS_UNIT),
            "failure_cap": _units_down(self.delta / 2, DELTA_UNIT),
        }
        for name, cap in caps.items():
            object.__setattr__(self, name, 0 if self.closed else cap)

    @property
    def budget(self) -> Loss:
        """The guarantee that the account keeps."""
        return Approx(epsilon=self.epsilon, delta=self.delta)

    def charge_of(self, event: Event) -> Charge:
        """The event's ρ, failure mass and ε in units, rounded up; an AccountingError where no ρ is proven."""
        _same_relation(event, self.neighbors)
        return _family_charge(event)

    def fits(self, spent: Spent, charge: Charge) -> bool:
        """Return True if the failure mass may still be spent, and the rest by one of the sums."""
        if charge == FREE:
            return True
        if charge.failure and spent.failure + charge.failure > self.failure_cap:
            return False
        if spent.loss + charge.loss <= self.loss_cap:
            return True
        return charge.pure is not None and spent.pure is not None and spent.pure + charge.pure <= self.pure_cap

    def spend(self, spent: Spent, charge: Charge, *, whose: str = "the account") -> Spent:
        """The account after the charge, or BudgetExceeded, which says whose budget it was."""
        if not self.fits(spent, charge):
            raise refusal(self, charge, left=self.remaining(spent), whose=whose, history=history_of(spent))
        return spent.plus(charge)

    def remaining(self, spent: Spent) -> Room:
        """The room that is left in each sum."""
        left = Charge(
            loss=max(0, self.loss_cap - spent.loss),
            failure=max(0, self.failure_cap - spent.failure),
            pure=None if spent.pure is None or spent.pure > self.pure_cap else self.pure_cap - spent.pure,
        )
        return Room(parts=(left,))

    def odometer(self, spent: Spent) -> Loss:
        """Return the guarantee of everything spent so far: ε by the sum that says less, ρ at the account's own
        conversion δ/2, and the failure masses beside it.
        """
        failure = spent.failure * DELTA_UNIT
        if spent.loss == 0:
            return Approx(epsilon=Fraction(0), delta=failure)
        half = self.delta / 2
        epsilon = convert.epsilon_of_rho_rounded_up(spent.loss * LOSS_UNIT, half)
        if spent.pure is not None and spent.pure * LOSS_UNIT <= epsilon:
            return Approx(epsilon=spent.pure * LOSS_UNIT, delta=failure)
        return Approx(epsilon=epsilon, delta=half + failure)


Filter = PureFilter | FamilyFilter


def filter_for(*, epsilon: Real, delta: Real = 0, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> Filter:
    """The filter of an account with this budget: δ = 0 counts pure ε, δ > 0 counts pure ε and ρ side by side."""
    total = positive("epsilon", epsilon)
    slack = between("delta", delta, 0, 1, high_open=True)
    if slack == 0:
        return PureFilter(epsilon=total, neighbors=neighbors)
    return FamilyFilter(epsilon=total, delta=slack, neighbors=neighbors)


def share_spent(terms: Filter, spent: Spent) -> float:
    """Return the share of a budget that is spent: of its ε or ρ, or of its failure mass where that is more.

    Of two sums that admit charges, the one that has more left says how far the budget goes.
    """
    if terms.closed:
        return 1.0
    sums = [spent.loss / terms.loss_cap if terms.loss_cap else 1.0]
    if isinstance(terms, FamilyFilter) and spent.pure is not None:
        sums.append(spent.pure / terms.pure_cap if terms.pure_cap else 1.0)
    failure = spent.failure / terms.failure_cap if terms.failure_cap else 0.0
    return max(min(sums), failure)


def price_of(terms: Filter, events: Sequence[Event]) -> Charge:
    """Return the cost of events together, each rounded up by itself, so that a prepaid gate can pay them one by one."""
    return sum((terms.charge_of(event) for event in events), FREE)


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
    units = _units_up(event.epsilon, LOSS_UNIT)
    return Charge(loss=units, pure=units)


@lru_cache(maxsize=_CACHE)
def _family_charge(event: Event) -> Charge:
    if event.rho is None:
        raise AccountingError(f"No ρ is proven for a {event.tag} event.", event=event)
    return Charge(
        loss=_units_up(event.rho, LOSS_UNIT),
        failure=_units_up(event.failure, DELTA_UNIT),
        pure=None if event.epsilon is None else _units_up(event.epsilon, LOSS_UNIT),
    )


def refusal(terms: Filter, charge: Charge, *, left: Room, whose: str, history: str = "") -> BudgetExceeded:
    """Make the error for a charge that does not fit; ``history`` is for those whose own charges it is about."""
    digits = next((d for d in range(6, 17) if not _close(charge, left, d)), 17)

    def parts(amount: Charge | Room) -> str:
        beside = f", δ₀ = {number(amount.failure * DELTA_UNIT)}" if charge.failure else ""
        return words_of(terms, amount, digits=digits) + beside

    if terms.closed:
        return BudgetExceeded(
            f"This costs {parts(charge)}; {whose} is closed: its owner lets nothing more be spent, until hubbub budget "
            "set opens it again. What was answered before is served as it was.",
            charge=charge,
            left=left,
            budget=terms.budget,
        )
    return BudgetExceeded(
        f"This costs {parts(charge)}; {whose} has {parts(left)} left of its budget {terms.budget}{history}. "
        "Ask for less, or request a grant.",
        charge=charge,
        left=left,
        budget=terms.budget,
    )


def words_of(terms: Filter, amount: Charge | Room | Spent, *, digits: int = 6) -> str:
    """Say an amount in each sum of a filter that it counts in: "ε = 1 or ρ = 0.42"."""
    loss = number(amount.loss * LOSS_UNIT, digits=digits)
    if isinstance(terms, PureFilter):
        return f"ε = {loss}"
    if amount.pure is None:
        return f"ρ = {loss}"
    return f"ε = {number(amount.pure * LOSS_UNIT, digits=digits)} or ρ = {loss}"


def history_of(spent: Spent, *, since: str = "") -> str:
    """Say how often something was charged, and since when."""
    count = "1 charge" if spent.charges == 1 else f"{spent.charges} charges"
    return f" ({count}{f' since {since}' if since else ''})"


def _close(charge: Charge, left: Room, digits: int) -> bool:
    """Return True where two different amounts would print alike, so that the message needs more digits."""

    def same(first: int | None, second: int | None) -> bool:
        if first is None or second is None or first == second:
            return False
        return number(first * LOSS_UNIT, digits=digits) == number(second * LOSS_UNIT, digits=digits)

    return same(charge.loss, left.loss) or same(charge.pure, left.pure)
