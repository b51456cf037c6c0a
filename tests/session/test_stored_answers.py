"""Stored answers stay with the data that they are about, and say that they were stored, and when."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub import publish
from hubbub.errors import KeyConflict
from hubbub.gate.meter import Meter
from hubbub.learn import KMeans
from hubbub.ledger import Marks
from hubbub.ledger.terms import OWNER
from hubbub.mechanisms import Geometric

COUNT = "SELECT count(*) AS n FROM data"
SUM = "SELECT sum(points) AS s FROM data"


def rows(many: int) -> Any:
    return pa.table({"person": range(many), "age": [20 + one % 70 for one in range(many)], "points": [5] * many})


def opening(folder: Path, data: Any, **changes: Any) -> hb.Database:
    options: dict[str, Any] = {
        "unit": "person",
        "budget": hb.Budget(epsilon=Fraction(10**6)),
        "bounds": {"age": (0, 100)},
        "max_groups": 1,
        "max_rows": 1,
        "name": "data",
        "ledger": folder / "ledger",
        "marks": Marks(folder / "state"),
    }
    return hb.open(data, **(options | changes))


def written(folder: Path, many: int, name: str = "data.parquet") -> Path:
    folder.mkdir(exist_ok=True)
    with duckdb.connect() as connection:
        connection.register("t", rows(many))
        connection.execute(f"COPY t TO '{folder / name}' (FORMAT parquet)")
    return folder / name


ASKED: dict[str, Callable[[hb.Database], Any]] = {
    "sql": lambda db: db.sql(COUNT, epsilon=1),
    "bought bounds": lambda db: db.sql(SUM, epsilon=1),
    "ask": lambda db: db.ask([COUNT, "SELECT sum(age) AS a FROM data"], epsilon=1)[1],
    "diagnose": lambda db: db.diagnose("SELECT sum(age) AS a FROM data", epsilon=1),
    "publish": lambda db: db.publish(publish.Flat(), over={"age": range(20, 30)}, epsilon=1),
    "marginals": lambda db: db.publish(publish.Marginals(ways=1), over={"age": range(20, 30)}, epsilon=1),
    "cube": lambda db: db.publish(publish.Cube(ways=1), over={"age": range(20, 30)}, epsilon=1),
    "sparse": lambda db: db.publish(
        publish.sparse.Threshold(expected_false=1), over={"person": range(1 << 20)}, epsilon=1
    ),
    "learn": lambda db: db.table("data").learn(KMeans(2), columns=["age"], epsilon=1),
    "first_over": lambda db: hb.first_over(db.table("data").agg(n=hb.count()), over=10, epsilon=1),
}


def entry(answer: Any) -> int:
    found: int = answer.entry_ if hasattr(answer, "entry_") else answer.entry
    return found


def stored(answer: Any) -> datetime | None:
    found: datetime | None = answer.stored_ if hasattr(answer, "stored_") else answer.stored
    return found


@pytest.mark.parametrize("path", ASKED)
def test_two_frames_share_nothing(tmp_path: Path, path: str) -> None:
    """The same name, folder, columns and limits: only their owner could know whether they are the same people."""
    entries = []
    for many in (200, 100):
        with opening(tmp_path, rows(many)) as db:
            answer = ASKED[path](db)
            assert stored(answer) is None
            assert entry(ASKED[path](db)) == entry(answer), "within one opening it is asked once"
            entries.append(entry(answer))
    assert entries[0] != entries[1]


@pytest.mark.parametrize("path", ASKED)
def test_a_version_that_the_owner_names_is_the_owners_word(tmp_path: Path, path: str) -> None:
    with opening(tmp_path, rows(200), version="november") as db:
        first = ASKED[path](db)
    with opening(tmp_path, rows(200), version="november") as db:
        again = ASKED[path](db)
    assert entry(again) == entry(first)
    assert stored(again) is not None
    with opening(tmp_path, rows(200), version="december") as db:
        assert entry(ASKED[path](db)) != entry(first)
    with opening(tmp_path, rows(200)) as db:
        assert entry(ASKED[path](db)) != entry(first), "nor is a frame without a version any version"


def test_bought_facts_stay_with_their_frame(tmp_path: Path) -> None:
    with opening(tmp_path, rows(200)) as db:
        db.sql(SUM, epsilon=1)
        assert db.explain(SUM, epsilon=1).known
    with opening(tmp_path, rows(200)) as db:
        assert not db.explain(SUM, epsilon=1).known


@pytest.mark.parametrize("beside", ["public", "private"])
def test_a_frame_beside_a_file_counts_too(tmp_path: Path, beside: str) -> None:
    path, entries = written(tmp_path, 100), []
    for _ in range(2):
        held: Any = rows(10) if beside == "public" else hb.private(rows(10), unit="person")
        with opening(tmp_path, path, tables={"other": held}) as db:
            entries.append(db.sql(COUNT, epsilon=1).entry)
    assert entries[0] != entries[1]


def test_a_key_does_not_carry_an_answer_from_frame_to_frame(tmp_path: Path) -> None:
    with opening(tmp_path, rows(200)) as db:
        db.sql(COUNT, epsilon=1, key="k")
    with opening(tmp_path, rows(100)) as db, pytest.raises(KeyConflict):
        db.sql(COUNT, epsilon=1, key="k")


@pytest.mark.parametrize("path", ASKED)
def test_a_file_is_found_again_and_another_is_not(tmp_path: Path, path: str) -> None:
    one, other = written(tmp_path / "one", 200), written(tmp_path / "other", 100)
    with opening(tmp_path, one) as db:
        first = ASKED[path](db)
    with opening(tmp_path, one) as db:
        again = ASKED[path](db)
    assert (entry(again), stored(again) is None) == (entry(first), False)
    with opening(tmp_path, other) as db:
        assert entry(ASKED[path](db)) != entry(first), "the same name and version in another folder"
    with opening(tmp_path, other, version="1") as db:
        assert entry(ASKED[path](db)) != entry(first), "nor does a version make two files one"


def test_a_glob_that_finds_more_files_is_another_source(tmp_path: Path) -> None:
    written(tmp_path / "parts", 50, "a.parquet")
    entries = []
    for name in ("a.parquet", "b.parquet"):
        written(tmp_path / "parts", 50, name)
        with opening(tmp_path, str(tmp_path / "parts" / "*.parquet")) as db:
            entries.append(db.sql(COUNT, epsilon=1).entry)
    assert entries[0] != entries[1]


def test_two_tables_of_one_database_are_two_sources(tmp_path: Path) -> None:
    path, policies = tmp_path / "clinic.duckdb", []
    with duckdb.connect(str(path)) as connection:
        for name, many in (("old", 50), ("new", 100)):
            connection.register("t", rows(many))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM t")
    for name in ("old", "new"):
        with opening(tmp_path, path, name=name) as db:
            policies.append(db.policy)
    sources = [policy.tables[name].source for policy, name in zip(policies, ("old", "new"), strict=True)]
    renamed = replace(policies[0], tables={"old": replace(policies[0].tables["old"], source=sources[1])})
    assert renamed.fingerprint != policies[0].fingerprint


POLICY = """\
version = "1"
ledger = "{ledger}"
[budget]
account = "people"
epsilon = 100
[limits]
max_groups = 1
max_rows = 1
[tables.data]
path = "data.parquet"
unit = "person"
"""


def test_a_policy_whose_folder_was_moved_has_other_sources(tmp_path: Path) -> None:
    """A path is the owner's name for a file: nobody else can say that what lies elsewhere is the same."""
    ledger = f"{tmp_path}/ledger"
    written(tmp_path / "here", 100)
    (tmp_path / "here" / "hubbub.toml").write_text(POLICY.format(ledger=ledger))
    entries = []
    for folder in ("here", "here", "there"):
        if folder == "there":
            shutil.move(tmp_path / "here", tmp_path / "there")
        with hb.open(tmp_path / folder / "hubbub.toml", marks=Marks(tmp_path / "state")) as db:
            entries.append(db.sql(COUNT, epsilon=1).entry)
    assert entries[0] == entries[1] != entries[2]


