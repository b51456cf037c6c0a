"""Noise for a vector of whole numbers, before it is known how much: Laplace or Gaussian, for a share of a budget."""

import math
from dataclasses import dataclass
from fractions import Fraction

from hubbub.errors import MayOverflow
from hubbub.mechanisms.additive.gaussian import Gaussian
from hubbub.mechanisms.additive.laplace import Geometric
from hubbub.noise.discrete import MOST_SCALE
from hubbub.privacy.sensitivity import Neighbors, Norm, Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedNoise:
    """Whole numbers of which one unit moves so much: what ``privacy.shares.calibrate`` takes."""

    sensitivity: Sensitivity
    neighbors: Neighbors

    def calibrate_pure(self, epsilon: Fraction) -> Geometric:
        """Return Laplace noise that costs this ε."""
        steps = in_steps(self.sensitivity, Norm.L1)
        if steps > epsilon * MOST_SCALE:
            raise MayOverflow(
                "What one unit may add is more than 2^60 times this ε. Bound the values more tightly, or let the owner "
                "declare a coarser grid."
            )
        return Geometric(epsilon=epsilon, sensitivity=steps, neighbors=self.neighbors)

    def calibrate_zcdp(self, rho: Fraction) -> Gaussian:
        """Return Gaussian noise that costs this ρ."""
        steps = in_steps(self.sensitivity, Norm.L2)
        return Gaussian.at_rho(rho=rho, sensitivity_squared=steps, neighbors=self.neighbors)

    def calibrate_alone(self, epsilon: Fraction, delta: Fraction) -> Gaussian:
        """Return Gaussian noise for (ε, δ), by the exact curve of its own law where one number moves."""
        if self.sensitivity.l0 == 1:
            steps = in_steps(self.sensitivity, Norm.L1)
            return Gaussian.at(epsilon=epsilon, delta=delta, sensitivity=steps, neighbors=self.neighbors)
        squares = in_steps(self.sensitivity, Norm.L2)
        return Gaussian.at(epsilon=epsilon, delta=delta, coordinates=squares, neighbors=self.neighbors)


def in_steps(sensitivity: Sensitivity, norm: Norm) -> int:
    """Return a sensitivity in steps (squared for L2): whole, since that of whole numbers is."""
    found = sensitivity.in_norm(norm)
    assert found is not None
    return math.ceil(found)
