"""How long a small question takes in a session that is open, and how many of them eight threads have answered a second.

Read, planned, paid, run, noised and stored: each question is a new one, with two durable writes and its own process.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
ASKERS, ASKED = 8, 400
QUESTIONS = {
    "a count": "SELECT count(*) AS n FROM stays WHERE cost > {}",
    "a mean": "SELECT avg(cost) AS mean FROM stays WHERE cost > {}",
    "a count by ward": "SELECT ward, count(*) AS n FROM stays WHERE cost > {} GROUP BY ward",
    "a count and a mean by ward": "SELECT ward, count(*) AS n, avg(cost) AS m FROM stays WHERE cost > {} GROUP BY ward",
}
MOST = {"a count": 9.0, "a mean": None, "a count by ward": 25.0, "a count and a mean by ward": 25.0}
"""Milliseconds at the median."""
LEAST = {"a count": 80.0, "a count and a mean by ward": 40.0}
"""Questions a second."""


@contextmanager
def session() -> Iterator[hb.Database]:
    """A small table that is open, with more to spend than is asked for here."""
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
            yield db


def run() -> Iterator[Row]:
    """First one after another, the kinds taking turns; then all at once."""
    with session() as db:
        yield from run_alone(db)
        yield from run_together(db)


def run_alone(db: hb.Database) -> Iterator[Row]:
    """Ask like one person, who reads an answer before the next question."""
    taken: dict[str, list[float]] = {what: [] for what in QUESTIONS}
    for turn in range(ROUNDS):
        for what, text in QUESTIONS.items():
            time.sleep(PAUSE)
            start = time.perf_counter()
            db.sql(text.format(turn), epsilon=Fraction(1))
            taken[what].append((time.perf_counter() - start) * 1e3)
    for what, times in taken.items():
        best, median, late = np.quantile(times[2:], [0, 0.5, 0.9])
        most = MOST[what]
        yield Row(
            what=what,
            figures={"best, ms": float(best), "median, ms": float(median), "90%, ms": float(late)},
            target="" if most is None else f"≤ {most:g} ms",
            holds=None if most is None else bool(median <= most),
        )


def run_together(db: hb.Database) -> Iterator[Row]:
    """Ask from many threads without a pause."""
    for what, least in LEAST.items():
        texts = iter([QUESTIONS[what].format(f"{turn}.5") for turn in range(-ASKED, 0)])
        turns, taken = threading.Lock(), list[float]()

        def ask(texts: Iterator[str] = texts, turns: threading.Lock = turns, taken: list[float] = taken) -> None:
            while True:
                with turns:
                    text = next(texts, None)
                if text is None:
                    return
                start = time.perf_counter()
                db.sql(text, epsilon=Fraction(1))
                taken.append((time.perf_counter() - start) * 1e3)

        asking = [threading.Thread(target=ask) for _ in range(ASKERS)]
        start = time.perf_counter()
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        rate = len(taken) / (time.perf_counter() - start)
        median, late = np.quantile(taken, [0.5, 0.99])
        yield Row(
            what=f"{what}, {ASKERS} threads",
            figures={"a second": rate, "median, ms": float(median), "99%, ms": float(late)},
            target=f"≥ {least:g} a second",
            holds=bool(rate >= least),
        )


BENCH = Bench(
    name="warm",
    about="a small question in an open session, end to end",
    run=run,
    steps=len(QUESTIONS) + len(LEAST),
    notes=(
        f"{ROWS:,} rows of {PEOPLE:,} people in Parquet, {ROUNDS} questions of each kind, two charges to disk each, a "
        f"process of its own for each; held against the median. Then {ASKED} of a kind from {ASKERS} threads.",
        "By ward, a person counts in 3 of 5 groups, chosen by a keyed hash: the engine sorts each person's groups.",
    ),
)
