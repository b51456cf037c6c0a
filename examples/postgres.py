"""A clinic's data stays in PostgreSQL, and questions run there: from the catalogue to answers with error bars.

    createdb example
    python -m examples.postgres postgresql:///example     # as a superuser, who may make schemas and roles in it

The clinic is made up, so that the truth may stand beside each answer. The ledger is in the same database, in a schema
and under a role of its own; no password is in the policy.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console
from rich.table import Table

import hubbub as hb
from hubbub.engines.postgres.roles import READER
from hubbub.engines.postgres.server_check import check_servers
from hubbub.policy.files.read import read_policy
from hubbub.session.engines import EngineRoom

PATIENTS, STAYS = 2_000, 8_000
SCHEMA = f"""
CREATE SCHEMA clinic;
CREATE TYPE clinic.ward AS ENUM ('north', 'south', 'west');
CREATE TABLE clinic.patients (patient bigint PRIMARY KEY, born date NOT NULL);
CREATE TABLE clinic.stays (
    stay bigint PRIMARY KEY,
    patient bigint NOT NULL REFERENCES clinic.patients,
    ward clinic.ward NOT NULL,
    cost numeric(10, 2) NOT NULL);
CREATE TABLE clinic.drugs (
    given bigint PRIMARY KEY,
    stay bigint NOT NULL REFERENCES clinic.stays,
    doses int NOT NULL);
INSERT INTO clinic.patients
    SELECT i, DATE '1940-01-01' + (i * 7919 % 25000)::int FROM generate_series(1, {PATIENTS}) AS i;
INSERT INTO clinic.stays
    SELECT i, 1 + i * 7919 % {PATIENTS}, (ARRAY['north', 'south', 'west']::clinic.ward[])[1 + i % 3], 50 + i * 31 % 950
    FROM generate_series(1, {STAYS}) AS i;
INSERT INTO clinic.drugs SELECT i, 1 + i % {STAYS}, 1 + i % 4 FROM generate_series(1, {2 * STAYS}) AS i;
"""
POLICY = """\
version = "1"
ledger = "{ledger}"

[budget]
account = "patients"
epsilon = 10

[limits]
max_groups = 3
max_rows = 8

[tables.patients]
path = "{url}"
schema = "clinic"
unit = "patient"
unique = true

[tables.stays]
path = "{url}"
schema = "clinic"
unit = "patient"

[tables.stays.columns]
stay = {{ unique = true }}
ward = {{ keys = ["north", "south", "west"] }}
cost = {{ bounds = [0, 1000] }}

[tables.drugs]
path = "{url}"
schema = "clinic"
unit = {{ through = "stay", to = "stays" }}

[tables.drugs.columns]
doses = {{ bounds = [0, 4] }}
"""
QUESTIONS = (
    ("SELECT ward, count(*) AS n, avg(cost) AS mean FROM stays GROUP BY ward", 2),
    ("SELECT ward, quantile(cost, 0.5) AS median FROM stays GROUP BY ward", 2),
    ("SELECT sum(doses) AS doses FROM drugs", 1),
    ("SELECT count(*) AS patients FROM patients", 1),
)
TRUTHS = (
    "SELECT ward::text, count(*), avg(cost)::float8 FROM clinic.stays GROUP BY ward ORDER BY ward",
    "SELECT ward::text, percentile_disc(0.5) WITHIN GROUP (ORDER BY cost)::float8 FROM clinic.stays GROUP BY ward "
    "ORDER BY ward",
    "SELECT sum(doses) FROM clinic.drugs",
    "SELECT count(*) FROM clinic.patients",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A question, what was answered, and what is true of the made-up clinic."""

    question: str
    answered: list[list[Any]]
    truth: list[list[Any]]


def url_of(owner: str, user: str, *, schema: str | None = None) -> str:
    """Return the URL by which another role reaches the same database."""
    parts = conninfo_to_dict(owner)
    host = str(parts.get("host") or "")
    where = f"host={quote(host, safe='')}" if host.startswith("/") else ""
    path = f"options={quote(f'-csearch_path={schema}')}" if schema else ""
    server = "" if where else host
    port = f":{parts['port']}" if parts.get("port") else ""
    options = "&".join(filter(None, [where, path]))
    return f"postgresql://{user}@{server}{port}/{parts.get('dbname', '')}{'?' if options else ''}{options}"


