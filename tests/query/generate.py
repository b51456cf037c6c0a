"""Random schemas, tables full of poison, expressions of every function, relations, aggregates and neighbours.

Everything is made from one seed, so that a case can be made again from the number that a failing test prints.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from hubbub.errors import MayOverflow, TypeMisfit
from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer, of
from hubbub.query.expression import Call, Column, Expression, Literal, literal
from hubbub.query.functions import FUNCTIONS, call
from hubbub.query.ops import (
    Aggregate,
    Filter,
    Group,
    JoinKind,
    JoinPublic,
    Measure,
    Project,
    Relation,
    Scan,
    Tally,
)
from tests.query import interpreter

TIMES = int(os.environ.get("HUBBUB_TORTURE", "1"))
"""How many times more cases than usual; ``make torture`` raises it."""

NAN, INF = float("nan"), float("inf")

GOOD: Mapping[Type, tuple[Any, ...]] = {
    Type.BOOLEAN: (False, True),
    Type.INTEGER: (0, 1, -1, 2, 7, -10, 1000, (1 << 53) + 1, INT64[0], INT64[1]),
    Type.REAL: (
        *(0.0, -0.0, 0.5, 1.5, 2.5, -0.1, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, -1e300),
        *(9007199254740993.0, 9.2233720368547748e18, 9.223372036854775807e18, -9.223372036854775808e18, 710.0),
    ),
    Type.TEXT: (
        *("", " ", "a", "A", "aB%", "_", "\\", "ward", " ward\t", "\u00a0x\u2003", "ß", "İI", "ΑΣ", "ﬁ", "e\u0301"),
        *("\U0001f600", "𝔘a", "'; --", '"', "\x00", "NULL", "%" * 30, "ab" * 600),
    ),
    Type.DATE: (date.min, date.max, date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(2023, 1, 1)),
    Type.TIMESTAMP: (
        datetime.min,
        datetime.max,
        datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime(2024, 2, 29, 12, 30, 15, 1),
        datetime(2024, 12, 30, 0, 0, 0),
    ),
}
"""Values that a kind may hold, at the ends and where functions change their minds."""

POISON: Mapping[Type, tuple[Any, ...]] = {Type.REAL: (NAN, INF, -INF)}
"""Values that a source may hold and no kind may: a scan makes them missing."""

CALENDAR = (Type.DATE, Type.TIMESTAMP)


def seeds() -> SearchStrategy[Random]:
    """A generator of chance for one case."""
    return st.integers(0, (1 << 63) - 1).map(Random)


def good(rng: Random, kind: Kind) -> Any:
    """A value of a kind, missing now and then where that may be."""
    if kind.nullable and rng.random() < 0.15:
        return None
    if kind.type is not Type.INTEGER:
        return rng.choice(GOOD[kind.type])
    low, high = kind.range
    choices = [low, high, rng.randint(low, high), *(one for one in GOOD[Type.INTEGER] if low <= one <= high)]
    return rng.choice(choices)


def raw(rng: Random, kind: Kind) -> Any:
    """A value as a source may hold it: now and then one that the kind does not allow, where it may be missing."""
    if kind.nullable and kind.type in POISON and rng.random() < 0.2:
        return rng.choice(POISON[kind.type])
    return good(rng, kind)


def kind_of(rng: Random, type_: Type) -> Kind:
    """A kind of a type; integers of many widths."""
    nullable = rng.random() < 0.7
    if type_ is not Type.INTEGER:
        return of(type_, nullable=nullable)
    ranges = (INT64, INT64, (0, 1), (-5, 5), (0, 255), (-(1 << 31), (1 << 31) - 1), (-(1 << 90), 1 << 80), INT128)
    return integer(*rng.choice(ranges), nullable=nullable)


# Expressions

Maker = Callable[["Expressions", int], Call]


@dataclass
class Expressions:
    """Makes expressions over columns."""

    rng: Random
    columns: Sequence[Column]

    def leaf(self, type_: Type) -> Expression:
        own = [column for column in self.columns if column.kind.type is type_]
        if own and self.rng.random() < 0.75:
            return self.rng.choice(own)
        if self.rng.random() < 0.1:
            return literal(None, type_)
        return self.constant(type_)

    def constant(self, type_: Type) -> Literal:
        return literal(good(self.rng, of(type_, nullable=False)))

    def any_type(self, *types: Type) -> Type:
        return self.rng.choice(types or tuple(Type))

    def make(self, type_: Type, depth: int) -> Expression:
        """An expression of a type; where whole numbers could get too large, a simpler one."""
        if depth > 0:
            for _ in range(4):
                try:
                    return self.rng.choice(MAKERS[type_])(self, depth - 1)
                except (MayOverflow, TypeMisfit):
                    continue
        return self.leaf(type_)

    def of_function(self, function: str, depth: int) -> Call:
        """A call of one function."""
        makers = [maker for type_ in Type for maker in MAKERS[type_] if getattr(maker, "function", "") == function]
        for _ in range(50):
            try:
                return self.rng.choice(makers)(self, depth)
            except (MayOverflow, TypeMisfit):
                continue
        raise AssertionError(f"no call of {function} could be made")


def _plain(function: str, *types: Type) -> Maker:
    return _named(function, lambda made, depth: call(function, *(made.make(type_, depth) for type_ in types)))


def _named(function: str, maker: Maker) -> Maker:
    def named(made: Expressions, depth: int) -> Call:
        return maker(made, depth)

    named.function = function  # type: ignore[attr-defined]
    return named


def _several(function: str, type_: Type) -> Maker:
    def maker(made: Expressions, depth: int) -> Call:
        return call(function, *(made.make(type_, depth) for _ in range(made.rng.randint(2, 3))))

    return _named(function, maker)


def _same_type(function: str) -> Maker:
    def maker(made: Expressions, depth: int) -> Call:
        type_ = made.any_type()
        return call(function, made.make(type_, depth), made.make(type_, depth))

    return _named(function, maker)


def _is_null(made: Expressions, depth: int) -> Call:
    return call("is_null", made.make(made.any_type(), depth))


def _in(made: Expressions, depth: int) -> Call:
    type_ = made.any_type()
    return call("in", made.make(type_, depth), *(made.constant(type_) for _ in range(made.rng.randint(1, 4))))


def _pattern(function: str) -> Maker:
    def maker(made: Expressions, depth: int) -> Call:
        rng = made.rng
        signs = "".join(rng.choice("%%__aAw\\\U0001f600d ") for _ in range(rng.randint(0, 6)))
        pattern = rng.choice([signs, *(one for one in GOOD[Type.TEXT] if len(one) < 100)])
        constant = literal(pattern) if rng.random() < 0.9 else literal(None, Type.TEXT)
        return call(function, made.make(Type.TEXT, depth), constant)

    return _named(function, maker)


def _substring(made: Expressions, depth: int) -> Call:
    start, length = made.rng.choice((1, 2, 3, 1199, 1 << 31)), made.rng.choice((0, 1, 2, 5, 1 << 31))
    return call("substring", made.make(Type.TEXT, depth), literal(start), literal(length))


def _case(type_: Type) -> Maker:
    def maker(made: Expressions, depth: int) -> Call:
        branches = made.rng.randint(1, 2)
        parts = [made.make(one, depth) for _ in range(branches) for one in (Type.BOOLEAN, type_)]
        return call("case", *parts, made.make(type_, depth))

    return _named("case", maker)


def _of_calendar(function: str, *types: Type) -> Maker:
    return _named(function, lambda made, depth: call(function, made.make(made.any_type(*types), depth)))


def _generic(type_: Type) -> list[Maker]:
    return [_case(type_), _several("coalesce", type_), _plain("nullif", type_, type_)]


_I, _R, _B, _T = Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT

MAKERS: Mapping[Type, list[Maker]] = {
    Type.BOOLEAN: [
        _several("and", _B),
        _several("or", _B),
        _plain("not", _B),
        _named("is_null", _is_null),
        *(_same_type(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
        _named("in", _in),
        _pattern("like"),
        _pattern("starts_with"),
        *_generic(_B),
    ],
    Type.INTEGER: [
        *(_plain(name, _I, _I) for name in ("add", "subtract", "multiply", "quotient", "remainder")),
        *(_plain(name, _I) for name in ("negate", "abs")),
        *(_several(name, _I) for name in ("least", "greatest")),
        *(_plain(name, _R) for name in ("to_integer", "floor", "ceil")),
        _plain("length", _T),
        *(_of_calendar(name, *CALENDAR) for name in ("year", "quarter", "month", "day", "weekday")),
        *(_of_calendar(name, Type.TIMESTAMP) for name in ("hour", "minute")),
        _plain("days_between", Type.DATE, Type.DATE),
        *_generic(_I),
    ],
    Type.REAL: [
        *(_plain(name, _R, _R) for name in ("add", "subtract", "multiply", "divide")),
        *(_plain(name, _R) for name in ("negate", "abs", "sqrt", "ln", "exp")),
        *(_several(name, _R) for name in ("least", "greatest")),
        _plain("to_real", _I),
        *_generic(_R),
    ],
    Type.TEXT: [
        *(_plain(name, _T) for name in ("lower", "upper", "trim")),
        _named("substring", _substring),
        *_generic(_T),
    ],
    Type.DATE: [
        *(_of_calendar(f"start_of_{span}", *CALENDAR) for span in ("year", "quarter", "month", "week", "day")),
        *_generic(Type.DATE),
    ],
    Type.TIMESTAMP: _generic(Type.TIMESTAMP),
}


def functions_in(expression: Expression) -> Iterator[str]:
    """Every function that an expression calls."""
    if isinstance(expression, Call):
        yield expression.function
        for argument in expression.arguments:
            yield from functions_in(argument)


# Tables and relations


@dataclass(frozen=True)
class Case:
    """Tables, and something to ask of them."""

    schema: dict[str, tuple[tuple[str, Kind], ...]]
    """Each table's own columns with their kinds."""
    tables: dict[str, list[dict[str, Any]]]
    relation: Relation
    unit: str = "who"

    def without(self, unit: Any) -> "Case":
        """The neighbour that lacks one unit."""
        rows = [row for row in self.tables["private"] if row[self.unit] != unit]
        return replace(self, tables=self.tables | {"private": rows})

    def shuffled(self, rng: Random) -> "Case":
        """The same rows in another order."""
        return replace(self, tables={name: rng.sample(rows, len(rows)) for name, rows in self.tables.items()})

    @property
    def units(self) -> list[Any]:
        """Those who have rows."""
        return list(dict.fromkeys(row[self.unit] for row in self.tables["private"] if row[self.unit] is not None))


