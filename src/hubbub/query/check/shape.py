"""The shape of a relation from above: its columns with their kinds, and whether its rows belong to units."""

from dataclasses import replace

from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, Kind, Type, integer
from hubbub.query.ops import (
    Cap,
    Filter,
    JoinKind,
    JoinOwn,
    JoinPublic,
    Match,
    Project,
    Ranking,
    Reduce,
    Relation,
    RelationUnion,
    Scan,
    Window,
    below,
)

PLACE = integer(1, INT64[1], nullable=False)
"""A row's place among others."""

Shape = dict[str, Kind]


def private(op: Relation) -> bool:
    """Return whether each row belongs to a unit."""
    return op.unit is not None if isinstance(op, Scan) else private(below(op)[0])


def shape(op: Relation) -> Shape:
    """The columns of a relation, in order, with what their values can be."""
    match op:
        case Scan(columns=columns):
            return {column.name: column.kind for column in columns}
        case Filter() | Cap() | Match():
            return shape(op.input)
        case Project(columns=made):
            return {name: expression.kind for name, expression in made}
        case JoinPublic(input=rows, public=other, kind=kind) | JoinOwn(input=rows, other=other, kind=kind):
            left, right = shape(rows), shape(other)
            if kind is JoinKind.FULL:
                left = _optional(left)
            return {**left, **(right if kind is JoinKind.INNER else _optional(right))}
        case Reduce(keys=keys, columns=reduced):
            return {name: key.kind for name, key in keys} | {one.name: one.kind for one in reduced}
        case Window(input=rows, name=name):
            return shape(rows) | {name: window_kind(op)}
        case RelationUnion(inputs=inputs):
            return _together([shape(one) for one in inputs])


def window_kind(op: Window) -> Kind:
    """A place, or the value of another row, which may not be there."""
    if op.ranking not in {Ranking.LAG, Ranking.LEAD}:
        return PLACE
    if op.argument is None:
        raise ParameterError("argument", f"given for {op.ranking}", None)
    return replace(op.argument.kind, nullable=True)


def _optional(columns: Shape) -> Shape:
    return {name: replace(kind, nullable=True) for name, kind in columns.items()}


def _together(shapes: list[Shape]) -> Shape:
    if any(list(one) != list(shapes[0]) for one in shapes):
        raise ParameterError("inputs", "relations with the same columns", [list(one) for one in shapes])
    return {name: hull([one[name] for one in shapes]) for name in shapes[0]}


def hull(kinds: list[Kind]) -> Kind:
    """The kind that holds the values of several, which are of one type."""
    if any(kind.type is not kinds[0].type for kind in kinds):
        raise ParameterError("kinds", "of one type", [str(kind) for kind in kinds])
    nullable = any(kind.nullable for kind in kinds)
    if kinds[0].type is not Type.INTEGER:
        return replace(kinds[0], nullable=nullable)
    ranges = [kind.range for kind in kinds]
    return integer(min(low for low, _ in ranges), max(high for _, high in ranges), nullable=nullable)
