"""Tables on a real PostgreSQL for tests of the engine: made of rows as Python has them, in the server's own types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import psycopg

from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.dialects.postgres import POSTGRES
from hubbub.engines.dialects.printer import Printer
from hubbub.engines.nodes.queries import StoredTable
from hubbub.engines.nodes.scalars import Node
from hubbub.engines.postgres.connection import Cursor, connect, draw_secrets, hold_snapshot
from hubbub.engines.postgres.engine import complete_statement
from hubbub.policy.kinds import Kind, Type
from hubbub.policy.tables import Limits

TYPES: Mapping[Type, str] = {
    Type.BOOLEAN: "bool",
    Type.REAL: "float8",
    Type.TEXT: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}
LIMITS = Limits(seconds=120, memory="500MB")
NUL = "\0"


def type_of(kind: Kind) -> str:
    """The server's type for a kind."""
    if kind.type is Type.INTEGER:
        return "numeric" if kind.wide else "int8"
    return TYPES[kind.type]


def printable(node: Node) -> SqlStatement:
    """A node in PostgreSQL's words."""
    printer = Printer(POSTGRES)
    text = printer.say(node)
    return SqlStatement(text, texts=tuple(printer.texts))


class StoredTables:
    """A schema of a server, and the tables in it, which a fresh connection of the engine's kind reads."""

    def __init__(self, url: str, schema: str = "data") -> None:
        self.url, self.schema = url, schema
        self._owner = psycopg.connect(url, autocommit=True)
        self._owner.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        self._reader = connect(url)

    def close(self) -> None:
        self._owner.close()
        self._reader.close()

    def execute(self, statement: str) -> None:
        self._owner.execute(statement.encode())

    def fill(self, table: str, columns: Sequence[tuple[str, Kind]], rows: Iterable[Mapping[str, Any]]) -> StoredTable:
        """Make a table of these rows; a text that a server cannot hold is another one there."""
        types = [(name, type_of(kind)) for name, kind in columns]
        listed = ", ".join(f'"{name}" {type_}' for name, type_ in types)
        self._owner.execute(f'DROP TABLE IF EXISTS {self.schema}."{table}"'.encode())
        self._owner.execute(f'CREATE TABLE {self.schema}."{table}" ({listed})'.encode())
        with self._owner.cursor() as cursor, cursor.copy(f'COPY {self.schema}."{table}" FROM STDIN'.encode()) as copy:
            for row in rows:
                copy.write_row([storable(row[name]) for name, _ in columns])
        return StoredTable((self.schema, table), tuple(types))

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """What the owner sees."""
        return self._owner.execute(statement.encode()).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[Cursor]:
        with hold_snapshot(self._reader, LIMITS, memory=1 << 28) as cursor:
            yield cursor

    def run(self, statement: SqlStatement, secrets: Sequence[int] = ()) -> list[tuple[Any, ...]]:
        """Run a statement as the engine does."""
        with self.snapshot() as cursor:
            return self.run_in(cursor, statement, secrets)

    def run_in(self, cursor: Cursor, statement: SqlStatement, secrets: Sequence[int]) -> list[tuple[Any, ...]]:
        draw_secrets(cursor, statement.secrets, known=secrets)
        sql, parameters = complete_statement(statement)
        return cursor.execute(sql, parameters).fetchall()


def storable(value: Any) -> Any:
    """A value as a server can hold it: no letter NUL in a text."""
    return value.replace(NUL, "\x01") if isinstance(value, str) else value


def shuffle(rng: Random, rows: Sequence[Any]) -> list[Any]:
    return rng.sample(rows, len(rows))
