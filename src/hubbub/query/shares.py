"""How the budget of a question is divided: an equal share for each thing that is measured, tallies and choices alike.

Privacy:
    Claim: what is made for (ε, δ) costs no more than that over all of it.
    Proof: k things at ε/k each, rounded down, add up to at most ε (pure composition); at ρ/k each to at most a ρ that
        gives (ε, δ) (zCDP). One Gaussian alone is calibrated for (ε, δ) exactly. Which of the two ways is taken follows
        from sensitivities, ε and δ, which are public.
    Needs: the events of the mechanisms; privacy.convert for ρ.
    Ref: Dwork et al. 2006; Bun, Steinke 2016.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from hubbub.errors import MayOverflow
from hubbub.mechanisms import Gaussian, Geometric, Mechanism
from hubbub.noise.discrete import MOST_SCALE
from hubbub.policy.tables import Policy
from hubbub.privacy.convert import rho_rounded_down
from hubbub.privacy.filter import Filter, whole_units_rounded_down
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Norm, Sensitivity
from hubbub.query.choices import Choosing

Measured = Sensitivity | Choosing
"""One thing that a share is for: numbers that noise is added to, or a choice."""


def calibrated(
    measured: Sequence[Measured], policy: Policy, epsilon: Fraction, delta: Fraction
) -> tuple[Mechanism, ...]:
    """Laplace and pure choices with an equal share of ε, or Gaussian and zCDP choices, whichever errs less over all,
    of what the account could ever pay."""
    many, neighbors = len(measured), policy.budget.neighbors
    share = whole_units_rounded_down(epsilon / many)
    if any(in_steps(one, Norm.L1) > share * MOST_SCALE for one in measured if isinstance(one, Sensitivity)):
        raise MayOverflow(
            "What one unit may add is more than 2^60 times this ε. Bound the values more tightly, or let the owner "
            "declare a coarser grid."
        )
    pure = tuple(_pure(one, share, neighbors) for one in measured)
    if policy.budget.delta == 0 or delta == 0:
        return pure
    only = measured[0]
    if many == 1 and isinstance(only, Sensitivity):
        other: tuple[Mechanism, ...] = (_exact(only, epsilon, delta, neighbors),)
    else:
        rho = rho_rounded_down(epsilon, delta) / many
        other = tuple(at_rho(one, rho, neighbors) for one in measured)
    ratios = [deviation(new) / deviation(old) for new, old in zip(other, pure, strict=True)]
    return pure if math.prod(ratios) >= 1 and payable(pure, policy.budget.filter) else other


def payable(mechanisms: Sequence[Mechanism], terms: Filter) -> bool:
    """Whether an account could ever pay for them: in zCDP a pure mechanism may cost more than there is."""
    charges = [terms.charge_of(one.event) for one in mechanisms]
    loss, failure = sum(one.loss for one in charges), sum(one.failure for one in charges)
    return loss <= terms.loss_cap and failure <= terms.failure_cap


def _pure(one: Measured, share: Fraction, neighbors: Neighbors) -> Mechanism:
    if isinstance(one, Choosing):
        return one.pure(share)
    return Geometric(epsilon=share, sensitivity=in_steps(one, Norm.L1), neighbors=neighbors)


def at_rho(one: Measured, rho: Fraction, neighbors: Neighbors) -> Mechanism:
    """What costs this ρ."""
    if isinstance(one, Choosing):
        return one.zcdp(rho)
    return Gaussian.at_rho(rho=rho, sensitivity_squared=in_steps(one, Norm.L2), neighbors=neighbors)


def _exact(only: Sensitivity, epsilon: Fraction, delta: Fraction, neighbors: Neighbors) -> Mechanism:
    if only.l0 == 1:
        return Gaussian.at(epsilon=epsilon, delta=delta, sensitivity=in_steps(only, Norm.L1), neighbors=neighbors)
    return Gaussian.at(epsilon=epsilon, delta=delta, coordinates=in_steps(only, Norm.L2), neighbors=neighbors)


def in_steps(sensitivity: Sensitivity, norm: Norm) -> int:
    """A sensitivity in steps (squared for L2): whole, since every tally's is."""
    found = sensitivity.in_norm(norm)
    assert found is not None
    return math.ceil(found)


def deviation(mechanism: Mechanism) -> float:
    """What is compared: the standard deviation of noise, or the error of a choice."""
    found = getattr(mechanism, "standard_deviation", None)
    return mechanism.error(beta=0.05) if found is None else float(found)
