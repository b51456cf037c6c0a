"""Connections that can only read, and snapshots of one state of a database in them.

Settings belong to the transaction, since a pooler may give each transaction another session of the server. What they
see to: names are found in pg_catalog alone, values have one text each, rows are never left out silently by a policy of
the table, and nothing takes longer or more memory than the limits say.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hubbub.engines.dialects.postgres import name_secret
from hubbub.engines.postgres.catalogue import quote_relation
from hubbub.errors import MissingExtra
from hubbub.policy.tables import Limits

try:
    import psycopg
except ImportError as absent:
    raise MissingExtra("psycopg", "postgres") from absent

_LEAST_MEMORY, _MOST_MEMORY = 64, 2147483647
"""What work_mem may be, in kB."""
_SORTS = 8
"""Sorts and hashed tables that a statement of ours has at a time: each gets this part of the memory of a question."""
_CONNECTING = 10
"""Seconds until a server that does not answer is one that is not there."""

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
READING = {
    "search_path": "pg_catalog, pg_temp",
    "DateStyle": "'ISO, YMD'",
    "IntervalStyle": "'postgres'",
    "TimeZone": "'UTC'",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "row_security": "off",  # an error in place of fewer rows
}
"""What names and values mean in every statement of ours, wherever it runs."""

Connection = psycopg.Connection[Any]
Cursor = psycopg.Cursor[Any]


def connect(dsn: str) -> Connection:
    """Connect; psycopg.Error where that fails. Statements have their own numbered parameters."""
    return psycopg.connect(
        dsn,
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=_CONNECTING,
        cursor_factory=psycopg.RawCursor,
        client_encoding="UTF8",
    )


def plain(cursor: Cursor) -> Cursor:
    """Return a cursor of the same transaction whose parameters psycopg numbers."""
    return psycopg.Cursor(cursor.connection)


@contextmanager
def hold_snapshot(connection: Connection, limits: Limits, *, memory: int) -> Iterator[Cursor]:
    """Run one transaction that only reads, and sees one state of the database from its first statement on."""
    with connection.cursor() as cursor:
        cursor.execute(begin_snapshot(_settings(limits, memory)))
        try:
            yield cursor
        finally:
            if not connection.closed:
                cursor.execute("ROLLBACK")


def begin_snapshot(settings: Mapping[str, str]) -> bytes:
    """Write what begins a transaction that only reads, and sees one state of the database, with settings of its own."""
    return "; ".join([BEGIN, *(f"SET LOCAL {name} = {value}" for name, value in settings.items())]).encode()


def _settings(limits: Limits, memory: int) -> dict[str, str]:
    kilobytes = max(_LEAST_MEMORY, min(_MOST_MEMORY, memory // _SORTS // 1024))
    settings = {
        **READING,
        "statement_timeout": f"{max(1, round(limits.seconds * 1000)):d}",
        "lock_timeout": f"{max(1, round(limits.seconds * 1000)):d}",
        "idle_in_transaction_session_timeout": f"{max(1000, round(limits.seconds * 2000)):d}",
        "work_mem": f"{kilobytes:d}",
        "hash_mem_multiplier": "1",
        "jit": "off",
        "plan_cache_mode": "force_custom_plan",
    }
    if limits.threads is not None:
        settings["max_parallel_workers_per_gather"] = f"{limits.threads - 1:d}"
    return settings


_GONE = frozenset({"42P01", "3F000", "42501", "42809", "0A000"})
"""What a server says of a table that is not there, is no table, or may not be read any longer."""


def is_as_seen(cursor: Cursor, schema: str, table: str) -> bool:
    """Lock a table against being altered, and return whether its name leads to what the snapshot knows by it.

    To name it in a statement is enough for the lock, which needs no right but to read a column.
    """
    where = quote_relation(schema, table)
    try:
        cursor.execute(f"SELECT FROM {where} LIMIT 0")
    except psycopg.Error as problem:
        if problem.sqlstate in _GONE:
            return False
        raise
    found = cursor.execute(
        "SELECT c.oid = pg_catalog.to_regclass($1) "
        "AND coalesce(c.relfilenode = pg_catalog.pg_relation_filenode(c.oid), TRUE) "
        "FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $2 AND c.relname = $3",
        [where, schema, table],
    ).fetchall()
    return [tuple(row) for row in found] == [(True,)]


def draw_secrets(cursor: Cursor, many: int, *, known: Sequence[int] | None = None) -> None:
    """Let the server draw the secret numbers of this transaction's hashes, which stand in no statement.

    ``known`` ones, for tests, stand in the statement that sets them. The numbers are folded from 122 bits that the
    server's own cryptographic generator draws.
    """
    for place in range(1, many + 1):
        if known is None:
            drawn = "CAST(pg_catalog.uuid_hash_extended(pg_catalog.gen_random_uuid(), 0) AS text)"
        else:
            drawn = f"'{_wrap_number(known[place - 1]):d}'"
        cursor.execute(f"SELECT pg_catalog.set_config('{name_secret(place)}', {drawn}, TRUE) IS NOT NULL")


def _wrap_number(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
