"""Private SQL end to end against DuckDB's own answer to the same question, without privacy, on the same file."""

import itertools
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import hubbub as hb
from bench.clock import best
from bench.record import Bench, Row
from bench.scratch import scratch
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits

GROUPS = 1000
SIZES = ((1_000_000, 100_000, 2.4), (10_000_000, 1_000_000, 1.6))
"""Rows, users, and the most times DuckDB's own time that it may take."""
ROUNDS = 7
MAX_GROUPS = 5
MAX_ROWS = 2
BOUNDS = (0, 100)
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


def plain(path: Path) -> None:
    """The same question to DuckDB itself, without privacy."""
    connection = duckdb.connect(config={"threads": os.cpu_count() or 1})
    connection.execute(QUESTION.replace("FROM events", f"FROM '{path}'")).fetchall()
    connection.close()


def opened(path: Path, folder: Path, **limits: Any) -> hb.Database:
    """The file, open for more questions than are asked here."""
    return hb.open(
        path,
        name="events",
        unit="user_id",
        budget=hb.Budget(epsilon=Fraction(10**5), delta=Fraction(1, 10**9)),
        bounds={"value": BOUNDS},
        keys={"grp": list(range(GROUPS))},
        limits=Limits(max_groups=MAX_GROUPS, max_rows=MAX_ROWS, **limits),
        ledger=folder / f"{path.stem}.ledger",
        marks=Marks(folder / "state"),
    )


def seconds(path: Path, folder: Path) -> dict[str, float]:
    """Both sides in turns; every round is a new question with a charge of its own, and nothing is served again."""
    prices = itertools.count(1)
    with opened(path, folder) as db:
        sides: dict[str, Callable[[], object]] = {
            "private": lambda: db.sql(QUESTION, epsilon=Fraction(next(prices))),
            "alone": partial(plain, path),
        }
        return best(sides, rounds=ROUNDS)


def plain_seconds(path: Path) -> float:
    """DuckDB's own."""
    return best({"alone": partial(plain, path)}, rounds=ROUNDS)["alone"]


def run() -> Iterator[Row]:
    """Both sides on the same file."""
    with scratch() as folder:
        for rows, users, most in SIZES:
            path = build(folder, rows, users)
            private, alone = seconds(path, folder).values()
            yield Row(
                what=f"{rows:,} rows, {users:,} users, {GROUPS:,} groups, at most {MAX_GROUPS} each",
                figures={"seconds": private, "DuckDB alone": alone, "ratio": private / alone},
                target=f"≤ {most:g}×",
                holds=private / alone <= most,
            )
            path.unlink()


BENCH = Bench(
    name="queries",
    about="COUNT, COUNT(DISTINCT unit), SUM and AVG by group, private end to end, beside DuckDB without privacy",
    run=run,
    steps=len(SIZES),
    notes=(
        f"Best of {ROUNDS} rounds each, in turns. End to end: question read, charged durably, run in a "
        "process of its own, noise drawn, answer stored.",
        f"Units count with at most {MAX_ROWS} rows in a group.",
    ),
)
