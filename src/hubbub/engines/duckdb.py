"""DuckDB behind a wall: each request is answered by a process of its own, prepared in advance and killed afterwards.

Whatever happens in there, the analyst hears one fixed sentence; what really happened goes to the owner's log alone.
"""

import itertools
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Generic, TypeVar

from hubbub.attempt import Log
from hubbub.engines import blocks as dealing
from hubbub.engines import catalogue, dense, histogram, keyed, relations, totals, worker
from hubbub.engines.aggregate import aggregate as lowered
from hubbub.engines.blocks import Rows
from hubbub.engines.conversion import Progress
from hubbub.engines.held import held_by, read_held
from hubbub.engines.pool import Pool
from hubbub.engines.relations import From, Statement
from hubbub.engines.run import Begun, Run
from hubbub.engines.sources import Origin, Sources
from hubbub.engines.words import Sql
from hubbub.errors import DataChanged, EngineError, HubbubError, ParameterError
from hubbub.policy import probe
from hubbub.policy.kinds import Type
from hubbub.policy.stamps import NO_FILES, Stamp, stamp_at_rest
from hubbub.policy.tables import Column, Limits, Source, Table
from hubbub.query.expression import Expression, Value
from hubbub.query.ops import Aggregate, Cap, Counted, Relation, Scan, below
from hubbub.query.scope import Fanout
from hubbub.query.totals import Totals

