"""The origin of a declared table's rows: what stands behind FROM, and which files the engine may open for it.

Nothing is guessed from values. Files without types of their own (CSV, JSON) are converted once to Parquet files of
texts, which a scan casts to what was declared. Frames, Arrow files and tables of servers are written once to a Parquet
file that only their owner can read, and that is removed with the engine.
"""

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hubbub.engines.nodes.queries import ParquetFiles, RowSource
from hubbub.engines.nodes.words import NULL, STAR, alias, cast, relation, select, within
from hubbub.engines.sources.conversion import Converted, Progress, convert
from hubbub.errors import MissingExtra, ParameterError, PolicyError
from hubbub.gate.attempt import Log
from hubbub.policy.sources import SNAPSHOT, UNTYPED
from hubbub.policy.stamps import NO_FILES, Stamp, database_files, stamp_files, stamp_of
from hubbub.policy.tables import TableSource

if TYPE_CHECKING:
    from hubbub.engines.postgres.catalogue import CatalogueTable
    from hubbub.engines.postgres.copying import CopiedTable

TABLES = "a path, or a table of pandas, polars or pyarrow"
"""What data must be, for errors: they show the type of what was given, and never its rows."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The clause that a table is selected from, the files that are read for it, and the databases that are attached."""

    clause: RowSource
    paths: tuple[str, ...] = ()
    variable: str | None = None
    """What stands for the paths in the clause: whoever opens them says by which names they are read."""
    databases: Mapping[str, str] | None = None
    """Names in the statement → files."""
    stored: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Tables of these databases with columns that must be stored in them, and not computed while they are read."""

    @property
    def stamp(self) -> Stamp:
        """The state of the files that are read, the logs of databases among them."""
        files = [file for path in (self.databases or {}).values() for file in database_files(path)]
        return stamp_files([*self.paths, *files])


def describe_server(source: TableSource) -> tuple[tuple[str, str], ...]:
    """Return the columns of a server's table that the role may read, with their types, off the catalogue."""
    from hubbub.engines.postgres.copying import describe

    return tuple((column.name, column.type) for column in describe(source).readable)