def build(owner: str, folder: Path, console: Console) -> Path:
    """Make the clinic, its roles and its policy; return the policy's path."""
    words = {READER: secrets.token_hex(16), "hubbub_ledger": secrets.token_hex(16)}
    passes = folder / "pgpass"
    passes.write_text("".join(f"*:*:*:{role}:{word}\n" for role, word in words.items()))
    passes.chmod(0o600)
    os.environ["PGPASSFILE"] = str(passes)
    policy = folder / "hubbub.toml"
    ledger = url_of(owner, "hubbub_ledger", schema="ledger")
    policy.write_text(POLICY.format(url=owner, ledger=ledger))
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(SCHEMA.encode())
        for statement in mend(policy, console):
            connection.execute(statement.encode())
        connection.execute("CREATE ROLE hubbub_ledger LOGIN; CREATE SCHEMA ledger AUTHORIZATION hubbub_ledger")
        for role, word in words.items():
            connection.execute(f"ALTER ROLE {role} PASSWORD '{word}'".encode())
    policy.write_text(POLICY.format(url=url_of(owner, READER), ledger=ledger))
    return policy


def mend(policy: Path, console: Console) -> tuple[str, ...]:
    """Say what the role of a policy can see beyond it, and return the statements that mend it."""
    room = EngineRoom(limits=hb.Limits())
    try:
        declared = read_policy(policy, describe=room.describe)
    finally:
        room.close()
    statements: list[str] = []
    for report in check_servers(declared, is_pushed=True):
        for one in report.excess:
            console.print(f"  ✗ {one.sentence}", markup=False, highlight=False)
        for fact in report.facts:
            console.print(f"  {'✓' if fact.is_enforced else '·'} {fact}", markup=False, highlight=False)
        statements += report.statements
    return tuple(statements)


def ask(policy: Path, owner: str, console: Console) -> list[Found]:
    """Ask every question, and put the truth beside the answers."""
    found = []
    with hb.open(policy) as db, psycopg.connect(owner, autocommit=True) as connection:
        explained = db.explain(QUESTIONS[0][0], epsilon=QUESTIONS[0][1])
        console.print(f"Questions {explained.where}.\n", markup=False, highlight=False)
        for (question, epsilon), truth in zip(QUESTIONS, TRUTHS, strict=True):
            answer = db.sql(question, epsilon=epsilon)
            true = [list(row) for row in connection.execute(truth.encode()).fetchall()]
            console.print(question, markup=False, highlight=False)
            answered = [list(row) for row in answer.rows]
            console.print(_table(answer.columns, answered, true))
            found.append(Found(question=question, answered=answered, truth=true))
        console.print(db.budget, markup=False, highlight=False)
    return found


def _table(columns: Sequence[str], rows: list[list[Any]], truth: list[list[Any]]) -> Table:
    shown = Table(*columns, "truth")
    for row, true in zip(rows, truth, strict=True):
        shown.add_row(*(_show(cell) for cell in row), ", ".join(_show(cell) for cell in true))
    return shown


def _show(cell: object) -> str:
    return f"{cell:,.6g}" if isinstance(cell, float) else str(cell)


def run(owner: str, folder: Path, console: Console) -> list[Found]:
    """Do all of it in one database."""
    console.print("What the owner's role can see, and what the database enforces:")
    policy = build(owner, folder, console)
    left = mend(policy, console)
    assert not left, left
    return ask(policy, owner, console)


def main() -> None:
    """Run on the database that is named."""
    if len(sys.argv) != 2:
        sys.exit("Name a new database: python -m examples.postgres postgresql:///example")
    with tempfile.TemporaryDirectory(prefix="hubbub-example-") as folder:
        os.environ.setdefault("HUBBUB_STATE", str(Path(folder) / "state"))
        run(sys.argv[1], Path(folder), Console(width=100))


if __name__ == "__main__":
    main()