_T = TypeVar("_T")
_Op = TypeVar("_Op", Aggregate, Totals)

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
class _Reading(Generic[_T]):
    """What reads for one operation, and what begins it before it is paid for."""

    read: Callable[..., _T]
    begin: Callable[[], Begun | None]


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
        self._directory = tempfile.mkdtemp(prefix="hubbub-")
        self._sources = Sources(self._directory, log=log, progress=progress)
        self._pool = Pool(directory=self._directory, limits=_limits(self._limits), standbys=standbys)

    @property
    def limits(self) -> Limits:
        """What one request may take."""
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

    def prepare(self, aggregate: Aggregate, *, tables: Mapping[str, Table]) -> Run:
        """Everything but the reading. What would go wrong for public reasons, like sums that cannot be held, is raised
        here, before anything is paid; calling what is returned reads the data."""
        cells = tuple(itertools.product(*(group.values for group in aggregate.groups)))

        def counted(op: Aggregate, rows: list[list[Any]]) -> Counted:
            if keyed.is_private(op):
                return keyed.counted(op, rows, _value)
            return histogram.counted(op, cells, rows)

        reading = self._reading(aggregate, tables, lowered, counted)
        return Run(reading.read, begin=reading.begin, drop=self._drop)

    def cells(self, aggregate: Aggregate, *, tables: Mapping[str, Table]) -> Callable[[], dense.Array]:
        """The same for one tally of very many groups: an array of the exact numbers."""
        return self._reading(aggregate, tables, dense.statement, dense.filled).read

    def combinations(self, aggregate: Aggregate, *, tables: Mapping[str, Table]) -> Callable[[], dense.Combinations]:
        """The same where there are more groups than anybody lists: the exact numbers of those that have rows."""
        return self._reading(aggregate, tables, dense.statement, dense.combined).read

    def totals(self, op: Totals, *, tables: Mapping[str, Table]) -> Callable[[], list[dense.Array]]:
        """What adds up whole numbers of rows when it is called: exact totals, which belong into Secrets."""
        return self._reading(op, tables, totals.statement, totals.read).read

    def _reading(
        self,
        op: _Op,
        tables: Mapping[str, Table],
        lower: Callable[[_Op, Mapping[str, Table], From], Statement],
        decode: Callable[[_Op, list[list[Any]]], _T],
    ) -> "_Reading[_T]":
        """Make what reads for one operation: the short way while its facts hold, else the way that needs none."""
        origins = self._origins(op.input, tables)
        statement, held = lower(op, tables, _clauses(origins)), held_by(op.input)

        def bounded() -> _T:
            unsure = self._safely(lambda: _unsure(op))
            longer = self._safely(lambda: lower(unsure, tables, _clauses(origins)))
            rows = self._ask(longer, origins.values())
            return self._safely(lambda: decode(unsure, rows))

        def read(begun: Begun | None = None) -> _T:
            ready = [] if begun is None else [begun]

            def brief() -> _T:
                rows = self._answer(ready.pop()) if ready else self._ask(statement, origins.values())
                return self._safely(lambda: decode(op, rows))

            try:
                longer = bounded if op.single else None
                return read_held(held, files=lambda: _stamp(origins.values()), short=brief, long=longer)
            finally:
                for unused in ready:
                    self._drop(unused)

        return _Reading(read, lambda: self._begin(statement, origins.values()))

    def _safely(self, work: Callable[[], _T]) -> _T:
        """Whatever goes wrong is one error, and its cause is logged."""
        try:
            return work()
        except Exception as error:
            self._tell(f"{type(error).__name__}: {error}")
        raise EngineError

    def blocks(
        self,
        relation: Relation,
        columns: Sequence[tuple[str, Expression]],
        *,
        tables: Mapping[str, Table],
        blocks: int,
    ) -> Callable[[], list[Rows]]:
        """What reads the rows, dealt out to blocks by their units, when it is called."""
        origins, held = self._origins(relation, tables), held_by(relation)
        statement = dealing.statement(relation, columns, tables, _clauses(origins), blocks=blocks)

        def deal() -> list[Rows]:
            rows = self._ask(statement, origins.values())
            return self._safely(lambda: dealing.dealt(columns, rows, blocks=blocks))

        return lambda: read_held(held, files=lambda: _stamp(origins.values()), short=deal)

    def describe(self, source: Source) -> tuple[tuple[str, str], ...]:
        """The columns of a source and the engine's types for them, read off its schema; for the owner's side."""
        origin = self._origin(source, ())
        for name in origin.databases or {}:
            asked = catalogue.columns_of(source, catalogue=name)
            return catalogue.described(source, self._ask_public(asked, [origin]))
        rows = self._ask_public(Statement(f"DESCRIBE SELECT * FROM {origin.clause}"), [origin])
        return tuple((str(row[0]), str(row[1])) for row in rows)

    def repeated(self, table: Table, column: Column) -> int:
        """How many values of a column are there more than once; for the owner's side.

        Whole numbers in a narrow range are looked at first by a bit each: mostly there is none, and then that is all.
        """
        origin = self._origin(table.source, [one.name for one in table.columns])
        rows = f"WITH {probe.quoted(table.name)} AS (SELECT * FROM {origin.clause})"

        def ask(statement: str) -> list[Any]:
            (row,) = self._ask_public(Statement(f"{rows} {statement}"), [origin])
            return row

        if column.kind.type is Type.INTEGER and not column.kind.wide:
            many, low, high = ask(probe.span(table, column))
            if not many:
                return 0
            if int(high) - int(low) < _MOST_APART and ask(probe.different(table, column, low, high)) == [many]:
                return 0
        return int(ask(probe.repeated(table, column))[1])

    def stamp(self, relation: Relation, *, tables: Mapping[str, Table]) -> Stamp:
        """The state of the files that a relation is read from."""
        return _stamp(self._origins(relation, tables).values())

    def stamp_at_rest(self, table: Table) -> Stamp | None:
        """The state of the files of a table that nobody is writing to; None where somebody is."""
        origin = self._origin(table.source, [one.name for one in table.columns])
        return stamp_at_rest(lambda: origin.stamp)

    def stamp_source(self, source: Source) -> Stamp:
        """The state of a source's own files that is read: of text and Arrow, the one that was converted."""
        return self._sources.stamp(source)

    def fanout(self, relation: Relation, keys: Sequence[Expression], *, tables: Mapping[str, Table]) -> Fanout:
        """How many rows of a public relation share one combination of keys, at most."""
        origins = self._origins(relation, tables)
        statement = relations.fanout(relation, keys, tables, _clauses(origins))
        before, now = _stamp(origins.values()), time.time_ns()
        ((most,),) = self._ask_public(statement, origins.values())
        at_rest = before.settled(now) and before.holds()
        return Fanout(most=int(most), held=before if at_rest else None)

    def values(
        self, relation: Relation, expression: Expression, *, tables: Mapping[str, Table], most: int
    ) -> tuple[Value, ...]:
        """The distinct values of an expression over a public relation, ascending; most + 1 at most."""
        origins = self._origins(relation, tables)
        statement = relations.values(relation, expression, tables, _clauses(origins), most=most)
        return tuple(_value(row[0], expression.kind.type) for row in self._ask_public(statement, origins.values()))

    def _origins(self, relation: Relation, tables: Mapping[str, Table]) -> dict[str, Origin]:
        return {
            name: self._origin(tables[name].source, [column.name for column in tables[name].columns])
            for name in _scanned(relation)
        }

    def _origin(self, source: Source, columns: Sequence[str]) -> Origin:
        try:
            return self._sources.origin(source, columns)
        except HubbubError:
            raise
        except Exception as error:
            self._tell(f"{type(error).__name__}: {error}")
            raise EngineError from None

    def _ask_public(self, statement: Statement, origins: Iterable[Origin]) -> list[list[Any]]:
        """What is public may be read again: a process that the system has ended is nobody's fault."""
        known = list(origins)
        try:
            return self._ask(statement, known)
        except EngineError:
            return self._ask(statement, known)

    def _ask(self, statement: Statement, origins: Iterable[Origin]) -> list[list[Any]]:
        """The rows of a statement, from a fresh process; whatever goes wrong is one error."""
        return self._answer(Begun(_request(statement, origins)))

    def _begin(self, statement: Statement, origins: Iterable[Origin]) -> Begun | None:
        """A process that only waits for the word to read; None where nothing is ready."""
        request = _request(statement, origins)
        try:
            standby = self._pool.begin(request)
        except Exception as error:
            self._tell(f"{type(error).__name__}: {error}")
            return None
        return None if standby is None else Begun(request, standby)

    def _drop(self, begun: Begun) -> None:
        if begun.standby is not None:
            self._pool.drop(begun.standby)

    def _answer(self, begun: Begun) -> list[list[Any]]:
        try:
            answer = self._pool.ask(begun.request, seconds=self.limits.seconds, begun=begun.standby)
            if "rows" in answer:
                rows: list[list[Any]] = answer["rows"]
                return rows
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


