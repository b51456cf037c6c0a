"""A life that asks a script of questions, and dies by SIGKILL at a named point of a question's path.

The traps are laid around the ledger from outside; the product has no hooks for them. ``nursery`` starts lives, and
starts them again with the same keys.
"""

import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

from hubbub.errors import BudgetExceeded
from hubbub.gate.meter import Meter, answered
from hubbub.gate.secret import Facts, Secret
from hubbub.ledger import OWNER, Ask, Ledger, Marks, Ticket
from hubbub.ledger.entry import write
from hubbub.ledger.stores.opening import store_at
from hubbub.ledger.stores.store import Head, Store, StoreSession
from hubbub.ledger.terms import Charged
from hubbub.mechanisms.additive.gaussian import Gaussian
from hubbub.mechanisms.additive.laplace import Geometric
from hubbub.mechanisms.base import Mechanism
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Sensitivity

POINTS = (
    *("before-reserve", "before-begin", "after-begin", "after-first-insert", "after-balance", "before-commit"),
    *("after-commit", "before-mark", "after-mark", "after-reserve", "before-read", "after-read", "before-draw"),
    *("after-draw", "before-settle", "inside-settle", "before-settle-commit", "after-settle-commit", "after-settle"),
    *("before-reply", "after-reply"),
)
"""In the order in which a question meets them, but for those that belong to every transaction."""
OUTSIDE = "outside"
"""Killed by somebody else, at any moment."""

STEP = Fraction(1, 8)
"""ε of one draw."""
RHO = Fraction(1, 32)
QUESTIONS = 8
"""In one round of the script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a nursery is asked to do."""

    location: str
    state: str
    log: str
    lives: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """For each the prefix of its keys and how it is killed, before it may live to its end: at which point, and when:
    at the first, the middle or a random one of the questions that are still open, or at any."""
    seed: int = 0
    rounds: int = 1
    threads: int = 1
    check: bool = True
    """Whether to check every invariant after every death: only where nobody else is writing."""


class Trap:
    """Kills the process at its point, once it is armed."""

    def __init__(self, point: str | None = None) -> None:
        self.point, self.armed = point, False

    def reach(self, point: str) -> None:
        """Go on, or die here."""
        if self.armed and point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


class TrappedSession:
    """A connection with traps around everything that changes something."""

    def __init__(self, session: StoreSession, trap: Trap) -> None:
        self._session, self._trap = session, trap
        self._kinds: set[str] = set()
        self.rows, self.has = session.rows, session.has
        self.rollback, self.close = session.rollback, session.close

    def begin(self) -> None:
        self._trap.reach("before-begin")
        self._session.begin()
        self._kinds.clear()
        self._trap.reach("after-begin")

    def run(self, sql: str, *values: object) -> int:
        changed = self._session.run(sql, *values)
        if sql.startswith("INSERT INTO entries "):
            self._kinds.add(str(values[2]))
            self._trap.reach("inside-settle" if values[2] == "answer" else "after-first-insert")
        elif " holders " in sql:
            self._trap.reach("after-balance")
        return changed

    def commit(self) -> None:
        points = {"settle-commit" if kind == "answer" else "commit" for kind in self._kinds}
        for point in points:
            self._trap.reach(f"before-{point}")
        self._session.commit()
        for point in points:
            self._trap.reach(f"after-{point}")


class TrappedStore:
    """A store whose writers are trapped."""

    def __init__(self, store: Store, trap: Trap) -> None:
        self._store, self._trap = store, trap
        self.location, self.whole = store.location, store.whole
        self.guard, self.snapshot = store.guard, store.snapshot
        self.exists, self.reader = store.exists, store.reader

    def writer(self) -> StoreSession:
        return TrappedSession(self._store.writer(), self._trap)


class TrappedMarks(Marks):
    """Marks with a trap before and after they are raised."""

    def __init__(self, folder: str, trap: Trap) -> None:
        super().__init__(folder)
        self._trap = trap

    def raise_to(self, head: Head) -> None:
        self._trap.reach("before-mark")
        super().raise_to(head)
        self._trap.reach("after-mark")


class Witness:
    """A diary outside of the ledger: each line is written before life goes on, and a reply is on disk."""

    def __init__(self, log: str) -> None:
        self._number = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._now = threading.local()

    def turn_to(self, principal: str, key: str) -> None:
        self._now.about = {"principal": principal, "key": key}

    def note(self, saw: str, **more: object) -> None:
        about = getattr(self._now, "about", {"principal": "", "key": ""})
        os.write(self._number, json.dumps({"saw": saw, **about, **more}).encode() + b"\n")
        if saw == "reply":
            os.fsync(self._number)


class TrappedLedger(Ledger):
    """A ledger with traps around what askers call, and a witness to what was paid, and how long it took."""

    def __init__(self, job: Job, trap: Trap, witness: Witness) -> None:
        self._trap, self._witness = trap, witness
        store = TrappedStore(store_at(job.location, patience=5.0), trap)
        super().__init__(store, create=False, marks=TrappedMarks(job.state, trap))

    def reserve(self, ask: Ask, *, meanwhile: Callable[[], None] | None = None) -> Ticket:
        self._trap.reach("before-reserve")
        began = time.monotonic()
        ticket = super().reserve(ask, meanwhile=meanwhile)
        self._witness.note("paid", entry=ticket.entry, seconds=time.monotonic() - began)
        self._trap.reach("after-reserve")
        return ticket

    def settle(self, paid: Charged, answer: str) -> str:
        self._trap.reach("before-settle")
        began = time.monotonic()
        kept = super().settle(paid, answer)
        self._witness.note("settled", seconds=time.monotonic() - began)
        self._trap.reach("after-settle")
        return kept


