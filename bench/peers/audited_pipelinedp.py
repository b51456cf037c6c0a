"""PipelineDP on its local backend: a user is added or removed."""

import logging
import math
from collections.abc import Callable, Iterator
from typing import Any

import pipeline_dp

from bench.peers.audited import USER, Case, serve

METRICS = pipeline_dp.Metrics
Row = tuple[int, str, float]
BASE: list[Row] = [(1, "a", 1.0), (2, "a", 9.0), (3, "b", 5.0)]
PAIRS: dict[str, tuple[list[Row], list[Row]]] = {
    "a user at the upper bound": (BASE, [*BASE, (9, "a", 10.0)]),
    "a user with a hundred rows": (BASE, [*BASE, *((9, "a", 10.0) for _ in range(100))]),
    "a user whose value is NaN": (BASE, [*BASE, (9, "a", math.nan)]),
    "a user whose value is 1e308": (BASE, [*BASE, (9, "a", 1e308)]),
    "one user or none": ([], BASE[:1]),
}
_EXTRACTORS = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)


def _aggregated(
    metric: Any, *, delta: float, public: list[str] | None, noise: Any = pipeline_dp.NoiseKind.LAPLACE
) -> Callable[[list[Row]], Any]:
    params = pipeline_dp.AggregateParams(
        metrics=[metric],
        noise_kind=noise,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=0.0,
        max_value=10.0,
    )

    def ask(rows: list[Row]) -> Any:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=delta)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        result = engine.aggregate(rows, params, _EXTRACTORS, public_partitions=public)
        accountant.compute_budgets()
        return {key: metrics[0] for key, metrics in result}

    return ask


def _selected(rows: list[Row]) -> Any:
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0.1)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.SelectPartitionsParams(max_partitions_contributed=1)
    result = engine.select_partitions(rows, params, _EXTRACTORS)
    accountant.compute_budgets()
    return sorted(result)


def cases() -> Iterator[Case]:
    """Public partitions, then private ones."""
    metrics = {
        "COUNT": METRICS.COUNT,
        "PRIVACY_ID_COUNT": METRICS.PRIVACY_ID_COUNT,
        "SUM": METRICS.SUM,
        "MEAN": METRICS.MEAN,
        "VARIANCE": METRICS.VARIANCE,
        "PERCENTILE(50)": METRICS.PERCENTILE(50),
    }
    for name, metric in metrics.items():
        ask = _aggregated(metric, delta=1e-9, public=["a"])
        for about, (x, y) in PAIRS.items():
            yield Case(function=name, about=about, ask=ask, x=x, y=y, delta=1e-9, relation=USER)
    gaussian = _aggregated(METRICS.COUNT, delta=0.1, public=["a"], noise=pipeline_dp.NoiseKind.GAUSSIAN)
    x, y = PAIRS["a user at the upper bound"]
    yield Case(
        function="COUNT, Gaussian", about="a user more", ask=gaussian, x=x, y=y, delta=0.1, relation=USER, draws=20_000
    )
    private = _aggregated(METRICS.COUNT, delta=0.1, public=None)
    for users in (0, 1, 3):
        here: list[Row] = [(user, "z", 1.0) for user in range(users)]
        x, y = [*BASE, *here], [*BASE, *here, (9, "z", 1.0)]
        about = f"{users} or {users + 1} users of a rare key"
        yield Case(
            function="COUNT by private keys", about=about, ask=private, x=x, y=y, delta=0.1, relation=USER, draws=20_000
        )
        yield Case(
            function="select_partitions", about=about, ask=_selected, x=x, y=y, delta=0.1, relation=USER, draws=20_000
        )


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve(cases())
