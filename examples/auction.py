"""A small shop sets its prices from what its customers say they would pay, and nobody's word can be read off them.

Three goods: two sold one to a customer, one by the kilogram (a demand curve each, up to what 12.00 buys). Each customer
speaks about all three, so the three choices add up: a third of ε each, through the gate, from one account.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hubbub import Budget, Facts, Meter, Secret, Sensitivity
from hubbub.mechanisms import Price

Array = np.ndarray[Any, Any]

CUSTOMERS = 2_000
EPSILON = Fraction(3, 4)
CENT = Fraction(1, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Good:
    """What is sold, at which prices it might be, and what the customers said: the last is made up, and secret."""

    name: str
    prices: tuple[Fraction, ...]
    said: Array
    most: Fraction | None = None
    supply: int | None = None

    def mechanism(self, epsilon: Fraction) -> Price:
        """Permute-and-flip over the public prices."""
        return Price(epsilon=epsilon, prices=self.prices, grid=CENT, most=self.most, supply=self.supply)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sale:
    """A chosen price, what it was said beforehand to lose at most on average, and what really came of it."""

    good: str
    price: float
    promised_loss: float
    revenue: float
    best_revenue: float
    best_price: float


def _steps(low: str, high: str, step: str) -> tuple[Fraction, ...]:
    first, last, by = Fraction(low), Fraction(high), Fraction(step)
    return tuple(first + by * at for at in range(int((last - first) / by) + 1))


def goods(seed: int = 11) -> tuple[Good, ...]:
    """Coffee for everybody, a hundred tickets, and cheese by the kilogram."""
    rng = np.random.default_rng(seed)
    coffee = rng.gamma(9, 0.35, CUSTOMERS).round(2)
    ticket = np.where(rng.random(CUSTOMERS) < 0.1, rng.normal(40, 9, CUSTOMERS), rng.normal(8, 3, CUSTOMERS)).round(2)
    by_kilogram = _steps("1", "12", "1/2")
    wealth = rng.gamma(3, 2.0, CUSTOMERS)
    kilograms = np.floor(wealth[:, None] / np.array([float(price) for price in by_kilogram])).astype(np.int64)
    return (
        Good(name="a coffee", prices=_steps("1", "8", "1/10"), said=coffee),
        Good(name="a ticket, 100 of them", prices=_steps("5", "80", "1"), said=ticket, supply=100),
        Good(name="cheese, a kilogram", prices=by_kilogram, said=kilograms, most=Fraction(12)),
    )


def sell(shelf: tuple[Good, ...], *, epsilon: Fraction = EPSILON) -> list[Sale]:
    """Set every price, each for an equal share of ε."""
    meter = Meter({"customers": Budget(epsilon=epsilon)})
    facts = Facts(account="customers", sensitivity=Sensitivity(rows=1))
    sales = []
    for good in shelf:
        mechanism = good.mechanism(epsilon / len(shelf))
        price = meter.measure(mechanism, Secret(good.said, facts), label=good.name).value
        earned = mechanism.revenues(good.said).astype(np.float64) * float(CENT)  # shown because they are made up
        shown = [float(each) for each in good.prices]
        sales.append(
            Sale(
                good=good.name,
                price=float(price),
                promised_loss=mechanism.expected_loss(),
                revenue=float(earned[shown.index(float(price))]),
                best_revenue=float(earned.max()),
                best_price=shown[int(np.argmax(earned))],
            )
        )
    return sales


def main() -> None:
    """Set the prices once and print what they earn."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    table = Table(title=f"{CUSTOMERS:,} customers, ε = {float(EPSILON):g} for all three prices together")
    for name in ("good", "price", "earns", "the best would", "at", "mean loss told before, at most"):
        table.add_column(name, justify="left" if name == "good" else "right")
    for sale in sell(goods()):
        money = (sale.price, sale.revenue, sale.best_revenue, sale.best_price, sale.promised_loss)
        table.add_row(sale.good, *(f"{amount:,.2f}" for amount in money))
    console.print(table)


if __name__ == "__main__":
    main()
