"""Groups that a range in the question's own WHERE makes public: the months of ``day >= DATE '1995-01-01' AND day <
DATE '1996-01-01'``, the ages of ``age BETWEEN 20 AND 29``. What the question says is public, and rows outside are left
out by it anyway."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta

from hubbub.policy.kinds import Type
from hubbub.query.check.evaluate import evaluate
from hubbub.query.expression import Call, Column, Expression, Literal, Value

MOST_STEPS = 40_000
"""Days or whole numbers in a range that are gone through: a century of days."""
_FLIPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq"}
_OF_A_DAY = frozenset(
    {"year", "quarter", "month", "day", "weekday", *(f"start_of_{one}" for one in ("year", "quarter", "month", "week"))}
    | {"start_of_day"}
)
"""What is the same for all moments of a day."""


def range_of_key(key: Expression, conditions: Sequence[Expression]) -> Iterable[Value] | None:
    """The key's values, where it looks at one column that WHERE bounds from both sides; None elsewhere."""
    column = _only_column(key)
    if column is None:
        return None
    steps = _steps(column, conditions)
    return None if steps is None else dict.fromkeys(evaluate(key, {column.name: step}) for step in steps)


def _only_column(key: Expression) -> Column | None:
    """A whole number or a date that the key is a function of; of a moment, only its day may be looked at."""
    found: set[Column] = set()
    waiting: list[tuple[Expression, bool]] = [(key, False)]
    while waiting:
        one, by_day = waiting.pop()
        match one:
            case Column() if one.kind.type in {Type.INTEGER, Type.DATE} or (by_day and one.kind.type is Type.TIMESTAMP):
                found.add(one)
            case Column():
                return None
            case Call(function=function, arguments=arguments):
                waiting += [(part, function in _OF_A_DAY) for part in arguments]
            case Literal():
                pass
    return found.pop() if len(found) == 1 else None


def _steps(column: Column, conditions: Sequence[Expression]) -> Sequence[Value] | None:
    lows, highs = [], []
    for condition in conditions:
        end = _end(column, condition)
        if end is None:
            continue
        how, value = end
        if how in {"ge", "gt", "eq"}:
            lows.append(_first(value) if how != "gt" else _after(value))
        if how in {"le", "lt", "eq"}:
            highs.append(_first(value) if how != "lt" else _before(value))
    if not lows or not highs:
        return None
    low, high = max(lows), min(highs)
    if high - low >= MOST_STEPS:
        return None
    whole = column.kind.type is Type.INTEGER
    steps = range(low, high + 1)
    return steps if whole else [_moment(one, column.kind.type) for one in steps if 1 <= one <= date.max.toordinal()]


def _end(column: Column, condition: Expression) -> tuple[str, int | date] | None:
    """Return the comparison and the constant by which a condition bounds the column, or None."""
    match condition:
        case Call(function=how, arguments=(one, Literal(value=value))) if one == column and how in _FLIPPED:
            pass
        case Call(function=how, arguments=(Literal(value=value), one)) if one == column and how in _FLIPPED:
            how = _FLIPPED[how]
        case _:
            return None
    return (how, value) if isinstance(value, int | date) and not isinstance(value, bool) else None


def _first(value: int | date) -> int:
    """A whole number, or the number of the day that a moment is on."""
    return value if isinstance(value, int) else value.toordinal()


def _after(value: int | date) -> int:
    return _first(value) + (0 if isinstance(value, datetime) else 1)


def _before(value: int | date) -> int:
    within = isinstance(value, datetime) and value.time() != time.min
    return _first(value) - (0 if within else 1)


def _moment(ordinal: int, type_: Type) -> date:
    day = date.min + timedelta(days=ordinal - 1)
    return day if type_ is Type.DATE else datetime.combine(day, time.min)
