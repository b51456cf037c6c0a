"""``hubbub init postgresql://…``: a policy drafted from the catalogue, which reads once the owner has confirmed it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import hubbub as hb
from hubbub.cli.app import app
from tests.postgres import PostgresServer

MORE = """
CREATE TYPE clinic.sex AS ENUM ('f', 'm');
CREATE TABLE clinic.visits (
    visit int PRIMARY KEY, patient bigint NOT NULL REFERENCES clinic.people, sex clinic.sex NOT NULL, scan jsonb);
CREATE TABLE clinic.referrals (
    referral int PRIMARY KEY, sent bigint REFERENCES clinic.people, sender bigint REFERENCES clinic.people);
CREATE TABLE clinic.hidden (i int);
ALTER TABLE clinic.hidden ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO reader;
INSERT INTO clinic.visits SELECT i, i, 'f' FROM generate_series(1, 50) AS i;
"""
Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"NO_COLOR": "1"})

    return run


@pytest.fixture
def hospital(server: PostgresServer, clinic: str, reader: str) -> str:
    server.execute(MORE, url=clinic)
    return reader.replace("reader@", "reader:s3cret@")


def section(text: str, table: str) -> str:
    return text.partition(f"[tables.{table}]\n")[2].partition("\n[tables.")[0].partition("\n[tables.")[0]


def test_the_catalogue_says_types_keys_and_paths(run: Run, hospital: str, tmp_path: Path) -> None:
    done = run("init", hospital, "--unit", "person", "--schema", "clinic")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "hubbub.toml").read_text()
    assert "s3cret" not in text + done.output
    assert 'unit = "person"\nunique = true ' in section(text, "people")
    assert 'unit = "person"\n# unique = true' in section(text, "stays")
    assert '# unit = { through = "stay", to = "stays" }   # as a foreign key says' in section(text, "items")
    assert '# unit = "patient"   # whose rows a foreign key leads to' in section(text, "visits")
    assert '# sex = { keys = ["f", "m"], nullable = false }   # text, the labels of its enum' in text
    assert "# scan holds JSON documents: it cannot be used." in text
    assert '# unit = "sent"' in section(text, "referrals")
    assert '# unit = "sender"' in section(text, "referrals")
    assert "hidden has row-level security" in text


def test_what_is_accepted_reads_and_answers(
    run: Run, server: PostgresServer, clinic: str, hospital: str, tmp_path: Path
) -> None:
    server.execute("DROP TABLE clinic.hidden, clinic.referrals; ALTER TABLE clinic.visits DROP COLUMN scan", url=clinic)
    assert run("init", hospital, "--unit", "person", "--accept").exit_code == 0
    path = tmp_path / "hubbub.toml"
    text = path.read_text()
    head, _, wards = text.partition("[tables.wards]")
    text = f"{head}[tables.wards]{wards.replace('# public', 'public')}"
    path.write_text(re.sub(r"epsilon = 1 ", "epsilon = 100_000 ", text))
    checked = run("check")
    assert checked.exit_code == 0, checked.output
    with hb.open(path) as db:
        assert db.policy.tables["visits"].unit == "patient"
        assert [str(step) for step in db.policy.tables["items"].path]
        (row,) = db.sql("SELECT count(*) AS n FROM visits", epsilon=10_000).to_dicts()
        assert round(row["n"]) == 50


def test_a_row_with_two_people_is_never_decided(run: Run, hospital: str, tmp_path: Path) -> None:
    done = run("init", hospital, "--unit", "person", "--accept", "--out", tmp_path / "other.toml")
    assert "Say whose the rows of referrals are" in done.output
    assert "\nunit" not in section((tmp_path / "other.toml").read_text(), "referrals")


def test_nothing_to_draft_is_said(run: Run, server: PostgresServer, database: str) -> None:
    done = run("init", database)
    assert done.exit_code == 2
    assert "may read no table" in done.stderr


def test_no_value_of_a_row_is_read(run: Run, server: PostgresServer, clinic: str, hospital: str) -> None:
    server.execute("UPDATE clinic.stays SET note = 'unheard-of'", url=clinic)
    text = run("init", hospital, "--unit", "person", "--out", "-").output
    assert not any(value in text for value in ("unheard-of", "north", "1950"))
