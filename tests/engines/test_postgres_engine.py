"""Questions on a server, from the session down: one snapshot, one charge, one error; and nothing secret in its log."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

import hubbub as hb
from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.postgres import engine as engine_module
from hubbub.engines.postgres.connection import Cursor, connect, draw_secrets, hold_snapshot
from hubbub.engines.postgres.engine import Postgres
from hubbub.errors import DataChanged, EngineError, PolicyError
from hubbub.gate.secret import open_sealed
from hubbub.ledger import Ledger, Marks
from hubbub.policy.build import single_table
from hubbub.policy.paths import PathStep
from hubbub.policy.servers import postgres
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy, Table
from hubbub.privacy.filter import Budget
from hubbub.query.requests import Tallies
from hubbub.session.database import Database
from tests.postgres import PostgresServer, running_server

LIMITS = Limits(max_groups=2, max_rows=5, seconds=30, memory="500MB", buy=False)
TABLES = """
CREATE TABLE people (id bigint PRIMARY KEY, born integer);
CREATE TABLE stays (stay bigint PRIMARY KEY, person bigint, ward text, cost double precision);
CREATE TABLE items (stay bigint, price integer);
CREATE TABLE wards (ward text PRIMARY KEY, floor integer);
INSERT INTO people SELECT i, 1950 + i FROM generate_series(1, 40) AS i;
INSERT INTO stays SELECT i, 1 + i % 40, (ARRAY['a', 'b', 'c'])[1 + i % 3], i % 50 FROM generate_series(1, 120) AS i;
INSERT INTO items SELECT 1 + i % 120, i % 10 FROM generate_series(1, 360) AS i;
INSERT INTO wards VALUES ('a', 1), ('b', 2), ('c', 2);
"""
COUNTS = "SELECT ward, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward"
BY_STAY = PathStep(column="stay", table="stays", key="stay")


class Hospital:
    """A database of its own, and questions about it by the whole path."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.url = server.fresh_database()
        self.execute(TABLES)
        self.told: list[str] = []
        self.engine = Postgres(limits=LIMITS, dsn=self.url, log=self.told.append)
        self.policy = Policy(
            account="people",
            budget=Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10**3)),
            tables={
                table.name: table
                for table in (
                    self.table("people", unit="id", uniques={"id": True}, unique=True),
                    self.table(
                        "stays", unit="person", uniques={"stay": True}, bounds={"cost": (0, 50)},
                        keys={"ward": ["a", "b", "c"]},
                    ),
                    self.table("items", unit=BY_STAY, bounds={"price": (0, 9)}),
                    self.table("wards", unit=None),
                )
            },
            limits=LIMITS,
            enforced=frozenset({"people"}),
            enforced_keys=frozenset({("stays", "stay"), ("people", "id")}),
            seen={"stays": NO_FILES, "people": NO_FILES},
        )  # fmt: skip
        self.ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))
        self.ledger.open_account(self.policy.account, self.policy.budget)
        self.db = Database(self.policy, ledger=self.ledger, engine=self.engine)

    def table(self, name: str, **declared: Any) -> Table:
        source = postgres(self.url, table=name)
        return single_table(name=name, source=source, schema=self.engine.describe(source), **declared)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return self.server.execute(statement, url=self.url)

    def exact(self, text: str) -> list[tuple[int, ...]]:
        """The exact tallies, group by group."""
        plan = self.db.plan(text, epsilon=1)
        return list(self.run(plan.aggregate).tallies)

    def run(self, aggregate: Any) -> Any:
        return open_sealed(self.engine.prepare(Tallies(aggregate=aggregate), tables=self.policy.tables)())


