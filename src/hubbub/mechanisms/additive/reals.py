"""Reals on a declared grid: rounded to whole steps first, so that no float is ever added to a float."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.mechanisms.additive.gaussian import Gaussian
from hubbub.mechanisms.additive.laplace import Geometric
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import grown_sensitivity, off_grid, on_grid
from hubbub.parameters import Real, positive, whole
from hubbub.privacy.events.event import Event
from hubbub.privacy.rounding import sqrt_up
from hubbub.privacy.sensitivity import Neighbors, Norm


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnGrid(ABC):
    """The common part of both: everything except the distance that rounding adds between
    neighbours, and the noise for it.
    """

    norm: ClassVar[Norm]

    sensitivity: Fraction
    grid: Fraction = Fraction(1)
    coordinates: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    steps: Geometric | Gaussian = field(init=False, repr=False, compare=False)
    """The same mechanism, in steps of the grid."""

    def __post_init__(self) -> None:
        settle(self, **{name: positive(name, getattr(self, name)) for name in ("sensitivity", "grid")})
        whole("coordinates", self.coordinates, least=1)
        settle(self, steps=self._in_steps())

    @abstractmethod
    def _in_steps(self) -> Geometric | Gaussian:
        """The same mechanism on whole steps, for as many of them as one unit can move the rounded value."""

    @property
    def needs(self) -> Needs:
        return Needs(
            norm=self.norm,
            sensitivity=self.sensitivity if self.norm is Norm.L1 else self.sensitivity**2,
            neighbors=self.neighbors,
            integers=False,
            coordinates=self.coordinates,
        )

    @property
    def event(self) -> Event:
        return self.steps.event

    def draw(self, value: Real | Array) -> Any:
        return off_grid(self.steps.draw(on_grid(value, self.grid)), self.grid)

    def repeat(self, value: Real, *, times: int) -> Array:
        rounded = on_grid(value, self.grid)
        return np.asarray(off_grid(self.steps.repeat(int(rounded), times=times), self.grid))

    def log_mass(self, value: Real, output: Real) -> float:
        multiple = Fraction(output) / self.grid
        if multiple.denominator != 1:
            return -math.inf
        return self.steps.log_mass(int(on_grid(value, self.grid)), int(multiple))

    def error(self, *, beta: float, dimension: int = 1) -> float:
        return float((self.steps.error(beta=beta, dimension=dimension) + Fraction(1, 2)) * self.grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(_OnGrid):
    """Reals on a declared grid plus geometric noise in whole steps of it.

    The value is rounded to the grid first, which may move neighbours apart: with ``coordinates`` changed coordinates by
    up to that many steps less one, and the sensitivity grows accordingly. NaN and infinities count as 0: a mechanism
    never raises because of the data. ``error(beta)`` is in the units of the value and includes the rounding.

    Privacy:
        Claim: Pure(epsilon) for real vectors with ‖x - x'‖₁ <= sensitivity that differ in at most ``coordinates``
            places.
        Proof: rounded to whole steps, the vectors differ by at most ``steps`` in L1 (integers.grown_sensitivity); the
            rest is Geometric with that sensitivity, and scaling back is post-processing.
        Needs: Geometric; the grid is public.
        Ref: Mironov 2012 for why no float is ever added to a float here.
    """

    norm: ClassVar[Norm] = Norm.L1

    epsilon: Fraction
    steps: Geometric = field(init=False, repr=False, compare=False)

    def _in_steps(self) -> Geometric:
        moved = grown_sensitivity(self.sensitivity, self.grid, self.coordinates)
        inner = Geometric(epsilon=self.epsilon, sensitivity=moved, neighbors=self.neighbors)
        settle(self, epsilon=inner.epsilon)
        return inner


@dataclass(frozen=True, slots=True, kw_only=True)
class GridGaussian(_OnGrid):
    """Reals on a declared grid plus discrete Gaussian noise in whole steps of it. NaN and infinities count as 0.

    Privacy:
        Claim: Zcdp(rho) for real vectors with ‖x - x'‖₂ <= sensitivity that differ in at most ``coordinates`` places.
        Proof: rounding moves each of the differing coordinates by less than one step against the other, so in steps the
            L2 distance is at most sensitivity/grid + √coordinates; the rest is Gaussian with that sensitivity.
        Needs: Gaussian; the grid is public.
        Ref: Canonne, Kamath, Steinke 2020.
    """

    norm: ClassVar[Norm] = Norm.L2

    rho: Fraction
    steps: Gaussian = field(init=False, repr=False, compare=False)

    def _in_steps(self) -> Gaussian:
        settle(self, rho=positive("rho", self.rho))
        moved, many = self.sensitivity / self.grid, self.coordinates
        grown = Fraction(math.ceil(moved)) if many == 1 else moved + sqrt_up(Fraction(many))
        return Gaussian.at_rho(rho=self.rho, sensitivity_squared=grown**2, neighbors=self.neighbors)