def _request(statement: Statement, origins: Iterable[Origin]) -> dict[str, Any]:
    """All that a process is told, secret numbers of its own among it."""
    known = list(origins)
    return {
        "statement": statement.sql,
        "secrets": drawn(statement),
        "keys": [
            {"table": keys.table, "type": keys.type, "places": keys.places, "values": keys.values}
            for keys in statement.keys
        ],
        "paths": sorted({path for origin in known for path in origin.paths}),
        "databases": {name: path for origin in known for name, path in (origin.databases or {}).items()},
        "stored": [list(table) for origin in known for table in origin.stored],
    }


def _limits(limits: Limits) -> dict[str, Any]:
    """What a process is told before its request."""
    return {
        "memory": limits.memory,
        "temporary": limits.temporary,
        "bytes": size(limits.temporary),
        "threads": limits.threads,
        "bits": _bits(limits),
    }


def _bits(limits: Limits) -> int:
    """How wide a range of whole numbers the engine may keep one place for each of, in every thread, when it groups by
    one: a fifth of the time of hashing. It does not count these against its memory, so they get a small part of it."""
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


def drawn(statement: Statement) -> list[int]:
    """The secret numbers of one run of a statement."""
    return [secrets.randbits(64) for _ in range(statement.secrets)]


def _unsure(op: _Op) -> _Op:
    """Return the same operation for rows of which nothing is known, bounded to what was assumed of them.

    An aggregate bounds its units itself. The values of totals were written for rows that need no weight, so that they
    get no more rows of a unit than that instead.
    """
    if isinstance(op, Totals):
        return replace(op, input=Cap(input=op.input, most=op.most))
    return replace(op, single=False)


def _stamp(origins: Iterable[Origin]) -> Stamp:
    stamp = NO_FILES
    for origin in origins:
        stamp |= origin.stamp
    return stamp


def _clauses(origins: Mapping[str, Origin]) -> dict[str, Sql]:
    return {name: origin.clause for name, origin in origins.items()}


def _scanned(op: Relation) -> set[str]:
    if isinstance(op, Scan):
        return {op.table, *(step.table for step in op.path)}
    return {table for one in below(op) for table in _scanned(one)}


def _value(shown: str, type_: Type) -> Value:
    """A value out of the engine's text for it."""
    match type_:
        case Type.BOOLEAN:
            return shown == "true"
        case Type.INTEGER:
            return int(shown)
        case Type.REAL:
            return float(shown)
        case Type.DATE:
            return date.fromisoformat(shown)
        case Type.TIMESTAMP:
            return datetime.fromisoformat(shown)
        case Type.TEXT:
            return shown
