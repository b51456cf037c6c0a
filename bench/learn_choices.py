"""What was chosen by looking, and on what: never on the rows that a figure is then reported for.

Bins and the ridge of Adult are chosen on a fifth of the training file that is held back, the shares of a regression on
airfoils and on made-up tables, never on bicycles.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from sklearn.metrics import roc_auc_score

from bench.adult import BINS, CHOSEN, NORM, adult, codes, sizes
from bench.learn_peer import Array, spread
from bench.learn_regression import Y_BOUNDS, splits, tables
from bench.record import Bench, Row
from hubbub.learn import CategoricalNB, LinearRegression, LogisticRegression
from hubbub.learn.linear import regression
from hubbub.mechanisms.objective import objective

RUNS = 5
EPSILONS = (0.1, 1.0)
DELTA = 1e-6
RIDGES = (0.25, 0.5, 1.0, 2.0)
"""Times the noise's scale: LogisticRegression and LinearSVC choose a half."""
SHARES: tuple[Mapping[str, Any], ...] = (
    {"MOMENTS": Fraction(1, 10), "REACH": 2.0},
    {"MOMENTS": Fraction(3, 10), "REACH": 1.5},
    {"MOMENTS": Fraction(3, 10), "REACH": 2.0},
)
MADE_UP = ((10_000, 8, 1.0), (20_000, 15, 3.0), (5_000, 5, 0.5), (17_000, 12, 4.0))
"""Rows, columns, and how large the noise of the target is."""
_DECLARED: dict[str, Any] = {"delta": DELTA, "classes": [False, True]}


def _rows() -> Iterator[Row]:
    for bins in BINS:
        hot, label = adult("data", bins=bins)
        cells, many = codes(hot, bins=bins), list(sizes(bins))
        for epsilon in EPSILONS:
            yield _held_back(f"bins {bins!r}, LogisticRegression, ε = {epsilon:g}", _logistic(epsilon), hot, label)
            made = _counted(epsilon, many)
            yield _held_back(f"bins {bins!r}, CategoricalNB, ε = {epsilon:g}", made, cells, label)
    hot, label = adult("data", bins=CHOSEN)
    for times in RIDGES:
        for epsilon in EPSILONS:
            with _ridge(times):
                yield _held_back(
                    f"ridge {times:g}, LogisticRegression, ε = {epsilon:g}", _logistic(epsilon), hot, label
                )
    others = dict(_others())
    for settings in SHARES:
        with mock.patch.multiple(regression, **settings):
            for epsilon in EPSILONS:
                words = ", ".join(f"{name} {value}" for name, value in settings.items())
                found = {name: _explained(table, epsilon) for name, table in others.items()}
                yield Row(what=f"LinearRegression, {words}, ε = {epsilon:g}", figures=found)


def _logistic(epsilon: float) -> Callable[[], Any]:
    return lambda: LogisticRegression(epsilon=epsilon, bounds=(0, 1), max_norm=NORM, **_DECLARED)


def _counted(epsilon: float, many: list[int]) -> Callable[[], Any]:
    return lambda: CategoricalNB(epsilon=epsilon, categories=many, **_DECLARED)


def _ridge(times: float) -> AbstractContextManager[Any]:
    chosen: Callable[[Any], float] = lambda guess: max(float(guess.scale) * times, 1 / guess.width)  # noqa: E731
    return mock.patch.object(objective, "_choose_share", chosen)


def _held_back(what: str, make: Callable[[], Any], x: Array, y: Array) -> Row:
    """Four fifths of the training file to learn from, one to look at."""
    order = np.random.default_rng(20).permutation(len(y))
    seen, held = np.split(order, [len(y) * 4 // 5])
    scores = [make().fit(x[seen], y[seen]).decision_function(x[held]) for _ in range(RUNS)]
    aucs = [float(roc_auc_score(y[held], one)) for one in scores]
    right = [float(((one > 0) == y[held]).mean()) for one in scores]
    return Row(what=what, figures={**spread(aucs, "AUC"), **spread(right, "accuracy")})


def _others() -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield "airfoil", (*tables()["airfoil"], Y_BOUNDS["airfoil"])
    for place, (rows, columns, noise) in enumerate(MADE_UP):
        chance = np.random.default_rng(500 + place)
        x = chance.normal(size=(rows, columns))
        x[:, 1] = 0.8 * x[:, 0] + 0.6 * x[:, 1]
        x = np.clip(np.floor(x * 3) / 3, -4, 4)
        y = x @ chance.normal(size=columns) + noise * chance.exponential(size=rows)
        ends = float(np.floor(y.min()) - 2), float(np.ceil(y.max()) + 5)
        yield f"made up {place + 1}", (x, y, np.full(columns, -5.0), np.full(columns, 5.0), ends)


def _explained(table: tuple[Any, ...], epsilon: float) -> float:
    """The mean held-out R²."""
    x, y, low, high, ends = table
    train, test = splits(len(y))
    model = LinearRegression(epsilon=epsilon, delta=DELTA, bounds=(low, high), y_bounds=ends)
    return float(np.mean([model.fit(x[a], y[a]).score(x[b], y[b]) for a, b in zip(train, test, strict=True)]))


BENCH = Bench(
    name="learn-choices",
    about="what was chosen by looking: on rows that no figure is reported for",
    run=_rows,
    steps=len(EPSILONS) * (2 * len(BINS) + len(RIDGES) + len(SHARES)),
    notes=(
        f"Adult: means of {RUNS} fits on four fifths of the training file, looked at on the fifth that was held back.",
        f"Chosen: bins {CHOSEN!r}, a ridge of half the noise's scale, and the last shares of the regression (mean R²):",
        "clipping residuals sooner gains a little where noise is large, and is wrong by more where a ridge is.",
    ),
    named=True,
)
