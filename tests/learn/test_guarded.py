"""Whatever goes wrong in a fit after its first charge is the one fixed error, and counts against whoever paid."""

import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import hubbub as hb
from hubbub import learn
from hubbub.engines.arrays.engine import Arrays
from hubbub.errors import BudgetExceeded, EngineError, Frozen
from hubbub.learn.bayes import bayes, categorical
from hubbub.learn.linear import linear_classifier as linear
from hubbub.learn.statistics import histograms as tally
from hubbub.ledger import Ledger, Marks
from tests.learn.test_nobody import ESTIMATORS

SECRET = "the row of somebody"
ACCOUNT = "learning"


class _Strange(BaseException):
    """What no rule about Exceptions catches."""


PROBLEMS = [ValueError(SECRET), MemoryError(SECRET), KeyError(SECRET), RecursionError(SECRET), _Strange(SECRET)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger", marks=Marks(tmp_path / "marks")) as opened:
        opened.open_account(ACCOUNT, hb.Budget(epsilon=Fraction(10**6), delta=Fraction(1, 2)))
        opened.grant(ACCOUNT, "ann", limit=hb.Budget(epsilon=Fraction(10**6), delta=Fraction(1, 4)))
        yield opened


def fitted(ledger: Ledger, name: str, log: list[str] | None = None, **more: Any) -> Any:
    chance = np.random.default_rng(2)
    x, y = chance.uniform(size=(40, 3)), chance.integers(0, 2, 40)
    told = None if log is None else log.append
    meter = hb.Meter.on(ledger, principal="ann", log=told)
    model = clone(ESTIMATORS[name]).set_params(meter=meter, account=ACCOUNT, epsilon=1.0, **more)
    return model.fit(x, y, groups=np.arange(40) // 2)


def failures(ledger: Ledger) -> dict[str, int]:
    return {one.principal: one.many for one in ledger.failures()}


def check(refused: Any) -> None:
    assert refused.type is EngineError
    assert refused.value.args == EngineError().args
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None


def raising(problem: BaseException) -> Any:
    def broken(*_: Any, **__: Any) -> Any:
        raise problem

    return broken


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: type(one).__name__)
def test_a_sum_that_fails_is_counted(ledger: Ledger, problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are made after they are paid for: the very first one too."""
    log: list[str] = []
    monkeypatch.setattr(Arrays, "_add_up", raising(problem))
    with pytest.raises(EngineError) as refused:
        fitted(ledger, "StandardScaler", log)
    check(refused)
    assert failures(ledger) == {"ann": 1}
    assert [entry.kind for entry in ledger.entries()][-2:] == ["charge", "failure"]
    assert log == [f"{type(problem).__name__}: {problem}"]
    ledger.verify()


BETWEEN: dict[str, tuple[Any, str]] = {
    "GaussianNB": (bayes._Bayes, "_score"),
    "CategoricalNB": (categorical.CategoricalNB, "_code"),
    "LogisticRegression, bought": (linear, "place_labels"),
    "KMeans, bought": (tally, "_tail"),
}


@pytest.mark.parametrize("name", BETWEEN)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: type(one).__name__)
def test_what_fails_between_two_measurements_is_counted_if_anything_was_paid(
    ledger: Ledger, name: str, problem: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*BETWEEN[name], raising(problem))
    log: list[str] = []
    with pytest.raises(EngineError) as refused:
        fitted(ledger, name, log, delta=1e-6)
    check(refused)
    kinds = [entry.kind for entry in ledger.entries()]
    assert failures(ledger) == ({"ann": 1} if "charge" in kinds else {})
    assert kinds.count("failure") == ("charge" in kinds)
    assert log == [f"{type(problem).__name__}: {problem}"]
    ledger.verify()


def test_who_has_failed_too_often_is_frozen(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Arrays, "_add_up", raising(ValueError(SECRET)))
        for _ in range(3):
            with pytest.raises(EngineError):
                fitted(ledger, "StandardScaler")
    with pytest.raises(Frozen):
        fitted(ledger, "StandardScaler")
    assert ledger.thaw(ACCOUNT, "ann") == 3
    assert fitted(ledger, "StandardScaler").claim_.epsilon == 1.0


def test_what_the_gate_refuses_is_no_failure(ledger: Ledger) -> None:
    ledger.grant(ACCOUNT, "ann", limit=hb.Budget(epsilon=Fraction(1, 2), delta=Fraction(1, 4)))
    log: list[str] = []
    with pytest.raises(BudgetExceeded):
        fitted(ledger, "LinearRegression", log)
    assert failures(ledger) == {}
    assert log == []


def test_arithmetic_says_nothing_whatever_the_caller_has_set() -> None:
    x = np.array([[1e308, -1e308], [np.nan, np.inf], [5e-324, 0.0]])
    for name, model in ESTIMATORS.items():
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            settings = {"categories": None} if name == "CategoricalNB" else {}
            clone(model).set_params(**settings).fit(x, [0, 1, 1], groups=[1, 2, 3])


def test_an_oracle_asks_after_the_charge(ledger: Ledger) -> None:
    meter = hb.Meter.on(ledger, principal="ann")
    rows = [[1.0], ["x"], [1.0, 2.0], [None], np.ma.masked]
    oracle = learn.StatisticalQueryOracle(rows, epsilon=50.0, questions=2, meter=meter, account=ACCOUNT)
    charges: list[int] = []

    def question(row: Any, label: Any) -> float:
        charges.append([entry.kind for entry in ledger.entries()].count("charge"))
        if row.shape != (1,):
            raise _Strange(SECRET)
        return float(row[0])

    assert abs(float(oracle.ask(question)) * oracle.rows - 1) < 1
    assert set(charges) == {2}
    assert failures(ledger) == {}
