"""``hubbub describe``, SHOW TABLES, and ledgers that are found without being named."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.hospital import built


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def test_tables_columns_and_what_is_left(run: Run, clinic: Path) -> None:
    done = run("describe")
    assert done.exit_code == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["stays", "patient_id", "integer", "the", "unit"] in lines
    assert ["stays", "ward", "text", "keys", "north,", "south"] in lines
    assert done.stdout.splitlines()[-1] == "ε = 10 left of account 'patients', whose budget is ε = 10"
    (first, _) = json.loads(run("describe", "--table", "wards", "--json").stdout)["columns"]
    assert first == {"table": "wards", "column": "ward", "type": "text", "declared": ""}
    assert run("describe", "--table", "nowhere").stderr.startswith("[unknown-name] There is no table 'nowhere'")


def test_without_a_grant_it_tells_nothing(run: Run, clinic: Path) -> None:
    assert run("describe").exit_code == 0  # opens the account
    refused = run("describe", "--principal", "ann")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("[no-grant] ")
    assert run("budget", "grant", "patients", "ann", "--epsilon", "0.5").exit_code == 0
    assert run("describe", "--principal", "ann").stdout.splitlines()[-1].startswith("ε = 0.5 left to 'ann'")
    assert run("query", "SHOW TABLES", "--principal", "bob").stderr.startswith("[no-grant] ")


def test_show_tables_is_a_question_without_a_price(run: Run, clinic: Path) -> None:
    assert "private, each of one patient_id" in run("query", "SHOW TABLES").stdout
    assert json.loads(run("query", "DESCRIBE wards", "--json").stdout)[1]["type"] == "integer"
    assert run("query", "SHOW TABLES", "--csv").stdout.splitlines()[0] == "table,rows,columns"
    refused = run("query", "SHOW TABLES", "--epsilon", "1")
    assert (refused.exit_code, "Leave the price out" in refused.stderr) == (2, True)
    unpriced = run("query", "SELECT count(*) FROM stays")
    assert (unpriced.exit_code, "epsilon must be given" in unpriced.stderr) == (2, True)


def test_the_ledger_of_the_folder_is_found(run: Run, clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("describe").exit_code == 0
    assert "patients" in run("budget").stdout
    assert "The ledger is whole" in run("ledger", "verify").stdout
    monkeypatch.setenv("HUBBUB_LEDGER", "elsewhere.ledger")
    assert "patients" in run("budget").stdout, "the policy's goes before, as for questions"
    clinic.write_text("ledger = [not toml")
    assert run("budget").stderr.startswith("[ledger-unreachable]"), "then the environment's"
    monkeypatch.delenv("HUBBUB_LEDGER")
    assert run("budget").exit_code == 2
    Path("clinic.ledger").rename("hubbub.ledger")
    assert "go to a folder" not in run("budget").output
    clinic.unlink()
    Path("hubbub.ledger").unlink()
    assert "go to a folder with" in " ".join(run("budget").output.replace("│", " ").split())
