"""A ledger in one SQLite file: write-ahead log, and an fsync before every commit returns.

synchronous=NORMAL may lose the last commit when power fails, and a lost charge is a refund: so FULL. SQLite's own
waiting for a lock is a lottery in which some writers starve, so writers queue at a lock file beside the ledger and are
woken by the kernel. A file that was deleted or replaced would take charges that nobody will ever see again: its
identity is compared before and after every commit.
"""

import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hubbub.errors import LedgerCorrupt, LedgerError, LedgerFull, LedgerReadOnly, LedgerUnreachable
from hubbub.ledger.stores.forking import TRAFFIC
from hubbub.ledger.stores.store import Row

_COURTESY = 0.0005
"""How long a writer steps back after it found others waiting, so that they get their turn."""

_SETTINGS = (
    "cell_size_check = ON",
    "trusted_schema = OFF",
    "synchronous = FULL",
    "fullfsync = ON",
    "cache_size = -65536",  # 64 MiB: the indexes of a million charges are touched all over
)

_GUARD = """CREATE TRIGGER entries_are_never_{past} BEFORE {verb} ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"""


class SqliteStore:
    """One file. ``patience`` is how long to wait for a foreign writer that does not queue."""

    whole = "INTEGER"
    snapshot = "BEGIN"
    guard: tuple[str, ...] = (
        _GUARD.format(past="changed", verb="UPDATE"),
        _GUARD.format(past="deleted", verb="DELETE"),
    )

    def __init__(self, path: str | Path, *, patience: float = 5.0) -> None:
        self.path = Path(path).resolve()  # SQLite names the log after the file, not after a link to it
        self.location = str(self.path)
        self.patience = patience

    def exists(self) -> bool:
        """Return True if the file is there and not empty (a crash while creating it leaves an empty one)."""
        try:
            return self.path.stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError as problem:
            raise _of_the_system(self.location, problem) from problem

    def writer(self) -> "SqliteSession":
        """Creates the file, for its owner's eyes only, where there is none.

        A file that is there is never opened here: closing it would take away the locks of every connection that this
        process has to it, and the next process to leave would then delete the log under them.
        """
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            pass
        except OSError as problem:
            raise _of_the_system(self.location, problem) from problem
        return SqliteSession(self, writes=True)

    def reader(self) -> "SqliteSession":
        """Open a connection that only reads."""
        return SqliteSession(self, writes=False)


