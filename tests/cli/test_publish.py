"""``hubbub publish``, over real files and the real engine."""

import json
from pathlib import Path

import pytest

from hubbub import publish
from tests.cli.conftest import Run
from tests.cli.hospital import built

RECIPE = """\
policy = "hubbub.toml"
epsilon = 2
compare = ["flat", "hierarchy"]

[over]
ward = ["north", "south"]
"floor(cost)" = { from = 0, to = 49 }

[strategy]
name = "wavelet"

[output]
json = "cells.json"
certificate = "certificate.json"
"""


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path / "recipe.toml"


def test_a_release_with_its_report(run: Run, clinic: Path) -> None:
    done = run("publish", clinic, "--report", clinic.parent / "out.html")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["ward", "floor(cost)", "value", "deviation"]
    assert any(
        line.startswith("wavelet · of each unit at most ") and "ε = 2 · entry 3 of account 'patients'" in line
        for line in lines
    )
    assert any(line.startswith("100 cells in ") and line.endswith(" s") for line in lines)
    page = (clinic.parent / "out.html").read_text()
    assert page.count("<svg") == 4
    assert "hierarchy" in page
    found = publish.load(clinic.parent / "cells.json")
    assert found.certificate() == (clinic.parent / "certificate.json").read_text().strip()
    again = json.loads(run("publish", clinic, "--json").stdout)
    assert again["cells"] == found.cells.reshape(-1).tolist(), "asked again, it is free and the same"
    assert again["certificate"]["entry"] == 3
    assert again["stored"] is not None
    assert "served again" not in page
    said = run("publish", clinic, "--report", clinic.parent / "again.html").stdout
    assert " · served again, stored " in said
    assert ", served again, stored " in (clinic.parent / "again.html").read_text()
    assert set(again["expected"]) == {"wavelet", "flat", "hierarchy"}
    assert run("budget", clinic.parent / "clinic.ledger", "--json").stdout.count('"charges": 1') >= 1


def test_without_a_grant_not_even_the_price_is_told(run: Run, clinic: Path) -> None:
    run("publish", clinic, "--dry-run")  # the owner opens the account
    for arguments in ((), ("--dry-run",), ("--json",)):
        done = run("publish", clinic, "--principal", "ann", *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("[no-grant] ")


def test_dry_run(run: Run, clinic: Path) -> None:
    done = run("publish", clinic, "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert "price       ε = 2 of ε = 10 left; ε = 8 afterwards" in done.stdout
    assert "Expected error of a range (rms)" in done.stdout
    told = json.loads(run("publish", clinic, "--dry-run", "--json").stdout)
    assert told["cells"] == 100
    assert set(told["compared"]) == {"wavelet", "flat", "hierarchy"}
    assert told["left"] == "ε = 10", "nothing was paid"
    assert not (clinic.parent / "cells.json").exists()


def test_a_file_with_its_unit_and_budget(run: Run, clinic: Path) -> None:
    data = '[data]\npath = "stays.parquet"\nunit = "patient_id"\nbudget = 3\nledger = "own.ledger"\n'
    own = RECIPE.replace('policy = "hubbub.toml"', "cells = 2\neach = 3").partition("[output]")[0] + data
    clinic.write_text(own)
    done = run("publish", clinic)
    assert done.exit_code == 0, done.stderr
    assert "entry 3 of account 'people'" in done.stdout
    assert (clinic.parent / "own.ledger").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "wavelet"', 'name = "wavlet"', "line 9: strategy must be one of"),
        ("epsilon = 2", "epsilon = 200", "[budget-exceeded]"),
        ('"floor(cost)"', "nothing", "[unknown-name]"),
    ],
)
def test_refused(run: Run, clinic: Path, old: str, new: str, words: str) -> None:
    clinic.write_text(RECIPE.replace(old, new))
    done = run("publish", clinic)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr.replace("\n", " ")
