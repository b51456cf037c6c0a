"""Tables of a PostgreSQL database as Parquet files: one snapshot of all of them, streamed, whatever their size.

Rows come as COPY writes them, are kept as text on the disk up to a part's size, and become a file of typed Parquet; a
table is as many files. Nothing as large as the table is ever in memory.

Privacy:
    Claim: the files hold the rows of one state of the database, each value as it is, or missing where its kind has no
        room for it; whether the copy succeeds is known before anything can be paid for.
    Proof: one transaction at REPEATABLE READ reads all tables, the catalogue included, so that constraints are those of
        the rows. COPY's text escapes backslashes, tabs and line ends, so that a line is a row and a tab ends a field,
        and the escapes are taken back in an order in which none can begin in the middle of another. Moments and days
        without a place in the calendar, and texts of more than ``LONGEST`` bytes, are missing by a condition on the
        value alone. Only columns of PostgreSQL's own types are read, under ``search_path = pg_catalog``, so that no
        operator, cast or function of anybody else runs.
    Needs: tables without rules, row-level security and the like (``catalogue.check_shape``); an owner's word for views.
    Ref: SOUNDNESS 36, 37, 38, 52.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import duckdb

from hubbub.engines.duckdb.scan import call_reader, quote_name, quote_text
from hubbub.engines.held import READS
from hubbub.engines.postgres.catalogue import (
    CatalogueColumn,
    CatalogueTable,
    check_encoding,
    check_shape,
    quote_identifier,
    quote_relation,
    read_table,
)
from hubbub.engines.postgres.connection import READING, begin_snapshot, connect, plain
from hubbub.engines.postgres.errors import explain_failure
from hubbub.engines.sources.conversion import Progress
from hubbub.errors import MissingExtra, PolicyError
from hubbub.policy.kinds import Kind
from hubbub.policy.tables import TableSource
from hubbub.policy.types import engine_kind

try:
    import psycopg
except ImportError as missing:
    raise MissingExtra("psycopg", "postgres") from missing

LONGEST = 1 << 20
"""Bytes of the longest text that is copied: as long as the longest record of a text file (``sources.delimited``)."""
PART = 1 << 28
"""Bytes of text that lie on the disk at a time, as for text files (``sources.conversion``)."""
LONG_ROW, LONG_PART = 1 << 14, 1 << 26
"""Where rows are longer than that on average, a part is as small as this: each thread of the writer holds 2,048 rows at
least."""
MEMORY = "1GB"
"""What the writer of a part may have. More makes nothing faster."""
GROUP = 1 << 26
"""Bytes of a group of rows, where rows are long: all of a group are held until it is written."""
_ROUND = 1 << 16
"""Rows between two words on how far it is."""
_SETTINGS = {**READING, "statement_timeout": "0", "lock_timeout": "'10s'"}
"""They belong to the transaction, since a pooler may give each transaction another session."""
_ESCAPES = ((r"\t", 9), (r"\n", 10), (r"\r", 13), (r"\b", 8), (r"\f", 12), (r"\v", 11), (r"\!", 92))
"""COPY's own, and one for the backslash that no other escape can be mistaken for."""
_MISSING = r"\N"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """One table's rows in files of ours, and what the catalogue said of it in the same snapshot."""

    folder: str
    paths: tuple[str, ...]
    rows: int
    catalogue: CatalogueTable


def describe(source: TableSource) -> CatalogueTable:
    """Read the catalogue about a table, refusing what is no plain table, without reading a row."""
    with read_snapshot(source) as cursor:
        return _look(cursor, source)


def copy_tables(
    sources: Sequence[TableSource], *, directory: str, progress: Progress | None = None, part: int = PART
) -> list[CopiedTable]:
    """Copy tables of one database in one snapshot into files that only their owner can read.

    A snapshot that a standby ended, since it needed the rows elsewhere, is taken again.
    """
    with explain_failure(sources[0].paths[0]):
        for _ in range(READS - 1):
            with suppress(psycopg.errors.SerializationFailure):
                return _copy_tables(sources, directory=directory, progress=progress, part=part)
        return _copy_tables(sources, directory=directory, progress=progress, part=part)