def test_the_fingerprint_is_the_same_whenever_a_policy_is_read(tmp_path: Path) -> None:
    """The record of ``hubbub check`` is found by it: of these files, and of no others under the same text."""
    found = []
    for folder in ("one", "one", "other"):
        written(tmp_path / folder, 100)
        (tmp_path / folder / "hubbub.toml").write_text(POLICY.format(ledger=tmp_path / "ledger"))
        with hb.open(tmp_path / folder / "hubbub.toml", marks=Marks(tmp_path / "state")) as db:
            found.append(db.policy.fingerprint)
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("path", ASKED)
def test_an_answer_that_is_served_again_says_so_and_when(tmp_path: Path, path: str) -> None:
    began = datetime.now(UTC) - timedelta(seconds=1)
    with opening(tmp_path, rows(200)) as db:
        fresh, again = ASKED[path](db), ASKED[path](db)
    moment = stored(again)
    assert stored(fresh) is None
    assert moment is not None
    assert began < moment < datetime.now(UTC) + timedelta(seconds=1)
    assert "served again" not in repr(fresh)
    if path == "learn":
        return  # scikit-learn's form of it has parameters alone
    if path == "sparse":
        assert "stored=datetime" in repr(again)
        return
    last = repr(again).splitlines()[-1]
    assert f"served again, stored {moment:%Y-%m-%d %H:%M} UTC" in last
    if hasattr(again, "_repr_html_"):
        assert "served again, stored " in again._repr_html_()
        assert "served again" not in fresh._repr_html_()


def test_other_principals_are_told_when_it_was_stored(tmp_path: Path) -> None:
    with opening(tmp_path, rows(200)) as db:
        db.sql(COUNT, epsilon=1)
        db.ledger.grant("people", "ann")
        ann = hb.Database(db.policy, ledger=db.ledger, engine=db._engine, principal="ann")
        assert ann.sql(COUNT, epsilon=1).stored is not None
        assert ann.sql("SELECT sum(age) AS a FROM data", epsilon=1).stored is None


def test_a_release_that_was_found_by_its_key_says_so(tmp_path: Path) -> None:
    with hb.Ledger(tmp_path / "ledger", marks=Marks(tmp_path / "state")) as ledger:
        ledger.open_account("people", hb.Budget(epsilon=Fraction(2)))
        facts = hb.Facts(account="people", sensitivity=hb.Sensitivity(l0=1, linf=Fraction(1)))
        meter = Meter.on(ledger, principal=OWNER)
        fresh, again = (meter.measure(Geometric(epsilon=Fraction(1)), hb.Secret(7, facts), key="k") for _ in range(2))
        alone = meter.measure(Geometric(epsilon=Fraction(1)), hb.Secret(7, facts))
    assert (fresh.stored, alone.stored) == (None, None)
    assert again.stored is not None
    assert repr(again) == f"{repr(fresh)[:-1]}, served again, stored {again.stored:%Y-%m-%d %H:%M} UTC)"
