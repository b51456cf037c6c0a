"""diffprivlib: NumPy functions over rows. One row a user, pure ε.

It has no users and no GROUP BY, so it is not asked for speed. Counts are cut at the true number of rows, and its means
take that number to be public.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from diffprivlib import tools

from bench.peers.program import QUANTILES, Ask, Task, serve


def _of(column: str, question: str, ask: Callable[[Task, Any, float], Any]) -> Callable[[Task], Ask]:
    def prepared(task: Task) -> Ask:
        values = pq.read_table(task.path, columns=[column])[column].to_numpy()
        epsilon = task.epsilon(question)
        return lambda: [float(number) for number in np.atleast_1d(ask(task, values, epsilon))]

    return prepared


def _count(task: Task, values: Any, epsilon: float) -> Any:
    return tools.count_nonzero(np.ones(len(values), dtype=bool), epsilon=epsilon)


def _sum(task: Task, values: Any, epsilon: float) -> Any:
    return tools.sum(values, epsilon=epsilon, bounds=task.bounds)


def _groups(task: Task, values: Any, epsilon: float) -> Any:
    edges = np.arange(task.groups + 1) - 0.5
    return tools.histogram(values, epsilon=epsilon, bins=edges, range=(edges[0], edges[-1]))[0]


def _mean(task: Task, values: Any, epsilon: float) -> Any:
    return tools.mean(values, epsilon=epsilon, bounds=task.bounds)


def _quantile(rank: float) -> Callable[[Task, Any, float], Any]:
    return lambda task, values, epsilon: tools.quantile(values, rank, epsilon=epsilon, bounds=task.bounds)


if __name__ == "__main__":
    serve(
        {
            "count": _of("value", "count", _count),
            "sum": _of("value", "sum", _sum),
            "groups": _of("grp", "groups", _groups),
            "mean": _of("value", "mean", _mean),
            **{name: _of("value", name, _quantile(rank)) for name, rank in QUANTILES.items()},
        }
    )
