"""Aggregates within a unit: what GROUP BY means in a subquery that has the unit among its keys.

Privacy:
    Claim: each result is a function of the multiset of the unit's own rows in the group.
    Proof: counts, least and greatest values know no order; a total adds whole steps of a grid, exactly, and an average
        divides one such number by another.
    Needs: the unit among the keys, which whoever groups has checked.
    Ref: SOUNDNESS, rulings 2 and 3.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from hubbub.errors import MissingBounds, NotAllowed, TypeMisfit
from hubbub.policy.kinds import INT64, Kind, Type, default_grid, integer, outward
from hubbub.policy.tables import Limits
from hubbub.query.check.bounds import Interval, bounds_of, interval_of
from hubbub.query.check.shape import ColumnFacts
from hubbub.query.expression import Column, Expression, Literal, literal
from hubbub.query.functions import call
from hubbub.query.ops import Reduced, Reduction
from hubbub.query.read.scalars import Names, as_real, read

KNOWN = "COUNT, SUM, AVG, MIN, MAX"
_MANY = integer(0, 1 << 62, nullable=False)
_NUMBERS = frozenset({Type.INTEGER, Type.REAL})

About = Callable[[str], ColumnFacts]


@dataclass(frozen=True, slots=True)
class Result:
    """An aggregate: the columns that it is made of, what it is of them, and what is public about it."""

    columns: tuple[Reduced, ...]
    value: Expression
    facts: ColumnFacts


def reduction(node: exp.Expr, name: str, names: Names, about: About, limits: Limits) -> Result:
    """One aggregate over rows, with or without FILTER. Its columns begin with ``name``."""
    kept: Expression | None = None
    if isinstance(node, exp.Filter):
        kept = read(node.expression.this, names)
        node = node.this
        if kept.kind.type is not Type.BOOLEAN:
            raise TypeMisfit("A condition is true or false; this is a value.")
    if any(node.args.get(part) for part in ("order", "having_max")) or len(node.args.get("expressions") or []) > 0:
        raise NotAllowed(f"{_title(node)} takes one value here.")
    inner = node.this
    distinct = isinstance(inner, exp.Distinct)
    if distinct:
        if len(inner.expressions) != 1 or inner.args.get("on"):
            raise NotAllowed("DISTINCT takes one value here.")
        (inner,) = inner.expressions
    if isinstance(node, exp.Count):
        return _count(name, _argument(inner, kept, names), limits, distinct=distinct)
    work = _WORK.get(type(node))
    if work is None or (distinct and work in {_total, _average}):
        raise NotAllowed(f"{_title(node)} in this form is not among the aggregates of a subquery: {KNOWN}.")
    argument = _argument(inner, kept, names)
    if argument is None:
        raise NotAllowed(f"{_title(node)} takes one value.")
    if work in {_total, _average} and argument.kind.type not in _NUMBERS:
        raise TypeMisfit(f"{_title(node)} takes numbers, not {argument.kind}.")
    return work(name, argument, about, limits)


def _title(node: exp.Expr) -> str:
    return node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()


def _argument(node: exp.Expr | None, kept: Expression | None, names: Names) -> Expression | None:
    """Read what is counted or added up: missing in rows that FILTER leaves out; None for whole rows."""
    if isinstance(node, exp.Star) and any(node.args.values()):
        raise NotAllowed("COUNT takes one value, or * alone.")
    value = None if node is None or isinstance(node, exp.Star) else read(node, names)
    if isinstance(value, Literal) and value.value is not None:
        value = None
    if kept is None:
        return value
    shown = literal(1) if value is None else value
    return call("case", kept, shown, literal(None, shown.kind.type))


def _count(name: str, argument: Expression | None, limits: Limits, *, distinct: bool) -> Result:
    """Beyond what one unit may bring it counts no further."""
    if distinct and argument is None:
        raise NotAllowed("COUNT(DISTINCT …) takes a value.")
    always = argument is None or not argument.kind.nullable
    kind = integer(1 if always else 0, limits.max_unit_rows, nullable=False)
    how = Reduction.DISTINCT if distinct else Reduction.ROWS
    made = Reduced(name=name, reduction=how, argument=None if always and not distinct else argument, kind=kind)
    facts = ColumnFacts(kind=kind, bounds=(Fraction(0), Fraction(usual_rows(limits))), step=Fraction(1))
    return Result((made,), Column(name, kind), facts)


def usual_rows(limits: Limits) -> int:
    """Return how many rows of a unit its totals are clamped for: as in a group of the question itself."""
    return min(limits.max_unit_rows, limits.max_rows or limits.max_unit_rows)


def _total(name: str, argument: Expression, about: About, limits: Limits) -> Result:
    bounds = interval_of(argument, lambda column: about(column).bounds)
    if argument.kind.type is Type.INTEGER:
        low, high = argument.kind.range if bounds is None else _whole(bounds)
        if low < INT64[0] or high > INT64[1]:
            raise MissingBounds(
                "There are no declared bounds for what is added up. Write sum(least(greatest(x, 0), 100))."
            )
        most = limits.max_unit_rows
        kind = integer(min(low, low * most), max(high, high * most))
        made = _make_sum(name, argument, (Fraction(low), Fraction(high)), Fraction(1), kind)
        return Result(
            (made,), Column(name, kind), ColumnFacts(kind=kind, bounds=_times(bounds, limits), step=Fraction(1))
        )
    bounds = bounds_of(argument, lambda column: about(column).bounds)
    grid = _grid(argument, bounds, about)
    kind = Kind(type=Type.REAL)
    made = _make_sum(name, argument, outward(bounds, grid), grid, kind)
    return Result((made,), Column(name, kind), ColumnFacts(kind=kind, bounds=_times(bounds, limits)))


def _average(name: str, argument: Expression, about: About, limits: Limits) -> Result:
    """The total over the number of values; missing where there are none."""
    bounds = bounds_of(argument, lambda column: about(column).bounds)
    whole = argument.kind.type is Type.INTEGER
    grid = Fraction(1) if whole else _grid(argument, bounds, about)
    real = Kind(type=Type.REAL)
    clamp = tuple(Fraction(end) for end in _whole(bounds)) if whole else outward(bounds, grid)
    total = _make_sum(f"{name} total", argument, (clamp[0], clamp[1]), grid, real)
    counted = argument if argument.kind.nullable else None
    many = Reduced(name=f"{name} many", reduction=Reduction.ROWS, argument=counted, kind=_MANY)
    value = call("divide", Column(total.name, real), as_real(Column(many.name, _MANY)))
    return Result((total, many), value, ColumnFacts(kind=value.kind, bounds=bounds))


def _make_sum(name: str, argument: Expression, clamp: Interval, grid: Fraction, kind: Kind) -> Reduced:
    return Reduced(name=name, reduction=Reduction.TOTAL, argument=argument, kind=kind, clamp=clamp, grid=grid)


def _grid(argument: Expression, bounds: Interval, about: About) -> Fraction:
    step = about(argument.name).step if isinstance(argument, Column) else None
    return default_grid(bounds) if step is None else step


def _whole(bounds: Interval) -> tuple[int, int]:
    return bounds[0].__floor__(), bounds[1].__ceil__()


def _times(bounds: Interval | None, limits: Limits) -> Interval | None:
    """Return the bounds to which a unit's total is clamped when it is added up in turn."""
    if bounds is None:
        return None
    most = usual_rows(limits)
    return min(bounds[0], bounds[0] * most, Fraction(0)), max(bounds[1], bounds[1] * most, Fraction(0))


def _extreme(how: Reduction) -> Callable[[str, Expression, About, Limits], Result]:
    def result(name: str, argument: Expression, about: About, limits: Limits) -> Result:
        made = Reduced(name=name, reduction=how, argument=argument, kind=argument.kind)
        step = about(argument.name).step if isinstance(argument, Column) else None
        bounds = interval_of(argument, lambda column: about(column).bounds)
        facts = ColumnFacts(kind=argument.kind, bounds=bounds, step=step)
        return Result((made,), Column(name, argument.kind), facts)

    return result


_WORK: Mapping[type[exp.Expr], Callable[[str, Expression, About, Limits], Result]] = {
    exp.Sum: _total,
    exp.Avg: _average,
    exp.Min: _extreme(Reduction.LEAST),
    exp.Max: _extreme(Reduction.MOST),
}


def the_unit(name: str, value: Expression) -> Result:
    """The unit itself, as a column: all rows of a group have the same one, so its least is it."""
    made = Reduced(name=name, reduction=Reduction.LEAST, argument=value, kind=value.kind)
    return Result((made,), Column(name, value.kind), ColumnFacts(kind=value.kind, unit=True))
