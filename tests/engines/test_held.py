"""Facts hold for the bytes that are read: files that are written to under an open session, and while they are read.

At ε = 1000 and more noise is below 1 with probability above 1 − 1e-6 (P(|noise| ≥ 1) = 2·exp(−ε)/(1 + exp(−ε))), so
that an answer shows the exact number that was measured.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub import learn
from hubbub.cli import owner
from hubbub.cli.app import app
from hubbub.engines import held
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.sources import conversion
from hubbub.errors import DataChanged, EngineError, NotOwned
from hubbub.ledger import Marks
from hubbub.policy.files.read import read_policy
from hubbub.policy.stamps import Stamp, stamp_files
from hubbub.policy.tables import Limits
from hubbub.query.ops import Scan
from hubbub.query.plan.plan import one_row_a_unit
from hubbub.query.read.sql import question
from hubbub.session import opening

PEOPLE, ROWS = 600, 500
POLICY = """
[budget]
account = "people"
epsilon = 1000000
[limits]
max_groups = 1
[tables.people]
path = "{path}"
unit = "id"
unique = true
[tables.places]
path = "places.parquet"
public = true
"""
ONE_EACH = f"SELECT i AS id, 7 AS place FROM range({PEOPLE}) AS t(i)"
MANY = f"{ONE_EACH} UNION ALL SELECT 0 AS id, 7 AS place FROM range({ROWS}) AS t(i)"
ONE_PLACE = "SELECT 7 AS place"
SAME_PLACES = f"SELECT 7 AS place FROM range({ROWS}) AS t(i)"
COUNT = "SELECT count(*) AS n FROM people"
JOINED = "SELECT count(*) AS n FROM people JOIN places ON people.place = places.place"


def write(path: Path, select: str) -> None:
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE OR REPLACE TABLE people AS {select}")
    else:
        options = " (FORMAT csv, HEADER)" if path.suffix == ".csv" else ""
        duckdb.connect().execute(f"COPY ({select}) TO '{path}'{options}")


def write_log(path: Path) -> None:
    """Rows of one person in the write-ahead log alone: the database's own file stays as it is."""
    script = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]); "
        "c.execute(\"PRAGMA disable_checkpoint_on_shutdown; SET wal_autocheckpoint = '1TB'\"); "
        f"c.execute('INSERT INTO people SELECT 0, 7 FROM range({ROWS})'); c.close()"
    )
    before = path.stat()
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert path.with_name(path.name + ".wal").stat().st_size > 0
    assert path.stat().st_mtime_ns == before.st_mtime_ns


@pytest.fixture(params=["parquet", "duckdb"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    made = tmp_path / f"people.{request.param}"
    write(made, ONE_EACH)
    write(tmp_path / "places.parquet", ONE_PLACE)
    (tmp_path / "hubbub.toml").write_text(POLICY.format(path=made.name))
    return made


@pytest.fixture
def db(path: Path) -> Iterator[hb.Database]:
    folder = path.parent
    assert CliRunner().invoke(app, ["check", "--policy", str(folder / "hubbub.toml")]).exit_code == 0
    with hb.open(folder / "hubbub.toml", ledger=folder / "ledger", marks=Marks(folder / "marks")) as made:
        made.ledger.grant("people", "ann", limit=hb.Budget(epsilon=Fraction(10**6)))
        made._session.principal = "ann"
        yield made


def before_reading(db: hb.Database, monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], Any]) -> list[str]:
    """Do something between the charge and the read, once for each read."""
    waiting, statements = list(acts), list[str]()
    answer = DuckDB._answer

    def acting(engine: Any, begun: Any) -> Any:
        statements.append(begun.request["statement"])
        if waiting:
            waiting.pop(0)()
        return answer(engine, begun)

    monkeypatch.setattr(DuckDB, "_answer", acting)
    return statements


def counted(db: hb.Database, text: str = COUNT) -> int:
    return int(db.sql(text, epsilon=1000).to_dicts()[0]["n"])


def failures(db: hb.Database) -> int:
    return sum(one.many for one in db.ledger.failures())


def test_what_was_checked_is_used_while_it_holds(db: hb.Database) -> None:
    assert db.plan(COUNT, epsilon=1).aggregate.single
    assert counted(db) == PEOPLE
    assert db.plan(JOINED, epsilon=1).aggregate.single
    assert counted(db, JOINED) == PEOPLE


