"""DuckDB behind a wall: each request is answered by a process of its own, prepared in advance and killed afterwards.

Whatever happens in there, the analyst hears one fixed sentence; what really happened goes to the owner's log alone.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

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
from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.dialects.duckdb import DUCKDB
from hubbub.engines.dialects.printer import print_node, print_statement
from hubbub.engines.duckdb import probe, scan, worker
from hubbub.engines.duckdb.nursery import nursery
from hubbub.engines.duckdb.pool import Pool, Standby
from hubbub.engines.held import Read, files_behind, read_held
from hubbub.engines.lower import blocks as dealing
from hubbub.engines.lower import cells as dense
from hubbub.engines.lower import relations, totals
from hubbub.engines.lower.aggregate import aggregate as lowered
from hubbub.engines.lower.blocks import Rows
from hubbub.engines.lower.relations import Origins
from hubbub.engines.nodes.queries import Lowered, RowSource
from hubbub.engines.sources.conversion import Progress
from hubbub.engines.sources.origins import Origin, Sources, describe_server
from hubbub.errors import DataChanged, EngineError, HubbubError, ParameterError
from hubbub.gate.attempt import Log
from hubbub.policy.kinds import Type
from hubbub.policy.sources import SNAPSHOT
from hubbub.policy.stamps import NO_FILES, Stamp, stamp_at_rest
from hubbub.policy.tables import Limits, Table, TableColumn, TableSource
from hubbub.query.expression import Expression, Value
from hubbub.query.ops import Relation
from hubbub.query.read.scope import Fanout
from hubbub.query.requests import BlockRows, DenseCells, Request, SparseCells, Tallies
from hubbub.query.totals import Totals

if TYPE_CHECKING:
    from hubbub.engines.postgres.catalogue import CatalogueTable

_T = TypeVar("_T")

_A_PLACE = 1024
"""A sixteenth of what a thread has, for groups of 64 bytes."""
_LEAST_BITS, _MOST_BITS = 12, 24
_MOST_APART = 1 << 29
"""The widest range of whole numbers that has a bit for each: 64 MiB a thread."""
_CHANGES = {
    worker.LOCKED: "A database of the question is open for writing in another process. Ask again when it is closed.",
    worker.ALTERED: "A table of the question was altered since it was opened. Let the owner open the data again.",
}
"""What a process finds out before it reads a row, from locks and schemas alone."""
_SIZES = {"B": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4}


@dataclass(frozen=True, slots=True)
class _Begun:
    """A request, and the process that has it already."""

    request: dict[str, Any]
    standby: Standby | None = None
    pool: Pool | None = None

    def drop(self) -> None:
        if self.standby is not None and self.pool is not None:
            self.pool.drop(self.standby)


class DuckDB:
    """The engine over files and frames. Close it, or use it in a ``with`` statement. Safe to share between threads."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        log: Log | None = None,
        standbys: int = 2,
        progress: Progress | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._log = log
        self._directory = nursery().make_directory()
        self._sources = Sources(self._directory, log=log, progress=progress)
        self._pool = Pool(directory=self._directory, limits=_limits(self._limits), standbys=standbys)

    @property
    def limits(self) -> Limits:
        """Return the limits of one request."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        if _limits(limits) != _limits(self._limits):
            self._pool.renew(_limits(limits))
        self._limits = limits

    def __enter__(self) -> "DuckDB":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every process and removes every file of its own."""
        self._pool.close()

    def rouse(self) -> None:
        """Say that a request is coming: the process that will read for it gets ready meanwhile."""
        self._pool.rouse()

    def prepare(self, request: Request, *, tables: Mapping[str, Table]) -> Run[Any]:
        """Do everything but the reading. What would go wrong for public reasons, like sums that cannot be held, is
        raised here, before anything is paid; calling what is returned reads the data."""
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
        """Return the statement that a request would run, for the owner: secret numbers are its parameters."""
        origins = _clauses(self._origins(relation_of(request), tables))
        return print_statement(lower_request(request, tables, origins), DUCKDB)

    def _reading(
        self,
        op: Op,
        tables: Mapping[str, Table],
        lower: Callable[[Op, Mapping[str, Table], Origins], Lowered],
        decode: Callable[[Op, list[list[Any]]], _T],
    ) -> Run[_T]:
        """Make what reads for one operation: the short way while its facts hold, else the way that needs none."""
        origins = self._origins(op.input, tables)
        statement = print_statement(lower(op, tables, _clauses(origins)), DUCKDB)
        held = files_behind(op.input)

        def read_bounded() -> Read[_T]:
            unsure = self._safely(lambda: doubt_facts(op))
            longer = self._safely(lambda: print_statement(lower(unsure, tables, _clauses(origins)), DUCKDB))
            found = self._find_rows(longer, origins.values())
            return Read(self._safely(lambda: decode(unsure, found.result)), found.files)

        def read(begun: _Begun | None) -> _T:
            ready = [] if begun is None else [begun]

            def brief() -> Read[_T]:
                found = self._answer(ready.pop()) if ready else self._find_rows(statement, origins.values())
                return Read(self._safely(lambda: decode(op, found.result)), found.files)

            try:
                longer = read_bounded if op.single else None
                return read_held(held, files=lambda: _stamp(origins.values()), short=brief, long=longer)
            finally:
                for unused in ready:
                    unused.drop()

        return Run(read, begin=lambda: self._begin(statement, origins.values()))

    def _safely(self, work: Callable[[], _T]) -> _T:
        """Whatever goes wrong is one error, and its cause is logged."""
        try:
            return work()
        except Exception as error:
            self._tell(f"{type(error).__name__}: {error}")
        raise EngineError

    def _dealing(self, request: BlockRows, tables: Mapping[str, Table]) -> Run[list[Rows]]:
        """Make what reads rows, dealt out to blocks by their units."""
        relation, columns, blocks = request.relation, request.columns, request.blocks
        origins, held = self._origins(relation, tables), files_behind(relation)
        asked = dealing.statement(relation, columns, tables, _clauses(origins), blocks=blocks)
        statement = print_statement(asked, DUCKDB)

        def deal() -> Read[list[Rows]]:
            found = self._find_rows(statement, origins.values())
            return Read(self._safely(lambda: dealing.dealt(columns, found.result, blocks=blocks)), found.files)

        return Run(lambda _: read_held(held, files=lambda: _stamp(origins.values()), short=deal))

    def describe(self, source: TableSource) -> tuple[tuple[str, str], ...]:
        """The columns of a source and the engine's types for them, read off its schema; for the owner's side."""
        if source.format in SNAPSHOT:
            return describe_server(source)
        origin = self._origin(source, ())
        for name in origin.databases or {}:
            asked = scan.columns_of(source, catalogue=name)
            return scan.describe_columns(source, self._ask_public(asked, [origin]).result)
        rows = self._ask_public(
            SqlStatement(f"DESCRIBE SELECT * FROM {print_node(origin.clause, DUCKDB)}"), [origin]
        ).result
        return tuple((str(row[0]), str(row[1])) for row in rows)

    def take_snapshots(self, sources: Iterable[TableSource]) -> None:
        """Copy tables of servers, those of one database in one snapshot; for the owner's side."""
        self._sources.take_snapshots(list(sources))

    def catalogue(self, source: TableSource) -> "CatalogueTable":
        """Return what a server's catalogue says of a table: in the snapshot, if it was copied."""
        return self._sources.catalogue(source)

    def count_repeated(self, table: Table, column: TableColumn) -> int:
        """Count the values of a column that are there more than once; for the owner's side.

        Whole numbers in a narrow range are looked at first by a bit each: mostly there is none, and then that is all.
        Where a path led elsewhere while it was looked at, nothing is known, and that is an error.
        """
        origin = self._origin(table.source, [one.name for one in table.columns])
        rows = f"WITH {probe.quote(table.name)} AS (SELECT * FROM {print_node(origin.clause, DUCKDB)})"

        def ask(statement: str) -> list[Any]:
            found = self._ask_public(SqlStatement(f"{rows} {statement}"), [origin])
            if not origin.stamp.agrees(found.files):
                raise EngineError
            (row,) = found.result
            return row

        if column.kind.type is Type.INTEGER and not column.kind.wide:
            many, low, high = ask(probe.span(table, column))
            if not many:
                return 0
            if int(high) - int(low) < _MOST_APART and ask(probe.different(table, column, low, high)) == [many]:
                return 0
        return int(ask(probe.count_repeated(table, column))[1])

    def stamp(self, relation: Relation, *, tables: Mapping[str, Table]) -> Stamp:
        """The state of the files that a relation is read from."""
        return _stamp(self._origins(relation, tables).values())

    def stamp_at_rest(self, table: Table) -> Stamp | None:
        """The state of the files of a table that nobody is writing to; None where somebody is, or where what was
        converted is no longer there."""
        origin = self._origin(table.source, [one.name for one in table.columns])
        stamp = stamp_at_rest(lambda: origin.stamp)
        return stamp if stamp is not None and self._sources.made(table.source).agrees(stamp) else None

    def stamp_source(self, source: TableSource) -> Stamp:
        """The state of a source's own files that is read: of text and Arrow, the one that was converted."""
        return self._sources.stamp(source)

    def fanout(self, relation: Relation, keys: Sequence[Expression], *, tables: Mapping[str, Table]) -> Fanout:
        """Return the most rows of a public relation that share one combination of keys."""
        origins = self._origins(relation, tables)
        statement = print_statement(relations.fanout(relation, keys, tables, _clauses(origins)), DUCKDB)
        before, now = _stamp(origins.values()), time.time_ns()
        found = self._ask_public(statement, origins.values())
        at_rest = before.is_settled(now) and before.holds() and before.agrees(found.files)
        ((most,),) = found.result
        return Fanout(most=int(most), held=before if at_rest else None)

    def values(
        self, relation: Relation, expression: Expression, *, tables: Mapping[str, Table], most: int
    ) -> tuple[Value, ...]:
        """The distinct values of an expression over a public relation, ascending; most + 1 at most."""
        origins = self._origins(relation, tables)
        asked = relations.values(relation, expression, tables, _clauses(origins), most=most)
        found = self._ask_public(print_statement(asked, DUCKDB), origins.values())
        return tuple(read_text(row[0], expression.kind.type) for row in found.result)

    def _origins(self, relation: Relation, tables: Mapping[str, Table]) -> dict[str, Origin]:
        return {
            name: self._origin(tables[name].source, [column.name for column in tables[name].columns])
            for name in tables_of(relation)
        }

    def _origin(self, source: TableSource, columns: Sequence[str]) -> Origin:
        try:
            return self._sources.origin(source, columns)
        except HubbubError:
            raise
        except Exception as error:
            self._tell(f"{type(error).__name__}: {error}")
            raise EngineError from None

    def _ask_public(self, statement: SqlStatement, origins: Iterable[Origin]) -> Read[list[list[Any]]]:
        """Read public data, which may be read again: a process that the system has ended is nobody's fault."""
        known = list(origins)
        try:
            return self._find_rows(statement, known)
        except EngineError:
            return self._find_rows(statement, known)

    def _find_rows(self, statement: SqlStatement, origins: Iterable[Origin]) -> Read[list[list[Any]]]:
        """The rows of a statement, by a fresh process, and what they were read from; all failures are one error."""
        return self._answer(_Begun(_request(statement, origins)))

    def _begin(self, statement: SqlStatement, origins: Iterable[Origin]) -> _Begun | None:
        """A process that only waits for the word to read; None where nothing is ready."""
        request = _request(statement, origins)
        try:
            standby = self._pool.begin(request)
        except Exception as error:
            self._tell(f"{type(error).__name__}: {error}")
            return None
        return None if standby is None else _Begun(request, standby, self._pool)

    def _answer(self, begun: _Begun) -> Read[list[list[Any]]]:
        try:
            answer = self._pool.ask(begun.request, seconds=self.limits.seconds, begun=begun.standby)
            if "rows" in answer:
                return Read(answer["rows"], Stamp.of_json(answer["files"]))
            changed, problem = answer.get("changed"), str(answer.get("error"))
        except Exception as error:
            changed, problem = None, f"{type(error).__name__}: {error}"
        if changed is not None:
            raise DataChanged(_CHANGES[changed])
        self._tell(problem)
        raise EngineError from None

    def _tell(self, problem: str) -> None:
        if self._log is not None:
            with suppress(Exception):
                self._log(problem)


