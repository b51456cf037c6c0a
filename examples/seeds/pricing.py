"""Pricing by the exponential mechanism (lecture 004): what privacy costs in revenue, and the theorem about it.

Bids in [0, 1], a public grid of prices, revenue r·#{i: bid_i ≥ r}. The expectation over the mechanism's choice is
computed exactly, not sampled. McSherry and Talwar promise at least OPT − 3 ln(e + ε²·OPT·m)/ε, where m items are sold
at the best price and ε is the exponent: one bid more or less then costs ε, one bid changed 2ε.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.pictures import BLUE, GREEN, GREY, ORANGE, OUT, blank, save
from hubbub.mechanisms import Price, TruncatedGeometric

Array = np.ndarray[Any, Any]

BUYERS = (100, 1_000, 10_000)
PRICES = tuple(Fraction(step, 100) for step in range(1, 101))
EPSILONS = tuple(Fraction(step) for step in ("1/100", "1/50", "1/20", "1/10", "1/5", "1/2", "1", "2", "5", "10"))
COLOURS = dict(zip(BUYERS, (ORANGE, BLUE, GREEN), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Revenue:
    """At one ε, from the same bids: all exact expectations."""

    epsilon: float
    best: float
    sold: int
    """Items sold at the best price."""
    flipped: float
    """By permute-and-flip."""
    exponential: float
    perturbed: float
    """By adding noise to the best price: what the lecture warns of."""
    promised: float
    """The loss that ``Price.expected_loss`` names before anything is spent."""

    @property
    def theorem(self) -> float:
        """McSherry and Talwar's bound on the exponential mechanism's revenue."""
        return self.best - 3 * math.log(math.e + self.epsilon**2 * self.best * self.sold) / self.epsilon

    @property
    def telling(self) -> bool:
        """Whether the theorem promises at least half of what could be had."""
        return self.theorem >= self.best / 2


def bids(buyers: int, seed: int = 4) -> Array:
    """What buyers would pay at most: two sorts of them, in hundredths."""
    rng = np.random.default_rng(seed + buyers)
    rich = rng.random(buyers) < 0.35
    return np.clip(np.where(rich, rng.normal(0.7, 0.08, buyers), rng.normal(0.3, 0.1, buyers)), 0, 1).round(2)


def revenue(values: Array, epsilon: Fraction) -> Revenue:
    """Every way at one ε."""
    flip = Price(epsilon=epsilon, prices=PRICES, grid=PRICES[0])
    exponential = Price(epsilon=epsilon, prices=PRICES, grid=PRICES[0], flip=False)
    earned = flip.revenues(values).astype(np.float64) / len(PRICES)
    at = int(np.argmax(earned))
    noisy = TruncatedGeometric(epsilon=epsilon, low=1, high=len(PRICES), sensitivity=len(PRICES) - 1)
    chances = np.exp([noisy.log_mass(at + 1, step) for step in range(1, len(PRICES) + 1)])
    return Revenue(
        epsilon=float(epsilon),
        best=float(earned[at]),
        sold=round(float(earned[at] / float(PRICES[at]))),
        flipped=flip.expected_revenue(values),
        exponential=exponential.expected_revenue(values),
        perturbed=float((chances * earned).sum()),
        promised=flip.expected_loss(),
    )


def draw(found: dict[int, list[Revenue]], folder: Path = OUT) -> Path:
    """Revenue against ε, and the loss beside the theorem's."""
    figure = blank(9.8, 3.9)
    left, right = figure.subplots(1, 2)
    for buyers, rows in found.items():
        at = [row.epsilon for row in rows]
        left.plot(
            at, [row.flipped / row.best for row in rows], "o-", color=COLOURS[buyers], ms=4, label=f"{buyers:,} bids"
        )
        left.plot(at, [row.perturbed / row.best for row in rows], ":", color=COLOURS[buyers], linewidth=1.4)
        right.plot(at, [max(row.best - row.exponential, 1e-4) for row in rows], "o-", color=COLOURS[buyers], ms=4)
        telling = [row for row in rows if row.telling]
        right.plot(
            [row.epsilon for row in telling], [row.best - row.theorem for row in telling], "--", color=COLOURS[buyers]
        )
    right.plot(at, [row.promised for row in rows], color=GREY, linewidth=1.2, label="told before spending")
    right.plot([], [], "--", color=GREY, label="McSherry, Talwar (where at least OPT/2)")
    right.plot([], [], "o-", color=GREY, ms=4, label="exact")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("ε")
        axes.grid(color="#dddddd", linewidth=0.7)
    left.set_ylim(0, 1.03)
    left.set_ylabel("expected revenue / the best")
    left.set_title("dots: permute-and-flip; dotted: noisy price")
    left.legend(loc="lower right")
    right.set_yscale("log")
    right.set_ylabel("expected loss of revenue")
    right.set_title("exponential mechanism: loss and bounds")
    right.legend(loc="lower left", fontsize=8)
    return save(figure, "pricing.png", folder)


def measure() -> dict[int, list[Revenue]]:
    """All sizes and prices of privacy."""
    return {buyers: [revenue(bids(buyers), epsilon) for epsilon in EPSILONS] for buyers in BUYERS}


def main() -> None:
    """Print the expectations and draw them."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    found = measure()
    for buyers, rows in found.items():
        table = Table(title=f"{buyers:,} bids, {len(PRICES)} prices: expected revenue, the best is {rows[0].best:,.2f}")
        for name in ("ε", "permute-and-flip", "exponential", "noisy price", "theorem, at least", "loss told before"):
            table.add_column(name, justify="right")
        for row in rows:
            shown = f"{row.theorem:,.2f}" if row.telling else "(below half)"
            numbers = (f"{each:,.2f}" for each in (row.flipped, row.exponential, row.perturbed))
            table.add_row(f"{row.epsilon:g}", *numbers, shown, f"{row.promised:,.2f}")
        console.print(table)
    console.print(f"The figure: {draw(found).name} in out/")


if __name__ == "__main__":
    main()
