"""What is PostgreSQL's own: its guards, its settings, its locks, its roles, and what it says about itself."""

import os
import socket
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import psycopg
import pytest

from hubbub.errors import (
    HubbubError,
    LedgerCorrupt,
    LedgerFormat,
    LedgerFull,
    LedgerReadOnly,
    LedgerRolledBack,
    LedgerUnreachable,
    ParameterError,
)
from hubbub.ledger import Ledger, Marks
from hubbub.ledger.stores.postgres import PostgresSession, PostgresStore
from hubbub.ledger.stores.store import Interrupted
from hubbub.privacy.filter import Budget
from tests.ledger.asking import ask
from tests.postgres import PostgresServer, running_server

OpenLedger = Callable[..., Ledger]
ONE = Budget(epsilon=Fraction(1))


@pytest.fixture
def ledger(open_ledger: OpenLedger, postgres_url: str) -> Ledger:
    """A ledger with one account, of which each question takes half."""
    ledger = open_ledger(postgres_url)
    ledger.open_account("patients", ONE)
    return ledger


def changing(server: PostgresServer, url: str, sql: str) -> None:
    """As someone who has every right that PostgreSQL can give."""
    server.execute(sql, url=url)


class TestGuards:
    @pytest.mark.parametrize(
        "sql",
        [
            "UPDATE entries SET time = time + 1",
            "UPDATE entries SET body = '' WHERE seq = 1",
            "DELETE FROM entries WHERE seq = 2",
            "TRUNCATE entries",
        ],
    )
    def test_entries_cannot_be_changed_or_deleted_even_by_the_owner(
        self, ledger: Ledger, postgres_server: PostgresServer, postgres_url: str, sql: str
    ) -> None:
        before = list(ledger.entries())
        with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
            changing(postgres_server, postgres_url, sql)
        assert list(ledger.entries()) == before

    def test_the_store_calls_an_attempt_to_change_an_entry_damage(self, ledger: Ledger) -> None:
        session = ledger.store.writer()
        try:
            session.begin()
            with pytest.raises(LedgerCorrupt, match="append-only"):
                session.run("DELETE FROM entries WHERE seq = ?", 2)
            session.rollback()
        finally:
            session.close()

    def test_text_is_ordered_by_bytes_whatever_the_database_thinks(
        self, ledger: Ledger, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        found = postgres_server.execute(
            "SELECT count(*), count(*) FILTER (WHERE collation_name = 'C') FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND data_type = 'text'",
            url=postgres_url,
        )
        assert found[0][0] == found[0][1] >= 20


class TestValues:
    def test_numbers_and_text_come_back_as_they_come_from_sqlite(self, ledger: Ledger) -> None:
        session = ledger.store.reader()
        try:
            rows = session.rows(
                "SELECT seq, time, kind, (SELECT count(*) FROM facts), NULL FROM entries WHERE seq = ?", 1
            )
        finally:
            session.close()
        assert [type(value) for value in rows[0]] == [int, int, str, int, type(None)]

    @pytest.mark.parametrize("name", ["a\0b", "\ud800"])
    def test_text_that_cannot_be_kept_is_the_asker_s_mistake_and_stops_nobody_else(
        self, ledger: Ledger, name: str
    ) -> None:
        with pytest.raises(HubbubError) as caught:
            ledger.grant(name, "ada")
        assert not isinstance(caught.value, LedgerUnreachable)
        assert ledger.reserve(ask()).cost.loss > 0


class TestLocation:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("postgresql://ada:s3cret@db.example:5433/books", "postgresql://ada@db.example:5433/books"),
            ("postgres://ada:s3cret@db.example/books?sslmode=require", "postgresql://ada@db.example/books"),
            ("postgresql://db.example/books?user=ada&password=s3cret", "postgresql://ada@db.example/books"),
            ("postgresql://ada:s3?cret@db.example/books", "postgresql://ada@db.example/books"),
            ("postgresql://ada:s3cret@/books?host=/run/pg", "postgresql://ada@/books?host=/run/pg"),
            (
                "postgresql://ada:s3cret@a,b/books?options=-csearch_path%3Dx&sslpassword=s3cret",
                "postgresql://ada@a,b/books?options=-csearch_path%3Dx",
            ),
        ],
    )
    def test_it_tells_ledgers_apart_and_holds_no_password(self, url: str, shown: str) -> None:
        store = PostgresStore(url)
        assert store.location == shown
        assert "cret" not in repr(store)

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://ada:s3cret/x@db.example/books",
            "postgresql://ada:s3cret/books",
            "postgresql://ada:12/s3cret@db.example/books",
            "postgresql://ada@db.example/books?s3cret",
            "postgresql://ada:s3cret@[db.example/books",
        ],
    )
    def test_a_url_that_cannot_be_read_is_not_shown(self, url: str) -> None:
        with pytest.raises(ParameterError, match="%40 for @") as caught:
            PostgresStore(url)
        assert "cret" not in str(caught.value)
        assert caught.value.__cause__ is None

    def test_nobody_at_home_is_unreachable_with_a_remedy_and_without_the_password(
        self, marks: Marks, tmp_path: Any
    ) -> None:
        with pytest.raises(LedgerUnreachable, match="Check that its server runs") as caught:
            Ledger(f"postgresql://ada:s3cret@/books?host={tmp_path}", marks=marks)
        assert "s3cret" not in str(caught.value)

    def test_a_database_that_is_not_there_is_unreachable(self, marks: Marks, postgres_server: PostgresServer) -> None:
        with pytest.raises(LedgerUnreachable, match="does not exist"):
            Ledger(postgres_server.url("nowhere"), marks=marks)


