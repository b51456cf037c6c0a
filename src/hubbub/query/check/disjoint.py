"""Conditions of which no row fulfils two: found where they compare the same expression with constants.

No claim of privacy rests on it. It decides whether a limit on the conditions that a unit counts in drops anything of a
unit with one row, so that who is wrong here is wrong about the bias of an answer, and about nothing else.
"""

import itertools
from collections.abc import Iterator, Sequence

from hubbub.query.check.keys import conjuncts
from hubbub.query.expression import Call, Expression, Literal, Value

_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def are_disjoint(conditions: Sequence[Expression]) -> bool:
    """Return whether it is plain that no row fulfils two of the conditions."""
    parts = [tuple(_facts(one)) for one in conditions]
    return all(_exclude(*pair) for pair in itertools.combinations(parts, 2))


_Fact = tuple[Expression, str, tuple[Value, ...]]
"""An expression, how it is compared, and with what."""


def _facts(condition: Expression) -> Iterator[_Fact]:
    for part in conjuncts(condition):
        match part:
            case Call(function="in", arguments=(value, *choices)) if all(isinstance(one, Literal) for one in choices):
                listed = tuple(one.value for one in choices if isinstance(one, Literal) and one.value is not None)
                yield value, "eq", listed
            case Call(function="eq" | "lt" | "le" | "gt" | "ge" as name, arguments=(value, Literal(value=end))):
                yield value, name, (end,)
            case Call(function="eq" | "lt" | "le" | "gt" | "ge" as name, arguments=(Literal(value=end), value)):
                yield value, _FLIPPED[name], (end,)
            case Call(function="not", arguments=(value,)):
                yield value, "eq", (False,)
                continue
            case Call(function="is_null", arguments=(value,)):
                yield value, "missing", ()
        yield part, "eq", (True,)


def _exclude(left: Sequence[_Fact], right: Sequence[_Fact]) -> bool:
    return any(
        one == other and _no_value(name, values, name_, values_)
        for one, name, values in left
        for other, name_, values_ in right
    )


def _no_value(name: str, values: tuple[Value, ...], other: str, others: tuple[Value, ...]) -> bool:
    """Return whether nothing compares with both as it should. What is compared with a constant is not missing."""
    if "missing" in {name, other}:
        return name != other
    if len({type(value) for value in (*values, *others)}) > 1:
        return False
    return all(_none_between(name, value, other, end) for value in values for end in others)


def _none_between(name: str, value: Value, other: str, end: Value) -> bool:
    """Return whether no number is, say, below one and at least another."""
    above, below = {"gt", "ge", "eq"}, {"lt", "le", "eq"}
    for low, least, high, most in ((name, value, other, end), (other, end, name, value)):
        if low in above and high in below:
            closed = low != "gt" and high != "lt"
            if least > most or (least == most and not closed):  # type: ignore[operator]
                return True
    return False
