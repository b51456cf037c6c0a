"""Losses computed, not estimated: from the exact log-masses of a mechanism on a pair of inputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
"""Rényi orders at which divergences are compared with a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Laws:
    """The log-masses of the same outputs on two neighbouring inputs."""

    first: Floats
    second: Floats

    @classmethod
    def of(cls, mechanism: Any, pair: tuple[Any, Any], outputs: Sequence[Any]) -> "Laws":
        """Ask the mechanism for its own law."""
        first, second = (np.array([mechanism.log_mass(value, out) for out in outputs], dtype=float) for value in pair)
        return cls(first=first, second=second)

    @property
    def totals(self) -> tuple[float, float]:
        """The mass of all outputs together, on each input."""
        return math.fsum(np.exp(self.first)), math.fsum(np.exp(self.second))

    def loss(self) -> float:
        """The largest |ln P(o | x) − ln P(o | y)|: the least ε that is true of this pair."""
        possible = ~(np.isneginf(self.first) & np.isneginf(self.second))
        gaps = np.abs(self.first[possible] - self.second[possible])
        return float(gaps.max(initial=0.0))

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence Σ max(0, p − e^ε·q), the larger of both orders: the least δ that is true at ε."""
        return max(_hockey_stick(one, other, epsilon) for one, other in self._orders())

    def epsilon(self, delta: float) -> float:
        """The least ε that is true at δ, to 1e-12; infinite if there is none."""
        if delta <= 0:
            return self.loss()
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2 * high
            if high > 512:
                return math.inf
        if self.delta(low) <= delta:
            return low
        while high - low > 1e-12:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def renyi(self, order: float) -> float:
        """The Rényi divergence of an order above 1, the larger of both directions."""
        return max(_renyi(one, other, order) for one, other in self._orders())

    def standard_errors(self, *, epsilon: float, delta: float, bounds: str) -> float:
        """Return the distance of the best event from the claim, in standard errors of one draw a side; n draws see √n
        times that.

        By Neyman and Pearson the best event is a likelihood-ratio set, so that looking at those is enough.
        """
        return max(_reach(one, other, epsilon, delta, bounds) for one, other in self._orders())

    def _orders(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        return (self.first, self.second), (self.second, self.first)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The δ that ρ-zCDP gives at ε: the least over orders a of exp((a−1)(aρ−ε))·(1−1/a)^a/(a−1).

    Ref: Canonne, Kamath, Steinke 2020, proposition 7. Any order gives a valid δ, so a grid of them will do.
    """
    orders = 1 + np.geomspace(1e-3, 1e3, 4_000)
    logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    return float(min(1.0, np.exp(min(0.0, logs.min()))))


def _hockey_stick(one: Floats, other: Floats, epsilon: float) -> float:
    return math.fsum(np.maximum(0.0, np.exp(one) - np.exp(np.minimum(other + epsilon, 700.0))))


def _renyi(one: Floats, other: Floats, order: float) -> float:
    from scipy import special  # late: it takes longer to load than all of ours

    one, other = one[~np.isneginf(one)], other[~np.isneginf(one)]
    if np.isneginf(other).any():
        return math.inf
    return float(special.logsumexp(order * one + (1 - order) * other)) / (order - 1)


def _reach(one: Floats, other: Floats, epsilon: float, delta: float, bounds: str) -> float:
    possible = ~(np.isneginf(one) & np.isneginf(other))
    one, other = one[possible], other[possible]
    order = np.argsort(other - one, kind="stable")
    p = np.minimum(np.cumsum(np.exp(one[order])), 1.0)
    q = np.clip(np.cumsum(np.exp(other[order])), 1e-3, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if bounds == "epsilon":
            rest = np.maximum(p - delta, 0.0)
            steps = (np.log(rest / q) - epsilon) / np.sqrt(p * (1 - p) / rest**2 + (1 - q) / q)
        else:
            growth = math.exp(epsilon)
            steps = (p - growth * q - delta) / np.sqrt(p * (1 - p) + growth**2 * q * (1 - q))
    return float(np.nan_to_num(steps, nan=0.0, posinf=0.0, neginf=0.0).max(initial=0.0))
