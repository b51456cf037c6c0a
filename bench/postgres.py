"""Four standing questions where the data lives: on PostgreSQL, beside the same on DuckDB, and PostgreSQL's own.

python -m bench postgres (a million rows; HUBBUB_POSTGRES_ROWS=10000000 for more). CPU is that of our process and of
the one that reads: of DuckDB what its statement takes in this process, of the server what its backends have used.
"""

import itertools
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb

import hubbub as hb
from bench.record import Bench, MissingInput, Row
from bench.scratch import scratch
from hubbub.engines.duckdb import worker
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.held import Read
from hubbub.engines.postgres.engine import Postgres
from hubbub.ledger import Ledger, Marks
from hubbub.policy.build import single_table
from hubbub.policy.in_python import with_keys_seen
from hubbub.policy.servers import postgres
from hubbub.policy.tables import Limits, Policy
from hubbub.session.database import Database
from tests.postgres import PostgresServer, running_server

ROWS = int(os.environ.get("HUBBUB_POSTGRES_ROWS", "1000000"))
USERS = ROWS // 10
GROUPS = 100
ROUNDS = 3 if ROWS <= 10**6 else 1
MOST_CPU, MOST_TIME = 8.0, 3.0
BUDGET = hb.Budget(epsilon=Fraction(10**5), delta=Fraction(1, 10**4))
LIMITS = Limits(max_groups=5, max_rows=30, max_total_rows=60, seconds=1200.0, memory="4GB", threads=1)
"""Few are beyond them, as owners declare limits: a user has ten rows on average, and one in a hundred more than 30."""
KEYS = list(range(GROUPS))
SETTINGS = {"fsync": "off", "shared_buffers": "512MB", "max_wal_size": "4GB", "autovacuum": "off"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and PostgreSQL's own of the same, with a count of units in it."""

    name: str
    text: str
    own: str


QUESTIONS = (
    Asked(
        "four aggregates by group",
        "SELECT grp, count(*) AS n, count(DISTINCT user_id) AS users, sum(value) AS total, avg(value) AS mean "
        "FROM events GROUP BY grp",
        "SELECT grp, count(*), count(DISTINCT user_id), sum(value), avg(value) FROM events GROUP BY grp",
    ),
    Asked(
        "private keys",
        "SELECT code, count(*) AS n FROM events GROUP BY code",
        "SELECT code, count(*), count(DISTINCT user_id) FROM events GROUP BY code",
    ),
    Asked(
        "quantiles",
        "SELECT median(value) AS middle, quantile_cont(value, 0.9) AS high FROM events",
        "SELECT percentile_cont(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY value), count(DISTINCT user_id) FROM events",
    ),
    Asked(
        "a join over a path",
        "SELECT kind, count(*) AS n, sum(amount) AS total FROM lines GROUP BY kind",
        "SELECT kind, count(*), count(DISTINCT user_id), sum(amount) FROM lines JOIN events ON event = id "
        "GROUP BY kind",
    ),
)


def build(folder: Path) -> dict[str, Path]:
    """Events of users, and lines of events, as Parquet."""
    paths = {name: folder / f"{name}.parquet" for name in ("events", "lines")}
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT i AS id, CAST(floor({USERS} * pow(random(), 1.5)) AS BIGINT) AS user_id, "
            f"CAST(floor({GROUPS} * pow(random(), 1.5)) AS INTEGER) AS grp, "
            "least(exp(3 + 0.8 * random()), 100) AS value, "
            f"'code ' || CAST(floor(2000 * pow(random(), 3)) AS INTEGER) AS code FROM range({ROWS}) AS r(i)) "
            f"TO '{paths['events']}' (FORMAT parquet)"
        )
        connection.execute(
            f"COPY (SELECT i AS line, CAST(floor({ROWS} * random()) AS BIGINT) AS event, CAST(floor(20 * random()) AS "
            f"INTEGER) AS kind, CAST(floor(1000 * random()) AS INTEGER) AS amount FROM range({ROWS}) AS r(i)) "
            f"TO '{paths['lines']}' (FORMAT parquet)"
        )
    return paths


def load(server: PostgresServer, paths: dict[str, Path]) -> str:
    """The same tables on the server, with the constraint that the path goes by."""
    import psycopg

    url = server.fresh_database()
    with psycopg.connect(url, autocommit=True) as connection, duckdb.connect() as source:
        connection.execute(
            "CREATE TABLE events "
            "(id bigint PRIMARY KEY, user_id bigint, grp integer, value double precision, code text)"
        )
        connection.execute("CREATE TABLE lines (line bigint, event bigint, kind integer, amount integer)")
        for name, path in paths.items():
            text = path.with_suffix(".csv")
            source.execute(f"COPY (SELECT * FROM '{path}') TO '{text}' (FORMAT csv, HEADER false)")
            statement = f"COPY {name} FROM STDIN (FORMAT csv)".encode()
            with text.open("rb") as rows, connection.cursor().copy(statement) as copy:
                while block := rows.read(1 << 20):
                    copy.write(block)
            text.unlink()
        connection.execute("VACUUM ANALYZE events")
        connection.execute("VACUUM ANALYZE lines")
    return url


DECLARED: dict[str, dict[str, Any]] = {
    "events": {"unit": "user_id", "bounds": {"value": (0, 100)}, "keys": {"grp": KEYS}},
    "lines": {
        "unit": hb.through("event", to="events", key="id"),
        "bounds": {"amount": (0, 1000)},
        "keys": {"kind": list(range(20))},
    },
}