def _copy_tables(
    sources: Sequence[TableSource], *, directory: str, progress: Progress | None, part: int
) -> list[CopiedTable]:
    made: list[CopiedTable] = []
    with _open_snapshot(sources[0]) as cursor:
        found = [_look(cursor, source) for source in sources]
        try:
            for table in found:
                made.append(_copy(cursor, table, directory=directory, progress=progress, part=part))
        except BaseException:
            for one in made:
                shutil.rmtree(one.folder)
            raise
    return made


@contextmanager
def read_snapshot(source: TableSource) -> Iterator["psycopg.Cursor[Any]"]:
    """Run one transaction that only reads, and sees one state of the database from its first statement on."""
    with explain_failure(source.paths[0]), _open_snapshot(source) as cursor:
        yield cursor


@contextmanager
def _open_snapshot(source: TableSource) -> Iterator["psycopg.Cursor[Any]"]:
    assert source.dsn is not None
    with connect(source.dsn) as connection:
        cursor = plain(connection.cursor())
        cursor.execute(begin_snapshot(_SETTINGS))
        yield cursor
        cursor.execute("COMMIT")


def _look(cursor: "psycopg.Cursor[Any]", source: TableSource) -> CatalogueTable:
    check_encoding(cursor)
    table = read_table(cursor, source.schema or "public", source.table or "")
    check_shape(table, allows_view=source.view)
    if not table.readable:
        where = quote_relation(table.schema, table.name)
        raise PolicyError(
            f"The role may read no column of {where}. Grant it: GRANT USAGE ON SCHEMA "
            f"{quote_identifier(table.schema)} TO …; GRANT SELECT ON {where} TO ….",
            name="table",
        )
    return table


def _copy(
    cursor: "psycopg.Cursor[Any]", table: CatalogueTable, *, directory: str, progress: Progress | None, part: int
) -> CopiedTable:
    columns = [column for column in table.readable if isinstance(engine_kind(column.type), Kind)]
    shown = ", ".join(["1", *map(_send, columns)])  # no line is empty
    statement = f"COPY (SELECT {shown} FROM {quote_relation(table.schema, table.name)}) TO STDOUT (FORMAT text)"
    folder = tempfile.mkdtemp(prefix="copy-", dir=directory)
    try:
        writer, read = _PartWriter(folder, columns, part=part), 0
        with writer, cursor.copy(statement.encode()) as blocks:
            for block in blocks:
                writer.write(block)
                read += len(block)
                if progress is not None and writer.rows % _ROUND == 0:
                    progress(read, read)
        if progress is not None:
            progress(read, read)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return CopiedTable(folder=folder, paths=tuple(writer.parts), rows=writer.rows, catalogue=table)


def _send(column: CatalogueColumn) -> str:
    """Write what the server sends of a column: a condition on the one value, and PostgreSQL's own text of it."""
    name = quote_identifier(column.name)
    match column.type:
        case "DATE":
            return _within(name, f"DATE '{date.min}'", f"DATE '{date.max}'")
        case "TIMESTAMP":
            return _within(name, f"TIMESTAMP '{datetime.min}'", f"TIMESTAMP '{datetime.max}'")
        case "TIMESTAMP WITH TIME ZONE":
            return _within(
                f"pg_catalog.timezone('UTC', {name})", f"TIMESTAMP '{datetime.min}'", f"TIMESTAMP '{datetime.max}'"
            )
        case "VARCHAR" | "ENUM" | "UUID":
            text = f"CAST({name} AS pg_catalog.text)"
            return f"CASE WHEN pg_catalog.octet_length({text}) <= {LONGEST} THEN {text} END"
    return name


