"""The price, and the noise that it buys for each layer.

Privacy:
    Claim: the mechanisms of ``laplace`` together cost at most ε; those of ``gaussian`` at most a ρ that gives (ε, δ).
    Proof: layer i is measured at ε·w_i or ρ·w_i with Σ w_i <= 1, rounded down; pure losses and ρ add up, also where the
        same unit reaches into all layers. One Gaussian layer alone is calibrated for (ε, δ) by its own law.
    Needs: reaches that are proven (``Layer.reach``); shares that do not depend on the data.
    Ref: Dwork et al. 2006; Bun, Steinke 2016.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.mechanisms.additive.added import AddedNoise, in_steps
from hubbub.parameters import Real, positive, probability
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.privacy.sensitivity import Norm, Sensitivity
from hubbub.privacy.shares import calibrate_pure, calibrate_zcdp
from hubbub.publish.contribution import Contribution


class Noise(StrEnum):
    """The law of the noise: Laplace is calibrated for the L1 norm, Gaussian for L2 (and needs a δ)."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The price, and what a unit may have added to the cells."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    contribution: Contribution = field(default_factory=Contribution)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", whole_units_rounded_down(positive("epsilon", self.epsilon)))
        if self.delta:
            object.__setattr__(self, "delta", probability("delta", self.delta))

    @classmethod
    def at(cls, epsilon: Real, delta: Real = 0, *, contribution: Contribution | None = None) -> "Terms":
        """From any kind of number."""
        slack = Fraction(0) if delta == 0 else probability("delta", delta)
        return cls(epsilon=positive("epsilon", epsilon), delta=slack, contribution=contribution or Contribution())

    @property
    def kinds(self) -> tuple[Noise, ...]:
        """The laws that may be used at this price."""
        return (Noise.LAPLACE, Noise.GAUSSIAN) if self.delta else (Noise.LAPLACE,)


def mechanisms(
    terms: Terms, noise: Noise, reaches: Sequence[Sensitivity], shares: Sequence[Fraction]
) -> tuple[Geometric | Gaussian, ...]:
    """One for each layer."""
    if len(reaches) != len(shares) or not shares or min(shares) <= 0 or sum(shares) > 1:
        raise ParameterError("shares", "one for each layer, positive, of at most 1 together", tuple(shares))
    neighbors = terms.contribution.neighbors
    layers = [AddedNoise(sensitivity=reach, neighbors=neighbors) for reach in reaches]
    if noise is Noise.LAPLACE:
        return calibrate_pure(layers, shares, epsilon=terms.epsilon)
    if not terms.delta:
        raise ParameterError("delta", "above 0 for Gaussian noise", terms.delta)
    if len(layers) == 1:
        squared = in_steps(reaches[0], Norm.L2)
        return (Gaussian.at(epsilon=terms.epsilon, delta=terms.delta, coordinates=squared, neighbors=neighbors),)
    return calibrate_zcdp(layers, shares, epsilon=terms.epsilon, delta=terms.delta)


def variance(mechanism: Geometric | Gaussian) -> float:
    """Of one number's noise."""
    return mechanism.standard_deviation**2
