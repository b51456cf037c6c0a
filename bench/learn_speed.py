"""What a fit of a million rows costs beside scikit-learn's: CPU seconds of both in one run, in turns."""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import cluster, decomposition, linear_model, naive_bayes, preprocessing, svm

from bench.record import Bench, Row
from hubbub import learn

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 1_000_000, 20
CELLS = 8
DELTA = 1e-6
SLOWER = 5.0
TURNS = 2


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers about 0, a target, a label, and the same numbers in eight cells a column."""

    x: Array
    target: Array
    label: Array
    cells: Array = field(repr=False)


def table() -> Table:
    """Made up, with a label that noise blurs: nothing is separable."""
    chance = np.random.default_rng(0)
    x = chance.normal(size=(ROWS, COLUMNS))
    target = x @ chance.normal(size=COLUMNS) + chance.normal(size=ROWS)
    label = (target + 2 * chance.normal(size=ROWS) > 0).astype(int)
    return Table(x, target, label, np.clip(np.floor(x + CELLS / 2), 0, CELLS - 1))


def sides(made: Table) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Ours and theirs, both with their own defaults wherever nothing is said."""
    x, target, label, cells = made.x, made.target, made.label, made.cells
    public: dict[str, Any] = {"delta": DELTA, "bounds": (-5, 5)}
    classes: dict[str, Any] = {**public, "classes": [0, 1]}
    ends = (-30, 30)
    return {
        "StandardScaler": (
            lambda: learn.StandardScaler(**public).fit(x),
            lambda: preprocessing.StandardScaler().fit(x),
        ),
        "StandardScaler, bounds bought": (
            lambda: learn.StandardScaler(delta=DELTA).fit(x),
            lambda: preprocessing.StandardScaler().fit(x),
        ),
        "QuantileTransformer": (
            lambda: learn.QuantileTransformer(**public).fit(x),
            lambda: preprocessing.QuantileTransformer(n_quantiles=33, subsample=None).fit(x),
        ),
        "KBinsDiscretizer": (
            lambda: learn.KBinsDiscretizer(16, **public).fit(x),
            lambda: preprocessing.KBinsDiscretizer(16, subsample=None, quantile_method="averaged_inverted_cdf").fit(x),
        ),
        "PCA": (lambda: learn.PCA(5, **public).fit(x), lambda: decomposition.PCA(5).fit(x)),
        "LinearRegression": (
            lambda: learn.LinearRegression(y_bounds=ends, **public).fit(x, target),
            lambda: linear_model.LinearRegression().fit(x, target),
        ),
        "Ridge": (
            lambda: learn.Ridge(y_bounds=ends, **public).fit(x, target),
            lambda: linear_model.Ridge().fit(x, target),
        ),
        "GaussianNB": (
            lambda: learn.GaussianNB(**classes).fit(x, label),
            lambda: naive_bayes.GaussianNB().fit(x, label),
        ),
        "CategoricalNB": (
            lambda: learn.CategoricalNB(categories=[CELLS] * COLUMNS, **classes).fit(cells, label),
            lambda: naive_bayes.CategoricalNB().fit(cells, label),
        ),
        "LogisticRegression": (
            lambda: learn.LogisticRegression(**classes).fit(x, label),
            lambda: linear_model.LogisticRegression().fit(x, label),
        ),
        "LogisticRegression, newton": (
            lambda: learn.LogisticRegression(solver="newton", **classes).fit(x, label),
            lambda: linear_model.LogisticRegression().fit(x, label),
        ),
        "LinearSVC": (
            lambda: learn.LinearSVC(**classes).fit(x, label),
            lambda: svm.LinearSVC().fit(x, label),
        ),
        "Perceptron": (
            lambda: learn.Perceptron(**classes).fit(x, label),
            lambda: linear_model.Perceptron().fit(x, label),
        ),
        "KMeans": (
            lambda: learn.KMeans(8, bounds=(-5, 5)).fit(x),
            lambda: cluster.KMeans(8).fit(x),
        ),
    }


def _rows() -> Iterator[Row]:
    for name, (ours, theirs) in sides(table()).items():
        taken = {"hubbub CPU s": float("inf"), "scikit-learn CPU s": float("inf")}
        for _ in range(TURNS):
            for side, job in zip(taken, (ours, theirs), strict=True):
                begun = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    job()
                taken[side] = min(taken[side], time.process_time() - begun)
        ratio = taken["hubbub CPU s"] / taken["scikit-learn CPU s"]
        yield Row(what=name, figures={**taken, "ratio": ratio}, target=f"ratio ≤ {SLOWER:g}", holds=ratio <= SLOWER)


BENCH = Bench(
    name="learn-speed",
    about=f"CPU seconds of one fit of {ROWS:,} rows of {COLUMNS} columns",
    run=_rows,
    steps=14,
    notes=(
        f"The better of {TURNS} fits each, in turns; public bounds and classes, δ = {DELTA:g} (KMeans: 0).",
        "scikit-learn sees all rows for its quantiles too (it takes a sample if nothing is said).",
    ),
)