_LEDGERS = itertools.count()


def on_duckdb(paths: dict[str, Path], folder: Path) -> Database:
    """The files, open for questions."""
    events, lines = DECLARED["events"], DECLARED["lines"]
    return hb.open(
        paths["events"],
        name="events",
        **events,
        columns={"id": {"unique": True}},
        tables={"lines": hb.private(paths["lines"], **lines)},
        budget=BUDGET,
        limits=LIMITS,
        ledger=folder / f"duckdb{next(_LEDGERS)}.ledger",
        marks=Marks(folder / "state"),
    )


def on_postgres(url: str, folder: Path) -> Database:
    """The server's tables, open for questions that run there."""
    engine = Postgres(limits=LIMITS, dsn=url)
    tables = {}
    for name, declared in DECLARED.items():
        source = postgres(url, table=name)
        columns: dict[str, Any] = {"uniques": {"id": True}} if name == "events" else {}
        tables[name] = single_table(name=name, source=source, schema=engine.describe(source), **declared, **columns)
    policy = Policy(account="people", budget=BUDGET, tables=tables, limits=LIMITS)
    policy = with_keys_seen(policy, engine.count_repeated, engine.stamp_at_rest)
    ledger = Ledger(str(folder / "postgres.ledger"), marks=Marks(folder / "state"))
    ledger.open_account(policy.account, policy.budget, sources=policy.private_sources)
    return Database(policy, ledger=ledger, engine=engine)


def server_cpu(server: PostgresServer) -> float:
    """Seconds of CPU that backends of the server have used, those that have ended."""
    assert server._process is not None
    fields = Path(f"/proc/{server._process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def own_cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def ask(db: Database, text: str, prices: Iterator[int]) -> None:
    db.sql(text, epsilon=Fraction(next(prices)), delta=Fraction(1, 10**9))


def measure_duckdb(paths: dict[str, Path], folder: Path, text: str) -> float:
    """Seconds of CPU of one question on DuckDB, in this process: its own are gone before they can be asked."""
    prices, connecting = itertools.count(1), 0.0

    def answer(engine: DuckDB, begun: Any) -> Read[list[list[Any]]]:
        nonlocal connecting
        start = time.process_time()
        with duckdb.connect() as connection:
            worker.settle(connection)
            worker.limit(connection, {"scratch": str(folder), "temporary": "20GB", "memory": "4GB", "threads": 1})
            connecting += time.process_time() - start
            return Read(worker.rows_of(connection, begun.request | {"scratch": str(folder)}))

    with on_duckdb(paths, folder) as db:
        db.sql("SELECT count(*) AS n FROM events", epsilon=1)
        with mock.patch.object(DuckDB, "_answer", answer), mock.patch.object(DuckDB, "_begin", return_value=None):
            before = time.process_time()
            for _ in range(ROUNDS):
                ask(db, text, prices)
            return (time.process_time() - before - connecting) / ROUNDS


def measure_postgres(server: PostgresServer, job: Callable[[], object]) -> tuple[float, float]:
    """Seconds of CPU, and of the clock, of one run."""
    used, least = 0.0, float("inf")
    for _ in range(ROUNDS):
        before, start = own_cpu() + server_cpu(server), time.perf_counter()
        job()
        least = min(least, time.perf_counter() - start)
        time.sleep(0.2)  # until the backend is gone, and counted
        used += own_cpu() + server_cpu(server) - before
    return used / ROUNDS, least


def run_own(url: str, text: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0; SET work_mem = '512MB'; SET jit = off")
        connection.execute(text.encode()).fetchall()


def run(names: Sequence[str] = ()) -> Iterator[Row]:
    """Each question on both engines, and PostgreSQL's own; those of these names, where some are given."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingInput('psycopg, which "hubbub[postgres]" installs') from None
    with scratch() as folder, running_server(SETTINGS) as server:
        paths = build(folder)
        url = load(server, paths)
        with on_postgres(url, folder) as db:
            for asked in [one for one in QUESTIONS if not names or one.name in names]:
                near = measure_duckdb(paths, folder, asked.text)
                prices = itertools.count(1)
                far, seconds = measure_postgres(server, partial(ask, db, asked.text, prices))
                own_cpu_, own = measure_postgres(server, partial(run_own, url, asked.own))
                yield Row(
                    what=f"{asked.name}, {ROWS:,} rows",
                    figures={
                        "CPU": far, "CPU on DuckDB": near, "times": far / near, "seconds": seconds,
                        "PostgreSQL's own": own, "its own CPU": own_cpu_, "times its own": seconds / own,
                        "times its own CPU": far / own_cpu_,
                    },
                    target=f"≤ {MOST_CPU:g}× DuckDB" if ROWS <= 10**6 else f"≤ {MOST_TIME:g}× PostgreSQL",
                    holds=far / near <= MOST_CPU if ROWS <= 10**6 else seconds / own <= MOST_TIME,
                )  # fmt: skip


BENCH = Bench(
    name="postgres",
    about="four standing questions on PostgreSQL, beside DuckDB and beside PostgreSQL's own without privacy",
    run=run,
    steps=len(QUESTIONS),
    named=True,
    notes=("One thread on each side. PostgreSQL's own question counts the units of each group too.",),
)


if __name__ == "__main__":
    for row in run(sys.argv[1:]):
        print(row.what, {name: round(value, 3) for name, value in row.figures.items()}, row.holds, flush=True)
