"""PostgreSQL restarted, cut off, or failing at the worst moments: the ledger refuses or recovers, and never lends."""

import shutil
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hubbub.errors import BudgetExceeded, LedgerFull, LedgerRolledBack, LedgerUnreachable
from hubbub.ledger import Ledger, Ticket
from hubbub.ledger.stores.postgres import PostgresSession, PostgresStore
from hubbub.ledger.stores.store import Interrupted
from hubbub.privacy.filter import Budget
from tests.ledger.asking import HALF, ask, charges
from tests.ledger.checking import findings
from tests.ledger.proxy import Proxy
from tests.postgres import PostgresServer, running_server

OpenLedger = Callable[..., Ledger]

_PATIENCE = 60.0
"""Nobody should give up in these tests only because the machine is busy."""


def opened(open_ledger: OpenLedger, location: Any, *, fits: int = 4, patience: float = _PATIENCE) -> Ledger:
    """A ledger with room for so many questions."""
    ledger = open_ledger(location, patience=patience)
    ledger.open_account("patients", Budget(epsilon=fits * HALF))
    return ledger


def assert_charged_once(ledger: Ledger, ticket: Ticket) -> None:
    """The account has paid for one question, and the ticket is for it."""
    found = findings(ledger)
    assert found.problems == []
    assert found.charges == 1
    [charge] = [entry for entry in ledger.entries() if entry.kind == "charge"]
    assert (ticket.entry, ticket.paid.loss) == (charge.seq, charge.content["loss"])
    assert charges(ledger) == 1


