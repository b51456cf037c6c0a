"""The whole path of a question with its tables on a PostgreSQL server: noise is replayed, and keys of hashes are fixed.

Everything is the product's own but two things: all questions of a world share a connection, and the secret numbers are
those that ``fixed_key`` hands out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from hubbub.audit.subjects.in_process.inside import VERSIONS
from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.duckdb.engine import draw_secrets as draw_fixed
from hubbub.engines.postgres.connection import Connection, Cursor, connect, draw_secrets, hold_snapshot
from hubbub.engines.postgres.engine import Postgres, Rows, complete_statement
from hubbub.ledger import Ledger, Marks
from hubbub.policy.servers import postgres
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy, Table
from hubbub.privacy.filter import Budget
from hubbub.session.database import Database
from tests.engines.stored import StoredTables, storable
from tests.query.inside import PLACES, PUBLIC, TABLES

_T = TypeVar("_T")


class StoredEngine(Postgres):
    """The engine with one connection for all its snapshots."""

    def __init__(self, url: str, *, log: Callable[[str], None]) -> None:
        super().__init__(limits=Limits(seconds=120, memory="500MB"), dsn=url, log=log)
        self.connection = connect(url)

    def close(self) -> None:
        self.connection.close()

    def _in_snapshot(self, read: Callable[[Cursor], _T], connection: Connection | None = None) -> _T:
        if connection is not None:  # made in advance
            connection.close()
        with hold_snapshot(self.connection, self.limits, memory=1 << 28) as cursor:
            return read(cursor)

    def _run(self, cursor: Cursor, prepared: Any, statement: SqlStatement) -> Rows:
        draw_secrets(cursor, statement.secrets, known=draw_fixed(statement))
        sql, parameters = complete_statement(statement)
        return [list(row) for row in cursor.execute(sql, parameters).fetchall()]


class StoredWorld:
    """One set of rows at a time, and a ledger with much to spend; each load is another version of the data."""

    def __init__(self, folder: Path, url: str, *, budget: Budget | None = None) -> None:
        self.budget = budget or Budget(epsilon=Fraction(10**6))
        self.ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))
        self.told: list[str] = []
        self.stored = StoredTables(url, "data")
        self.engine = StoredEngine(url, log=self.told.append)
        self.stored.fill("places", [(one.name, one.kind) for one in PLACES], PUBLIC)

    def load(
        self, rows: Sequence[Mapping[str, Any]], *, limits: Limits | None = None, unique: bool = False
    ) -> Database:
        """These rows, to be asked."""
        self.stored.fill("stays", [(one.name, one.kind) for one in TABLES["stays"].columns], rows)
        if unique:
            self.stored.execute("ALTER TABLE data.stays ADD UNIQUE (person)")
        tables = {name: self._table(table) for name, table in TABLES.items()}
        policy = Policy(
            account="people",
            budget=self.budget,
            tables={**tables, "stays": replace(tables["stays"], unique=unique)},
            limits=replace(limits or Limits(max_groups=2, max_rows=3), buy=False),
            version=str(next(VERSIONS)),
            enforced=frozenset({"stays"} if unique else ()),
            seen={"stays": NO_FILES} if unique else {},
        )
        return Database(policy, ledger=self.ledger, engine=self.engine)

    def close(self) -> None:
        self.engine.close()
        self.stored.close()
        self.ledger.close()

    def _table(self, table: Table) -> Table:
        return replace(table, source=postgres(self.stored.url, table=table.name, schema="data"))


def as_stored(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows as a server can hold them."""
    return [{name: storable(value) for name, value in row.items()} for row in rows]
