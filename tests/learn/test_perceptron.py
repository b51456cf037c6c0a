"""The perceptron of the statistical-query model."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from hubbub.errors import ParameterError
from hubbub.learn import Perceptron
from tests.learn.classes_made import blobs


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_it_separates(delta: float) -> None:
    x, y = blobs()
    model = Perceptron(epsilon=3.0, delta=delta, bounds=(-1, 1), classes=[0, 1]).fit(x, y)
    assert model.score(x, y) > 0.95


def test_it_asks_as_often_as_was_said() -> None:
    x, y = blobs(100)
    few = Perceptron(rounds=3, bounds=(-1, 1), classes=[0, 1]).fit(x, y)
    assert [line.partition(" (")[0] for line in few.claim_.measured] == ["round 1", "round 2", "round 3"]
    with pytest.raises(ParameterError):
        Perceptron(rounds=0, bounds=(-1, 1), classes=[0, 1]).fit(x, y)


def test_three_classes_and_people() -> None:
    x, y = blobs(6000, centres=3)
    who = np.arange(6000) // 2
    model = Perceptron(epsilon=5.0, delta=1e-6, bounds=(-1, 1), classes=[0, 1, 2], max_rows=2).fit(x, y, groups=who)
    assert model.score(x, y) > 0.9


def test_more_budget_is_less_noise() -> None:
    x, y = blobs(300)
    stated = [
        float(
            Perceptron(epsilon=e, bounds=(-1, 1), classes=[0, 1])
            .fit(x, y)
            .claim_.excess.split("deviation ")[1]
            .split()[0]
        )
        for e in (0.1, 1.0)
    ]
    assert stated[0] == pytest.approx(10 * stated[1], rel=0.02)
