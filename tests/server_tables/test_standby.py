"""Questions on a standby, which ends snapshots whose rows it must remove: they are read again, uncounted."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

import hubbub as hb
from hubbub.engines.postgres import copying
from hubbub.engines.postgres.engine import Postgres
from hubbub.errors import PolicyError
from tests.postgres import PostgresServer, StandbyServer, running_server, running_standby
from tests.server_tables.conftest import CLINIC, EXACTLY
from tests.server_tables.test_opening_servers import GROUPED, costs, either, written

IMPATIENT = {"max_standby_streaming_delay": "0", "hot_standby_feedback": "off"}
CONFLICT = "UPDATE clinic.stays SET note = note || '.'"


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    with running_server() as server:
        server.execute(CLINIC + EXACTLY)
        yield server


@pytest.fixture(scope="module")
def standby(primary: PostgresServer) -> Iterator[StandbyServer]:
    with running_standby(primary, IMPATIENT) as server:
        server.catch_up()
        yield server


def conflict_once(primary: PostgresServer, standby: StandbyServer, after: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap what runs in a snapshot: before it runs for the first time, the rows of the snapshot are removed."""
    calls: list[int] = []

    def run(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            primary.execute(CONFLICT)
            primary.execute("VACUUM clinic.stays")
            standby.catch_up()
        return after(*arguments, **named)

    run.calls = calls  # type: ignore[attr-defined]
    return run


@either
def test_a_standby_answers(primary: PostgresServer, standby: StandbyServer, tmp_path: Path, copies: bool) -> None:
    with hb.open(written(tmp_path, standby.url(user="reader"), copies=copies)) as db:
        answer = db.sql(GROUPED, epsilon=1_000_000)
    assert [(row["ward"], round(row["n"]), round(row["s"])) for row in answer.to_dicts()] == costs(
        primary, primary.url()
    )


def test_a_question_whose_snapshot_was_ended_is_read_again(
    primary: PostgresServer, standby: StandbyServer, tmp_path: Path
) -> None:
    run = conflict_once(primary, standby, Postgres._run)
    logged: list[str] = []
    with hb.open(written(tmp_path, standby.url(user="reader"), copies=False), log=logged.append) as db:
        with patch.object(Postgres, "_run", run):
            answer = db.sql(GROUPED, epsilon=1_000_000)
        kinds = [entry.kind for entry in db.ledger.entries()]
    assert [(row["ward"], round(row["n"]), round(row["s"])) for row in answer.to_dicts()] == costs(
        primary, primary.url()
    )
    assert len(run.calls) == 2  # type: ignore[attr-defined]
    assert any("40001" in line for line in logged)  # the conflict was real
    assert kinds.count("charge") == kinds.count("answer") == 1
    assert "failure" not in kinds


def test_a_copy_whose_snapshot_was_ended_is_taken_again(
    primary: PostgresServer, standby: StandbyServer, tmp_path: Path
) -> None:
    run = conflict_once(primary, standby, copying._copy)
    with patch.object(copying, "_copy", run), hb.open(written(tmp_path, standby.url(user="reader"))) as db:
        answer = db.sql(GROUPED, epsilon=1_000_000)
    assert [(row["ward"], round(row["n"]), round(row["s"])) for row in answer.to_dicts()] == costs(
        primary, primary.url()
    )
    assert len(run.calls) == 5  # type: ignore[attr-defined]  # four tables, of which the first was begun twice


def test_a_standby_that_never_lets_a_copy_end_is_named(
    primary: PostgresServer, standby: StandbyServer, tmp_path: Path
) -> None:
    def conflict(*_: Any, **__: Any) -> Any:
        raise psycopg.errors.SerializationFailure

    with patch.object(copying, "_copy", conflict), pytest.raises(PolicyError, match="standby"):
        hb.open(written(tmp_path, standby.url(user="reader")))
