"""Expressions over public values, in Python: for keys that the owner declared and for numbers that are noisy already.

Never for rows. Numbers are exact where they are whole; a real that would not be finite is missing, as in the engine.
"""

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from hubbub.policy.kinds import INT64
from hubbub.query.expression import Call, Column, Expression, Literal, Value

Row = Mapping[str, Any]


def evaluate(expression: Expression, row: Row) -> Any:
    """The value of an expression where its columns have these values."""
    match expression:
        case Column(name=name):
            return row[name]
        case Literal(value=value):
            return value
        case Call(function="and" | "or" as function, arguments=arguments):
            return _logic(function == "and", [evaluate(argument, row) for argument in arguments])
        case Call(function="case", arguments=arguments):
            for condition, chosen in zip(arguments[:-1:2], arguments[1::2], strict=True):
                if evaluate(condition, row) is True:
                    return evaluate(chosen, row)
            return evaluate(arguments[-1], row)
        case Call(function="coalesce", arguments=arguments):
            return next((found for part in arguments if (found := evaluate(part, row)) is not None), None)
        case Call(function="is_null", arguments=(only,)):
            return evaluate(only, row) is None
        case Call(function=function, arguments=arguments):
            values = [evaluate(argument, row) for argument in arguments]
            if any(value is None for value in values):
                return values[0] if function == "nullif" else None
            return _finite(_STRICT[function](*values))


def _logic(conjunction: bool, values: list[bool | None]) -> bool | None:
    if (not conjunction) in values:
        return not conjunction
    return None if None in values else conjunction


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _guard(work: Callable[..., Any]) -> Callable[..., Any]:
    def run_guarded(*values: Any) -> Any:
        try:
            return work(*values)
        except (ArithmeticError, ValueError):
            return None

    return run_guarded


def _quotient(left: int, right: int) -> int | None:
    if right == 0:
        return None
    whole = abs(left) // abs(right)
    return whole if (left < 0) is (right < 0) else -whole


def _remainder(left: int, right: int) -> int | None:
    whole = _quotient(left, right)
    return None if whole is None else left - whole * right


def _like(text: str, pattern: str) -> bool:
    """Without going back: each piece between two % is taken at the first place where it fits."""
    first, *pieces = pattern.split("%")
    if not pieces:
        return len(text) == len(first) and _fits(text, 0, first)
    last = pieces.pop()
    end = len(text) - len(last)
    place = len(first)
    if place > end or not _fits(text, 0, first) or not _fits(text, end, last):
        return False
    for piece in pieces:
        found = next((start for start in range(place, end - len(piece) + 1) if _fits(text, start, piece)), None)
        if found is None:
            return False
        place = found + len(piece)
    return True


def _fits(text: str, start: int, piece: str) -> bool:
    return all(sign in {"_", one} for sign, one in zip(piece, text[start : start + len(piece)], strict=True))


def _whole(round_: Callable[[float], int]) -> Callable[[float], int | None]:
    """Missing beyond 64 bits."""

    def whole(value: float) -> int | None:
        found = round_(value)
        return found if INT64[0] <= found <= INT64[1] else None

    return whole


def _lower(text: str) -> str:
    """One character for one, as engines do it: no final sigma, no second dot."""
    return "".join(one.lower()[0] for one in text)


def _upper(text: str) -> str:
    return "".join(_upper_one(one) for one in text)


def _upper_one(character: str) -> str:
    if character == "ß":
        return "ẞ"
    return next(one for one in (character.upper(), character.title(), character) if len(one) == 1)


def _day(moment: date | datetime) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _quarter(moment: date) -> int:
    return (moment.month - 1) // 3 + 1


_STRICT: Mapping[str, Callable[..., Any]] = {
    "not": lambda value: not value,
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
    "in": lambda value, *choices: value in choices,
    "add": lambda left, right: left + right,
    "subtract": lambda left, right: left - right,
    "multiply": lambda left, right: left * right,
    "divide": _guard(lambda left, right: left / right),
    "quotient": _quotient,
    "remainder": _remainder,
    "negate": lambda value: -value,
    "abs": abs,
    "least": min,
    "greatest": max,
    "to_real": float,
    "to_integer": _whole(round),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "sqrt": _guard(math.sqrt),
    "ln": _guard(math.log),
    "exp": _guard(math.exp),
    "nullif": lambda value, other: None if value == other else value,
    "lower": _lower,
    "upper": _upper,
    "trim": lambda text: text.strip(" "),
    "length": len,
    "like": _like,
    "starts_with": str.startswith,
    "substring": lambda text, start, length: text[start - 1 : start - 1 + length],
    "year": lambda moment: moment.year,
    "quarter": _quarter,
    "month": lambda moment: moment.month,
    "day": lambda moment: moment.day,
    "weekday": lambda moment: moment.isoweekday() % 7,
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "start_of_year": lambda moment: date(moment.year, 1, 1),
    "start_of_quarter": lambda moment: date(moment.year, 3 * _quarter(moment) - 2, 1),
    "start_of_month": lambda moment: date(moment.year, moment.month, 1),
    "start_of_week": lambda moment: _day(moment) - timedelta(days=moment.weekday()),
    "start_of_day": _day,
    "days_between": lambda left, right: (left - right).days,
}

EVALUATED = frozenset(_STRICT) | {"and", "or", "case", "coalesce", "is_null"}
"""The functions that this knows: all of them, by test."""

__all__ = ["EVALUATED", "Row", "Value", "evaluate"]
