"""Every path of a question at 10 million rows of a million users, beside DuckDB's nearest question without privacy."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb

from bench import queries
from bench.memory import Peak
from bench.record import Bench, Row
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.session.database import Database
from hubbub.session.opening import open as opened

ROWS = int(os.environ.get("HUBBUB_PATHS_ROWS", "10000000"))
USERS = ROWS // 10
MOST = 6.0
DELTA = Fraction(1, 10**6)
LIMITS = Limits(max_groups=5, max_rows=20, max_unit_rows=100, seconds=1200.0, memory="8GB")


USERS_TOO = "count(DISTINCT user_id) AS users"
_UNITED = (
    "SELECT grp, count(*) AS n{} FROM (SELECT user_id, grp FROM events UNION ALL SELECT user_id, grp FROM events "
    "WHERE value > 50) GROUP BY grp"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question; and, where it does not look at units by itself, what is asked of DuckDB to look at them too."""

    name: str
    text: str
    units: str = ""


PATHS = (
    Asked("count, sum and mean by group", queries.QUESTION),
    Asked(
        "a table joined with itself by the unit",
        "SELECT a.grp, count(*) AS n, sum(b.value) AS total FROM events a JOIN events b ON a.user_id = b.user_id "
        "AND a.grp = b.grp GROUP BY a.grp",
    ),
    Asked(
        "pairs of a unit's rows",
        "SELECT a.grp, count(*) AS n FROM events a JOIN events b ON a.user_id = b.user_id AND b.grp < 3 GROUP BY a.grp",
    ),
    Asked(
        "semi-join: units that have",
        "SELECT grp, count(*) AS n, avg(value) AS mean FROM events WHERE user_id IN "
        "(SELECT user_id FROM events WHERE grp = 7) GROUP BY grp",
    ),
    Asked(
        "anti-join: units that have not",
        "SELECT e.grp, count(*) AS n FROM events e WHERE NOT EXISTS "
        "(SELECT 1 FROM events f WHERE f.user_id = e.user_id AND f.value > 90) GROUP BY e.grp",
    ),
    Asked(
        "one row a unit",
        "SELECT least(n, 50) AS many, count(*) AS users, avg(mean) AS mean FROM (SELECT user_id, count(*) AS n, "
        "avg(value) AS mean FROM events GROUP BY user_id) GROUP BY many",
    ),
    Asked(
        "one row a unit and group",
        "SELECT grp, count(*) AS users, sum(total) AS total FROM (SELECT user_id, grp, sum(value) AS total FROM events "
        "GROUP BY user_id, grp) GROUP BY grp",
    ),
    Asked(
        "window: each unit's first row",
        "SELECT grp, count(*) AS n, sum(value) AS total FROM (SELECT grp, value, row_number() OVER (PARTITION BY "
        "user_id ORDER BY value DESC, grp) AS place FROM events) WHERE place = 1 GROUP BY grp",
    ),
    Asked(
        "window: the row before",
        "SELECT grp, avg(value - before) AS step FROM (SELECT grp, value, lag(value) OVER (PARTITION BY user_id "
        "ORDER BY value, grp) AS before FROM events) GROUP BY grp",
    ),
    Asked(
        "window: beside the unit's mean",
        "SELECT grp, count(*) AS n FROM (SELECT grp, value, avg(value) OVER (PARTITION BY user_id) AS mean FROM "
        "events) WHERE value > mean GROUP BY grp",
    ),
    *(
        Asked(name, text, text.replace(" FROM events", f", {USERS_TOO} FROM events", 1))
        for name, text in (
            ("median over all", "SELECT median(value) AS middle FROM events"),
            ("median by group", "SELECT grp, median(value) AS middle FROM events GROUP BY grp"),
            ("0.9-quantile by group", "SELECT grp, quantile_cont(value, 0.9) AS high FROM events GROUP BY grp"),
            (
                "five quantiles by group",
                "SELECT grp, quantile_cont(value, [0.1, 0.25, 0.5, 0.75, 0.9]) AS q FROM events GROUP BY grp",
            ),
            ("most by group", "SELECT grp, max(value) AS top FROM events GROUP BY grp"),
            ("different values", "SELECT count(DISTINCT floor(value * 1000)) AS values FROM events"),
            (
                "different values by group",
                "SELECT grp, count(DISTINCT floor(value * 10)) AS values FROM events GROUP BY grp",
            ),
            (
                "keys that nobody listed",
                "SELECT floor(value * 100) AS cents, count(*) AS n, sum(value) AS total FROM events GROUP BY cents",
            ),
        )
    ),
    Asked(
        "keys that nobody listed, and their units",
        "SELECT floor(value * 100) AS cents, count(DISTINCT user_id) AS users FROM events GROUP BY cents",
    ),
    Asked(
        "two tables, one below the other",
        _UNITED.format(""),
        _UNITED.format(f", {USERS_TOO}"),
    ),
)


def alone(path: Path, text: str, folder: Path) -> None:
    """DuckDB without privacy, with as much memory."""
    spilled = str(folder / "spilled")
    connection = duckdb.connect(
        config={"threads": os.cpu_count() or 1, "memory_limit": LIMITS.memory, "temp_directory": spilled}
    )
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"CREATE VIEW events AS FROM '{path}'")
    connection.execute(text).fetchall()
    connection.close()


def private(path: Path, folder: Path) -> Database:
    """The file, open for more than is asked of it here."""
    return opened(
        path,
        name="events",
        unit="user_id",
        budget=Budget(epsilon=Fraction(10**5), delta=Fraction(1, 1000)),
        bounds={"value": queries.BOUNDS},
        keys={"grp": list(range(queries.GROUPS))},
        limits=LIMITS,
        ledger=folder / "events.ledger",
        marks=Marks(folder / "state"),
    )


def _measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and gigabytes at the peak."""
    with Peak() as peak:
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
    return seconds, peak.gigabytes


def run() -> Iterator[Row]:
    """Once each, one side after the other."""
    with tempfile.TemporaryDirectory(prefix="hubbub-bench-", dir=Path.cwd()) as name:
        folder = Path(name)
        path = queries.build(folder, ROWS, USERS)
        with private(path, folder) as db:
            for one in PATHS:
                plain, least = _measured(partial(alone, path, one.text, folder))
                looking = _measured(partial(alone, path, one.units, folder))[0] if one.units else plain
                seconds, most = _measured(partial(db.sql, one.text, epsilon=1, delta=DELTA))
                figures = {
                    "seconds": seconds,
                    "DuckDB alone": plain,
                    "ratio": seconds / plain,
                    "DuckDB and units": looking,
                    "ratio to that": seconds / looking,
                    "GB": most,
                    "GB alone": least,
                }
                yield Row(
                    what=one.name,
                    figures=figures,
                    target=f"≤ {MOST:g}×",
                    holds=seconds / plain <= MOST,
                    remark="DuckDB alone does not look at whose the rows are" if one.units else "",
                )


BENCH = Bench(
    name="paths",
    about=f"each path of private SQL at {ROWS:,} rows of {USERS:,} users, beside DuckDB without privacy",
    run=run,
    steps=len(PATHS),
    named=True,
    notes=(
        "Once each, in turns. End to end: question read, charged durably, run in a process of its own, noise drawn, "
        "answer stored.",
        "The ratio is to DuckDB's time for the same text. Where that does not look at units, it is also asked with "
        "COUNT(DISTINCT user_id) beside it: whatever bounds people must look at whose each row is.",
        "Memory is that of the whole tree of processes at its peak, both sides limited to "
        f"{LIMITS.memory} in the engine.",
    ),
)