class TestSchemas:
    def test_two_schemas_of_a_database_are_two_ledgers(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer
    ) -> None:
        one, other = (open_ledger(postgres_server.fresh_schema()) for _ in range(2))
        one.open_account("patients", ONE)
        one.reserve(ask())
        other.open_account("patients", ONE)
        assert one.name != other.name
        assert [entry.kind for entry in one.entries()] == ["ledger", "account", "charge"]
        assert [entry.kind for entry in other.entries()] == ["ledger", "account"]
        assert other.statement("patients").spent.loss == 0

    def test_writers_of_different_schemas_do_not_wait_for_each_other(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer
    ) -> None:
        held = PostgresStore(postgres_server.fresh_schema(), patience=60).writer()
        try:
            held.begin()
            opened = open_ledger(postgres_server.fresh_schema(), patience=1).open_account("patients", ONE)
            assert opened.budget == ONE
        finally:
            held.close()

    def test_a_schema_that_is_not_there_has_no_lock_so_it_is_refused(
        self, marks: Marks, postgres_server: PostgresServer
    ) -> None:
        with pytest.raises(LedgerUnreachable, match="CREATE SCHEMA"):
            Ledger(postgres_server.url(schema="nowhere"), marks=marks)

    def test_a_schema_that_was_dropped_is_a_ledger_that_is_gone(
        self, ledger: Ledger, marks: Marks, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        ledger.close()
        [(schema,)] = postgres_server.execute("SELECT current_schema()", url=postgres_url)
        postgres_server.execute(f"DROP SCHEMA {schema} CASCADE")
        with pytest.raises(LedgerRolledBack, match="it is gone"):
            Ledger(postgres_url, marks=marks)

    @pytest.mark.parametrize("table", ["head (x INTEGER)", "entries (x INTEGER)"])
    def test_the_tables_of_others_are_left_alone(
        self, marks: Marks, postgres_server: PostgresServer, postgres_url: str, table: str
    ) -> None:
        changing(postgres_server, postgres_url, f"CREATE TABLE {table}")
        with pytest.raises(LedgerFormat, match="schema of its own"):
            Ledger(postgres_url, marks=marks)
        found = postgres_server.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()", url=postgres_url
        )
        assert found == [(1,)]

    def test_a_schema_that_comes_first_later_does_not_divert_a_writer(
        self, open_ledger: OpenLedger, postgres_server: PostgresServer
    ) -> None:
        database = postgres_server.fresh_database()
        ledger = open_ledger(database)
        ledger.open_account("patients", ONE)
        changing(postgres_server, database, "CREATE SCHEMA hubbub; CREATE TABLE hubbub.head AS SELECT * FROM head")
        assert ledger.reserve(ask()).entry == 3
        found = postgres_server.execute(
            "SELECT public.head.seq, hubbub.head.seq FROM public.head, hubbub.head", url=database
        )
        assert found == [(3, 2)]

    def test_a_database_that_cannot_hold_every_name_is_refused(
        self, marks: Marks, postgres_server: PostgresServer
    ) -> None:
        latin = postgres_server.fresh_database(more="ENCODING 'LATIN1' TEMPLATE template0")
        with pytest.raises(LedgerUnreachable, match=r"LATIN1.*ENCODING 'UTF8'"):
            Ledger(latin, marks=marks)


