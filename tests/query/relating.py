"""Random relations of every operation."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any

from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer, of
from hubbub.policy.paths import PathStep
from hubbub.query.expression import Column, Expression
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
    Reduced,
    Reduction,
    Relation,
    RelationUnion,
    Scan,
    ScanColumn,
    Window,
    below,
)
from tests.query import interpreter
from tests.query.expressions import Expressions, functions_in

UNIT = "who"
PATHS: dict[str, tuple[PathStep, ...]] = {
    "parts": (PathStep(column="of", table="owners", key="id"),),
    "pieces": (PathStep(column="part", table="parts", key="no"), PathStep(column="of", table="owners", key="id")),
}
"""Tables whose rows find their unit in others."""
MANY = 200
"""Rows that a relation may grow to; beyond, its parts are capped first, as a plan would."""


def kinds_of(op: Relation) -> list[Column]:
    """The columns of a relation with their kinds, worked out from the operations."""
    match op:
        case Scan(columns=columns):
            return [Column(one.name, one.kind) for one in columns]
        case Filter() | Cap() | Match():
            return kinds_of(op.input)
        case Project(columns=made):
            return [Column(name, expression.kind) for name, expression in made]
        case JoinPublic(input=left, public=right, kind=kind) | JoinOwn(input=left, other=right, kind=kind):
            mine, theirs = kinds_of(left), kinds_of(right)
            return [
                *(_optional(mine) if kind is JoinKind.FULL else mine),
                *(theirs if kind is JoinKind.INNER else _optional(theirs)),
            ]
        case Reduce(keys=keys, columns=reduced):
            named = [Column(name, expression.kind) for name, expression in keys]
            return [*named, *(Column(one.name, one.kind) for one in reduced)]
        case Window(input=rows, name=name, argument=argument):
            place = integer(1, INT64[1], nullable=False)
            added = place if argument is None else replace(argument.kind, nullable=True)
            return [*kinds_of(rows), Column(name, added)]
        case RelationUnion(inputs=inputs):
            return [_hull(list(alike)) for alike in zip(*(kinds_of(one) for one in inputs), strict=True)]


def _optional(columns: list[Column]) -> list[Column]:
    return [Column(one.name, replace(one.kind, nullable=True)) for one in columns]


def _hull(columns: list[Column]) -> Column:
    kinds = [one.kind for one in columns]
    nullable = any(kind.nullable for kind in kinds)
    if kinds[0].type is not Type.INTEGER:
        return Column(columns[0].name, of(kinds[0].type, nullable=nullable))
    ends = min(kind.range[0] for kind in kinds), max(kind.range[1] for kind in kinds)
    return Column(columns[0].name, integer(*ends, nullable=nullable))


Operation = Callable[["Relations", Relation], Relation]


@dataclass
class Relations:
    """Makes relations over tables."""

    rng: Random
    schema: Mapping[str, Sequence[tuple[str, Kind]]]
    tables: interpreter.Tables
    _count: Iterator[int] = field(default_factory=itertools.count)

    def scan(self, table: str, alias: str = "") -> Relation:
        """A table under a name of its own."""
        alias = alias or f"t{next(self._count)}"
        path = PATHS.get(table, ())
        owner = [(UNIT, dict(self.schema[path[-1].table])[UNIT])] if path else []
        columns = tuple(ScanColumn(f"{alias}.{name}", kind, name) for name, kind in (*self.schema[table], *owner))
        if self.rng.random() < 0.3:
            columns = tuple(one for one in columns if self.rng.random() < 0.6)
        unit = UNIT if path or UNIT in dict(self.schema[table]) else None
        return Scan(table=table, columns=columns, unit=unit, path=path)

    def leading(self, rows: Relation) -> Relation:
        """In place of other rows, those of a table that has a path to its unit."""
        return self.scan(self.rng.choice(tuple(PATHS)), "s")

    def above(self, rows: Relation, most: int) -> Relation:
        """A few operations on top of a relation."""
        for _ in range(self.rng.randint(0, most)):
            rows = self.bounded(self.rng.choice(self.OPERATIONS), rows)
        return rows

    def bounded(self, make: "Operation", rows: Relation) -> Relation:
        """One operation more; where that is too much to look at, on few rows."""
        made = make(self, rows)
        if len(interpreter.relation(made, self.tables)) <= MANY:
            return made
        return Cap(input=make(self, Cap(input=rows, most=3)), most=20)

    def another(self, rows: Relation) -> Relation:
        """Another private relation: of another table, or the same relation once more under other names."""
        if self.rng.random() < 0.3:
            name = next(self._count)
            renamed = tuple((f"again{name}.{place}", one) for place, one in enumerate(kinds_of(rows)))
            return Project(input=rows, columns=renamed)
        other = self.above(self.scan(self.rng.choice(("private", "second", *PATHS))), 1)
        return Cap(input=other, most=self.rng.choice((1, 3, 50))) if self.rng.random() < 0.5 else other

    def expressions(self, rows: Relation) -> Expressions:
        return Expressions(self.rng, kinds_of(rows))

    def name(self) -> str:
        return f"new{next(self._count)}"

    def keys(self, left: Relation, right: Relation, least: int) -> tuple[tuple[Expression, Expression], ...]:
        """Pairs of equal types; mostly columns, so that some are really equal."""
        mine, theirs = self.expressions(left), self.expressions(right)
        types = [self.rng.choice(list(Type)) for _ in range(self.rng.choice((least, 1, 1, 2)))]
        return tuple(
            (mine.make(type_, self.rng.choice((0, 0, 1))), theirs.make(type_, self.rng.choice((0, 0, 1))))
            for type_ in types
        )

    def filter(self, rows: Relation) -> Relation:
        return Filter(input=rows, condition=self.expressions(rows).make(Type.BOOLEAN, 3))

    def project(self, rows: Relation) -> Relation:
        made = self.expressions(rows)
        kept = tuple((column.name, column) for column in made.columns if self.rng.random() < 0.5)
        new = tuple((self.name(), made.make(made.any_type(), 2)) for _ in range(self.rng.randint(1, 3)))
        return Project(input=rows, columns=(*kept, *new))

    def public(self) -> Relation:
        public = self.scan("public")
        for make in self.rng.sample(self.PUBLIC, self.rng.choice((0, 0, 1, 2))):
            public = make(self, public)
        return public

    def join_public(self, rows: Relation) -> Relation:
        public = self.public()
        keys = self.keys(rows, public, 1)
        counts: Counter[Any] = Counter()
        for _, row in interpreter.relation(public, self.tables):
            key = tuple(interpreter.value(one, row) for _, one in keys)
            counts[key] += None not in key
        kind = self.rng.choice((JoinKind.INNER, JoinKind.LEFT))
        return JoinPublic(input=rows, public=public, kind=kind, keys=keys, most=max([0, *counts.values()]))

    def cap(self, rows: Relation) -> Relation:
        return Cap(input=rows, most=self.rng.choice((1, 2, 4, 50)))

    def join_own(self, rows: Relation) -> Relation:
        other = self.another(rows)
        return JoinOwn(input=rows, other=other, kind=self.rng.choice(list(JoinKind)), keys=self.keys(rows, other, 0))

    def match(self, rows: Relation) -> Relation:
        other = self.another(rows) if self.rng.random() < 0.6 else self.public()
        return Match(input=rows, other=other, keys=self.keys(rows, other, 0), without=self.rng.random() < 0.5)

    def reduce(self, rows: Relation) -> Relation:
        made = self.expressions(rows)
        keys = tuple((self.name(), made.make(made.any_type(), 1)) for _ in range(self.rng.choice((0, 1, 1, 2))))
        return Reduce(input=rows, keys=keys, columns=tuple(self.reduced(made) for _ in range(self.rng.randint(0, 3))))

    def reduced(self, made: Expressions) -> Reduced:
        reduction = self.rng.choice(list(Reduction))
        if reduction is Reduction.TOTAL:
            return self.total(made)
        argument = made.make(made.any_type(), 1)
        if reduction in {Reduction.LEAST, Reduction.MOST}:
            kind = replace(argument.kind, nullable=True)
            return Reduced(name=self.name(), reduction=reduction, argument=argument, kind=kind)
        kind = integer(*self.rng.choice(((0, 3), (0, 100), (0, INT64[1]))), nullable=False)
        given = None if reduction is Reduction.ROWS and self.rng.random() < 0.5 else argument
        return Reduced(name=self.name(), reduction=reduction, argument=given, kind=kind)

    def total(self, made: Expressions) -> Reduced:
        rng, type_ = self.rng, self.rng.choice((Type.INTEGER, Type.REAL))
        argument = made.make(type_, 1)
        low, high = sorted(rng.sample(range(-1000, 1000), 2))
        if type_ is Type.INTEGER and rng.random() < 0.5:
            free = not argument.kind.wide and rng.random() < 0.5
            kind = integer(*rng.choice((INT64, INT128, (-100, 100))))
            clamp = None if free else (Fraction(low), Fraction(high))
            return Reduced(name=self.name(), reduction=Reduction.TOTAL, argument=argument, kind=kind, clamp=clamp)
        grid = rng.choice((Fraction(1), Fraction(1, 10), Fraction(1, 1 << 20), Fraction(8), Fraction(3, 7)))
        return Reduced(
            name=self.name(),
            reduction=Reduction.TOTAL,
            argument=argument,
            kind=of(Type.REAL),
            clamp=(low * grid, high * grid),
            grid=grid,
        )

    def window(self, rows: Relation) -> Relation:
        made, rng = self.expressions(rows), self.rng
        ranking = rng.choice(list(Ranking))
        return Window(
            input=rows,
            name=self.name(),
            ranking=ranking,
            argument=made.make(made.any_type(), 1) if ranking in {Ranking.LAG, Ranking.LEAD} else None,
            offset=rng.choice((0, 1, 1, 2, 5)),
            part=tuple(made.make(made.any_type(), 1) for _ in range(rng.choice((0, 0, 1)))),
            order=tuple((made.make(made.any_type(), 1), rng.random() < 0.5) for _ in range(rng.choice((0, 1, 1, 2)))),
        )

    def union(self, rows: Relation) -> Relation:
        """Of columns that are alike, or made so: of one type, and not of one kind."""
        if self.rng.random() < 0.4:
            same = self.rng.choice((self.filter, self.cap, self.match))
            return RelationUnion(inputs=(rows, same(rows)))
        parts = [rows, *(self.another(rows) for _ in range(self.rng.choice((1, 1, 2))))]
        types = [self.rng.choice(list(Type)) for _ in range(self.rng.randint(1, 3))]
        names = [self.name() for _ in types]
        made = [
            tuple((name, self.expressions(part).make(type_, 1)) for name, type_ in zip(names, types, strict=True))
            for part in parts
        ]
        return RelationUnion(
            inputs=tuple(Project(input=part, columns=own) for part, own in zip(parts, made, strict=True))
        )

    OPERATIONS = (filter, project, join_public, cap, join_own, match, reduce, window, union)
    PUBLIC = (filter, project, reduce, window)


def operations(op: Relation) -> Iterator[Relation]:
    """Every operation of a relation."""
    yield op
    for one in below(op):
        yield from operations(one)


def functions_of(op: Relation) -> set[str]:
    """Every function that a relation computes."""
    return {
        function for one in operations(op) for expression in _expressions(one) for function in functions_in(expression)
    }


def _expressions(op: Relation) -> list[Expression]:
    match op:
        case Filter(condition=condition):
            return [condition]
        case Project(columns=columns):
            return [one for _, one in columns]
        case JoinPublic(keys=pairs) | JoinOwn(keys=pairs) | Match(keys=pairs):
            return [one for pair in pairs for one in pair]
        case Reduce(keys=keys, columns=reduced):
            return [one for _, one in keys] + [one.argument for one in reduced if one.argument is not None]
        case Window(argument=argument, part=part, order=order):
            return [*part, *(one for one, _ in order), *([] if argument is None else [argument])]
        case _:
            return []
