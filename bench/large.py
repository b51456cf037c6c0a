"""100 million rows of 10 million users: time beside DuckDB's own, and the memory of everything that ran."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb

from bench import queries
from bench.memory import GB, Peak
from bench.record import Bench, MissingInput, Row
from bench.scratch import CACHE, scratch

ROWS = int(os.environ.get("HUBBUB_LARGE_ROWS", "100000000"))
USERS = ROWS // 10
MOST = 6.0
"""Gigabytes for the whole tree of processes."""
MEMORY = "4GB"
"""What the engine may hold; the rest is for two Pythons, and for what an engine does not count."""
BUILD_MEMORY = "2GB"
SECONDS = 1800.0
BYTES_A_ROW = 20 + 300
"""Of the file, and of what a hundred million rows may spill."""


def zipf(salt: int, many: int, power: float) -> str:
    """SQL for 0 up to many − 1 by Zipf's law: the inverse of its distribution, whose sum is taken as an integral."""
    rest = 1 - power
    low, high = 0.5**rest, (many + 0.5) ** rest
    drawn = f"pow({low!r} + {uniform(salt)} * {high - low!r}, {1 / rest!r})"
    return f"least(greatest(CAST(round({drawn}) AS BIGINT), 1), {many}) - 1"


def uniform(salt: int) -> str:
    """SQL for a number in (0, 1), a function of the row's place."""
    return f"((hash(8 * i + {salt}) >> 11) + 0.5) / {2.0**53!r}"


def _engine(folder: Path, memory: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": str(folder / "spilled")})
    connection.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
    return connection


def build(folder: Path) -> Path:
    """Written as it is made: the same columns and laws as in ``queries``, from hashes of the rows' places."""
    path = folder / "events.parquet"
    normal = f"sqrt(-2 * ln({uniform(3)})) * cos(2 * pi() * {uniform(4)})"
    connection = _engine(folder, BUILD_MEMORY)
    connection.execute(
        f"COPY (SELECT {zipf(1, USERS, 0.4)} AS user_id, CAST({zipf(2, queries.GROUPS, 0.8)} AS INTEGER) AS grp, "
        f"least(exp(3 + 0.8 * {normal}), 100.0) AS value FROM range({ROWS}) AS t(i)) TO '{path}' (FORMAT parquet)"
    )
    connection.close()
    return path


def plain(path: Path, folder: Path) -> None:
    """DuckDB's own answer, under the limits that ours has."""
    connection = _engine(folder, MEMORY)
    connection.execute(queries.QUESTION.replace("FROM events", f"FROM '{path}'")).fetchall()
    connection.close()


def _measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and gigabytes at the peak."""
    with Peak() as peak:
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
    return seconds, peak.gigabytes


def run() -> Iterator[Row]:
    """Once each: the file is far larger than what the system keeps of it by chance."""
    if shutil.disk_usage(CACHE.parent).free < BYTES_A_ROW * ROWS:
        raise MissingInput(f"Needs {BYTES_A_ROW * ROWS / GB:.0f} GB of free disk.")
    with scratch() as folder:
        path = build(folder)
        with queries.opened(path, folder, memory=MEMORY, seconds=SECONDS) as db:
            seconds, held = _measured(partial(db.sql, queries.QUESTION, epsilon=Fraction(1)))
        alone, held_alone = _measured(partial(plain, path, folder))
    yield Row(
        what=f"{ROWS:,} rows, {USERS:,} users, {queries.GROUPS:,} groups, at most {queries.MAX_GROUPS} each",
        figures={
            "seconds": seconds,
            "DuckDB alone": alone,
            "ratio": seconds / alone,
            "memory, GB": held,
            "DuckDB's, GB": held_alone,
        },
        target=f"≤ {MOST:g} GB",
        holds=held <= MOST,
    )


BENCH = Bench(
    name="large",
    about=f"{ROWS // 1_000_000} million rows within {MOST:g} GB of memory",
    run=run,
    steps=1,
    notes=(
        f"The engine may hold {MEMORY}; what it does not fit goes to disk. Memory is resident bytes of all processes "
        "together, this one with it, looked at twenty times a second. DuckDB alone has the same limit. One round each.",
    ),
    named=True,
)
