"""``hubbub init`` and ``hubbub check``: the owner's side."""

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from hubbub.policy.build import Schema
from hubbub.policy.files.read import read_policy
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
    assert done.output.splitlines()[:2] == [
        "Wrote hubbub.toml: stays, wards.",
        "Say whose the rows of wards are, or that they are public.",
    ]
    text = clinic.read_text()
    head, _, wards = text.partition("[tables.wards]")
    wards = wards.replace("# public", "public").replace('# ward = { type = "…"', 'ward = { type = "text"')
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
