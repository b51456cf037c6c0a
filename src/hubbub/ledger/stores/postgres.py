"""A ledger in a PostgreSQL schema: one transaction at a time, and a commit that has reached the disk when it returns.

READ COMMITTED lets two writers check the same balance, so every writer first takes one advisory lock for the schema.
Settings that would let a crash lose a commit (fsync, full_page_writes, synchronous_commit) are looked at inside every
transaction, since an administrator can change them while we are connected, and a lost commit is a refund.

A server that restarts, fails over or cuts the connection leaves the fate of a commit unknown: that is Interrupted, and
the writer connects again and looks. The lock cannot be had before the lost transaction has ended.
"""

import os
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import ceil
from typing import Any
from urllib.parse import quote

from hubbub.errors import (
    HubbubError,
    LedgerCorrupt,
    LedgerFormat,
    LedgerFull,
    LedgerReadOnly,
    LedgerUnreachable,
    MissingExtra,
    ParameterError,
)
from hubbub.ledger.stores.store import Interrupted, Row
from hubbub.parameters import connection_parts

try:
    import psycopg
    from psycopg.types.numeric import Int8Dumper
except ImportError as missing:
    raise MissingExtra("psycopg", "postgres") from missing

_LOCK = int.from_bytes(b"Hubb", "big")
"""Our half of the advisory lock's name; the schema is the other half."""

_PAUSE = 0.05
"""Between attempts to reach a server that has gone away."""

_DURABLE = {"synchronous_commit": ("on", "remote_apply"), "fsync": ("on",), "full_page_writes": ("on",)}

_NEVER = """CREATE FUNCTION entries_are_never_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation'; END $$"""

_GUARD = """CREATE TRIGGER entries_are_never_{past} BEFORE {verb} ON entries
FOR EACH STATEMENT EXECUTE FUNCTION entries_are_never_changed()"""


class PostgresStore:
    """One schema: the first of the search path. ``patience`` is how long to wait for another writer.

    Connections have settings of their own, so a pooler between us and the server must keep whole sessions together.
    """

    whole = "BIGINT"
    snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    guard: tuple[str, ...] = (
        _NEVER,
        _GUARD.format(past="changed", verb="UPDATE"),
        _GUARD.format(past="deleted", verb="DELETE"),
        _GUARD.format(past="truncated", verb="TRUNCATE"),
    )

    def __init__(self, url: str, *, patience: float = 5.0) -> None:
        parts = connection_parts("location", url)
        self.location = _without_password(parts)
        self.patience = patience
        seconds = max(2, ceil(patience))
        self.parameters: dict[str, Any] = {
            "application_name": "hubbub-ledger",
            "connect_timeout": seconds,
            "keepalives_idle": seconds,
            "keepalives_interval": 1,
            "keepalives_count": 3,
            "tcp_user_timeout": 1000 * seconds,
            **parts,
            "client_encoding": "UTF8",
        }

    def exists(self) -> bool:
        """Return True if the schema holds a head."""
        session = self.reader()
        try:
            return session.has("head")
        finally:
            session.close()

    def writer(self) -> "PostgresSession":
        """Raises Interrupted where the server cannot be reached now, so that the writer tries again."""
        return PostgresSession(self, writes=True)

    def reader(self) -> "PostgresReader":
        """Open a connection that only reads, and that comes back after a restart of the server."""
        try:
            return PostgresReader(self, writes=False)
        except Interrupted as problem:
            raise LedgerUnreachable(
                f"The ledger {self.location} cannot be reached: {problem}. Check that its server runs, and the URL."
            ) from problem


