"""The checks that every declaration goes through, whoever wrote it: exact values out, or one sentence that says where.

What is checked depends on the declaration alone. Nothing here has seen a row.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from fractions import Fraction

import numpy as np

from hubbub.errors import ParameterError, PolicyError
from hubbub.parameters import interval, positive, rational
from hubbub.policy.kinds import WIDEST, Kind, Type, finest, is_power_of_two, nearest_power_of_two, power

NUMBERS = (Type.INTEGER, Type.REAL)
RESERVED = "__hubbub"
"""Names that start so are the engine's own."""
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?B)", re.IGNORECASE)


def name(what: str, value: object) -> str:
    """A name that prints on one line, and that no engine column of ours can have."""
    if (
        not isinstance(value, str)
        or not 1 <= len(value) <= 200
        or not value.isprintable()
        or value.strip() != value
        or value.lower().startswith(RESERVED)
    ):
        requirement = f"a name of 1 to 200 printable characters, without spaces around it or {RESERVED} in front"
        raise ParameterError(what, requirement, value)
    return value


def bounds(column: str, kind: Kind, value: object) -> tuple[Fraction, Fraction]:
    """Read the bounds to which values are clamped: finite, in order, whole for integers and within their range."""
    if kind.type not in NUMBERS:
        raise PolicyError(
            f"Column {column} holds {kind.type} values, and only integers and reals have bounds. Leave them out.",
            name=f"bounds of column {column}",
        )
    where = f"bounds of column {column}"
    low, high = (Fraction(end) for end in interval(where, value))
    if kind.type is Type.INTEGER:
        least, most = kind.range
        if low.denominator != 1 or high.denominator != 1:
            raise ParameterError(where, "whole numbers, as its values are", value)
        if low < least or high > most:
            raise ParameterError(where, f"within {least} and {most}, which its type can hold", value)
    elif max(abs(low), abs(high)) > power(WIDEST) or high - low < power(-WIDEST):
        raise ParameterError(where, f"within ±2^{WIDEST} and at least 2^-{WIDEST} apart", value)
    return low, high


def grid(column: str, kind: Kind, value: object, within: tuple[Fraction, Fraction] | None) -> Fraction:
    """The step of a sum: whole for integers; for reals a power of two whose multiples within the bounds are DOUBLEs."""
    where = f"grid of column {column}"
    if kind.type not in NUMBERS:
        raise PolicyError(
            f"Column {column} holds {kind.type} values, and only integers and reals have a grid. Leave it out.",
            name=where,
        )
    step = Fraction(positive(where, value))
    if kind.type is Type.INTEGER:
        if step.denominator != 1:
            raise ParameterError(where, "a whole number, as its values are", value)
        return step
    if not power(-WIDEST - 22) <= step <= power(WIDEST):
        raise ParameterError(where, f"a power of two from 2^-{WIDEST + 22} to 2^{WIDEST}", value)
    step = Fraction(float(step))  # as a DOUBLE: so that the digits of 2^-40 that are usually printed name 2^-40
    if not is_power_of_two(step):
        nearest = float(nearest_power_of_two(step))
        requirement = f"a power of two, so that dividing by it is exact ({nearest:.17g} is the nearest)"
        raise ParameterError(where, requirement, value)
    if within is not None and step < finest(within):
        least = float(finest(within))
        raise ParameterError(where, f"at least {least:.17g}, since reals that large have no finer steps", value)
    return step


def keys(column: str, kind: Kind, value: object) -> tuple[bool | int | float | str | date | datetime | None, ...]:
    """The public values of groups: of the column's type, each once, in the order in which they are shown."""
    where = f"keys of column {column}"
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) == 0:
        raise ParameterError(where, "a list of at least one value", value)
    found = tuple(_key(where, kind, item) for item in value)
    seen = set()
    for item in found:
        if item in seen:
            raise ParameterError(where, f"different from each other; {item!r} is there twice", value)
        seen.add(item)
    return found


def _key(where: str, kind: Kind, value: object) -> bool | int | float | str | date | datetime | None:
    if value is None:
        if not kind.nullable:
            raise ParameterError(where, "without a missing value, since the column has none", value)
        return None
    match kind.type:
        case Type.BOOLEAN if isinstance(value, bool | np.bool_):
            return bool(value)
        case Type.INTEGER if isinstance(value, int | np.integer) and not isinstance(value, bool):
            low, high = kind.range
            if not low <= int(value) <= high:
                raise ParameterError(where, f"from {low} to {high}, which its type can hold", value)
            return int(value)
        case Type.REAL:
            return _real(where, value)
        case Type.TEXT if isinstance(value, str):
            return _text(where, value)
        case Type.DATE if isinstance(value, date) and not isinstance(value, datetime):
            return date(value.year, value.month, value.day)
        case Type.TIMESTAMP if isinstance(value, datetime):
            return _moment(where, value)
    raise ParameterError(where, f"{kind.type} values, as the column's are", value)


def _real(where: str, value: object) -> float:
    try:
        return float(rational(where, value, requirement="finite real values")) + 0.0  # -0.0 is 0.0
    except OverflowError:
        raise ParameterError(where, "finite real values", value) from None


def _text(where: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParameterError(where, "text that UTF-8 can write", value) from None
    return str(value)


def _moment(where: str, value: datetime) -> datetime:
    try:
        plain = datetime.combine(value.date(), value.time())
    except (TypeError, ValueError):  # a frame's "not a time"
        raise ParameterError(where, "timestamp values, as the column's are", value) from None
    if value.tzinfo is not None or getattr(value, "nanosecond", 0) != 0:
        raise ParameterError(where, "moments in UTC without a time zone, to the microsecond", value)
    return plain


def memory(what: str, value: object) -> str:
    """An amount of memory or disk, as the engine reads it."""
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None or float(found[1]) <= 0:
        raise ParameterError(what, 'an amount such as "512MB" or "4GB"', value)
    return found[0]


def seconds(what: str, value: object) -> float:
    """A length of time above 0."""
    length = positive(what, value)
    if length > 10**9 or float(length) == 0:
        raise ParameterError(what, "a positive number of seconds, at most 10^9", value)
    return float(length)


def suggestion(written: object, known: Iterable[str]) -> str:
    """The end of an error about a name that does not exist."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(written).lower(), list(names), n=1)
    if close:
        return f" Did you mean {names[close[0]]}?"
    shown = list(names.values())
    return f" There is {', '.join(shown[:12])}{', …' if len(shown) > 12 else ''}."
