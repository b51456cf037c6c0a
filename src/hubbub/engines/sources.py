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

from sqlglot import exp

from hubbub.engines.lower import Node, function, text
from hubbub.errors import MissingExtra, PolicyError
from hubbub.policy.tables import Source


@dataclass(frozen=True, slots=True)
class Origin:
    """One table's FROM clause, the files that are read for it, and the databases that are attached."""

    clause: Node
    paths: tuple[str, ...] = ()
    databases: Mapping[str, str] | None = None
    """Names in the statement → files."""


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
                return _database(source)
            case "arrow" | "frame":
                return _parquet((self._parquet_of(source),))
        raise PolicyError(f"There is no way to read {source.format}. Use Parquet, CSV, JSON, Arrow or DuckDB.")

    def _parquet_of(self, source: Source) -> str:
        key: object = source.paths if source.format == "arrow" else id(source.frame)
        with self._lock:
            if key not in self._written:
                descriptor, path = tempfile.mkstemp(suffix=".parquet", dir=self._directory)
                os.close(descriptor)
                _write(_arrow(source.paths) if source.format == "arrow" else source.frame, path)
                os.chmod(path, 0o600)  # it may have been replaced; the directory was ours alone all the time
                self._written[key] = path, source.frame  # the frame is kept: its id names it
            return self._written[key][0]


def _parquet(paths: tuple[str, ...]) -> Origin:
    return Origin(_reader("read_parquet", paths), paths)


def _csv(paths: tuple[str, ...]) -> Origin:
    """RFC 4180 with a header, every column as text: nothing is guessed. Empty is missing, "" is not."""
    columns = _header(paths[0])
    options: dict[str, Node] = {
        "columns": _texts(columns),
        "auto_detect": exp.false(),
        "header": exp.true(),
        "delim": exp.Literal.string(","),
        "quote": exp.Literal.string('"'),
        "escape": exp.Literal.string('"'),
        "allow_quoted_nulls": exp.false(),
        "null_padding": exp.true(),
        "strict_mode": exp.false(),
    }
    return Origin(_reader("read_csv", paths, options), paths)


def _json(paths: tuple[str, ...], columns: tuple[str, ...]) -> Origin:
    """Objects, one a line or in one array; the declared fields as text."""
    return Origin(_reader("read_json", paths, {"columns": _texts(columns)} if columns else {}), paths)


def _database(source: Source) -> Origin:
    (path,) = source.paths
    catalogue = "d" + hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    table = exp.Table(
        this=exp.to_identifier(source.table, quoted=True),
        db=exp.to_identifier("main", quoted=True),
        catalog=exp.to_identifier(catalogue, quoted=True),
    )
    return Origin(table, databases={catalogue: path})


def _reader(name: str, paths: tuple[str, ...], options: Mapping[str, Node] | None = None) -> Node:
    listed = exp.Array(expressions=[text(path) for path in paths])
    named = [exp.PropertyEQ(this=exp.to_identifier(key), expression=value) for key, value in (options or {}).items()]
    return exp.Table(this=function(name, listed, *named))


def _texts(columns: Iterable[str]) -> Node:
    return exp.Struct(
        expressions=[exp.PropertyEQ(this=text(one), expression=exp.Literal.string("VARCHAR")) for one in columns]
    )


def _header(path: str) -> tuple[str, ...]:
    """The names in the first line of a CSV file."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        names = tuple(next(csv.reader(file), ()))
    if not names or len({name.lower() for name in names}) != len(names) or not all(names):
        raise PolicyError(f"The first line of {path} does not name its columns, each once. Give it a header.")
    return names


def _arrow(paths: tuple[str, ...]) -> object:
    try:
        import pyarrow
        import pyarrow.feather
    except ImportError:
        raise MissingExtra("pyarrow", "arrow") from None
    return pyarrow.concat_tables([pyarrow.feather.read_table(path) for path in paths])


def _write(frame: Any, path: str) -> None:
    """A frame as Parquet. Columns of Python objects become text, rather than what their first values look like."""
    if hasattr(frame, "write_parquet"):
        frame.write_parquet(path)  # polars, which needs no other package for it
        return
    import duckdb

    with duckdb.connect(config={"pandas_analyze_sample": "0"}) as connection:
        found = connection.sql("SELECT * FROM frame")  # by its name in this function
        found.write_parquet(path)
