"""Files are read through what was opened and stamped: links and folders that lead elsewhere within one read.

A path that leads elsewhere and back leaves no trace in stamps of paths. At ε = 1000 noise is below 1 with probability
above 1 − 1e-6, so that an answer shows the exact number that was measured.
"""

import json
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.engines.duckdb import opened as opening_files
from hubbub.engines.duckdb import worker
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.duckdb.opened import Opened
from hubbub.errors import DataChanged, PolicyError
from hubbub.ledger import Marks
from hubbub.policy.stamps import Stamp, stamp_files

PEOPLE, ROWS = 300, 200
ONE_EACH = f"SELECT i AS id, 7 AS place FROM range({PEOPLE}) AS t(i)"
MANY = f"{ONE_EACH} UNION ALL SELECT 0 AS id, 7 AS place FROM range({ROWS}) AS t(i)"
BUDGET = hb.Budget(epsilon=Fraction(10**6))
FORMATS = ["parquet", "duckdb"]


def write(path: Path, select: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE people AS {select}")
    else:
        duckdb.connect().execute(f"COPY ({select}) TO '{path}'")
    return path


class Switched:
    """A table behind a link: to the file itself, or to the folder that it lies in."""

    def __init__(self, folder: Path, *, suffix: str, of_folder: bool, real: str = ONE_EACH, other: str = MANY) -> None:
        self.real = write(folder / "real" / f"people{suffix}", real)
        self.other = write(folder / "other" / f"people{suffix}", other)
        link = folder / ("folder" if of_folder else f"people{suffix}")
        self.path = link / self.real.name if of_folder else link
        self._link, self._of_folder = link, of_folder
        self.lead(self.real)

    def lead(self, to: Path) -> None:
        """Let the link lead there from one moment to the next."""
        new = self._link.with_name("new")
        new.symlink_to(to.parent if self._of_folder else to)
        os.replace(new, self._link)

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        self.lead(self.other)
        yield
        self.lead(self.real)


@pytest.fixture(params=[(one, of_folder) for one in FORMATS for of_folder in (False, True)])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Switched:
    suffix, of_folder = request.param
    return Switched(tmp_path, suffix=f".{suffix}", of_folder=of_folder)


def opened(table: Switched, folder: Path, **more: Any) -> Any:
    limits = hb.Limits(max_groups=1, max_rows=1)
    more = {"limits": limits, "columns": {"id": {"unique": True}}, "unit": "id", **more}
    places: dict[str, Any] = {"ledger": folder / "ledger", "marks": Marks(folder / "marks")}
    return hb.open(table.path, budget=BUDGET, name="people", **places, **more)


def switching(monkeypatch: pytest.MonkeyPatch, table: Switched, times: int) -> list[str]:
    """Let the first reads of the engine go elsewhere; what is given back lists all statements."""
    answer, statements = DuckDB._answer, list[str]()

    def acting(engine: Any, begun: Any) -> Any:
        statements.append(begun.request["statement"])
        if len(statements) > times:
            return answer(engine, begun)
        with table.elsewhere():
            return answer(engine, begun)

    monkeypatch.setattr(DuckDB, "_answer", acting)
    return statements


def counted(db: hb.Database, text: str = "SELECT count(*) AS n FROM people") -> int:
    return int(db.sql(text, epsilon=1000).to_dicts()[0]["n"])


def failures(db: hb.Database) -> int:
    return sum(one.many for one in db.ledger.failures())


def test_a_link_that_leads_elsewhere_within_one_read_is_seen(
    table: Switched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One person counted 201 times at the noise of one."""
    with opened(table, tmp_path) as db:
        assert db.plan("SELECT count(*) AS n FROM people", epsilon=1).aggregate.single
        before = stamp_files([str(table.path)])
        statements = switching(monkeypatch, table, 1)
        assert counted(db) == PEOPLE
        assert before.holds(), "no stamp of a path has seen it"
        assert len(statements) == 2, "what was read first is thrown away unseen"
        assert failures(db) == 0


def test_without_a_comparison_of_what_was_opened_it_is_not_seen(
    table: Switched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault, which the test above would see."""
    with opened(table, tmp_path) as db:
        switching(monkeypatch, table, 1)
        monkeypatch.setattr(Stamp, "agrees", lambda stamp, read: True)
        monkeypatch.setattr(Stamp, "covers", lambda stamp, read: True)
        assert counted(db) == PEOPLE + ROWS


def test_a_path_of_keys_that_leads_elsewhere_within_one_read_ends_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = "SELECT {key} AS order_id, i % 20 AS cust FROM range(50) AS t(i)"
    real, other = orders.format(key="i"), orders.format(key="7")
    table = Switched(tmp_path, suffix=".parquet", of_folder=False, real=real, other=other)
    items = write(tmp_path / "items.parquet", "SELECT i AS item, i % 50 AS order_id FROM range(500) AS t(i)")
    through = {"items": hb.private(items, unit=hb.through("order_id", to="people"))}
    with opened(
        table,
        tmp_path,
        unit="cust",
        columns={"order_id": {"unique": True}},
        limits=hb.Limits(max_groups=1, max_rows=10),
        tables=through,
    ) as db:
        db.ledger.grant("people", "ann", limit=BUDGET)
        db._session.principal = "ann"
        switching(monkeypatch, table, 1)
        with pytest.raises(DataChanged, match="nobody knows whose rows"):
            counted(db, "SELECT count(*) AS n FROM items")
        assert failures(db) == 0
        assert counted(db, "SELECT count(*) AS n FROM items") == 200


def test_what_is_unique_elsewhere_is_not_believed(
    table: Switched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At opening the link leads to a table without repeated ids while they are looked for, and only then."""
    table.real, table.other = table.other, table.real
    table.lead(table.real)
    repeated = DuckDB.count_repeated

    def looked(engine: Any, *given: Any) -> int:
        switching(monkeypatch, table, 10)
        return repeated(engine, *given)

    monkeypatch.setattr(DuckDB, "count_repeated", looked)
    with pytest.raises(PolicyError, match="could not be read"), opened(table, tmp_path):
        pass


def test_the_fan_out_of_a_public_table_elsewhere_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = Switched(tmp_path, suffix=".parquet", of_folder=False)
    same = f"SELECT 7 AS place FROM range({ROWS})"
    places = Switched(tmp_path / "beside", suffix=".parquet", of_folder=False, real=same, other="SELECT 7 AS place")
    with opened(people, tmp_path, tables={"places": places.path}) as db:
        switching(monkeypatch, places, 1)
        joined = "SELECT count(*) AS n FROM people JOIN places ON people.place = places.place"
        assert not db.plan(joined, epsilon=1).aggregate.single
        assert counted(db, joined) == PEOPLE


def request(variable: str, *paths: Path, statement: str) -> dict[str, Any]:
    files = [str(path) for path in paths]
    asked = {"statement": statement, "secrets": [], "keys": [], "databases": {}, "stored": []}
    sent: dict[str, Any] = json.loads(json.dumps({**asked, "paths": sorted(files), "files": [[variable, files]]}))
    return sent


READ = "SELECT count(*) FROM read_parquet(getvariable('f'))"


@pytest.mark.parametrize("of_folder", [False, True])
@pytest.mark.parametrize("act", ["lead", "replace"])
def test_what_was_opened_is_read_wherever_the_path_leads_then(
    tmp_path: Path, of_folder: bool, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Switched(tmp_path, suffix=".parquet", of_folder=of_folder)
    before, opening = stamp_files([str(table.path)]), Opened.open

    def moved(opened: Any) -> None:
        opening(opened)
        if act == "lead":
            table.lead(table.other)
        else:
            os.replace(table.other, table.real)

    monkeypatch.setattr(Opened, "open", moved)
    with duckdb.connect() as connection:
        ahead = worker.Ahead(connection, request("f", table.path, statement=READ))
        assert ahead.rows() == [[PEOPLE]]
        assert before.agrees(Stamp.of_json(ahead.files())) == (act == "lead"), "a file that is replaced loses a name"


def test_a_file_that_is_written_to_after_it_was_opened_does_not_agree(tmp_path: Path) -> None:
    path = write(tmp_path / "people.parquet", ONE_EACH)
    before = stamp_files([str(path)])
    time.sleep(0.05)
    with duckdb.connect() as connection:
        ahead = worker.Ahead(connection, request("f", path, statement=READ))
        ahead.rows()
        assert before.agrees(Stamp.of_json(ahead.files()))
        path.write_bytes(path.read_bytes())
        assert not before.agrees(Stamp.of_json(ahead.files()))


def test_columns_that_folders_are_called_by_are_there(tmp_path: Path) -> None:
    """Descriptors have no folders: they get links that do."""
    for year in (2023, 2024):
        write(tmp_path / f"year={year}" / "a.parquet", ONE_EACH + f" WHERE i % 2 = {year % 2}")
    with hb.open(
        str(tmp_path / "*" / "a.parquet"),
        unit="id",
        budget=BUDGET,
        name="people",
        columns={"id": {"unique": True}},
        limits=hb.Limits(max_groups=1, max_rows=1),
        ledger=tmp_path / "ledger",
        marks=Marks(tmp_path / "marks"),
    ) as db:
        assert counted(db, "SELECT count(*) AS n FROM people WHERE year = 2024") == PEOPLE // 2


def test_many_files_are_opened_where_the_system_lets_us(tmp_path: Path) -> None:
    for place in range(120):
        write(tmp_path / f"{place}.parquet", f"SELECT {place} AS id, 7 AS place")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))  # which the engine's processes inherit
    try:
        with hb.open(
            str(tmp_path / "*.parquet"),
            unit="id",
            budget=BUDGET,
            name="people",
            limits=hb.Limits(max_groups=1, max_rows=1),
            ledger=tmp_path / "ledger",
            marks=Marks(tmp_path / "marks"),
        ) as db:
            assert counted(db) == 120
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("why", ["no names", "too many"])
def test_files_that_cannot_be_held_open_are_read_by_their_paths(
    tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "people.parquet", ONE_EACH)
    if why == "no names":
        monkeypatch.setattr(opening_files, "_OPEN", str(tmp_path / "nowhere"))
    else:
        monkeypatch.setattr(opening_files, "_room", lambda many: False)
    with duckdb.connect() as connection:
        ahead = worker.Ahead(connection, request("f", path, statement=READ))
        assert ahead.rows() == [[PEOPLE]]
        assert ahead.files() == []


def test_nothing_else_can_be_opened_by_way_of_descriptors(tmp_path: Path) -> None:
    path = write(tmp_path / "people.parquet", ONE_EACH)
    other = write(tmp_path / "other.parquet", MANY)
    descriptor = os.open(other, os.O_RDONLY)
    try:
        with duckdb.connect() as connection:
            asked = f"SELECT count(*) FROM read_parquet('/proc/self/fd/{descriptor}')"
            with pytest.raises(duckdb.PermissionException):
                worker.Ahead(connection, request("f", path, statement=asked)).rows()
    finally:
        os.close(descriptor)
