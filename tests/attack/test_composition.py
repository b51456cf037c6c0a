"""Generalised values, and two releases side by side: the tables of two lectures, and every table of a small kind."""

import itertools

import numpy as np
import pytest

from hubbub.attack.composition import HOSPITALS, LECTURE, composition, groups_of, hospitals, lecture
from hubbub.attack.generalised import region
from hubbub.errors import ParameterError


@pytest.mark.parametrize(
    ("shown", "inside", "outside"),
    [
        ("130**", ["13000", 13012, "13099"], ["13100", "1301", "130123", "*"]),
        ("3*", [30, 39, "35"], [29, 40, 3, 300]),
        ("<30", [29, 29.5, -5], [30, 31, "young"]),
        ("<=30", [30], [30.5]),
        ("≤ 30", [30], [31]),
        ("≥40", [40, 99], [39.9]),
        (">40", [41], [40]),
        ("[20-30]", [20, 25, 30], [19, 31]),
        ("[20-30)", [20, 29.9], [30]),
        ("(20, 30]", [20.5, 30], [20]),
        ("20–30", [20, 30], [31]),
        ("30s", [30, 39], [29, 40]),
        ("{flu, cold}", ["flu", "cold"], ["gout"]),
        ("Male", ["Male"], ["Female", "male"]),
        ("28", [28, "28", 28.0], [29]),
        ("30-20", ["30-20"], [25]),
    ],
)
def test_who_can_stand_behind_a_value(shown: str, inside: list[object], outside: list[object]) -> None:
    assert [value for value in inside if not region(shown).contains(value)] == []
    assert [value for value in outside if region(shown).contains(value)] == []


@pytest.mark.parametrize("shown", ["*", "", None, "**", "any"])
def test_what_is_left_out_says_nothing(shown: str | None) -> None:
    assert region(shown).everything
    assert region(shown).contains("anything")


def test_two_values_meet_where_somebody_has_both() -> None:
    shown = ["3*", "<30", "<35", ">=35", "≥40", "[20-30]", "[30-40)", "(30-33]", "30s", "{29, 31}", "35", ">39"]
    ages = np.arange(0, 100, 0.5)
    for one, other in itertools.product(shown, shown):
        both = any(region(one).contains(age) and region(other).contains(age) for age in ages)
        assert region(one).meets(region(other)) == both, (one, other)


def test_patterns_meet_sign_by_sign() -> None:
    assert region("130**").meets(region("13*12"))
    assert not region("130**").meets(region("131**"))
    assert not region("130**").meets(region("130*"))
    assert region("AB*").meets(region("<30"))  # nobody can say: not excluded


class TestTheLectures:
    def test_the_tables_are_as_anonymous_as_they_say(self) -> None:
        four, six = lecture()
        assert [len(one.conditions) for one in groups_of(four, on=LECTURE, sensitive="condition")] == [4, 4, 4]
        assert [len(one.conditions) for one in groups_of(six, on=LECTURE, sensitive="condition")] == [6, 6]

    def test_a_person_of_28_in_13012(self) -> None:
        found = composition(*lecture(), on=LECTURE, sensitive="condition", person={"zip": "13012", "age": 28})
        assert found.works
        assert found.rows[-1] == ("both", "1", "AIDS")
        assert found.numbers == {"first": 3, "second": 4, "both": 1}

    def test_a_person_of_45_is_not_pinned(self) -> None:
        found = composition(*lecture(), on=LECTURE, sensitive="condition", person={"zip": "13012", "age": 45})
        assert not found.works
        assert found.rows[-1] == ("both", "2", "Cancer, Viral Infection")

    def test_a_person_of_33_is_told_by_one_release_alone(self) -> None:
        found = composition(*lecture(), on=LECTURE, sensitive="condition", person={"zip": "13012", "age": 33})
        assert found.works
        assert found.verdict.endswith("has Cancer; one of the releases says so by itself.")

    def test_who_lives_elsewhere_is_in_neither(self) -> None:
        found = composition(*lecture(), on=LECTURE, sensitive="condition", person={"zip": "13112", "age": 28})
        assert not found.works
        assert "Nobody" in found.verdict

    def test_a_man_of_20_in_two_hospitals(self) -> None:
        found = composition(*hospitals(), on=HOSPITALS, sensitive="diagnosis", person={"age": 20, "gender": "Male"})
        assert found.works
        assert found.rows[-1] == ("both", "1", "HIV")

    def test_everybody_at_once(self) -> None:
        found = composition(*lecture(), on=LECTURE, sensitive="condition")
        told = [row for row in found.rows if row[3]]
        assert told == [("130** <30 *", "130** <35 *", "AIDS", "←")]
        assert found.numbers == {"ways": 4, "pinned": 1}


def test_one_release_twice_tells_nothing_new() -> None:
    six = lecture()[1]
    assert not composition(six, six, on=LECTURE, sensitive="condition").works


def test_what_is_known_is_about_columns_that_are_there() -> None:
    with pytest.raises(ParameterError, match="zip"):
        composition(*lecture(), on=LECTURE, sensitive="condition", person={"shoe": 44})
    with pytest.raises(ParameterError, match="columns of the table"):
        composition(*lecture(), on=("postcode",), sensitive="condition")