class PostgresSession:
    """One connection."""

    def __init__(self, store: PostgresStore, *, writes: bool) -> None:
        self._store, self._writes = store, writes
        self._pid = os.getpid()
        self._warnings: list[str] = []
        self._connect()
        _SESSIONS.add(self)

    def begin(self) -> None:
        """Wait for the lock, and check that the next commit will stay."""
        assert self._writes
        try:
            with self._name_errors():
                self._cursor.execute(self._opening)
                while self._cursor.nextset():
                    pass
                [(_, *settings)] = self._cursor.fetchall()
            for (name, good), found in zip(_DURABLE.items(), settings, strict=True):
                if found not in good:
                    raise LedgerUnreachable(
                        f"The server of {self._store.location} runs with {name} = {found}: after a crash it could "
                        f"forget a charge, which would be a refund. Set {name} = on, then open the ledger again."
                    )
        except BaseException:
            self.rollback()
            raise

    def rows(self, sql: str, *values: object) -> Sequence[Row]:
        """Return the rows of a statement: whole numbers, text and None, as from the other store."""
        with self._name_errors():
            return self._cursor.execute(_translate(sql), values).fetchall()

    def run(self, sql: str, *values: object) -> int:
        """Run a statement and return the number of rows that it changed."""
        with self._name_errors():
            return self._cursor.execute(_translate(sql), values).rowcount

    def has(self, table: str) -> bool:
        """Return True if the schema has such a table."""
        catalogue = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = ?"
        return bool(self.rows(catalogue, table))

    def commit(self) -> None:
        """On disk when this returns. Where the server itself has doubts, the commit's fate is unknown."""
        self._warnings.clear()
        with self._name_errors():
            done = self._cursor.execute("COMMIT", prepare=False).statusmessage
        if done != "COMMIT":
            raise Interrupted(f"the server answered {done} to COMMIT")
        if self._warnings:  # such as: the wait for a standby was cancelled
            raise Interrupted("; ".join(self._warnings))

    def rollback(self) -> None:
        """Undo; when the connection is gone the server has undone it, and the lock goes with it."""
        try:
            if self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self._cursor.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()

    def close(self) -> None:
        """Say goodbye to the server, unless the connection is our parent's."""
        if self._pid == os.getpid():
            self._connection.close()

    def abandon(self) -> None:
        """In a forked child: let go of the socket without a word, so that the server hears when the parent dies."""
        _ABANDONED.append(self._connection)
        try:
            os.close(self._connection.fileno())
        except (psycopg.Error, OSError):
            return  # it was closed before the fork

    def _connect(self) -> None:
        try:
            self._connection = psycopg.connect(autocommit=True, **self._store.parameters)
        except psycopg.OperationalError as problem:
            raise Interrupted(_first_line(problem)) from problem
        try:
            self._cursor = self._connection.cursor()
            self._connection.add_notice_handler(self._take_notice)
            self._connection.adapters.register_dumper(int, Int8Dumper)  # one prepared statement, whatever the number
            self._settle_in()
        except BaseException:
            self._connection.close()
            raise

    def _settle_in(self) -> None:
        location, milliseconds = self._store.location, ceil(1000 * self._store.patience)
        with self._name_errors():
            self._cursor.execute(
                "SELECT current_setting('server_encoding'), quote_ident(current_schema()), pg_is_in_recovery(), "
                "current_setting('synchronous_commit')"
            )
            [(encoding, schema, standby, synchronous)] = self._cursor.fetchall()
        if encoding != "UTF8":
            raise LedgerUnreachable(
                f"The database of {location} keeps text as {encoding}, which has no room for every name. "
                "Create one with ENCODING 'UTF8'."
            )
        if self._writes and schema is None:  # the lock's name would be null, and a null lock holds nobody back
            raise LedgerUnreachable(
                f"The schema that {location} names is not there. Create it with CREATE SCHEMA, or name another: "
                "?options=-csearch_path%3DNAME."
            )
        if self._writes and standby:
            raise LedgerReadOnly(f"The server of {location} is a standby. Name the one that can be written.")
        mode = "READ WRITE" if self._writes else "READ ONLY"
        settings = (
            *(("search_path = pg_temp",) if schema is None else (f"search_path = {schema}, pg_temp",)),
            "client_min_messages = warning",
            "statement_timeout = 0",  # it would also cut short the wait for a standby in COMMIT
            f"lock_timeout = {milliseconds}",
            f"idle_in_transaction_session_timeout = {milliseconds if self._writes else 0}",  # who stops, stops alone
            f"SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, {mode}",
        )
        with self._name_errors():
            self._cursor.execute("; ".join(f"SET {setting}" for setting in settings).encode())
        level = "remote_apply" if synchronous == "remote_apply" else "on"
        found = ", ".join(f"current_setting('{name}')" for name in _DURABLE)
        self._opening = (
            f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = {level}; "
            f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext(current_schema())), {found}"
        ).encode()

    def _take_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        self._warnings.append(str(notice.message_primary))

    @contextmanager
    def _name_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as problem:
            raise _of_postgres(self._store.location, problem, lost=self._connection.closed) from problem
        except UnicodeEncodeError as problem:
            raise _unwritable() from problem


