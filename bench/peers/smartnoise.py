"""SmartNoise SQL over its Pandas reader, which loads the frame into SQLite; the load is not part of its time.

Its ε is per column, so it is asked with an ε for which the query costs what the others' does. It has no quantiles.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd
import snsql

from bench.peers.program import Ask, Task, serve


def _reader(task: Task, query: str, *, epsilon: float, unit: dict[str, Any], user: dict[str, Any]) -> Any:
    frame = pd.read_parquet(task.path)
    columns = {
        "user_id": {"type": "int"} | user,
        "grp": {"type": "int"},
        "value": {"type": "float", "lower": task.low, "upper": task.high},
    }
    metadata = {"": {"": {"events": {"rows": task.rows, "censor_dims": False} | unit | columns}}}

    def reader(share: float) -> Any:
        return snsql.from_df(frame, privacy=snsql.Privacy(epsilon=share, delta=task.delta), metadata=metadata)

    cost, _ = snsql.from_df(
        frame.head(1), privacy=snsql.Privacy(epsilon=epsilon, delta=task.delta), metadata=metadata
    ).get_privacy_cost(query)
    return reader(epsilon * epsilon / float(cost))


def speed(task: Task) -> Ask:
    """Users in at most max_groups groups."""
    query = (
        "SELECT grp, COUNT(*) AS n, COUNT(DISTINCT user_id) AS users, SUM(value) AS total, AVG(value) AS mean "
        "FROM events GROUP BY grp"
    )
    unit = {"max_ids": task.max_groups}
    reader = _reader(task, query, epsilon=task.epsilon("speed"), unit=unit, user={"private_id": True})
    return lambda: [float(len(reader.execute(query)) - 1)]


def _row(question: str, query: str) -> Callable[[Task], Ask]:
    """One row a user, so a row is the unit."""

    def prepared(task: Task) -> Ask:
        reader = _reader(task, query, epsilon=task.epsilon(question), unit={"row_privacy": True}, user={})

        def ask() -> list[float]:
            rows = reader.execute(query)[1:]
            return task.ordered(dict(rows)) if question == "groups" else [float(rows[0][0])]

        return ask

    return prepared


if __name__ == "__main__":
    serve(
        {
            "speed": speed,
            "count": _row("count", "SELECT COUNT(*) AS x FROM events"),
            "sum": _row("sum", "SELECT SUM(value) AS x FROM events"),
            "groups": _row("groups", "SELECT grp, COUNT(*) AS x FROM events GROUP BY grp"),
            "mean": _row("mean", "SELECT AVG(value) AS x FROM events"),
        }
    )
