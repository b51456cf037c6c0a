"""Private estimators among scikit-learn's tools: pipelines, clones, searches, names, and one account for all."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from hubbub import learn
from hubbub.errors import BudgetExceeded, ParameterError, UnknownAccount
from hubbub.gate.meter import Meter
from hubbub.learn import PCA, Claim, LogisticRegression, Perceptron, QuantileTransformer, Ridge, StandardScaler
from hubbub.privacy.filter import Budget

ESTIMATORS = [
    kind for name in learn.__all__ if isinstance(kind := getattr(learn, name), type) and issubclass(kind, BaseEstimator)
]
_RNG = np.random.default_rng(4)
Y = _RNG.integers(2, size=3000)
X = _RNG.normal(loc=0.8 * (0.5 - Y[:, None]), scale=0.6, size=(3000, 3))
PUBLIC: dict[str, Any] = {"bounds": (-3, 3), "classes": [0, 1]}


def account(epsilon: Any, delta: Any = 0) -> Meter:
    return Meter({"learning": Budget(epsilon=Fraction(epsilon), delta=Fraction(delta))})


def test_a_pipeline_learns_clones_and_names() -> None:
    pipe = make_pipeline(StandardScaler(epsilon=20.0, bounds=(-3, 3)), LogisticRegression(epsilon=20.0, **PUBLIC))
    assert pipe.fit(X, Y).score(X, Y) > 0.65
    assert pipe[:-1].get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c"]
    copy = clone(pipe)
    assert copy.get_params()["logisticregression__epsilon"] == 20.0
    assert not hasattr(copy[0], "mean_")
    copy.set_params(standardscaler__epsilon=0.5)
    assert copy[0].epsilon == 0.5
    assert pipe[0].epsilon == 20.0


def test_names_of_columns_are_kept_and_checked() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = PCA(2, bounds=(-3, 3)).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.get_feature_names_out().tolist() == ["pca0", "pca1"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[["c", "a", "b"]])


def test_one_account_pays_for_several_fits_until_it_is_spent() -> None:
    meter = account(2)
    StandardScaler(meter=meter, bounds=(-3, 3)).fit(X)
    model = LogisticRegression(meter=meter, epsilon=0.75, **PUBLIC).fit(X, Y)
    assert model.claim_.epsilon == 0.75
    left = Ridge(meter=meter, epsilon=0.5, bounds=(-3, 3), y_bounds=(0, 1))
    with pytest.raises(BudgetExceeded, match="grant"):
        left.fit(X, Y)
    assert not hasattr(left, "coef_")
    assert 1.7499 < meter.spent("learning").epsilon_at(Fraction(0)) <= 2  # what it had measured before is paid


def test_with_a_delta_losses_of_several_fits_add_up_in_zcdp() -> None:
    meter = account(1, Fraction(1, 10**5))
    model = Perceptron(meter=meter, epsilon=0.5, delta=1e-6, **PUBLIC)
    for _ in range(4):  # twice the budget if ε were added
        model.fit(X, Y)
    with pytest.raises(BudgetExceeded):
        model.fit(X, Y)


def test_a_clone_pays_from_the_same_account() -> None:
    """A budget that was copied would be one out of nothing: a search pays for every fit."""
    meter = account(10)
    model = LogisticRegression(meter=meter, epsilon=1.0, **PUBLIC)
    assert clone(model).meter is meter
    GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, Y)  # 2 × 2 fits, and one with the best
    assert 4.9999 < meter.spent("learning").epsilon_at(Fraction(0)) <= 5


def test_an_account_has_to_be_there() -> None:
    with pytest.raises(UnknownAccount, match="research"):
        StandardScaler(meter=account(1), account="research", bounds=(-3, 3)).fit(X)
    with pytest.raises(ParameterError, match="Meter"):
        StandardScaler(meter=1.0, bounds=(-3, 3)).fit(X)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_noise_that_can_be_repeated_is_refused(kind: Any) -> None:
    with pytest.raises(ParameterError, match=r"random_state must be None.*hubbub\.testing"):
        kind(random_state=0, delta=1e-6).fit(X, Y)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_price_is_in_the_repr_and_the_claim(kind: Any) -> None:
    assert repr(kind()) == f"{kind.__name__}(epsilon=1.0)"
    assert "epsilon=0.5" in repr(kind(epsilon=0.5, max_rows=2))
    claim = kind(epsilon=0.5, delta=1e-6, max_rows=2).fit(X, Y, groups=np.arange(len(X)) // 3).claim_
    said = str(claim)
    assert said.startswith("ε = 0.5, δ = 1e-06 for each group, which counts for at most 2 rows; measured: ")
    assert "bounds, stage 1 … 3 (each Gaussian, ρ = " in said
    assert claim.excess
    assert said.endswith(claim.excess)


def test_a_claim_says_runs_of_measurements_once() -> None:
    said = str(Claim(
        epsilon=1.0, delta=0.0, unit="row", excess="",
        measured=("sums 1 (A, ε = 1)", "sums 2 (A, ε = 1)", "sums 3 (A, ε = 2)", "count (A, ε = 2)"),
    ))  # fmt: skip
    assert said == "ε = 1 for each row; measured: sums 1 … 2 (each A, ε = 1), sums 3 (A, ε = 2), count (A, ε = 2)."


def test_quantiles_err_by_about_what_is_said() -> None:
    rows = np.random.default_rng(0).normal(size=(20_000, 1))
    model = QuantileTransformer(epsilon=1.0, bounds=(-5, 5)).fit(rows)
    usual = float(model.claim_.excess.split("about ")[1].split()[0])
    ranks = np.searchsorted(np.sort(rows[:, 0]), model.quantiles_[1:-1, 0])
    off = np.sqrt(np.mean((ranks - model.references_[1:-1] * 20_000) ** 2))
    # The root of the mean of 31 squares: a factor of 5 is far beyond chance (below 1e-6).
    assert usual / 5 < off < 5 * usual
