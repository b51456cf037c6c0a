"""The engine of a database of the tests, by its own type: these read files, and look into what reads them."""

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.session.database import Database

__all__ = ["duckdb_of"]


def duckdb_of(db: Database) -> DuckDB:
    """Return the engine that reads files for a database."""
    engine = db._engine
    assert isinstance(engine, DuckDB)
    return engine
