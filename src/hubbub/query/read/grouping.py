"""The GROUP BY clause: keys, and with ROLLUP, CUBE or GROUPING SETS the sets of them."""

from collections.abc import Callable

from sqlglot import exp

from hubbub.errors import NotAllowed
from hubbub.policy.kinds import integer
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.plan.collect import Set, cross_sets, cube, rollup, union
from hubbub.query.question import absent_name

Place = Callable[[exp.Expr], int]
"""Reads a key and tells its place among all keys."""

MOST_ARGUMENTS = 32


def grouping_sets(group: exp.Group, place: Place) -> tuple[Set, ...]:
    """The grouping sets, in SQL's order; none where the question has one grouping by all its keys."""
    if any(value for name, value in group.args.items() if name != "expressions"):
        raise NotAllowed("GROUP BY takes expressions, ROLLUP (…), CUBE (…) and GROUPING SETS (…).")
    found = cross_sets([_sets(node, place) for node in group.expressions])
    keys = union(found)
    return () if found == [keys] else tuple(found)


def _sets(node: exp.Expr, place: Place) -> list[Set]:
    match node:
        case exp.Rollup():
            return rollup([_keys(one, place) for one in node.expressions])
        case exp.Cube():
            return cube([_keys(one, place) for one in node.expressions])
        case exp.GroupingSets():
            return [found for one in node.expressions for found in _sets(one, place)]
        case _:
            return [_keys(node, place)]


def _keys(node: exp.Expr, place: Place) -> Set:
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
        raise NotAllowed("ROLLUP and CUBE take expressions. Put further sets beside them, or into GROUPING SETS.")
    if isinstance(node, exp.Tuple):
        return union([_keys(one, place) for one in node.expressions])
    return (place(node.this if isinstance(node, exp.Paren) else node),)


def grouping(places: list[int]) -> Expression:
    """GROUPING(…): a bit for each key, the first one highest; 1 where the row's set leaves the key out."""
    if not 1 <= len(places) <= MOST_ARGUMENTS:
        raise NotAllowed(f"GROUPING takes from 1 to {MOST_ARGUMENTS} keys of the GROUP BY.")
    bits = [
        call("multiply", Column(absent_name(place), integer(0, 1, nullable=False)), literal(1 << bit))
        for bit, place in enumerate(reversed(places))
    ]
    total = bits[0]
    for one in bits[1:]:
        total = call("add", total, one)
    return total
