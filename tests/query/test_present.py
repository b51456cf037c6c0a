"""Where a condition leaves no row without a value, its count is that of all rows; and nowhere else."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.ledger import Marks
from hubbub.query.ops import Measure

ROWS = "(VALUES (1, 'a', 5.0, 1), (1, 'a', NULL, 2), (2, 'b', 7.0, NULL), (3, NULL, -1.0, 3), (4, 'b', 9.0, 4))"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hb.Database]:
    path = tmp_path / "stays.parquet"
    duckdb.sql(f"COPY (SELECT * FROM {ROWS} AS t(person, ward, cost, days)) TO '{path}' (FORMAT parquet)")
    with hb.open(
        path,
        unit="person",
        budget=hb.Budget(epsilon=Fraction(100)),
        columns={
            "person": "integer",
            "ward": "text",
            "cost": "real",
            "days": "integer",
        },
        limits=hb.Limits(max_rows=2),
        bounds={"cost": (0, 10), "days": (0, 9)},
        ledger=tmp_path / "ledger",
        marks=Marks(tmp_path / "state"),
    ) as opened:
        yield opened


TOLD = [
    "cost > 0",
    "NOT (cost <= 0)",
    "cost IS NOT NULL",
    "cost BETWEEN 1 AND 8",
    "cost IN (5.0, 7.0)",
    "2 * cost + 1 > abs(cost - 3)",
    "days = 1 AND cost <> 5",
    "-cost < days",
]
NOT_TOLD = [
    "days > 0",
    "cost > 0 OR days > 0",
    "cost IS NULL",
    "(cost IS NOT NULL) = FALSE",
    "(cost IS NULL) = TRUE",
    "NOT (cost IS NULL AND days > 0)",
    "coalesce(cost, 1) > 0",
    "CASE WHEN cost > 0 THEN FALSE ELSE TRUE END",
    "greatest(cost, 1.0) > 0",
    "ward LIKE 'b%'",
]


def counted(db: hb.Database, condition: str, aggregates: str = "count(*), avg(cost)") -> list[Any]:
    tallies = db.plan(f"SELECT {aggregates} FROM stays WHERE {condition}", epsilon=1).aggregate.tallies
    return [one.argument for one in tallies if one.measure is Measure.ROWS]


@pytest.mark.parametrize("condition", TOLD)
def test_a_mean_shares_the_count_of_all_rows(db: hb.Database, condition: str) -> None:
    assert counted(db, condition) == [None]
    assert counted(db, condition, "count(cost), count(*)") == [None]


@pytest.mark.parametrize("condition", NOT_TOLD)
def test_a_mean_has_a_count_of_its_own(db: hb.Database, condition: str) -> None:
    both = counted(db, condition)
    assert len(both) == 2
    assert both[0] is None
    assert both[1] is not None


@pytest.mark.parametrize("condition", [*TOLD, *NOT_TOLD])
def test_what_is_counted_is_what_the_engine_counts(db: hb.Database, condition: str) -> None:
    """Sums of these few rows are within the bounds, so that counts are exact."""
    planned = db.plan(f"SELECT count(cost) AS n FROM stays WHERE {condition}", epsilon=1)
    text = f"SELECT count(cost) FROM {ROWS} AS stays(person, ward, cost, days) WHERE {condition}"
    assert exact_of(db, planned.aggregate).tallies == duckdb.connect().execute(text).fetchall()
