"""Sources of the groups of a question: public values, ranges in its own WHERE, and otherwise a private selection.

In this order: a list in the question's own WHERE, the keys that the owner declared, the values of a public table, a
range in WHERE, or all values that the expression can take, where those are few and known beforehand. A key without any
of these is private: what it shows is selected by how many units have it (query.selection), if the account has a δ for
that.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Protocol

from hubbub.errors import MissingKeys, TooHeavy
from hubbub.policy.kinds import Type
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.check.evaluate import evaluate
from hubbub.query.expression import Call, Column, Expression, Literal, Value, columns_of
from hubbub.query.ops import Cell, Group

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


MOST_VALUES = 100_000
"""Values of one key."""
_MOST_RANGE = 1000
"""How many values of a whole number are few."""


class Known(Protocol):
    """The public values of a column, if it has any."""

    def values(self, name: str) -> tuple[Value, ...] | None:
        """Declared keys, or the values of a public table's column; None where there are none."""


def group_of(
    name: str, key: Expression, conditions: Sequence[Expression], known: Known, *, budget: Budget, unit: bool = False
) -> Group:
    """The key as a group: with its public values, or private where it has none and the account lets keys be selected.

    ``unit`` says that the key is the unit itself: no selection would show any of its groups.
    """
    values = public_values(name, key, conditions, known)
    if values is not None:
        return Group(name=name, expression=key, values=values)
    listing = "List them (WHERE … IN (…)), join with a public table, or let the owner declare its keys"
    if unit:
        raise MissingKeys(f"Each group of {name} would be one unit. Group by something that units share.", key=name)
    if budget.delta == 0:
        raise MissingKeys(
            f"The groups of {name} are not public. {listing}; an account with δ > 0 would show those of many units.",
            key=name,
        )
    if budget.neighbors is not Neighbors.ADD_REMOVE:
        raise MissingKeys(
            f"The groups of {name} are not public, and selecting them protects add-remove neighbours alone. {listing}.",
            key=name,
        )
    return Group(name=name, expression=key, values=(), private=True)


def public_values(
    name: str, key: Expression, conditions: Sequence[Expression], known: Known
) -> tuple[Value, ...] | None:
    """The values that a key may take, each once, in an order that does not depend on the data; None if not public."""
    found = _keys_in_conditions(key, conditions)
    if found is None:
        found = _from_columns(name, key, known)
    if found is None:
        found = range_of_key(key, conditions)
    if found is None:
        found = _possible(key)
    if found is None:
        return None
    values = tuple(dict.fromkeys(found))
    _check_many(name, len(values))
    return values


def _check_many(name: str, many: int) -> None:
    if many > MOST_VALUES:
        raise TooHeavy(f"{name} has {many:,} groups. Ask for at most {MOST_VALUES:,}.", key=name)


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Combinations of keys in the order of their values, missing ones last: the data's own order does not enter."""
    found = list(cells)
    try:
        return sorted(found)  # the same order, faster, where nothing is missing
    except TypeError:
        return sorted(found, key=lambda cell: [(value is None, value) for value in cell])


def conjuncts(condition: Expression | None) -> list[Expression]:
    """The conditions that all must hold."""
    match condition:
        case None:
            return []
        case Call(function="and", arguments=arguments):
            return [part for argument in arguments for part in conjuncts(argument)]
        case _:
            return [condition]


def _keys_in_conditions(key: Expression, conditions: Sequence[Expression]) -> Iterable[Value] | None:
    """From WHERE key IN (…), or WHERE key = …"""
    for condition in conditions:
        match condition:
            case Call(function="in", arguments=(first, *choices)) if first == key:
                return [choice.value for choice in choices if isinstance(choice, Literal)]
            case Call(function="eq", arguments=(first, Literal(value=value))) if first == key and value is not None:
                return [value]
    return None


def _from_columns(name: str, key: Expression, known: Known) -> Iterable[Value] | None:
    """The key's value for every combination of its columns' public values."""
    names = sorted(columns_of(key))
    lists: dict[str, tuple[Value, ...]] = {}
    for column in names:
        values = known.values(column)
        if values is None:
            return None
        lists[column] = values
    many = math.prod(len(values) for values in lists.values())
    if not names or (many > MOST_VALUES and _possible(key) is not None):
        return None
    _check_many(name, many)
    rows: Iterable[Mapping[str, Value]] = (
        dict(zip(names, row, strict=True)) for row in itertools.product(*lists.values())
    )
    return [evaluate(key, row) for row in rows]


def _possible(key: Expression) -> Iterable[Value] | None:
    """All values that a boolean, a narrow whole number or a choice between constants can have."""
    missing: list[Value] = [None] if key.kind.nullable else []
    match key:
        case Literal(value=value):
            return [value]
        case Call(function="case", arguments=arguments):
            branches = [*arguments[1::2], arguments[-1]]
            lists = [_possible(branch) for branch in branches]
            if all(one is not None for one in lists):
                return [value for one in lists if one is not None for value in one]
        case Call() | Column():
            pass
    if key.kind.type is Type.BOOLEAN:
        return [False, True, *missing]
    if key.kind.type is Type.INTEGER:
        low, high = key.kind.range
        if high - low < _MOST_RANGE:
            return [*range(low, high + 1), *missing]
    return None
