"""SmartNoise SQL over its Pandas reader: a user is added or removed. The claim is the cost that the reader gives.

An answer takes tens of milliseconds, so that there are some hundreds: enough for what happens always or never.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import snsql

from bench.peers.audited import USER, Case, serve, table

Row = tuple[int, str, int, float]
BASE: list[Row] = [(user, "ab"[user % 2], 5, float(user % 10)) for user in range(40)]
LEAST = -(2**63)
COLUMNS: dict[str, dict[str, Any]] = {
    "user_id": {"type": "int", "private_id": True},
    "grp": {"type": "string"},
    "amount": {"type": "int", "lower": 0, "upper": 10},
    "value": {"type": "float", "lower": 0.0, "upper": 10.0},
}
PUBLIC = {"censor_dims": False}


def _reader(rows: list[Row], more: dict[str, Any]) -> Any:
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    metadata = {"": {"": {"events": {"rows": len(BASE), "max_ids": 1} | more | COLUMNS}}}
    return snsql.from_df(frame, privacy=snsql.Privacy(epsilon=0.5, delta=1e-3), metadata=metadata)


def _case(
    query: str,
    about: str,
    *,
    more: list[Row],
    base: list[Row] | None = None,
    metadata: dict[str, Any] | None = None,
    remark: str = "",
) -> Case:
    base = BASE if base is None else base
    readers = [_reader(rows, metadata or {}) for rows in (base, [*base, *more])]
    epsilon, delta = readers[0].get_privacy_cost(query)
    ask: Callable[[Any], Any] = lambda reader: table(reader.execute(query)[1:])  # noqa: E731
    return Case(
        function=query,
        about=about + (" (keys are not censored)" if metadata else ""),
        ask=ask,
        x=readers[0],
        y=readers[1],
        epsilon=float(epsilon),
        delta=float(delta),
        relation=USER,
        remark=remark,
    )


def cases() -> Iterator[Case]:
    """Queries of one table; the number of rows in its metadata is that of the smaller input."""
    rich: list[Row] = [*BASE, *((user, "c", 5, 1e9) for user in range(100, 140))]
    yield _case(
        "SELECT value, SUM(value) AS x FROM events GROUP BY value",
        "a user at 1e9, beside forty there, by value itself",
        base=rich,
        more=[(999, "c", 5, 1e9)],
    )
    yield _case(
        "SELECT COUNT(*) AS x FROM events WHERE ABS(amount) > 3",
        "a user whose amount is the least integer",
        more=[(99, "a", LEAST, 5.0)],
    )
    yield _case(
        "SELECT COUNT(*) AS x FROM events WHERE 1 / (amount - 7) >= 0",
        "a user with amount 7: a division by zero",
        more=[(99, "a", 7, 5.0)],
    )
    user: Row = (99, "a", 10, 10.0)
    for what in ("COUNT(*)", "COUNT(DISTINCT user_id)", "SUM(value)", "AVG(value)", "VAR(value)"):
        query = f"SELECT {what} AS x FROM events"
        yield _case(query, "a user at the upper bound", more=[user])
    many = [(99, "a", 10, 10.0) for _ in range(100)]
    yield _case("SELECT SUM(value) AS x FROM events", "a user with a hundred rows", more=many)
    yield _case("SELECT SUM(value) AS x FROM events", "a user whose value is 1e300", more=[(99, "a", 0, 1e300)])
    yield _case("SELECT SUM(value) AS x FROM events", "a user whose value is NaN", more=[(99, "a", 0, float("nan"))])
    yield _case("SELECT COUNT(*) AS x FROM events", "one user or none", base=[], more=[user])
    by_key = "SELECT grp, COUNT(*) AS x FROM events GROUP BY grp"
    yield _case(by_key, "a user of a rare key", more=[(99, "z", 5, 5.0)])
    yield _case(
        by_key,
        "a user of a rare key",
        more=[(99, "z", 5, 5.0)],
        remark="Documented: without censoring, keys are shown as they are.",
        metadata=PUBLIC,
    )


if __name__ == "__main__":
    serve(cases())
