"""Relations over declared tables as DuckDB's SELECTs.

Names in the statement are ours (the unit, a row's columns); a table's own names appear once, quoted, where it is read.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hubbub.engines.lower import Names, lower, matched
from hubbub.engines.own import UNIT, Part, capped, joined_own, matched_rows, united, windowed
from hubbub.engines.owners import owned, unit_column
from hubbub.engines.reduce import reduced
from hubbub.engines.words import (
    NULL,
    STAR,
    Sql,
    alias,
    cast,
    function,
    infix,
    joined,
    name,
    number,
    present,
    select,
    within,
)
from hubbub.errors import ParameterError, PolicyError
from hubbub.policy.kinds import Kind
from hubbub.policy.paths import own
from hubbub.policy.scanned import scan_identity, scan_value
from hubbub.policy.sources import REPLACED
from hubbub.policy.tables import Column, Table
from hubbub.query.expression import Expression
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
    Scan,
    Union,
    Window,
    below,
)
from hubbub.query.shape import hull, private, shape

SECRETS = 2
"""How many secret numbers key the hashes of a statement, where it has any."""

From = Mapping[str, Sql]
"""What stands behind FROM for each declared table."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The public values of one group, as a table that the statement joins with: each value with its place."""

    table: str
    type: str
    places: tuple[int, ...]
    values: tuple[str | None, ...]
    """As text, which the engine casts to the type."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, the tables of public keys that it needs, and how many secret numbers of 64 bits it is given."""

    sql: str
    keys: tuple[Keys, ...] = ()
    secrets: int = 0


class Lowering:
    """Relations over declared tables, each as a SELECT with the engine's names of its columns."""

    def __init__(self, tables: Mapping[str, Table], origins: From) -> None:
        self._tables = tables
        self._origins = origins
        self._count = itertools.count()
        self.secrets = 0
        """How many secret numbers the relations lowered so far look at."""

    def relation(self, op: Relation) -> tuple[Sql, Names]:
        """Rows with their unit, if they have one, beside their columns."""
        match op:
            case Scan():
                return self._scan(op)
            case Filter(input=rows, condition=condition):
                inner, names = self.relation(rows)
                return select(within(inner), STAR, where=[lower(condition, names)]), names
            case Project(input=rows, columns=columns):
                inner, names = self.relation(rows)
                made = {column: self._fresh() for column, _ in columns}
                shown = [alias(lower(one, names), made[column]) for column, one in columns]
                return select(within(inner), *unit_of(rows), *shown), made
            case JoinPublic():
                return self._join(op)
            case Cap():
                self.secrets = SECRETS
                return capped(op, self._part(op.input), self._fresh)
            case JoinOwn():
                return joined_own(op, self._part(op.input), self._part(op.other))
            case Match():
                return matched_rows(op, self._part(op.input), self._part(op.other))
            case Reduce():
                return reduced(op, self._part(op.input), self._fresh)
            case Window():
                return windowed(op, self._part(op.input), self._fresh)
            case Union():
                return united(op, [self._part(one) for one in op.inputs])

    def _part(self, op: Relation) -> Part:
        rows, names = self.relation(op)
        return Part(sql=rows, names=names, kinds=shape(op), unit=self._unit(op), light=_light(op))

    def _unit(self, op: Relation) -> Kind | None:
        """The kind of the unit; of several relations that are put together, one that holds them all."""
        if isinstance(op, Scan):
            table = self._tables[op.table]
            return None if op.unit is None else unit_column(table, op.path, op.unit, self._tables).kind
        kinds = [kind for one in below(op) if (kind := self._unit(one)) is not None]
        return hull(kinds) if private(op) else None

    def _fresh(self) -> str:
        return f"c{next(self._count)}"

    def _scan(self, op: Scan) -> tuple[Sql, Names]:
        table = self._tables[op.table]
        names = {column.name: self._fresh() for column in op.columns}
        named = [(_declared(table, column.reads), column.kind, names[column.name]) for column in op.columns]
        shown = [(Sql(scan_value(name(column), kind)), made) for column, kind, made in named if own(table, column)]
        if op.unit is None:
            listed = [alias(value, made) for value, made in shown]
            return select(self._origins[op.table], *(listed or [NULL])), names
        found = owned(
            table,
            shown,
            op.path,
            op.unit,
            tables=self._tables,
            origins=self._origins,
            read=_identity,
            called=UNIT,
        )
        units = [alias(name(UNIT), made) for column, _, made in named if not own(table, column)]
        return select(within(found), STAR, *units, where=[present(name(UNIT))]), names

    def _join(self, op: JoinPublic) -> tuple[Sql, Names]:
        if private(op.public) or op.kind is JoinKind.FULL:
            raise ParameterError("public", "a relation of public tables, whose rows without a match are left out", op)
        left, mine = self.relation(op.input)
        right, theirs = self.relation(op.public)
        pairs = [infix("=", *matched(one, other, (mine, theirs))) for one, other in op.keys]
        kind = "LEFT" if op.kind is JoinKind.LEFT else "INNER"
        both = joined(within(left), within(right, "r"), pairs, kind=kind)
        return select(both, STAR), {**mine, **theirs}


def fanout(relation: Relation, keys: Sequence[Expression], tables: Mapping[str, Table], origins: From) -> Statement:
    """How many rows of a public relation share one combination of keys; missing keys equal nothing."""
    rows, names = Lowering(tables, origins).relation(relation)
    made = [alias(lower(key, names), f"k{index}") for index, key in enumerate(keys)]
    columns = [name(f"k{index}") for index in range(len(made))]
    counted = select(
        within(select(within(rows), *made)),
        alias(function("count", STAR), "n"),
        where=[present(column) for column in columns],
        by=columns,
    )
    most = function("coalesce", function("max", name("n")), number(0))
    return Statement(select(within(counted), cast(most, "VARCHAR")))


def values(
    relation: Relation, expression: Expression, tables: Mapping[str, Table], origins: From, *, most: int
) -> Statement:
    """The distinct values of an expression over a public relation, ascending, as text; one more than ``most``."""
    rows, names = Lowering(tables, origins).relation(relation)
    listed = select(within(rows), alias(lower(expression, names), "v"))
    distinct = select(within(listed), name("v"), where=[present(name("v"))], by=[name("v")])
    found = select(within(distinct), cast(name("v"), "VARCHAR"), order=[name("v")], most=most + 1)
    return Statement(found)


def _identity(table: Table, column: Column) -> Sql:
    replaced = table.source.format in REPLACED
    return Sql(scan_identity(name(column.name), column.kind, replaced=replaced))


def unit_of(op: Relation) -> list[Sql]:
    """The unit, where rows have one."""
    return [name(UNIT)] if private(op) else []


def _light(op: Relation) -> bool:
    """Whether rows come straight from a table."""
    if isinstance(op, Filter | Project):
        return _light(op.input)
    return isinstance(op, Scan) and not op.path


def _declared(table: Table, column: str) -> str:
    """Find a column of the table, or that of the unit at the end of its path."""
    declared = table.column(column)
    if declared is None:
        raise PolicyError(f"Table {table.name} has no column {column}. Declare it.", name=table.name)
    return declared.name