def _within(value: str, low: str, high: str) -> str:
    return f"CASE WHEN {value} >= {low} AND {value} <= {high} THEN {value} END"


class _PartWriter:
    """COPY's text as Parquet files, part by part, so that not all of the text lies on the disk at once."""

    def __init__(self, folder: str, columns: Sequence[CatalogueColumn], *, part: int) -> None:
        self._folder, self._columns, self._part = folder, columns, part
        self._text = os.path.join(folder, "rows")
        self._file = open(self._text, "wb")  # noqa: SIM115  (closed before it is read)
        self.parts: list[str] = []
        self.rows, self._waiting = 0, 0

    def __enter__(self) -> "_PartWriter":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Store the last part, unless something went wrong; there is one at any rate."""
        if kind is None and (self._file.tell() or not self.parts):
            self._store_part()
        self._file.close()
        os.unlink(self._text)

    def write(self, row: bytes | bytearray | memoryview) -> None:
        """Add a row, which is a line."""
        self.rows += 1
        self._waiting += 1
        self._file.write(row)
        size = self._file.tell()
        if size >= self._part or size >= max(LONG_PART, self._waiting * LONG_ROW):
            self._store_part()
            self._file, self._waiting = open(self._text, "wb"), 0  # noqa: SIM115

    def _store_part(self) -> None:
        self._file.close()
        path = os.path.join(self._folder, f"{len(self.parts)}.parquet")
        settings: dict[str, Any] = {
            "temp_directory": self._folder,
            "preserve_insertion_order": False,
            "memory_limit": MEMORY,
        }
        rows, options = _decode_rows(self._text, self._columns), f"FORMAT parquet, ROW_GROUP_SIZE_BYTES {GROUP:d}"
        try:
            with duckdb.connect(config=settings) as connection:
                connection.execute(f"COPY ({rows}) TO {quote_text(path)} ({options})")
        except duckdb.IOException:
            raise PolicyError("A table could not be copied to Parquet. Is there room on the disk?") from None
        except duckdb.OutOfMemoryException:
            raise PolicyError(f"A table could not be copied to Parquet in {MEMORY} of memory.") from None
        os.chmod(path, 0o600)
        self.parts.append(path)


def _decode_rows(path: str, columns: Sequence[CatalogueColumn]) -> str:
    """Select the rows of COPY's text with the types of their columns."""
    places = ["c", *(f"c{place}" for place in range(len(columns)))]
    longest = 2 * LONGEST * sum(column.type in {"VARCHAR", "ENUM", "UUID"} for column in columns) + (1 << 20)
    options = {
        "columns": "{" + ", ".join(f"{quote_text(place)}: 'VARCHAR'" for place in places) + "}",
        "auto_detect": "FALSE",
        "header": "FALSE",
        "delim": r"'\t'",
        "quote": "''",
        "escape": "''",
        "comment": "''",
        "nullstr": quote_text(_MISSING),
        "new_line": r"'\n'",
        "max_line_size": f"{longest:d}",
        "compression": "'none'",
    }
    shown = (
        f"{_decode(quote_name(place), column)} AS {quote_name(column.name)}"
        for place, column in zip(places[1:], columns, strict=True)
    )
    return f"SELECT {', '.join(shown)} FROM {call_reader('read_csv', [path], options)}"


def _decode(field: str, column: CatalogueColumn) -> str:
    match column.type:
        case "VARCHAR" | "ENUM" | "UUID":
            content = f"replace({field}, {quote_text(chr(92) * 2)}, {quote_text(chr(92) + '!')})"
            for escape, letter in _ESCAPES:
                content = f"replace({content}, {quote_text(escape)}, chr({letter:d}))"
            return f"CASE WHEN contains({field}, chr(92)) THEN {content} ELSE {field} END"
        case "TIMESTAMP WITH TIME ZONE":
            return f"TRY_CAST({field} AS TIMESTAMP)"
    return f"TRY_CAST({field} AS {column.type})"
