"""Noisy gradients of linear models, and Newton's method on one noisy second-moment matrix.

Privacy:
    Claim: one unit moves the measured matrix Σ x·sᵀ by at most most·2^35 steps in L2.
    Proof: a row's x has norm at most 1 in steps of 2^-20 and its s, cut towards zero in steps of 2^-15 and times its
        weight, norm at most that weight, so their product has at most the product of the norms; a unit's weights sum to
        at most ``most``. In L1, √(dK) times as much. Products and sums of whole numbers below 2^53 are exact. So are
        margins (``short``): a row's s does not depend on which rows stand beside it, as the last bit of a product of
        matrices would, and a unit moves its own s alone.
    Needs: s that depends on its row's margins and on earlier releases alone.
    Ref: SOUNDNESS 29, 31; Bassily, Smith, Thakurta 2014.

No loss bends by more than its curvature β, so β·Σ x·xᵀ is above the Hessian everywhere, and steps by its inverse lower
the objective (Böhning, Lindsay 1988). It does not depend on where they start, so that one measurement of it serves all
rounds, and the number of rows need not be bought.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.gate.secret import Sealed
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.moments import measure_products
from hubbub.learn.statistics.row_steps import BITS, in_ball
from hubbub.learn.tuition import Tuition
from hubbub.mechanisms.objective.convex import MarginLoss
from hubbub.privacy.sensitivity import Sensitivity

SLOPE_BITS = 15
BLOCK = 1 << 12
"""Rows at a time: sums of 2^12 products of 2^35 are below 2^53."""
_STEP = 1 << (BITS + SLOPE_BITS)
_EXACT = 51
"""Bits of a sum of products: below the 53 of a float, with one for rounding up and one for the logarithm."""

Slopes = Callable[[Array], Array]
"""From margins (one column for each column of signs) to how strongly each row pulls, within [−1, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulls:
    """Rows in the ball with their signs and owners, asked how they pull."""

    features: Array
    signs: Array
    """±1; 0 for rows that count nowhere."""
    crowd: Crowd
    tuition: Tuition

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.shape[1], self.signs.shape[1]

    @property
    def reach(self) -> Sensitivity:
        """Of the measured matrix, in steps."""
        most = self.crowd.most * _STEP
        return Sensitivity(
            l1=Fraction(most * math.isqrt(self.shape[0] * self.shape[1] - 1) + most),
            l2_squared=Fraction(most * most),
            linf=Fraction(most),
        )

    def total(self, slopes: Slopes, theta: Array) -> Array:
        """Σ x·sᵀ in steps, exactly."""
        total = np.zeros(self.shape, dtype=np.int64)
        weights = None if self.crowd.units is None else self.crowd.weights
        held = short(theta)
        for start in range(0, self.crowd.rows, BLOCK):
            part = slice(start, start + BLOCK)
            x, y = self.features[part], self.signs[part]
            strong = y * slopes(y * (x @ held))
            steps = in_ball(strong, bits=SLOPE_BITS).astype(np.float64)
            if weights is not None:
                steps = np.trunc(steps * weights[part, None])
            total += ((x * float(1 << BITS)).T @ steps).astype(np.int64)
        return total

    def measure(self, slopes: Slopes, theta: Array, *, share: Fraction, label: str) -> tuple[Array, float]:
        """The noisy pull at ``theta``, and the standard deviation of each number's noise."""
        reach = self.reach
        mechanism = self.tuition.additive(self.tuition.spend(share), reach)
        step = Fraction(1, _STEP)
        noisy = self.tuition.measure(
            mechanism, Sealed.later(lambda: self.total(slopes, theta).reshape(-1)), reach, grid=step, label=label
        )
        return np.asarray(noisy, dtype=np.float64).reshape(self.shape), mechanism.standard_deviation / _STEP


def short(theta: Array) -> Array:
    """Coefficients with so few bits that their products with steps of rows add up exactly, in whatever order."""
    most = float(np.abs(theta).sum(axis=0).max(initial=0.0))
    if not 0 < most < math.inf:
        return np.zeros_like(theta)
    bits = _EXACT - BITS - math.ceil(math.log2(most))
    return np.ldexp(np.rint(np.ldexp(theta, bits)), -bits)


MATRIX = Fraction(1, 4)
"""Of what is left of the price, for the matrix."""
ROUNDS = 6


def take_steps(
    loss: MarginLoss, pulls: Pulls, *, ridge: float | None, rounds: int = ROUNDS
) -> tuple[Array, float, float]:
    """Return coefficients, the ridge, and the standard deviation of the noise in one gradient.

    The ridge is at least half of that noise, so that noise alone moves no decision far (and not 0). The last half of
    the rounds is averaged, which takes as much off the noise as is left in it.
    """
    tuition, features = pulls.tuition, pulls.features
    data = Features.of(features, pulls.crowd)
    products = measure_products(data.x, data, radius=1.0, tuition=tuition, share=tuition.left * MATRIX)
    values, axes = np.linalg.eigh(products.matrix)
    above = float(loss.curvature) * (np.maximum(values, 0.0) + products.spread)
    share = tuition.left / rounds
    theta, mean = np.zeros(pulls.shape), np.zeros(pulls.shape)
    kept, spread = 1 / pulls.shape[0] if ridge is None else ridge, 0.0
    for made in range(rounds):
        noisy, spread = pulls.measure(loss.slope, theta, share=share, label=f"gradient {made + 1}")
        kept = max(kept, spread / 2)
        theta = theta - axes @ ((axes.T @ (noisy + kept * theta)) / (above + kept)[:, None])
        if made >= rounds // 2:
            mean = mean + theta / (rounds - rounds // 2)
    return mean, kept, spread
