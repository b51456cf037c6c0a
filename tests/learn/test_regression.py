"""Regression from noisy sums: right where the budget is ample, sane where it is not."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.linear_model import LinearRegression as Plain
from sklearn.linear_model import Ridge as PlainRidge

from hubbub.errors import ParameterError
from hubbub.gate.meter import Meter
from hubbub.learn import LinearRegression, Ridge
from hubbub.learn.linear.regression import Solver
from hubbub.learn.statistics.moments import GramMatrix
from hubbub.privacy.filter import Budget

Array = np.ndarray[Any, Any]
BOUNDS: dict[str, Any] = {"bounds": (-1, 1), "y_bounds": (-4, 4)}


def made(rows: int, *, noise: float = 0.3, seed: int = 0) -> tuple[Array, Array]:
    chance = np.random.default_rng(seed)
    x = chance.uniform(-1, 1, size=(rows, 3))
    return x, 0.5 + x @ np.array([1.0, -0.5, 0.25]) + chance.normal(0, noise, size=rows)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_an_ample_budget_gives_least_squares(delta: float) -> None:
    x, y = made(20_000)
    model = LinearRegression(epsilon=200.0, delta=delta, **BOUNDS).fit(x, y)
    plain = Plain().fit(x, y)
    # Rows are shortened, which is a weighting: the estimates differ by sampling error, 0.004 a coefficient.
    assert model.coef_ == pytest.approx(plain.coef_, abs=0.03)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=0.03)
    assert model.score(x, y) > plain.score(x, y) - 0.002
    assert "products" in str(model.claim_)


def test_one_epsilon_is_enough_for_many_rows() -> None:
    x, y = made(20_000)
    assert (
        LinearRegression(epsilon=1.0, delta=1e-6, **BOUNDS).fit(x, y).score(x, y) > Plain().fit(x, y).score(x, y) - 0.02
    )
    assert LinearRegression(epsilon=1.0, delta=1e-6).fit(x, y).score(x, y) > 0.6  # bounds bought too


def test_small_residuals_are_worth_a_round_of_their_own() -> None:
    """Without the round on residuals the error is about 1% of the variance here, with it a tenth of that."""
    x, y = made(20_000, noise=0.01)
    assert LinearRegression(epsilon=1.0, delta=1e-6, **BOUNDS).fit(x, y).score(x, y) > 0.997


def test_without_an_intercept() -> None:
    x, y = made(20_000)
    model = LinearRegression(fit_intercept=False, epsilon=200.0, delta=1e-6, **BOUNDS).fit(x, y - 0.5)
    assert model.intercept_ == 0.0
    assert model.coef_ == pytest.approx([1.0, -0.5, 0.25], abs=0.03)
    away = LinearRegression(fit_intercept=False, epsilon=200.0, delta=1e-6, bounds=(0, 2), y_bounds=(-4, 4)).fit(
        x + 1, y
    )
    plain = Plain(fit_intercept=False).fit(x + 1, y)
    assert away.coef_ == pytest.approx(plain.coef_, abs=0.1)


def test_ridge_penalises_as_scikit_learn_does() -> None:
    x, y = made(3_000)
    for alpha in (500.0, 5_000.0):
        model = Ridge(alpha=alpha, epsilon=500.0, delta=1e-6, **BOUNDS).fit(x, y)
        plain = PlainRidge(alpha=alpha).fit(x, y)
        assert model.coef_ == pytest.approx(plain.coef_, rel=0.2)
    with pytest.raises(ParameterError, match="alpha"):
        Ridge(alpha=-1.0, **BOUNDS).fit(x, y)


def test_collinear_columns_and_bad_values_do_no_harm() -> None:
    x, y = made(10_000)
    x = np.column_stack([x, x[:, 0], np.full(len(x), 0.3)])
    x[::50, 1], x[7, 2], y[::70], y[3] = np.nan, np.inf, np.nan, -np.inf
    model = LinearRegression(epsilon=1.0, delta=1e-6, **BOUNDS).fit(x, y)
    known = np.isfinite(y)
    assert model.score(x[known], y[known]) > 0.6
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_few_rows_give_a_sane_answer(rows: int) -> None:
    x, y = made(rows)
    for model in (LinearRegression(epsilon=0.1), Ridge(epsilon=0.1, delta=1e-6, **BOUNDS)):
        guess = model.fit(x, y).predict(x)
        assert guess.shape == (rows,)
        assert (np.abs(guess) <= max(abs(model.low_[-1]), abs(model.high_[-1]))).all()


def test_predictions_stay_within_the_bounds() -> None:
    x, y = made(20_000)
    model = LinearRegression(epsilon=50.0, delta=1e-6, bounds=(-1, 1), y_bounds=(0, 1)).fit(x, y)
    guess = model.predict(np.array([[100.0, -100.0, 100.0], [-100.0, 100.0, -100.0], [np.nan, np.inf, 0.0]]))
    assert guess[:2].tolist() == [1.0, 0.0]
    assert 0 <= guess[2] <= 1


def test_people_count_for_their_rows_and_no_more() -> None:
    x, y = made(20_000)
    groups = np.arange(len(x)) // 4
    model = LinearRegression(epsilon=5.0, delta=1e-6, max_rows=2, **BOUNDS).fit(x, y, groups=groups)
    assert model.score(x, y) > 0.7
    assert "at most 2 rows" in str(model.claim_)
    # One person with half of all rows, and those wrong, counts as one.
    wrong = np.where(np.arange(len(x)) < 10_000, 0, groups)
    lied = np.where(wrong == 0, -4.0, y)
    assert LinearRegression(epsilon=5.0, delta=1e-6, **BOUNDS).fit(x, lied, groups=wrong).score(x, y) > 0.6


def test_what_is_charged_is_what_is_claimed() -> None:
    x, y = made(50)
    for delta in (0.0, 1e-6):
        meter = Meter({"study": Budget(epsilon=Fraction(1), delta=Fraction(delta))})
        model = LinearRegression(epsilon=1.0, delta=delta, meter=meter, account="study").fit(x, y)
        spent: Any = meter.spent("study")
        assert 0.9 < float(spent.epsilon) <= 1.0
        assert model.claim_.epsilon == 1.0


def test_conventions() -> None:
    model = Ridge(alpha=2.0, epsilon=0.5)
    assert clone(model).get_params() == model.get_params()
    assert "epsilon=0.5" in repr(model)
    assert "epsilon=1.0" in repr(LinearRegression())
    with pytest.raises(ParameterError, match="random_state"):
        LinearRegression(random_state=1).fit(*made(10))
    with pytest.raises(ValueError, match="y must be one value for each row"):
        LinearRegression().fit(made(10)[0], made(9)[1])


def test_a_solver_doubts_what_noise_explains() -> None:
    found = GramMatrix(matrix=np.diag([100.0, 4.0, 0.0]), beside=1.0, on_diagonal=1.4)
    solver = Solver.of(found, width=3)
    ridge = np.sqrt(3)
    assert np.sort(solver.values) == pytest.approx([ridge, 4 + ridge, 100 + ridge])
    assert solver.solve(np.array([50.0, 0.0, 0.0]), noise=0.0) == pytest.approx([50 / (100 + ridge), 0, 0])
    doubted = solver.solve(np.array([50.0, 0.0, 0.0]), noise=1.0)
    believed = 1 - (1 / ridge + 1 / (4 + ridge) + 1 / (100 + ridge)) / (2500 / (100 + ridge))
    assert doubted == pytest.approx([50 / (100 + ridge) * believed, 0, 0])
    assert solver.solve(np.array([1.0, 1.0, 1.0]), noise=10.0).tolist() == [0, 0, 0]
    assert solver.solve(np.zeros(3), noise=0.0).tolist() == [0, 0, 0]
    assert Solver.of(found, width=3, times=2.0).values.min() == pytest.approx(2 * ridge)
    assert Solver.of(found, width=3, penalty=1.0).values.max() == pytest.approx(101 + ridge)
