"""diffprivlib's tools, mechanisms and models. The number of rows is public: a row is replaced, or as is said."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from diffprivlib import mechanisms, models, tools

from bench.peers.audited import INPUT, REPLACE, Case, serve

BOUNDS = (0.0, 1.0)
LEAK = "Documented: the function warns of a privacy leak (PrivacyLeakWarning)."
NAN = "Its nan-functions (nansum, nanmean, …) are for such rows."


def _rows(last: float) -> Any:
    return np.array([0.0, 0.0, 1.0, 1.0, last])


def _tool(name: str) -> Callable[[Any], Any]:
    return lambda rows: getattr(tools, name)(rows, epsilon=1.0, bounds=BOUNDS)


def of_tools() -> Iterator[Case]:
    """Statistics of an array."""
    for name in ("sum", "mean", "var", "std", "median"):
        ask, relation = _tool(name), REPLACE
        yield Case(function=name, about="0 or 1 in five rows", ask=ask, x=_rows(0), y=_rows(1), relation=relation)
        one = [np.array([value]) for value in BOUNDS]
        yield Case(function=name, about="one row, 0 or 1", ask=ask, x=one[0], y=one[1], relation=relation)
        yield Case(function=name, about="0 or 1e308", ask=ask, x=_rows(0), y=_rows(1e308), relation=relation)
        yield Case(function=name, about="0 or NaN", ask=ask, x=_rows(0), y=_rows(np.nan), relation=relation, remark=NAN)
    for name in ("nansum", "nanmean", "nanvar"):
        yield Case(function=name, about="0 or NaN", ask=_tool(name), x=_rows(0), y=_rows(np.nan), relation=REPLACE)
    yield Case(
        function="mean without bounds",
        about="0 or 5",
        ask=lambda rows: tools.mean(rows, epsilon=1.0),
        x=_rows(0),
        y=_rows(5),
        relation=REPLACE,
        remark=LEAK,
    )
    yield Case(
        function="count_nonzero",
        about="0 or 1 in five rows",
        ask=lambda rows: tools.count_nonzero(rows, epsilon=1.0),
        x=_rows(0),
        y=_rows(1),
        relation=REPLACE,
    )
    yield Case(
        function="count_nonzero",
        about="four ones or five",
        ask=lambda rows: tools.count_nonzero(rows, epsilon=1.0),
        x=np.ones(4),
        y=np.ones(5),
        remark="Answers end at the number of rows, which is taken to be public.",
    )


def of_histograms() -> Iterator[Case]:
    """Counts in two bins; the sensitivity of each bin is 1."""

    def ask(rows: Any) -> Any:
        return tools.histogram(rows, epsilon=1.0, bins=2, range=BOUNDS)[0]

    yield Case(function="histogram", about="a row in the second bin or none", ask=ask, x=_rows(1), y=_rows(1)[:-1])
    yield Case(
        function="histogram",
        about="a row in the first bin or in the second",
        ask=ask,
        x=_rows(0),
        y=_rows(1),
        relation=REPLACE,
        remark="The relation of its sums and means; by adding or removing a row, ε is spent once.",
    )
    yield Case(
        function="histogram without range",
        about="a row at 1 or at 5",
        ask=lambda rows: tools.histogram(rows, epsilon=1.0, bins=2)[1],
        x=_rows(1),
        y=_rows(5),
        relation=REPLACE,
        remark=LEAK,
    )
    yield Case(
        function="histogram with weights",
        about="a row of weight 100 in the first bin or in the second",
        ask=lambda rows: tools.histogram(rows, epsilon=1.0, bins=2, range=BOUNDS, weights=[1, 1, 1, 1, 100])[0],
        x=_rows(0),
        y=_rows(1),
        relation=REPLACE,
    )


def of_mechanisms() -> Iterator[Case]:
    """Sensitivity 1, from 0 to 1."""
    plain: dict[str, dict[str, Any]] = {
        "Laplace": {},
        "Geometric": {},
        "GeometricTruncated": {"lower": 0, "upper": 4},
        "GeometricFolded": {"lower": 0, "upper": 4},
        "LaplaceTruncated": {"lower": 0.0, "upper": 1.0},
        "LaplaceFolded": {"lower": 0.0, "upper": 1.0},
        "LaplaceBoundedDomain": {"lower": 0.0, "upper": 1.0},
        "Snapping": {"lower": 0.0, "upper": 10.0},
        "Staircase": {},
        "LaplaceBoundedNoise": {"delta": 0.1},
        "Gaussian": {"delta": 0.1},
        "GaussianAnalytic": {"delta": 0.1},
        "GaussianDiscrete": {"delta": 0.1},
    }
    for name, given in plain.items():
        mechanism = getattr(mechanisms, name)(epsilon=1.0, sensitivity=1, **given)
        whole = name.startswith("Geometric") or name == "GaussianDiscrete"
        x, y = (0, 1) if whole else (0.0, 1.0)
        delta = given.get("delta", 0.0)
        yield Case(
            function=name, about="0 or 1", ask=mechanism.randomise, x=x, y=y, delta=delta, relation=INPUT, draws=20_000
        )
    for name in ("Exponential", "PermuteAndFlip"):
        yield Case(
            function=name,
            about="scores (0, 1, 1) or (1, 0, 0)",
            ask=_chosen(getattr(mechanisms, name)),
            x=[0, 1, 1],
            y=[1, 0, 0],
            relation=INPUT,
        )


def _chosen(kind: Any) -> Callable[[Any], Any]:
    return lambda scores: kind(epsilon=1.0, sensitivity=1, utility=scores).randomise()


_X = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.2, 0.1], [0.9, 0.8], [0.3, 0.3]])
_Y = np.array([0, 1, 0, 1, 0, 1])


def _fitted(model: Callable[[], Any], *attributes: str) -> Callable[[Any], Any]:
    """What a model has learned, by the names that it shows it under."""

    def ask(rows: Any) -> Any:
        found = model().fit(*rows)
        return [part for name in attributes for part in np.ravel(getattr(found, name)).tolist()]

    return ask


def of_models() -> Iterator[Case]:
    """The last row is replaced."""
    moved = np.vstack([_X[:-1], [[1.0, 1.0]]])
    relabelled = np.array([0, 1, 0, 1, 0, 0])
    made: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
        "GaussianNB": (
            _fitted(lambda: models.GaussianNB(epsilon=1.0, bounds=BOUNDS), "theta_", "var_", "class_count_"),
            (_X, _Y),
            (moved, relabelled),
        ),
        "StandardScaler": (
            _fitted(lambda: models.StandardScaler(epsilon=1.0, bounds=BOUNDS), "mean_", "var_"),
            (_X,),
            (moved,),
        ),
        "KMeans, centres": (
            _fitted(lambda: models.KMeans(2, epsilon=1.0, bounds=BOUNDS), "cluster_centers_"),
            (_X,),
            (moved,),
        ),
        "KMeans, inertia_": (
            _fitted(lambda: models.KMeans(2, epsilon=1.0, bounds=BOUNDS), "inertia_"),
            (_X,),
            (moved,),
        ),
        "KMeans, labels_": (
            _fitted(lambda: models.KMeans(2, epsilon=1.0, bounds=BOUNDS), "labels_"),
            (_X,),
            (moved,),
        ),
        "LinearRegression": (
            _fitted(lambda: models.LinearRegression(epsilon=1.0, bounds_X=BOUNDS, bounds_y=BOUNDS), "coef_"),
            (_X, _Y),
            (moved, relabelled),
        ),
        "LogisticRegression": (
            _fitted(lambda: models.LogisticRegression(epsilon=1.0, data_norm=1.5), "coef_", "intercept_"),
            (_X, _Y),
            (moved, relabelled),
        ),
        "GaussianNB, a class of one row": (
            _fitted(lambda: models.GaussianNB(epsilon=1.0, bounds=BOUNDS), "classes_"),
            (_X, _Y),
            (_X, np.array([0, 1, 0, 1, 0, 2])),
        ),
        "DecisionTreeClassifier": (
            lambda rows: (
                models.DecisionTreeClassifier(max_depth=2, epsilon=1.0, bounds=BOUNDS, classes=[0, 1])
                .fit(*rows)
                .predict(_X)
            ),
            (_X, _Y),
            (moved, relabelled),
        ),
    }
    for name, (ask, x, y) in made.items():
        yield Case(
            function=name,
            about="the last of six rows, to the far corner",
            ask=ask,
            x=x,
            y=y,
            relation=REPLACE,
            draws=4_000,
        )
    yield Case(
        function="GaussianNB without bounds",
        about="the last of six rows, to the far corner",
        ask=_fitted(lambda: models.GaussianNB(epsilon=1.0), "theta_"),
        x=(_X, _Y),
        y=(np.vstack([_X[:-1], [[50.0, 50.0]]]), _Y),
        relation=REPLACE,
        remark=LEAK,
        draws=2_000,
    )


if __name__ == "__main__":
    serve([*of_tools(), *of_histograms(), *of_mechanisms(), *of_models()])
