"""OpenDP: chains of transformations and measurements, the context over Polars, and single mechanisms.

What a measurement claims is what its own map says of neighbours at distance 1 (2 where the size is public: a row is
replaced).
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import opendp.prelude
import polars as pl

from bench.peers.audited import ADD, INPUT, REPLACE, Case, in_a_child, serve, table

dp: Any = opendp.prelude
dp.enable_features("contrib")

PAIRS: dict[str, tuple[list[float], list[float]]] = {
    "a row at the upper bound": ([1.0, 2.0], [1.0, 2.0, 10.0]),
    "one row or none": ([], [10.0]),
    "a row that is 1e308": ([1.0, 2.0], [1.0, 2.0, 1e308]),
    "a row that is NaN": ([1.0, 2.0], [1.0, 2.0, math.nan]),
}
OUTSIDE = "The declared domain is without NaN: such rows are the caller's to remove."


def _floats() -> tuple[Any, Any]:
    return dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()


def _texts() -> tuple[Any, Any]:
    return dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()


def of_chains() -> Iterator[Case]:
    """Values from 0 to 10."""
    count = _floats() >> dp.t.then_count() >> dp.m.then_laplace(1.0)
    total = _floats() >> dp.t.then_clamp((0.0, 10.0)) >> dp.t.then_sum() >> dp.m.then_laplace(10.0)
    candidates = [0.0, 2.5, 5.0, 7.5, 10.0]
    median = (
        _floats()
        >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)
        >> dp.m.then_noisy_max(dp.max_divergence(), 2.0)
    )
    for name, measured in (("count", count), ("clamped sum", total), ("quantile by noisy max", median)):
        for about, (x, y) in PAIRS.items():
            remark = OUTSIDE if "NaN" in about else ""
            claim = float(measured.map(1))
            yield Case(function=name, about=about, ask=measured, x=x, y=y, epsilon=claim, relation=ADD, remark=remark)
    sized = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0)), size=3), dp.symmetric_distance()
    for name, step, scale in (("mean", dp.t.then_mean, 10 / 3), ("variance", dp.t.then_variance, 100 / 3)):
        measured = sized >> step() >> dp.m.then_laplace(scale)
        x, y = [0.0, 10.0, 0.0], [0.0, 10.0, 10.0]
        claim = float(measured.map(2))
        yield Case(function=name, about="0 or 10", ask=measured, x=x, y=y, epsilon=claim, relation=REPLACE)


def of_keys() -> Iterator[Case]:
    """Counts by listed keys, and by keys that are chosen by a threshold."""
    listed = _texts() >> dp.t.then_count_by_categories(["a", "b"], null_category=True) >> dp.m.then_laplace(1.0)
    for about, key in (("a row of a listed key", "a"), ("a row of another key", "z")):
        yield Case(
            function="count by categories",
            about=about,
            ask=listed,
            x=["a", "b"],
            y=["a", "b", key],
            epsilon=float(listed.map(1)),
        )
    chosen = _texts() >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(1.0, 3)
    epsilon, delta = chosen.map(1)
    for rows in (0, 1, 3):
        x = ["a"] * 5 + ["z"] * rows
        about = f"{rows} or {rows + 1} rows of a rare key"
        yield Case(
            function="count by chosen keys",
            about=about,
            ask=chosen,
            x=x,
            y=[*x, "z"],
            epsilon=float(epsilon),
            delta=float(delta),
            draws=20_000,
        )


def of_mechanisms() -> Iterator[Case]:
    """From 0 to 1."""
    floats = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    wholes = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    laplace = dp.m.make_laplace(*floats, 1.0)
    geometric = dp.m.make_laplace(*wholes, 1.0)
    bounded = dp.m.make_geometric(*wholes, 1.0, bounds=(0, 5))
    gaussian = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*floats, 1.0))
    delta = float(gaussian.map(1.0).delta(1.0))
    yield _moved("Laplace, floats", laplace, 0.0, 1.0, epsilon=float(laplace.map(1.0)))
    yield _moved("Laplace, integers", geometric, 0, 1, epsilon=float(geometric.map(1)))
    yield _moved("geometric, bounded", bounded, 0, 1, epsilon=float(bounded.map(1)))
    yield _moved("Gaussian, floats", gaussian, 0.0, 1.0, epsilon=1.0, delta=delta)
    flipped = dp.m.make_randomized_response_bool(0.75)
    several = dp.m.make_randomized_response([0, 1, 2], 0.6)
    yield _moved("randomized response", flipped, False, True, epsilon=float(flipped.map(1)))
    yield _moved("randomized response of three", several, 0, 1, epsilon=float(several.map(1)))
    half = dp.m.make_laplace(*wholes, 2.0)
    yield Case(
        function="Laplace, in two forked processes",
        about="2 or 3, beside 0",
        ask=lambda value: [in_a_child(half, part) for part in (value, 0)],
        x=2,
        y=3,
        epsilon=1.0,
        relation=INPUT,
        draws=1_000,
    )


def _moved(function: str, ask: Any, x: Any, y: Any, *, epsilon: float, delta: float = 0.0) -> Case:
    about = f"{x} or {y}"
    return Case(
        function=function, about=about, ask=ask, x=x, y=y, epsilon=epsilon, delta=delta, relation=INPUT, draws=20_000
    )


Rows = list[tuple[str, float | None]]
BASE: Rows = [("a", 1.0), ("a", 9.0), ("b", 5.0)]


def _frame(rows: Rows) -> Any:
    return pl.DataFrame(rows, schema={"key": pl.String, "value": pl.Float64}, orient="row").lazy()


def _asked(query: Callable[[Any], Any]) -> Callable[[Any], Any]:
    context = dp.Context.compositor(
        data=_frame(BASE),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-7),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=100)],
    )
    measured = query(context.query()).resolve()
    return lambda frame: table(measured(frame).collect().rows())


def of_frames() -> Iterator[Case]:
    """Through the context, ε = 1."""
    value = pl.col("value").fill_nan(0.0).fill_null(0.0)
    numbers: Any = value
    queries: dict[str, Callable[[Any], Any]] = {
        "Polars: len": lambda query: query.select(dp.len(signed=True)),
        "Polars: sum": lambda query: query.select(numbers.dp.sum((0.0, 10.0))),
        "Polars: median": lambda query: query.select(numbers.dp.median([0.0, 2.5, 5.0, 7.5, 10.0])),
        "Polars: len by key": lambda query: query.group_by("key").agg(dp.len(signed=True)),
    }
    added: dict[str, tuple[str, float | None]] = {
        "a row at the upper bound": ("a", 10.0),
        "a row that is NaN, of a rare key": ("z", math.nan),
        "a row that is NULL": ("a", None),
    }
    for name, query in queries.items():
        ask = _asked(query)
        for about, row in added.items():
            y = _frame([*BASE, row])
            yield Case(function=name, about=about, ask=ask, x=_frame(BASE), y=y, delta=1e-7, draws=4_000)


if __name__ == "__main__":
    serve([*of_mechanisms(), *of_chains(), *of_keys(), *of_frames()])