class TestRestarts:
    @pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
    def test_between_charges_it_is_not_noticed(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str, mode: str
    ) -> None:
        ledger = opened(open_ledger, postgres_url)
        first = ledger.reserve(ask("one", key="one"))
        postgres_server.restart(mode)
        assert charges(ledger) == 1
        assert ledger.reserve(ask("one", key="one")).entry == first.entry
        assert ledger.reserve(ask("two", key="two")).cost.loss > 0
        assert findings(ledger).problems == []

    @pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
    def test_while_four_threads_spend_all_that_fits_is_spent_once_and_no_more(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str, mode: str
    ) -> None:
        fits, each = 60, 20
        ledger = opened(open_ledger, postgres_url, fits=fits)
        paid: dict[str, Ticket] = {}
        refused: list[str] = []
        progress = threading.Condition()

        def spend(thread: int) -> None:
            for number in range(each):
                key = f"{thread}-{number}"
                try:
                    ticket = ledger.reserve(ask(key, key=key))
                except BudgetExceeded:
                    refused.append(key)
                    continue
                with progress:
                    paid[key] = ticket
                    progress.notify_all()

        threads = [threading.Thread(target=spend, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for reached in (8, 30):
            with progress:
                assert progress.wait_for(lambda: len(paid) >= reached, timeout=_PATIENCE)  # noqa: B023
            postgres_server.restart(mode)
        for thread in threads:
            thread.join()

        assert len(paid) == fits
        assert len(refused) == 4 * each - fits
        written = {entry.content["key"]: entry.seq for entry in ledger.entries() if entry.kind == "charge"}
        assert {key: ticket.entry for key, ticket in paid.items()} == written
        found = findings(ledger)
        assert found.problems == []
        assert found.charges == fits

    def test_a_server_that_stays_away_is_unreachable_and_lends_nothing(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        ledger = opened(open_ledger, postgres_url, patience=0.3)
        ledger.reserve(ask("one"))
        before = list(ledger.entries())
        postgres_server.stop()
        try:
            with pytest.raises(LedgerUnreachable, match=r"did not come back within 0\.3 seconds"):
                ledger.reserve(ask("two"))
            with pytest.raises(LedgerUnreachable, match=r"did not come back within 0\.3 seconds"):
                ledger.statement("patients")
            with pytest.raises(LedgerUnreachable, match="Check that its server runs"):
                open_ledger(postgres_url)
        finally:
            postgres_server.start()
        assert list(ledger.entries()) == before
        assert ledger.reserve(ask("two")).cost.loss > 0

    def test_an_old_backup_that_comes_back_under_a_living_ledger_is_refused(self, open_ledger: OpenLedger) -> None:
        with running_server() as server:
            data, backup = server.folder / "data", server.folder / "backup"
            ledger = opened(open_ledger, server.url())
            server.stop()
            shutil.copytree(data, backup, symlinks=True)
            _give_to_owner_of(data, backup)
            server.start()
            ledger.reserve(ask("spent"))
            server.stop()
            shutil.rmtree(data)
            backup.rename(data)
            server.start()
            for attempt in ("first", "second"):
                with pytest.raises(LedgerRolledBack, match="old backup"):
                    ledger.reserve(ask(attempt))
            ledger.close()


def _give_to_owner_of(original: Path, copy: Path) -> None:
    owner = original.stat()
    for path in (copy, *copy.rglob("*")):
        shutil.chown(path, owner.st_uid, owner.st_gid)


@pytest.fixture
def wire(postgres_server: PostgresServer, postgres_url: str) -> Iterator[Proxy]:
    """The way to a fresh place on the server."""
    with Proxy(postgres_server.folder, postgres_url) as proxy:
        yield proxy


class TestCuts:
    @pytest.mark.parametrize("times", [1, 3])
    @pytest.mark.parametrize("where", ["before", "sent", "after"])
    @pytest.mark.parametrize("key", ["key", None])
    def test_a_connection_that_is_cut_at_commit_charges_once(
        self, open_ledger: OpenLedger, wire: Proxy, key: str | None, where: str, times: int
    ) -> None:
        ledger = opened(open_ledger, wire.url)
        wire.cut(where, times=times)
        ticket = ledger.reserve(ask(key=key))
        committed = where == "after" or (where == "sent" and ticket.cost.loss == 0)
        assert wire.uncut == 0 if where == "before" else wire.uncut in (0, times - 1)
        assert (ticket.cost.loss == 0) is committed
        wire.cut("", times=0)
        assert_charged_once(ledger, ticket)
        ledger.close()

    def test_a_stored_answer_stays_the_one_when_the_server_s_word_is_lost(
        self, open_ledger: OpenLedger, wire: Proxy
    ) -> None:
        ledger = opened(open_ledger, wire.url)
        ticket = ledger.reserve(ask())
        wire.cut("after")
        assert ledger.settle(ticket, "42") == "42"
        assert wire.uncut == 0
        assert ledger.settle(ticket, "43") == "42"
        assert [entry.kind for entry in ledger.entries()] == ["ledger", "account", "charge", "answer"]
        ledger.close()

    def test_the_last_of_the_budget_is_not_refused_to_the_one_who_has_just_paid_it(
        self, open_ledger: OpenLedger, wire: Proxy
    ) -> None:
        ledger = opened(open_ledger, wire.url, fits=1)
        wire.cut("after")
        ticket = ledger.reserve(ask(key="key"))
        assert_charged_once(ledger, ticket)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("another"))
        ledger.close()

    def test_a_wire_that_is_cut_for_ever_is_unreachable_and_asking_again_finds_what_was_paid(
        self, open_ledger: OpenLedger, wire: Proxy
    ) -> None:
        """All that a caller is told is that it may have been charged, and to ask again with the same key."""
        ledger = opened(open_ledger, wire.url, patience=0.3)
        wire.cut("before", times=1_000_000)
        with pytest.raises(LedgerUnreachable, match="ask again with the same key"):
            ledger.reserve(ask(key="key"))
        wire.cut("", times=0)
        assert charges(ledger) == 0
        ticket = ledger.reserve(ask(key="key"))
        assert_charged_once(ledger, ticket)
        ledger.close()

    def test_a_ledger_that_was_made_when_the_wire_was_cut_is_there_at_the_next_try(
        self, open_ledger: OpenLedger, wire: Proxy
    ) -> None:
        wire.cut("after")
        with pytest.raises(LedgerUnreachable, match="went away while it was opened"):
            open_ledger(wire.url)
        assert wire.uncut == 0
        ledger = opened(open_ledger, wire.url)
        assert [entry.kind for entry in ledger.entries()] == ["ledger", "account"]
        ledger.close()

    def test_what_is_seen_of_one_moment_is_not_mixed_with_another(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        ledger = opened(open_ledger, postgres_url)
        session = ledger.store.reader()
        try:
            session.run(ledger.store.snapshot)
            assert session.rows("SELECT count(*) FROM entries") == [(2,)]
            ledger.reserve(ask())
            assert session.rows("SELECT count(*) FROM entries") == [(2,)]
            postgres_server.restart()
            with pytest.raises(Interrupted):
                session.rows("SELECT count(*) FROM entries")
            session.rollback()
            assert session.rows("SELECT count(*) FROM entries") == [(3,)]
        finally:
            session.close()


class _Watched(PostgresStore):
    """Something is done just before the writer's n-th statement that changes anything."""

    def __init__(self, url: str) -> None:
        super().__init__(url, patience=_PATIENCE)
        self.before: dict[int, Callable[[PostgresSession], None]] = {}
        self.statements = 0

    def writer(self) -> PostgresSession:
        return _WatchedSession(self, writes=True)


class _WatchedSession(PostgresSession):
    _store: _Watched

    def run(self, sql: str, *values: object) -> int:
        self._count()
        return super().run(sql, *values)

    def commit(self) -> None:
        self._count()
        super().commit()

    def _count(self) -> None:
        self._store.statements += 1
        action = self._store.before.pop(self._store.statements, None)
        if action is not None:
            with self._name_errors():
                action(self)


def _steps(store: _Watched, ledger: Ledger) -> int:
    """How many statements a charge takes."""
    store.statements = 0
    ledger.reserve(ask("to count"))
    return store.statements


class TestInTheMiddle:
    def test_a_backend_that_is_terminated_before_any_statement_charges_once(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        store = _Watched(postgres_url)
        ledger = opened(open_ledger, store, fits=100)
        steps = _steps(store, ledger)
        assert steps >= 5

        def terminate(session: PostgresSession) -> None:
            pid = session._connection.info.backend_pid
            assert postgres_server.execute(f"SELECT pg_terminate_backend({pid}, 10000)") == [(True,)]

        for step in range(1, steps + 1):
            store.statements, store.before = 0, {step: terminate}
            ticket = ledger.reserve(ask(f"step {step}", key=str(step)))
            assert store.before == {}
            assert ticket.cost.loss > 0
        found = findings(ledger)
        assert found.problems == []
        assert found.charges == steps + 1

    @pytest.mark.parametrize("problem", [psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected])
    def test_a_conflict_before_any_statement_charges_once(
        self, open_ledger: OpenLedger, postgres_url: str, problem: type[psycopg.Error]
    ) -> None:
        store = _Watched(postgres_url)
        ledger = opened(open_ledger, store, fits=100)
        steps = _steps(store, ledger)

        def conflict(session: PostgresSession) -> None:
            raise problem("injected")

        store.statements, store.before = 0, dict.fromkeys((1, 3, 4, 4 + steps), conflict)
        ticket = ledger.reserve(ask("contended", key="key"))
        assert store.before == {}
        assert ticket.cost.loss > 0
        assert findings(ledger).problems == []
        assert charges(ledger) == 2


class TestServerErrors:
    """Raised by the server itself, the first ``times`` times that a sequence (which no rollback resets) counts."""

    def fail(self, server: PostgresServer, url: str, code: str, *, times: int, when: str) -> None:
        trigger = {
            "commit": "CONSTRAINT TRIGGER failing AFTER UPDATE ON head DEFERRABLE INITIALLY DEFERRED",
            "write": "TRIGGER failing BEFORE INSERT ON entries",
        }[when]
        server.execute(
            "CREATE SEQUENCE injected; CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF nextval('injected') <= {times} THEN RAISE EXCEPTION 'injected' USING ERRCODE = '{code}'; END IF; "
            f"RETURN NEW; END $$; CREATE {trigger} FOR EACH ROW EXECUTE FUNCTION fail()",
            url=url,
        )

    @pytest.mark.parametrize("when", ["commit", "write"])
    @pytest.mark.parametrize("code", ["40001", "40P01"])
    def test_serialization_failures_and_deadlocks_are_tried_again_and_charged_once(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str, code: str, when: str
    ) -> None:
        ledger = opened(open_ledger, postgres_url)
        self.fail(postgres_server, postgres_url, code, times=3, when=when)
        ticket = ledger.reserve(ask())
        assert ticket.cost.loss > 0
        assert_charged_once(ledger, ticket)
        assert postgres_server.execute("SELECT last_value FROM injected", url=postgres_url) == [(4,)]

    @pytest.mark.parametrize("when", ["commit", "write"])
    def test_a_full_disk_refuses_and_when_there_is_room_again_it_goes_on(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str, when: str
    ) -> None:
        ledger = opened(open_ledger, postgres_url)
        self.fail(postgres_server, postgres_url, "53100", times=1, when=when)
        with pytest.raises(LedgerFull, match="Make room"):
            ledger.reserve(ask())
        assert charges(ledger) == 0
        assert_charged_once(ledger, ledger.reserve(ask()))

    def test_a_failure_of_the_server_s_disk_is_not_trusted_again(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        ledger = opened(open_ledger, postgres_url)
        self.fail(postgres_server, postgres_url, "58030", times=1, when="commit")
        for _ in range(2):
            with pytest.raises(LedgerUnreachable, match="cannot be trusted"):
                ledger.reserve(ask())
        assert charges(ledger) == 0


def test_a_loss_that_is_exactly_the_cap_fits_after_a_restart(
    open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str
) -> None:
    ledger = opened(open_ledger, postgres_url, fits=2)
    ledger.reserve(ask("one"))
    postgres_server.restart("immediate")
    ledger.reserve(ask("two"))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("three", epsilon=Fraction(1, 1 << 30)))
    assert ledger.statement("patients").left.loss == 0
