"""Google's C++ library through python-dp. One row a user, pure ε.

Its algorithms take a list of numbers: it has no GROUP BY, so it is not asked for speed. Its sums split ε where bounds
are missing; here they are given.
"""

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
from pydp.algorithms import laplacian

from bench.peers.program import QUANTILES, Ask, Task, serve


def _of(question: str, algorithm: Callable[[Task, float], Any]) -> Callable[[Task], Ask]:
    """A new algorithm for every answer: each may answer once."""

    def prepared(task: Task) -> Ask:
        values = pq.read_table(task.path, columns=["value"])["value"].to_pylist()
        return lambda: [float(algorithm(task, task.epsilon(question)).quick_result(values))]

    return prepared


def _bounded(kind: Any) -> Callable[[Task, float], Any]:
    return lambda task, epsilon: kind(
        epsilon=epsilon,
        lower_bound=task.low,
        upper_bound=task.high,
        l0_sensitivity=1,
        linf_sensitivity=1,
        dtype="float",
    )


def _count(task: Task, epsilon: float) -> Any:
    return laplacian.Count(epsilon=epsilon, l0_sensitivity=1, linf_sensitivity=1, dtype="float")


def _quantile(rank: float) -> Callable[[Task, float], Any]:
    return lambda task, epsilon: laplacian.Percentile(
        epsilon=epsilon, percentile=rank, lower_bound=task.low, upper_bound=task.high, dtype="float"
    )


def groups(task: Task) -> Ask:
    """A count for each group: a user is in one of them."""
    table = pq.read_table(task.path, columns=["grp", "value"]).to_pydict()
    lists: dict[int, list[float]] = {key: [] for key in task.keys}
    for key, value in zip(table["grp"], table["value"], strict=True):
        lists[key].append(value)
    return lambda: [float(_count(task, task.epsilon("groups")).quick_result(values)) for values in lists.values()]


if __name__ == "__main__":
    serve(
        {
            "count": _of("count", _count),
            "sum": _of("sum", _bounded(laplacian.BoundedSum)),
            "groups": groups,
            "mean": _of("mean", _bounded(laplacian.BoundedMean)),
            **{name: _of(name, _quantile(rank)) for name, rank in QUANTILES.items()},
        }
    )
