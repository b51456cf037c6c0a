"""Newton's method on noisy sums: one noisy second-moment matrix, then a public number of noisy gradients.

No loss bends by more than its curvature β, so β·Σ x·xᵀ is above the Hessian everywhere, and steps by its inverse lower
the objective (Böhning, Lindsay 1988). It does not depend on where they start, so that one measurement of it serves all
rounds, and the number of rows need not be bought.
"""

from fractions import Fraction

import numpy as np

from hubbub.learn.linear.gradients import Pulls
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.second_moments import measure_products
from hubbub.mechanisms.objective.convex import MarginLoss

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
