"""The one who writes: nobody is answered before the commit, and nobody pays for another's mistake."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import BudgetExceeded, LedgerCorrupt, LedgerError, LedgerFull, LedgerRolledBack, LedgerUnreachable
from hubbub.ledger import Ledger, Marks, Ticket, rules
from hubbub.ledger.book import Transaction
from hubbub.ledger.stores.sqlite import SqliteSession, SqliteStore
from hubbub.ledger.stores.store import Head, Interrupted
from hubbub.ledger.stores.writer import Writer
from tests.ledger.faults import ACCOUNT, FIT, check_refusal, eventually, outcome, question, stocked


class Hooked(SqliteSession):
    """A session that says what it does before it does it, or instead."""

    hooks: "HookedStore"

    def begin(self) -> None:
        self.hooks.before_begin()
        super().begin()

    def commit(self) -> None:
        self.hooks.commits += 1
        self.hooks.before_commit()
        super().commit()
        self.hooks.after_commit()


class HookedStore(SqliteStore):
    """A real store whose commits can be held up, cut off or made to fail."""

    def __init__(self, path: Path, *, patience: float = 5.0) -> None:
        super().__init__(path, patience=patience)
        self.commits = self.sessions = 0
        self.before_begin: Callable[[], None] = lambda: None
        self.before_commit: Callable[[], None] = lambda: None
        self.after_commit: Callable[[], None] = lambda: None

    def writer(self) -> Hooked:
        self.sessions += 1
        session = Hooked(self, writes=True)
        session.hooks = self
        return session


@dataclass
class Desk:
    """A writer, and what it told."""

    store: HookedStore
    writer: Writer
    heads: list[Head] = field(default_factory=list)
    admit: Callable[[Transaction], None] = lambda _: None
    committed: Callable[[], None] = lambda: None

    def reserve(self, name: str) -> Ticket:
        return self.writer.run(lambda tx: rules.reserve(tx, question(name)))


def _charged(session: SqliteSession) -> list[str]:
    rows = session.rows("SELECT key FROM keys JOIN charges ON charge = seq ORDER BY seq")
    return [key for (key,) in rows]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A writer at a ledger with an account."""
    with sitting(tmp_path) as desk:
        yield desk


@contextmanager
def sitting(folder: Path, *, patience: float = 5.0) -> Iterator[Desk]:
    stocked(folder / "ledger.db", Marks(folder / "state"))
    store = HookedStore(folder / "ledger.db", patience=patience)
    told: list[Desk] = []

    def committed(head: Head) -> None:
        told[0].committed()
        told[0].heads.append(head)

    def admit(tx: Transaction) -> None:
        told[0].admit(tx)

    writer = Writer(store, clock=lambda: 1, admit=admit, committed=committed, patience=patience)
    told.append(Desk(store, writer))
    try:
        yield told[0]
    finally:
        writer.close()


def keys_in(desk: Desk) -> list[str]:
    """What has been paid for, as anyone else sees it."""
    session = SqliteStore(desk.store.path).reader()
    try:
        return _charged(session)
    finally:
        session.close()


