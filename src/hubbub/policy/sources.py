"""Sources of rows: paths and globs, turned into absolute files of one format."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from hubbub.errors import ParameterError, PolicyError
from hubbub.policy.tables import FILES, TableSource

SUFFIXES: dict[str, str] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
}
UNTYPED = frozenset({"csv", "json"})
"""Formats without a schema of their own. What an engine would guess from their values is never used."""
COPIED = UNTYPED | {"arrow"}
"""Formats of which a file is converted once, and read no more."""


REPLACED = frozenset({"parquet"})
"""Formats of which a file may hold text that is not UTF-8: its bytes are replaced while it is read."""
SNAPSHOT = frozenset({"postgres"})
"""Formats of which a table is copied when it is opened, if no engine of theirs reads it."""
CONVERTED = ".hubbub.parquet"
"""Behind the name of a text file: its rows as Parquet, which no glob matches."""


def source_of(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    base: str | os.PathLike[str] = ".",
    format: str | None = None,
    table: str | None = None,
    name: str | None = None,
) -> TableSource:
    """The files that a path, a glob or a list of them stands for, in the order of their names.

    ``table`` is the one to read in a DuckDB file; that of our own ``name`` where nothing is said.
    """
    given: Sequence[object] = paths if isinstance(paths, list | tuple) else [paths]
    patterns = [os.fspath(path) for path in given if isinstance(path, str | os.PathLike)]
    if not patterns or len(patterns) < len(given):
        odd = [type(path) for path in given if not isinstance(path, str | os.PathLike)]  # rows are not for showing
        raise ParameterError("path", "a path, a glob, or a list of them", odd[0] if odd else paths)
    if any("://" in pattern for pattern in patterns):  # which may hold a password, and is not shown
        raise ParameterError("path", "files, or one URL that begins with postgresql://", "…://…")
    found = [file for pattern in patterns for file in _files(os.path.join(base, pattern))]
    if format is None:
        format = _format(found)
    if format == "duckdb" and len(found) != 1:
        raise ParameterError("path", "one DuckDB file", paths)
    return TableSource(format=format, paths=tuple(found), table=table or name if format == "duckdb" else table)


def _files(pattern: str) -> list[str]:
    """A file of that very name, or else what the glob matches."""
    if os.path.isfile(pattern):
        return [os.path.abspath(pattern)]
    matched = (path for path in glob.glob(pattern, recursive=True) if not path.endswith(CONVERTED))
    found = sorted(path for path in matched if os.path.isfile(path))
    if not found:
        raise PolicyError(
            f"There is no file {pattern}. Correct the path, which is relative to the policy.", name="path"
        )
    return [os.path.abspath(path) for path in found]


def _format(paths: Sequence[str]) -> str:
    formats = {SUFFIXES.get("".join(Path(path).suffixes[-2:]).lower()) or _by_last(path) for path in paths}
    if len(formats) > 1:
        raise PolicyError("The files of one table are of several formats. Make a table of each.", name="path")
    (format_,) = formats
    if format_ is None:
        raise PolicyError(
            f"The format of {paths[0]} does not follow from its name. State it: one of {', '.join(FILES)}.",
            name="format",
        )
    return format_


def _by_last(path: str) -> str | None:
    return SUFFIXES.get(Path(path).suffix.lower())


def table_name(path: str | os.PathLike[str]) -> str:
    """The name that a table has when it is opened by its path alone: the file's, without suffixes and globs."""
    name = Path(path).name.split(".")[0].strip("*?[]_- ")
    return name or Path(path).resolve().parent.name.strip("*?[]_- ") or "data"
