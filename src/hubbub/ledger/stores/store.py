"""The interface of a store, its tables, and how older tables become newer ones.

Everything that decides anything (caps, grants, keys, the chain) is written once, above this line, in SQL that both
stores read alike. A store gives the sole right to write, durable commits, and errors with a name.

``entries`` is the ledger. Every other table is a digest of it that ``verify`` can rebuild: balances, so that a check
costs the same after a million charges, and indexes for keys and questions. Migrations may add tables and columns; they
never rewrite an entry, so what was charged keeps its meaning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hubbub.errors import LedgerCorrupt, LedgerFormat

Row = tuple[Any, ...]


class Interrupted(Exception):
    """The transaction ended and nobody knows how: connect again, and look before doing it again."""


class StoreSession(Protocol):
    """One connection. Statements use ``?`` for values; every failure is a LedgerError or Interrupted."""

    def begin(self) -> None:
        """Wait for the sole right to write; from here on, nothing that is read can change under us."""

    def rows(self, sql: str, *values: object) -> Sequence[Row]:
        """Return the rows of a statement."""

    def run(self, sql: str, *values: object) -> int:
        """Run a statement and return the number of rows that it changed."""

    def has(self, table: str) -> bool:
        """Return True if there is such a table."""

    def commit(self) -> None:
        """Return only when everything since ``begin`` is on disk."""

    def rollback(self) -> None:
        """Undo everything since ``begin``; never fails, also after a failure."""

    def close(self) -> None:
        """Let go of the connection."""


class Store(Protocol):
    """A place where a ledger is kept."""

    location: str
    """For people, without passwords."""
    whole: str
    """The type of a 64-bit integer that may be a primary key."""
    guard: tuple[str, ...]
    """Statements that forbid changing or deleting entries."""
    snapshot: str
    """The statement after which a reader sees one moment, until ``rollback``."""

    def exists(self) -> bool:
        """Return True if the ledger is there already."""

    def writer(self) -> StoreSession:
        """A connection that can write."""

    def reader(self) -> StoreSession:
        """A connection that cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of the chain."""

    ledger: str
    """A random name, given once: copies share it."""
    seq: int
    time: int
    hash: str


TABLES = """
CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1), ledger TEXT NOT NULL, format INTEGER NOT NULL,
    seq BIGINT NOT NULL, time BIGINT NOT NULL, hash TEXT NOT NULL
);
CREATE TABLE entries (
    seq {whole} PRIMARY KEY, time BIGINT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE TABLE holders (
    account TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, terms TEXT NOT NULL, opened BIGINT NOT NULL,
    period BIGINT NOT NULL, loss BIGINT NOT NULL, failure BIGINT NOT NULL, charges BIGINT NOT NULL, seal TEXT NOT NULL,
    PRIMARY KEY (account, kind, name)
);
CREATE TABLE grants (
    account TEXT NOT NULL, principal TEXT NOT NULL, project TEXT, expires BIGINT, revoked INTEGER NOT NULL,
    entry BIGINT NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (account, principal)
);
CREATE TABLE charges (
    seq {whole} PRIMARY KEY, account TEXT NOT NULL, principal TEXT NOT NULL, question TEXT NOT NULL,
    asked BIGINT NOT NULL, asked_delta BIGINT NOT NULL, answer BIGINT, public INTEGER NOT NULL, seal TEXT NOT NULL
);
CREATE INDEX charges_by_question ON charges (account, question, asked);
CREATE TABLE keys (
    principal TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, charge BIGINT NOT NULL,
    PRIMARY KEY (principal, key)
);
CREATE TABLE holdings (
    charge BIGINT NOT NULL, principal TEXT NOT NULL, project TEXT, PRIMARY KEY (charge, principal)
);
CREATE TABLE facts (
    account TEXT NOT NULL, version TEXT NOT NULL, name TEXT NOT NULL, entry BIGINT NOT NULL,
    PRIMARY KEY (account, version, name)
);
CREATE TABLE failures (
    account TEXT NOT NULL, principal TEXT NOT NULL, many BIGINT NOT NULL, seal TEXT NOT NULL,
    PRIMARY KEY (account, principal)
)
"""

SUMS = "ALTER TABLE holders ADD COLUMN pure BIGINT"
"""The sum of pure ε of a holder, NULL where it is infinite; ``older`` fills it in from the entries."""

MIGRATIONS: tuple[str, ...] = (TABLES, SUMS)
"""The n-th makes format n out of format n − 1."""

DERIVED = {
    "holders": "account, kind, name",
    "grants": "account, principal",
    "charges": "seq",
    "keys": "principal, key",
    "holdings": "charge, principal",
    "facts": "account, version, name",
    "failures": "account, principal",
}
"""The tables that follow from the entries, with the order in which to compare them."""


def format_of(session: StoreSession) -> int:
    """Return the format of the ledger, 0 where there is nothing yet."""
    if not session.has("head"):
        return 0
    rows = session.rows("SELECT format FROM head WHERE one = 1")
    if len(rows) != 1 or not isinstance(rows[0][0], int) or rows[0][0] < 1:
        raise LedgerCorrupt("The ledger's head is lost or damaged. Restore the newest backup.")
    return rows[0][0]


def migrate(session: StoreSession, store: Store, *, present: int, migrations: tuple[str, ...]) -> None:
    """Bring the tables to the newest format, inside the transaction that is open."""
    if present > len(migrations):
        raise LedgerFormat(
            f"The ledger {store.location} has format {present}; this Hubbub reads up to {len(migrations)}. "
            "Upgrade Hubbub.",
            present=present,
            known=len(migrations),
        )
    for script in migrations[present:]:
        for statement in script.split(";"):
            if statement.strip():
                session.run(statement.format(whole=store.whole))
    if present == 0:
        for statement in store.guard:
            session.run(statement)
    elif present < len(migrations):
        session.run("UPDATE head SET format = ? WHERE one = 1", len(migrations))
