"""``explain --sql``: the owner reads what an engine would run, and nobody else does."""

import re
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub.cli.app import app
from hubbub.errors import NotAllowed
from tests.server_tables.test_opening_servers import GROUPED, POLICY, either, written


@either
def test_the_statement_is_shown_without_secrets(reader: str, tmp_path: Path, copies: bool) -> None:
    text = POLICY.replace("max_groups = 2", "max_groups = 1")  # so that one is chosen by a hash
    with hb.open(written(tmp_path, reader, text, copies=copies)) as db:
        (shown,) = db.statements(GROUPED, epsilon=1)
        (again,) = db.statements(GROUPED, epsilon=1)
    assert shown == again  # nothing in it is drawn
    assert "secret number" in shown
    assert ('"clinic"."stays"' in shown) is not copies
    assert "-- table" in shown
    assert '"north", "south"' in shown


def test_facts_that_would_be_bought_are_no_hindrance(reader: str, tmp_path: Path) -> None:
    path = written(tmp_path, reader, copies=False)
    path.write_text(path.read_text().replace("cost = { bounds = [0, 100] }\n", "").replace("max_rows = 6\n", ""))
    with hb.open(path) as db:
        assert len(db.statements("SELECT sum(cost) FROM stays", epsilon=1)) == 1
        assert not any(entry.kind == "charge" for entry in db.ledger.entries())


def test_the_command_prints_sql(reader: str, tmp_path: Path) -> None:
    path = written(tmp_path, reader)
    done = CliRunner().invoke(app, ["explain", GROUPED, "--epsilon", "1", "--sql", "--policy", str(path)])
    assert done.exit_code == 0, done.output
    assert re.search(r"^(WITH|SELECT)", "\n".join(line for line in done.stdout.split("\n") if line[:2] != "--").strip())
    assert done.stdout.rstrip().endswith(";")


def test_nobody_but_the_owner_reads_it(reader: str, tmp_path: Path) -> None:
    path = written(tmp_path, reader)
    with hb.open(path) as db:
        db.ledger.grant(db.policy.account, "ann")
    with hb.open(path, principal="ann") as db:
        assert db.explain(GROUPED, epsilon=1)
        with pytest.raises(NotAllowed):
            db.statements(GROUPED, epsilon=1)


def test_files_have_statements_too(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT i AS p FROM range(9) t(i)) TO '{tmp_path / 't.parquet'}'")
    with hb.open(tmp_path / "t.parquet", unit="p", budget=1, limits=hb.Limits(max_rows=1)) as db:
        (shown,) = db.statements("SELECT count(*) FROM t", epsilon=1)
    assert "SELECT" in shown
