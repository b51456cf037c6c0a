"""An exact value that nobody may look at, with what the plan proved about it: what the Meter charges for and opens."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, NoReturn, TypeVar

from hubbub.errors import MisfitError, ParameterError, SecretError
from hubbub.gate.sealed import Sealed, close_operations, open_sealed
from hubbub.mechanisms.base import Mechanism
from hubbub.parameters import positive
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import ADDITIVE, Norm, Sensitivity

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The proven facts about a Secret: who pays for it, who its neighbours are, and how far one unit can move it."""

    account: str
    sensitivity: Sensitivity
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    grid: Fraction | None = Fraction(1)
    """The value is whole steps of this, and the sensitivities count steps; None for raw reals, scores and multisets."""

    def __post_init__(self) -> None:
        if not isinstance(self.account, str) or not self.account:
            raise ParameterError("account", "a name", self.account)
        if self.grid is not None:
            object.__setattr__(self, "grid", positive("grid", self.grid))
        if self.sensitivity.monotone and self.neighbors is not Neighbors.ADD_REMOVE:
            raise ParameterError("monotone", "False unless neighbours add or remove one unit", True)

    def check_fit(self, mechanism: Mechanism) -> None:
        """Refuse a mechanism that was calibrated for less than what one unit can do here."""
        needs = mechanism.needs
        name = type(mechanism).__name__
        if needs.neighbors is not self.neighbors:
            raise MisfitError(
                f"{name} protects {needs.neighbors} neighbours, but this value was bounded for {self.neighbors}.",
                mechanism=name,
                neighbors=self.neighbors,
            )
        if needs.integers is not (self.grid is not None) and needs.norm in ADDITIVE:
            wanted = "whole steps of a grid" if needs.integers else "raw reals"
            raise MisfitError(f"{name} takes {wanted}. Declare the grid where the value is made.", mechanism=name)
        bound = self.sensitivity.in_norm(needs.norm)
        if bound is None:
            raise MisfitError(
                f"{name} needs a proven bound in {needs.norm}, and none is known for this value.", mechanism=name
            )
        if bound > needs.sensitivity:
            raise MisfitError(
                f"{name} was calibrated for a change of {_show(needs.sensitivity, needs.norm)} in {needs.norm}, "
                f"but one unit can change this value by {_show(bound, needs.norm)}.",
                mechanism=name,
                norm=needs.norm,
                calibrated=needs.sensitivity,
                proven=bound,
            )
        coordinates = self.sensitivity.l0
        if needs.coordinates is not None and (coordinates is None or coordinates > needs.coordinates):
            raise MisfitError(
                f"{name} was calibrated for {needs.coordinates} changed coordinates, but one unit can change "
                f"{'any number' if coordinates is None else coordinates} here.",
                mechanism=name,
                coordinates=coordinates,
            )
        if needs.monotone and not self.sensitivity.monotone:
            raise MisfitError(f"{name} relies on monotone scores, which are not proven here.", mechanism=name)


@close_operations
class Secret(Generic[T]):
    """An exact value under seal, with what is proven about it. ``facts`` may be read; the value may not."""

    __slots__ = ("__sealed", "facts")

    facts: Facts

    def __init__(self, value: T | Sealed[T], facts: Facts) -> None:
        object.__setattr__(self, "facts", facts)
        object.__setattr__(self, "_Secret__sealed", value if isinstance(value, Sealed) else Sealed(value))

    def __repr__(self) -> str:
        return f"<Secret of account {self.facts.account!r}, sealed>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise SecretError("A Secret cannot be changed.")

    def __delattr__(self, name: str) -> NoReturn:
        raise SecretError("A Secret cannot be changed.")


def open_secret(secret: Secret[T]) -> T:
    """Return the exact value: for the Meter, after the charge, and for nobody else."""
    sealed: Sealed[T] = object.__getattribute__(secret, "_Secret__sealed")
    return open_sealed(sealed)


def _show(bound: Fraction, norm: Norm) -> str:
    return f"√{bound}" if norm is Norm.L2 else str(bound)