def case(rng: Random, *, rows: int = 25) -> Case:
    """A private table, a public one, and a relation over them."""
    unit_kind = rng.choice((integer(*INT64), of(Type.TEXT)))
    units = [good(rng, replace(unit_kind, nullable=False)) for _ in range(rng.randint(1, 6))]
    private = (("who", unit_kind), *_columns(rng, "c"))
    public = _columns(rng, "p")
    tables = {
        "private": _rows(rng, private, rng.randint(0, rows), units),
        "public": _rows(rng, public, rng.randint(0, 6), units),
    }
    schema = {"private": private, "public": public}
    scan = Scan(table="private", columns=tuple((f"s.{name}", kind) for name, kind in private), unit="who")
    return Case(schema, tables, _above(rng, scan, schema, tables))


def _columns(rng: Random, prefix: str) -> tuple[tuple[str, Kind], ...]:
    many = rng.randint(len(Type), len(Type) + 2)
    types = [*Type, *(rng.choice(list(Type)) for _ in range(many - len(Type)))]
    return tuple((f"{prefix}{place}", kind_of(rng, type_)) for place, type_ in enumerate(types))


def _rows(rng: Random, columns: Sequence[tuple[str, Kind]], many: int, units: Sequence[Any]) -> list[dict[str, Any]]:
    out = []
    for _ in range(many):
        row = {name: raw(rng, kind) for name, kind in columns}
        if "who" in row:
            row["who"] = None if rng.random() < 0.1 else rng.choice(units)
        out.append(row)
    return out


