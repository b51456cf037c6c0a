"""Replay of questions about distances: an answer with its local sensitivities moves by rows, not by its own size."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

import hubbub as hb
from hubbub.mechanisms import Price, ProposedQuantile, SmoothQuantile, SmoothSensitivity, StableMode
from hubbub.testing import differences, trace
from hubbub.testing.replay import _rows_apart

ACCOUNTS = {"town": hb.Budget(epsilon=Fraction(9), delta=Fraction(1, 10))}
BOUNDS: dict[str, Any] = {"bounds": (Fraction(0), Fraction(100)), "grid": Fraction(1)}
PEOPLE = [31, 47, 47, 52, 68, 19, 33]
ONE = Fraction(1)


def asked(mechanism: Any, sensitivity: hb.Sensitivity, of: Callable[[Sequence[int]], Any]) -> Callable[..., Any]:
    facts = hb.Facts(account="town", sensitivity=sensitivity)

    def question(people: Sequence[int]) -> Callable[[hb.Meter], Any]:
        return lambda meter: meter.measure(mechanism, hb.Secret(of(people), facts))

    return question


def held(people: Sequence[int]) -> dict[str, int]:
    return {str(age): list(people).count(age) for age in people}


QUESTIONS = {
    "median": asked(SmoothQuantile(epsilon=ONE, **BOUNDS), hb.Sensitivity(rows=1), list),
    "proposed": asked(
        ProposedQuantile(epsilon=ONE, delta=Fraction(1, 100), proposed=Fraction(99), **BOUNDS),
        hb.Sensitivity(rows=1),
        list,
    ),
    "mode": asked(StableMode(epsilon=ONE, delta=Fraction(1, 100)), hb.Sensitivity(l0=1, linf=ONE), held),
    "price": asked(Price(epsilon=ONE, prices=(Fraction(30), Fraction(50))), hb.Sensitivity(rows=1), list),
}


def compare(question: Callable[..., Any], people: Sequence[int], neighbor: Sequence[int]) -> list[str]:
    one, other = (trace(question(side), accounts=ACCOUNTS, seed=5) for side in (people, neighbor))
    return differences(one, other)


@pytest.mark.parametrize("name", QUESTIONS)
def test_sound_questions_show_no_difference(name: str) -> None:
    for other in ([*PEOPLE, 47], PEOPLE[1:]):
        found = compare(QUESTIONS[name], PEOPLE, other)
        assert [sentence for sentence in found if not sentence.startswith("shape")] == []


def test_local_sensitivities_that_move_further_than_declared_are_seen() -> None:
    def twice(people: Sequence[int]) -> tuple[int, list[int]]:
        return 10 * len(people), [3] * 5

    mechanism = SmoothSensitivity(epsilon=ONE, distances=5, **BOUNDS)
    question = asked(mechanism, hb.Sensitivity(local=1), twice)
    assert any("in local, declared 1" in sentence for sentence in compare(question, PEOPLE, PEOPLE[1:]))
    steady = asked(mechanism, hb.Sensitivity(local=1), lambda people: (3 * len(people), [3] * 5))
    assert compare(steady, PEOPLE, PEOPLE[1:]) == []


def test_rows_apart() -> None:
    assert _rows_apart((5, [1, 2]), (5, [1, 2])) == 0
    assert _rows_apart((5, [1, 2, 3]), (6, [2, 3, 4])) == 1
    assert _rows_apart((5, [1, 2, 3]), (7, [1, 2, 3])) == 2
    assert _rows_apart((5, [1, 1, 9]), (5, [9, 9, 9])) == 2
    assert _rows_apart((5, [9, 9, 9]), (5, [1, 1, 9])) == 2
    assert _rows_apart((5, [1, 2]), (5, [1])) > 10**9
    assert _rows_apart((5, [1, 1]), (50, [1, 1])) > 10**9
