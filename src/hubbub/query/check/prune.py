"""Columns that nobody looks at are left out, from the aggregate down to the scans.

It changes no answer: what is counted looks at the columns that stay. Where rows are chosen or ordered by their content,
the content is then that of the columns which stay, and rows that are alike in those are alike.
"""

from collections.abc import Iterable
from dataclasses import replace

from hubbub.query.expression import Expression, columns_of
from hubbub.query.ops import (
    Cap,
    Filter,
    JoinOwn,
    JoinPublic,
    Match,
    Project,
    Reduce,
    Relation,
    RelationUnion,
    Scan,
    Window,
)

Needed = frozenset[str]


def prune(op: Relation, needed: Needed) -> Relation:
    """The relation with the needed columns, and others only where an operation needs them itself."""
    match op:
        case Scan():
            return replace(op, columns=tuple(column for column in op.columns if column.name in needed))
        case Filter():
            return replace(op, input=prune(op.input, needed | columns_of(op.condition)))
        case Project():
            columns = tuple((name, one) for name, one in op.columns if name in needed)
            return replace(op, input=prune(op.input, _columns_used(one for _, one in columns)), columns=columns)
        case JoinPublic():
            left, right = _sides(op.keys)
            return replace(op, input=prune(op.input, needed | left), public=prune(op.public, needed | right))
        case JoinOwn():
            left, right = _sides(op.keys)
            return replace(op, input=prune(op.input, needed | left), other=prune(op.other, needed | right))
        case Match():
            left, right = _sides(op.keys)
            return replace(op, input=prune(op.input, needed | left), other=prune(op.other, right))
        case Cap():
            return replace(op, input=prune(op.input, needed))
        case Reduce():
            columns_ = tuple(one for one in op.columns if one.name in needed)
            used = [*(one for _, one in op.keys), *(one.argument for one in columns_ if one.argument is not None)]
            return replace(op, input=prune(op.input, _columns_used(used)), columns=columns_)
        case Window():
            if op.name not in needed:
                return prune(op.input, needed)
            used = [*op.part, *(one for one, _ in op.order), *([] if op.argument is None else [op.argument])]
            return replace(op, input=prune(op.input, (needed - {op.name}) | _columns_used(used)))
        case RelationUnion():
            return replace(op, inputs=tuple(prune(one, needed) for one in op.inputs))


def _columns_used(expressions: Iterable[Expression]) -> Needed:
    return frozenset[str]().union(*(columns_of(one) for one in expressions))


def _sides(keys: tuple[tuple[Expression, Expression], ...]) -> tuple[Needed, Needed]:
    return _columns_used(left for left, _ in keys), _columns_used(right for _, right in keys)
