"""Noise that is drawn afresh averages out; a stored answer and a budget do not."""

from collections.abc import Iterator
from fractions import Fraction

import pytest

from hubbub.attack.gateway.averaging import averaging, fresh_noise
from hubbub.cli.lab.targets import ask_repeatedly
from hubbub.errors import BudgetExceeded, ParameterError


def test_fresh_noise_is_gone() -> None:
    found = averaging(fresh_noise(412, scale=10), truth=412, times=20_000, target="fresh noise")
    assert found.works
    assert abs(found.numbers["mean"] - 412) < 0.5
    assert found.rows[-1][0] == "20,000"


def test_too_few_answers_are_not_enough() -> None:
    """A mean that is right by luck does not count: its standard error does not tell it from its neighbours."""
    answers = iter([402.0, 422.0] * 10)
    found = averaging(lambda _: next(answers), truth=412, times=20, target="two answers")
    assert found.numbers["mean"] == 412
    assert not found.works


def test_sure_and_wrong_is_not_right() -> None:
    answers = iter([9.99, 10.01] * 500)
    assert not averaging(lambda _: next(answers), truth=12, times=1000, target="biased").works


def test_one_answer_tells_nothing_new_even_where_it_is_right() -> None:
    found = averaging(lambda _: 412.0, truth=412, times=50, target="stored")
    assert not found.works
    assert found.numbers["different"] == 1


def test_a_target_that_refuses() -> None:
    def answers() -> Iterator[float]:
        yield 1.0
        raise BudgetExceeded("spent")

    held = answers()
    found = averaging(lambda _: next(held), truth=1, times=10, target="a budget")
    assert found.numbers["answers"] == 1
    assert "budget-exceeded" in found.notes[0]

    def refuse(_: int) -> float:
        raise BudgetExceeded("spent")

    assert averaging(refuse, truth=1, times=10, target="nothing").verdict == "Every question was refused."
    with pytest.raises(ParameterError, match="times"):
        averaging(refuse, truth=1, times=1, target="once")


def test_the_same_question_has_one_answer() -> None:
    with ask_repeatedly(400, epsilon=Fraction(1), each=Fraction(1, 2), reworded=False) as ask:
        found = averaging(ask, truth=400, times=30, target="Hubbub")
    assert found.numbers == {"answers": 30, "different": 1, "mean": found.numbers["mean"]}
    assert not found.works


def test_other_words_are_paid_until_nothing_is_left() -> None:
    with ask_repeatedly(400, epsilon=Fraction(1), each=Fraction(1, 8), reworded=True) as ask:
        found = averaging(ask, truth=400, times=30, target="Hubbub")
    assert found.numbers["answers"] == 8
    assert "budget-exceeded" in found.notes[0]
    assert not found.works
