"""Qrlew: the rewritten SQL is run by DuckDB over the file. Gaussian noise from the database's RANDOM(), (ε, δ).

It knows tables by reflection from a database, so an empty-handed table of the right length stands in for the file.
Keys are listed; above 128 of them it forgets the list and chooses keys by a threshold. It has no quantiles.
"""

from collections.abc import Callable
from typing import Any

import duckdb
import pyqrlew
import sqlalchemy

from bench.peers.program import Ask, Task, serve


def _dataset(task: Task) -> Any:
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE events (user_id INTEGER, grp VARCHAR, value FLOAT)"))
        connection.execute(
            sqlalchemy.text(
                "INSERT INTO events WITH RECURSIVE steps(i) AS "
                "(SELECT 1 UNION ALL SELECT i + 1 FROM steps WHERE i < :n) SELECT 0, '', 0.0 FROM steps"
            ),
            {"n": task.rows},
        )
    dataset = pyqrlew.Dataset.from_database("bench", engine)
    keys = [str(key) for key in task.keys]
    return dataset.with_range(None, "events", "value", *task.bounds).with_possible_values(None, "events", "grp", keys)


def _statement(task: Task, dataset: Any, query: str, *, epsilon: float) -> str:
    rewritten = dataset.relation(query).rewrite_with_differential_privacy(
        dataset,
        [("events", [], "user_id")],
        {"epsilon": epsilon, "delta": task.delta},
        max_multiplicity=float(task.max_groups * task.max_rows),
        max_multiplicity_share=1.0,
        max_privacy_unit_groups=task.max_groups,
    )
    return str(rewritten.relation().to_query())


def _connection(task: Task) -> Any:
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW events AS SELECT user_id, CAST(grp AS VARCHAR) AS grp, value FROM '{task.path}'")
    return connection


def speed(task: Task) -> Ask:
    """The rewriting is timed too, as our planning is."""
    query = (
        "SELECT grp, COUNT(*) AS n, COUNT(DISTINCT user_id) AS users, SUM(value) AS total, AVG(value) AS mean "
        "FROM events GROUP BY grp"
    )
    dataset, connection = _dataset(task), _connection(task)

    def ask() -> list[float]:
        statement = _statement(task, dataset, query, epsilon=task.epsilon("speed"))
        return [float(len(connection.execute(statement).fetchall()))]

    return ask


def _asked(question: str, query: str) -> Callable[[Task], Ask]:
    def prepared(task: Task) -> Ask:
        connection = _connection(task)
        statement = _statement(task, _dataset(task), query, epsilon=task.epsilon(question))

        def ask() -> list[float]:
            rows = connection.execute(statement).fetchall()
            if question == "groups":
                return task.ordered({int(key): count for key, count in rows})
            return [float(rows[0][0])]

        return ask

    return prepared


if __name__ == "__main__":
    serve(
        {
            "speed": speed,
            "count": _asked("count", "SELECT COUNT(*) AS x FROM events"),
            "sum": _asked("sum", "SELECT SUM(value) AS x FROM events"),
            "groups": _asked("groups", "SELECT grp, COUNT(*) AS x FROM events GROUP BY grp"),
            "mean": _asked("mean", "SELECT AVG(value) AS x FROM events"),
        }
    )