@pytest.fixture
def hospital(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[Hospital]:
    made = Hospital(postgres_server, tmp_path)
    yield made
    made.ledger.close()


def test_exact_numbers_by_a_unit_a_path_and_a_public_join(hospital: Hospital) -> None:
    limits = Limits(max_groups=50, max_rows=500, buy=False)
    hospital.policy = replace(hospital.policy, limits=limits)
    hospital.db = Database(hospital.policy, ledger=hospital.ledger, engine=hospital.engine)
    assert [row[0] for row in hospital.exact("SELECT ward, count(*) AS n FROM stays GROUP BY ward")] == [40, 40, 40]
    assert hospital.exact("SELECT count(*) AS n FROM items") == [(360,)]
    assert hospital.exact("SELECT sum(price) AS n FROM items")[0][0] == sum(i % 10 for i in range(1, 361))
    assert hospital.exact("SELECT count(*) AS n FROM people") == [(40,)]
    floors = "SELECT floor, count(*) AS n FROM stays JOIN wards USING (ward) GROUP BY floor"
    assert [row[0] for row in hospital.exact(floors)] == [40, 80]


def test_a_question_sees_one_state_of_all_its_tables(hospital: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are written between the look at the catalogue and the statement are not there, public ones included."""
    text = "SELECT floor, count(*) AS n FROM stays JOIN wards USING (ward) GROUP BY floor"
    before, seen = hospital.exact(text), list[Any]()
    plan, real = hospital.db.plan(text, epsilon=1), Postgres._run

    def write_first(self: Postgres, cursor: Cursor, *rest: Any) -> Any:
        if not seen:
            seen.append(hospital.execute("DELETE FROM stays; DELETE FROM wards"))
        return real(self, cursor, *rest)

    monkeypatch.setattr(Postgres, "_run", write_first)
    assert hospital.run(plan.aggregate).tallies == before
    assert seen
    assert hospital.run(plan.aggregate).tallies == [(0,)] * len(before)


def test_a_row_that_is_written_in_between_would_be_seen(hospital: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a transaction that reads what is committed at each statement."""
    text = "SELECT count(*) AS n FROM stays"
    plan, real = hospital.db.plan(text, epsilon=1), Postgres._run
    before = hospital.run(plan.aggregate).tallies

    def write_first(self: Postgres, cursor: Cursor, *rest: Any) -> Any:
        hospital.execute("DELETE FROM stays")
        return real(self, cursor, *rest)

    @contextmanager
    def careless(connection: Any, limits: Limits, *, memory: int) -> Iterator[Cursor]:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL search_path = pg_catalog")
            yield cursor

    monkeypatch.setattr(Postgres, "_run", write_first)
    monkeypatch.setattr(engine_module, "hold_snapshot", careless)
    assert hospital.run(plan.aggregate).tallies != before


def test_a_transaction_only_reads(hospital: Hospital) -> None:
    connection = connect(hospital.url)
    with (
        hold_snapshot(connection, LIMITS, memory=1 << 28) as cursor,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        cursor.execute("DELETE FROM public.stays")
    connection.close()


# What goes wrong


def test_a_server_that_is_killed_costs_one_charge_and_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = engine_module.complete_statement

    def linger(statement: SqlStatement) -> tuple[str, list[Any]]:
        sql, parameters = real(statement)
        return f"SELECT q.* FROM ({sql}) AS q, pg_catalog.pg_sleep(60) AS slept", parameters

    with running_server() as server:
        hospital = Hospital(server, tmp_path)
        before = hospital.ledger.statement("people").spent.charges

        def kill() -> None:
            busy = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%AS slept'"
            deadline = time.monotonic() + 50
            with psycopg.connect(hospital.url, autocommit=True) as watching:
                while time.monotonic() < deadline and watching.execute(busy).fetchall() == [(0,)]:
                    time.sleep(0.01)
                server.stop("kill")

        killer = threading.Thread(target=kill)
        monkeypatch.setattr(engine_module, "complete_statement", linger)
        killer.start()
        with pytest.raises(EngineError) as failed:
            hospital.db.sql(COUNTS, epsilon=1)
        killer.join()
        assert str(failed.value) == str(EngineError())
        assert failed.value.__cause__ is None
        assert hospital.ledger.statement("people").spent.charges - before == 1
        assert hospital.told, "the owner's log says what happened"
        monkeypatch.undo()
        server.start()
        assert hospital.db.sql(COUNTS, epsilon=2) is not None
        hospital.ledger.close()


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_a_standby_that_ends_a_snapshot_is_asked_again(
    hospital: Hospital, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    real, tries = Postgres._run, list[int]()

    def conflict(self: Postgres, cursor: Cursor, *rest: Any) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise psycopg.errors.lookup(state)("canceling statement due to conflict with recovery")
        return real(self, cursor, *rest)

    monkeypatch.setattr(Postgres, "_run", conflict)
    before = hospital.ledger.statement("people").spent.charges
    hospital.db.sql(COUNTS, epsilon=1)
    assert len(tries) == 3
    assert hospital.ledger.statement("people").spent.charges - before == 1


def test_a_standby_that_always_ends_it_is_one_failure(hospital: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    def conflict(*_: Any) -> Any:
        raise psycopg.errors.SerializationFailure("canceling statement due to conflict with recovery")

    monkeypatch.setattr(Postgres, "_run", conflict)
    with pytest.raises(EngineError):
        hospital.db.sql(COUNTS, epsilon=1)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE stays ALTER COLUMN cost TYPE text",
        "ALTER TABLE stays DROP COLUMN cost",
        "ALTER TABLE stays RENAME TO gone",
        "ALTER TABLE stays ENABLE ROW LEVEL SECURITY",
        "CREATE RULE twice AS ON INSERT TO stays DO ALSO NOTHING",
        "ALTER TABLE stays RENAME TO gone; CREATE VIEW stays AS SELECT * FROM gone",
    ],
)
def test_a_table_that_is_altered_is_not_read(hospital: Hospital, change: str) -> None:
    plan = hospital.db.plan(COUNTS, epsilon=1)
    run = hospital.engine.prepare(Tallies(aggregate=plan.aggregate), tables=hospital.policy.tables)
    hospital.execute(f"{change}")
    with pytest.raises(DataChanged):
        run()


@pytest.mark.parametrize("careless", [False, True])
def test_another_table_under_the_name_is_not_read(
    hospital: Hospital, monkeypatch: pytest.MonkeyPatch, careless: bool
) -> None:
    """Between the snapshot and the statement: names lead where they do now. Planted: nobody looks where that is."""
    hospital.execute("CREATE TABLE others AS SELECT * FROM people UNION ALL SELECT * FROM people")
    plan = hospital.db.plan("SELECT count(*) AS n FROM people", epsilon=1)
    assert plan.aggregate.single
    real, done = Postgres._check, list[int]()

    def swap_first(self: Postgres, cursor: Cursor, prepared: Any) -> Any:
        cursor.execute("SELECT 1")  # the snapshot is taken
        if not done:
            hospital.execute("ALTER TABLE people RENAME TO gone; ALTER TABLE others RENAME TO people")
            done.append(1)
        return real(self, cursor, prepared)

    monkeypatch.setattr(Postgres, "_check", swap_first)
    if careless:
        monkeypatch.setattr(engine_module, "is_as_seen", lambda *_: True)
        assert hospital.run(plan.aggregate).tallies == [(80,)], "each unit counts twice, by the short statement"
        return
    with pytest.raises(DataChanged):
        hospital.run(plan.aggregate)


def test_keys_that_nothing_enforces_any_longer_lead_nowhere(hospital: Hospital) -> None:
    text = "SELECT count(*) AS n FROM items"
    plan = hospital.db.plan(text, epsilon=1)
    run = hospital.engine.prepare(Tallies(aggregate=plan.aggregate), tables=hospital.policy.tables)
    hospital.execute("ALTER TABLE stays DROP CONSTRAINT stays_pkey; INSERT INTO stays SELECT * FROM stays")
    with pytest.raises(DataChanged, match="keys"):
        run()
    with pytest.raises(PolicyError, match="keys"):
        hospital.engine.prepare(Tallies(aggregate=plan.aggregate), tables=hospital.policy.tables)


def test_one_row_a_unit_is_believed_as_long_as_a_constraint_holds_it(hospital: Hospital) -> None:
    plan = hospital.db.plan("SELECT count(*) AS n FROM people", epsilon=1)
    assert plan.aggregate.single
    assert hospital.run(plan.aggregate).tallies == [(40,)]
    run = hospital.engine.prepare(Tallies(aggregate=plan.aggregate), tables=hospital.policy.tables)
    hospital.execute("ALTER TABLE people DROP CONSTRAINT people_pkey; INSERT INTO people SELECT * FROM people")
    assert open_sealed(run()).tallies == [(40,)], "each unit is bounded to one row"


@pytest.mark.parametrize(
    "constraint",
    [
        "ALTER TABLE people ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED",
        "CREATE UNIQUE INDEX ON people (id) WHERE id < 20",
        "CREATE UNIQUE INDEX ON people (id, born)",
        "CREATE UNIQUE INDEX ON people ((id + 1))",
        "CREATE INDEX ON people (id)",
    ],
)
def test_other_indexes_are_not_believed(hospital: Hospital, constraint: str) -> None:
    hospital.execute(f"ALTER TABLE people DROP CONSTRAINT people_pkey; {constraint}")
    with pytest.raises(PolicyError, match="ADD UNIQUE"):
        hospital.engine.count_repeated(hospital.policy.tables["people"], hospital.policy.tables["people"].columns[0])


def test_a_question_that_takes_too_long_is_one_failure(hospital: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Postgres._run

    def slow(self: Postgres, cursor: Cursor, *rest: Any) -> Any:
        cursor.execute("SELECT pg_catalog.pg_sleep(20)")
        return real(self, cursor, *rest)

    hospital.engine.limits = replace(LIMITS, seconds=0.3)
    monkeypatch.setattr(Postgres, "_run", slow)
    start = time.monotonic()
    with pytest.raises(EngineError):
        hospital.db.sql(COUNTS, epsilon=1)
    assert time.monotonic() - start < 15
    assert any("57014" in line for line in hospital.told)


# Secrets


def test_no_log_of_the_server_holds_a_secret_number_or_a_constant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every statement, parameter and plan logged: the numbers are drawn by the server, and set without a text."""
    loud = {
        "log_statement": "all", "log_min_duration_statement": "0", "log_parameter_max_length": "-1",
        "session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
        "auto_explain.log_analyze": "on", "auto_explain.log_verbose": "on", "auto_explain.log_settings": "on",
        "debug_print_plan": "on",
    }  # fmt: skip
    drawn: list[str] = []
    real = draw_secrets

    def watch(cursor: Cursor, many: int, **rest: Any) -> None:
        real(cursor, many, **rest)
        for place in range(1, many + 1):
            ((value,),) = cursor.execute(f"SELECT pg_catalog.current_setting('hubbub.key{place}')").fetchall()
            drawn.append(value)

    monkeypatch.setattr(engine_module, "draw_secrets", watch)
    with running_server(loud, debian=True) as server:
        hospital = Hospital(server, tmp_path)
        hospital.db.sql("SELECT ward, count(*) AS n FROM stays WHERE ward <> 'vanished' GROUP BY ward", epsilon=1)
        hospital.db.sql("SELECT ward, count(*) AS n FROM stays WHERE ward <> 'vanished' GROUP BY ward", epsilon=2)
        hospital.ledger.close()
        logged = (server.folder / "log").read_text(errors="replace")
    assert len(drawn) == 4 == len(set(drawn)), "two numbers a question, fresh ones each time"
    assert "hash_record_extended" in logged
    assert "Query Text" in logged, "auto_explain has written plans"
    for number in drawn:
        assert number not in logged
        assert f"{int(number) & ((1 << 64) - 1)}" not in logged


def test_secret_numbers_are_drawn_anew(hospital: Hospital) -> None:
    connection = connect(hospital.url)
    with hold_snapshot(connection, LIMITS, memory=1 << 28) as cursor:
        found = set()
        for _ in range(50):
            draw_secrets(cursor, 2)
            for place in (1, 2):
                ((value,),) = cursor.execute(f"SELECT pg_catalog.current_setting('hubbub.key{place}')").fetchall()
                found.add(int(value))
    connection.close()
    assert len(found) == 100
    assert all(-(1 << 63) <= one < 1 << 63 for one in found)
    assert max(map(abs, found)) > 1 << 60


def test_the_ledger_may_be_in_the_same_server(hospital: Hospital) -> None:
    hospital.execute("CREATE SCHEMA ledger")
    url = f"{hospital.url}{'&' if '?' in hospital.url else '?'}options=-csearch_path%3Dledger"
    with hb.Ledger(url, marks=Marks(hospital.folder / "others")) as ledger:
        ledger.open_account(hospital.policy.account, hospital.policy.budget)
        db = Database(hospital.policy, ledger=ledger, engine=hospital.engine)
        assert db.sql(COUNTS, epsilon=1) is not None
        assert ledger.statement("people").spent.charges == 1
