"""Names, files and columns of sources in DuckDB's words, so that nothing that anybody writes is read as SQL.

A view, or a generated column, is computed while it is read. It can look at other rows, count them in a sequence, draw
at random, or fail because of one row after the question was paid for. Only what is stored is read.

What a source says about equality ends here. A value is what its kind says, compared by its bytes; a column that names a
unit, or leads to one, is read so that two values never become one.

Privacy:
    Claim: two rows have the same unit if and only if their columns hold the same value in the source; each of the
        other rows has no unit at all. Texts are equal if and only if their bytes are.
    Proof: a column of its own type is read as it is, and every integer type into one that holds all its values. From
        any other type, a value counts only where its own text is the text that was read, so that equal values were
        read from equal texts ("7" is 7; "07", "7.0" and "+7" are missing, and merge with nobody). The collation of a
        text is binary: an explicit COLLATE replaces whatever the column declares.
    Needs: one text for each value, which integers, dates, booleans and texts have. Reals and moments are refused as
        units when a policy is built (zeros of both signs, NaN, and what is below a microsecond).
    Ref: SOUNDNESS 37.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.nodes.scalars import Storage, storage_of
from hubbub.errors import EngineError, ParameterError, PolicyError
from hubbub.policy.kinds import INT64, Kind, Type
from hubbub.policy.tables import TableSource
from hubbub.policy.types import INTEGERS


@lru_cache(maxsize=4096)
def quote_name(identifier: str) -> str:
    """Quote a name, whatever it holds."""
    if "\0" in identifier:
        raise ParameterError("name", "without NUL", identifier)
    return '"' + identifier.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """Quote a text. NUL would end a statement early, so it is put together from its number."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParameterError("text", "valid UTF-8", value) from None
    if "\0" not in value:
        return "'" + value.replace("'", "''") + "'"
    pieces: list[str] = []
    for index, piece in enumerate(value.split("\0")):
        pieces += ["chr(0)"] if index else []
        pieces += [quote_text(piece)] if piece else []
    return f"concat({', '.join(pieces)})"


def call_reader(reader: str, paths: Sequence[str], options: Mapping[str, str] | None = None) -> str:
    """Call a table function that reads files, given by their paths."""
    listed = "[" + ", ".join(map(quote_text, paths)) + "]"
    return f"{reader}({', '.join([listed, *(f'{key} = {value}' for key, value in (options or {}).items())])})"


_VIEW, _STORED, _GENERATED = "view", "stored", "GENERATED"
"""The last is the type that a generated column is said to have: policy.types knows that no question can use it."""


def columns_of(source: TableSource, *, catalogue: str) -> SqlStatement:
    """Ask for the columns of a table with their types, and whether it is a view."""
    table = quote_text(source.table or "")

    def of(called: str) -> str:
        place = f"database_name = {quote_text(catalogue)} AND schema_name = {quote_text('main')}"
        return f"{place} AND lower({called}) = lower({table})"

    kept = f"CASE WHEN is_generated THEN {quote_text(_GENERATED)} ELSE {quote_text(_STORED)} END"
    views = f"SELECT {quote_text(_VIEW)}, view_name, '', 0 FROM duckdb_views() WHERE {of('view_name')}"
    columns = f"SELECT {kept}, column_name, data_type, column_index FROM duckdb_columns() WHERE {of('table_name')}"
    return SqlStatement(f"{views} UNION ALL {columns} ORDER BY 4")


def describe_columns(source: TableSource, rows: Sequence[Sequence[Any]]) -> tuple[tuple[str, str], ...]:
    """Return the columns with their types, those that are computed without one; refuse a view."""
    if not rows:
        raise EngineError
    if any(row[0] == _VIEW for row in rows):
        table = source.table or ""
        raise PolicyError(
            f"{table} of {source.paths[0]} is a view, whose rows are computed while it is read. Store them: "
            f"CREATE TABLE … AS FROM {quote_name(table)}.",
            name="table",
        )
    return tuple((str(column), _GENERATED if kept == _GENERATED else str(type_)) for kept, column, type_, _ in rows)


REPLACEMENT = "?"
"""What DuckDB puts for each byte of a Parquet file's text that is not UTF-8, where it is told to replace them."""

TYPES: Mapping[Storage, str] = {
    "boolean": "BOOLEAN",
    "int32": "INTEGER",
    "uint32": "UINTEGER",
    "int64": "BIGINT",
    "uint64": "UBIGINT",
    "int128": "HUGEINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def engine_type(kind: Kind) -> str:
    """Return DuckDB's type for a kind."""
    return TYPES[storage_of(kind)]


def scan_value(column: str, kind: Kind) -> str:
    """Read a quoted column as its kind: what the type, the range or the calendar cannot hold is missing."""
    type_ = engine_type(kind)
    value = f"TRY_CAST({column} AS {type_})"
    match kind.type:
        case Type.TEXT:
            known = f"CASE WHEN {_is_beyond_calendar(column)} THEN NULL ELSE {column} END"
            return f'(TRY_CAST({known} AS VARCHAR) COLLATE "binary")'
        case Type.INTEGER if kind.range != INT64:
            low, high = (f"CAST(({end:d}) AS {type_})" for end in kind.range)
            return _between(value, low, high)
        case Type.REAL:
            return f"CASE WHEN isfinite({value}) THEN {value} END"
        case Type.DATE:
            return _between(value, f"DATE '{date.min}'", f"DATE '{date.max}'")
        case Type.TIMESTAMP:
            return _between(value, f"TIMESTAMP '{datetime.min}'", f"TIMESTAMP '{datetime.max}'")
    return value


def scan_identity(column: str, kind: Kind, *, replaced: bool = False) -> str:
    """Read a quoted column that names a unit or leads to one: missing unless no other value is read as the same.

    ``replaced`` says that the source's reader puts ``REPLACEMENT`` for bytes that are no text: an id with that letter
    could be any of several, and is nobody's.
    """
    value = scan_value(column, kind)
    if kind.type is Type.TEXT:
        return f"CASE WHEN NOT contains({value}, '{REPLACEMENT}') THEN {value} END" if replaced else value
    written = scan_value(column, Kind(type=Type.TEXT))
    spelt = f"CAST(({value}) AS VARCHAR) = {written}"
    return f"CASE WHEN {_is_own_type(column, kind.type)} THEN {value} WHEN {spelt} THEN {value} END"


def _is_beyond_calendar(column: str) -> str:
    """Ask for moments of which the engine cannot write the text; for columns of other types this costs nothing."""
    ends = f"TIMESTAMP '{datetime.min}' AND TIMESTAMP '{datetime.max}'"
    return f"(typeof({column}) LIKE 'TIMESTAMP%' AND (TRY_CAST({column} AS TIMESTAMP) BETWEEN {ends}) IS NOT TRUE)"


def _is_own_type(column: str, type_: Type) -> str:
    """Ask for the source's type, which the engine knows before it reads: for others this costs nothing."""
    names = ", ".join(f"'{name}'" for name in (INTEGERS if type_ is Type.INTEGER else [engine_type(Kind(type=type_))]))
    return f"typeof({column}) IN ({names})"


def _between(value: str, low: str, high: str) -> str:
    return f"CASE WHEN ({value} BETWEEN {low} AND {high}) THEN {value} END"
