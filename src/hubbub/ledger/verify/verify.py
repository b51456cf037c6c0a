"""Everything that a ledger says, checked from its first entry: the chain, the rules, the balances.

Three readings must agree: the chain of hashes; what a ``Witness`` who sees only the entries finds allowed; and the
tables, which are rebuilt by the same ``effects`` that a living ledger goes through and compared row by row.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.errors import LedgerCorrupt, LedgerError, LedgerUnreachable
from hubbub.ledger.book import check_link, damage_at, entry_from, head_of
from hubbub.ledger.effects import EFFECTS
from hubbub.ledger.entry import GENESIS, Entry
from hubbub.ledger.older import Completing
from hubbub.ledger.stores.sqlite import SqliteStore
from hubbub.ledger.stores.store import DERIVED, MIGRATIONS, Head, Interrupted, Row, Store, StoreSession, migrate
from hubbub.ledger.verify.witness import Witness

if TYPE_CHECKING:
    from hubbub.ledger.ledger import Ledger

_PAGE = 1000
_ENTRIES = "SELECT seq, time, kind, body, hash FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq"

Progress = Callable[[int, int], None]
"""Told how many entries are done, of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The parts of a ledger that were checked and are right."""

    entries: int
    accounts: int
    hash: str
    """The head: whoever has seen it before knows that it is the same ledger, up to here."""


def verify(ledger: "Ledger", *, progress: Progress | None = None) -> Verified:
    """Check everything, or raise the LedgerCorrupt that names the first bad entry."""
    return verify_store(ledger.store, progress=progress)


def verify_store(store: Store, *, progress: Progress | None = None) -> Verified:
    """The same for a ledger that cannot be opened because its end is damaged.

    The entries are read while others may write; the tables are then read at one moment, after what was written
    meanwhile has been read too.
    """
    try:
        with closing(store.reader()) as session, closing(Scratch()) as scratch:
            replay = _Replay(scratch, progress)
            replay.go_on(session, head_of(session))
            session.run(store.snapshot)
            try:
                head = head_of(session)
                replay.go_on(session, head)
                replay.finish(session, head)
                _copy(session, scratch)
                if head_of(session) != head:  # a reader that had to connect again sees another moment
                    raise Interrupted("the connection was lost")
            finally:
                session.rollback()
            _compare(scratch)
            return Verified(entries=head.seq, accounts=replay.witness.accounts, hash=head.hash)
    except Interrupted as problem:
        raise LedgerUnreachable(
            f"The ledger {store.location} went away while it was verified ({problem}). Try again."
        ) from problem


def check_links(session: StoreSession, *, last: int, after: Entry | None = None) -> Iterator[Entry]:
    """The entries up to ``last``, each checked: no gap, no step back in time, and the hash."""
    seq, time, link = (after.seq, after.time, after.hash) if after else (0, -(1 << 62), GENESIS)
    while seq < last:
        for row in _page(session, seq + 1, min(last, seq + _PAGE)):
            entry = entry_from(row)
            if entry.seq != seq + 1:
                raise damage_at(seq + 1, "it is missing")
            check_link(entry, link)
            if entry.time < time:
                raise damage_at(entry.seq, "it is older than the entry before it")
            yield entry
            seq, time, link = entry.seq, entry.time, entry.hash


def _page(session: StoreSession, first: int, last: int) -> Sequence[Row]:
    """Some entries; where they cannot be read together, the one that cannot be read by itself is named."""
    try:
        rows = session.rows(_ENTRIES, first, last)
    except LedgerError:
        for seq in range(first, last + 1):
            try:
                session.rows(_ENTRIES, seq, seq)
            except LedgerCorrupt as problem:
                raise damage_at(seq, "it cannot be read") from problem
        raise
    if not rows:
        raise damage_at(first, "it is missing")
    return rows


class _Replay:
    """Entries on their way into the scratch tables, past the witness."""

    def __init__(self, scratch: "Scratch", progress: Progress | None) -> None:
        self.witness = Witness()
        self._completing = Completing()
        self._scratch, self._progress = scratch, progress
        self._last: Entry | None = None

    def go_on(self, session: StoreSession, head: Head) -> None:
        """Read on to a head."""
        for entry in check_links(session, last=head.seq, after=self._last):
            try:
                content = self._completing.complete(entry.seq, entry.kind, json.loads(entry.body))
                self.witness.see(entry, content)
                EFFECTS[entry.kind](self._scratch, entry, content)
            except LedgerCorrupt as problem:
                raise problem if "entry" in problem.operands else damage_at(entry.seq, problem.message) from problem
            except (sqlite3.Error, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as problem:
                raise damage_at(entry.seq, f"it makes no sense ({type(problem).__name__}: {problem})") from problem
            self._last = entry
            if self._progress is not None and entry.seq % _PAGE == 0:
                self._progress(entry.seq, head.seq)
        if self._progress is not None:
            self._progress(head.seq, head.seq)

    def finish(self, session: StoreSession, head: Head) -> None:
        """The chain ends where the head says, and nothing comes after it."""
        last = self._last
        if last is None or (last.seq, last.time, last.hash) != (head.seq, head.time, head.hash):
            raise damage_at(head.seq, "the chain does not end where its head says")
        if self.witness.ledger != head.ledger:
            raise damage_at(1, "it names another ledger than the head")
        beyond = session.rows("SELECT min(seq) FROM entries WHERE seq > ? OR seq < 1", head.seq)[0][0]
        if beyond is not None:
            raise damage_at(beyond, "it lies outside the chain")


def _copy(session: StoreSession, scratch: "Scratch") -> None:
    """Every derived table, beside the one that the entries make."""
    for table, order in DERIVED.items():
        columns = scratch.columns(table)
        for page in _rows(session, table, columns, order):
            scratch.put(f"their_{table}", columns, page)


def _compare(scratch: "Scratch") -> None:
    """Row by row, in both directions."""
    for table, order in DERIVED.items():
        columns = scratch.columns(table)
        names = ", ".join(columns)
        for one, other in ((table, f"their_{table}"), (f"their_{table}", table)):
            wrong = scratch.rows(
                f"SELECT {names} FROM {one} EXCEPT SELECT {names} FROM {other} ORDER BY {order} LIMIT 1"
            )
            if wrong:
                row = dict(zip(columns, wrong[0], strict=True))
                key = ", ".join(f"{name} {row[name]!r}" for name in order.split(", "))
                raise LedgerCorrupt(
                    f"The entries are whole, but the table of {table} is not what they say at {key}. "
                    "Restore the newest backup.",
                    table=table,
                    row=row,
                )


def _rows(session: StoreSession, table: str, columns: Sequence[str], order: str) -> Iterator[Sequence[Row]]:
    """A table in pages. The store's own order of texts is used to turn them, since stores differ in it."""
    keys = order.split(", ")
    places = [columns.index(key) for key in keys]
    names, marks = ", ".join(columns), ", ".join("?" * len(keys))
    page = session.rows(f"SELECT {names} FROM {table} ORDER BY {order} LIMIT {_PAGE}")
    while page:
        yield page
        after = [page[-1][place] for place in places]
        page = session.rows(
            f"SELECT {names} FROM {table} WHERE ({order}) > ({marks}) ORDER BY {order} LIMIT {_PAGE}", *after
        )


