"""Google's C++ library through python-dp: one row a user, which is added or removed."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from pydp.algorithms import laplacian, numerical_mechanisms

from bench.peers.audited import ADD, INPUT, Case, in_a_child, serve

PAIRS: dict[str, tuple[list[float], list[float]]] = {
    "a row at the upper bound": ([1.0, 2.0], [1.0, 2.0, 10.0]),
    "one row or none": ([], [10.0]),
    "a row that is NaN": ([1.0, 2.0], [1.0, 2.0, math.nan]),
    "a row that is 1e308": ([1.0, 2.0], [1.0, 2.0, 1e308]),
}


def _result(name: str, rows: list[float], *, epsilon: float = 1.0) -> Any:
    kind = getattr(laplacian, name)
    if name == "Count":
        return kind(epsilon=epsilon, l0_sensitivity=1, linf_sensitivity=1, dtype="float").quick_result(rows)
    more = {} if name in ("Median", "Max", "Min") else {"l0_sensitivity": 1, "linf_sensitivity": 1}
    return kind(epsilon=epsilon, lower_bound=0.0, upper_bound=10.0, dtype="float", **more).quick_result(rows)


def of_statistics() -> Iterator[Case]:
    """Bounds from 0 to 10."""
    names = ("Count", "BoundedSum", "BoundedMean", "BoundedVariance", "BoundedStandardDeviation", "Median", "Max")
    for name in names:
        for about, (x, y) in PAIRS.items():
            yield Case(
                function=name,
                about=about,
                ask=partial(_result, name),
                x=x,
                y=y,
                relation=ADD,
                draws=20_000,
            )


def of_mechanisms() -> Iterator[Case]:
    """Sensitivity 1, from 0 to 1; and two questions that two processes answer."""
    laplace = numerical_mechanisms.LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
    gaussian = numerical_mechanisms.GaussianMechanism(epsilon=1.0, delta=0.1, sensitivity=1.0)
    yield Case(
        function="LaplaceMechanism", about="0 or 1", ask=laplace.add_noise, x=0.0, y=1.0, relation=INPUT, draws=20_000
    )
    yield Case(
        function="GaussianMechanism",
        about="0 or 1",
        ask=gaussian.add_noise,
        x=0.0,
        y=1.0,
        delta=0.1,
        relation=INPUT,
        draws=20_000,
    )

    def half(rows: list[float]) -> Any:
        return _result("Count", rows, epsilon=0.5)

    def forked(rows: list[float]) -> Any:
        """The parent draws in between, so that one pair of answers has nothing to do with the next."""
        half([])
        return [in_a_child(half, rows), in_a_child(half, [])]

    yield Case(
        function="Count, in two forked processes",
        about="two rows or three, beside a count of no row",
        ask=forked,
        x=[1.0, 2.0],
        y=[1.0, 2.0, 3.0],
        draws=1_000,
    )


if __name__ == "__main__":
    serve([*of_mechanisms(), *of_statistics()])
