"""``hubbub init`` and ``hubbub check``: the owner's side."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from hubbub.policy.build import Schema
from hubbub.policy.files.read import read_policy
from hubbub.policy.tables import Limits
from tests.cli.conftest import Run
from tests.cli.hospital import POLICY, built


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def test_init_writes_a_policy_that_reads_once_it_is_complete(run: Run, clinic: Path) -> None:
    clinic.unlink()
    done = run("init", "stays.parquet", "wards.csv", "--unit", "PATIENT_ID", "--account", "us")
    assert done.exit_code == 0, done.stderr
    assert done.output.splitlines() == [
        "Wrote hubbub.toml: stays, wards.",
        "Say whose the rows of wards are, or that they are public.",
        "Types of wards were guessed: take out the # in hubbub.toml where they are right.",
        "Bounds and limits that you do not declare are bought with a share of a question's ε.",
        "Declare the keys of what will be grouped by; then: hubbub check",
        "For limits with which intervals hold the truth: hubbub advise --epsilon 0.1",
    ]
    text = clinic.read_text()
    head, _, wards = text.partition("[tables.wards]")
    wards = wards.replace("# public", "public").replace('# ward = { type = "text"', 'ward = { type = "text"')
    clinic.write_text(f"{head}[tables.wards]{wards}")
    schema: dict[str, Schema] = {
        "stays": [("patient_id", "BIGINT"), ("ward", "VARCHAR")],
        "wards": [("ward", None), ("floor", None)],
    }
    policy = read_policy(clinic, describe=lambda source: schema[Path(source.paths[0]).stem])
    assert policy.tables["stays"].unit == "patient_id"
    assert policy.tables["wards"].unit is None
    assert policy.account == "us"


def test_init_reads_no_value(run: Run, clinic: Path) -> None:
    told = run("init", "stays.parquet", "wards.csv", "--out", "-").output
    assert not any(value in told for value in ("north", "south", "2026", "119"))
    assert "# ward = { keys" in told


def test_init_leaves_limits_to_be_bought(run: Run, clinic: Path) -> None:
    """With max_groups = 1 in force, a person in several groups counted in one, and intervals missed the truth by it."""
    clinic.unlink()
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i // 7 AS id, i % 7 AS day FROM range(14000) t(i)")
        connection.sql("FROM t").write_parquet("visits.parquet")
    assert run("init", "visits.parquet", "--unit", "id").exit_code == 0
    text = clinic.read_text().replace("# day = { bounds = [0, 100] }", "day = { keys = [0, 1, 2, 3, 4, 5, 6] }")
    clinic.write_text(text.replace("epsilon = 1 ", "epsilon = 100 "))
    assert read_policy(clinic, describe=lambda source: [("id", "BIGINT"), ("day", "BIGINT")]).limits == Limits()
    asked = ("query", "SELECT day, count(*) AS n FROM visits GROUP BY day", "--epsilon", "50", "--json")
    told = json.loads(run(*asked).stdout)
    within = [low[1] <= 2000 <= high[1] for low, high in zip(told["lows"], told["highs"], strict=True)]
    assert sum(within) >= 2  # of 7, each with 95%: fewer come by chance once in 10^6


def test_types_are_guessed_and_wait_for_the_owner(run: Run, clinic: Path) -> None:
    clinic.unlink()
    rows = [
        f"{i},{i % 9},{i / 2},{i % 2 == 0},2026-01-{i % 28 + 1:02},2026-01-01 10:00:0{i % 10},0{i % 90},"
        for i in range(200)
    ]
    rows[7] = rows[7].replace("7,7,", "7,unknown,")
    Path("seen.csv").write_text("id,n,x,late,day,at,zip,none\n" + "\n".join(rows) + "\n")
    written = run("init", "seen.csv", "--unit", "id", "--out", "-").output
    columns = written.partition("[tables.seen.columns]")[2].split("\n")
    guesses = {"n": "integer", "x": "real", "late": "boolean", "day": "date", "at": "timestamp", "zip": "text"}
    assert [line for line in columns if "guessed" in line] == [
        f'# {name} = {{ type = "{type_}" }}   # guessed: take out the # if it is right'
        for name, type_ in guesses.items()
    ]
    assert '# none = { type = "…" }' in written
    assert run("init", "seen.csv", "--unit", "id", "--accept").exit_code == 0
    table = read_policy(clinic, describe=lambda source: [(name, None) for name in ("id", *guesses)]).tables["seen"]
    assert {column.name: str(column.kind.type) for column in table.columns} == {"id": "text", **guesses}
    assert run("query", "SELECT avg(n) FROM seen", "--epsilon", "0.5").exit_code == 0


def test_on_a_terminal_the_owner_is_asked(clinic: Path) -> None:
    clinic.unlink()
    Path("a.csv").write_text("id,order_id,n\n1,1,1\n")
    Path("b.csv").write_text("order_id,n\n1,1.5\n")
    for answers, typed, led in (("yyy", 2, 1), ("nnn", 0, 0), ("yyn", 2, 0)):
        keys, terminal = pty.openpty()
        os.write(keys, "".join(f"{letter}\n" for letter in answers).encode())
        command = [sys.executable, "-m", "hubbub", "init", "a.csv", "b.csv", "--unit", "id"]
        done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, check=True)
        os.close(keys)
        os.close(terminal)
        assert "Types of a, guessed from its values: id integer, order_id integer, n integer. Right?" in done.stdout
        assert "Rows of b belong to whom their order_id in a belongs to. Right?" in done.stdout
        lines = clinic.read_text().splitlines()
        assert sum(line.startswith("n = ") for line in lines) == typed
        assert sum(line.startswith("unit = { through") for line in lines) == led
        clinic.unlink()


def test_paths_to_the_unit_are_drafted_and_work(run: Run, clinic: Path) -> None:
    clinic.unlink()
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i AS order_id, i // 3 AS customer_id FROM range(90) t(i)")
        connection.sql("FROM t").write_parquet("orders.parquet")
        connection.execute("CREATE OR REPLACE TABLE t AS SELECT i % 90 AS order_id, i AS item_id FROM range(400) t(i)")
        connection.sql("FROM t").write_parquet("items.parquet")
        connection.execute("CREATE OR REPLACE TABLE t AS SELECT i AS item_id, i % 5 AS stars FROM range(400) t(i)")
        connection.sql("FROM t").write_parquet("ratings.parquet")
    tables = ("orders.parquet", "items.parquet", "ratings.parquet")
    left = run("init", *tables, "--unit", "customer_id")
    assert "items may lead to it through order_id in orders: see hubbub.toml." in left.output
    assert "ratings may lead to it through item_id in items: see hubbub.toml." in left.output
    refused = run("check").stderr
    assert (
        'add unit = { through = "order_id", to = "orders" }, and unique = true to column order_id of orders' in refused
    )
    assert refused.index("unit = ") < refused.index("public = true, only if")
    clinic.unlink()
    assert run("init", *tables, "--unit", "customer_id", "--accept").exit_code == 0
    assert run("check").exit_code == 0
    done = run("query", "SELECT count(DISTINCT customer_id), avg(stars) FROM ratings", "--epsilon", "0.5")
    assert done.exit_code == 0, done.stderr


def test_init_never_replaces_a_file(run: Run, clinic: Path) -> None:
    done = run("init", "stays.parquet")
    assert done.exit_code == 2
    assert clinic.read_text() == POLICY
    Path("link.toml").symlink_to("nowhere.toml")
    assert run("init", "stays.parquet", "--out", "link.toml").exit_code == 2
    assert not Path("nowhere.toml").exists()


def test_paths_are_relative_to_the_policy(run: Run, clinic: Path) -> None:
    Path("sub").mkdir()
    assert run("init", "stays.parquet", "--unit", "patient_id", "--out", "sub/p.toml").exit_code == 0
    assert 'path = "../stays.parquet"' in Path("sub/p.toml").read_text()
    asked = ("query", "SELECT count(DISTINCT patient_id) FROM stays", "--policy", "sub/p.toml", "--epsilon", "0.05")
    assert run(*asked).exit_code == 0
    assert Path("sub/hubbub.ledger").exists()


def test_every_table_of_a_duckdb_file_is_drafted(run: Run, clinic: Path) -> None:
    with duckdb.connect("all.duckdb") as connection:
        connection.execute("CREATE TABLE a (patient_id INTEGER, x DOUBLE); CREATE TABLE b (y TEXT)")
    told = run("init", "all.duckdb", "--unit", "patient_id", "--out", "-").output
    assert "[tables.a]" in told
    assert 'table = "b"' in told
    assert told.count('unit = "patient_id"') == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("stays.parquet", "--unit", "person"), "no table has a column 'person'"),
        (("stays.parquet", "./stays.parquet"), "Two tables would be called 'stays'"),
        (("none.parquet",), "[policy]"),
        (("hubbub.toml",), "[policy]"),
        (("stays.parquet", "--out", "no/folder/x.toml"), "cannot be written"),
    ],
)
def test_what_cannot_be_drafted(run: Run, clinic: Path, arguments: tuple[str, ...], complaint: str) -> None:
    out = () if "--out" in arguments else ("--out", "new.toml")
    done = run("init", *arguments, *out)
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.replace("│", " ").split())
    assert not Path("new.toml").exists()


def test_check_tells_the_owner_what_holds(run: Run, clinic: Path) -> None:
    clinic.write_text(POLICY.replace("[0, 100]", "[0, 40]").replace("max_rows = 3", "max_rows = 2"))
    done = run("check")
    assert done.exit_code == 0, done.stderr
    assert "Every promise is kept." in done.stdout
    assert "for the owner alone" in done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert any(line[:1] == ["·"] and "18" in line and "120" in line for line in lines)  # costs above 40
    assert any(line[:1] == ["·"] and line.count("40") == 2 for line in lines)  # everybody has 3 rows
    assert any(line[:2] == ["✓", "wards.floor"] for line in lines)


def test_check_exits_with_1_on_a_broken_promise(run: Run, clinic: Path) -> None:
    clinic.write_text(POLICY.replace('unit = "patient_id"', 'unit = "patient_id"\nunique = true'))
    done = run("check", "--policy", clinic)
    assert done.exit_code == 1
    assert "1 promise is broken." in done.stderr
    read = json.loads(run("check", "--json").stdout)
    assert not read["holds"]
    (broken,) = [one for one in read["findings"] if one["broken"]]
    assert (broken["table"], broken["fact"], broken["against"], broken["out_of"]) == ("stays", "one row a unit", 40, 40)


def test_check_reads_what_the_engine_reads(run: Run, clinic: Path) -> None:
    Path("wards.csv").write_text('ward,floor\nnorth,1\n"so,uth",x\n')
    read = json.loads(run("check", "--json").stdout)
    found = {(one["table"], one["column"], one["fact"]): one["against"] for one in read["findings"]}
    assert found["wards", "floor", "of its type"] == 1
    assert found["wards", "ward", "of its type"] == 0


def test_check_of_a_duckdb_file(run: Run, clinic: Path) -> None:
    with duckdb.connect("all.duckdb") as connection:
        connection.execute("CREATE TABLE stays AS FROM 'stays.parquet'")
    clinic.write_text(POLICY.replace("stays.parquet", "all.duckdb"))
    done = run("check")
    assert done.exit_code == 0, done.stderr


def test_check_says_where_the_policy_is_wrong(run: Run, clinic: Path) -> None:
    clinic.write_text(POLICY.replace("bounds", "bound"))
    done = run("check")
    assert done.exit_code == 2
    assert "line 18" in done.stderr
    clinic.write_text(POLICY)
    Path("stays.parquet").write_text("no parquet")
    assert run("check").stderr.startswith("[policy] ")


def test_as_a_program_of_its_own(clinic: Path) -> None:
    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "hubbub", *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )

    asked = program("query", "SELECT ward, count(*) AS n FROM stays GROUP BY ward", "--epsilon", "1")
    assert asked.returncode == 0, asked.stderr
    assert "north" in asked.stdout
    assert asked.stderr == ""
    Path("wards.csv").write_bytes(b'ward,floor\n\xff,1\n"north,2\nsouth,3\n')
    checked = program("check", "--json")
    assert checked.returncode == 0, checked.stderr
    assert checked.stderr.endswith("wards.csv: 2 malformed records were left out: line 2, 3.\n")
    found = [one for one in json.loads(checked.stdout)["findings"] if one["fact"] == "well formed"]
    assert found == [
        {"table": "wards", "column": None, "fact": "well formed", "against": 2, "out_of": 3, "broken": False}
    ]
    Path("wards.csv").write_bytes(b"\xff,floor\n")
    refused = program("check")
    assert refused.returncode == 2
    assert refused.stderr.startswith("[policy] ")
    assert refused.stderr.count("\n") == 1
