"""Arguments, checked before anything is spent: one sentence form, exact rationals out.

A float is taken at its exact binary value: 0.1 is 3602879701896397/2^55 and nothing is rounded on the way in. Booleans,
strings, NaN and infinities are refused; so is 1e-400, which Python has already turned into zero.
"""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import SupportsIndex

import numpy as np

from hubbub.errors import MissingExtra, ParameterError

Real = int | float | Fraction
"""What a user may write for a real number; always taken at its exact value."""


def rational(name: str, value: object, *, requirement: str = "a finite number") -> Fraction:
    """The exact value of ``value``, or a ParameterError that says what it must be."""
    if isinstance(value, bool | np.bool_):
        raise ParameterError(name, requirement, value)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isfinite(number):
            return Fraction(number)
    raise ParameterError(name, requirement, value)


def positive(name: str, value: object) -> Fraction:
    """A number above zero, exactly."""
    requirement = "a positive number"
    number = rational(name, value, requirement=requirement)
    if number <= 0:
        raise ParameterError(name, requirement, value)
    return number


def non_negative(name: str, value: object) -> Fraction:
    """A number at or above zero, exactly."""
    requirement = "a number at least 0"
    number = rational(name, value, requirement=requirement)
    if number < 0:
        raise ParameterError(name, requirement, value)
    return number


def between(
    name: str, value: object, low: Real, high: Real, *, low_open: bool = False, high_open: bool = False
) -> Fraction:
    """A number in the interval from ``low`` to ``high``, exactly."""
    requirement = f"a number in {'(' if low_open else '['}{low}, {high}{')' if high_open else ']'}"
    number = rational(name, value, requirement=requirement)
    below = number <= low if low_open else number < low
    above = number >= high if high_open else number > high
    if below or above:
        raise ParameterError(name, requirement, value)
    return number


def probability(name: str, value: object) -> Fraction:
    """A number strictly between 0 and 1."""
    return between(name, value, 0, 1, low_open=True, high_open=True)


def whole(name: str, value: object, *, least: int = 0, most: int | None = None) -> int:
    """A whole number at least ``least`` (and at most ``most``); 3.0 and True are refused."""
    requirement = f"a whole number at least {least}" if most is None else f"a whole number from {least} to {most}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ParameterError(name, requirement, value)
    number = int(value)
    if number < least or (most is not None and number > most):
        raise ParameterError(name, requirement, value)
    return number


def interval(name: str, value: object) -> tuple[Fraction, Fraction]:
    """A pair (low, high) of finite numbers with low < high."""
    requirement = "a pair (low, high) of finite numbers with low < high"
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) != 2:
        raise ParameterError(name, requirement, value)
    low = rational(name, value[0], requirement=requirement)
    high = rational(name, value[1], requirement=requirement)
    if low >= high:
        raise ParameterError(name, requirement, value)
    return low, high


def size_of_draw(value: SupportsIndex | None) -> int | None:
    """``None`` for one sample, or a whole number of samples."""
    return None if value is None else whole("size", value)


def connection_parts(name: str, url: str) -> dict[str, str]:
    """Split the URL of a PostgreSQL database into its parts.

    A URL that cannot be parsed, or that was cut inside its password, is never printed.
    """
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as missing:
        raise MissingExtra("psycopg", "postgres") from missing
    try:
        parts, is_url = conninfo_to_dict(url), True
    except Error:
        parts, is_url = {}, False
    cut = "@" in str(parts.get("dbname", "")) or re.search(r"[^,]@", str(parts.get("host", "")))
    if not is_url or cut or not re.fullmatch(r"[0-9,]*", str(parts.get("port", ""))):
        shape = "a URL such as postgresql://user@host/database, with %40 for @ and %2F for / in a password"
        raise ParameterError(name, shape, "postgresql://…")
    return {part: str(value) for part, value in parts.items() if value is not None}