def kinds_of(op: Relation) -> list[Column]:
    """The columns of a relation with their kinds, worked out from the operations."""
    match op:
        case Scan(columns=columns):
            return [Column(name, kind) for name, kind in columns]
        case Filter(input=below):
            return kinds_of(below)
        case Project(columns=made):
            return [Column(name, expression.kind) for name, expression in made]
        case JoinPublic(input=below, public=public, kind=kind):
            right = kinds_of(public)
            if kind is JoinKind.LEFT:
                right = [Column(one.name, replace(one.kind, nullable=True)) for one in right]
            return [*kinds_of(below), *right]


def _above(rng: Random, below: Relation, schema: Mapping[str, Any], tables: interpreter.Tables) -> Relation:
    """A few operations on top of a scan."""
    for place in range(rng.randint(0, 3)):
        made = Expressions(rng, kinds_of(below))
        what = rng.choice(("filter", "project", "join"))
        if what == "filter":
            below = Filter(input=below, condition=made.make(Type.BOOLEAN, 3))
        elif what == "project":
            kept = tuple((column.name, column) for column in made.columns if rng.random() < 0.5)
            new = tuple((f"new {place}.{n}", made.make(made.any_type(), 2)) for n in range(rng.randint(1, 3)))
            below = Project(input=below, columns=(*kept, *new))
        else:
            below = _join(rng, below, f"j{place}", schema["public"], tables)
    return below


