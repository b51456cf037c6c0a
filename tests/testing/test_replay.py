"""Replay sees what a neighbour must not change, and stays silent where all is well."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub import noise
from hubbub.mechanisms import (
    Exponential,
    Gaussian,
    GaussianThreshold,
    Geometric,
    LaplaceThreshold,
    OptimalKeys,
    PerGroup,
    Quantile,
    Quantiles,
    TruncatedThreshold,
)
from hubbub.mechanisms.keys.threshold import KeySelection
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.testing import Trace, differences, replayed, trace
from hubbub.testing.replay import ReplayedMeasurement, distance

ACCOUNTS = {"town": hb.Budget(epsilon=Fraction(10), delta=Fraction(1, 100))}
ONE = hb.Sensitivity(l0=1, linf=Fraction(1))

People = Sequence[int]
Question = Callable[[People], Callable[[hb.Meter], Any]]


def secret(value: Any, sensitivity: hb.Sensitivity = ONE, grid: Fraction | None = Fraction(1)) -> hb.Secret[Any]:
    return hb.Secret(value, hb.Facts(account="town", sensitivity=sensitivity, grid=grid))


def compare(question: Question, people: People, neighbor: People) -> list[str]:
    one, other = (trace(question(side), accounts=ACCOUNTS, seed=5) for side in (people, neighbor))
    return differences(one, other)


def count(people: People) -> Callable[[hb.Meter], Any]:
    return lambda meter: meter.measure(Geometric(epsilon=Fraction(1)), secret(len(people)))


def median(people: People) -> Callable[[hb.Meter], Any]:
    middle = Quantile(epsilon=Fraction(1), bounds=(Fraction(0), Fraction(100)))
    return lambda meter: meter.measure(middle, secret(list(people), hb.Sensitivity(rows=1), None))


def quartiles(people: People) -> Callable[[hb.Meter], Any]:
    three = Quantiles(
        epsilon=Fraction(1),
        bounds=(Fraction(0), Fraction(100)),
        targets=(Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)),
    )
    return lambda meter: meter.measure(three, secret(list(people), hb.Sensitivity(rows=1), None))


def decades(people: People) -> Callable[[hb.Meter], Any]:
    histogram = np.bincount(np.asarray(people, dtype=np.int64) // 10, minlength=11)
    return lambda meter: meter.measure(Gaussian(sigma=Fraction(3)), secret(histogram))


def best_decade(people: People) -> Callable[[hb.Meter], Any]:
    histogram = np.bincount(np.asarray(people, dtype=np.int64) // 10, minlength=11)
    scores = secret(histogram, hb.Sensitivity(linf=Fraction(1)), None)
    return lambda meter: meter.measure(Exponential(epsilon=Fraction(1)), scores)


def keys(selection: KeySelection) -> Question:
    def question(people: People) -> Callable[[hb.Meter], Any]:
        held = {str(age): list(people).count(age) for age in people}
        return lambda meter: meter.measure(selection, secret(held))

    return question


PEOPLE = [31, 47, 47, 52, 68, 19, 33]


@pytest.mark.parametrize("question", [count, median, quartiles, decades, best_decade])
def test_sound_questions_show_no_difference(question: Question) -> None:
    assert compare(question, PEOPLE, [*PEOPLE, 47]) == []
    assert compare(question, PEOPLE, PEOPLE[1:]) == []


def test_identical_data_gives_identical_answers_and_another_seed_does_not() -> None:
    one, same = (trace(decades(PEOPLE), accounts=ACCOUNTS, seed=1) for _ in range(2))
    other = trace(decades(PEOPLE), accounts=ACCOUNTS, seed=2)
    assert np.array_equal(one.released[0], same.released[0])
    assert not np.array_equal(one.released[0], other.released[0])


def test_a_draw_gets_the_same_bits_however_many_the_one_before_took() -> None:
    def second(first: int) -> int:
        with replayed(9):
            noise.uniform_below(first)
            return noise.discrete_laplace(scale=1000)

    assert second(3) == second(1 << 200)


class Broken:
    """Questions with planted bugs; each must be seen."""

    @staticmethod
    def wrong_sensitivity(people: People) -> Callable[[hb.Meter], Any]:
        return lambda meter: meter.measure(Geometric(epsilon=Fraction(1)), secret(2 * len(people)))

    @staticmethod
    def noise_that_knows_n(people: People) -> Callable[[hb.Meter], Any]:
        loud = Geometric(epsilon=Fraction(1, len(people)))
        return lambda meter: meter.measure(loud, secret(len(people)))

    @staticmethod
    def error_oracle(people: People) -> Callable[[hb.Meter], Any]:
        def ask(meter: hb.Meter) -> Any:
            release = meter.measure(Geometric(epsilon=Fraction(1)), secret(len(people)))
            return release if 47 in people[3:] else 1 // 0

        return ask

    @staticmethod
    def one_draw_a_person(people: People) -> Callable[[hb.Meter], Any]:
        def ask(meter: hb.Meter) -> Any:
            for _ in people:
                noise.discrete_laplace(scale=1)
            return meter.measure(Geometric(epsilon=Fraction(1)), secret(len(people)))

        return ask

    @staticmethod
    def one_question_a_person(people: People) -> Callable[[hb.Meter], Any]:
        return lambda meter: [meter.measure(Geometric(epsilon=Fraction(1, 10)), secret(1)) for _ in people]

    @staticmethod
    def shape_that_follows_the_data(people: People) -> Callable[[hb.Meter], Any]:
        histogram = np.bincount(np.asarray(people, dtype=np.int64))
        return lambda meter: meter.measure(Gaussian(sigma=Fraction(3)), secret(histogram))

    @staticmethod
    def two_rows_a_person(people: People) -> Callable[[hb.Meter], Any]:
        middle = Quantile(epsilon=Fraction(1), bounds=(Fraction(0), Fraction(100)))
        rows = [age for age in people for _ in range(2)]
        return lambda meter: meter.measure(middle, secret(rows, hb.Sensitivity(rows=1), None))

    @staticmethod
    def keys_counted_twice(people: People) -> Callable[[hb.Meter], Any]:
        held = {str(age): 2 * list(people).count(age) for age in people}
        threshold = LaplaceThreshold(epsilon=Fraction(1), delta=Fraction(1, 1000))
        return lambda meter: meter.measure(threshold, secret(held))


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        (Broken.wrong_sensitivity, "moved by 2 in L1, declared 1"),
        (Broken.noise_that_knows_n, "calibrated differently"),
        (Broken.error_oracle, "outcome differ"),
        (Broken.one_draw_a_person, "draws differ"),
        (Broken.one_question_a_person, "measurements were made"),
        (Broken.shape_that_follows_the_data, "shape differ"),
        (Broken.two_rows_a_person, "moved by 2 in rows, declared 1"),
        (Broken.keys_counted_twice, "in units, declared 1"),
    ],
)
def test_planted_bugs_are_seen(bug: Question, words: str) -> None:
    found = compare(bug, PEOPLE, [*PEOPLE, 99]) + compare(bug, PEOPLE[:3], [*PEOPLE[:3], 47])
    assert any(words in sentence for sentence in found), found


@pytest.mark.parametrize("kind", [LaplaceThreshold, GaussianThreshold, TruncatedThreshold, OptimalKeys])
def test_unknown_keys_may_come_and_go_with_one_unit(kind: type[KeySelection]) -> None:
    """A new key is one more sample in the same draw: their number never leaves."""
    question = keys(kind(epsilon=Fraction(1), delta=Fraction(1, 1000)))
    assert compare(question, PEOPLE, [*PEOPLE, 80]) == []
    assert compare(question, PEOPLE, PEOPLE[1:]) == []


def test_replace_one_counts_a_replacement_once() -> None:
    def ask(people: People) -> Callable[[hb.Meter], Any]:
        middle = Quantile(epsilon=Fraction(1), bounds=(Fraction(0), Fraction(100)), neighbors=hb.Neighbors.REPLACE_ONE)
        facts = hb.Facts(
            account="town", sensitivity=hb.Sensitivity(rows=1), grid=None, neighbors=hb.Neighbors.REPLACE_ONE
        )
        return lambda meter: meter.measure(middle, hb.Secret(list(people), facts))

    accounts = {"town": hb.Budget(epsilon=Fraction(1), neighbors=hb.Neighbors.REPLACE_ONE)}
    sides = [trace(ask(people), accounts=accounts) for people in (PEOPLE, [*PEOPLE[1:], 99])]
    assert differences(*sides) == []
    assert isinstance(sides[0], Trace)
    assert sides[0].outcome == "answered"


def test_one_mechanism_for_every_group_is_held_to_its_groups_and_rows() -> None:
    """Two groups may move by two rows each: a third group, or a third row, is seen."""
    own = Quantile(epsilon=Fraction(1), bounds=(Fraction(0), Fraction(9)), grid=Fraction(1), rows=2)
    mechanism = PerGroup(mechanism=own, groups=2)
    facts = hb.Facts(account="people", sensitivity=hb.Sensitivity(l0=2, rows=2), grid=None)

    def measured(*groups: list[tuple[int, int]]) -> ReplayedMeasurement:
        value = tuple(StepCounts.of(one) for one in groups)
        return ReplayedMeasurement(mechanism=mechanism, facts=facts, event=mechanism.event, value=value)

    base = measured([(1, 3)], [(2, 1)], [])
    assert distance(base, base) == 0
    assert distance(base, measured([(1, 1)], [(2, 1), (9, 2)], [])) == 2
    assert distance(base, measured([(1, 3)], [(2, 1), (9, 3)], [])) == 3
    assert distance(base, measured([(1, 4)], [(2, 2)], [(0, 1)])) > 1000
    assert distance(base, measured([(1, 3)], [(2, 1)])) > 1000
