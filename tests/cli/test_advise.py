"""``hubbub advise``, over real files and the real engine."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.hospital import built


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def test_limits_with_their_errors_and_lines_for_the_policy(run: Run, clinic: Path) -> None:
    done = run("advise", "--epsilon", "4", "--price", "1/2")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "limits of stays, for questions at ε = 0.5"
    assert any(line.startswith("max_total_rows = ") for line in lines)
    assert any(line.endswith("the least whole error of a count") for line in lines)
    assert lines[-1] == "price in all ε = 4 · entry 3 of account 'patients' · fresh"
    read = tomllib.loads("\n".join(lines[lines.index("[limits]") : -2]))
    assert read["limits"]["max_total_rows"] >= 3
    assert "cost" in read["tables"]["stays"]["columns"]
    again = run("advise", "--epsilon", "4", "--price", "2").stdout
    assert "served again" in again, "another price of questions is read off the same look"


def test_json_and_what_is_looked_at(run: Run, clinic: Path) -> None:
    found = json.loads(run("advise", "--epsilon", "3", "--table", "STAYS", "--by", "ward", "--json").stdout)
    kinds = [(one["advised"], one["column"]) for one in found["limits"]]
    assert kinds[:3] == [("max_total_rows", None), ("max_rows", "ward"), ("max_groups", "ward")]
    assert tomllib.loads(found["toml"])["limits"]["max_groups"] <= 2
    assert found["account"] == "patients"


def test_refused_without_a_charge(run: Run, clinic: Path) -> None:
    for options in (("--table", "wards"), ("--by", "cost"), ("--price", "0")):
        done = run("advise", "--epsilon", "1", *options)
        assert (done.exit_code, done.stdout) == (2, ""), options
    assert "entry 3 of" in run("advise", "--epsilon", "1").stdout, "the first charge"
