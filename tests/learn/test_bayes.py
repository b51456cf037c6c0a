"""Naive Bayes over numbers and over cells."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB as Plain

from hubbub.errors import ParameterError
from hubbub.learn import CategoricalNB, GaussianNB
from hubbub.learn.bayes.score_calibration import CELLS, _cut, _slope, calibrate
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.tuition import Tuition

Array = np.ndarray[Any, Any]


def numbers(rows: int = 10_000, classes: int = 2) -> tuple[Array, Array]:
    chance = np.random.default_rng(0)
    y = chance.integers(0, classes, size=rows)
    return chance.normal(size=(rows, 3)) * 0.2 + (y[:, None] - (classes - 1) / 2) * np.array([0.3, 0.1, 0.0]), y


def cells(rows: int = 10_000) -> tuple[Array, Array]:
    """Two columns that are one and the same, and one that says something else."""
    chance = np.random.default_rng(1)
    y = (chance.random(rows) < 0.3).astype(int)
    same = np.where(chance.random(rows) < 0.75, y, 1 - y)
    other = np.where(chance.random(rows) < 0.75, y, 1 - y) + 2 * (chance.random(rows) < 0.1)
    return np.column_stack([same, same, same, same, other]).astype(float), y


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_moments_within_classes(delta: float) -> None:
    x, y = numbers()
    model = GaussianNB(epsilon=20.0, delta=delta, bounds=(-1, 1), classes=[0, 1]).fit(x, y)
    inside = np.clip(x, -1, 1)
    for code in (0, 1):
        assert model.theta_[code] == pytest.approx(inside[y == code].mean(axis=0), abs=0.01)
        assert model.var_[code] == pytest.approx(inside[y == code].var(axis=0), rel=0.2)
    assert model.class_count_ == pytest.approx(np.bincount(y), rel=0.02)
    assert model.score(x, y) > Plain().fit(x, y).score(x, y) - 0.02
    chances = model.predict_proba(x)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(x)).all()
    assert np.log(chances) == pytest.approx(model.predict_log_proba(x))


def test_three_classes() -> None:
    x, y = numbers(classes=3)
    names = np.array(["a", "b", "c"])[y]
    model = GaussianNB(epsilon=5.0, delta=1e-6, bounds=(-1, 1)).fit(x, names)  # classes bought
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(x, names) > Plain().fit(x, y).score(x, y) - 0.03
    assert model.decision_function(x).shape == (len(x), 3)
    counted = CategoricalNB(epsilon=5.0, delta=1e-6, bounds=(-1, 1), n_bins=8).fit(x, names)
    assert counted.score(x, names) > model.score(x, names) - 0.08
    assert counted.predict_proba(x[:9]).shape == (9, 3)


def test_cells_are_counted_and_repeated_columns_weighed_down() -> None:
    x, y = cells()
    kinds = [2, 2, 2, 2, [0.5, 1.5, 2.5]]
    settings: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-6, "categories": kinds, "classes": [0, 1]}
    weighed = CategoricalNB(**settings).fit(x, y)
    naive = CategoricalNB(weighted=False, **settings).fit(x, y)
    assert weighed.weights_ is not None
    assert naive.weights_ is None
    # What a copy says counts once: the four copies together weigh about as much as the other column.
    assert weighed.weights_[1:5].sum() == pytest.approx(weighed.weights_[5], rel=0.35)
    sure = [roc_auc_score(y, one.decision_function(x)) for one in (weighed, naive)]
    assert sure[0] >= sure[1] - 0.002
    assert weighed.score(x, y) > 0.78
    odds = weighed.log_odds_[0]
    share = y[x[:, 0] == 1].mean()
    assert odds[1, 1] == pytest.approx(np.log(share / y.mean()), abs=0.1)
    assert weighed.class_prior_ == pytest.approx([1 - y.mean(), y.mean()], abs=0.02)


def test_noise_that_would_drown_the_weights_is_not_bought() -> None:
    x, y = cells(400)
    model = CategoricalNB(epsilon=0.1, categories=[2, 2, 2, 2, 4], classes=[0, 1]).fit(x, y)
    assert model.weights_ is None
    assert [one.split(" (")[0] for one in model.claim_.measured] == ["cells within classes", "scores"]


def test_what_is_missing_has_a_cell_of_its_own() -> None:
    chance = np.random.default_rng(2)
    y = chance.integers(0, 2, size=5_000)
    x = np.where((y == 1) & (chance.random(5_000) < 0.8), np.nan, 0.0)[:, None]
    model = CategoricalNB(epsilon=5.0, delta=1e-6, categories=[1], classes=[0, 1]).fit(x, y)
    assert model.score(x, y) > 0.85


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("model", [GaussianNB(epsilon=0.1, classes=[0, 1]), CategoricalNB(epsilon=0.1, classes=[0, 1])])
def test_any_data_gives_an_answer(model: Any, rows: int) -> None:
    for x in (np.zeros((rows, 2)), np.full((rows, 2), np.nan), np.full((rows, 2), -np.inf)):
        for y in (np.zeros(rows, dtype=int), np.full(rows, 7), np.ones(rows, dtype=int)):
            guess = model.fit(x, y).predict(x)
            assert set(guess.tolist()) <= {0, 1}
            assert np.isfinite(model.predict_proba(x)).all()


def test_one_class_is_all_there_is() -> None:
    for model in (GaussianNB(epsilon=1.0, delta=1e-9), CategoricalNB(epsilon=1.0, delta=1e-9)):
        fitted = model.fit(np.zeros((3, 2)), np.array(["x", "y", "x"]))
        assert fitted.predict(np.zeros((2, 2))).tolist() == ["", ""]
        assert fitted.predict_proba(np.zeros((2, 2))).tolist() == [[1.0], [1.0]]


def test_people_count_once() -> None:
    x, y = numbers()
    groups = np.arange(len(x)) // 2
    model = GaussianNB(epsilon=5.0, delta=1e-6, bounds=(-1, 1), classes=[0, 1]).fit(x, y, groups=groups)
    assert model.class_count_.sum() == pytest.approx(5_000, rel=0.05)
    counted = CategoricalNB(epsilon=5.0, delta=1e-6, bounds=(-1, 1), classes=[0, 1]).fit(x, y, groups=groups)
    assert counted.class_count_.sum() == pytest.approx(5_000, rel=0.05)
    assert counted.score(x, y) > 0.7


@pytest.mark.parametrize("wrong", [[2], 3, [2, [1.0, 0.5]], [2, [np.nan]], [0, 2]])
def test_categories_are_checked(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="categories"):
        CategoricalNB(categories=wrong, classes=[0, 1]).fit(np.zeros((3, 2)), np.zeros(3, dtype=int))


def test_a_cut_is_where_most_are_right() -> None:
    table = np.zeros((CELLS, 2))
    table[:20, 0], table[20:, 1] = 100.0, 90.0
    assert _cut(table) == 20 / CELLS
    assert _cut(np.column_stack([np.ones(CELLS), np.zeros(CELLS)])) == 1.0
    assert _cut(np.column_stack([np.zeros(CELLS), np.ones(CELLS)])) == 0.0
    assert _cut(np.zeros((CELLS, 2))) == 0.5
    assert _cut(np.zeros((CELLS, 2)), expected=0.25) == 0.25
    # One more row two cells away moves a cut that is expected elsewhere if noise is small, and not if it is large.
    assert _cut(table, expected=22 / CELLS, deviation=0.0) == 20 / CELLS
    assert _cut(table, expected=22 / CELLS, deviation=1e6) == 22 / CELLS
    far = (np.arange(CELLS) + 0.5) / CELLS - 0.3
    share = 1 / (1 + np.exp(-10 * far))
    assert _slope(1e4 * np.column_stack([1 - share, share]), 0.3) == pytest.approx(10, rel=0.15)


def test_calibration_sees_rows_with_a_class_only() -> None:
    places = np.append(np.linspace(0, 1, 4_000), np.full(4_000, 0.9))
    codes = np.append((np.linspace(0, 1, 4_000) > 0.7).astype(int), np.full(4_000, -1))
    data = Features.of(places[:, None], Crowd(rows=8_000)).beside(codes.astype(np.float64))
    found = calibrate(data.x[0], data, tuition=(paid := Tuition.at(epsilon=5.0)), share=paid.left)
    assert found.cut == pytest.approx(0.7, abs=0.05)
    assert found.slope > 10
    assert (found.log_odds(np.array([0.2, 0.9])) > 0).tolist() == [False, True]


@pytest.mark.parametrize("kind", [str, object, bytes])
def test_a_label_that_is_not_shown_leaves_no_trace_of_its_length(kind: type) -> None:
    names = ["a", "b"] * 300 + ["nobody else is called like this"]
    y = np.array([name.encode() for name in names]) if kind is bytes else np.array(names, dtype=kind)
    x = np.zeros((len(y), 1))
    sure = GaussianNB(bounds=(0, 1), epsilon=10, delta=1e-6).fit(x, y)
    assert [len(one) for one in sure.classes_] == [1, 1]
    assert sure.classes_.dtype.itemsize == np.array(sure.classes_.tolist()).dtype.itemsize
    lost = GaussianNB(bounds=(0, 1), epsilon=1e-4, delta=1e-12).fit(x[-3:], y[-3:])
    assert lost.classes_.dtype.itemsize == np.zeros(1, dtype=sure.classes_.dtype.type).dtype.itemsize
