"""A small ledger with an entry of every kind, and ways to forge one whose chain is perfect."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from hubbub.ledger import Ask, Ledger, Marks, Renewal
from hubbub.ledger.effects import EFFECTS
from hubbub.ledger.entry import GENESIS, Entry, canonical, chain_hash
from hubbub.ledger.stores.sqlite import SqliteStore
from hubbub.ledger.stores.store import MIGRATIONS, migrate
from hubbub.privacy.events.event import DiscreteGaussianEvent, Event, LaplaceEvent, WithFailure
from hubbub.privacy.filter import Budget

DAY = 86_400_000_000
START = 1_800_000_000_000_000

PEOPLE = Budget(epsilon=Fraction(2), delta=Fraction(1, 10**6))
STAFF = Budget(epsilon=Fraction(1))
NOISE = DiscreteGaussianEvent(sigma=Fraction(20))
THRESHOLD = WithFailure(event=LaplaceEvent(scale=Fraction(50)), failure=Fraction(1, 10**9))
QUIET = LaplaceEvent(scale=Fraction(2))

# Where the entries of the sample are.
ACCOUNT, STAFF_ACCOUNT, PROJECT, GRANT, BOB, FIRST, ANSWER, SHARE, SERVE, PUBLISH = range(2, 12)
SECOND, FACT, PAID, RENEWAL, RENEWED, REVOKE, PENDING, FAILURE, THAW, FAILED = range(12, 22)
ENTRIES = 21


class Clock:
    """Time as the test has it."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        self.now += 1
        return self.now


def question(text: str, event: Event = NOISE, **changes: Any) -> Ask:
    """One question to "people" by ann."""
    fields: dict[str, Any] = {
        "account": "people",
        "question": text,
        "events": (event,),
        "epsilon": Fraction(1, 10),
        "principal": "ann",
    }
    return Ask(**(fields | changes))


def fill(ledger: Ledger, clock: Clock) -> None:
    """Every kind of entry but an adoption."""
    ledger.open_account("people", PEOPLE, population="patients")
    ledger.open_account("staff", STAFF, renewal=Renewal(days=30))
    ledger.open_project("people", "study", Budget(epsilon=Fraction(1), delta=Fraction(1, 10**6)))
    ledger.grant("people", "ann", project="study", limit=PEOPLE)
    ledger.grant("people", "bob", expires=datetime(2100, 1, 1, tzinfo=UTC))
    ticket = ledger.reserve(question("how many", key="one"))
    ledger.settle(ticket, "41")
    ledger.reserve(question("how many", principal="bob", key="two"))
    ledger.publish(ticket.entry)
    ticket = ledger.reserve(question("which keys", THRESHOLD, version="2"))
    ledger.remember("people", "keys", ["a", "b"], paid=ticket.entry, version="2")
    ledger.reserve(question("staff", QUIET, account="staff", principal="owner"))
    clock.now += 31 * DAY
    ledger.reserve(question("staff again", QUIET, account="staff", principal="owner"))
    ledger.revoke("people", "bob")
    ticket = ledger.reserve(question("left by a crash"))
    ledger.fail(ticket)
    ledger.thaw("people", "ann")
    ledger.fail(ticket)


def sample(path: Path) -> Path:
    """The sample in a file."""
    clock = Clock()
    with Ledger(path, marks=Marks(path.parent / "sample-state"), clock=clock) as ledger:
        fill(ledger, clock)
    return path


@dataclass
class Draft:
    """An entry that may be changed."""

    time: int
    kind: str
    content: Any


def forged(source: Path, target: Path, change: Callable[[list[Draft]], None]) -> Path:
    """A ledger whose entries were changed (number n is at n − 1), and then chained and digested without a flaw."""
    with sqlite3.connect(source) as connection:
        rows = connection.execute("SELECT time, kind, body FROM entries ORDER BY seq").fetchall()
        (name,) = connection.execute("SELECT ledger FROM head").fetchone()
    connection.close()
    drafts = [
        Draft(time, kind, Entry(seq=0, time=0, kind=kind, body=body, hash="").content) for time, kind, body in rows
    ]
    change(drafts)
    store = SqliteStore(target)
    session = store.writer()
    session.begin()
    migrate(session, store, present=0, migrations=MIGRATIONS)
    link = GENESIS
    for seq, draft in enumerate(drafts, start=1):
        body = canonical(draft.content)
        link = chain_hash(link, seq=seq, time=draft.time, kind=draft.kind, body=body)
        entry = Entry(seq=seq, time=draft.time, kind=draft.kind, body=body, hash=link)
        session.run("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", seq, entry.time, entry.kind, body, link)
        try:
            EFFECTS[entry.kind](session, entry, draft.content)
        except Exception:
            continue  # an entry that cannot be digested is there all the same
    session.run("INSERT INTO head VALUES (1, ?, ?, ?, ?, ?)", name, len(MIGRATIONS), len(drafts), drafts[-1].time, link)
    session.commit()
    session.close()
    return target


def damage(path: Path, *statements: str) -> None:
    """Change the file behind the ledger's back."""
    connection = sqlite3.connect(path)
    for verb in ("changed", "deleted"):
        connection.execute(f"DROP TRIGGER IF EXISTS entries_are_never_{verb}")
    for statement in statements:
        assert connection.execute(statement).rowcount > 0, statement
    connection.commit()
    connection.close()