class TestLocks:
    def test_a_lock_that_is_held_too_long_is_unreachable_and_the_next_try_succeeds(
        self, open_ledger: OpenLedger, postgres_url: str
    ) -> None:
        ledger = open_ledger(postgres_url, patience=0.3)
        ledger.open_account("patients", ONE)
        holder = PostgresStore(postgres_url, patience=60).writer()
        try:
            holder.begin()
            with pytest.raises(LedgerUnreachable, match="Another program holds the ledger"):
                ledger.reserve(ask())
            holder.rollback()
            assert ledger.reserve(ask()).cost.loss > 0
        finally:
            holder.close()
        assert [entry.kind for entry in ledger.entries()] == ["ledger", "account", "charge"]

    def test_a_writer_waits_until_the_other_has_ended_and_then_sees_what_it_wrote(
        self, ledger: Ledger, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        one, other = ledger.store.writer(), ledger.store.writer()
        seen: list[Any] = []
        try:
            one.begin()
            one.run("UPDATE head SET time = time + ?", 1)
            [(before,)] = one.rows("SELECT time FROM head")

            def second() -> None:
                other.begin()
                seen.extend(other.rows("SELECT time FROM head"))
                other.rollback()

            thread = threading.Thread(target=second)
            thread.start()
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while postgres_server.execute(waiting) == [(0,)]:
                assert thread.is_alive()
            assert seen == []
            one.commit()
            thread.join()
            assert seen == [(before,)]
        finally:
            one.close()
            other.close()

    def test_a_writer_that_was_stopped_in_the_middle_does_not_stop_the_others(
        self, open_ledger: OpenLedger, postgres_url: str
    ) -> None:
        ledger = open_ledger(postgres_url, patience=20)
        ledger.open_account("patients", ONE)
        stopped = PostgresStore(postgres_url, patience=0.2).writer()
        try:
            stopped.begin()
            stopped.run("UPDATE head SET seq = seq + 1")
            assert ledger.reserve(ask()).cost.loss > 0
            with pytest.raises(Interrupted):
                stopped.commit()
        finally:
            stopped.close()
        assert [entry.seq for entry in ledger.entries()] == [1, 2, 3]


class TestSettings:
    @pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
    def test_a_server_that_could_forget_commits_is_refused(self, marks: Marks, setting: str) -> None:
        with running_server({setting: "off"}) as server:
            with pytest.raises(LedgerUnreachable, match=f"{setting} = off.*Set {setting} = on"):
                Ledger(server.url(), marks=marks)
            assert server.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]

    def test_a_setting_that_is_changed_while_we_are_connected_is_noticed(
        self, ledger: Ledger, postgres_server: PostgresServer
    ) -> None:
        ledger.reserve(ask("before"))
        postgres_server.execute("ALTER SYSTEM SET full_page_writes = off")
        try:
            postgres_server.restart()  # the command line of the server does not name this setting
            with pytest.raises(LedgerUnreachable, match="full_page_writes = off"):
                ledger.reserve(ask("during"))
        finally:
            postgres_server.execute("ALTER SYSTEM RESET ALL")
            postgres_server.restart()
        assert ledger.reserve(ask("after")).entry == 4

    @pytest.mark.parametrize(
        ("found", "used"),
        [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
    )
    def test_commits_wait_for_the_disk_whatever_the_role_is_used_to(
        self, ledger: Ledger, postgres_server: PostgresServer, postgres_url: str, found: str, used: str
    ) -> None:
        session = PostgresStore(f"{postgres_url}%20-csynchronous_commit%3D{found}").writer()
        try:
            session.begin()
            assert session.rows("SELECT current_setting('synchronous_commit')") == [(used,)]
            session.rollback()
        finally:
            session.close()

    def test_a_commit_that_the_server_warns_about_is_not_taken_for_durable(self, ledger: Ledger) -> None:
        session = ledger.store.writer()
        try:
            session.begin()
            session.run(
                "CREATE FUNCTION doubt() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE WARNING 'not replicated'; RETURN NULL; END $$"
            )
            session.run(
                "CREATE CONSTRAINT TRIGGER doubts AFTER UPDATE ON head DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION doubt()"
            )
            session.commit()
            session.begin()
            session.run("UPDATE head SET seq = seq")
            with pytest.raises(Interrupted, match="not replicated"):
                session.commit()
        finally:
            session.close()

    def test_a_commit_that_became_a_rollback_is_not_taken_for_one(self, ledger: Ledger) -> None:
        session = ledger.store.writer()
        try:
            session.begin()
            with pytest.raises(HubbubError):
                session.run("SELECT no_such_function()")
            with pytest.raises(Interrupted, match="ROLLBACK"):
                session.commit()
        finally:
            session.close()


class TestRoles:
    def test_a_role_that_may_only_look_can_look_and_cannot_pay(
        self, ledger: Ledger, open_ledger: OpenLedger, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        ledger.reserve(ask())
        [(schema,)] = postgres_server.execute("SELECT current_schema()", url=postgres_url)
        role = f"looker_{schema}"
        postgres_server.execute(
            f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; "
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        )
        looker = open_ledger(postgres_server.url(schema=schema, user=role))
        assert looker.statement("patients").spent.charges == 1
        with pytest.raises(LedgerReadOnly, match="permission denied"):
            looker.reserve(ask("another"))
        assert len(list(ledger.entries())) == 3

    def test_a_standby_can_be_looked_at_and_not_paid_from(self, open_ledger: OpenLedger) -> None:
        with running_server() as server:
            ledger = open_ledger(server.url(), patience=60)
            ledger.open_account("patients", ONE)
            server.stop()
            (server.folder / "data" / "standby.signal").touch()
            server.start()
            assert ledger.statement("patients").spent.charges == 0
            with pytest.raises(LedgerReadOnly, match="is a standby"):
                ledger.reserve(ask())
            server.execute("SELECT pg_promote()")
            assert ledger.reserve(ask()).cost.loss > 0
            ledger.close()

    def test_readers_cannot_write(self, ledger: Ledger) -> None:
        session = ledger.store.reader()
        try:
            with pytest.raises(LedgerReadOnly, match="read-only"):
                session.run("UPDATE head SET seq = seq + 1")
        finally:
            session.close()


class TestFailures:
    @pytest.mark.parametrize(
        ("code", "error", "final"),
        [
            ("53100", LedgerFull, None),
            ("25006", LedgerReadOnly, None),
            ("42501", LedgerReadOnly, None),
            ("23505", LedgerCorrupt, True),
            ("XX001", LedgerCorrupt, True),
            ("XX002", LedgerCorrupt, True),
            ("55P03", LedgerUnreachable, None),
            ("53200", LedgerUnreachable, None),
            ("58030", LedgerUnreachable, True),
            ("XX000", LedgerUnreachable, True),
            ("40001", Interrupted, None),
            ("40P01", Interrupted, None),
            ("57014", Interrupted, None),
            ("08006", Interrupted, None),
        ],
    )
    def test_each_failure_of_the_server_has_its_name(
        self, ledger: Ledger, code: str, error: type[Exception], final: bool | None
    ) -> None:
        session = ledger.store.writer()
        try:
            session.begin()
            with pytest.raises(error) as caught:
                session.run(f"DO $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '{code}'; END $$")
            assert type(caught.value) is error
            if isinstance(caught.value, HubbubError):
                assert caught.value.operands.get("final") is final
            session.rollback()
            session.begin()
            session.rollback()
        finally:
            session.close()


class TestForks:
    def test_a_child_leaves_its_parent_s_connections_alone(
        self, ledger: Ledger, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        ledger.reserve(ask("parent"))
        session = PostgresStore(postgres_url).writer()
        number = session._connection.fileno()
        try:
            session.begin()
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = 0 if _nothing_is_said(session, number) else 2
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert session.rows("SELECT count(*) FROM entries") == [(3,)]
            session.rollback()
        finally:
            session.close()
        assert ledger.reserve(ask("parent again")).entry == 4

    def test_parent_and_child_both_go_on_paying(self, ledger: Ledger) -> None:
        ledger.reserve(ask("one"))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if ledger.reserve(ask("two")).cost.loss > 0 else 3
                ledger.close()
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with pytest.raises(HubbubError, match="ε"):
            ledger.reserve(ask("three"))
        assert ledger.statement("patients").spent.charges == 2


def _nothing_is_said(session: PostgresSession, number: int) -> bool:
    """The child does not hold the socket, and closing the session does not touch what has its number now."""
    try:
        os.fstat(number)
    except OSError:
        ours, theirs = socket.socketpair()
        os.dup2(ours.fileno(), number)
        session.close()
        os.fstat(number)
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        return True
    return False


def test_without_psycopg_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, marks: Marks) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "hubbub.ledger.stores.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(HubbubError, match=r'psycopg is not installed. Run: pip install "hubbub\[postgres\]"'):
        Ledger("postgresql://ada@db.example/books", marks=marks)
