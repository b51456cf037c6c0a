"""The weight of what one person alone has."""

import numpy as np
import pytest

from hubbub.attack.green_hair import green_hair, perceptron, town
from hubbub.attack.success_rate import against_guessing, most_allowed
from hubbub.errors import ParameterError


def test_the_perceptron_tells() -> None:
    rows, signs = town(people=60)
    found = green_hair(perceptron, rows, signs, target="the perceptron", repeats=10)
    assert found.works
    assert found.numbers == {"right": 1.0, "p": 0.5**20, "runs": 20}
    once = green_hair(perceptron, rows, signs, target="the perceptron", repeats=9)
    assert once.numbers["p"] == 0.5**18
    assert once.is_undecided, "2^-18 is more than a millionth"


def test_a_weight_of_zero_tells_half() -> None:
    rows, signs = town(people=20)
    found = green_hair(lambda x, y: np.zeros(x.shape[1]), rows, signs, target="nothing")
    assert found.numbers["right"] == 0.5
    assert not found.works


def test_a_weight_of_the_wrong_sign_is_wrong() -> None:
    rows, signs = town(people=20)
    found = green_hair(lambda x, y: np.full(x.shape[1], -float(y[0])), rows, signs, target="a liar")
    assert found.numbers["right"] == 0.0


def test_only_one_person_may_have_it() -> None:
    rows, signs = town(people=20)
    rows[3, -1] = 1
    with pytest.raises(ParameterError, match="column"):
        green_hair(perceptron, rows, signs, target="the perceptron")
    with pytest.raises(ParameterError, match="column"):
        green_hair(perceptron, np.zeros((5, 2)), signs[:5], target="the perceptron")


def test_the_private_one_does_not() -> None:
    """Nobody guesses right in more than e²/(1+e²) = 88.1% on average, as ill is one row less than well, and another one
    more: of 120 runs, more than that is beyond 1e-6 of chance."""
    pytest.importorskip("sklearn", reason="The private perceptron is one of scikit-learn's kind.")
    from fractions import Fraction

    from hubbub.cli.lab.targets import private_perceptron

    rows, signs = town(people=200)
    learn = private_perceptron(epsilon=Fraction(1), low=[-1, -1, -1, 0], high=[1, 1, 1, 1])
    found = green_hair(learn, rows, signs, target="ours", repeats=60)
    assert found.rate is not None
    allowed = most_allowed(0.5, epsilon=2)
    assert not against_guessing(found.rate.right, trials=120, chance=allowed).is_better
