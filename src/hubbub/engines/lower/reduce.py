"""One row for each unit and combination of keys: what GROUP BY and SELECT DISTINCT mean within a unit.

Capacity: a total adds whole numbers of 64 bits in 128, as the aggregate does, and is then put into its stated range.
"""

from fractions import Fraction

from hubbub.engines.lower.grid_steps import clamp_whole, steps
from hubbub.engines.lower.scalars import Names, lower
from hubbub.engines.lower.unit_operations import Fresh, LoweredRelation, alike
from hubbub.engines.nodes.queries import Query
from hubbub.engines.nodes.scalars import Guarded, Name, Scalar, storage_of
from hubbub.engines.nodes.words import (
    STAR,
    TRUE,
    alias,
    cast,
    constant,
    count_distinct,
    function,
    infix,
    name,
    select,
    try_cast,
    within,
)
from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, Type, of
from hubbub.query.ops import Measure, Reduce, Reduced, Reduction, Tally


def reduce_rows(op: Reduce, rows: LoweredRelation, fresh: Fresh) -> tuple[Query, Names]:
    """Compute keys and arguments once, row by row, in columns of their own; then make rows of one key one."""
    names = {column: fresh() for column in (*(key for key, _ in op.keys), *(one.name for one in op.columns))}
    shown = [alias(alike(lower(key, rows.names), key.kind), names[column]) for column, key in op.keys]
    for one in op.columns:
        if one.argument is not None:
            shown.append(alias(alike(lower(one.argument, rows.names), one.argument.kind), names[one.name]))
    made = [alias(_reduction(one, name(names[one.name])), names[one.name]) for one in op.columns]
    by = [*rows.owner, *(name(names[column]) for column, _ in op.keys)]
    if by:
        listed = select(within(rows.query), *rows.owner, *shown)
        return select(within(_step(op, listed, by, names)), *by, *made, by=by), names
    # Of no rows there is no row: a grouping by nothing would give one.
    listed = select(within(rows.query), alias(TRUE, "all"), *shown)
    by = [name("all")]
    return select(within(_step(op, listed, by, names)), *(made or by), by=by), names


def _step(op: Reduce, listed: Query, by: list[Name], names: Names) -> Query:
    """Put arguments of totals in whole steps; leave the others as they are."""
    shown: list[Scalar] = list(by)
    for one in op.columns:
        if one.argument is not None:
            value = name(names[one.name])
            shown.append(alias(_steps(one, value) if one.reduction is Reduction.TOTAL else value, names[one.name]))
    return select(within(listed), *shown)


def _steps(one: Reduced, value: Scalar) -> Scalar:
    if one.argument is None or one.argument.kind.type not in {Type.INTEGER, Type.REAL}:
        raise ParameterError("argument", "a number, for a total", one.name)
    tally = Tally(measure=Measure.TOTAL, argument=one.argument, clamp=one.clamp, grid=one.grid)
    return steps(tally, value, one.argument.kind)


def _reduction(one: Reduced, value: Scalar) -> Scalar:
    if one.argument is None and one.reduction is not Reduction.ROWS:
        raise ParameterError("argument", f"given for {one.reduction}", None)
    match one.reduction:
        case Reduction.ROWS:
            return _within(one, function("count", STAR if one.argument is None else value), (0, INT64[1]))
        case Reduction.DISTINCT:
            return _within(one, count_distinct(value), (0, INT64[1]))
        case Reduction.TOTAL:
            return _total(one, function("sum", value))
        case Reduction.LEAST:
            return _within(one, function("all_true" if _is_condition(one) else "min", value), _range(one))
        case Reduction.MOST:
            return _within(one, function("any_true" if _is_condition(one) else "max", value), _range(one))


def _is_condition(one: Reduced) -> bool:
    return one.argument is not None and one.argument.kind.type is Type.BOOLEAN


def _range(one: Reduced) -> tuple[int, int] | None:
    kind = None if one.argument is None else one.argument.kind
    return kind.range if kind is not None and kind.type is Type.INTEGER else None


def _total(one: Reduced, steps_: Scalar) -> Scalar:
    """Keep whole numbers on the grid of whole numbers whole; else make the sum of steps, which is exact, a real."""
    if one.kind.type is Type.INTEGER:
        if one.grid != Fraction(1) or one.argument is None or one.argument.kind.type is not Type.INTEGER:
            raise ParameterError("kind", "real, for a total of reals or on a grid that is not 1", one.name)
        return _within(one, steps_)
    # The engine's cast of 128 bits is off by some units in the last place, below zero; that of 64 is not.
    added = function("coalesce", cast(try_cast(steps_, "int64"), "real"), cast(steps_, "real"))
    return Guarded(infix("*", added, constant(float(one.grid), of(Type.REAL))))


def _within(one: Reduced, value: Scalar, natural: tuple[int, int] | None = None) -> Scalar:
    """Put a value into the type of the stated kind, and its range: a promise to whatever computes with it."""
    if one.kind.type is not Type.INTEGER:
        return value
    low, high = one.kind.range
    kept = natural is not None and low <= natural[0] and natural[1] <= high
    return cast(value if kept else clamp_whole(value, low, high), storage_of(one.kind))
