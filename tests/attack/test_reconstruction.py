"""Secret columns from answers about subsets: found where answers are exact or nearly so, not through the gate."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.attack.made_up import MadeUp
from hubbub.attack.reconstruction import (
    LEAST_SQUARES,
    LINEAR_PROGRAM,
    METHODS,
    Answers,
    exact,
    guess,
    noised,
    questions,
    reconstruction,
    rounded,
)
from hubbub.cli.lab.targets import subsets
from hubbub.errors import ParameterError

PEOPLE = 150
SECRET = MadeUp(3, "secret").bits(PEOPLE)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "answers",
    [exact(SECRET), rounded(SECRET, to=3), noised(SECRET, size=2)],
    ids=["exact", "rounded", "noised"],
)
def test_answers_that_are_too_good(method: str, answers: Answers) -> None:
    found = reconstruction(SECRET, answers, target="a naive target", methods=(method,))
    assert found.works
    assert found.numbers["found"] > 0.95


def test_noise_that_is_large_enough_stops_it() -> None:
    """Noise far beyond √n: fewer than 95% of 150 bits are right but with probability below 1e-6."""
    assert not reconstruction(SECRET, noised(SECRET, size=400), target="much noise").works


def test_through_the_gate() -> None:
    """Each bit is guessed about as well as by a coin; Hoeffding at 1e-6 for 150 coins is 0.5 + 0.215."""
    found = reconstruction(SECRET, subsets(SECRET.tolist(), epsilon=Fraction(1)), target="Hubbub", methods=METHODS)
    assert not found.works
    assert found.numbers["found"] < 0.5 + math.sqrt(math.log(2e6) / (2 * PEOPLE)) + 0.01


def test_nothing_beats_the_bound() -> None:
    """One question a person, all at ε = 1 together, is the best attack: e/(1+e) of the bits, ± Hoeffding at 1e-6."""
    people = 1000
    secret = MadeUp(4, "secret").bits(people)
    told = subsets(secret.tolist(), epsilon=Fraction(1))(np.eye(people, dtype=np.int8))
    right = float(((told > 0.5) == (secret == 1)).mean())
    margin = math.sqrt(math.log(1e6) / (2 * people))
    bound = math.e / (1 + math.e)
    assert bound - margin < right < bound + margin


def test_questions_are_made_again() -> None:
    asked = questions(30, count=40, seed=5)
    assert asked.shape == (40, 30)
    assert (asked == questions(30, count=40, seed=5)).all()
    assert (asked != questions(30, count=40, seed=6)).any()
    assert abs(asked.mean() - 0.5) < 0.1


def test_the_report_compares_with_the_commoner_bit() -> None:
    mostly = np.array([1] * 20 + [0] * 5)
    found = reconstruction(mostly, exact(mostly), target="exact answers", methods=(LEAST_SQUARES, LINEAR_PROGRAM))
    assert found.numbers["base"] == 0.8
    assert [row[0] for row in found.rows] == [LEAST_SQUARES, LINEAR_PROGRAM]
    with pytest.raises(ParameterError, match="method"):
        guess(np.eye(3), np.ones(3), method="luck")
