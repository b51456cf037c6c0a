"""Rows that are nobody's: a fit is the same to its last bit as one without them, and one of them alone is a fit too."""

from typing import Any

import numpy as np
import pytest

from hubbub import learn
from hubbub.testing.replay import replayed

BOX: dict[str, Any] = {"epsilon": 50.0, "max_rows": 2}
DECLARED: dict[str, Any] = {**BOX, "bounds": (0.0, 1.0)}
ESTIMATORS = {
    "KMeans": learn.KMeans(3, **DECLARED),
    "KMeans, bought": learn.KMeans(2, **BOX),
    "LogisticRegression": learn.LogisticRegression(**DECLARED, classes=[0, 1]),
    "LogisticRegression, newton": learn.LogisticRegression(**DECLARED, classes=[0, 1], solver="newton", delta=1e-6),
    "LogisticRegression, bought": learn.LogisticRegression(**BOX, delta=1e-6),
    "LinearSVC": learn.LinearSVC(**DECLARED, classes=[0, 1]),
    "Perceptron": learn.Perceptron(**DECLARED, classes=[0, 1]),
    "LinearRegression": learn.LinearRegression(**DECLARED, y_bounds=(0.0, 1.0)),
    "Ridge, bought": learn.Ridge(max_rows=2, epsilon=2000.0),
    "PCA": learn.PCA(2, **DECLARED),
    "StandardScaler": learn.StandardScaler(**DECLARED),
    "QuantileTransformer": learn.QuantileTransformer(**DECLARED, n_quantiles=5),
    "KBinsDiscretizer": learn.KBinsDiscretizer(**DECLARED, n_bins=4),
    "GaussianNB": learn.GaussianNB(**DECLARED, classes=[0, 1]),
    "CategoricalNB": learn.CategoricalNB(**DECLARED, classes=[0, 1], categories=[2, 2, 2]),
}
ROWS, NOBODYS = 60, (0, 7, 8, 30, 59)


def learned(name: str, x: Any, y: Any, owners: Any) -> dict[str, list[Any]]:
    with replayed(5):
        fitted = ESTIMATORS[name].fit(x, y, groups=owners)
    arrays = {key: value for key, value in vars(fitted).items() if isinstance(value, np.ndarray | list)}
    assert arrays
    return {key: np.asarray(value, dtype=object).tolist() for key, value in arrays.items()}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows_of_nobody_leave_no_trace(name: str) -> None:
    chance = np.random.default_rng(4)
    x, y = chance.uniform(size=(ROWS, 3)), chance.integers(0, 2, ROWS)
    owners = np.array([f"p{place // 3}" for place in range(ROWS)], dtype=object)
    owners[list(NOBODYS)] = [None, float("nan"), None, None, None]
    there = np.ones(ROWS, dtype=bool)
    there[list(NOBODYS)] = False
    whole = learned(name, x, y, owners)
    assert whole == learned(name, x[there], y[there], owners[there])
    owners[list(NOBODYS)] = "p1"
    assert whole != learned(name, x, y, owners)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nobody_at_all_is_a_table_to_learn_from(name: str) -> None:
    one = np.array([[0.5, 0.2, 0.9]])
    assert learned(name, one, [1], [None]) == learned(name, np.full((1, 3), np.nan), [0], [float("nan")])
