"""An exact result that nobody may look at: everything that an engine returns is one.

Python cannot hide memory from code in the same process; what a seal prevents is every accident: printing, logging,
formatting, comparing, iterating, pickling, copying, or doing arithmetic with an exact value. Only the gate opens a
seal, after the charge (``Meter.measure``).
"""

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

from hubbub.errors import SecretError

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
