"""How long a small question takes in a session that is open: read, planned, paid, run, noised and stored."""

import time
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import numpy as np

import hubbub as hb
from bench.record import Bench, Row
from bench.scratch import scratch
from hubbub.ledger import Marks

ROWS, PEOPLE, WARDS, ROUNDS = 10_000, 1_000, 5, 40
PAUSE = 0.1
"""Seconds between questions, as between those of a person: the next process is ready by then."""
MOST = 20.0
QUESTIONS = {
    "a count": "SELECT count(*) AS n FROM stays WHERE cost > {}",
    "a mean": "SELECT avg(cost) AS mean FROM stays WHERE cost > {}",
    "a count by ward": "SELECT ward, count(*) AS n FROM stays WHERE cost > {} GROUP BY ward",
    "a count and a mean by ward": "SELECT ward, count(*) AS n, avg(cost) AS m FROM stays WHERE cost > {} GROUP BY ward",
}


def run() -> Iterator[Row]:
    """Every question is a new one, with a charge of its own; the kinds take turns."""
    taken: dict[str, list[float]] = {what: [] for what in QUESTIONS}
    with scratch() as folder:
        path = folder / "stays.parquet"
        made = f"SELECT i % {PEOPLE} AS person, 'w' || (i % {WARDS}) AS ward, (i * 7 % 100)::DOUBLE AS cost"
        duckdb.sql(f"COPY ({made} FROM range({ROWS}) AS t(i)) TO '{path}' (FORMAT parquet)")
        with hb.open(
            path,
            unit="person",
            budget=hb.Budget(epsilon=Fraction(10**5)),
            bounds={"cost": (0, 100)},
            keys={"ward": [f"w{place}" for place in range(WARDS)]},
            limits=hb.Limits(max_groups=3, max_rows=10),
            ledger=folder / "ledger",
            marks=Marks(folder / "state"),
        ) as db:
            for turn in range(ROUNDS):
                for what, text in QUESTIONS.items():
                    time.sleep(PAUSE)
                    start = time.perf_counter()
                    db.sql(text.format(turn), epsilon=Fraction(1))
                    taken[what].append((time.perf_counter() - start) * 1e3)
    for what, times in taken.items():
        best, median, late = np.quantile(times[2:], [0, 0.5, 0.9])
        yield Row(
            what=what,
            figures={"best, ms": float(best), "median, ms": float(median), "90%, ms": float(late)},
            target=f"< {MOST:g} ms",
            holds=bool(median < MOST),
        )


BENCH = Bench(
    name="warm",
    about="a small question in an open session, end to end",
    run=run,
    steps=len(QUESTIONS),
    notes=(
        f"{ROWS:,} rows of {PEOPLE:,} people in Parquet, {ROUNDS} questions of each kind, two charges to disk each, a "
        "process of its own for each; held against the median.",
        "By ward, a person counts in 3 of 5 groups, chosen by a keyed hash: the engine sorts each person's groups.",
    ),
)