def _request(statement: SqlStatement, origins: Iterable[Origin]) -> dict[str, Any]:
    """All that a process is told, secret numbers of its own among it."""
    known = list(origins)
    return {
        "statement": statement.sql,
        "secrets": draw_secrets(statement),
        "keys": [
            {"table": keys.table, "type": keys.type, "places": keys.places, "values": keys.values}
            for keys in statement.keys
        ],
        "paths": sorted({path for origin in known for path in origin.paths}),
        "files": [[origin.variable, origin.paths] for origin in known if origin.variable is not None],
        "databases": {name: path for origin in known for name, path in (origin.databases or {}).items()},
        "stored": [list(table) for origin in known for table in origin.stored],
    }


def _limits(limits: Limits) -> dict[str, Any]:
    """Return the limits that a process is given before its request."""
    return {
        "memory": limits.memory,
        "temporary": limits.temporary,
        "bytes": size(limits.temporary),
        "threads": limits.threads,
        "bits": _bits(limits),
    }


def _bits(limits: Limits) -> int:
    """Bound the range of whole numbers, in bits, that the engine may group by with one place for each, in every thread.

    That takes a fifth of the time of hashing. The engine does not count these places against its memory, so they get a
    small part of it.
    """
    each = size(limits.memory) // (limits.threads or os.cpu_count() or 1)
    return min(_MOST_BITS, max(_LEAST_BITS, (each // _A_PLACE).bit_length() - 1))


def size(amount: str) -> int:
    """The bytes of an amount such as 20GB; GiB and the like count in powers of two."""
    number = amount.strip().upper().rstrip("BIKMGT ")
    unit = amount.strip().upper()[len(number) :].strip()
    try:
        power = _SIZES[unit.replace("I", "")]
        return int(float(number) * (1024**power if "I" in unit else 1000**power))
    except (KeyError, ValueError):
        raise ParameterError("amount", "a number with B, KB, MB, GB, TB, KiB, MiB, GiB or TiB", amount) from None


def draw_secrets(statement: SqlStatement) -> list[int]:
    """The secret numbers of one run of a statement."""
    return [secrets.randbits(64) for _ in range(statement.secrets)]


def _stamp(origins: Iterable[Origin]) -> Stamp:
    stamp = NO_FILES
    for origin in origins:
        stamp |= origin.stamp
    return stamp


def _clauses(origins: Mapping[str, Origin]) -> dict[str, RowSource]:
    return {name: origin.clause for name, origin in origins.items()}
