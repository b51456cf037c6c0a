"""The owner's own connection to the data: an ordinary DuckDB, for exact numbers that are the owner's alone."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hubbub.engines.dialects.duckdb import DUCKDB
from hubbub.engines.dialects.printer import print_node
from hubbub.engines.duckdb.opened import Opened, literal, open_files
from hubbub.engines.duckdb.owner_check import Ask
from hubbub.engines.duckdb.probe import quote
from hubbub.engines.sources.conversion import Progress
from hubbub.engines.sources.origins import Sources
from hubbub.errors import PolicyError
from hubbub.gate.attempt import Log
from hubbub.policy.sources import COPIED, UNTYPED
from hubbub.policy.stamps import Stamp
from hubbub.policy.tables import Policy, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerTables:
    """The tables of a policy, to be asked, and what was left out of those that are text."""

    ask: Ask
    left_out: Mapping[str, tuple[int, int]]
    """For tables that are text: how many records were left out, of how many."""
    files: Callable[[], Stamp]
    """Stamp the files that are read, by their descriptors."""


@contextmanager
def connect(policy: Policy, *, log: Log | None = None, progress: Progress | None = None) -> Iterator[OwnerTables]:
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
        held: list[Opened] = []

        def view(table: Table) -> None:
            origin = sources.origin(table.source, [column.name for column in table.columns])
            opened = Opened(list(origin.paths), f"{directory}/{len(held)}")
            held.append(opened)
            opened.open()
            for name, path in (origin.databases or {}).items():
                if name not in attached:
                    before = open_files()
                    connection.execute(f"ATTACH {_text(path)} AS {quote(name)} (READ_ONLY)")
                    opened.find_attached(path, before)
                    attached.add(name)
            if origin.variable is not None:
                listed = ", ".join(_text(literal(opened.names[path])) for path in origin.paths)
                connection.execute(f"SET VARIABLE {quote(origin.variable)} = [{listed}]")
            rows = print_node(origin.clause, DUCKDB)
            connection.execute(f"CREATE VIEW {quote(table.name)} AS SELECT * FROM {rows}")

        def files() -> Stamp:
            found = Stamp(tuple(mark for opened in held for mark in opened.marks()))
            for table in policy.tables.values():
                if table.source.format in COPIED:
                    found |= sources.stamp(table.source)
            return found

        def ask(statement: str) -> Sequence[Sequence[Any]]:
            try:
                return connection.execute(statement).fetchall()
            except duckdb.Error as problem:
                raise _unreadable("The data", problem) from None

        try:
            sources.take_snapshots([table.source for table in policy.tables.values()])
            for table in policy.tables.values():
                try:
                    view(table)
                except (duckdb.Error, OSError) as problem:
                    raise _unreadable(f"Table {table.name}", problem) from None
            left_out = {table.name: _count_left_out(sources, table) for table in _texts(policy)}
            yield OwnerTables(ask=ask, left_out=left_out, files=files)
        finally:
            for opened in held:
                opened.close()


def _texts(policy: Policy) -> list[Table]:
    return [table for table in policy.tables.values() if table.source.format in UNTYPED]


def _count_left_out(sources: Sources, table: Table) -> tuple[int, int]:
    files = sources.convert(table.source)
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
