"""Tumult Analytics on a local Spark, which needs Java. Add or remove one user, pure ε, exact noise.

Starting Spark and its session is not part of its time. It has no query of several aggregates, so four are asked, with a
quarter of ε each.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

from bench.peers.program import QUANTILES, Ask, Task, serve

MEMORY = "6g"


def _session(task: Task, change: Any) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.config("spark.ui.enabled", "false")
        .config("spark.driver.memory", MEMORY)
        .config("spark.sql.warehouse.dir", tempfile.gettempdir())
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return Session.from_dataframe(
        privacy_budget=PureDPBudget(float("inf")),
        source_id="events",
        dataframe=spark.read.parquet(task.path),
        protected_change=change,
    )


def _keys(task: Task) -> Any:
    return KeySet.from_dict({"grp": task.keys})


def speed(task: Task) -> Ask:
    """Four queries, one after the other."""
    session = _session(task, AddRowsWithID(id_column="user_id"))
    bounded = (
        QueryBuilder("events")
        .enforce(MaxGroupsPerID("grp", task.max_groups))
        .enforce(MaxRowsPerGroupPerID("grp", task.max_rows))
    )
    by_group = bounded.groupby(_keys(task))
    queries = (
        by_group.count("n"),
        by_group.count_distinct(["user_id"], "users"),
        by_group.sum("value", *task.bounds),
        by_group.average("value", *task.bounds),
    )
    share = PureDPBudget(task.epsilon("speed") / len(queries))
    return lambda: [float(len(session.evaluate(query, share).toPandas())) for query in queries]


def _one(question: str, query: Callable[[Task, Any], Any]) -> Callable[[Task], Ask]:
    def prepared(task: Task) -> Ask:
        session = _session(task, AddOneRow())
        built = query(task, QueryBuilder("events"))
        budget = PureDPBudget(task.epsilon(question))

        def ask() -> list[float]:
            frame = session.evaluate(built, budget).toPandas()
            if question == "groups":
                return task.ordered(dict(zip(frame["grp"], frame["count"], strict=True)))
            return [float(frame.iloc[0, 0])]

        return ask

    return prepared


def _quantile(rank: float) -> Callable[[Task, Any], Any]:
    return lambda task, builder: builder.quantile("value", rank, *task.bounds)


if __name__ == "__main__":
    serve(
        {
            "speed": speed,
            "count": _one("count", lambda task, builder: builder.count()),
            "sum": _one("sum", lambda task, builder: builder.sum("value", *task.bounds)),
            "groups": _one("groups", lambda task, builder: builder.groupby(_keys(task)).count()),
            "mean": _one("mean", lambda task, builder: builder.average("value", *task.bounds)),
            **{name: _one(name, _quantile(rank)) for name, rank in QUANTILES.items()},
        }
    )
