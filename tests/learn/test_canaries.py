"""Sixty rows that nothing else resembles, each in or out by a coin: a fit does not tell which were in.

One run of each estimator, at a confidence of 1 − 1e-6; and the same audit on scikit-learn's, which tells nearly all.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import decomposition, linear_model, naive_bayes, preprocessing, svm

from hubbub import learn
from hubbub.audit.canaries import one_run

CANARIES, COMPANY = 60, 30
EPSILON = 1.0
Score = Callable[[Any, int], float]


def along(name: str) -> Score:
    return lambda fitted, place: float(np.ravel(getattr(fitted, name))[place])


def spread_along(fitted: Any, place: int) -> float:
    return float((fitted.explained_variance_ * fitted.components_[:, place] ** 2).sum())


def mean_of_second(fitted: Any, place: int) -> float:
    return float(fitted.theta_[1][place])


def counted(fitted: Any, place: int) -> float:
    return float(fitted.category_count_[place][1, 1])


def largest(fitted: Any, place: int) -> float:
    return float(fitted.quantiles_[-1, place])


BOX: dict[str, Any] = {"bounds": (0.0, 1.0), "epsilon": EPSILON}
TWO = {**BOX, "classes": [0.0, 1.0]}
CASES: dict[str, tuple[Any, Any, Score]] = {
    "LogisticRegression": (learn.LogisticRegression(**TWO), linear_model.LogisticRegression(), along("coef_")),
    "LinearSVC": (learn.LinearSVC(**TWO), svm.LinearSVC(), along("coef_")),
    "Perceptron": (learn.Perceptron(**TWO), linear_model.LogisticRegression(), along("coef_")),
    "LinearRegression": (
        learn.LinearRegression(**BOX, y_bounds=(0.0, 1.0)), linear_model.Ridge(alpha=1e-3), along("coef_"),
    ),
    "Ridge": (learn.Ridge(**BOX, y_bounds=(0.0, 1.0)), linear_model.Ridge(), along("coef_")),
    "PCA": (learn.PCA(**BOX), decomposition.PCA(), spread_along),
    "StandardScaler": (learn.StandardScaler(**BOX), preprocessing.StandardScaler(), along("mean_")),
    "GaussianNB": (learn.GaussianNB(**TWO), naive_bayes.GaussianNB(), mean_of_second),
    "CategoricalNB": (
        learn.CategoricalNB(**TWO, categories=[2] * CANARIES), naive_bayes.CategoricalNB(min_categories=2), counted,
    ),
    "QuantileTransformer": (
        learn.QuantileTransformer(**BOX, n_quantiles=20), preprocessing.QuantileTransformer(n_quantiles=20), largest,
    ),
}  # fmt: skip


def audited(estimator: Any, score: Score, *, seed: int) -> Any:
    """A canary is one column of its own, labelled 1; the company has nothing in any column, and both labels."""

    def fitted(rows: list[Any]) -> Any:
        held = [row for row in rows if row is not None]
        x = np.zeros((COMPANY + len(held), CANARIES))
        x[np.arange(COMPANY, len(x)), held] = 1.0
        y = np.concatenate([np.arange(COMPANY) % 2, np.ones(len(held))]).astype(float)
        return estimator.fit(x, y)

    return one_run(fitted, canaries=list(range(CANARIES)), score=score, epsilon=EPSILON, seed=seed)


@pytest.mark.parametrize("name", CASES)
def test_a_private_fit_does_not_tell_its_canaries(name: str) -> None:
    private, _, score = CASES[name]
    report = audited(private, score, seed=11)
    assert not report.accused, str(report)
    assert report.findings


@pytest.mark.parametrize("name", CASES)
def test_an_exact_one_does(name: str) -> None:
    _, exact, score = CASES[name]
    assert audited(exact, score, seed=11).accused
