"""Sources of the groups of a question: public values, and where there are none, a selection of private ones.

In this order: a list in the question's own WHERE, the keys that the owner declared, the values of a public table, a
range in WHERE, or all values that the expression can take, where those are few and known beforehand. A key without any
of these is private: what it shows is selected by how many units have it (query.selection), if the account has a δ for
that.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from hubbub.errors import MissingKeys, TooHeavy
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Value
from hubbub.privacy.budget import Budget
from hubbub.privacy.neighbors import Neighbors
from hubbub.query.check.evaluate import evaluate
from hubbub.query.check.key_ranges import range_of_key
from hubbub.query.expression import Call, Column, Expression, Literal, columns_of
from hubbub.query.ops import Cell, Group

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
