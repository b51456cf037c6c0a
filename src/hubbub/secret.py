"""An exact value that nobody may look at, with what the plan proved about it.

Python cannot hide memory from code in the same process; what a Secret prevents is every accident: printing, logging,
formatting, comparing, iterating, pickling, copying, or doing arithmetic with an exact value outside the rules that
recompute its facts. Only the Meter opens one, after it has charged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NoReturn, TypeVar

from hubbub.errors import MisfitError, ParameterError, SecretError
from hubbub.mechanisms.base import Mechanism
from hubbub.parameters import positive
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import ADDITIVE, Norm, Sensitivity

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is proven about a Secret: who pays for it, who its neighbours are, and how far one unit can move it."""

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


@dataclass(frozen=True, slots=True)
class _Later(Generic[T]):
    """An exact value that is computed when it is opened."""

    compute: Callable[[], T]


class Secret(Generic[T]):
    """An exact value under seal. ``facts`` may be read; the value may not."""

    __slots__ = ("__value", "facts")

    facts: Facts

    def __init__(self, value: T, facts: Facts) -> None:
        object.__setattr__(self, "facts", facts)
        object.__setattr__(self, "_Secret__value", value)

    @classmethod
    def later(cls, compute: Callable[[], T], facts: Facts) -> "Secret[T]":
        """Seal a value that is computed when it is opened: after the charge, so that a failure of it is counted."""
        return cls(_Later(compute), facts)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<Secret of account {self.facts.account!r}, sealed>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise SecretError("A Secret cannot be changed.")

    def __delattr__(self, name: str) -> NoReturn:
        raise SecretError("A Secret cannot be changed.")


def opened(secret: Secret[T]) -> T:
    """The exact value: for the Meter, after the charge, and for nobody else (a test reads every import of it)."""
    value: T | _Later[T] = object.__getattribute__(secret, "_Secret__value")
    return value.compute() if isinstance(value, _Later) else value


def _sealed(self: Any, *_: object, **__: object) -> NoReturn:
    raise SecretError("This value is sealed. Measure it: meter.measure(mechanism, secret) charges, then answers.")


_CLOSED = """str format bytes bool int float complex index hash len iter next reversed contains getitem setitem delitem
call enter exit reduce reduce_ex getstate copy deepcopy array array_ufunc array_function eq
ne lt le gt ge neg pos abs invert round trunc floor ceil add radd sub rsub mul rmul matmul rmatmul truediv rtruediv
floordiv rfloordiv mod rmod divmod rdivmod pow rpow lshift rlshift rshift rrshift and rand or ror xor rxor dataframe
arrow_c_stream arrow_c_array dlpack"""
for _name in _CLOSED.split():
    setattr(Secret, f"__{_name}__", _sealed)


def _show(bound: Fraction, norm: Norm) -> str:
    return f"√{bound}" if norm is Norm.L2 else str(bound)