def test_files_written_under_an_open_session_are_bounded(db: hb.Database, path: Path) -> None:
    """One person had 501 rows at the noise of one."""
    write(path, MANY)
    with pytest.raises(hb.HubbubError, match="max_rows"):
        db.plan(COUNT, epsilon=1)
    db._session.policy = replace(db.policy, limits=Limits(max_groups=1, max_rows=1))
    assert not db.plan(COUNT, epsilon=1).aggregate.single
    assert counted(db) == PEOPLE


def test_files_written_between_the_plan_and_the_read_are_bounded(
    db: hb.Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = before_reading(db, monkeypatch, lambda: write(path, MANY))
    assert counted(db) == PEOPLE
    assert len(statements) == 2, "what was read first is thrown away unseen"
    assert failures(db) == 0


def test_a_public_table_written_between_the_plan_and_the_read_is_bounded(
    db: hb.Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a place was listed 500 times, everybody was counted so often."""
    assert db.plan(JOINED, epsilon=1).aggregate.single
    before_reading(db, monkeypatch, lambda: write(path.with_name("places.parquet"), SAME_PLACES))
    assert counted(db, JOINED) == PEOPLE


@pytest.mark.parametrize("path", ["duckdb"], indirect=True)
def test_rows_in_a_write_ahead_log_are_bounded(db: hb.Database, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted(db) == PEOPLE
    before_reading(db, monkeypatch, lambda: write_log(path))
    assert counted(db, COUNT + " WHERE place = 7") == PEOPLE
    folder = path.parent
    with (
        pytest.raises(hb.HubbubError, match="max_rows"),
        hb.open(folder / "hubbub.toml", ledger=folder / "ledger", marks=Marks(folder / "marks")) as again,
    ):
        again.plan(COUNT, epsilon=1)


def test_a_file_that_is_touched_and_put_back_is_not_believed(
    db: hb.Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Size, time and content of another state under the old name: the inode and its change time tell."""

    kept, times = path.read_bytes(), path.stat()
    other = path.with_name("other" + path.suffix)
    write(other, MANY)

    def swap() -> None:
        os.replace(other, path)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    before_reading(db, monkeypatch, swap)
    assert counted(db) == PEOPLE
    path.write_bytes(kept)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(hb.HubbubError, match="max_rows"):
        db.plan(COUNT, epsilon=1)


def test_an_owner_who_appends_freezes_nobody(db: hb.Database, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that fails while the file is written is done again, uncounted; one that fails at rest is counted."""
    whole = path.read_bytes()
    before_reading(db, monkeypatch, lambda: path.write_bytes(b"half"), lambda: path.write_bytes(whole))
    assert counted(db) == PEOPLE
    assert failures(db) == 0
    path.write_bytes(b"half")
    monkeypatch.setattr(held, "READS", 2)
    db._session.policy = replace(db.policy, limits=Limits(max_groups=1, max_rows=1))
    with pytest.raises(EngineError):
        counted(db, COUNT + " WHERE place > 6")
    assert failures(db) == 1


@pytest.mark.parametrize("path", ["duckdb"], indirect=True)
def test_a_database_that_is_open_for_writing_elsewhere_is_no_failure(
    db: hb.Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        with pytest.raises(DataChanged, match="open for writing"):
            counted(db)
        writer.communicate()
    assert failures(db) == 0
    charges = db.ledger.statement("people").spent.charges
    assert counted(db) == PEOPLE
    assert db.ledger.statement("people").spent.charges == charges, "what was paid is not paid again"


class TestPaths:
    """Whose a row is rests on keys that are unique: no statement can do without that."""

    @pytest.fixture
    def shop(self, tmp_path: Path) -> Iterator[hb.Database]:
        write(tmp_path / "items.parquet", "SELECT i AS item, i % 50 AS order_id FROM range(500) AS t(i)")
        self.orders = tmp_path / "orders.parquet"
        write(self.orders, "SELECT i AS order_id, i % 20 AS cust FROM range(50) AS t(i)")
        with hb.open(
            tmp_path / "orders.parquet",
            unit="cust",
            columns={"order_id": {"unique": True}},
            limits=hb.Limits(max_groups=1, max_rows=10),
            tables={"items": hb.private(tmp_path / "items.parquet", unit=hb.through("order_id", to="orders"))},
            budget=hb.Budget(epsilon=Fraction(10**6)),
            ledger=tmp_path / "ledger",
            marks=Marks(tmp_path / "marks"),
        ) as made:
            made.ledger.grant("people", "ann", limit=hb.Budget(epsilon=Fraction(10**6)))
            made._session.principal = "ann"
            yield made

    def test_keys_that_were_seen_no_longer_hold_once_their_file_is_written(self, shop: hb.Database) -> None:
        text = "SELECT count(*) AS n FROM items"
        assert counted(shop, text) == 200
        write(self.orders, "SELECT 7 AS order_id, i % 20 AS cust FROM range(50) AS t(i)")
        with pytest.raises(NotOwned, match="hubbub check"):
            shop.plan(text, epsilon=1)

    def test_keys_written_between_the_plan_and_the_read_end_the_question(
        self, shop: hb.Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        twice = "SELECT 7 AS order_id, i % 20 AS cust FROM range(50) AS t(i)"
        before_reading(shop, monkeypatch, lambda: write(self.orders, twice))
        with pytest.raises(DataChanged, match="nobody knows whose rows"):
            counted(shop, "SELECT count(*) AS n FROM items")
        assert failures(shop) == 0

    def test_the_rows_of_the_other_table_may_be_written(self, shop: hb.Database, tmp_path: Path) -> None:
        write(tmp_path / "items.parquet", "SELECT i AS item, i % 50 AS order_id FROM range(100) AS t(i)")
        assert counted(shop, "SELECT count(*) AS n FROM items") == 100


def test_facts_without_the_files_they_were_seen_of_are_refused(db: hb.Database) -> None:
    with pytest.raises(hb.HubbubError, match="a stamp of each table"):
        replace(db.policy, seen={})


@pytest.mark.parametrize("path", ["duckdb"], indirect=True)
@pytest.mark.parametrize(
    "altered",
    [
        "ALTER TABLE people RENAME TO others; CREATE VIEW people AS SELECT id, place FROM others, range(500)",
        "DROP TABLE people; CREATE TABLE people (id BIGINT, twin BIGINT, place BIGINT GENERATED ALWAYS AS (twin))",
        "ALTER TABLE people DROP COLUMN place",
    ],
)
def test_a_table_that_became_something_else_is_not_read(
    db: hb.Database, path: Path, altered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a table is stored, and not computed from other rows, is seen again by the process that reads it."""

    def alter() -> None:
        with duckdb.connect(str(path)) as connection:
            connection.execute(altered)

    before_reading(db, monkeypatch, alter)
    with pytest.raises(DataChanged, match="altered"):
        counted(db, JOINED)
    assert failures(db) == 0


def test_files_are_not_part_of_the_name_of_a_bought_fact() -> None:
    """An owner who appends would make everybody buy the same bounds again."""
    scan = Scan(table="people", columns=(), unit="id")
    stamped = replace(scan, held=Stamp((("people.parquet", None),)))
    assert repr(stamped) == repr(scan)


def test_facts_that_are_believed_of_any_file_are_seen(
    db: hb.Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: without the comparison of stamps one person counts 501 times, and the tests above would fail."""
    before_reading(db, monkeypatch, lambda: write(path, MANY))
    monkeypatch.setattr(Stamp, "holds", lambda stamp: True)
    monkeypatch.setattr(Stamp, "agrees", lambda stamp, read: True)
    monkeypatch.setattr(Stamp, "covers", lambda stamp, read: True)
    assert counted(db) == PEOPLE + ROWS


class TestLearning:
    """What an estimator adds up is bounded too: its sums were written for people with one row each."""

    @pytest.fixture
    def folk(self, tmp_path: Path) -> Iterator[hb.Database]:
        write(tmp_path / "folk.parquet", self.rows(1))
        with hb.open(
            tmp_path / "folk.parquet",
            unit="id",
            columns={"id": {"unique": True}},
            budget=hb.Budget(epsilon=Fraction(10**6)),
            bounds={"x": (0, 10), "y": (0, 10)},
            keys={"kind": [0, 1]},
            ledger=tmp_path / "ledger",
            marks=Marks(tmp_path / "marks"),
        ) as made:
            made.ledger.grant("people", "ann", limit=hb.Budget(epsilon=Fraction(10**6)))
            made._session.principal = "ann"
            yield made

    def rows(self, many: int) -> str:
        """600 people with values of 1, and one with values of 10 in so many rows."""
        others = "SELECT i AS id, 1.0 AS x, 1.0 AS y, i % 2 AS kind FROM range(1, 601) AS t(i)"
        return f"{others} UNION ALL SELECT 0, 10.0, 10.0, 1 FROM range({many})"

    def test_sums_are_of_one_row_each(self, folk: hb.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """One person's 500 rows moved the mean from 1.01 to 5; the noise of ε = 1000 is below 0.01."""
        before_reading(folk, monkeypatch, lambda: write(tmp_path / "folk.parquet", self.rows(500)))
        scaler = folk.table("folk").learn(learn.StandardScaler(), columns=["x", "y"], epsilon=1000)
        assert scaler.mean_ == pytest.approx([1 + 9 / 601] * 2, abs=0.05)
        assert failures(folk) == 0

    @pytest.mark.parametrize(
        ("estimator", "target"),
        [(learn.GaussianNB(classes=[0, 1]), "kind"), (learn.LinearRegression(), "y"), (learn.KMeans(2), None)],
    )
    def test_an_owner_who_appends_fails_no_fit(
        self, folk: hb.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, estimator: Any, target: str | None
    ) -> None:
        before_reading(folk, monkeypatch, lambda: write(tmp_path / "folk.parquet", self.rows(2)))
        folk.table("folk").learn(estimator, columns=["x"], target=target, epsilon=1000)
        assert failures(folk) == 0


def test_facts_of_a_policy_are_not_those_of_another_state_of_it(db: hb.Database, path: Path) -> None:
    """Another thread lets go of facts between the reading of a question and its plan."""
    believed = db.policy
    write(path, MANY)
    db._session.drop_stale_facts()
    relation = question(COUNT, db).relation
    assert one_row_a_unit(question(COUNT, Believing(db, believed)).relation, believed)
    assert not one_row_a_unit(relation, believed)


class Believing:
    """A catalogue with another policy."""

    def __init__(self, db: hb.Database, policy: Any) -> None:
        self.policy, self.fanout, self.values = policy, db.fanout, db.values


@pytest.mark.parametrize("suffix", ["csv", "duckdb", "parquet"])
def test_what_is_written_while_the_check_connects_is_not_believed(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"people.{suffix}"
    write(path, ONE_EACH)
    write(tmp_path / "places.parquet", ONE_PLACE)
    types = '[tables.people.columns]\nid = { type = "integer" }\nplace = { type = "integer" }\n'
    (tmp_path / "hubbub.toml").write_text(POLICY.format(path=path.name) + (types if suffix == "csv" else ""))
    connect = owner.connect

    @contextmanager
    def connected(*given: Any, **more: Any) -> Iterator[Any]:
        with connect(*given, **more) as data:
            if suffix != "duckdb":  # an attached database cannot be written to
                write(path, MANY)
            yield data

    monkeypatch.setattr(owner, "connect", connected)
    CliRunner().invoke(app, ["check", "--policy", str(tmp_path / "hubbub.toml")])
    with hb.open(tmp_path / "hubbub.toml", ledger=tmp_path / "ledger", marks=Marks(tmp_path / "marks")) as db:
        assert db.policy.enforced == (frozenset({"people"}) if suffix == "duckdb" else frozenset())


def test_a_file_that_nobody_can_look_at_never_holds(tmp_path: Path) -> None:
    loop = tmp_path / "loop.parquet"
    loop.symlink_to(loop)
    stamp = stamp_files([str(loop)])
    assert not stamp.is_settled(time.time_ns())
    assert not stamp.holds()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_mended_and_checked_while_another_opens_is_not_believed_of_the_old_rows(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session has converted rows that are not unique; the owner mends the file and checks it before it goes on."""
    path, file = tmp_path / f"people.{suffix}", tmp_path / "hubbub.toml"
    write(path, MANY)
    write(tmp_path / "places.parquet", ONE_PLACE)
    types = '[tables.people.columns]\nid = { type = "integer" }\nplace = { type = "integer" }\n'
    file.write_text(POLICY.format(path=path.name) + (types if suffix == "csv" else ""))
    monkeypatch.setattr(conversion, "_target", lambda folder, directory: conversion._empty(directory))
    read = read_policy

    def reading(*given: Any, **more: Any) -> Any:
        declared = read(*given, **more)
        write(path, ONE_EACH)
        assert CliRunner().invoke(app, ["check", "--policy", str(file)]).exit_code == 0
        return declared

    monkeypatch.setattr(opening, "read_policy", reading)
    with hb.open(file, ledger=tmp_path / "ledger", marks=Marks(tmp_path / "marks")) as db:
        assert db.policy.enforced == (frozenset() if suffix == "csv" else frozenset({"people"}))
