"""Errors and the clock: doors of the naive gateway that Hubbub does not have. Times are those of a clock made up."""

from fractions import Fraction

import pytest

from hubbub.attack.gateway.naive_gateway import NaiveGateway
from hubbub.attack.gateway.oracles import FAILING, HARD_MATCH, SLOW, Suspects, error_oracle, suspects, timing_oracle
from hubbub.cli.lab.targets import clinic
from hubbub.errors import ParameterError

PEOPLE = 40
"""Enough that what tells all of them is not luck."""


class Clock:
    """Stands still unless somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class TestErrors:
    def test_the_naive_gateway_tells(self) -> None:
        who = suspects(people=PEOPLE)
        with NaiveGateway(who.truth) as gateway:
            found = error_oracle(gateway.ask, who, target="naive")
        assert found.works
        assert found.numbers["read"] == 1.0
        told = {row[0]: row[1] for row in found.rows}
        assert told["a cast"] == told["a raised error"] == told["an overflow"] == "both"

    def test_hubbub_does_not(self) -> None:
        who = suspects(people=PEOPLE)
        with clinic(who.truth, epsilon=Fraction(1), questions=PEOPLE * len(FAILING)) as ask:
            found = error_oracle(ask, who, target="Hubbub")
        assert not found.works
        assert not found.is_undecided
        assert found.rate is None
        assert {row[1] for row in found.rows} == {"always", "never"}
        assert "it tells nothing" in found.verdict

    def test_failing_at_the_wrong_people_tells_nothing(self) -> None:
        who = suspects(people=PEOPLE)
        asked = iter(range(PEOPLE))

        def ask(_: str) -> None:
            if next(asked) % 2:
                raise ValueError

        found = error_oracle(ask, who, target="a dice", ways={"a cast": FAILING["a cast"]})
        assert not found.works


class TestTiming:
    def test_a_slow_answer_tells(self) -> None:
        who, clock = suspects(people=PEOPLE), Clock()
        true = {question for turn in (1, 2, 3) for question in self.about(who, turn)}

        def ask(question: str) -> None:
            clock.now += 0.05 if question in true else 0.001

        found = timing_oracle(ask, who, target="slow", repeats=3, clock=clock)
        assert found.works
        assert found.numbers["read"] == found.numbers["order"] == 1.0

    def test_the_same_time_tells_nothing(self) -> None:
        who, clock = suspects(people=PEOPLE), Clock()

        def ask(_: str) -> None:
            clock.now += 0.01

        found = timing_oracle(ask, who, target="steady", repeats=1, clock=clock)
        assert not found.works
        assert 0.2 <= found.numbers["order"] <= 0.8  # sums of floats differ in the last bit

    def test_refusals_are_counted(self) -> None:
        who = suspects(people=PEOPLE)
        with clinic(who.truth, epsilon=Fraction(1), questions=10 * PEOPLE) as ask:
            refused = timing_oracle(ask, who, target="Hubbub", repeats=1)
            answered = timing_oracle(ask, who, target="Hubbub", repeats=1, template=HARD_MATCH)
        assert refused.numbers["refused"] == 1.0
        assert answered.numbers["refused"] == 0.0

    def test_the_naive_gateway_answers_it(self) -> None:
        who = suspects(people=4)
        with NaiveGateway(who.truth) as gateway:
            found = timing_oracle(gateway.ask, who, target="naive", repeats=1)
        assert found.numbers["refused"] == 0.0

    @staticmethod
    def about(who: Suspects, turn: int) -> list[str]:
        asked = who.questions(SLOW, turn=turn)
        return [question for question, truth in zip(asked, who.truth, strict=True) if truth]


def test_both_kinds_of_people_are_needed() -> None:
    with pytest.raises(ParameterError, match="truth"):
        Suspects(table="t", persons=("a", "b"), secret="s", truth=(True, True))


def test_the_noise_of_the_naive_gateway_is_there() -> None:
    with NaiveGateway([0, 1, 1]) as gateway:
        told = [gateway.ask("SELECT count(*) FROM people WHERE ill = 1") for _ in range(20)]
    assert len(set(told)) == 20
    assert abs(sum(told) / 20 - 2) < 4
