"""The best split of a price over levels: by the mean variance of a workload's answers, which is public.

Let Q_k average over the blocks of level k, and T_k be what a workload asks of these averages (``demand``). Blocks of
one size make the Q_k commute: least squares on levels with block size s_k and variance v_k has mean variance
Σ_j (T_j - T_{j-1}) / Σ_{k≥j} s_k/v_k, and Haar coefficients, which span what Q_k adds to Q_{k-1}, have theirs weighted
by the same differences. Nothing here sees data, and no claim of privacy rests on it.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hubbub.publish.strategies.demand import NEGLIGIBLE, Demand
from hubbub.publish.strategies.layer import Array
from hubbub.publish.terms import Noise

_STEPS = 400
_SETTLED = 1e-7
_GRAIN = 1 << 24
POWER = {Noise.LAPLACE: 2, Noise.GAUSSIAN: 1}
"""Precision is proportional to this power of a share: 1/v is (ε·w)² / 2Δ² or 2ρ·w / Δ²."""


def gains(demand: Demand, sizes: Sequence[Sequence[float]]) -> Array:
    """T_j - T_{j-1} for nested levels, coarsest first, given by the sizes of their blocks along each axis."""
    known = [demand.share_of(one) for one in sizes]
    found: Array = np.maximum(np.diff(known, prepend=0.0), NEGLIGIBLE * known[-1])
    return found


def tree_variance(gain: Array, precisions: Array) -> float:
    """The mean over all queries; ``precisions`` are s_k/v_k."""
    return float(np.sum(gain / np.cumsum(precisions[::-1])[::-1]))


def tree_shares(gain: Array, units: Array, noise: Noise) -> Array:
    """Shares for levels whose precisions are ``units`` times a power of their share, by a fixed-point iteration.

    At the best split every level gains alike from a little more, so each share is multiplied by a root of what it gains
    until they agree. Gaussian noise makes the problem convex; with Laplace noise it has local optima, in which levels
    that do not pay are left at nearly nothing: callers compare several sets of levels.
    """
    power = POWER[noise]
    shares = np.full(len(gain), 1 / len(gain))
    for _ in range(_STEPS):
        behind = np.cumsum((units * shares**power)[::-1])[::-1]
        slope = units * shares ** (power - 1) * np.cumsum(gain / behind**2)
        moved = shares * slope ** (1 / (power + 1))
        moved /= moved.sum()
        if np.abs(moved - shares).max() < _SETTLED:
            break
        shares = np.maximum(moved, 1e-12)
    return shares


def free_shares(costs: Array, noise: Noise) -> Array:
    """Shares for numbers that do not help each other: Σ cost / share^power is least at these."""
    shares: Array = costs ** (1 / (POWER[noise] + 1))
    shares /= shares.sum()
    return shares


def fractions_rounded_down(shares: Array) -> tuple[Fraction, ...]:
    """As exact fractions that sum to at most 1."""
    whole = [max(1, math.floor(share * _GRAIN)) for share in shares]
    return tuple(Fraction(one, max(_GRAIN, sum(whole))) for one in whole)
