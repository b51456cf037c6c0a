"""Python objects as text, by their values alone: cells of a frame's object columns, and of JSON.

Columns without a type are text, and text is what names a unit, so these rules say who is the same person:

- equal whole numbers are equal texts, whatever type they have: 1, 1.0, Decimal("1.00") and numpy's 1 are ``1``; others
  are written with the fewest digits that name them;
- a number, a boolean, a day or a UUID and the text that spells it are the same: 1 and "1", True and "true". A text is
  never spelt otherwise: "1.0" and "01" are other people than 1;
- different moments are different texts: nanoseconds are kept, and a moment with a time zone is written in UTC with its
  offset, so that it is not the same as one without;
- what has no text that could be read again (NaN, infinities, lists, letters that UTF-8 cannot hold) is missing.
"""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

_MOST_DIGITS = 400


def text_of(value: object) -> str | None:
    """A Python object as text, by its value alone; None where it has none that could be read again."""
    try:
        return _text_of(value)
    except Exception:  # letters, numbers and moments beyond what text can hold, or a class that does as it likes
        return None


def _text_of(value: object) -> str | None:
    match value:
        case str():
            value.encode()
            return str(value)
        case bool() | np.bool_():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float() | Decimal():
            return _number(value)
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case UUID():
            return str(value)
        case np.datetime64():
            return _moment64(value)
        case np.integer() | np.floating():
            plain: object = value.item()
            return _long(plain) if isinstance(plain, np.floating) else _text_of(plain)
    return None


def _moment(value: datetime) -> str:
    """A moment with its nanoseconds, if it is one of pandas'; in UTC, with the offset, if it has a time zone."""
    offset = "" if value.tzinfo is None else "+00:00"
    if value.tzinfo is not None:
        value = value.astimezone(UTC)
    moment = datetime.combine(value.date(), value.time())  # a frame's "not a time" has neither
    return _exact(moment, getattr(value, "nanosecond", 0)) + offset


def _moment64(value: "np.datetime64") -> str | None:
    if np.isnat(value):
        return None
    moment = value.astype("datetime64[us]")
    below = (value - moment).astype("timedelta64[ns]")
    plain = moment.item()
    if moment + below != value or not isinstance(plain, datetime):
        return None
    return _exact(plain, int(below))


def _exact(moment: datetime, nanoseconds: int) -> str:
    if not nanoseconds:
        return moment.isoformat(sep=" ")
    return f"{moment.isoformat(sep=' ', timespec='microseconds')}{nanoseconds:03d}"


def _long(value: "np.floating[Any]") -> str | None:
    """A real of more bits than Python's, which numpy hands out as it is."""
    if not np.isfinite(value):
        return None
    whole = int(value)
    return str(whole) if value == whole else np.format_float_positional(value, unique=True, trim="-")


def _number(value: float | Decimal) -> str | None:
    """Equal numbers are equal texts, since a unit may be named 1 in one row and 1.0 in the next."""
    finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    if not finite or (isinstance(value, Decimal) and value and abs(value.adjusted()) > _MOST_DIGITS):
        return None
    if value == int(value):
        return str(int(value))
    return repr(float(value)) if isinstance(value, float) else f"{value:f}".rstrip("0")
