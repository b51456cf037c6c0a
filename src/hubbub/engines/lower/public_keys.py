"""The public values of a group as the engine is told them: texts, each with its place."""

import math
from datetime import date, datetime

from hubbub.engines.nodes.queries import KeyTable
from hubbub.engines.nodes.vocabulary import storage_of
from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, INT128, Type
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
