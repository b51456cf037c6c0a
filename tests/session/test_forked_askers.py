"""An asker that forks while its database is open: children ask by themselves, and a charge has one answer."""

import os
from pathlib import Path

import duckdb
import pytest

import hubbub as hb
from hubbub.ledger import Marks

SUM = "SELECT sum(x) AS s FROM people"
CHILDREN = 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_share_answers_and_no_noise(tmp_path: Path) -> None:
    rows = "SELECT i AS id, i % 7 AS x FROM range(500) AS t(i)"
    duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path}/people.parquet'")
    db = hb.open(
        tmp_path / "people.parquet",
        unit="id",
        budget=100,
        bounds={"x": (0, 6)},
        limits=hb.Limits(max_groups=1, max_rows=1),
        ledger=tmp_path / "ledger",
        marks=Marks(tmp_path / "marks"),
    )
    with db:
        db.sql("SELECT count(*) AS n FROM people", epsilon=1)  # everything is warm, and noise was drawn
        told = [ask_in_child(db, child) for child in range(CHILDREN)]
        found = [collect(*one) for one in told]
        assert len({shared for shared, _ in found}) == 1, "one charge has one answer, whoever draws it first"
        assert db.sql(SUM, epsilon=1).rows[0][0] == float(found[0][0])
        assert len({own for _, own in found}) == CHILDREN, (
            "at a scale of 10^6, but for a chance of 1e-6, equal noise is one stream"
        )
        spent = db.ledger.statement("people").spent
        assert spent.charges == 2 + CHILDREN
        db.ledger.verify()


def ask_in_child(db: hb.Database, child: int) -> tuple[int, int]:
    """The child's number, and where it says what it has heard."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            shared = db.sql(SUM, epsilon=1).rows[0][0]
            own = db.sql(f"SELECT count(*) AS n FROM people WHERE x <> {10 + child}", epsilon=1e-6)
            os.write(writing, f"{shared} {own.noisy[0][0]}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    return process, reading


def collect(process: int, reading: int) -> tuple[str, str]:
    os.waitpid(process, 0)
    with os.fdopen(reading) as heard:
        shared, own = heard.read().split()
    return shared, own