class PostgresReader(PostgresSession):
    """A session that only reads, and connects again when the connection breaks: reading twice does no harm outside of a
    transaction.
    """

    def rows(self, sql: str, *values: object) -> Sequence[Row]:
        """Return the rows of a statement, if need be from a server that has just come back."""
        deadline, snapshot = time.monotonic() + self._store.patience, False
        while True:
            try:
                if self._connection.closed:
                    self._connect()
                snapshot = self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
                return super().rows(sql, *values)
            except Interrupted as problem:
                self._connection.close()
                if snapshot:
                    raise  # what was seen of one moment cannot be seen again
                if time.monotonic() >= deadline:
                    raise LedgerUnreachable(
                        f"The ledger {self._store.location} went away and did not come back within "
                        f"{self._store.patience:g} seconds ({problem}). Look at its server, then try again."
                    ) from problem
                time.sleep(_PAUSE)


_SESSIONS: "weakref.WeakSet[PostgresSession]" = weakref.WeakSet()
_ABANDONED: list[object] = []
"""Our parent's connections: kept, since to delete one is to close it."""


def _after_fork() -> None:
    for session in list(_SESSIONS):
        session.abandon()
    _SESSIONS.clear()


os.register_at_fork(after_in_child=_after_fork)


@lru_cache(maxsize=512)
def _translate(sql: str) -> bytes:
    """Our SQL in PostgreSQL's: its placeholders, and text ordered by bytes, since an index in a language's order breaks
    when the system's idea of that order is upgraded, and a key that is not found is charged again."""
    if sql.lstrip().startswith("CREATE TABLE"):
        sql = sql.replace(" TEXT", ' TEXT COLLATE "C"')
    return sql.replace("?", "%s").encode()


def _without_password(parts: dict[str, Any]) -> str:
    """Return the parts of a URL that identify a ledger. All other parts are left out: some of them are secret."""
    host, where = str(parts.get("host") or ""), []
    if host.startswith(("/", "@")):
        where, host = [f"host={quote(host)}"], ""
    where += [f"{name}={quote(str(parts[name]))}" for name in ("hostaddr", "service", "options") if parts.get(name)]
    user = f"{quote(str(parts['user']))}@" if parts.get("user") else ""
    port = f":{parts['port']}" if str(parts.get("port", "")).strip(",") else ""
    database = quote(str(parts.get("dbname") or ""))
    return f"postgresql://{user}{quote(host, safe=':,')}{port}/{database}" + ("?" + "&".join(where) if where else "")


def _first_line(problem: psycopg.Error) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(problem).__name__


def _unwritable() -> HubbubError:
    return ParameterError("name", "text without NUL or lone surrogates", "…")


def _of_postgres(location: str, problem: psycopg.Error, *, lost: bool) -> Exception:
    """Name the error by its SQLSTATE; ``final`` means that this connection is not to be trusted."""
    code, what = problem.sqlstate or "", _first_line(problem)
    if lost or problem.diag.severity_nonlocalized in ("FATAL", "PANIC"):
        return Interrupted(what)
    match code[:2], code:
        case "", _ if isinstance(problem, psycopg.DataError):
            return _unwritable()
        case ("08" | "40", _) | (_, "57P01" | "57P02" | "57P03" | "57014" | "0A000"):
            return Interrupted(what)
        case _, "53100":
            return LedgerFull(
                f"There is no room for another entry in {location}. Make room on its disk; nothing was lost."
            )
        case _, "25006" | "42501":
            return LedgerReadOnly(f"The ledger {location} cannot be written ({what}). Check the role's rights.")
        case _, "42P07" | "42723" | "42703":
            return LedgerFormat(
                f"The schema of {location} holds tables that are not a ledger's ({what}). Give the ledger a schema "
                "of its own: ?options=-csearch_path%3DNAME."
            )
        case ("23", _) | (_, "42P01" | "XX001" | "XX002"):
            return LedgerCorrupt(
                f"The ledger {location} is damaged ({what}). Restore the newest backup, or run: hubbub ledger verify.",
                final=True,
            )
        case _, "55P03":
            return LedgerUnreachable(f"Another program holds the ledger {location} locked. Try again, or close it.")
        case "53", _:
            return LedgerUnreachable(f"The server of {location} has too much to do ({what}). Try again.")
        case _:
            return LedgerUnreachable(
                f"The ledger {location} cannot be trusted after a failure of its server ({what}). "
                "Look at the server, then open it again.",
                final=True,
            )
