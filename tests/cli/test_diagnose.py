"""``hubbub diagnose``, over real files and the real engine."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.hospital import built

BY_WARD = "SELECT ward, count(*) AS n, avg(cost) AS mean FROM stays GROUP BY ward"


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def test_a_table_of_units_with_shares_remedies_and_the_price(run: Run, clinic: Path) -> None:
    done = run("diagnose", BY_WARD, "--epsilon", "2")
    assert done.exit_code == 0, done.stderr
    header, rule, everybody, *rest = done.stdout.splitlines()
    assert header.split() == ["units", "number", "share"]
    assert set(rule) == {"─", " "}
    assert everybody.startswith("all units")
    assert any(line.startswith("with more than") and "%" in line for line in rest)
    assert rest[-1] == "± 95% · price in all ε = 2 · entry 3 of account 'patients' · fresh"
    again = run("diagnose", BY_WARD, "--epsilon", "2").stdout
    table, said = again.rstrip("\n").split(" · served again, stored ")
    assert table == done.stdout.rstrip("\n").removesuffix(" · fresh"), "asked again, it is free and the same"
    assert said.endswith(" UTC")


def test_json(run: Run, clinic: Path) -> None:
    read = json.loads(run("diagnose", BY_WARD, "--policy", clinic, "--epsilon", "1/3", "--json").stdout)
    assert read["rows"][0]["cut"] == "nothing"
    assert {one["cut"] for one in read["rows"]} >= {"rows", "below", "above"}
    assert (read["account"], read["confidence"], read["entry"]) == ("patients", 0.95, 3)
    for one in read["rows"]:  # counts are 0 where noise brought them below, and so are the ends of their intervals
        assert 0 <= one["units_low"] <= one["units"] <= one["units_high"]
        assert one["units_low"] < one["units"] < one["units_high"] or one["units"] == 0


def test_refused_without_a_charge(run: Run, clinic: Path) -> None:
    done = run("diagnose", "SELECT count(DISTINCT patient_id) FROM stays", "--epsilon", "1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "[not-allowed]" in done.stderr
    assert run("diagnose", BY_WARD, "--epsilon", "nothing").exit_code == 2
