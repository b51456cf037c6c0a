"""The price of a publication, the noise that it buys for each layer, and bounds on what one unit contributes.

A unit adds whole, non-negative numbers: at most ``each`` to a cell, to at most ``cells`` of them, at most ``total``
altogether.

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
from hubbub.parameters import Real, positive, probability, whole
from hubbub.privacy.filter import whole_units_rounded_down
from hubbub.privacy.sensitivity import Neighbors, Norm, Sensitivity
from hubbub.privacy.shares import calibrate_pure, calibrate_zcdp


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """The bounds that were enforced before the cells were counted.

    What is left out beside a ``total`` is bounded by that alone: m rows may lie in one cell or in m. Without a total,
    what is left out is 1.
    """

    cells: int = 0
    each: int = 0
    total: int = 0
    """0 stands for cells × each."""
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        unsaid = whole("total", self.total, least=0) or 1
        cells, each = whole("cells", self.cells or unsaid, least=1), whole("each", self.each or unsaid, least=1)
        total = self.total or cells * each
        if self.neighbors is Neighbors.LOCAL:
            raise ParameterError("neighbors", "add-remove or replace-one, for cells that one place counts", "local")
        object.__setattr__(self, "cells", min(cells, total))
        object.__setattr__(self, "each", min(each, total))
        object.__setattr__(self, "total", min(total, self.cells * self.each))

    def pack(self, holds: int) -> int:
        """The greatest sum of squares of a unit's totals over parts that have at most ``holds`` cells each.

        Squares are convex, so the worst is to fill one part after the other.
        """
        most = min(holds, self.cells) * self.each
        full, rest = divmod(self.total, most)
        return full * most**2 + rest**2

    def through(
        self, *, column_l1: int, squares: int, signed: bool, results: tuple[int, int] | None = None
    ) -> Sensitivity:
        """The reach of a linear map, from bounds for one unit that is added to an empty table.

        ``column_l1`` bounds the absolute sum of each column, ``squares`` the squared L2 norm of A·c for every c that
        one unit can add; ``signed`` says whether the map has negative entries. ``results`` says how many come out, and
        the most that a unit adds to one of them, where that is never negative.

        Privacy:
            Claim: for neighbours x and x', ‖A(x - x')‖₁, ‖A(x - x')‖₂² and how many differ are at most as returned.
            Proof: a unit more or less changes x by one such c: ‖A·c‖₁ <= Σ c_j·‖A_j‖₁ <= total · column_l1. Replacing
                one changes it by c - c': L1 norms add, and ‖Ac - Ac'‖² = ‖Ac‖² + ‖Ac'‖² - 2⟨Ac, Ac'⟩, where the last
                product is not negative if A and c are not; else it is at least -‖Ac‖·‖Ac'‖.
                Results are whole, so each that changes adds at least 1 to both, and the lesser bounds their number.
                Of n results, to each of which a unit adds between 0 and m, none moves by more than m, whether a unit
                comes, goes or is replaced: together by at most n·m, and n·m² in squares.
            Needs: bounds that were enforced on every unit before cells were counted.
            Ref: Dwork, McSherry, Nissim, Smith 2006.
        """
        if self.neighbors is Neighbors.ADD_REMOVE:
            times, squared = 1, 1
        else:
            times, squared = 2, 4 if signed else 2
        l1, l2_squared = times * self.total * column_l1, squared * squares
        if results is not None:
            many, most = results
            l1, l2_squared = min(l1, many * most), min(l2_squared, many * most**2)
        return Sensitivity(l0=min(l1, l2_squared), l1=Fraction(l1), l2_squared=Fraction(l2_squared))


def write_limits(contribution: Contribution) -> str:
    """Say in plain words what was left out of a unit before its rows were counted."""
    return f"of each unit at most {describe_contribution(contribution)}; rows beyond are not in the interval"


def describe_contribution(contribution: Contribution) -> str:
    """Say how many rows of a unit count, and in how many cells where that limits them."""
    cells, each, total = contribution.cells, contribution.each, contribution.total
    if cells >= total:
        return _count(total, "row")
    within = f"{_count(cells, 'cell')}, with {_count(each, 'row')} in {'it' if cells == 1 else 'each'}"
    return within if cells * each <= total else f"{within} and {total:,} in all"


def _count(many: int, noun: str) -> str:
    return f"{many:,} {noun}{'' if many == 1 else 's'}"


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
