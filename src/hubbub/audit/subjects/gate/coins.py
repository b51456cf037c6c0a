"""Coins: what an adversary asks last.

Among laws that are alike at one Rényi order none is worse than a coin, and a filter does not know which coin comes. So
for each answer seen so far the adversary looks for the coin that hurts most among those that are still let through.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from hubbub.audit.subjects.laws import LawStep, TwoLaws
from hubbub.errors import AccountingError, BudgetExceeded
from hubbub.parameters import probability
from hubbub.privacy.curves import Curve
from hubbub.privacy.events.event import Event
from hubbub.privacy.events.record import RATIONAL, Codec
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors

_MOST_STEPS = 24
"""Steps of one kind that are taken in a row."""
_ORDERS = 1 + np.geomspace(1e-4, 1e4, 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinEvent(Event):
    """A coin that falls on heads with one chance or with another: the worst there is at a given Rényi order."""

    tag: ClassVar[str] = "coin"
    schema: ClassVar[Mapping[str, Codec]] = {"here": RATIONAL, "there": RATIONAL}

    here: Fraction
    there: Fraction

    def _check(self) -> None:
        for name in ("here", "there"):
            if not 0 < probability(name, getattr(self, name)) < 1:
                raise AccountingError("A coin falls on either side.", coin=self)

    @property
    def epsilon(self) -> Fraction:
        here, there = float(self.here), float(self.there)
        losses = math.log(here) - math.log(there), math.log1p(-here) - math.log1p(-there)
        return Fraction(max(map(abs, losses)) * (1 + 1e-12) + 1e-13)

    @property
    def rho(self) -> Fraction:
        return _coin_rho_rounded_up(self)

    def _curve(self, orders: Curve) -> Curve:
        here, there = float(self.here), float(self.there)
        heads, tails = math.log(here) - math.log(there), math.log1p(-here) - math.log1p(-there)
        one = np.logaddexp(math.log(here) + (orders - 1) * heads, math.log1p(-here) + (orders - 1) * tails)
        other = np.logaddexp(math.log(there) - (orders - 1) * heads, math.log1p(-there) - (orders - 1) * tails)
        found: Curve = np.maximum(one, other) / (orders - 1) * (1 + 1e-12) + 1e-12
        return found


@lru_cache(maxsize=4096)
def _coin_rho_rounded_up(coin: CoinEvent) -> Fraction:
    """Divergences rise with the order, so between two orders D_α/α is at most the later D over the earlier α."""
    curve = np.minimum(coin._curve(_ORDERS), float(coin.epsilon) * (1 + 1e-12))
    bounds = np.append(curve, float(coin.epsilon) * (1 + 1e-12)) / np.insert(_ORDERS, 0, 1.0)
    return Fraction(float(bounds.max()) * (1 + 1e-9))


def coin(here: Fraction, there: Fraction, *, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> LawStep:
    """The step of a coin."""
    laws = TwoLaws.of([here, 1 - here], [there, 1 - there])
    words = f"a coin with heads at {float(here):.4g} or {float(there):.4g}"
    return LawStep(event=CoinEvent(here=here, there=there, neighbors=neighbors), laws=laws, words=words)


def charge_step(terms: Any, spent: Any, step: LawStep) -> tuple[Any, Any] | None:
    """The charge, and the account after it; None where it is refused."""
    try:
        charge = terms.charge_of(step.event)
        return charge, terms.spend(spent, charge)
    except (BudgetExceeded, AccountingError):
        return None


def last_question(
    terms: Any, spent: Any, both: TwoLaws, budget: Budget, *, before: Sequence[LawStep] = ()
) -> tuple[TwoLaws, list[tuple[float, LawStep | None]]]:
    """For each answer so far its own last coin; or first another step for as long as it is let through, then a coin.

    So the answers decide which of an account's sums is used up. ``before`` are the steps to choose from.
    """
    merged = both.merge(6)
    found = TwoLaws.of([], [])
    coins: list[tuple[float, LawStep | None]] = []
    for p, q, loss in zip(merged.p, merged.q, merged.losses, strict=True):
        part = TwoLaws.of([p], [q])
        if not math.isfinite(loss):
            found = found.beside(part)
            coins.append((float(loss), None))
            continue
        asked = _worst_coin(terms, spent, float(budget.epsilon) - loss, budget.neighbors)
        best = part if asked is None else part.then(asked.laws)
        for step in before:
            steered = _steer(terms, spent, part, budget, step)
            if steered is not None and _mass_beyond(steered[0], budget) > _mass_beyond(best, budget):
                best, asked = steered
        found = found.beside(best)
        coins.append((float(loss), asked))
    return found, coins


def _steer(terms: Any, spent: Any, part: TwoLaws, budget: Budget, step: LawStep) -> tuple[TwoLaws, LawStep] | None:
    """Take a step as often as it is let through, and then for each answer its own coin."""
    passed, together = 0, part
    while passed < _MOST_STEPS and (charged := charge_step(terms, spent, step)) is not None:
        passed, spent, together = passed + 1, charged[1], together.then(step.laws)
    if not passed:
        return None
    after, _ = last_question(terms, spent, together, budget)
    return after, replace(step, words=f"{passed} × {step.words}, and then a coin")


def _mass_beyond(part: TwoLaws, budget: Budget) -> float:
    return part.delta(float(budget.epsilon))


def _worst_coin(terms: Any, spent: Any, room: float, neighbors: Neighbors) -> LawStep | None:
    """Of the coins that still fit, the one whose heads pass what is left of ε by most mass."""
    best: tuple[float, LawStep | None] = (0.0, None)
    for beyond in (0.1, 0.3, 0.6, 1.0, 1.6, 3.0):
        loss = room + beyond
        if loss <= 0:
            continue
        make = partial(_coin, math.exp(-loss), neighbors)
        low, high = 0.0, 1 - 1e-9
        if charge_step(terms, spent, make(1e-9)) is None:
            continue
        for _ in range(18):
            middle = (low + high) / 2
            low, high = (middle, high) if charge_step(terms, spent, make(middle)) is not None else (low, middle)
        gain = low * -math.expm1(-beyond)
        if gain > best[0]:
            best = gain, make(low)
    return best[1]


def _coin(ratio: float, neighbors: Neighbors, here: float) -> LawStep:
    there = max(here * ratio, 1e-300)
    return coin(Fraction(here), Fraction(there), neighbors=neighbors)
