"""``hubbub audit`` from the outside: names, questions, pages, exit statuses; and data is never read."""

import json
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from hubbub.audit.subjects.registry import SUBJECTS
from hubbub.cli.app import app
from tests.query import planted

QUESTION = "SELECT ward, count(*) FROM stays GROUP BY ward"
POLICY = """
version = "1"
[budget]
account = "people"
epsilon = 5
[limits]
max_groups = 1
max_rows = 3
[tables.stays]
path = "stays.parquet"
unit = "person"
[tables.stays.columns]
ward = { keys = ["a", "b"] }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = "(VALUES (1, 'secret ward'), (2, 'a')) AS t(person, ward)"
    duckdb.sql(f"COPY (SELECT * FROM {rows}) TO '{tmp_path / 'stays.parquet'}' (FORMAT parquet)")
    (tmp_path / "hubbub.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names_are_listed() -> None:
    found = CliRunner().invoke(app, ["audit", "--list"])
    assert found.exit_code == 0
    assert found.output.splitlines() == list(SUBJECTS)


def test_a_mechanism_by_its_name(tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    found = CliRunner().invoke(app, ["audit", "randomized response, basic", "--draws", "1000", "--html", str(page)])
    assert found.exit_code == 0, found.output
    assert "no counterexample" in found.output
    assert "randomized response, basic" in page.read_text(encoding="utf-8")


def test_a_question_is_asked_of_made_up_tables_and_nothing_is_opened_or_charged(folder: Path) -> None:
    before = sorted(folder.iterdir())
    found = CliRunner().invoke(app, ["audit", QUESTION, "--epsilon", "1", "--draws", "1000", "--json"])
    assert found.exit_code == 0, found.output
    (told,) = json.loads(found.stdout)
    assert told["subject"] == QUESTION
    assert told["accused"] is False
    assert told["claim"]["points"] == [[1.0, 0.0]]
    assert sorted(folder.iterdir()) == before, "an audit left something behind"
    assert "secret ward" not in found.output


@pytest.mark.usefixtures("folder")
def test_a_refuted_claim_is_exit_status_1_and_printed_small() -> None:
    with planted.no_bounding_of_groups():
        found = CliRunner().invoke(app, ["audit", QUESTION, "--draws", "1000"])
    assert found.exit_code == 1
    assert "COUNTEREXAMPLE" in found.output
    assert found.output.count("'a'") <= 2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--list"),
        (["geometrik"], "geometric"),
        (["SELECT nothing FROM stays"], "nothing"),
        ([QUESTION, "--policy", "none.toml"], "none.toml"),
    ],
)
def test_nonsense_is_refused_with_a_remedy(arguments: list[str], words: str) -> None:
    found = CliRunner().invoke(app, ["audit", *arguments])
    assert found.exit_code == 2, found.output
    assert words in found.output
