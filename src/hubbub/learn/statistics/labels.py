"""Ids and labels by value: what two of them must have in common to be the same, whatever types they come in.

7, 7.0 and Decimal(7) are one id, and so are two spellings of one moment. Objects that compare by rules of their own, or
by where they lie in memory, have no value here.

Privacy:
    Claim: the value of an id or label depends on it alone, and values are compared by Python's own types alone: no
        method of an object in a table is called while another row is looked at, and none raises.
    Proof: ``value_of`` returns exact ``str``, ``bytes``, ``int``, ``float``, ``complex``, ``Fraction`` and ``Decimal``
        objects and tuples of them, which hash and compare without code of the caller's; or None, whatever was raised.
    Needs: nothing.
    Ref: SOUNDNESS 35, 37.
"""

import math
from collections.abc import Hashable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from hubbub.learn.statistics.cells import Array

_WIDE = 400
"""Decimal digits on either side of the point up to which a decimal is compared with other numbers."""


def value_of(given: Any) -> Hashable | None:
    """Return what an id or label is compared by; None for what is missing or has no value."""
    if type(given) is str or type(given) is int:
        return given
    try:
        return _value(given)
    except KeyboardInterrupt:
        raise
    except BaseException:  # what cannot be looked at has no value, and says nothing
        return None


def values_of(given: Array) -> list[Hashable | None]:
    """Return the values of an array."""
    listed = list(given) if given.dtype.kind in "mM" else given.tolist()
    return [value_of(one) for one in listed]


def _value(given: Any) -> Hashable | None:
    kind = type(given)
    if issubclass(kind, str):
        return str.__str__(given)
    if issubclass(kind, bytes):
        return bytes.__getitem__(given, slice(None))
    if issubclass(kind, bool | np.bool_ | np.integer):
        return int(given)
    if issubclass(kind, int):
        return int.__int__(given)
    if issubclass(kind, float | np.floating | Fraction | Decimal):
        return _number(given)
    if issubclass(kind, complex | np.complexfloating):
        real, imaginary = _number(given.real), _number(given.imag)
        return None if real is None or imaginary is None else real if imaginary == 0 else ("complex", real, imaginary)
    if issubclass(kind, tuple):
        parts = tuple(value_of(part) for part in tuple.__iter__(given))
        return None if None in parts else ("tuple", parts)
    return _moment(given, kind)


def _number(given: Any) -> int | float | Fraction | Decimal | None:
    """Return a number in the simplest type that holds it."""
    if issubclass(type(given), Decimal):
        if Decimal.is_nan(given):
            return None
        if Decimal.is_finite(given) and abs(Decimal.adjusted(given)) > _WIDE:
            return Decimal(given)
    elif given != given:  # noqa: PLR0124
        return None
    if given in (math.inf, -math.inf):
        return float(given)
    exact = Fraction(*given.as_integer_ratio())
    if exact.denominator == 1:
        return exact.numerator
    about = float(exact)
    return about if about == exact else exact


def _moment(given: Any, kind: type) -> Hashable | None:
    """Return dates, times and ids of the standard library as text that only the same one has."""
    if issubclass(kind, np.datetime64 | np.timedelta64):
        if np.isnat(given):
            return None
        held = given.item()
        return _moment(held, type(held)) if not isinstance(held, int) else (kind.__name__, str(given))
    if issubclass(kind, datetime):
        if given != given:  # noqa: PLR0124
            return None
        return "datetime", (given if given.tzinfo is None else given.astimezone(UTC)).isoformat()
    if issubclass(kind, timedelta):
        if given != given:  # noqa: PLR0124
            return None
        return "timedelta", given.days, given.seconds, given.microseconds, getattr(given, "nanoseconds", 0)
    if issubclass(kind, date | time):
        return kind.__name__, given.isoformat()
    if issubclass(kind, UUID):
        return "uuid", int(given)
    if issubclass(kind, np.void):
        held = given.item()
        return value_of(held) if isinstance(held, tuple | bytes) else None
    return None
