"""The price that earns most, from bids or demand curves that nobody may see.

Revenue is no smooth function of the price: at 1.00 everybody buys, at 1.01 nobody does. Adding noise to the best price
may therefore earn nothing; choosing among public prices by their revenue loses little. Each price has its own whole
score, its revenue in steps of the money grid.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import off_grid
from hubbub.mechanisms.selection.select import Exponential, PermuteAndFlip
from hubbub.parameters import Real, positive, rational, whole
from hubbub.privacy.events.event import Event
from hubbub.privacy.sensitivity import Neighbors, Norm

_MOST_REVENUE = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One of public ``prices``, likelier the more it would have earned from these buyers.

    The value is a list of bids (what each buyer would pay at most for one item), or a table of demand: a row for each
    buyer, a column for each price, how many items they would take at it. A buyer counts for at most ``most`` money at
    any price (the top price unless given), and a unit for at most ``rows`` buyers. With a ``supply`` no more than that
    many are sold. ``flip`` takes permute-and-flip, never worse at the same ε; without it the exponential mechanism,
    which is cheaper on accounts with δ > 0. ``error(beta)`` is a shortfall of revenue.

    Privacy:
        Claim: Pure(epsilon); without ``flip`` bounded range epsilon, so ε²/8-zCDP.
        Proof: one buyer adds to the revenue at each price p at least 0 and at most ``most``, also where the supply
            ends, so all scores rise together by at most rows·most: the exponent ε/(rows·most) costs ε under add/remove.
            Replacing a unit can raise one price and lower another: half the exponent. Then PermuteAndFlip or
            Exponential.
        Needs: prices, most and supply are public; noise.race and noise.choice draw exactly.
        Ref: McSherry, Talwar 2007; McKenna, Sheldon 2020.
    """

    epsilon: Fraction
    prices: tuple[Fraction, ...]
    grid: Fraction = Fraction(1)
    most: Fraction | None = None
    supply: int | None = None
    rows: int = 1
    flip: bool = True
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    choosing: PermuteAndFlip | Exponential = field(init=False, repr=False, compare=False)
    """The selection on revenues in steps of the grid."""
    steps: Array = field(init=False, repr=False, compare=False)
    """The prices, in whole steps of the grid."""

    def __post_init__(self) -> None:
        grid, rows = positive("grid", self.grid), whole("rows", self.rows, least=1)
        if self.supply is not None:
            whole("supply", self.supply, least=1)
        prices = tuple(positive("prices", price) for price in self.prices)
        if (
            not prices
            or list(prices) != sorted(set(prices))
            or any((price / grid).denominator != 1 for price in prices)
        ):
            raise ParameterError("prices", "whole steps of the grid in ascending order", self.prices)
        most = prices[-1] if self.most is None else rational("most", self.most)
        if most < prices[-1] or most / grid > _MOST_REVENUE:
            raise ParameterError("most", "at least the top price, and at most 2^60 steps", self.most)
        kind = PermuteAndFlip if self.flip else Exponential
        choosing = kind(
            epsilon=self.epsilon,
            sensitivity=Fraction(math.floor(most / grid) * rows),
            monotone=self.neighbors is Neighbors.ADD_REMOVE,
            neighbors=self.neighbors,
        )
        steps = np.array([int(price / grid) for price in prices], dtype=np.int64)
        settle(self, grid=grid, prices=prices, most=most, epsilon=choosing.epsilon, choosing=choosing, steps=steps)

    @property
    def needs(self) -> Needs:
        return Needs(norm=Norm.ROWS, sensitivity=Fraction(self.rows), neighbors=self.neighbors, integers=False)

    @property
    def event(self) -> Event:
        return self.choosing.event

    def revenues(self, value: Sequence[Any] | Array) -> Array:
        """Return the revenue of each price, in whole steps of the grid: a secret, except for generated buyers."""
        table = np.asarray(value)
        sold = self._sales_to_bids(table) if table.ndim == 1 else self._sales_to_demand(table)
        if self.supply is not None:
            sold = np.minimum(sold, self.supply)
        return self.steps.astype(object) * sold

    def draw(self, value: Sequence[Any] | Array) -> Any:
        return self._price_at(self.choosing.draw(self.revenues(value)))

    def repeat(self, value: Sequence[Any] | Array, *, times: int) -> Array:
        drawn = self.choosing.repeat(self.revenues(value), times=times)
        return np.array([self._price_at(index) for index in range(len(self.prices))])[drawn]

    def log_mass(self, value: Sequence[Any] | Array, output: Real) -> float:
        found = [index for index in range(len(self.prices)) if self._price_at(index) == output]
        if not found:
            return -math.inf
        return float(self.log_masses(value)[found[0]])

    def log_masses(self, value: Sequence[Any] | Array) -> Array:
        """ln of the probability of each price."""
        revenues = self.revenues(value)
        exponents = -((max(revenues) - revenues) * self.choosing.rate).astype(np.float64)
        if self.flip:
            return _flip_log_masses(exponents)
        masses: Array = exponents - np.logaddexp.reduce(exponents)
        return masses

    def expected_revenue(self, value: Sequence[Any] | Array) -> float:
        """The mean of what the chosen price would have earned, exactly: for generated buyers only."""
        masses = np.exp(self.log_masses(value))
        return float((masses * self.revenues(value).astype(np.float64)).sum() * float(self.grid))

    def expected_loss(self) -> float:
        """At most this much less than the best price, on average, whoever the buyers are: known before spending.

        With weights q (the best of mass q₁) the exponential mechanism loses (H(q) + ln q₁)/rate, where the entropy H is
        greatest if all others are alike; that leaves one number to look for. Permute-and-flip never loses more.
        """
        others = len(self.prices) - 1
        if others == 0:
            return 0.0

        def negate(q: float) -> float:
            return float((1 - q) * (np.log1p(-q) - math.log(others)) - (1 - q) * math.log(q))

        from scipy.optimize import minimize_scalar  # late: it takes longer to load than all of ours

        found = minimize_scalar(negate, bounds=(1e-12, 1 - 1e-12), method="bounded", options={"xatol": 1e-12})
        return float(-found.fun / float(self.choosing.rate) * float(self.grid)) * (1 + 1e-9)

    def error(self, *, beta: float) -> float:
        return float(Fraction(self.choosing.error(beta=beta, candidates=len(self.prices))) * self.grid)

    def _price_at(self, index: int) -> Any:
        return off_grid(int(self.steps[index]), self.grid)

    def _sales_to_bids(self, bids: Array) -> Array:
        """Count the bids of at least each price; NaN and everything that is no number bid nothing."""
        numbers = np.sort(np.nan_to_num(bids.astype(np.float64), nan=-1.0))
        # a bid is compared with the price as a float, the nearest one: the same for every buyer
        shown = np.array([float(price) for price in self.prices])
        return (len(numbers) - np.searchsorted(numbers, shown, side="left")).astype(object)

    def _sales_to_demand(self, table: Array) -> Array:
        """Count the items that all buyers take at each price, each buyer's clipped to the number
        that ``most`` pays for.
        """
        if table.ndim != 2 or table.shape[1] != len(self.prices) or table.dtype.kind not in "iu":
            raise ParameterError("value", "bids, or whole quantities with a column for each price", table.shape)
        assert self.most is not None
        limits = np.array([math.floor(self.most / price) for price in self.prices])
        return np.asarray(np.clip(table, 0, limits).astype(object).sum(axis=0))


def _flip_log_masses(exponents: Array) -> Array:
    """Permute-and-flip: P(i) = p_i ∫₀¹ Π_{j≠i} (1 - p_j t) dt, by a Gauss rule that is exact for such polynomials."""
    from scipy.special import roots_legendre

    nodes, weights = roots_legendre(len(exponents) // 2 + 1)
    t = (nodes + 1) / 2
    passes = np.exp(exponents)
    with np.errstate(divide="ignore"):
        logs = np.log1p(-np.outer(t, passes))
        each = np.log(weights / 2)[:, None] + logs.sum(axis=1, keepdims=True) - logs
    masses: Array = exponents + np.logaddexp.reduce(each, axis=0)
    return masses