class SqliteSession:
    """One connection; the writer among them holds the lock file."""

    def __init__(self, store: SqliteStore, *, writes: bool) -> None:
        if str(store.path) in _OF_PARENT:
            raise LedgerUnreachable(
                f"This process was forked while the ledger {store.location} was in use, so it cannot use it. Open it "
                "after the fork, or start the process anew."
            )
        self._store, self.writes = store, writes
        self._contended = self._inside = False
        self._lock: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[tuple[int, int], ...] = ()
        TRAFFIC.enter()
        try:
            TRAFFIC.watch(self)
            self._connect()
        except BaseException:
            self._let_go()
            raise
        finally:
            TRAFFIC.leave()

    def _connect(self) -> sqlite3.Connection:
        path = self._store.path
        with _name_errors(self._store.location):
            self._connection = connection = sqlite3.connect(
                path.as_uri() + ("?mode=rw" if self.writes else "?mode=ro"),
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=self._store.patience,
                cached_statements=256,
            )
            for pragma in _SETTINGS:
                connection.execute(f"PRAGMA {pragma}")
            if not self.writes:
                return connection
            queued = self._lock is not None
            if self._lock is None:
                self._lock = os.open(f"{path}-lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                self._queue()
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            finally:
                if not queued:
                    fcntl.flock(self._lock, fcntl.LOCK_UN)
            if mode != "wal":
                raise LedgerUnreachable(
                    f"The ledger {self._store.location} lies where SQLite's write-ahead log does not work "
                    "(a network drive?). Put it on a local disk, or use PostgreSQL."
                )
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # makes the log's file
        known, self._identity = self._identity, self._identities()
        if known and (not self._identity or known[::2] != self._identity[::2]):  # the log may be a new one
            self._identity = ()
        return connection

    def begin(self) -> None:
        """Queue at the lock file, then take SQLite's own write lock."""
        assert self._lock is not None
        if self._contended:
            time.sleep(_COURTESY)
        self._queue()
        TRAFFIC.enter()
        self._inside = True
        try:
            connection = self._connection or self._connect()
            self._check_identity()
            with _name_errors(self._store.location):
                connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._leave()
            raise

    def rows(self, sql: str, *values: object) -> Sequence[Row]:
        """Return the rows of a statement."""
        TRAFFIC.enter()
        try:
            return (self._connection or self._connect()).execute(sql, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as problem:
            raise _of_sqlite(self._store.location, problem) from problem
        finally:
            TRAFFIC.leave()

    def run(self, sql: str, *values: object) -> int:
        """Run a statement and return the number of rows that it changed."""
        TRAFFIC.enter()
        try:
            return (self._connection or self._connect()).execute(sql, values).rowcount
        except (sqlite3.Error, UnicodeDecodeError) as problem:
            raise _of_sqlite(self._store.location, problem) from problem
        finally:
            TRAFFIC.leave()

    def has(self, table: str) -> bool:
        """Return True if there is such a table."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table))

    def commit(self) -> None:
        """On disk when this returns, and in the file that is still there."""
        assert self._connection is not None
        with _name_errors(self._store.location):
            self._connection.execute("COMMIT")
        self._check_identity()
        self._leave()

    def rollback(self) -> None:
        """Undo, and let the next writer in."""
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # the connection is beyond use, and what it had not committed is undone by the next reader
        finally:
            self._leave()

    def close(self) -> None:
        """Let go of the file; SQLite folds the log into it when the last connection goes."""
        TRAFFIC.enter()
        try:
            self._let_go()
        finally:
            TRAFFIC.leave()

    def put_down(self) -> None:
        """Before a fork: close the connection, and open it again when it is needed."""
        if self._connection is not None and not self._connection.in_transaction:
            self._connection.close()
            self._connection = None

    def abandon(self) -> None:
        """After a fork, in the child: it would keep the lock when the parent is killed."""
        if self._connection is not None:
            _OF_PARENT[str(self._store.path)] = self  # closing it here would harm the parent
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _leave(self) -> None:
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        if self._inside:
            self._inside = False
            TRAFFIC.leave()

    def _let_go(self) -> None:
        try:
            if self._connection is not None:
                self._connection.close()
        except sqlite3.Error:
            pass  # nothing is open, and everything that was promised is already on disk
        finally:
            self._connection = None
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    def _queue(self) -> None:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._contended = False
        except BlockingIOError:
            self._contended = True
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def _identities(self) -> tuple[tuple[int, int], ...]:
        try:
            found = [os.stat(f"{self._store.path}{suffix}") for suffix in ("", "-wal", "-lock")]
        except OSError:
            return ()
        return tuple((at.st_dev, at.st_ino) for at in found)

    def _check_identity(self) -> None:
        found = self._identities()
        if not found or found != self._identity:
            raise LedgerUnreachable(
                f"The ledger {self._store.location}, its log or its lock was deleted or replaced while it was in use. "
                "Put the file back, then open it again.",
                final=True,
            )


_OF_PARENT: dict[str, SqliteSession] = {}
"""Files with connections that a child was born with."""


@contextmanager
def _name_errors(location: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        raise _of_sqlite(location, problem) from problem
    except OSError as problem:
        if isinstance(problem, LedgerError):
            raise
        raise _of_the_system(location, problem) from problem


def _of_the_system(location: str, problem: OSError) -> LedgerError:
    """The same for what the system says about the files."""
    match problem.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return LedgerReadOnly(f"The ledger {location} cannot be written. Check the file's and its folder's rights.")
        case errno.ENOSPC | errno.EDQUOT:
            return LedgerFull(f"There is no room for the ledger {location}. Make room on its disk; nothing was lost.")
        case _:
            return LedgerUnreachable(
                f"The ledger {location} cannot be reached ({problem.strerror}). Check its path and its disk."
            )


def _of_sqlite(location: str, problem: sqlite3.Error | UnicodeDecodeError) -> LedgerError:
    """Name the error by SQLite's primary result code; ``final`` means that this connection is not to be trusted."""
    code = getattr(problem, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR
    if isinstance(problem, UnicodeDecodeError) or "Could not decode to UTF-8" in str(problem):
        code = sqlite3.SQLITE_CORRUPT
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return LedgerFull(
                f"There is no room for another entry in {location}. Make room on its disk; nothing was lost."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return LedgerReadOnly(f"The ledger {location} cannot be written. Check the file's and its folder's rights.")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CONSTRAINT:
            return LedgerCorrupt(
                f"The ledger {location} is damaged ({problem}). Run: hubbub ledger verify. Restore the newest backup.",
                final=True,
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LedgerUnreachable(f"Another program holds the ledger {location} locked. Try again, or close it.")
        case _:
            return LedgerUnreachable(
                f"The ledger {location} cannot be trusted after a failure of its disk ({problem}). "
                "Look at the disk, then open it again.",
                final=True,
            )