class Scratch:
    """The tables in a nameless SQLite file that nobody else sees and that goes when it is closed."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -262144"):
            self._connection.execute(f"PRAGMA {pragma}")
        migrate(self, SqliteStore("scratch"), present=0, migrations=MIGRATIONS)
        for (index,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"):
            self.run(f"DROP INDEX {index}")
        for table in DERIVED:
            self.run(f"CREATE TABLE their_{table} AS SELECT * FROM {table}")
        self.begin()

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns."""
        return [name for _, name, *_ in self.rows(f"PRAGMA table_info({table})")]

    def put(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Add rows to a table."""
        marks = ", ".join("?" * len(columns))
        self._connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def begin(self) -> None:
        """Nobody else is here; this only saves work."""
        self._connection.execute("BEGIN")

    def rows(self, sql: str, *values: object) -> Sequence[Row]:
        """Return the rows of a statement."""
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, *values: object) -> int:
        """Run a statement and return the number of rows that it changed."""
        return self._connection.execute(sql, values).rowcount

    def has(self, table: str) -> bool:
        """Return True if there is such a table."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table))

    def commit(self) -> None:
        """Nothing here is kept."""

    def rollback(self) -> None:
        """Nothing here is kept."""

    def close(self) -> None:
        """Let go of everything."""
        self._connection.close()
