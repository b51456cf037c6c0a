"""The example of questions that run in PostgreSQL, on the wheel's server and on Debian's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from examples import postgres
from tests.postgres import running_server


@pytest.mark.parametrize("debian", [False, True], ids=["wheel", "debian"])
def test_questions_run_where_the_data_lives(debian: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PGPASSFILE", "")
    with running_server(debian=debian) as server, (tmp_path / "told").open("w") as told:
        owner = server.fresh_database()
        counted, medians, doses, patients = postgres.run(owner, tmp_path, Console(file=told, width=100))
        kinds = server.execute("SELECT count(*)::int FROM ledger.entries WHERE kind = 'answer'", url=owner)
    text = (tmp_path / "told").read_text()
    assert "run on the server, each in one snapshot that only reads" in text
    assert "is a superuser" in text
    assert kinds == [(4,)]  # which lie in the same database
    # Geometric noise of at most 24 rows at ε = 1, and of 32 at 1: beyond 40 and 125 of its scales not once in 10^17.
    for row, true in zip(counted.answered, counted.truth, strict=True):
        assert row[0] == true[0]
        assert abs(row[1] - true[1]) < 1000
    assert [row[0] for row in medians.answered] == ["north", "south", "west"]
    assert all(0 <= row[1] <= 1000 for row in medians.answered)
    assert abs(doses.answered[0][0] - doses.truth[0][0]) < 4000
    assert abs(patients.answered[0][0] - patients.truth[0][0]) < 100


def test_it_is_a_program(tmp_path: Path) -> None:
    root = Path(postgres.__file__).resolve().parents[1]
    here = os.environ | {"HUBBUB_STATE": str(tmp_path / "state")}

    def program(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "examples.postgres", *arguments]
        return subprocess.run(command, cwd=root, env=here, capture_output=True, text=True, check=False)

    with running_server() as server:
        done = program(server.fresh_database())
    assert done.returncode == 0, done.stderr
    assert "✓ drugs.stay: leads to stays.stay, enforced by a constraint." in done.stdout
    assert "ε = 4 left of account" in done.stdout
    assert program().stderr.startswith("Name a new database")
