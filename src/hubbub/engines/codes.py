"""The code of a combination of public groups: one whole number, or several where one of 63 bits cannot tell all apart.

Codes are equal exactly where all places are: never a hash of them, so that no unit can decide about another's groups.
"""

import math
from collections.abc import Sequence

from hubbub.engines.words import Sql, constant, infix, name, struct
from hubbub.policy.kinds import Type, of
from hubbub.query.ops import Group

PACKED = 1 << 31
"""Codes below this are put into one number with half of a hash."""
_MOST = 1 << 63


def is_wide(groups: Sequence[Group]) -> bool:
    """Whether there are more combinations than go into a packed code."""
    return math.prod(len(group.values) for group in groups) >= PACKED


def runs(groups: Sequence[Group]) -> list[list[int]]:
    """The places of groups that share a number, from the first group on: as many as 63 bits tell apart."""
    found: list[list[int]] = [[]]
    many = 1
    for index, group in enumerate(groups):
        if many * len(group.values) >= _MOST:
            found.append([])
            many = 1
        found[-1].append(index)
        many *= len(group.values)
    return found


def code(groups: Sequence[Group], places: Sequence[Sql]) -> Sql:
    """Of a row, from its place in each group: the last group's places change fastest."""
    numbers = [_number([groups[index] for index in run], [places[index] for index in run]) for run in runs(groups)]
    return numbers[0] if len(numbers) == 1 else struct({f"k{index}": one for index, one in enumerate(numbers)})


def numbers(groups: Sequence[Group], of_: str) -> list[Sql]:
    """The numbers of such a code, whose name this is."""
    many = len(runs(groups))
    return [Sql(of_)] if many == 1 else [Sql(f"{of_}.{name(f'k{index}')}") for index in range(many)]


def _number(groups: Sequence[Group], places: Sequence[Sql]) -> Sql:
    found = places[0]
    for group, place in zip(groups[1:], places[1:], strict=True):
        found = infix("+", infix("*", found, constant(len(group.values), of(Type.INTEGER))), place)
    return found
