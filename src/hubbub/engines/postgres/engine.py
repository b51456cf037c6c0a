"""PostgreSQL as an engine: each request is one transaction that reads one state of the database, and then ends.

Whatever goes wrong while rows are read is one error, and its cause goes to the owner's log alone. What goes wrong for
reasons that are public is either refused when the request is prepared, or found out of the catalogue, in the snapshot
and before a row is read (DataChanged). A standby that ends a snapshot because rows of it are needed elsewhere has read
nothing for anybody: the read is tried again, and that is not counted.

Privacy:
    Claim: exact numbers that leave a read are bounded as the plan assumed, whatever is written to the tables meanwhile;
        and whether DataChanged is raised depends on the catalogue alone.
    Proof: all tables of a question, public ones included, and the catalogue are read in one REPEATABLE READ
        transaction. A statement finds tables by what the catalogue says now, which its snapshot need not; so the tables
        are locked first, and whatever its name finds now is the table, and the file of it, that the snapshot knows.
        Tables whose columns, types or shape are not those of which the statement was made are not read.
        An aggregate that skips bounding is computed by its short statement only if constraints enforce, in the
        snapshot, what it rests on (``facts``); otherwise the long statement is run, which rests on nothing. Where keys
        lead to units, and are not enforced, no statement is run.
    Needs: ``facts``, ``connection``, ``scan``; server and role that the owner trusts with the data.
    Ref: SOUNDNESS 35, 36, 52.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from hubbub.engines.answers import (
    Op,
    doubt_facts,
    lower_request,
    make_decoder,
    read_text,
    relation_of,
    tables_of,
)
from hubbub.engines.base import Run
from hubbub.engines.dialects.dialect import KeyList, SqlStatement
from hubbub.engines.dialects.postgres import POSTGRES
from hubbub.engines.dialects.printer import is_storable, print_statement
from hubbub.engines.duckdb.engine import size
from hubbub.engines.held import READS
from hubbub.engines.lower import blocks as dealing
from hubbub.engines.lower import cells as dense
from hubbub.engines.lower import relations, totals
from hubbub.engines.lower.aggregate import aggregate as lowered
from hubbub.engines.lower.relations import Origins
from hubbub.engines.nodes.queries import Lowered, RowSource, StoredTable
from hubbub.engines.postgres import facts
from hubbub.engines.postgres.catalogue import (
    CatalogueTable,
    check_shape,
    describe_table,
    explain_unfitness,
    read_table,
)
from hubbub.engines.postgres.connection import (
    Connection,
    Cursor,
    connect,
    draw_secrets,
    hold_snapshot,
    is_as_seen,
    plain,
)
from hubbub.engines.postgres.scan import quote_name
from hubbub.errors import DataChanged, EngineError, HubbubError, PolicyError
from hubbub.gate.attempt import Log
from hubbub.policy.stamps import NO_FILES, Stamp
from hubbub.policy.tables import Limits, Table, TableColumn, TableSource
from hubbub.query.expression import Expression, Value
from hubbub.query.ops import Relation
from hubbub.query.read.scope import Fanout
from hubbub.query.requests import BlockRows, DenseCells, Request, SparseCells, Tallies
from hubbub.query.totals import Totals

_T = TypeVar("_T")
Rows = list[list[Any]]

_CONFLICTS = frozenset({"40001", "40P01"})
"""What a standby says when it ends a snapshot, whose rows are to be removed as on the server that it follows."""
_ALTERED = "A table of the question was altered since it was opened. Ask again; if it is refused, ask the owner."
_UNKEYED = (
    "Nothing enforces any longer that the keys by which rows find their unit are unique, so nobody knows whose rows "
    "they are. Let the owner add the constraint again."
)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What the catalogue said of the tables of a request when its statements were made."""

    tables: Mapping[str, Table]
    known: Mapping[str, CatalogueTable]
    relation: Relation


@dataclass(slots=True)
class _Begun:
    """A connection that was made in advance."""

    connection: Connection | None

    def take(self) -> Connection | None:
        connection, self.connection = self.connection, None
        return connection

    def drop(self) -> None:
        connection = self.take()
        if connection is not None:
            connection.close()


