"""Every estimator of ``hubbub.learn`` as it is audited: one line for each case of its proof."""

import math
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np

from hubbub.audit.subjects.engine_fits import OfAsked
from hubbub.audit.subjects.estimators import OfEstimator
from hubbub.audit.subjects.in_process.poisoned import OfPoisoned, Raising


def learners() -> list[OfEstimator]:
    """All of them; none where scikit-learn is not installed."""
    try:
        return list(LEARNERS) if find_spec("sklearn") is not None else []
    except ModuleNotFoundError:  # an importer that hides it
        return []


_BOX = {"bounds": (-1.0, 1.0)}
_SEEN_DELTA = Fraction(1, 20)
"""Large enough to be counted (SOUNDNESS 33)."""
_TWO: dict[str, Any] = {"settings": {**_BOX, "classes": [0.0, 1.0]}, "targets": (0.0, 1.0, math.nan)}
_THREE: dict[str, Any] = {"settings": {**_BOX, "classes": [0.0, 1.0, 2.0]}, "targets": (0.0, 1.0, 2.0)}
_PEOPLE: dict[str, Any] = {"settings": {**_TWO["settings"], "max_rows": 2}, "targets": (0.0, 1.0), "grouped": True}
_NEWTON: dict[str, Any] = {"settings": {**_TWO["settings"], "solver": "newton", "rounds": 2}, "targets": (0.0, 1.0)}
_CLASSIFIERS: tuple[OfEstimator, ...] = (
    OfEstimator(estimator="LogisticRegression", **_TWO),
    OfEstimator(estimator="LogisticRegression", words=", gaussian", delta=_SEEN_DELTA, **_TWO),
    OfEstimator(estimator="LogisticRegression", words=", three classes", **_THREE),
    OfEstimator(estimator="LogisticRegression", words=", three classes, gaussian", delta=_SEEN_DELTA, **_THREE),
    OfEstimator(estimator="LogisticRegression", words=", people", **_PEOPLE),
    OfEstimator(estimator="LogisticRegression", words=", newton", **_NEWTON),
    OfEstimator(estimator="LogisticRegression", words=", newton, people, gaussian", delta=_SEEN_DELTA, **_PEOPLE),
    OfEstimator(estimator="LinearSVC", **_TWO),
    OfEstimator(estimator="LinearSVC", words=", gaussian", delta=_SEEN_DELTA, **_TWO),
    OfEstimator(estimator="Perceptron", **_TWO),
    OfEstimator(estimator="Perceptron", words=", people, gaussian", delta=_SEEN_DELTA, **_PEOPLE),
)
_NAMED: dict[str, Any] = {"settings": _BOX, "targets": ("a", "b", "a longer name")}
_NUMBERS: dict[str, Any] = {"settings": {**_BOX, "y_bounds": (-1.0, 1.0)}, "targets": (-1.0, 1.0, 0.25)}
_CELLS: dict[str, Any] = {"settings": {"categories": [3, [-0.5, 0.5]], "classes": [0.0, 1.0]}, "targets": (0.0, 1.0)}
_FROM_SUMS: tuple[OfEstimator, ...] = (
    OfEstimator(estimator="LinearRegression", **_NUMBERS),
    OfEstimator(estimator="LinearRegression", words=", gaussian", delta=_SEEN_DELTA, **_NUMBERS),
    OfEstimator(estimator="LinearRegression", words=", bounds bought", targets=(-1.0, 3.5)),
    OfEstimator(
        estimator="Ridge",
        words=", people, gaussian",
        settings={**_NUMBERS["settings"], "max_rows": 2, "fit_intercept": False},
        targets=(-1.0, 1.0),
        delta=_SEEN_DELTA,
        grouped=True,
    ),
    OfEstimator(estimator="PCA", settings=_BOX, columns=3),
    OfEstimator(
        estimator="PCA", words=", people, gaussian", settings={**_BOX, "max_rows": 2}, delta=_SEEN_DELTA, grouped=True
    ),
    OfEstimator(estimator="QuantileTransformer", settings={**_BOX, "n_quantiles": 3}),
    OfEstimator(
        estimator="QuantileTransformer",
        words=", people, gaussian",
        settings={**_BOX, "n_quantiles": 3, "max_rows": 2},
        delta=_SEEN_DELTA,
        grouped=True,
    ),
    OfEstimator(estimator="KBinsDiscretizer", words=", bounds bought", settings={"n_bins": 3}),
    OfEstimator(estimator="GaussianNB", **_TWO),
    OfEstimator(estimator="GaussianNB", words=", people, gaussian", delta=_SEEN_DELTA, **_PEOPLE),
    OfEstimator(estimator="GaussianNB", words=", classes bought, gaussian", delta=_SEEN_DELTA, **_NAMED),
    OfEstimator(estimator="CategoricalNB", **_CELLS),
    OfEstimator(estimator="CategoricalNB", words=", many rows, gaussian", delta=_SEEN_DELTA, company=3000, **_CELLS),
    OfEstimator(
        estimator="CategoricalNB",
        words=", all bought, gaussian",
        settings={"n_bins": 3},
        targets=(0.0, 1.0),
        delta=_SEEN_DELTA,
    ),
)
_ASKED: tuple[OfEstimator, ...] = (
    OfAsked(estimator="KMeans", settings={**_BOX, "n_clusters": 2}),
    OfAsked(
        estimator="KMeans",
        words=", people, many rows, gaussian",
        settings={**_BOX, "n_clusters": 3, "max_rows": 2},
        columns=3,
        company=3000,
        delta=_SEEN_DELTA,
        grouped=True,
    ),
    OfAsked(estimator="StandardScaler", words=", bounds bought, people", settings={"max_rows": 2}, grouped=True),
    OfAsked(estimator="LinearRegression", words=", gaussian", delta=_SEEN_DELTA, **_NUMBERS),
    OfAsked(estimator="PCA", words=", people", settings={**_BOX, "max_rows": 2}, grouped=True),
    OfAsked(estimator="GaussianNB", words=", people, gaussian", delta=_SEEN_DELTA, **_PEOPLE),
)
_ANY_LABEL: dict[str, Any] = {**_TWO, "targets": (0.0, 1.0, 1, "1", Raising(), "\ud800", [1], Decimal("sNaN"), 1 << 70)}
_ANY_TARGET: tuple[Any, ...] = (-1.0, 0.25, "0.5", None, Raising(), 10**400, {}, np.ma.masked)
_POISONED: tuple[OfEstimator, ...] = (
    OfPoisoned(estimator="StandardScaler", words=", bounds bought"),
    OfPoisoned(estimator="KMeans", words=", people", settings={**_BOX, "n_clusters": 2, "max_rows": 2}, grouped=True),
    OfPoisoned(estimator="LinearRegression", settings={**_BOX, "y_bounds": (-1.0, 1.0)}, targets=_ANY_TARGET),
    OfPoisoned(estimator="LogisticRegression", **_ANY_LABEL),
    OfPoisoned(
        estimator="GaussianNB",
        words=", classes bought, people",
        settings={**_BOX, "max_rows": 2},
        targets=("a", "b", 1, 1.5, *_ANY_LABEL["targets"]),
        delta=_SEEN_DELTA,
        grouped=True,
    ),
    OfPoisoned(estimator="CategoricalNB", settings=_CELLS["settings"], targets=_ANY_LABEL["targets"]),
    OfPoisoned(estimator="QuantileTransformer", settings={**_BOX, "n_quantiles": 3, "max_rows": 2}, grouped=True),
)
LEARNERS: tuple[OfEstimator, ...] = (
    OfEstimator(estimator="KMeans", settings={**_BOX, "n_clusters": 2}),
    OfEstimator(estimator="KMeans", words=", gaussian", settings={**_BOX, "n_clusters": 2}, delta=_SEEN_DELTA),
    OfEstimator(estimator="KMeans", words=", people", settings={**_BOX, "n_clusters": 2, "max_rows": 2}, grouped=True),
    OfEstimator(estimator="KMeans", words=", many rows", settings={**_BOX, "n_clusters": 3}, columns=3, company=3000),
    OfEstimator(estimator="KMeans", words=", bounds bought", settings={"n_clusters": 2}),
    OfEstimator(estimator="KMeans", words=", random directions", settings={**_BOX, "n_clusters": 2}, columns=13),
    OfEstimator(estimator="KMeans", words=", lloyd", settings={**_BOX, "n_clusters": 3, "algorithm": "lloyd"}),
    OfEstimator(estimator="StandardScaler", settings=_BOX),
    OfEstimator(estimator="StandardScaler", words=", gaussian", settings=_BOX, delta=_SEEN_DELTA),
    OfEstimator(estimator="StandardScaler", words=", bounds bought"),
    OfEstimator(estimator="StandardScaler", words=", people", settings={**_BOX, "max_rows": 2}, grouped=True),
    *_CLASSIFIERS,
    *_FROM_SUMS,
    *_ASKED,
    *_POISONED,
)
