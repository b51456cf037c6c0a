"""What learners are warned of: useless fits, searches that pay n times, public transformers in front of a fit."""

import inspect
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

import hubbub as hb
from hubbub import learn
from hubbub.errors import LearningWarning
from hubbub.ledger import Marks
from hubbub.testing.replay import replayed

RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (4000, 2))
Y = X @ [1.0, -2.0]
BOUNDS: dict[str, Any] = {"bounds": (-1, 1)}


def fits(estimator: object, rows: int) -> list[str]:
    """The warnings of a fit to so many rows."""
    with warnings.catch_warnings(record=True) as caught, replayed(7):
        warnings.simplefilter("always", LearningWarning)
        target = Y[:rows] if isinstance(estimator, learn.LinearRegression) else (Y[:rows] > 0).astype(int)
        estimator.fit(X[:rows], target)  # type: ignore[attr-defined]
    return [str(one.message) for one in caught if issubclass(one.category, LearningWarning)]


@pytest.mark.parametrize(
    "estimator",
    [
        learn.LinearRegression(epsilon=0.01, y_bounds=(-3, 3), **BOUNDS),
        learn.StandardScaler(epsilon=0.001, **BOUNDS),
        learn.PCA(epsilon=0.001, **BOUNDS),
        learn.GaussianNB(epsilon=0.001, classes=[0, 1], **BOUNDS),
        learn.KMeans(2, epsilon=0.001, **BOUNDS),
        learn.LogisticRegression(classes=[0], **BOUNDS),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_fit_no_better_than_chance_is_said_to_be_so(estimator: object) -> None:
    (told,) = fits(estimator, 5)
    assert told.startswith(f"This {type(estimator).__name__} may be no better than chance: ")
    assert estimator.claim_.useless  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "estimator",
    [
        learn.LinearRegression(epsilon=10, y_bounds=(-3, 3), **BOUNDS),
        learn.StandardScaler(epsilon=10, **BOUNDS),
        learn.PCA(epsilon=10, **BOUNDS),
        learn.GaussianNB(epsilon=10, classes=[0, 1], **BOUNDS),
        learn.KMeans(2, epsilon=10, **BOUNDS),
        learn.LogisticRegression(epsilon=10, classes=[0, 1], **BOUNDS),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_good_fit_is_not_warned_of(estimator: object) -> None:
    assert fits(estimator, 4000) == []


def test_a_fit_in_an_engine_is_warned_of_too_fresh_or_stored(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.sql("SELECT i AS id, i::DOUBLE AS a, i::DOUBLE AS b FROM range(5) t(i)").write_parquet(
            str(tmp_path / "t.parquet")
        )
    with hb.open(
        tmp_path / "t.parquet", unit="id", budget=9, ledger=tmp_path / "a", marks=Marks(tmp_path / "state"),
        bounds={"a": (0, 5), "b": (0, 5)}, limits=hb.Limits(max_rows=1),
    ) as db:  # fmt: skip
        for _ in range(2):
            with replayed(7), pytest.warns(LearningWarning, match="This LinearRegression may be no better than chance"):
                db.table("t").learn(learn.LinearRegression(), columns=["a"], target="b", epsilon=0.01)


def test_a_search_pays_n_times() -> None:
    model = learn.LogisticRegression(epsilon=0.5, classes=[0, 1], **BOUNDS)
    said = r"^sklearn.model_selection fits this several times, and each of them pays ε = 0\.5: n fits cost n times"
    with pytest.warns(LearningWarning, match=said):
        GridSearchCV(model, {"C": [1.0, 2.0]}, cv=2).fit(X, Y > 0)
    with pytest.warns(LearningWarning, match=said):
        cross_val_score(model, X, Y > 0, cv=2)


def test_a_public_transformer_in_front_is_not_private() -> None:
    model = learn.LogisticRegression(epsilon=1, classes=[0, 1], **BOUNDS)
    said = "MinMaxScaler of this pipeline learns from the rows without privacy"
    with pytest.warns(LearningWarning, match=said):
        make_pipeline(MinMaxScaler(), model).fit(X, Y > 0)
    inside = ColumnTransformer([("scaled", MinMaxScaler(), [0]), ("kept", "passthrough", [1])])
    with pytest.warns(LearningWarning, match=said):
        make_pipeline(inside, model).fit(X, Y > 0)
    for harmless in (FunctionTransformer(), learn.StandardScaler(**BOUNDS)):
        assert fits(make_pipeline(harmless, clone(model)), 4000) == []


def test_parameters_of_scikit_learn_are_ignored_or_explained() -> None:
    with pytest.warns(LearningWarning, match="LogisticRegression ignores n_jobs: it changes nothing here"):
        made = learn.LogisticRegression(n_jobs=2, epsilon=2)  # type: ignore[call-arg]
    assert made.epsilon == 2
    assert "n_jobs" not in made.get_params()
    with pytest.raises(TypeError, match="LogisticRegression has no parameter max_iter: the number of rounds is"):
        learn.LogisticRegression(max_iter=100)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"KMeans has no parameter frobnicate\. It has: n_clusters, .*epsilon"):
        learn.KMeans(2, frobnicate=1)  # type: ignore[call-arg]


def test_signatures_are_still_those_that_are_written() -> None:
    assert next(iter(inspect.signature(learn.KMeans).parameters)) == "n_clusters"
    assert set(learn.KMeans(3).get_params()) == set(inspect.signature(learn.KMeans).parameters)
    assert clone(learn.KMeans(3, epsilon=2)).get_params()["n_clusters"] == 3
