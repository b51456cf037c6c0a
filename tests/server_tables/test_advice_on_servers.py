"""Advice, explanations and intervals of the whole error where tables are a server's: what they are for files."""

import time
from pathlib import Path

import hubbub as hb
from hubbub.query.requests import Tallies
from tests.postgres import PostgresServer
from tests.server_tables.test_opening_servers import GROUPED, POLICY, WHERE, either, written

COVERED = POLICY.replace("max_groups = 2\nmax_rows = 6\n", "max_groups = 1\nmax_rows = 1\nmax_total_rows = 4\n")


@either
def test_an_explanation_says_where_and_what_was_advised(reader: str, tmp_path: Path, copies: bool) -> None:
    """Everybody has three stays in two wards, of which one in one ward counts."""
    with hb.open(written(tmp_path, reader, COVERED, copies=copies)) as db:
        before = db.explain(GROUPED, epsilon=1)
        assert WHERE[copies] in before.to_dict()["where"]
        assert before.advice == ()
        advice = db.advise(epsilon=1000, table="stays")
        left = str(db.budget)
        after = db.explain(GROUPED, epsilon=1)
        assert after.to_dict()["where"] == before.to_dict()["where"]
        assert {one["limit"] for one in after.advice} >= {"max_rows"}
        lines = str(after).split("\n")
        assert sum(line.startswith("where       questions run on ") for line in lines) == 1
        assert sum(line.startswith("advice") for line in lines) == len(after.advice)
        assert all(column["dropped"] is not None for column in after.to_dict()["columns"])
        assert str(db.budget) == left
        assert db.advise(epsilon=1000, table="stays").entry == advice.entry


@either
def test_intervals_cover_what_is_dropped(reader: str, tmp_path: Path, copies: bool) -> None:
    """Two wards of which each has two intervals, and noise of ε = 1,000: a false alarm has probability 1e-6."""
    truth = {"north": 100, "south": 200}
    with hb.open(written(tmp_path, reader, COVERED, copies=copies)) as db:
        counted = "SELECT ward, count(*) AS n FROM stays GROUP BY ward"
        answer = db.sql(counted, epsilon=1000)
        noise = db.sql(counted, epsilon=2000, error="noise")
        for shown in (answer.with_intervals(1 - 1e-7), answer.with_intervals(1 - 1e-6, simultaneous=True)):
            assert "the intervals cover that where no person has more than max_total_rows = 4" in shown.terms
            for row in shown.to_dicts():
                assert row["n_low"] <= truth[row["ward"]] <= row["n_high"]
        assert all(row["n_high"] < truth[row["ward"]] for row in noise.to_dicts())
        whole = db.sql(counted, epsilon=1000, error="whole")
        assert whole.entry not in {answer.entry, noise.entry}
        again = db.sql(counted, epsilon=1000, error="whole")
        assert (again.entry, again.rows, again.lows) == (whole.entry, whole.rows, whole.lows)
        for row in whole.with_intervals(1 - 1e-7).to_dicts():
            assert row["n_low"] <= truth[row["ward"]] <= row["n_high"]


def _open_connections(server: PostgresServer, url: str) -> int:
    """How many connections the server has to a database but that of whoever looks, once those that end have ended."""
    counting = (
        "SELECT count(*)::int FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    for _ in range(100):
        ((many,),) = server.execute(counting, url=url)
        if many == 0:
            break
        time.sleep(0.02)
    return int(many)


@either
def test_what_was_begun_and_not_asked_leaves_nothing_open(
    server: PostgresServer, reader: str, tmp_path: Path, copies: bool
) -> None:
    with hb.open(written(tmp_path, reader, COVERED, copies=copies)) as db:
        db._engine.rouse()
        plan = db.plan(GROUPED, epsilon=1)
        run = db._engine.prepare(Tallies(aggregate=plan.aggregate), tables=db.policy.tables)
        run.begin()
        assert copies or _open_connections(server, reader) == 1
        run.end()
        assert copies or _open_connections(server, reader) == 0
        assert len(db.sql(GROUPED, epsilon=1000)) == 2
        assert copies or _open_connections(server, reader) == 0
