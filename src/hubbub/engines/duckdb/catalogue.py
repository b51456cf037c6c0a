"""Facts of a table in a DuckDB file before any row is read: whether rows are stored in it, and which columns are.

A view, or a generated column, is computed while it is read. It can look at other rows, count them in a sequence, draw
at random, or fail because of one row after the question was paid for. Only what is stored is read.
"""

from collections.abc import Sequence
from typing import Any

from hubbub.engines.dialects.statement import SqlStatement
from hubbub.engines.duckdb.quoting import quote_name, quote_text
from hubbub.errors import EngineError, PolicyError
from hubbub.policy.tables import TableSource

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
