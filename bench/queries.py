"""Private SQL end to end against DuckDB's own answer to the same question, without privacy, on the same file."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import numpy as np

import hubbub as hb
from bench.record import Bench, Row
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits

GROUPS = 1000
SIZES = ((1_000_000, 100_000, 6.0), (10_000_000, 1_000_000, 2.5))
"""Rows, users, and the most times DuckDB's own time that it may take."""
ROUNDS = 3
MAX_GROUPS = 5
QUESTION = (
    "SELECT grp, count(*) AS n, count(DISTINCT user_id) AS users, sum(value) AS total, avg(value) AS mean "
    "FROM events GROUP BY grp"
)


def build(folder: Path, rows: int, users: int) -> Path:
    """Users and groups by Zipf's law, values lognormal and cut at 100."""
    rng = np.random.default_rng(5)

    def zipf(many: int, power: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        weights = np.arange(1, many + 1, dtype=np.float64) ** -power
        return np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(rows)).astype(np.int64)

    columns = {
        "user_id": zipf(users, 0.4),
        "grp": zipf(GROUPS, 0.8).astype(np.int32),
        "value": np.minimum(np.exp(rng.normal(3, 0.8, size=rows)), 100.0),
    }
    path = folder / f"events{rows}.parquet"
    connection = duckdb.connect()
    connection.register("made", columns)
    connection.execute(f"COPY (SELECT * FROM made) TO '{path}' (FORMAT parquet)")
    connection.close()
    return path


def _best(rounds_of: Sequence[Callable[[], object]]) -> float:
    rounds = []
    for work in rounds_of:
        start = time.perf_counter()
        work()
        rounds.append(time.perf_counter() - start)
    return min(rounds)


def _plain(path: Path) -> None:
    connection = duckdb.connect(config={"threads": os.cpu_count() or 1})
    connection.execute(QUESTION.replace("FROM events", f"FROM '{path}'")).fetchall()
    connection.close()


def run() -> Iterator[Row]:
    """Every round is a new question with a charge of its own; nothing is served again."""
    with tempfile.TemporaryDirectory(prefix="hubbub-bench-", dir=Path.cwd()) as name:
        folder = Path(name)
        for rows, users, most in SIZES:
            path = build(folder, rows, users)
            with hb.open(
                path,
                name="events",
                unit="user_id",
                budget=hb.Budget(epsilon=Fraction(10**5), delta=Fraction(1, 10**9)),
                bounds={"value": (0, 100)},
                keys={"grp": list(range(GROUPS))},
                limits=Limits(max_groups=MAX_GROUPS, max_rows=2),
                ledger=folder / f"{rows}.ledger",
                marks=Marks(folder / "state"),
            ) as db:
                private = _best([partial(db.sql, QUESTION, epsilon=Fraction(1 + number)) for number in range(ROUNDS)])
                plain = _best([partial(_plain, path)] * ROUNDS)
            yield Row(
                what=f"{rows:,} rows, {users:,} users, {GROUPS:,} groups, at most {MAX_GROUPS} each",
                figures={"seconds": private, "DuckDB alone": plain, "ratio": private / plain},
                target=f"≤ {most:g}×",
                holds=private / plain <= most,
            )
            path.unlink()


BENCH = Bench(
    name="queries",
    about="COUNT, COUNT(DISTINCT unit), SUM and AVG by group, private end to end, beside DuckDB without privacy",
    run=run,
    steps=len(SIZES),
    notes=(
        f"Best of {ROUNDS} rounds each, one after the other. End to end: question read, charged durably, run in a "
        "process of its own, noise drawn, answer stored.",
        "Units count with at most 2 rows in a group.",
    ),
)