def _join(
    rng: Random, below: Relation, alias: str, columns: Sequence[tuple[str, Kind]], tables: interpreter.Tables
) -> Relation:
    public: Relation = Scan(table="public", columns=tuple((f"{alias}.{n}", kind) for n, kind in columns), unit=None)
    if rng.random() < 0.3:
        public = Filter(input=public, condition=Expressions(rng, kinds_of(public)).make(Type.BOOLEAN, 1))
    left, right = Expressions(rng, kinds_of(below)), Expressions(rng, kinds_of(public))
    keys = []
    for _ in range(rng.randint(1, 2)):
        type_ = rng.choice([one for one in Type if one is not Type.REAL])
        keys.append((left.make(type_, rng.randint(0, 1)), right.make(type_, rng.randint(0, 1))))
    counts: dict[Any, int] = {}
    for _, row in interpreter.relation(public, tables):
        key = tuple(interpreter.value(one, row) for _, one in keys)
        counts[key] = counts.get(key, 0) + (None not in key)
    kind = rng.choice((JoinKind.INNER, JoinKind.LEFT))
    return JoinPublic(input=below, public=public, kind=kind, keys=tuple(keys), most=max([0, *counts.values()]))


# Aggregates


def aggregate(rng: Random, made: Case, *, most_groups: int | None = None) -> Aggregate:
    """Some tallies over some groups of a case's relation."""
    columns = kinds_of(made.relation)
    expressions = Expressions(rng, columns)
    rows = [row for _, row in interpreter.relation(made.relation, made.tables)]
    groups = tuple(_group(rng, f"g{place}", expressions, rows) for place in range(rng.randint(0, 2)))
    tallies = tuple(_tally(rng, expressions) for _ in range(rng.randint(1, 4)))
    most = rng.randint(1, 3) if most_groups is None else most_groups
    return Aggregate(input=made.relation, groups=groups, tallies=tallies, most_groups=most if groups else 1)


def _group(rng: Random, name: str, made: Expressions, rows: Sequence[Mapping[str, Any]]) -> Group:
    expression = made.make(rng.choice([one for one in Type if one is not Type.REAL]), 2)
    seen = [interpreter.value(expression, row) for row in rows]
    some = [good(rng, expression.kind) for _ in range(2)]
    values = list(dict.fromkeys([*rng.sample(seen, min(len(seen), 4)), *some]))
    return Group(name=name, expression=expression, values=tuple(values))


def _tally(rng: Random, made: Expressions) -> Tally:
    measure = rng.choice(list(Measure))
    if measure is Measure.UNITS:
        argument = made.make(made.any_type(), 1) if rng.random() < 0.5 else None
        return Tally(measure=measure, argument=argument)
    if measure is Measure.ROWS:
        argument = made.make(made.any_type(), 1) if rng.random() < 0.5 else None
        return Tally(measure=measure, argument=argument, bounds=(0, rng.randint(1, 4)))
    type_ = rng.choice((Type.INTEGER, Type.REAL))
    grid = Fraction(1) if type_ is Type.INTEGER else Fraction(2) ** rng.choice((-20, -3, 0, 1, 5))
    low, high = sorted(rng.sample(range(-1000, 1000), 2))
    origin = rng.choice((0, 0, (low + high) // 2)) * grid
    span = rng.randint(1, 3000)
    return Tally(
        measure=measure,
        argument=made.make(type_, 2),
        clamp=(low * grid, high * grid),
        origin=origin,
        grid=grid,
        bounds=rng.choice(((0, span), (-span, 0), (-span, span), (-3, span))),
        most_rows=rng.choice((None, 1, 2, 3)),
    )


def keyed(key: bytes, most: int) -> interpreter.Choose:
    """A choice of groups by a keyed hash: a function of the unit and its own groups alone."""

    def choose(unit: Any, own: list[interpreter.Cell]) -> list[interpreter.Cell]:
        def rank(cell: interpreter.Cell) -> bytes:
            return hashlib.blake2b(repr((unit, cell)).encode("utf-8", "surrogatepass"), key=key).digest()

        return sorted(own, key=rank)[:most]

    return choose


ALL_FUNCTIONS = tuple(sorted(FUNCTIONS))