class Postgres:
    """The engine over the tables of one database. Safe to share between threads: each request has its own
    connection."""

    def __init__(self, *, limits: Limits, dsn: str, log: Log | None = None) -> None:
        self.limits = limits
        self._dsn = dsn
        self._log = log

    def __enter__(self) -> "Postgres":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what was begun: nothing stays open between requests."""

    def rouse(self) -> None:
        """Do nothing: the server waits for no request of ours."""

    def prepare(self, request: Request, *, tables: Mapping[str, Table]) -> Run[Any]:
        """Do everything but the reading of rows: the catalogue is looked at, and the statements are made."""
        match request:
            case Tallies(aggregate=aggregate):
                return self._reading(aggregate, tables, lowered, make_decoder(aggregate))
            case DenseCells(aggregate=aggregate):
                return self._reading(aggregate, tables, dense.statement, dense.fill_cells)
            case SparseCells(aggregate=aggregate):
                return self._reading(aggregate, tables, dense.statement, dense.combine_cells)
            case Totals():
                return self._reading(request, tables, totals.statement, totals.read)
            case BlockRows():
                return self._dealing(request, tables)

    def show(self, request: Request, *, tables: Mapping[str, Table]) -> SqlStatement:
        """Return the statement that a request would run, for the owner: texts and keys are its parameters."""
        prepared = self._look(relation_of(request), tables)
        return print_statement(lower_request(request, tables, _origins(prepared)), POSTGRES)

    def describe(self, source: TableSource) -> tuple[tuple[str, str], ...]:
        """Return the columns of a table that the role may read, with their types as policies know them."""

        def look(cursor: Cursor) -> tuple[tuple[str, str], ...]:
            return describe_table(plain(cursor), source.schema or "", source.table or "")

        return self._ask_public(look)

    def stamp(self, relation: Relation, *, tables: Mapping[str, Table]) -> Stamp:
        """Return no stamp: what is read is held by its snapshot, and facts by constraints."""
        return NO_FILES

    def stamp_at_rest(self, table: Table) -> Stamp | None:
        """Return no stamp, of which the same is true."""
        return NO_FILES

    def count_repeated(self, table: Table, column: TableColumn) -> int:
        """Return 0 where a constraint keeps the values of a column unique; otherwise refuse, without counting them."""

        def look(cursor: Cursor) -> int:
            found = self._read_catalogue(cursor, table)
            if column.name in found.unique:
                return 0
            where = f"{quote_name(found.schema)}.{quote_name(found.name)}"
            raise PolicyError(
                f"Nothing in the database enforces that column {column.name} of table {table.name} is unique. Let its "
                f"owner say so: ALTER TABLE {where} ADD UNIQUE ({quote_name(column.name)}).",
                name="unique",
            )

        return self._ask_public(look)

    def fanout(self, relation: Relation, keys: Sequence[Expression], *, tables: Mapping[str, Table]) -> Fanout:
        """Return the most rows of a public relation that share one combination of keys; nothing may rest on it."""
        prepared = self._look(relation, tables)
        statement = print_statement(relations.fanout(relation, keys, tables, _origins(prepared)), POSTGRES)
        ((most,),) = self._ask_public(lambda cursor: self._run(cursor, prepared, statement))
        return Fanout(most=int(most))

    def values(
        self, relation: Relation, expression: Expression, *, tables: Mapping[str, Table], most: int
    ) -> tuple[Value, ...]:
        """Return the distinct values of an expression over a public relation, ascending; most + 1 at most."""
        prepared = self._look(relation, tables)
        asked = relations.values(relation, expression, tables, _origins(prepared), most=most)
        statement = print_statement(asked, POSTGRES)
        rows = self._ask_public(lambda cursor: self._run(cursor, prepared, statement))
        return tuple(read_text(row[0], expression.kind.type) for row in rows)

    def _reading(
        self,
        op: Op,
        tables: Mapping[str, Table],
        lower: Callable[[Op, Mapping[str, Table], Origins], Lowered],
        decode: Callable[[Op, Rows], _T],
    ) -> Run[_T]:
        """Make what reads for one operation: the short way where constraints allow it, else the way that needs none."""
        prepared = self._look(op.input, tables)
        origins = _origins(prepared)
        brief = print_statement(lower(op, tables, origins), POSTGRES)
        unsure = doubt_facts(op) if op.single else op
        long = print_statement(lower(unsure, tables, origins), POSTGRES) if op.single else brief

        def read(cursor: Cursor) -> _T:
            known = self._check(cursor, prepared)
            if op.single and facts.has_one_row(op.input, prepared.tables, known):
                return decode(op, self._run(cursor, prepared, brief))
            return decode(unsure, self._run(cursor, prepared, long))

        return self._make_run(read)

    def _dealing(self, request: BlockRows, tables: Mapping[str, Table]) -> Run[Any]:
        """Make what reads rows, dealt out to blocks by their units."""
        prepared = self._look(request.relation, tables)
        columns, blocks = request.columns, request.blocks
        asked = dealing.statement(request.relation, columns, tables, _origins(prepared), blocks=blocks)
        statement = print_statement(asked, POSTGRES)

        def read(cursor: Cursor) -> list[dealing.Rows]:
            self._check(cursor, prepared)
            return dealing.dealt(columns, self._run(cursor, prepared, statement), blocks=blocks)

        return self._make_run(read)

    def _make_run(self, read: Callable[[Cursor], _T]) -> Run[_T]:
        def run(begun: _Begun | None) -> _T:
            try:
                return self._read(read, begun)
            finally:
                if begun is not None:
                    begun.drop()

        return Run(run, begin=lambda: _Begun(connect(self._dsn)))

    def _read(self, read: Callable[[Cursor], _T], begun: _Begun | None) -> _T:
        """Read in one snapshot; again where a standby ended it, as long as there is time. All failures are one
        error."""
        deadline = time.monotonic() + self.limits.seconds
        for _ in range(READS):
            try:
                return self._in_snapshot(read, None if begun is None else begun.take())
            except (DataChanged, KeyboardInterrupt):
                raise
            except psycopg.Error as problem:
                self._tell(problem)
                if problem.sqlstate not in _CONFLICTS or time.monotonic() > deadline:
                    break
            except Exception as problem:
                self._tell(problem)
                break
        raise EngineError

    def _in_snapshot(self, read: Callable[[Cursor], _T], connection: Connection | None = None) -> _T:
        if connection is None or connection.closed:
            connection = connect(self._dsn)
        try:
            with hold_snapshot(connection, self.limits, memory=size(self.limits.memory)) as cursor:
                return read(cursor)
        finally:
            connection.close()

    def _ask_public(self, look: Callable[[Cursor], _T]) -> _T:
        """Look at what is public, before anything is paid."""
        for _ in range(READS):
            try:
                return self._in_snapshot(look)
            except HubbubError:
                raise
            except psycopg.Error as problem:
                self._tell(problem)
                if problem.sqlstate not in _CONFLICTS:
                    break
            except Exception as problem:
                self._tell(problem)
                break
        raise EngineError

    def _look(self, relation: Relation, tables: Mapping[str, Table]) -> _Prepared:
        """Look at the catalogue for the tables of a relation; PolicyError where they cannot be asked."""

        def look(cursor: Cursor) -> dict[str, CatalogueTable]:
            self._check_server(cursor)
            return {name: self._read_catalogue(cursor, tables[name]) for name in sorted(tables_of(relation))}

        known = self._ask_public(look)
        if not facts.has_keys(relation, tables, known):
            raise PolicyError(_UNKEYED, name="unique")
        return _Prepared(tables, known, relation)

    def _check_server(self, cursor: Cursor) -> None:
        unfit = explain_unfitness(plain(cursor))
        if unfit is not None:
            raise PolicyError(f"No questions run there, since {unfit}. Copy the tables: copy = true.", name="path")

    def _read_catalogue(self, cursor: Cursor, table: Table) -> CatalogueTable:
        source = table.source
        found = read_table(plain(cursor), source.schema or "", source.table or "")
        check_shape(found, allows_view=source.view)
        return found

    def _check(self, cursor: Cursor, prepared: _Prepared) -> dict[str, CatalogueTable]:
        """Return what the catalogue says; DataChanged where the tables are not those of which statements were made.

        The tables are locked first against being altered or renamed, until the transaction ends.
        """
        if not all(is_as_seen(cursor, one.schema, one.name) for one in prepared.known.values()):
            raise DataChanged(_ALTERED)
        known = self._read_catalogues(cursor, prepared)
        if any(_shape_of(known[name]) != _shape_of(prepared.known[name]) for name in prepared.known):
            raise DataChanged(_ALTERED)
        if not facts.has_keys(prepared.relation, prepared.tables, known):
            raise DataChanged(_UNKEYED)
        return known

    def _read_catalogues(self, cursor: Cursor, prepared: _Prepared) -> dict[str, CatalogueTable]:
        """What the catalogue says in this snapshot, before a row is read."""
        try:
            return {name: self._read_catalogue(cursor, prepared.tables[name]) for name in prepared.known}
        except PolicyError:
            raise DataChanged(_ALTERED) from None

    def _run(self, cursor: Cursor, prepared: _Prepared, statement: SqlStatement) -> Rows:
        draw_secrets(cursor, statement.secrets)
        sql, parameters = complete_statement(statement)
        cursor.execute(sql, parameters)
        return [list(row) for row in cursor.fetchall()]

    def _tell(self, problem: Exception) -> None:
        if self._log is not None:
            with suppress(Exception):
                state = getattr(problem, "sqlstate", None)
                self._log(f"{type(problem).__name__}{f' {state}' if state else ''}: {problem}")


def complete_statement(statement: SqlStatement) -> tuple[str, list[Any]]:
    """Return a statement with its tables of public keys, and all its parameters."""
    parameters: list[Any] = list(statement.texts)
    made: list[str] = []
    for keys in statement.keys:
        listed = _keep_storable(keys)
        parameters += [[value for _, value in listed], [place for place, _ in listed]]
        texts, places = (f"${len(parameters) - 1:d}", f"${len(parameters):d}")
        value = f"CAST(k.v AS {keys.type})" + (' COLLATE "C"' if keys.type == POSTGRES.types["text"] else "")
        columns = f"pg_catalog.unnest(CAST({texts} AS text[])), pg_catalog.unnest(CAST({places} AS bigint[]))"
        rows = f"ROWS FROM ({columns}) AS k(v, p)"
        made.append(f'{quote_name(keys.table)} AS MATERIALIZED (SELECT {value} AS "value", k.p AS "place" FROM {rows})')
    if not made:
        return statement.sql, parameters
    return f"WITH {', '.join(made)} SELECT * FROM ({statement.sql}) AS {quote_name('answer')}", parameters


def _keep_storable(keys: KeyList) -> list[tuple[int, str | None]]:
    """Leave out texts that no row of a server can hold."""
    listed = zip(keys.places, keys.values, strict=True)
    return [(place, value) for place, value in listed if value is None or is_storable(value)]


def _origins(prepared: _Prepared) -> dict[str, RowSource]:
    """Return what stands behind FROM: the tables themselves, with the types of their columns."""
    found: dict[str, RowSource] = {}
    for name, known in prepared.known.items():
        found[name] = name_stored(known)
    return found


def name_stored(table: CatalogueTable) -> StoredTable:
    """Return what stands behind FROM for a table: its name, and the types by which its columns are read."""
    types = tuple((column.name, _type_of(column)) for column in table.readable)
    return StoredTable((table.schema, table.name), types)


def _type_of(column: Any) -> str:
    return "enum" if column.type == "ENUM" else "GENERATED" if column.type == "GENERATED" else str(column.base)


def _shape_of(table: CatalogueTable) -> tuple[Any, ...]:
    return table.schema, table.name, tuple((one.name, _type_of(one), one.is_readable) for one in table.columns)
