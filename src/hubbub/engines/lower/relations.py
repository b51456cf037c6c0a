"""Relations over declared tables as queries, with the joins by which rows find their unit in other tables.

Names in the statement are ours (the unit, a row's columns); a table's own names appear once, quoted, where it is read.

Privacy:
    Claim: each row is read once for every unit that its path leads to, and with unique keys that is one or none.
    Proof: an inner join of the rows with pairs of key and unit, which are made alike from the next table and end where
        the unit is a column. It holds no row without a partner, and no row whose unit is missing. No row of one unit
        takes another's away: whatever pairs there are besides, a row stays beside those of its own.
    Needs: unique keys, for the one (policy.paths, where the proof for neighbours is).
    Ref: SOUNDNESS 3, 4 and 7.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence

from hubbub.engines.lower.reduce import reduce_rows
from hubbub.engines.lower.scalars import Names, lower, match_types
from hubbub.engines.lower.unit_operations import (
    UNIT,
    LoweredRelation,
    add_window,
    cap_rows,
    join_own,
    match_rows,
    unite,
)
from hubbub.engines.nodes.queries import Lowered, Query, RowSource
from hubbub.engines.nodes.scalars import JoinForm, Name, Scalar, ScanIdentity, ScanValue, storage_of
from hubbub.engines.nodes.words import (
    NULL,
    STAR,
    alias,
    cast,
    function,
    infix,
    join,
    name,
    number,
    present,
    select,
    within,
)
from hubbub.errors import ParameterError, PolicyError
from hubbub.policy.kinds import Kind
from hubbub.policy.paths import PathStep, own
from hubbub.policy.sources import REPLACED
from hubbub.policy.tables import Table, TableColumn
from hubbub.query.check.shape import hull, private, shape
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
    RelationUnion,
    Scan,
    Window,
    below,
)

SECRETS = 2
"""How many secret numbers key the hashes of a statement, where it has any."""

Origins = Mapping[str, RowSource]
"""What stands behind FROM for each declared table."""


class Lowering:
    """Relations over declared tables, each as a query with the engine's names of its columns."""

    def __init__(self, tables: Mapping[str, Table], origins: Origins) -> None:
        self._tables = tables
        self._origins = origins
        self._count = itertools.count()
        self.secrets = 0
        """How many secret numbers the relations lowered so far look at."""

    def relation(self, op: Relation) -> tuple[Query, Names]:
        """Lower a relation to rows with their unit, if they have one, beside their columns."""
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
                return cap_rows(op, self._part(op.input), self._fresh)
            case JoinOwn():
                return join_own(op, self._part(op.input), self._part(op.other))
            case Match():
                return match_rows(op, self._part(op.input), self._part(op.other))
            case Reduce():
                return reduce_rows(op, self._part(op.input), self._fresh)
            case Window():
                return add_window(op, self._part(op.input), self._fresh)
            case RelationUnion():
                return unite(op, [self._part(one) for one in op.inputs])

    def _part(self, op: Relation) -> LoweredRelation:
        rows, names = self.relation(op)
        return LoweredRelation(query=rows, names=names, kinds=shape(op), unit=self._unit(op), light=_light(op))

    def _unit(self, op: Relation) -> Kind | None:
        """Return the kind of the unit; of several relations that are put together, one that holds them all."""
        if isinstance(op, Scan):
            table = self._tables[op.table]
            return None if op.unit is None else unit_column(table, op.path, op.unit, self._tables).kind
        kinds = [kind for one in below(op) if (kind := self._unit(one)) is not None]
        return hull(kinds) if private(op) else None

    def _fresh(self) -> str:
        return f"c{next(self._count)}"

    def _scan(self, op: Scan) -> tuple[Query, Names]:
        table = self._tables[op.table]
        names = {column.name: self._fresh() for column in op.columns}
        named = [(_find_column(table, column.reads), column.kind, names[column.name]) for column in op.columns]
        shown: list[tuple[Scalar, str]] = [
            (ScanValue(column, kind), made) for column, kind, made in named if own(table, column)
        ]
        if op.unit is None:
            listed = [alias(value, made) for value, made in shown]
            return select(self._origins[op.table], *(listed or [NULL])), names
        found = find_owners(
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

    def _join(self, op: JoinPublic) -> tuple[Query, Names]:
        if private(op.public) or op.kind is JoinKind.FULL:
            raise ParameterError("public", "a relation of public tables, whose rows without a match are left out", op)
        left, mine = self.relation(op.input)
        right, theirs = self.relation(op.public)
        pairs = [infix("=", *match_types(one, other, (mine, theirs))) for one, other in op.keys]
        form: JoinForm = "left" if op.kind is JoinKind.LEFT else "inner"
        both = join(within(left), within(right, "r"), pairs, form=form)
        return select(both, STAR), {**mine, **theirs}


def fanout(relation: Relation, keys: Sequence[Expression], tables: Mapping[str, Table], origins: Origins) -> Lowered:
    """Count how many rows of a public relation share one combination of keys; missing keys equal nothing."""
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
    return Lowered(select(within(counted), cast(most, "text")))


def values(
    relation: Relation, expression: Expression, tables: Mapping[str, Table], origins: Origins, *, most: int
) -> Lowered:
    """List the distinct values of an expression over a public relation, ascending, as text; one more than ``most``."""
    rows, names = Lowering(tables, origins).relation(relation)
    listed = select(within(rows), alias(lower(expression, names), "v"))
    distinct = select(within(listed), name("v"), where=[present(name("v"))], by=[name("v")])
    found = select(within(distinct), cast(name("v"), "text"), order=[name("v", of="q")], most=most + 1)
    return Lowered(found)


def _identity(table: Table, column: TableColumn) -> ScanIdentity:
    return ScanIdentity(column.name, column.kind, table.source.format in REPLACED)


def unit_of(op: Relation) -> list[Name]:
    """Name the unit, where rows have one."""
    return [name(UNIT)] if private(op) else []


def _light(op: Relation) -> bool:
    """Return whether rows come straight from a table."""
    if isinstance(op, Filter | Project):
        return _light(op.input)
    return isinstance(op, Scan) and not op.path


def _find_column(table: Table, column: str) -> str:
    """Find a column of the table, or that of the unit at the end of its path."""
    declared = table.column(column)
    if declared is None:
        raise PolicyError(f"Table {table.name} has no column {column}. Declare it.", name=table.name)
    return declared.name


KEY, NEXT = "key", "next"

Read = Callable[[Table, TableColumn], Scalar]
"""A column of a table's source as its kind; what is not of it is missing."""


def find_owners(
    table: Table,
    shown: Sequence[tuple[Scalar, str]],
    path: Sequence[PathStep],
    unit: str,
    *,
    tables: Mapping[str, Table],
    origins: Mapping[str, RowSource],
    read: Read,
    called: str,
) -> Query:
    """Show these columns of a table's rows by their names, each row with the unit at the end of its path, called so."""
    made = [alias(value, as_) for value, as_ in shown]
    if not path:
        return select(origins[table.name], *made, alias(read(table, column_of(table, unit)), called))
    step, there = path[0], tables[path[0].table]
    column, key = column_of(table, step.column), column_of(there, step.key)
    rows = select(origins[table.name], *made, alias(_in_common(read(table, column), column.kind, key.kind), NEXT))
    keys = [(_in_common(read(there, key), column.kind, key.kind), KEY)]
    found = find_owners(there, keys, path[1:], unit, tables=tables, origins=origins, read=read, called=called)
    pairs = select(within(found), name(KEY), name(called), where=[present(name(called))])
    same = [infix("=", name(NEXT, of="l"), name(KEY, of="o"))]
    mine = [name(as_, of="l") for _, as_ in shown]
    return select(join(within(rows, "l"), within(pairs, "o"), same), *mine, name(called, of="o"))


def unit_column(table: Table, path: Sequence[PathStep], unit: str, tables: Mapping[str, Table]) -> TableColumn:
    """Return the column at the end of a path that names the unit."""
    return column_of(tables[path[-1].table] if path else table, unit)


def column_of(table: Table, column: str) -> TableColumn:
    """Find a column of a table's source."""
    found = own(table, column)
    if found is None:
        raise PolicyError(f"Table {table.name} has no column {column}. Declare it.", name=table.name)
    return found


def _in_common(value: Scalar, one: Kind, other: Kind) -> Scalar:
    """Cast to a type that holds the values of both sides."""
    return cast(value, storage_of(hull([one, other])))
