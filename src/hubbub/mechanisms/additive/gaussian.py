"""Discrete Gaussian noise, calibrated by zCDP or by the (ε, δ) of its own law."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

import numpy as np

from hubbub import noise
from hubbub.mechanisms.additive.laplace import each_of
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import as_integers, exact_sum
from hubbub.noise import laws
from hubbub.parameters import Real, positive, whole
from hubbub.privacy import calibrate
from hubbub.privacy.events.event import DiscreteGaussianEvent
from hubbub.privacy.sensitivity import Neighbors, Norm


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Integers plus discrete Gaussian noise of parameter ``sigma``.

    ``sensitivity_squared`` is the square of the L2 distance of neighbouring values, so that √k stays exact.
    ``dimension`` is 1 when a unit can move one coordinate only: then the exact one-dimensional law may be used for (ε,
    δ). ``error(beta)`` is in the units of the value.

    Privacy:
        Claim: Zcdp(sensitivity² / 2σ²) for integer vectors with ‖x - x'‖₂² <= sensitivity_squared; for one moved
            coordinate also the exact (ε, δ) curve of the discrete law, for several the bound of ``fine_gaussian``.
        Proof: the Rényi divergence of order α between discrete Gaussians shifted by an integer d is at most α·d²/2σ²;
            coordinates add up. One-dimensional δ(ε) is the hockey-stick sum of the two laws; the bound for vectors is
            proven where it is computed.
        Needs: noise.discrete_gaussian draws exactly from its law, independently for each coordinate.
        Ref: Canonne, Kamath, Steinke 2020, theorem 4 and proposition 5.
    """

    sigma: Fraction
    sensitivity_squared: Fraction = Fraction(1)
    dimension: int | None = None
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    needs: Needs = field(init=False, repr=False, compare=False)
    event: DiscreteGaussianEvent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sigma = noise.discrete.check_scale("sigma", self.sigma)
        squared = positive("sensitivity_squared", self.sensitivity_squared)
        event = DiscreteGaussianEvent(
            sigma=sigma, sensitivity_squared=squared, dimension=self.dimension, neighbors=self.neighbors
        )
        one = 1 if self.dimension == 1 else None
        needs = Needs(norm=Norm.L2, sensitivity=squared, neighbors=self.neighbors, coordinates=one)
        settle(self, sigma=sigma, sensitivity_squared=squared, event=event, needs=needs)

    @classmethod
    def at_rho(cls, *, rho: Real, sensitivity_squared: Real = 1, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> Self:
        """The least noise that is ``rho``-zCDP."""
        exact = positive("sensitivity_squared", sensitivity_squared)
        sigma = calibrate.gaussian_sigma_zcdp(rho=rho, sensitivity_squared=exact)
        return cls(sigma=sigma, sensitivity_squared=exact, neighbors=neighbors)

    @classmethod
    def at(
        cls,
        *,
        epsilon: Real,
        delta: Real,
        sensitivity: int = 1,
        coordinates: int = 1,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
    ) -> Self:
        """The least noise for (ε, δ) when a unit moves ``coordinates``, each by at most ``sensitivity``.

        On several coordinates (ε, δ) holds for all integer vectors within that L2 distance, in however many places they
        differ. The event is still the ρ of σ, and an account that counts in zCDP is charged what σ really costs there:
        more than a ρ that converts into (ε, δ). ``at_rho`` is for such accounts.
        """
        step = whole("sensitivity", sensitivity, least=1)
        moved = whole("coordinates", coordinates, least=1)
        if moved == 1:
            sigma = calibrate.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=step)
            return cls(sigma=sigma, sensitivity_squared=Fraction(step**2), dimension=1, neighbors=neighbors)
        squared = Fraction(moved * step**2)
        sigma = calibrate.gaussian_sigma_vector(epsilon=epsilon, delta=delta, sensitivity_squared=squared)
        return cls(sigma=sigma, sensitivity_squared=squared, neighbors=neighbors)

    def draw(self, value: int | Array) -> int | Array:
        exact = as_integers(value)
        if isinstance(exact, int):
            return exact + noise.discrete_gaussian(sigma=self.sigma)
        return exact_sum(exact, noise.discrete_gaussian(sigma=self.sigma, size=exact.size).reshape(exact.shape))

    def repeat(self, value: int, *, times: int) -> Array:
        return np.asarray(exact_sum(as_integers([value]), noise.discrete_gaussian(sigma=self.sigma, size=times)))

    def log_mass(self, value: int, output: int) -> float:
        return laws.gaussian_log_mass(output - value, self.sigma)

    def error(self, *, beta: float, dimension: int = 1) -> int:
        """A t that the largest of ``dimension`` errors exceeds with probability at most ``beta``."""
        return laws.gaussian_quantile(each_of(beta, dimension), self.sigma)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of one coordinate's noise."""
        return math.sqrt(laws.gaussian_variance(self.sigma))
