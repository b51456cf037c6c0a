"""Statistical queries: true within their error, sound whatever the function does, and never free."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from hubbub.errors import AccountingError, ParameterError
from hubbub.learn import StatisticalQueryOracle
from hubbub.privacy.filter import Budget
from hubbub.testing.replay import RecordingMeter, distance, replayed
from tests.learn.classes_made import blobs


def _above(row: Any, label: Any, *, cut: float) -> float:
    return 1.0 if row[0] > cut else -1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_means_are_within_their_error(delta: float) -> None:
    """Wrong at most one time in 20 for each question: more than 14 of 40 has a chance below 1e-6."""
    x, y = blobs(2000)
    oracle = StatisticalQueryOracle(x, y, epsilon=4.0, delta=delta, questions=40)
    wrong = 0
    for place in range(40):
        cut = (place - 20) / 25
        answer = oracle.ask(partial(_above, cut=cut))
        truth = float(np.where(x[:, 0] > cut, 1.0, -1.0).mean())
        wrong += abs(float(answer) - truth) > answer.error
    assert wrong <= 14
    assert answer.error < 0.2
    with pytest.raises(AccountingError):
        oracle.ask(lambda row, label: 0.0)


def test_functions_may_fail_and_say_anything() -> None:
    x = np.arange(20.0).reshape(-1, 1)

    def strange(row: Any, label: Any) -> Any:
        place = int(row[0])
        if place == 0:
            raise KeyError("no such person")
        return [math.nan, "many", None, [1, 2, 3], 1e300, -math.inf, np.inf][place % 7]

    oracle = StatisticalQueryOracle(x, epsilon=1000.0, questions=1)
    assert oracle.ask(strange).value == pytest.approx(3 / 20, abs=0.03)


def test_a_vector_is_one_question() -> None:
    x, y = blobs(3000)
    oracle = StatisticalQueryOracle(x, y, epsilon=2.0, delta=1e-6, questions=1)
    answer = oracle.ask(lambda row, label: row if label == 1 else 0 * row, width=2)
    truth = np.where((y == 1)[:, None], x, 0).mean(axis=0)
    assert np.abs(answer.value - truth).max() < 0.05
    assert oracle.left == 0


def test_questions_with_their_own_price() -> None:
    oracle = StatisticalQueryOracle(np.zeros((10, 1)), epsilon=1.0)
    with pytest.raises(ParameterError, match="questions"):
        oracle.ask(lambda row, label: 0.0)
    oracle.ask(lambda row, label: 0.0, epsilon=0.5)
    oracle.ask(lambda row, label: 0.0, epsilon=0.45)
    with pytest.raises(AccountingError):
        oracle.ask(lambda row, label: 0.0, epsilon=0.1)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 100)])
def test_one_person_moves_what_was_proven(delta: Fraction) -> None:
    """The Secrets of neighbours, by replay: a person with five rows, of which two count."""
    base, more = np.zeros((4, 2)), np.ones((5, 2))
    sides = []
    for x, who in ((base, [1, 2, 3, 4]), (np.vstack([base, more]), [1, 2, 3, 4, 9, 9, 9, 9, 9])):
        meter = RecordingMeter({"learning": Budget(epsilon=Fraction(10), delta=Fraction(1, 2))})
        with replayed():
            oracle = StatisticalQueryOracle(
                x, epsilon=1.0, delta=float(delta), questions=2, groups=who, max_rows=2, meter=meter
            )
            oracle.ask(lambda row, label: 5.0 if row[0] else 0.0)
            oracle.ask(lambda row, label: 9 * row, width=2)
        sides.append(meter.measurements)
    assert len(sides[0]) == len(sides[1]) == 3
    for near, far in zip(*sides, strict=True):
        assert near.mechanism == far.mechanism
        allowed = near.facts.sensitivity.in_norm(near.mechanism.needs.norm)
        assert allowed is not None
        assert allowed * Fraction(9, 10) < distance(near, far) <= allowed or delta == 0


def test_parameters_are_checked() -> None:
    with pytest.raises(ParameterError):
        StatisticalQueryOracle(np.zeros((3, 1)), [1, 2])
    with pytest.raises(ParameterError):
        StatisticalQueryOracle(np.zeros((3, 1)), questions=0)
    with pytest.raises(ParameterError, match="function"):
        StatisticalQueryOracle(np.zeros((3, 1)), questions=1).ask("mean")  # type: ignore[arg-type]
