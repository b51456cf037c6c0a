"""Behind pgbouncer, which gives each transaction any session: nothing rests on what a session was told before."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import hubbub as hb
from tests.postgres import PostgresServer
from tests.server_tables.pooler import pooled, through
from tests.server_tables.test_opening_servers import GROUPED, costs, either, written

ODD = """
SET search_path = odd, pg_catalog; SET DateStyle = 'German'; SET TimeZone = 'Asia/Kolkata';
SET extra_float_digits = -15; SET work_mem = '64kB';
SET default_transaction_isolation = 'read committed'; SET standard_conforming_strings = off; SET row_security = on
"""
SHADOWS = """
CREATE SCHEMA odd;
CREATE FUNCTION odd.sum_one(numeric, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 1::numeric';
CREATE AGGREGATE odd.sum(numeric) (SFUNC = odd.sum_one, STYPE = numeric);
CREATE FUNCTION odd.never(bigint, bigint) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE OPERATOR odd.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = odd.never);
GRANT USAGE ON SCHEMA odd TO reader;
"""


@either
def test_sessions_that_others_left_behind_change_nothing(
    server: PostgresServer, clinic: str, reader: str, tmp_path: Path, copies: bool
) -> None:
    server.execute(SHADOWS, url=clinic)
    with pooled(server, "reader") as folder:
        url = through(reader, folder)
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as before:
            for setting in ODD.strip().split(";"):
                before.execute(setting.encode())
            shown = before.execute("SHOW search_path").fetchone()
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as after:
            assert after.execute("SHOW search_path").fetchone() == shown  # the session is the same one
        with hb.open(written(tmp_path, url, copies=copies)) as db:
            answer = db.sql(GROUPED, epsilon=1_000_000)
            born = db.sql("SELECT count(*) AS n FROM people WHERE born < '1950-02-01'", epsilon=100_000)
    assert [(row["ward"], round(row["n"]), round(row["s"])) for row in answer.to_dicts()] == costs(server, clinic)
    assert [round(row["n"]) for row in born.to_dicts()] == [30]


def test_many_ask_through_one_session(server: PostgresServer, clinic: str, reader: str, tmp_path: Path) -> None:
    with pooled(server, "reader") as folder, hb.open(written(tmp_path, through(reader, folder), copies=False)) as db:
        texts = [f"SELECT count(*) AS n FROM people WHERE person <= {most}" for most in range(10, 90, 10)]
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda text: db.sql(text, epsilon=10_000), texts))
    assert [round(answer.to_dicts()[0]["n"]) for answer in answers] == list(range(10, 90, 10))


def test_a_pooler_that_goes_away_costs_nothing(
    server: PostgresServer, clinic: str, reader: str, tmp_path: Path
) -> None:
    """What was answered is still there, and what cannot be read is refused before it is charged."""
    with pooled(server, "reader") as folder:
        url = through(reader, folder)
        path = written(tmp_path, url, copies=False)
        db = hb.open(path)
        db.sql("SELECT count(*) FROM people", epsilon=1)
    with pytest.raises(hb.HubbubError):
        db.sql("SELECT count(*) FROM stays", epsilon=1)  # refused before it is charged: the catalogue cannot be read
    spent = str(db.budget)
    with pooled(server, "reader"):
        assert db.sql("SELECT count(*) FROM people", epsilon=1)  # which is stored
        assert str(db.budget) == spent
        db.sql("SELECT count(*) FROM stays", epsilon=1)
    db.close()