def set_up(location: str | Path, marks: Marks, *, lives: int, rounds: int = 1) -> None:
    """Accounts that hold exactly what so many lives will spend, and limits below them that hold exactly that too."""
    times = lives * rounds
    small = Fraction(1, 10**12)
    two = Budget(epsilon=2 * STEP * times, delta=small)
    with Ledger(location, marks=marks) as ledger:
        ledger.open_account("town", Budget(epsilon=5 * STEP * times, delta=small))
        ledger.open_account("city", Budget(epsilon=Fraction(40) * times, delta=Fraction(1, 10**6)))
        ledger.open_project("town", "study", two)
        ledger.grant("town", "ann", limit=two, project="study")
        ledger.grant("town", "bob", limit=two, project="study")


def _secret(account: str) -> Secret[int]:
    return Secret(1000, Facts(account=account, sensitivity=Sensitivity(l0=1, linf=Fraction(1))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One line of the script."""

    principal: str
    key: str
    reply: Callable[[Ledger], str]
    """The whole path, from reserve to the text that is replied."""


def script(prefix: str, rounds: int) -> Iterator[list[Question]]:
    """Round by round: paid, measured, paid by one and shared by another, refused, measured, served, and paid."""
    for number in range(rounds):
        yield list(_round(f"{prefix}-{number}"))


def _round(name: str) -> Iterator[Question]:
    small, large = Geometric(epsilon=STEP), Geometric(epsilon=Fraction(1 << 20))
    yield _answered(f"{name}-0", f"{name} alone", small)
    yield _measured(f"{name}-1", "city", Gaussian.at_rho(rho=RHO))
    yield _answered(f"{name}-2", f"{name} twice", small, draws=2, principal="ann")
    yield _answered(f"{name}-3", f"{name} twice", small, draws=2, principal="bob")
    yield _answered(f"{name}-4", f"{name} too dear", large)
    yield _measured(f"{name}-5", "town", small)
    yield _answered(f"{name}-6", f"{name} twice", small, draws=2)
    yield _answered(f"{name}-7", f"{name} at last", small)


def _answered(key: str, text: str, mechanism: Geometric, *, draws: int = 1, principal: str = OWNER) -> Question:
    ask = Ask(
        account="town",
        question=text,
        events=(mechanism.event,) * draws,
        epsilon=mechanism.epsilon,
        principal=principal,
        key=key,
    )

    def work(meter: Meter) -> str:
        return write([meter.measure(mechanism, _secret("town")).value for _ in range(draws)])

    return Question(principal=principal, key=key, reply=lambda ledger: answered(ledger, ask, work).answer)


def _measured(key: str, account: str, mechanism: Mechanism) -> Question:
    def reply(ledger: Ledger) -> str:
        return write(Meter.on(ledger).measure(mechanism, _secret(account), key=key).value)

    return Question(principal=OWNER, key=key, reply=reply)


def live(job: Job, prefix: str, *, point: str | None, armed_at: int) -> None:
    """Ask every question of the script in order, and arm the trap when the given one begins."""
    trap, witness = Trap(point), Witness(job.log)
    for owner, method, name in ((Meter, "_open", "read"), (Geometric, "draw", "draw"), (Gaussian, "draw", "draw")):
        mock.patch.object(owner, method, _trapped(getattr(owner, method), name, trap, witness)).start()
    rounds = list(script(prefix, job.rounds))
    ledger = TrappedLedger(job, trap, witness)

    def ask(mine: Sequence[tuple[int, list[Question]]]) -> None:
        try:
            for number, questions in mine:
                for index, question in enumerate(questions, start=number * QUESTIONS):
                    trap.armed = trap.armed or index == armed_at
                    _ask(ledger, question, trap, witness)
        except BaseException:
            witness.note("error", text=traceback.format_exc())
            os._exit(1)

    numbered = list(enumerate(rounds))
    threads = [threading.Thread(target=ask, args=(numbered[i :: job.threads],)) for i in range(1, job.threads)]
    for thread in threads:
        thread.start()
    ask(numbered[:: job.threads])
    for thread in threads:
        thread.join()
    ledger.close()


def _ask(ledger: Ledger, question: Question, trap: Trap, witness: Witness) -> None:
    witness.turn_to(question.principal, question.key)
    try:
        text = question.reply(ledger)
    except BudgetExceeded:
        return witness.note("refused")
    trap.reach("before-reply")
    witness.note("reply", text=text)
    trap.reach("after-reply")


def _trapped(method: Callable[..., Any], name: str, trap: Trap, witness: Witness) -> Callable[..., Any]:
    def around(*arguments: Any) -> Any:
        trap.reach(f"before-{name}")
        if name == "read":
            witness.note("read")
        result = method(*arguments)
        trap.reach(f"after-{name}")
        return result

    return around
