"""Clamping bounds of an expression's values before they are added up: from declared bounds and constants alone."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from hubbub.errors import MissingBounds
from hubbub.query.expression import Call, Column, Expression, Literal

Interval = tuple[Fraction, Fraction]


def bounds_of(expression: Expression, declared: Callable[[str], Interval | None]) -> Interval:
    """The bounds of an expression whose columns keep theirs, or MissingBounds."""
    found = _find_bounds(expression, declared)
    if found is None:
        raise MissingBounds(
            "There are no declared bounds for these values. Write least(greatest(x, 0), 100), or let the owner declare "
            "the column's bounds."
        )
    if found[0] < found[1]:
        return found
    only = found[0] or Fraction(1)  # one constant: from 0 to it, and sum(1) is a count
    return min(only, Fraction(0)), max(only, Fraction(0))


def interval_of(expression: Expression, declared: Callable[[str], Interval | None]) -> Interval | None:
    """The same, or None; constants have an interval too."""
    return _find_bounds(expression, declared)


def _find_bounds(expression: Expression, declared: Callable[[str], Interval | None]) -> Interval | None:
    match expression:
        case Column(name=name):
            return declared(name)
        case Literal(value=bool() | None):
            return None
        case Literal(value=int() | float() as value):
            return Fraction(value), Fraction(value)
        case Call(function="case", arguments=arguments):
            return _union(
                [_find_bounds(part, declared) for part in (*arguments[1::2], arguments[-1]) if not _null(part)]
            )
        case Call(function="least" | "greatest", arguments=arguments):
            return _clamp_bounds(expression, declared)
        case Call(function=function, arguments=arguments) if function in _RULES:
            parts = [_find_bounds(part, declared) for part in arguments]
            known = [part for part in parts if part is not None]
            return _RULES[function](*known) if len(known) == len(parts) else None
        case _:
            pass
    if expression.kind.low is not None and expression.kind.high is not None and not expression.kind.wide:
        low, high = expression.kind.range
        if high - low < 1 << 32:
            return Fraction(low), Fraction(high)
    return None


def _null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _union(parts: list[Interval | None]) -> Interval | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _clamp_bounds(expression: Call, declared: Callable[[str], Interval | None]) -> Interval | None:
    """least(greatest(x, low), high), in either order: constants bound what is not bounded itself."""
    low, high = _sides(expression, declared)
    return None if low is None or high is None else (low, high)


def _sides(
    expression: Expression, declared: Callable[[str], Interval | None]
) -> tuple[Fraction | None, Fraction | None]:
    if not isinstance(expression, Call) or expression.function not in {"least", "greatest"}:
        return _find_bounds(expression, declared) or (None, None)
    sides = [_sides(part, declared) for part in expression.arguments]
    lows = [low for low, _ in sides if low is not None]
    highs = [high for _, high in sides if high is not None]
    if expression.function == "least":
        return (min(lows) if len(lows) == len(sides) else None), min(highs, default=None)
    return max(lows, default=None), (max(highs) if len(highs) == len(sides) else None)


def _corners(work: Callable[[Fraction, Fraction], Fraction]) -> Callable[[Interval, Interval], Interval]:
    def rule(left: Interval, right: Interval) -> Interval:
        ends = [work(a, b) for a in left for b in right]
        return min(ends), max(ends)

    return rule


def _absolute(only: Interval) -> Interval:
    low, high = only
    return (Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


_RULES: Mapping[str, Callable[..., Interval]] = {
    "add": _corners(lambda a, b: a + b),
    "subtract": _corners(lambda a, b: a - b),
    "multiply": _corners(lambda a, b: a * b),
    "negate": lambda only: (-only[1], -only[0]),
    "abs": _absolute,
    "to_real": lambda only: only,
    "to_integer": lambda only: (Fraction(round(only[0])), Fraction(round(only[1]))),
    "floor": lambda only: (Fraction(only[0].__floor__()), Fraction(only[1].__floor__())),
    "ceil": lambda only: (Fraction(only[0].__ceil__()), Fraction(only[1].__ceil__())),
    "coalesce": lambda *parts: (min(low for low, _ in parts), max(high for _, high in parts)),
    "nullif": lambda only, _: only,
}
