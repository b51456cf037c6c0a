"""Where a declared table is read from: what stands behind FROM, and which files the engine may open for it.

Nothing is guessed from values. Files without types of their own (CSV, JSON) are read as text, which a scan casts to
what was declared. Frames and Arrow files are written once to a Parquet file that only their owner can read, and that is
removed with the engine.
"""

import csv
import gzip
import hashlib
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hubbub.engines.words import FALSE, TRUE, Sql, name, reader, text
from hubbub.errors import MissingExtra, ParameterError, PolicyError
from hubbub.policy.stamps import Stamp, database_files, stamp_files
from hubbub.policy.tables import Source

TABLES = "a path, or a table of pandas, polars or pyarrow"
"""What data must be, for errors: they show the type of what was given, and never its rows."""


@dataclass(frozen=True, slots=True)
class Origin:
    """One table's FROM clause, the files that are read for it, and the databases that are attached."""

    clause: Sql
    paths: tuple[str, ...] = ()
    databases: Mapping[str, str] | None = None
    """Names in the statement → files."""
    stored: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Tables of these databases with columns that must be stored in them, and not computed while they are read."""

    @property
    def stamp(self) -> Stamp:
        """The state of the files that are read, the logs of databases among them."""
        files = [file for path in (self.databases or {}).values() for file in database_files(path)]
        return stamp_files([*self.paths, *files])


class Sources:
    """The origins of sources, with the files that were written for those in memory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._written: dict[object, tuple[str, object]] = {}
        self._lock = threading.Lock()

    def origin(self, source: Source, columns: Iterable[str] = ()) -> Origin:
        """How a source is read. ``columns`` are the declared ones, for files that do not list theirs."""
        match source.format:
            case "parquet":
                return _parquet(source.paths)
            case "csv":
                return _csv(source.paths)
            case "json":
                return _json(source.paths, tuple(columns))
            case "duckdb":
                return _database(source, tuple(columns))
            case "arrow" | "frame":
                return _parquet((self._parquet_of(source),))
        raise PolicyError(f"There is no way to read {source.format}. Use Parquet, CSV, JSON, Arrow or DuckDB.")

    def _parquet_of(self, source: Source) -> str:
        key: object = source.paths if source.format == "arrow" else id(source.frame)
        with self._lock:
            if key not in self._written:
                descriptor, path = tempfile.mkstemp(suffix=".parquet", dir=self._directory)
                os.close(descriptor)
                try:
                    _store(source, path)
                    os.chmod(path, 0o600)  # it may have been replaced; the directory was ours alone all the time
                except BaseException:
                    os.unlink(path)
                    raise
                self._written[key] = path, source.frame  # the frame is kept: its id names it
            return self._written[key][0]


def _parquet(paths: tuple[str, ...]) -> Origin:
    return Origin(reader("read_parquet", paths), paths)


def _csv(paths: tuple[str, ...]) -> Origin:
    """RFC 4180 with a header, every column as text: nothing is guessed. Empty is missing, "" is not."""
    columns = _header(paths[0])
    options: dict[str, Sql] = {
        "columns": _texts(columns),
        "auto_detect": FALSE,
        "header": TRUE,
        "delim": text(","),
        "quote": text('"'),
        "escape": text('"'),
        "allow_quoted_nulls": FALSE,
        "null_padding": TRUE,
        "strict_mode": FALSE,
    }
    return Origin(reader("read_csv", paths, options), paths)


def _json(paths: tuple[str, ...], columns: tuple[str, ...]) -> Origin:
    """Objects, one a line or in one array; the declared fields as text."""
    return Origin(reader("read_json", paths, {"columns": _texts(columns)} if columns else {}), paths)


def _database(source: Source, columns: tuple[str, ...]) -> Origin:
    (path,) = source.paths
    catalogue = "d" + hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    table = Sql(f"{name(catalogue)}.{name('main')}.{name(source.table or '')}")
    return Origin(table, databases={catalogue: path}, stored=((catalogue, source.table or "", columns),))


def _texts(columns: Iterable[str]) -> Sql:
    return Sql("{" + ", ".join(f"{text(one)}: 'VARCHAR'" for one in columns) + "}")


def _header(path: str) -> tuple[str, ...]:
    """The names in the first line of a CSV file."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        names = tuple(next(csv.reader(file), ()))
    if not names or len({name.lower() for name in names}) != len(names) or not all(names):
        raise PolicyError(f"The first line of {path} does not name its columns, each once. Give it a header.")
    return names


def _store(source: Source, path: str) -> None:
    """Arrow files and frames as Parquet."""
    frame = source.frame
    if type(frame).__name__ == "DuckDBPyRelation":
        frame.write_parquet(path)  # it needs no other package for it
        return
    if source.format == "frame" and type(frame).__module__ == "builtins":
        raise ParameterError("data", f"{TABLES} (of Python's own data, make one with pandas.DataFrame)", type(frame))
    try:
        from hubbub.engines import arrow, frames
    except ImportError:
        raise MissingExtra("pyarrow", "arrow") from None
    if source.format == "arrow":
        arrow.write_files(source.paths, path)
    else:
        frames.write(frame, path)
