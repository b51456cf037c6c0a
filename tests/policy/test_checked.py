"""What the owner's check has seen, from the command to the plan: which questions it covers, and which it does not."""

import json
import os
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub.cli.app import app
from hubbub.errors import MissingBounds
from hubbub.ledger import Marks
from hubbub.query.plan.plan import Plan
from hubbub.session.opening import place

POLICY = """
[budget]
account = "people"
epsilon = 10
[limits]
max_groups = 3
[tables.people]
path = "people.parquet"
unit = "id"
unique = true
[tables.people.columns.ward]
keys = ["a", "b", "c"]
[tables.people.columns.age]
bounds = [0, 100]
[tables.wards]
path = "wards.parquet"
public = true
"""
COUNT = "SELECT ward, count(*) FROM people GROUP BY ward"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    people = "SELECT i AS id, ['a', 'b', 'c'][1 + i % 3] AS ward, i AS age FROM range(90) AS t(i)"
    write(tmp_path, "people", people)
    write(tmp_path, "wards", "SELECT * FROM (VALUES ('a', 1), ('b', 1), ('b', 2)) AS t(ward, floor)")
    (tmp_path / "hubbub.toml").write_text(POLICY)
    return tmp_path / "hubbub.toml"


def write(folder: Path, table: str, select: str) -> None:
    duckdb.connect().execute(f"COPY ({select}) TO '{folder / table}.parquet'")


def check(policy: Path) -> int:
    return CliRunner().invoke(app, ["check", "--policy", str(policy)]).exit_code


def planned(policy: Path, text: str = COUNT) -> Plan:
    folder = policy.parent
    with hb.open(policy, ledger=folder / "ledger", marks=Marks(folder / "marks")) as db:
        return db.plan(text, epsilon=1)


def test_nothing_rests_on_what_was_not_checked(policy: Path) -> None:
    with pytest.raises(MissingBounds, match="max_rows"):
        planned(policy)
    assert not place(policy).exists()


def test_one_row_in_one_group_after_the_check(policy: Path) -> None:
    assert check(policy) == 0
    plan = planned(policy)
    assert plan.aggregate.single
    assert plan.aggregate.most_groups == 1
    assert plan.measurements[0].sensitivity == hb.Sensitivity(l0=1, linf=Fraction(1))
    folder = policy.parent
    with hb.open(policy, ledger=folder / "ledger", marks=Marks(folder / "marks")) as db:
        assert "one row each, as the owner's check has seen" in str(db.explain(COUNT, epsilon=1))
        found = db.sql("SELECT ward, count(*) AS n, avg(age) AS age FROM people GROUP BY ward", epsilon=9).to_dicts()
    assert [row["ward"] for row in found] == ["a", "b", "c"]
    assert all(20 < row["n"] < 40 for row in found)  # 30 each, noise of scale 3/9: false alarm below 1e-12


def test_a_join_that_makes_two_rows_of_one_is_bounded(policy: Path) -> None:
    assert check(policy) == 0
    assert planned(policy, "SELECT count(*) FROM people WHERE age > 3").aggregate.single
    with pytest.raises(MissingBounds, match="max_rows"):
        planned(policy, "SELECT floor, count(*) FROM people JOIN wards ON people.ward = wards.ward GROUP BY floor")


@pytest.mark.parametrize("what", ["file", "touched", "version", "bounds", "gone", "torn", "other"])
def test_what_changed_since_is_not_covered(policy: Path, what: str) -> None:
    assert check(policy) == 0
    match what:
        case "file":
            write(policy.parent, "people", "SELECT 1 AS id, 'a' AS ward, 5 AS age FROM range(90)")
        case "touched":
            os.utime(policy.parent / "people.parquet", (1, 1))
        case "version":
            policy.write_text('version = "2"\n' + POLICY)
        case "bounds":
            policy.write_text(POLICY.replace("100]", "101]"))
        case "gone":
            place(policy).unlink()
        case "torn":
            place(policy).write_text(place(policy).read_text()[:-20])
        case "other":
            place(policy).write_text(json.dumps([1, 2]))
    with pytest.raises(MissingBounds, match="max_rows"):
        planned(policy)


def test_a_promise_that_is_broken_is_not_kept_on_record(policy: Path) -> None:
    assert check(policy) == 0
    write(policy.parent, "people", "SELECT i // 2 AS id, 'a' AS ward, 5 AS age FROM range(90) AS t(i)")
    assert check(policy) == 1
    assert json.loads(place(policy).read_text())["unique"] == {}
    with pytest.raises(MissingBounds, match="max_rows"):
        planned(policy)


def test_another_policy_is_another_fingerprint(policy: Path) -> None:
    """An answer under one bounding is not served under another."""
    with hb.open(policy, ledger=policy.parent / "ledger", marks=Marks(policy.parent / "marks")) as db:
        before = db.policy.fingerprint
    assert check(policy) == 0
    assert planned(policy).policy.fingerprint != before
