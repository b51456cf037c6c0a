"""OpenDP through its context over Polars. Add or remove one user, pure ε, discrete and exact noise.

Its default way to keep groups of a user at random fails in Polars (a name is given twice), so the first ones are kept.
Quantiles are chosen among candidates that must be listed: thousandths of a unit here.
"""

from collections.abc import Callable
from typing import Any

import opendp.prelude
import polars as pl

from bench.peers.program import QUANTILES, Ask, Task, serve

CANDIDATES = 100_000

dp: Any = opendp.prelude
dp.enable_features("contrib")


def _context(task: Task, data: Any, *, epsilon: float, by: list[str], **unit: Any) -> Any:
    return dp.Context.compositor(
        data=data,
        privacy_unit=dp.unit_of(contributions=1, **unit),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=by, max_length=2 * task.rows)],
    )


def _keys(task: Task, like: Any) -> Any:
    return pl.LazyFrame({"grp": pl.Series(task.keys, dtype=like.collect_schema()["grp"])})


def speed(task: Task) -> Ask:
    """Everything from the file to the noisy table is timed, as with ours."""

    def ask() -> list[float]:
        data = pl.scan_parquet(task.path)
        value: Any = pl.col("value")
        user: Any = pl.col("user_id")
        query = (
            _context(task, data, epsilon=task.epsilon("speed"), by=["grp"], identifier=pl.col("user_id"))
            .query()
            .truncate_per_group(task.max_rows, by=["grp"])
            .truncate_num_groups(task.max_groups, by=["grp"], keep="first")
            .group_by("grp")
            .agg(
                dp.len(signed=True).alias("n"),
                user.dp.n_unique(signed=True).alias("users"),
                value.dp.sum(task.bounds).alias("total"),
                value.dp.mean(task.bounds).alias("mean"),
            )
            .with_keys(_keys(task, data))
        )
        return [float(len(query.release().collect()))]

    return ask


def _select(question: str, expression: Callable[[Task], Any]) -> Callable[[Task], Ask]:
    """The measurement is made once and drawn from many times."""

    def prepared(task: Task) -> Ask:
        data = pl.read_parquet(task.path).lazy()
        context = _context(task, data, epsilon=task.epsilon(question), by=[])
        measurement = context.query().select(expression(task)).resolve()
        return lambda: [float(measurement(data).collect().item())]

    return prepared


def groups(task: Task) -> Ask:
    """Counts of the listed groups."""
    data = pl.read_parquet(task.path).lazy()
    query = _context(task, data, epsilon=task.epsilon("groups"), by=["grp"]).query()
    measurement = query.group_by("grp").agg(dp.len(signed=True)).with_keys(_keys(task, data)).resolve()
    return lambda: task.ordered(dict(measurement(data).collect().rows()))


def _value() -> Any:
    return pl.col("value").fill_nan(0.0).fill_null(0.0)


def _candidates(task: Task) -> list[float]:
    return [task.low + (task.high - task.low) * place / CANDIDATES for place in range(CANDIDATES + 1)]


if __name__ == "__main__":
    serve(
        {
            "speed": speed,
            "count": _select("count", lambda task: dp.len(signed=True)),
            "sum": _select("sum", lambda task: _value().dp.sum(task.bounds)),
            "groups": groups,
            "mean": _select("mean", lambda task: _value().dp.mean(task.bounds)),
            "median": _select("median", lambda task: _value().dp.quantile(QUANTILES["median"], _candidates(task))),
            "upper": _select("upper", lambda task: _value().dp.quantile(QUANTILES["upper"], _candidates(task))),
        }
    )