class Together:
    """Pieces of work that wait together: the writer is held up by a first one until all of them are there."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._threads: list[threading.Thread] = []
        self.results: dict[str, Any] = {}

    def __enter__(self) -> "Together":
        self._go, began = threading.Event(), threading.Event()

        def first(tx: Transaction) -> None:
            began.set()
            self._go.wait()

        self._start("", first)
        began.wait()
        return self

    def add(self, name: str, work: Callable[[Transaction], Any]) -> None:
        """One more, behind those that are there."""
        waiting = self._desk.writer._tasks
        before = waiting.qsize()
        self._start(name, work)
        while waiting.qsize() == before:
            time.sleep(0.0005)

    def _start(self, name: str, work: Callable[[Transaction], Any]) -> None:
        def ask() -> None:
            try:
                self.results[name] = self._desk.writer.run(work)
            except Exception as problem:
                self.results[name] = problem

        thread = threading.Thread(target=ask)
        thread.start()
        self._threads.append(thread)

    def __exit__(self, *_: object) -> None:
        self._go.set()
        for thread in self._threads:
            thread.join()


def reserving(name: str) -> Callable[[Transaction], Ticket]:
    """A piece of work."""
    return lambda tx: rules.reserve(tx, question(name))


def test_nobody_is_answered_before_the_commit(desk: Desk) -> None:
    reached, go = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        go.wait()

    desk.store.before_commit = hold
    answers: list[Ticket] = []
    thread = threading.Thread(target=lambda: answers.append(desk.reserve("a")))
    thread.start()
    reached.wait()
    assert answers == []
    assert keys_in(desk) == []
    go.set()
    thread.join()
    assert [ticket.entry for ticket in answers] == [3]
    assert keys_in(desk) == ["a"]


def test_nobody_is_answered_before_the_mark_is_raised(desk: Desk) -> None:
    reached, go = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        go.wait()

    desk.committed = hold
    answers: list[Ticket] = []
    thread = threading.Thread(target=lambda: answers.append(desk.reserve("a")))
    thread.start()
    reached.wait()
    assert keys_in(desk) == ["a"]
    assert answers == []
    go.set()
    thread.join()
    assert [head.seq for head in desk.heads] == [answers[0].entry] == [3]


def test_whoever_waits_together_is_committed_together_in_order(desk: Desk) -> None:
    with Together(desk) as together:
        for name in "abcdef":
            together.add(name, reserving(name))
    assert keys_in(desk) == list("abcdef")
    assert [together.results[name].entry for name in "abcdef"] == [3, 4, 5, 6, 7, 8]
    assert desk.store.commits == 1
    assert [head.seq for head in desk.heads] == [2, 8]


def test_the_last_unit_goes_to_whoever_came_first(desk: Desk) -> None:
    names = [str(n) for n in range(FIT + 3)]
    with Together(desk) as together:
        for name in names:
            together.add(name, reserving(name))
    assert keys_in(desk) == names[:FIT]
    assert [type(together.results[name]) for name in names] == [Ticket] * FIT + [BudgetExceeded] * 3


@pytest.mark.parametrize("problem", [ZeroDivisionError("a bug"), BudgetExceeded("too dear"), KeyError("x")])
@pytest.mark.parametrize("written", [False, True])
def test_one_who_fails_takes_nobody_along_and_leaves_nothing(problem: Exception, written: bool, desk: Desk) -> None:
    calls: list[str] = []

    def failing(tx: Transaction) -> None:
        if written:
            rules.reserve(tx, question("never"))
        raise problem

    def counted(name: str) -> Callable[[Transaction], Ticket]:
        def work(tx: Transaction) -> Ticket:
            calls.append(name)
            return rules.reserve(tx, question(name))

        return work

    with Together(desk) as together:
        together.add("a", counted("a"))
        together.add("bad", failing)
        together.add("b", counted("b"))
    assert together.results["bad"] is problem
    assert keys_in(desk) == ["a", "b"]
    assert [together.results[name].entry for name in "ab"] == [3, 4]
    assert desk.store.commits == 1
    assert calls == (["a", "a", "b"] if written else ["a", "b"])
    assert desk.reserve("c").entry == 5


def test_one_who_finds_the_ledger_wanting_stops_everyone(desk: Desk) -> None:
    def finding(tx: Transaction) -> None:
        raise LedgerFull("There is no room. Make some.")

    with Together(desk) as together:
        together.add("a", reserving("a"))
        together.add("full", finding)
        together.add("b", reserving("b"))
    assert {type(together.results[name]) for name in ("a", "full", "b")} == {LedgerFull}
    assert keys_in(desk) == []
    assert [desk.reserve(name).entry for name in "ab"] == [3, 4]


@pytest.mark.parametrize(
    "problem", [LedgerCorrupt("Damaged. Restore it."), LedgerUnreachable("The disk fails. Look at it.", final=True)]
)
def test_a_ledger_that_cannot_be_trusted_is_not_trusted_again(problem: LedgerError, desk: Desk) -> None:
    def finding(tx: Transaction) -> None:
        raise problem

    sessions = desk.store.sessions
    assert outcome(lambda: desk.writer.run(finding)) is problem
    for name in "ab":
        check_refusal(outcome(lambda name=name: desk.reserve(name)), type(problem))
    assert keys_in(desk) == []
    assert desk.store.sessions == sessions + 1


def test_nothing_is_done_in_a_transaction_that_is_not_admitted(desk: Desk) -> None:
    def refuse(tx: Transaction) -> None:
        raise LedgerRolledBack("An old backup. Put the right one back.")

    called: list[int] = []
    desk.admit = refuse
    check_refusal(outcome(lambda: desk.writer.run(lambda tx: called.append(1))), LedgerRolledBack)
    assert called == []
    desk.admit = lambda tx: None
    assert desk.reserve("a").entry == 3


def test_a_commit_that_fails_answers_nobody(desk: Desk) -> None:
    def fail() -> None:
        raise LedgerFull("There is no room. Make some.")

    desk.store.before_commit = fail
    with Together(desk) as together:
        for name in "ab":
            together.add(name, reserving(name))
    assert {type(together.results[name]) for name in "ab"} == {LedgerFull}
    assert keys_in(desk) == []
    assert [head.seq for head in desk.heads] == [2]
    desk.store.before_commit = lambda: None
    assert [desk.reserve(name).entry for name in "ab"] == [3, 4]


@pytest.mark.parametrize("durable", [False, True])
def test_a_commit_of_unknown_fate_is_looked_up_and_charged_once(durable: bool, desk: Desk) -> None:
    cuts = [Interrupted("cut")] * 2

    def cut() -> None:
        if cuts:
            raise cuts.pop()

    if durable:
        desk.store.after_commit = cut
    else:
        desk.store.before_commit = cut
    with Together(desk) as together:
        for name in "ab":
            together.add(name, reserving(name))
    assert [together.results[name].entry for name in "ab"] == [3, 4]
    assert keys_in(desk) == ["a", "b"]
    if durable:
        assert len(cuts) == 1, "the second time there is nothing to write"
        assert together.results["a"].cost.loss == 0
        assert [head.seq for head in desk.heads] == [2, 4], "and yet it is known how far the ledger has got"
    else:
        assert cuts == []


def test_a_server_that_does_not_come_back_is_given_up(tmp_path: Path) -> None:
    with sitting(tmp_path, patience=0.1) as desk:

        def cut() -> None:
            raise Interrupted("gone")

        desk.store.before_begin = cut
        check_refusal(outcome(lambda: desk.reserve("a")), LedgerUnreachable)
        desk.store.before_begin = lambda: None
        assert keys_in(desk) == []
        assert eventually(lambda: desk.reserve("a")).entry == 3


def test_a_mark_that_cannot_be_kept_answers_nobody_though_it_is_charged(desk: Desk) -> None:
    def fail() -> None:
        raise LedgerUnreachable("The marks cannot be kept. Set HUBBUB_STATE.")

    desk.committed = fail
    with Together(desk) as together:
        for name in "ab":
            together.add(name, reserving(name))
    assert {type(together.results[name]) for name in "ab"} == {LedgerUnreachable}
    assert keys_in(desk) == ["a", "b"]
    desk.committed = lambda: None
    tickets = [desk.reserve(name) for name in "ab"]
    assert [(ticket.entry, ticket.cost.loss) for ticket in tickets] == [(3, 0), (4, 0)]
    assert [head.seq for head in desk.heads] == [4], "before the first ticket is given"
    assert keys_in(desk) == ["a", "b"]


def test_what_writes_nothing_commits_nothing(desk: Desk) -> None:
    for _ in range(3):
        assert desk.writer.run(lambda tx: tx.head.seq) == 2
    assert desk.store.commits == 0
    assert [head.seq for head in desk.heads] == [2], "told once"


def test_what_has_not_begun_when_its_asker_gives_up_is_never_done(tmp_path: Path) -> None:
    with sitting(tmp_path, patience=0.05) as desk:
        with Together(desk):
            check_refusal(outcome(lambda: desk.reserve("a")), LedgerUnreachable)
        assert eventually(lambda: desk.reserve("b")).entry == 3
        assert keys_in(desk) == ["b"]


def test_closing_finishes_what_waits_and_takes_nothing_more(desk: Desk) -> None:
    with Together(desk) as together:
        for name in "abc":
            together.add(name, reserving(name))
        closing = threading.Thread(target=desk.writer.close)
        closing.start()
        while not desk.writer._closed:
            time.sleep(0.0005)
        check_refusal(outcome(lambda: desk.reserve("late")), LedgerUnreachable)
    closing.join()
    assert [together.results[name].entry for name in "abc"] == [3, 4, 5]
    assert keys_in(desk) == ["a", "b", "c"]
    desk.writer.close()
    check_refusal(outcome(lambda: desk.reserve("late")), LedgerUnreachable)
    assert not desk.writer._thread.is_alive()


def test_an_interrupted_charge_through_the_ledger_is_charged_once(tmp_path: Path) -> None:
    path, marks = tmp_path / "ledger.db", Marks(tmp_path / "state")
    stocked(path, marks)
    store = HookedStore(path)
    cuts = [Interrupted("cut")]

    def cut() -> None:
        if cuts:
            raise cuts.pop()

    with Ledger(store, marks=marks) as ledger:
        store.after_commit = cut
        ticket = ledger.reserve(question("a"))
        assert cuts == []
        assert ticket.answer is None
        assert ledger.statement(ACCOUNT).spent.charges == 1
        again = ledger.reserve(question("a"))
        assert again.entry == ticket.entry
