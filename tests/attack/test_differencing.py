"""Differences of questions against every combination, conditions against an engine, and Frank through the gate."""

import itertools
from fractions import Fraction

import duckdb
import numpy as np
import pytest

from hubbub.attack.gateway.differencing import differencing, find_determined, isolations, plan
from hubbub.attack.gateway.exclusion import count_exactly, district, exclusion, narrow_pairs, not_named
from hubbub.attack.gateway.predicates import condition
from hubbub.cli.lab.targets import pupils
from hubbub.errors import HubbubError, ParameterError

EVERYBODY = frozenset(range(10))


def test_everybody_and_everybody_but_one() -> None:
    (found,) = isolations({"all": EVERYBODY, "but 3": EVERYBODY - {3}})
    assert found.people == (3,)
    assert str(found) == "[all] − [but 3]"


def test_the_boundary_of_few() -> None:
    asked = {"all": EVERYBODY, "less": EVERYBODY - {1, 2, 3}}
    assert isolations(asked, few=2) == []
    assert [one.people for one in isolations(asked, few=3)] == [(1, 2, 3)]
    assert [one.people for one in isolations({"small": {4, 5}}, few=2)] == [(4, 5)]
    assert isolations({"small": {4, 5}}, few=1) == []


def test_what_one_question_says_is_not_said_again() -> None:
    (found,) = isolations({"all": EVERYBODY, "but 3": EVERYBODY - {3}, "3": {3}}, few=1)
    assert str(found) == "[3]"


def test_three_questions_do_what_two_cannot() -> None:
    asked = {"all": EVERYBODY, "low": range(5), "high": range(6, 10)}
    assert isolations(asked, few=1, terms=2) == []
    (found,) = isolations(asked, few=1, terms=3)
    assert found.people == (5,)
    assert sorted(sign for sign, _ in found.terms) == [-1, -1, 1]


@pytest.mark.parametrize("seed", range(8))
def test_against_every_combination(seed: int) -> None:
    chance = np.random.default_rng(seed)
    matrix = chance.integers(0, 2, size=(5, 7))
    asked = {f"q{place}": frozenset(np.flatnonzero(row).tolist()) for place, row in enumerate(matrix)}
    wanted = set()
    for signs in itertools.product((-1, 0, 1), repeat=5):
        vector = np.array(signs) @ matrix
        if 1 <= np.count_nonzero(signs) <= 3 and 0 < np.square(vector).sum() <= 2:
            wanted.add(tuple(np.flatnonzero(vector).tolist()))
    assert {one.people for one in isolations(asked, few=2, terms=3)} == wanted


def test_whom_all_answers_together_determine() -> None:
    ring = {f"{a}{b}": {a, b} for a, b in ((0, 1), (1, 2), (2, 0))}
    assert find_determined(ring) == [(2,), (1,), (0,)] or set(find_determined(ring)) == {(0,), (1,), (2,)}
    square = {f"{a}{b}": {a, b} for a, b in ((0, 1), (1, 2), (2, 3), (3, 0))}
    assert find_determined(square) == []
    assert find_determined({"all": EVERYBODY, "but two": EVERYBODY - {1, 2}}, few=1) == []
    assert find_determined({"all": EVERYBODY, "but two": EVERYBODY - {1, 2}}, few=2) == [(1, 2)]
    assert find_determined({}) == []


def test_the_report() -> None:
    found = differencing({"all": EVERYBODY, "but 3": EVERYBODY - {3}})
    assert found.works
    assert found.numbers == {"questions": 2, "combinations": 1, "isolated": 1, "people": 10}
    assert not differencing({"all": EVERYBODY, "half": range(5)}).works
    with pytest.raises(ParameterError, match="terms"):
        isolations({}, terms=4)
    with pytest.raises(ParameterError, match="few"):
        isolations({}, few=0)


TABLE = {
    "name": ["Frank", "Ann", None, "fay", "F_x"],
    "age": [30, 35, 40, None, 30],
    "a": [True, True, False, None, True],
}
CONDITIONS = [
    "age = 30",
    "age <> 30",
    "NOT age = 30",
    "age BETWEEN 30 AND 35",
    "age NOT BETWEEN 31 AND 50",
    "age IN (30, 40)",
    "age NOT IN (30, NULL)",
    "name LIKE 'F%'",
    "name LIKE 'F_x'",
    "name IS NULL OR age >= 35",
    "name IS NOT NULL AND NOT (age < 35)",
    "a",
    "NOT a AND age > -1",
    "name < 'Z' AND age <= 30.0",
    "true",
    "1 = 2",
    "30 < age",
]


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_mean_what_an_engine_says(text: str) -> None:
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE t (id INTEGER, name VARCHAR, age INTEGER, a BOOLEAN)")
        engine.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", list(zip(range(5), *TABLE.values(), strict=True)))
        wanted = {row[0] for row in engine.execute(f"SELECT id FROM t WHERE {text}").fetchall()}
    assert condition(text).rows(TABLE) == wanted
    assert condition(f"SELECT count(*) FROM t WHERE {text};").rows(TABLE) == wanted


def test_a_log_goes_on_past_what_cannot_be_read() -> None:
    sets, unread = plan(["SELECT avg(age) FROM t", "age + 1 = 2", "shoe = 1", "SELECT FROM WHERE", "age = 30"], TABLE)
    assert sets == {"SELECT avg(age) FROM t": frozenset(range(5)), "age = 30": frozenset({0, 4})}
    assert len(unread) == 3
    assert "'age + 1'" in unread[0]
    assert "'shoe'" in unread[1]
    with pytest.raises(HubbubError, match="more than one table"):
        condition("SELECT count(*) FROM t JOIN u USING (id) WHERE age = 1")


def test_pairs_are_found_without_data() -> None:
    log = [
        "mark = 'A'",
        "SELECT count(*) FROM t WHERE name <> 'Frank' AND mark = 'A'",
        "mark = 'A' AND sex = 'f'",
        "x +",
    ]
    values = {"name": 1000, "mark": 5, "sex": 2}
    first, second = narrow_pairs(log, people=5000, values=values)
    assert first[:3] == (log[0], log[1], "name <> 'Frank'")
    assert first[3] == pytest.approx(1.0)  # 5,000 people, a fifth with an A, a thousandth of them Frank
    assert second[3] == pytest.approx(500)
    assert exclusion(log, people=5000, values=values, few=1).works
    assert not exclusion(log, people=10_000, values=values, few=1).works
    assert narrow_pairs(["a = 1", "a = 1 AND NOT n = 2"], people=10, values={"n": 10})[0][3] == pytest.approx(0.5)


def test_a_question_that_is_narrow_itself() -> None:
    ((_, _, part, about),) = narrow_pairs(["a = 1", "a = 1 AND n = 'Frank'"], people=1000, values={"n": 1000})
    assert part == "n = 'Frank'"
    assert about == pytest.approx(0.5)


def test_not_named_frank() -> None:
    table = district(people=40)
    found = not_named(table, count_exactly(table), victims=40, target="exact answers")
    assert found.works
    assert found.numbers["found"] == 1.0


def test_not_named_frank_through_the_gate() -> None:
    """A mark moves a difference by a fiftieth of its deviation: 39 of 40 right guesses have a chance below 1e-6."""
    table = district(people=60)
    with pupils(table, epsilon=Fraction(1), questions=41) as count:
        found = not_named(table, count, victims=40, target="Hubbub")
    assert not found.works
