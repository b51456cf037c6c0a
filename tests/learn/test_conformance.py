"""scikit-learn's own checks of every estimator, with few exceptions, each for a reason.

The price is high, so that what is learned is good enough for checks of accuracy: conventions are tested here. The
checks set a ``random_state``, which is refused unless noise comes from a test.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from hubbub import learn
from hubbub.testing.replay import replayed

_LOUD = {"epsilon": 1e4, "delta": 1e-2}
_KINDS = [kind for name in learn.__all__ if isinstance(kind := getattr(learn, name), type)]
ESTIMATORS = [kind(**_LOUD) for kind in _KINDS if issubclass(kind, BaseEstimator)]

NO_ESTIMATORS = {"Answer", "Claim", "StatisticalQueryOracle"}

_TOLD = "an error because of what the rows hold would tell it"
EXPECTED = {
    "check_clustering": "it wants labels_, which are exact: predict gives them to whoever has the rows",
    "check_fit_idempotent": "a second fit is a second draw of noise, and costs as much again",
    "check_classifiers_regression_target": f"labels that are no class count nowhere: {_TOLD}",
    "check_estimators_empty_data_messages": f"a table without rows is one to learn from: {_TOLD}",
    "check_supervised_y_no_nan": f"a label that is no number counts nowhere, or is clipped: {_TOLD}",
}
"""Checks that want an error because of data, or the same answer twice."""
OF_REGRESSORS = dict.fromkeys(
    ("check_regressor_data_not_an_array", "check_supervised_y_2d", "check_regressors_int"),
    "it compares the numbers of two fits, which are two draws of noise",
)


OF_GAUSSIAN_BAYES = {
    "check_classifier_data_not_an_array": "it compares the labels of two fits, and one of its rows lies where they part"
}


def _expected(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, learn.GaussianNB):
        return EXPECTED | OF_GAUSSIAN_BAYES
    return EXPECTED | OF_REGRESSORS if is_regressor(estimator) else EXPECTED


@pytest.fixture(autouse=True)
def _replayed() -> Iterator[None]:
    with replayed():
        yield


def test_all_of_them_are_here() -> None:
    assert {type(one).__name__ for one in ESTIMATORS} == set(learn.__all__) - NO_ESTIMATORS
    assert len(ESTIMATORS) == 12


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=_expected)  # type: ignore[untyped-decorator]
def test_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_the_price_is_shown(estimator: Any) -> None:
    assert "epsilon=" in repr(type(estimator)())
    assert type(estimator)().epsilon == 1.0
