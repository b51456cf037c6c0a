"""The SQL that questions are written in: DuckDB's, with the aggregates of ``aggregates.table``."""

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser

from hubbub.query.aggregates.table import FUNCTIONS


class Spoken(DuckDB):
    """DuckDB's SQL with our aggregates."""

    class Parser(DuckDBParser):
        FUNCTIONS = {  # noqa: RUF012
            **DuckDBParser.FUNCTIONS,
            **{name: build for function in FUNCTIONS for name, build in function.spellings},
        }
