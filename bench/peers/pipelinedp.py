"""PipelineDP on its local backend, over Python tuples; reading the file into them is not part of its time.

Users, at most max_groups groups each. For accuracy, where every user has one row, it is told that bounds already hold,
which changes its time and not its noise. Laplace noise throughout; δ is split off by its accountant and not needed.
"""

from collections.abc import Callable
from typing import Any

import pipeline_dp
import pyarrow.parquet as pq

from bench.peers.program import QUANTILES, Ask, Task, serve

METRICS = pipeline_dp.Metrics


def _rows(task: Task, *, grouped: bool) -> list[tuple[int, int, float]]:
    table = pq.read_table(task.path).to_pydict()
    keys = table["grp"] if grouped else [0] * len(table["grp"])
    return list(zip(table["user_id"], keys, table["value"], strict=True))


def _aggregate(
    task: Task,
    rows: list[tuple[int, int, float]],
    metrics: list[Any],
    *,
    epsilon: float,
    keys: list[int],
    bounded: bool,
) -> list[Any]:
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=task.delta)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=metrics,
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=task.max_groups,
        max_contributions_per_partition=task.max_rows,
        min_value=task.low,
        max_value=task.high,
        contribution_bounds_already_enforced=bounded,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=None if bounded else (lambda row: row[0]),
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=keys)
    accountant.compute_budgets()
    return list(result)


def speed(task: Task) -> Ask:
    """Four metrics from one pass."""
    rows = _rows(task, grouped=True)
    metrics = [METRICS.COUNT, METRICS.PRIVACY_ID_COUNT, METRICS.SUM, METRICS.MEAN]
    epsilon = task.epsilon("speed")
    return lambda: [float(len(_aggregate(task, rows, metrics, epsilon=epsilon, keys=task.keys, bounded=False)))]


def _one(question: str, metric: Any) -> Callable[[Task], Ask]:
    def prepared(task: Task) -> Ask:
        rows = _rows(task, grouped=False)
        epsilon = task.epsilon(question)
        return lambda: [float(_aggregate(task, rows, [metric], epsilon=epsilon, keys=[0], bounded=True)[0][1][0])]

    return prepared


def groups(task: Task) -> Ask:
    """Counts of the listed groups."""
    rows = _rows(task, grouped=True)
    epsilon = task.epsilon("groups")

    def ask() -> list[float]:
        found = _aggregate(task, rows, [METRICS.COUNT], epsilon=epsilon, keys=task.keys, bounded=True)
        return task.ordered({key: metrics[0] for key, metrics in found})

    return ask


if __name__ == "__main__":
    serve(
        {
            "speed": speed,
            "count": _one("count", METRICS.COUNT),
            "sum": _one("sum", METRICS.SUM),
            "groups": groups,
            "mean": _one("mean", METRICS.MEAN),
            **{name: _one(name, METRICS.PERCENTILE(100 * rank)) for name, rank in QUANTILES.items()},
        }
    )
