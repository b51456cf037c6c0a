"""Opening a ledger: create it or bring it up to date, and check its end, before it may be used."""

import re
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from hubbub.errors import LedgerFormat, LedgerRolledBack, LedgerUnreachable
from hubbub.ledger.book import Transaction, check_link, damage_at, entry_from, entry_of, head_of
from hubbub.ledger.entry import GENESIS, canonical, chain_hash
from hubbub.ledger.older import fill_sums
from hubbub.ledger.stores.sqlite import SqliteStore
from hubbub.ledger.stores.store import MIGRATIONS, Head, Interrupted, Store, StoreSession, format_of, migrate
from hubbub.ledger.verify.marks import Marks

_TAIL = 1000
"""How many of the newest entries are checked whenever a ledger is opened; ``verify`` checks all of them."""

_URL = re.compile(r"postgres(ql)?://")


def store_at(location: str | Path, *, patience: float) -> Store:
    """A PostgreSQL URL, or the path of a SQLite file."""
    if isinstance(location, str) and _URL.match(location):
        from hubbub.ledger.stores.postgres import PostgresStore

        return PostgresStore(location, patience=patience)
    return SqliteStore(location, patience=patience)


def open_store(
    store: Store, *, marks: Marks, clock: Callable[[], int], create: bool, writes: bool, patience: float
) -> Head:
    """Open in a thread of its own, since waiting for a writer that was stopped has no end."""
    outcome: Future[Head] = Future()

    def work() -> None:
        try:
            outcome.set_result(_open_store(store, marks=marks, clock=clock, create=create, writes=writes))
        except BaseException as problem:
            outcome.set_exception(problem)

    threading.Thread(target=work, name="hubbub-ledger-opening", daemon=True).start()
    try:
        return outcome.result(timeout=2 * patience)
    except TimeoutError:
        raise LedgerUnreachable(
            f"The ledger {store.location} could not be opened within {2 * patience:g} seconds: another program holds "
            "it. End that program, or let it go on."
        ) from None
    except Interrupted as problem:
        raise LedgerUnreachable(
            f"The ledger {store.location} went away while it was opened ({problem}). Look at its server; try again."
        ) from problem


def _open_store(store: Store, *, marks: Marks, clock: Callable[[], int], create: bool, writes: bool) -> Head:
    """Make sure that there is a ledger, that this version can read it, and that it is not older than we know."""
    known = marks.ledger_at(store.location)
    if not store.exists():
        if known is not None:
            raise _gone(store)
        if not create or not writes:
            raise _absent(store)
    session = store.writer() if writes else store.reader()
    try:
        if known is not None and not session.has("head"):
            raise _gone(store)  # an empty file in its place, which must not become a ledger with everything to spend
        if not session.has("head") and not (create and writes):
            raise _absent(store)
        head = _prepare(session, store, clock) if writes else head_of(session)
        if not writes and format_of(session) != len(MIGRATIONS):
            raise LedgerFormat(f"The ledger {store.location} has another format. Open it for writing once.")
        if known is not None and known != head.ledger:
            raise LedgerRolledBack(
                f"The ledger at {store.location} is not the one that this machine has seen there. Put the right one "
                "back; if it is lost, its owner may run: hubbub ledger forget."
            )
        _check_tail(session, head)
        marks.check(head, lambda seq: hash_at(session, seq))
        if writes:
            marks.settle_at(store.location, head.ledger)
            marks.raise_to(head)
    finally:
        session.close()
    return head


def _gone(store: Store) -> LedgerRolledBack:
    return LedgerRolledBack(
        f"There was a ledger at {store.location}, and it is gone. Put it back; if it is lost, its owner may run: "
        "hubbub ledger forget."
    )


def _absent(store: Store) -> LedgerUnreachable:
    return LedgerUnreachable(f"There is no ledger at {store.location}. Check where it should be, or create one there.")


def _prepare(session: StoreSession, store: Store, clock: Callable[[], int]) -> Head:
    session.begin()
    try:
        present = format_of(session)
        if present != len(MIGRATIONS):
            migrate(session, store, present=present, migrations=MIGRATIONS)
            if present == 0:
                _first_entry(session, clock())
            elif present < 2:
                fill_sums(session)
            session.commit()
            return head_of(session)
        head = head_of(session)
        session.rollback()
        return head
    except BaseException:
        session.rollback()
        raise


def _first_entry(session: StoreSession, now: int) -> None:
    ledger = secrets.token_hex(16)
    body = canonical({"ledger": ledger})
    link = chain_hash(GENESIS, seq=1, time=now, kind="ledger", body=body)
    session.run("INSERT INTO entries (seq, time, kind, body, hash) VALUES (1, ?, 'ledger', ?, ?)", now, body, link)
    session.run(
        "INSERT INTO head (one, ledger, format, seq, time, hash) VALUES (1, ?, ?, 1, ?, ?)",
        *(ledger, len(MIGRATIONS), now, link),
    )


def hash_at(session: StoreSession, seq: int) -> str | None:
    """Return the hash of an entry, None where there is no such entry."""
    rows = session.rows("SELECT hash FROM entries WHERE seq = ?", seq)
    return str(rows[0][0]) if rows else None


def _check_tail(session: StoreSession, head: Head) -> None:
    """The chain's newest part, up to the head: a torn or foreign end is seen before it is built upon."""
    first = max(1, head.seq - _TAIL)
    previous = GENESIS if first == 1 else hash_at(session, first - 1)
    rows = session.rows(
        "SELECT seq, time, kind, body, hash FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq", first, head.seq
    )
    for expected, row in enumerate(rows, start=first):
        entry = entry_from(row)
        if entry.seq != expected or previous is None:
            raise damage_at(expected, "it is missing")
        check_link(entry, previous)
        previous = entry.hash
    if not rows or (head.seq, head.time, head.hash) != (rows[-1][0], rows[-1][1], previous):
        raise damage_at(head.seq, "the chain does not end where its head says")
    if entry_of(session, 1).body != canonical({"ledger": head.ledger}):
        raise damage_at(1, "it does not bear the ledger's name")


def adopt(store: Store, *, marks: Marks, clock: Callable[[], int]) -> Head:
    """The owner's word that this is the ledger now, older though it may be: said in the ledger itself, for ever."""
    if not store.exists():
        raise _absent(store)
    session = store.writer()
    try:
        session.begin()
        try:
            transaction = Transaction(session, clock=clock)
            _check_tail(session, transaction.head)
            transaction.append("adopt", {"head": transaction.head.hash, "seq": transaction.head.seq})
            transaction.close()
            session.commit()
        except BaseException:
            session.rollback()
            raise
    finally:
        session.close()
    marks.adopt(transaction.head)
    marks.forget(store.location)
    marks.settle_at(store.location, transaction.head.ledger)
    return transaction.head
