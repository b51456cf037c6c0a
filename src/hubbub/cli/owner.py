"""The owner's own connection to the data: an ordinary DuckDB, for exact numbers that are the owner's alone."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hubbub.attempt import Log
from hubbub.engines.conversion import Progress
from hubbub.engines.sources import Sources
from hubbub.errors import PolicyError
from hubbub.policy.check import Ask
from hubbub.policy.probe import quoted
from hubbub.policy.sources import UNTYPED
from hubbub.policy.tables import Policy, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The tables of a policy, to be asked, and what was left out of those that are text."""

    ask: Ask
    left_out: Mapping[str, tuple[int, int]]
    """For tables that are text: how many records were left out, of how many."""


@contextmanager
def connected(policy: Policy, *, log: Log | None = None, progress: Progress | None = None) -> Iterator[Data]:
    """Ask the tables of a policy, each under its own name and read as the engine reads it."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="hubbub-") as directory, duckdb.connect() as connection:
        limits = policy.limits
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET temp_directory = {_text(directory)}")
        connection.execute(f"SET memory_limit = {_text(limits.memory)}")
        if limits.threads is not None:
            connection.execute(f"SET threads = {limits.threads}")
        sources = Sources(directory, log=log, progress=progress)
        attached: set[str] = set()

        def view(table: Table) -> None:
            origin = sources.origin(table.source, [column.name for column in table.columns])
            for name, path in (origin.databases or {}).items():
                if name not in attached:
                    connection.execute(f"ATTACH {_text(path)} AS {quoted(name)} (READ_ONLY)")
                    attached.add(name)
            connection.execute(f"CREATE VIEW {quoted(table.name)} AS SELECT * FROM {origin.clause}")

        def ask(statement: str) -> Sequence[Sequence[Any]]:
            try:
                return connection.execute(statement).fetchall()
            except duckdb.Error as problem:
                raise _unreadable("The data", problem) from None

        for table in policy.tables.values():
            try:
                view(table)
            except duckdb.Error as problem:
                raise _unreadable(f"Table {table.name}", problem) from None
        yield Data(ask=ask, left_out={table.name: _left_out(sources, table) for table in _texts(policy)})


def _texts(policy: Policy) -> list[Table]:
    return [table for table in policy.tables.values() if table.source.format in UNTYPED]


def _left_out(sources: Sources, table: Table) -> tuple[int, int]:
    files = sources.converted(table.source)
    count = sum(file.left_out.count for file in files)
    return count, count + sum(file.rows for file in files)


def tables_in(path: str) -> list[str]:
    """The tables of a DuckDB file; views are not among them, since their rows are stored nowhere."""
    import duckdb

    try:
        with duckdb.connect(path, read_only=True) as connection:
            found = connection.execute(
                "SELECT table_name FROM information_schema.tables "
                "WHERE table_schema = 'main' AND table_type = 'BASE TABLE' ORDER BY 1"
            ).fetchall()
    except duckdb.Error as problem:
        raise _unreadable(path, problem) from None
    if not found:
        raise PolicyError(f"{path} has no tables in its schema main.")
    return [str(name) for (name,) in found]


def _unreadable(what: str, problem: Exception) -> PolicyError:
    return PolicyError(f"{what} could not be read: {str(problem).partition(chr(10))[0].rstrip('.')}.")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
