"""What every function means, written a second time: slow, obvious, and sharing nothing with the code it judges.

It knows the classes of ``query.expression`` and the kinds of the policy, and imports nothing else of ours. At every
node the value is held against its static kind, so that running it is a test of the typing rules too.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from hubbub.policy.kinds import INT64, Kind, Type
from hubbub.query.expression import Call, Column, Expression, Literal


class Unsound(AssertionError):
    """A value is not what its kind promised."""


def fits(value: Any, kind: Kind) -> bool:
    """Whether a value is of a kind."""
    if value is None:
        return kind.nullable
    match kind.type:
        case Type.BOOLEAN:
            return type(value) is bool
        case Type.INTEGER:
            return type(value) is int and kind.range[0] <= value <= kind.range[1]
        case Type.REAL:
            return type(value) is float and math.isfinite(value)
        case Type.TEXT:
            return type(value) is str
        case Type.DATE:
            return type(value) is date
        case Type.TIMESTAMP:
            return type(value) is datetime and value.tzinfo is None


def safe(value: Any, kind: Kind) -> Any:
    """What a scan makes of a value: what its kind cannot hold is missing."""
    anything = Kind(type=kind.type, nullable=True, low=kind.low, high=kind.high)
    return value if fits(value, anything) else None


# Expressions


def value(expression: Expression, row: Mapping[str, Any]) -> Any:
    """The value for one row, held against the expression's kind."""
    found = _value(expression, row)
    if not fits(found, expression.kind):
        raise Unsound(f"{expression} gave {found!r}")
    return found


def _value(expression: Expression, row: Mapping[str, Any]) -> Any:
    match expression:
        case Column(name=name):
            return row[name]
        case Literal(value=constant):
            return constant
        case Call(function=function, arguments=arguments):
            # All arguments are evaluated, whatever the function needs: each must be total by itself.
            values = [value(argument, row) for argument in arguments]
            if function in OPEN:
                return OPEN[function](*values)
            if any(one is None for one in values):
                return None
            return _finite(STRICT[function](*values))


def _finite(result: Any) -> Any:
    return None if isinstance(result, float) and not math.isfinite(result) else result


def _and(*values: bool | None) -> bool | None:
    if any(one is False for one in values):
        return False
    return None if any(one is None for one in values) else True


def _or(*values: bool | None) -> bool | None:
    if any(one is True for one in values):
        return True
    return None if any(one is None for one in values) else False


def _case(*values: Any) -> Any:
    for place in range(0, len(values) - 1, 2):
        if values[place] is True:
            return values[place + 1]
    return values[-1]


def _coalesce(*values: Any) -> Any:
    for one in values:
        if one is not None:
            return one
    return None


def _nullif(first: Any, second: Any) -> Any:
    return None if first is None or (second is not None and first == second) else first


OPEN: Mapping[str, Callable[..., Any]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
    "is_null": lambda only: only is None,
    "nullif": _nullif,
}
"""Functions that have an answer to missing arguments."""


def _divide(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def _quotient(a: int, b: int) -> int | None:
    return None if b == 0 else math.trunc(Fraction(a, b))


def _remainder(a: int, b: int) -> int | None:
    return None if b == 0 else a - b * math.trunc(Fraction(a, b))


def within64(whole: int) -> int | None:
    """Missing beyond 64 bits."""
    return whole if INT64[0] <= whole <= INT64[1] else None


def half_even(exact: Fraction) -> int:
    """The nearest whole number; of two, the even one."""
    below = math.floor(exact)
    rest = exact - below
    if rest == Fraction(1, 2):
        return below + below % 2
    return below if rest < Fraction(1, 2) else below + 1


def _sqrt(x: float) -> float | None:
    return None if x < 0 else math.sqrt(x)


def _ln(x: float) -> float | None:
    return None if x <= 0 else math.log(x)


def _exp(x: float) -> float | None:
    try:
        return math.exp(x)
    except OverflowError:
        return None


def _lower(text: str) -> str:
    """One character becomes one character: no rule about its neighbours, and İ is i."""
    return "".join("i" if one == "İ" else one.lower() for one in text)


def _upper(text: str) -> str:
    out = []
    for one in text:
        choices = ["ẞ" if one == "ß" else one.upper(), one.title(), one]
        out.append(next(choice for choice in choices if len(choice) == 1))
    return "".join(out)


def _trim(text: str) -> str:
    """Blanks alone: not tabs, not the wide spaces of other scripts."""
    while text.startswith(" "):
        text = text[1:]
    while text.endswith(" "):
        text = text[:-1]
    return text


def _like(text: str, pattern: str) -> bool:
    """By the table of prefixes: whether pattern[:j] matches text[:i]."""
    matches = [True] + [False] * len(text)
    for sign in pattern:
        if sign == "%":
            matches = list(itertools.accumulate(matches, max))
        else:
            hits = [sign in {"_", one} for one in text]
            matches = [False] + [before and hit for before, hit in zip(matches, hits, strict=False)]
    return matches[-1]


def _substring(text: str, start: int, length: int) -> str:
    return "".join(one for place, one in enumerate(text, start=1) if start <= place < start + length)


def _on_day(moment: date) -> date:
    return date(moment.year, moment.month, moment.day)


def _start_of_quarter(moment: date) -> date:
    return date(moment.year, (1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10, 10)[moment.month - 1], 1)


STRICT: Mapping[str, Callable[..., Any]] = {
    "not": lambda a: a is False,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "in": lambda a, *choices: any(a == one for one in choices),
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": _divide,
    "quotient": _quotient,
    "remainder": _remainder,
    "negate": lambda a: -a,
    "abs": abs,
    "least": lambda *values: sorted(values)[0],
    "greatest": lambda *values: sorted(values)[-1],
    "to_real": float,
    "to_integer": lambda a: within64(half_even(Fraction(a))),
    "floor": lambda a: within64(math.floor(a)),
    "ceil": lambda a: within64(math.ceil(a)),
    "sqrt": _sqrt,
    "ln": _ln,
    "exp": _exp,
    "lower": _lower,
    "upper": _upper,
    "trim": _trim,
    "length": len,
    "like": _like,
    "starts_with": lambda text, start: text[: len(start)] == start,
    "substring": _substring,
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "day": lambda moment: moment.day,
    "weekday": lambda moment: moment.toordinal() % 7,
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "start_of_year": lambda moment: date(moment.year, 1, 1),
    "start_of_quarter": _start_of_quarter,
    "start_of_month": lambda moment: date(moment.year, moment.month, 1),
    "start_of_week": lambda moment: _on_day(moment) - timedelta(days=(moment.toordinal() - 1) % 7),
    "start_of_day": _on_day,
    "days_between": lambda a, b: a.toordinal() - b.toordinal(),
}
"""Functions that are missing where an argument is."""
