"""Exact values that nobody may look at: secrets, and the sealed results of engines.

Python cannot hide memory from code in the same process; what a seal prevents is every accident: printing, logging,
formatting, comparing, iterating, pickling, copying, or doing arithmetic with an exact value. Only the gate opens a
seal, after the charge (``Meter.measure``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NoReturn, TypeVar

from hubbub.errors import MisfitError, ParameterError, SecretError
from hubbub.mechanisms.base import Mechanism
from hubbub.parameters import positive
from hubbub.privacy.sensitivity import ADDITIVE, Neighbors, Norm, Sensitivity

T = TypeVar("T")


U = TypeVar("U")

_CLOSED = """str format bytes bool int float complex index hash len iter next reversed contains getitem setitem delitem
call enter exit reduce reduce_ex getstate copy deepcopy array array_ufunc array_function eq
ne lt le gt ge neg pos abs invert round trunc floor ceil add radd sub rsub mul rmul matmul rmatmul truediv rtruediv
floordiv rfloordiv mod rmod divmod rdivmod pow rpow lshift rlshift rshift rrshift and rand or ror xor rxor dataframe
arrow_c_stream arrow_c_array dlpack"""


def _refuse(self: Any, *_: object, **__: object) -> NoReturn:
    raise SecretError("This value is sealed. Measure it: meter.measure(mechanism, secret) charges, then answers.")


def close_operations(sealed: type[T]) -> type[T]:
    """Let every operation of Python on instances of a class raise SecretError."""
    for name in _CLOSED.split():
        setattr(sealed, f"__{name}__", _refuse)
    return sealed


@close_operations
class Sealed(Generic[T]):
    """An exact value under seal, of which nothing is known but where it came from."""

    __slots__ = ("__read", "__value")

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "_Sealed__value", value)
        object.__setattr__(self, "_Sealed__read", None)

    @classmethod
    def later(cls, read: Callable[[], T]) -> "Sealed[T]":
        """Seal what ``read`` returns. It runs once, when the seal is opened: after the charge, where failures count."""
        sealed = cls(None)  # type: ignore[arg-type]
        object.__setattr__(sealed, "_Sealed__read", read)
        return sealed

    def map(self, change: Callable[[T], U]) -> "Sealed[U]":
        """Seal what a function makes of the value; the function runs when that seal is opened."""
        return Sealed.later(lambda: change(open_sealed(self)))

    def __repr__(self) -> str:
        return "<Sealed>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise SecretError("What is sealed cannot be changed.")

    def __delattr__(self, name: str) -> NoReturn:
        raise SecretError("What is sealed cannot be changed.")


def open_sealed(sealed: Sealed[T]) -> T:
    """Return the exact value: for the gate, after the charge, and for nobody else (a test reads every import of it)."""
    read = object.__getattribute__(sealed, "_Sealed__read")
    if read is not None:
        object.__setattr__(sealed, "_Sealed__value", read())
        object.__setattr__(sealed, "_Sealed__read", None)
    value: T = object.__getattribute__(sealed, "_Sealed__value")
    return value


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