class Sources:
    """The origins of sources, with the files that were written for those in memory."""

    def __init__(self, directory: str, *, log: Log | None = None, progress: Progress | None = None) -> None:
        self._directory = directory
        self._log, self._progress = log, progress
        self._converted: dict[str, Converted] = {}
        self._written: dict[object, tuple[str, object]] = {}
        self._copied: dict[object, Stamp] = {}
        self._snapshots: dict[TableSource, CopiedTable] = {}
        self._lock = threading.Lock()

    def origin(self, source: TableSource, columns: Iterable[str] = ()) -> Origin:
        """Return the origin of a source. ``columns`` are the declared ones, for files that do not list theirs."""
        match source.format:
            case "parquet":
                return _parquet(source.paths, replaced=True)
            case "csv" | "json":
                return self._texts(source, tuple(columns))
            case "duckdb":
                return _database(source, tuple(columns))
            case "arrow" | "frame":
                return _parquet((self._parquet_of(source),))
            case "postgres":
                return _parquet(self._snapshot_of(source).paths)
        raise PolicyError(
            f"There is no way to read {source.format}. Use Parquet, CSV, JSON, Arrow, DuckDB or PostgreSQL."
        )

    def stamp(self, source: TableSource) -> Stamp:
        """Return the state of a source's files that is read here: of those that were copied, when they were."""
        self.origin(source)
        if source.format == "arrow":
            return self._copied[source.paths]
        if source.format not in UNTYPED:
            return stamp_of(source)
        stamp = NO_FILES
        for file in self.convert(source):
            stamp |= file.source
        return stamp

    def made(self, source: TableSource) -> Stamp:
        """Return the state of the files that were converted for a text source, when they were; else NO_FILES."""
        made = NO_FILES
        for file in self.convert(source) if source.format in UNTYPED else []:
            made |= file.file
        return made

    def take_snapshots(self, sources: Sequence[TableSource]) -> None:
        """Copy tables of servers, those of one database in one snapshot; what is copied already stays as it is."""
        with self._lock:
            places: dict[str, list[TableSource]] = {}
            for source in dict.fromkeys(sources):
                if source.format in SNAPSHOT and source not in self._snapshots:
                    places.setdefault(source.paths[0], []).append(source)
            for tables in places.values():
                from hubbub.engines.postgres.copying import copy_tables

                made = copy_tables(tables, directory=self._directory, progress=self._progress)
                self._snapshots |= dict(zip(tables, made, strict=True))

    def catalogue(self, source: TableSource) -> "CatalogueTable":
        """Return what the catalogue says of a server's table: in the snapshot, if there is one."""
        from hubbub.engines.postgres.copying import describe

        kept = self._snapshots.get(source)
        return describe(source) if kept is None else kept.catalogue

    def _snapshot_of(self, source: TableSource) -> "CopiedTable":
        self.take_snapshots([source])
        return self._snapshots[source]

    def convert(self, source: TableSource) -> list[Converted]:
        """Return the Parquet files of a text source, which define its rows as long as this engine lives."""
        with self._lock:
            for path in source.paths:
                if path not in self._converted:
                    made = convert(path, source.format, directory=self._directory, progress=self._progress)
                    self._converted[path] = made
                    if made.left_out.count and self._log is not None:
                        self._log(f"{path}: {made.left_out}.")
            files = [self._converted[path] for path in source.paths]
        for path, file in zip(source.paths, files, strict=True):
            if source.format == "csv" and file.columns != files[0].columns:
                raise PolicyError(
                    f"{path} has not the columns of {source.paths[0]}. Make a table of each.", name="path"
                )
        return files

    def _texts(self, source: TableSource, columns: tuple[str, ...]) -> Origin:
        """Columns that were declared and that no object has are missing in every row: JSON says nothing about them."""
        files = self.convert(source)
        paths = tuple(file.path for file in files)
        origin = _parquet(paths, by_name=True)
        known = {name.lower() for file in files for name in file.columns}
        absent = [column for column in columns if column.lower() not in known]
        if not absent:
            return origin
        nothing = (alias(cast(NULL, "text"), column) for column in absent)
        return replace(origin, clause=within(select(origin.clause, STAR, *nothing), "t"))

    def _parquet_of(self, source: TableSource) -> str:
        key: object = source.paths if source.format == "arrow" else id(source.frame)
        with self._lock:
            if key not in self._written:
                descriptor, path = tempfile.mkstemp(suffix=".parquet", dir=self._directory)
                os.close(descriptor)
                self._copied[key] = stamp_of(source)
                try:
                    read = _store(source, path)
                    self._copied[key] |= read | stamp_of(source)  # which never holds if it was written to meanwhile
                    os.chmod(path, 0o600)  # it may have been replaced; the directory was ours alone all the time
                except BaseException:
                    os.unlink(path)
                    raise
                self._written[key] = path, source.frame  # the frame is kept: its id names it
            return self._written[key][0]


def _parquet(paths: tuple[str, ...], *, replaced: bool = False, by_name: bool = False) -> Origin:
    variable = "f" + _short(*paths)
    return Origin(ParquetFiles(variable, replaced, by_name), paths, variable)


def _short(*paths: str) -> str:
    """A name for paths that no other paths have."""
    return hashlib.sha256(b"\0".join(map(os.fsencode, paths))).hexdigest()[:32]


def _database(source: TableSource, columns: tuple[str, ...]) -> Origin:
    (path,) = source.paths
    catalogue = "d" + _short(path)
    table = relation(catalogue, "main", source.table or "")
    return Origin(table, databases={catalogue: path}, stored=((catalogue, source.table or "", columns),))


def _store(source: TableSource, path: str) -> Stamp:
    """Write Arrow files and frames as Parquet; return the stamp of the files that were read."""
    frame = source.frame
    if type(frame).__name__ == "DuckDBPyRelation":
        frame.write_parquet(path)  # it needs no other package for it
        return NO_FILES
    if source.format == "frame" and type(frame).__module__ == "builtins":
        raise ParameterError("data", f"{TABLES} (of Python's own data, make one with pandas.DataFrame)", type(frame))
    try:
        from hubbub.engines.sources import arrow, frames
    except ImportError:
        raise MissingExtra("pyarrow", "arrow") from None
    if source.format == "arrow":
        return arrow.write_files(source.paths, path)
    frames.write(frame, path)
    return NO_FILES
