"""Bounds on the rows of a relation: fan-out moves no answer by more than was proven, but it takes time and memory.

Whatever joins rows of a unit with each other is bounded before the charge: each side is capped, unless the other has at
most one match for a row, and one row becomes at most ``max_fanout`` rows.
"""

from hubbub.errors import TooHeavy
from hubbub.policy.tables import Policy
from hubbub.query.expression import Column, Expression
from hubbub.query.ops import (
    Cap,
    Filter,
    JoinKind,
    JoinOwn,
    JoinPublic,
    Match,
    Project,
    Reduce,
    Relation,
    RelationUnion,
    Scan,
    Window,
    below,
)

MOST_OPERATIONS = 200
"""Operations of one question, each counted wherever it stands: what is named twice is computed twice."""


def light(relation: Relation) -> Relation:
    """A relation that is not made of too many operations."""
    waiting, seen = [relation], 0
    while waiting:
        seen += 1
        if seen > MOST_OPERATIONS:
            raise TooHeavy("The question makes too many tables of others. Split it, or use them fewer times.")
        waiting.extend(below(waiting.pop()))
    return relation


def most_rows(op: Relation, policy: Policy) -> int | None:
    """Return the most rows that one unit can have; None where that is not known beforehand."""
    match op:
        case Scan(table=table):
            return 1 if table in policy.enforced else None
        case Filter() | Project() | Match() | Window():
            return most_rows(op.input, policy)
        case JoinPublic(input=rows, most=most):
            found = most_rows(rows, policy)
            return None if found is None else found * max(1, most)
        case Cap(input=rows, most=most):
            found = most_rows(rows, policy)
            return most if found is None else min(most, found)
        case Reduce(keys=keys):
            return most_rows(op.input, policy) if keys else 1
        case JoinOwn(input=rows, other=other, kind=kind):
            mine, others = most_rows(rows, policy), most_rows(other, policy)
            if mine is None or others is None:
                return None
            return mine * others + (0 if kind is JoinKind.INNER else mine) + (others if kind is JoinKind.FULL else 0)
        case RelationUnion(inputs=inputs):
            parts = [most_rows(one, policy) for one in inputs]
            return None if None in parts else sum(part for part in parts if part is not None)


def bound_fan_out(op: Relation, policy: Policy) -> int:
    """Bound the number of rows that one row of a table (or of a capped relation) can become."""
    match op:
        case Scan() | Cap() | Reduce():
            return 1
        case Filter() | Project() | Match() | Window():
            return bound_fan_out(op.input, policy)
        case JoinPublic(input=rows, most=most):
            return bound_fan_out(rows, policy) * max(1, most)
        case RelationUnion(inputs=inputs):
            return max(bound_fan_out(one, policy) for one in inputs)
        case JoinOwn(input=rows, other=other, keys=keys):
            if one_match(other, tuple(right for _, right in keys), policy):
                return bound_fan_out(rows, policy)
            if one_match(rows, tuple(left for left, _ in keys), policy):
                return bound_fan_out(other, policy)
            return bound_fan_out(rows, policy) * (most_rows(other, policy) or policy.limits.max_unit_rows)


def one_match(op: Relation, keys: tuple[Expression, ...], policy: Policy) -> bool:
    """Return whether a row of a unit can have at most one partner here, by the unit and these keys."""
    if most_rows(op, policy) == 1:
        return True
    match op:
        case Scan(table=table, columns=columns):
            named = {key.name for key in keys if isinstance(key, Column)}
            return any(policy.has_key(table, column.reads) for column in columns if column.name in named)
        case Reduce(keys=own):
            return {name for name, _ in own} <= {getattr(key, "name", None) for key in keys}
        case Filter() | Match():
            return one_match(op.input, keys, policy)
        case Project(columns=columns):
            passed = dict(columns)
            under = tuple(passed[name] for key in keys if (name := getattr(key, "name", None)) in passed)
            return one_match(op.input, under, policy)
        case _:
            return False


def cap_rows(relation: Relation, policy: Policy) -> Relation:
    """At most max_unit_rows rows of each unit."""
    most, found = policy.limits.max_unit_rows, most_rows(relation, policy)
    return relation if found is not None and found <= most else Cap(input=relation, most=most)


def join_own(
    left: Relation, right: Relation, kind: JoinKind, keys: tuple[tuple[Expression, Expression], ...], policy: Policy
) -> Relation:
    """Rows of the same unit beside each other, both sides capped where they could multiply.

    Where a row has at most one partner there is nothing to multiply, and the work is that of reading both sides.
    """
    single = one_match(left, tuple(one for one, _ in keys), policy)
    if not single and not one_match(right, tuple(other for _, other in keys), policy):
        left, right = cap_rows(left, policy), cap_rows(right, policy)
    return within_fanout(JoinOwn(input=left, other=right, kind=kind, keys=keys), policy)


def within_fanout(relation: Relation, policy: Policy) -> Relation:
    """A relation in which no row becomes too many."""
    most = bound_fan_out(relation, policy)
    if most > policy.limits.max_fanout:
        raise TooHeavy(
            f"One row would become up to {most:,} rows. Join on columns that are unique, or let the owner raise "
            "max_fanout."
        )
    return relation
