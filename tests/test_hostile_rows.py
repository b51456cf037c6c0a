"""Rows that no calendar and no screen can hold: whatever one person's row is, a paid question is answered."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import hubbub as hb
from hubbub.ledger import Marks

USUAL = "SELECT i, 'usual', DATE '2024-01-05', TIMESTAMP '2024-01-05 12:00:00', 1.5, 1 FROM range(400) AS t(i)"
ODD = """
(1001, repeat('x', 2000000), DATE '290308-12-21', TIMESTAMP '290300-01-01 00:00:00', 'nan', 9223372036854775807),
(1002, 'with' || chr(0) || 'nul', DATE 'infinity', TIMESTAMP 'infinity', 'inf', -9223372036854775808),
(1003, '', DATE '0044-03-15 (BC)', TIMESTAMP '-infinity', '-inf', 0),
(1004, NULL, DATE '10000-01-01', TIMESTAMP '0044-03-15 (BC) 00:00:00', 1e308, NULL),
(1005, '=HYPERLINK("x")', DATE '-infinity', NULL, -1e308, NULL)
"""
TABLE = "CREATE TABLE stays (id BIGINT, word VARCHAR, day DATE, moment TIMESTAMP, cost DOUBLE, n BIGINT)"
WIDE = "contribution_bounds_per_row => (-9, 9)"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Database]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    with duckdb.connect() as connection:
        connection.execute(f"{TABLE}; INSERT INTO stays {USUAL}; INSERT INTO stays VALUES {ODD}")
        connection.execute(f"COPY stays TO '{folder / 'stays.parquet'}'")
    with hb.open(
        folder / "stays.parquet",
        unit="id",
        budget=hb.Budget(epsilon=Fraction(10**6), delta=Fraction(1, 100)),
        bounds={"cost": (0, 100), "n": (-100, 100)},
        limits=hb.Limits(max_groups=1, max_rows=1),
        ledger=folder / "ledger",
        marks=Marks(folder / "marks"),
    ) as made:
        made.ledger.grant("people", "ann", limit=made.policy.budget)
        made._session.principal = "ann"
        yield made


@pytest.mark.parametrize(
    "question",
    [
        "SELECT day, count(*) FROM stays GROUP BY day",
        "SELECT moment, count(*) FROM stays GROUP BY moment",
        "SELECT word, count(*) FROM stays GROUP BY word",
        "SELECT date_trunc('week', day), count(*) FROM stays GROUP BY 1",
        "SELECT year(moment), count(*) FROM stays GROUP BY 1",
        "SELECT median(cost), min(cost), max(cost), avg(n), stddev(cost) FROM stays",
        f"SELECT sum(ln(cost), {WIDE}), sum(sqrt(cost), {WIDE}), sum(1 / n, {WIDE}) FROM stays",
        f"SELECT sum(cost * cost * cost, {WIDE}), sum(exp(cost), {WIDE}) FROM stays",
        "SELECT count(DISTINCT word), count(DISTINCT day), count(DISTINCT n) FROM stays",
    ],
)
def test_a_row_that_no_calendar_holds_fails_no_question(db: hb.Database, question: str) -> None:
    answer = db.sql(question, epsilon=10, delta=Fraction(1, 1000))
    assert len(answer) >= 1
    assert db.ledger.failures() == []
