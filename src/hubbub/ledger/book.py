"""The ledger while one writer has it alone, and the reading of its entries."""

from collections.abc import Callable

from hubbub.errors import LedgerCorrupt
from hubbub.ledger.effects import EFFECTS, Content
from hubbub.ledger.entry import GENESIS, Entry, canonical, chain_hash
from hubbub.ledger.stores.store import Head, Row, StoreSession


class Transaction:
    """A write transaction: nothing read through it can change before the commit."""

    def __init__(self, session: StoreSession, *, clock: Callable[[], int]) -> None:
        self.session = session
        self.head = self._start = _check_head(session)
        self.now = max(clock(), self.head.time)
        """Ledger time: the clock's, unless the clock has gone back."""

    def append(self, kind: str, content: Content) -> Entry:
        """Write an entry and do what it says."""
        body = canonical(content)
        seq, now = self.head.seq + 1, self.now
        link = chain_hash(self.head.hash, seq=seq, time=now, kind=kind, body=body)
        entry = Entry(seq=seq, time=now, kind=kind, body=body, hash=link)
        self.session.run(
            "INSERT INTO entries (seq, time, kind, body, hash) VALUES (?, ?, ?, ?, ?)", seq, now, kind, body, link
        )
        self.head = Head(ledger=self.head.ledger, seq=seq, time=now, hash=link)
        EFFECTS[kind](self.session, entry, content)
        return entry

    def close(self) -> bool:
        """Write the new head; False where nothing was written. A head that has moved means a second writer."""
        if self.head is self._start:
            return False
        changed = self.session.run(
            "UPDATE head SET seq = ?, time = ?, hash = ? WHERE one = 1 AND seq = ? AND hash = ?",
            *(self.head.seq, self.head.time, self.head.hash, self._start.seq, self._start.hash),
        )
        if changed != 1:
            raise LedgerCorrupt(
                "Two writers held the ledger at once. Open it again, and look for programs that write to it."
            )
        return True


def head_of(session: StoreSession) -> Head:
    """Return the present end of the chain."""
    rows = session.rows("SELECT ledger, seq, time, hash FROM head WHERE one = 1")
    if len(rows) != 1:
        raise LedgerCorrupt("The ledger has lost its head. Restore the newest backup.")
    ledger, seq, time, link = rows[0]
    if [type(field) for field in rows[0]] != [str, int, int, str]:
        raise LedgerCorrupt("The ledger's head is damaged. Restore the newest backup.")
    return Head(ledger=ledger, seq=seq, time=time, hash=link)


def _check_head(session: StoreSession) -> Head:
    """The same, held against the entry it speaks of: a wrong time there would renew budgets before their day."""
    head = head_of(session)
    if not session.rows(
        "SELECT 1 FROM entries WHERE seq = ? AND time = ? AND hash = ?", head.seq, head.time, head.hash
    ):
        raise damage_at(head.seq, "the chain does not end where its head says")
    return head


def entry_of(session: StoreSession, seq: int) -> Entry:
    """One entry, checked against its hash and the entry before it."""
    rows = session.rows(
        "SELECT seq, time, kind, body, hash FROM entries WHERE seq IN (?, ?) ORDER BY seq", seq - 1, seq
    )
    if len(rows) != (1 if seq == 1 else 2):
        raise damage_at(seq, "it, or the entry before it, is missing")
    entry = entry_from(rows[-1])
    check_link(entry, GENESIS if seq == 1 else rows[0][4])
    return entry


def entry_from(row: Row) -> Entry:
    """A row of the table of entries."""
    seq, time, kind, body, link = row
    return Entry(seq=seq, time=time, kind=kind, body=body, hash=link)


def check_link(entry: Entry, previous: str) -> None:
    """Check that the entry is the one that was written after its predecessor."""
    if chain_hash(previous, seq=entry.seq, time=entry.time, kind=entry.kind, body=entry.body) != entry.hash:
        raise damage_at(entry.seq, "its text does not fit its hash and the entry before it")


def damage_at(seq: int, what: str) -> LedgerCorrupt:
    """The error that names an entry."""
    return LedgerCorrupt(f"Entry {seq} is damaged: {what}. Restore the newest backup.", entry=seq)
