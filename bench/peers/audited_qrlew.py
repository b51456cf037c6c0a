"""Qrlew: rewritten SQL, run by DuckDB. A user is added or removed; (ε, δ) = (1, 1e-3)."""

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyqrlew
import sqlalchemy

from bench.peers.audited import USER, Case, serve, table

Row = tuple[int, str, float]
BASE: list[Row] = [(user, "ab"[user % 2], float(1 + user % 9)) for user in range(40)]
DELTA = 1e-3


def _statement(query: str) -> str:
    """The schema is reflected from a table of the same length, and the bounds are declared."""
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE events (user_id INTEGER, grp VARCHAR, value FLOAT)"))
        for _ in BASE:
            connection.execute(sqlalchemy.text("INSERT INTO events VALUES (0, '', 0.0)"))
    dataset = pyqrlew.Dataset.from_database("audit", engine).with_range(None, "events", "value", 0.0, 10.0)
    rewritten = dataset.relation(query).rewrite_with_differential_privacy(
        dataset,
        [("events", [], "user_id")],
        {"epsilon": 1.0, "delta": DELTA},
        max_multiplicity=1.0,
        max_multiplicity_share=1.0,
        max_privacy_unit_groups=1,
    )
    return str(rewritten.relation().to_query())


def _held(rows: list[Row]) -> Any:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE events (user_id INTEGER, grp VARCHAR, value DOUBLE)")
    connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
    return connection


def _asked(statement: str) -> Callable[[Any], Any]:
    return lambda connection: table(connection.execute(statement).fetchall())


def cases() -> Iterator[Case]:
    """A few questions of one table."""
    added: dict[str, list[Row]] = {
        "a user at the upper bound": [(99, "a", 10.0)],
        "a user with a hundred rows": [(99, "a", 10.0) for _ in range(100)],
        "a user whose value is NaN": [(99, "a", float("nan"))],
        "a user of a rare key": [(99, "z", 5.0)],
        "a user at the lower bound": [(99, "a", 0.0)],
    }
    for query in (
        "SELECT COUNT(*) AS x FROM events",
        "SELECT SUM(value) AS x FROM events",
        "SELECT grp, COUNT(*) AS x FROM events GROUP BY grp",
        "SELECT COUNT(*) AS x FROM events WHERE LN(value) > 1",
    ):
        ask = _asked(_statement(query))
        for about, rows in added.items():
            yield Case(
                function=query,
                about=about,
                ask=ask,
                x=_held(BASE),
                y=_held([*BASE, *rows]),
                delta=DELTA,
                relation=USER,
            )


if __name__ == "__main__":
    serve(cases())
