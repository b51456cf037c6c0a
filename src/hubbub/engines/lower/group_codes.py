"""Groups by public keys: their values as an engine gets them, and the code of a combination.

Codes are equal exactly where all places are: never a hash of them, so that no unit can decide about another's groups.

Privacy:
    Claim: rows of different combinations have different codes, and every code is below 2^63.
    Proof: the places of one number lie in [0, n_1), …, [0, n_k) with Π n_i < 2^63 (``runs``): listed groups by their
        tables, counted ones since rows beyond the range are left out (``place_counted``). Then
        ((p_1 · n_2 + p_2) · n_3 + p_3) … is a number in mixed radix: it is at most Π n_i − 1 at every step, so nothing
        wraps, and dividing by n_k, n_(k−1), … gives the places back. Combinations that one number cannot hold are a
        struct of several.
    Needs: whether a row is beyond a range depends on that row alone.
    Ref: SOUNDNESS 6.
"""

import math
from collections.abc import Sequence
from datetime import date, datetime

from hubbub.engines.nodes.queries import KeyTable
from hubbub.engines.nodes.scalars import Name, Scalar, StructField, storage_of
from hubbub.engines.nodes.words import constant, infix, struct, try_cast
from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, INT128, Kind, Type, of
from hubbub.query.expression import Value
from hubbub.query.ops import Group


def list_keys(index: int, group: Group) -> KeyTable:
    """List the values as text. Two that are alike would put one row into two groups; one out of range is nobody's."""
    if len(set(group.values)) != len(group.values):
        raise ParameterError(f"values of {group.name}", "all different", group.values)
    kind = group.expression.kind
    limits = None if kind.type is not Type.INTEGER else INT128 if kind.wide else INT64
    listed = [
        (place, _as_text(value, group))
        for place, value in enumerate(group.values)
        if not isinstance(value, int) or limits is None or limits[0] <= value <= limits[1]
    ]
    return KeyTable(
        f"keys{index}", storage_of(kind), tuple(place for place, _ in listed), tuple(value for _, value in listed)
    )


def _as_text(value: Value, group: Group) -> str | None:
    match group.type, value:
        case _, None:
            return None
        case Type.BOOLEAN, bool():
            return str(value).lower()
        case Type.INTEGER, int() if not isinstance(value, bool):
            return str(value)
        case Type.REAL, float() if math.isfinite(value):
            return repr(value)
        case Type.TEXT, str():
            return value
        case Type.TIMESTAMP, datetime() if value.tzinfo is None:
            return value.isoformat(sep=" ")
        case Type.DATE, date() if not isinstance(value, datetime):
            return value.isoformat()
    raise ParameterError(f"values of {group.name}", f"constants of type {group.type}", value)


PACKED = 1 << 31
"""Codes below this are put into one number with half of a hash."""
_MOST = 1 << 63


def is_counted(group: Group) -> bool:
    """Return whether its values are places that nobody lists: a range from 0 on."""
    return isinstance(group.values, range)


def place_counted(group: Group, value: Scalar) -> tuple[Scalar, list[Scalar]]:
    """Return the place of a row in such a group, and the conditions for having one; a missing value has none."""
    values = group.values
    if not isinstance(values, range) or (values.start, values.step) != (0, 1) or group.type is not Type.INTEGER:
        raise ParameterError(f"values of {group.name}", "places from 0 on, of a whole number", values)
    kind: Kind = group.expression.kind
    ends: list[Scalar] = [
        infix(">=", value, constant(0, of(Type.INTEGER))),
        infix("<", value, constant(values.stop, of(Type.INTEGER))),
    ]
    return (try_cast(value, "int64") if kind.wide else value), ends


def is_wide(groups: Sequence[Group]) -> bool:
    """Return whether there are more combinations than go into a packed code."""
    return math.prod(len(group.values) for group in groups) >= PACKED


def runs(groups: Sequence[Group]) -> list[list[int]]:
    """Return the places of groups that share a number, from the first group on: as many as 63 bits tell apart."""
    found: list[list[int]] = [[]]
    many = 1
    for index, group in enumerate(groups):
        if many * len(group.values) >= _MOST:
            found.append([])
            many = 1
        found[-1].append(index)
        many *= len(group.values)
    return found


def code(groups: Sequence[Group], places: Sequence[Scalar]) -> Scalar:
    """Make the code of a row from its place in each group: the last group's places change fastest."""
    numbers = [_number([groups[index] for index in run], [places[index] for index in run]) for run in runs(groups)]
    return numbers[0] if len(numbers) == 1 else struct({f"k{index}": one for index, one in enumerate(numbers)})


def numbers(groups: Sequence[Group], code_: Name) -> list[Scalar]:
    """Take such a code apart into its numbers."""
    many = len(runs(groups))
    return [code_] if many == 1 else [StructField(code_, f"k{index}") for index in range(many)]


def _number(groups: Sequence[Group], places: Sequence[Scalar]) -> Scalar:
    found = places[0]
    for group, place in zip(groups[1:], places[1:], strict=True):
        found = infix("+", infix("*", found, constant(len(group.values), of(Type.INTEGER))), place)
    return found
