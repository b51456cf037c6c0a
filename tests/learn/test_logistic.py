"""Logistic regression: what it learns, what it refuses, and that nothing about the rows makes it fail."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.pipeline import make_pipeline

from hubbub.errors import BudgetExceeded, ParameterError
from hubbub.gate.meter import Meter
from hubbub.learn import LogisticRegression, StandardScaler
from hubbub.learn.linear.gradients import Pulls
from hubbub.learn.linear.linear_classifier import Ball
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.tuition import Tuition
from hubbub.privacy.filter import Budget
from tests.learn.classes_made import blobs

PUBLIC: dict[str, Any] = {"bounds": (-1, 1), "classes": [0, 1]}


@pytest.mark.parametrize("solver", ["objective", "newton"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_two_classes_are_told_apart(solver: str, delta: float) -> None:
    x, y = blobs()
    model = LogisticRegression(epsilon=2.0, delta=delta, solver=solver, **PUBLIC).fit(x, y)
    assert model.score(x, y) > 0.97
    assert model.coef_.shape == (1, 2)
    chances = model.predict_proba(x)
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.array_equal(chances[:, 1] > 0.5, model.predict(x) == 1)
    assert np.allclose(np.exp(model.predict_log_proba(x)), chances)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_three_classes_share_one_release(delta: float) -> None:
    x, y = blobs(centres=3)
    model = LogisticRegression(epsilon=3.0, delta=delta, bounds=(-1, 1), classes=[0, 1, 2]).fit(x, y)
    assert model.score(x, y) > 0.95
    assert len(model.claim_.measured) == 1
    assert model.decision_function(x).shape == (len(x), 3)
    assert np.allclose(model.predict_proba(x).sum(axis=1), 1)


def owned(x: np.ndarray[Any, Any]) -> Features:
    return Features.of(x, Crowd(rows=len(x)))


def test_coefficients_are_for_values_as_they_are() -> None:
    """A range without 0 is centred and one with 0 only scaled; decisions are linear in the columns."""
    ball = Ball(low=np.array([10.0, 0.0]), high=np.array([30.0, 4.0]), norm=math.sqrt(2), intercept=True)
    x = np.array([[10.0, 4.0], [25.0, 1.0], [30.0, 0.0]])
    theta = np.array([[0.3, 1.0], [-0.7, 2.0], [0.2, 3.0]])
    slopes, start = ball.outside(theta)
    assert np.allclose(ball.rows(owned(x)) @ theta, x @ slopes.T + start, atol=1e-5)
    assert ball.middle.tolist() == [20.0, 0.0]
    assert ball.unit.tolist() == [10.0, 4.0]


def test_rows_are_in_the_ball_whatever_they_hold() -> None:
    wild = np.array([[math.nan, math.inf], [-math.inf, 1e308], [1e-320, -5.0], [1.0, 1.0]])
    for norm in (0.5, 1.0, 9.0):
        for intercept in (False, True):
            ball = Ball(low=np.full(2, -1.0), high=np.full(2, 1.0), norm=norm, intercept=intercept)
            steps = ball.rows(owned(wild)) * 2.0**20
            assert np.array_equal(steps, np.rint(steps))
            assert ((steps**2).sum(axis=1) <= 2.0**40).all()


def test_a_person_pulls_for_their_rows_at_most() -> None:
    x = np.full((7, 2), -0.7)
    groups = Crowd.of([5] * 7, rows=7, most=2)
    ball = Ball(low=np.full(2, -1.0), high=np.full(2, 1.0), norm=1.0, intercept=True)
    tuition = Tuition.at(epsilon=1, delta=Fraction(1, 10**6))
    pulls = Pulls(features=ball.rows(owned(x)), signs=np.ones((7, 1)), crowd=groups, tuition=tuition)
    total = pulls.total(lambda margins: np.full(margins.shape, -7.0), np.zeros((3, 1)))
    size = int((total.astype(object) ** 2).sum())
    assert pulls.reach.l2_squared is not None
    assert Fraction(9, 10) * pulls.reach.l2_squared < size <= pulls.reach.l2_squared
    assert pulls.reach.l1 is not None
    assert int(np.abs(total).sum()) <= pulls.reach.l1


def test_people_cost_more_noise_than_rows() -> None:
    x, y = blobs(400)
    who = np.arange(400) // 4
    rows = LogisticRegression(epsilon=1.0, delta=1e-6, **PUBLIC).fit(x, y)
    people = LogisticRegression(epsilon=1.0, delta=1e-6, max_rows=4, **PUBLIC).fit(x, y, groups=who)
    assert "row" in rows.claim_.unit
    assert "at most 4 rows" in people.claim_.unit


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_nothing_about_the_rows_is_an_error(rows: int) -> None:
    wild = np.array([[math.nan, math.inf]] * rows)
    for y in (np.zeros(rows), np.full(rows, 7.0), np.full(rows, math.nan)):
        model = LogisticRegression(**PUBLIC).fit(wild, y)
        assert np.isfinite(model.decision_function(wild)).all()
        assert set(model.predict(wild)) <= {0, 1}


def test_one_known_class_is_an_answer() -> None:
    x, y = blobs(50)
    model = LogisticRegression(bounds=(-1, 1), classes=["only"]).fit(x, y)
    assert set(model.predict(x)) == {"only"}
    assert model.claim_.measured == ()
    assert model.predict_proba(x).shape == (50, 1)


def test_labels_that_are_no_class_count_nowhere() -> None:
    x, y = blobs(2000)
    strange = np.where(np.arange(2000) % 2 == 0, y, 9)
    model = LogisticRegression(epsilon=5.0, **PUBLIC).fit(x, strange)
    assert model.score(x, y) > 0.95


def test_a_shared_account_is_charged_in_its_own_measure() -> None:
    x, y = blobs(500)
    meter = Meter({"learning": Budget(epsilon=Fraction(1), delta=Fraction(1, 10**6))})
    model = LogisticRegression(epsilon=0.9, delta=1e-6, meter=meter, **PUBLIC).fit(x, y)
    assert len(model.claim_.measured) == 1
    with pytest.raises(BudgetExceeded):
        LogisticRegression(epsilon=0.9, delta=1e-6, meter=meter, **PUBLIC).fit(x, y)
    pure = Meter({"learning": Budget(epsilon=Fraction(1))})
    LogisticRegression(epsilon=1.0, meter=pure, **PUBLIC).fit(x, y)
    with pytest.raises(BudgetExceeded):
        LogisticRegression(epsilon=0.01, meter=pure, **PUBLIC).fit(x, y)


def test_what_is_bought_comes_from_the_same_price() -> None:
    x, y = blobs(4000)
    model = LogisticRegression(epsilon=3.0, delta=1e-6).fit(x, y)
    bought = [line.partition(" (")[0] for line in model.claim_.measured]
    assert bought[-2:] == ["classes", "coefficients"]
    assert all(line.startswith("bounds") for line in bought[:-2])
    assert model.score(x, y) > 0.9


def test_parameters_are_checked() -> None:
    x, y = blobs(20)
    for wrong in ({"solver": "magic"}, {"C": 0}, {"max_norm": -1}, {"epsilon": 0}, {"random_state": 3}, {"delta": 2}):
        with pytest.raises(ParameterError):
            LogisticRegression(**{**PUBLIC, **wrong}).fit(x, y)
    meter = Meter({"learning": Budget(epsilon=Fraction(9), delta=Fraction(1, 100))})
    with pytest.raises(ParameterError, match="solver"):
        LogisticRegression(bounds=(-1, 1), classes=[0, 1, 2], delta=1e-3, solver="objective", meter=meter).fit(x, y)


def test_a_ridge_of_ones_own() -> None:
    x, y = blobs(500)
    stiff = LogisticRegression(epsilon=5.0, C=1e-3, **PUBLIC).fit(x, y)
    free = LogisticRegression(epsilon=5.0, **PUBLIC).fit(x, y)
    assert np.linalg.norm(stiff.coef_) < np.linalg.norm(free.coef_) / 3


def test_in_a_pipeline() -> None:
    x, y = blobs()
    both = make_pipeline(
        StandardScaler(epsilon=1.0, bounds=(-1, 1)), LogisticRegression(epsilon=2.0, bounds=(-3, 3), classes=[0, 1])
    ).fit(x, y)
    assert both.score(x, y) > 0.9
