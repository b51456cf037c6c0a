"""Bounds that an aggregate names itself, in BigQuery's words."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest

from hubbub.audit.subjects.in_process.inside import Inside
from hubbub.errors import MayOverflow, NotAllowed, QueryError
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.query.answer.stored import combine
from hubbub.query.missing.lacking import lacking
from hubbub.query.ops import Measure
from hubbub.query.plan.plan import plan
from hubbub.query.read import aggregate_clauses as clauses
from hubbub.query.read.aggregate_clauses import Said
from hubbub.query.read.sql import question
from hubbub.query.read.text.sql_text import parse_select
from hubbub.query.requests import Tallies
from tests.query import interpreter
from tests.query.asking import policy, read
from tests.query.further import exact_tallies
from tests.query.inside import World, ask, exact, faults, row
from tests.query.test_replay import tallied

GROUP, ROW = "contribution_bounds_per_group", "contribution_bounds_per_row"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


PEOPLE = [
    row(1, ward="a", cost=40.0, nights=3, points=9),
    row(1, ward="a", cost=50.0, nights=4, points=9),
    row(1, ward="a", cost=60.0, nights=None, points=10**9),
    row(2, ward="a", cost=1.0, nights=-2, points=-5),
    row(2, ward="b", cost=None, nights=None, points=None),
    row(3, ward="b", cost=100.0, nights=10, points=4),
]


@pytest.mark.parametrize(
    ("aggregate", "a", "b"),
    [
        (f"count(*, {GROUP} => (0, 2))", 3, 2),
        (f"count(*, {GROUP} => (0, 1))", 2, 2),
        (f"count(*, {GROUP} => (0, 9))", 4, 2),
        (f"count(nights, {GROUP} => (0, 1))", 2, 1),
        (f"sum(cost, {GROUP} => (0, 120))", 121, 100),
        (f"sum(cost, {GROUP} => (2, 120))", 122, 100),
        (f"sum(cost, {GROUP} => (-9, 500))", 151, 100),
        (f"sum(nights, {GROUP} => (-1, 5))", 5, 5),
        (f"sum(points, {GROUP} => (-3, 20))", 17, 4),
        (f"sum(points, {GROUP} => (-100, 20), {ROW} => (-5, 9))", 15, 4),
        (f"sum(cost, {ROW} => (10, 45))", 140, 45),
        (f"sum(cost, {GROUP} => (0, 120)) FILTER (WHERE nights IS NOT NULL)", 91, 100),
    ],
)
def test_what_each_unit_adds(world: World, aggregate: str, a: int, b: int) -> None:
    """Of the first person at most so much, whatever max_rows says; of nothing but missing values, nothing."""
    limits = Limits(max_groups=5, max_rows=1 if ROW not in aggregate or GROUP in aggregate else 9)
    db = world.load(PEOPLE, limits=limits)
    text = f"SELECT ward, {aggregate} FROM stays GROUP BY ward"
    grid = db.plan(text, epsilon=1).aggregate.tallies[0].grid
    assert [one * grid for (one,) in exact(db, text)[:2]] == [a, b]


@pytest.mark.parametrize(
    ("aggregate", "a", "b"),
    [
        (f"avg(cost, {GROUP} => (0, 100))", (50 + 1) / 2, 100),
        (f"avg(cost, {GROUP} => (0, 30))", (30 + 1) / 2, 30),
        (f"avg(cost, {GROUP} => (20, 300))", (50 + 20) / 2, 100),
        (f"avg(points, {GROUP} => (-8, 8))", (8 - 5) / 2, 4),
        (f"avg(cost, {GROUP} => (0, 100), {ROW} => (0, 45))", (130 / 3 + 1) / 2, 45),
        (f"avg(cost, {ROW} => (10, 45))", (40 + 45 + 45 + 10) / 4, 45),
    ],
)
def test_an_average_of_units_own_averages(world: World, aggregate: str, a: float, b: float) -> None:
    db = world.load(PEOPLE, limits=Limits(max_groups=5, max_rows=9))
    text = f"SELECT ward, {aggregate} FROM stays GROUP BY ward"
    planned = db.plan(text, epsilon=1)
    rows = exact(db, text)
    found = combine(planned, exact_tallies(planned, rows))
    assert [one.value for (one,) in found[:2]] == pytest.approx([a, b], abs=1e-3)
    if GROUP in aggregate:
        assert planned.aggregate.tallies[0].measure is Measure.UNITS


@pytest.mark.parametrize(
    ("aggregate", "moves"),
    [
        (f"count(*, {GROUP} => (0, 7))", 7),
        (f"sum(nights, {GROUP} => (-20, 7))", 20),
        (f"sum(nights, {GROUP} => (3, 7))", 7),
        (f"sum(nights, {ROW} => (-4, 2))", 12),
        (f"sum(points, {ROW} => (-4, 2), {GROUP} => (-1, 1))", 1),
    ],
)
def test_the_noise_follows_from_them(world: World, aggregate: str, moves: int) -> None:
    db = world.load([], limits=Limits(max_groups=2, max_rows=3))
    proven = db.plan(f"SELECT {aggregate} FROM stays", epsilon=1).measurements[0].sensitivity
    assert proven.linf == moves
    grouped = db.plan(f"SELECT ward, {aggregate} FROM stays GROUP BY ward", epsilon=1).measurements[0].sensitivity
    assert (grouped.l0, grouped.linf) == (2, Fraction(moves))


def test_nothing_is_lacking_where_the_question_says_it(world: World) -> None:
    bare = world.load(PEOPLE, limits=Limits(), buys=True)
    said = f"sum(points, {GROUP} => (0, 9)) AS s, count(*, {GROUP} => (0, 2)) AS n, avg(points, {GROUP} => (0, 9)) AS m"
    assert lacking(question(f"SELECT {said} FROM stays", bare), bare.policy) == ()
    rows = lacking(question(f"SELECT sum(points, {ROW} => (0, 9)) FROM stays", bare), bare.policy)
    assert [one.lacking.value for one in rows] == ["max_rows"]
    refusing = world.load(PEOPLE, limits=Limits())
    assert len(refusing.sql(f"SELECT {said} FROM stays", epsilon=1)) == 1


def test_one_row_a_unit_counts_once() -> None:
    asked = read(f"SELECT count(*, {GROUP} => (0, 7)) FROM (SELECT patient_id FROM stays GROUP BY patient_id)")
    assert plan(asked, policy(), epsilon=1).aggregate.tallies[0].bounds == (0, 1)


def test_one_question_reads_the_same_in_any_case(world: World) -> None:
    db = world.load(PEOPLE)
    one = db.sql(f"SELECT SUM(cost, {GROUP.upper()} => (0, 5)), COUNT(*, {GROUP} => (0, 2)) FROM stays", epsilon=1)
    two = db.sql(f"select sum(COST, {GROUP}=>(0,5)), count(*, {GROUP.title()}=>(0,2)) from stays", epsilon=1)
    other = db.sql(f"select sum(cost, {GROUP}=>(0,6)), count(*, {GROUP}=>(0,2)) from stays", epsilon=1)
    assert one.entry == two.entry != other.entry
    assert one.columns[0] == f"sum(cost, {GROUP} => (0, 5))"


def test_it_is_explained(world: World) -> None:
    db = world.load(PEOPLE)
    told = db.explain(f"SELECT sum(cost, {GROUP} => (0, 5)), avg(cost, {GROUP} => (1, 5)) FROM stays", epsilon=1)
    added, mean = told.to_dict()["columns"]
    assert added["each"] == [0, 5]
    assert added["sentence"].endswith("values clamped to 0 … 100; what a unit adds to a group clamped to 0 … 5")
    assert mean["sentence"].endswith("; a unit's own average clamped to 1 … 5")


@pytest.mark.parametrize(
    "aggregate",
    [
        f"sum(cost, {GROUP} => (5, 1))", f"sum(cost, {GROUP} => (1, 1))", f"sum(cost, {GROUP} => 5)",
        f"sum(cost, {GROUP} => (1, 2, 3))", f"sum(cost, {GROUP} => (0, cost))", f"sum(cost, {GROUP} => (0, '9'))",
        f"sum(cost, {GROUP} => (0, 1e300))", f"sum(cost, {GROUP} => (0, 1e99999))", f"sum(cost, {GROUP} => (0, NULL))",
        f"sum(cost, {GROUP} => (0, 1), {GROUP} => (0, 1))", "sum(cost, bounds => (0, 1))",
        f"sum(cost, 3, {GROUP} => (0, 1))", f"count(*, {ROW} => (0, 1))", f"count(*, {GROUP} => (1, 2))",
        f"count(*, {GROUP} => (0, 1.5))", f"count(*, {GROUP} => (-1, 2))", f"count(cost, 1, {GROUP} => (0, 2))",
        f"sum(cost, {GROUP} => (0, 1e-40))", f"min(cost, {GROUP} => (0, 1))", f"median(cost, {GROUP} => (0, 1))",
        f"count(DISTINCT person, {GROUP} => (0, 1))", f"sum({GROUP} => (0, 1))",
        f"approx_count_distinct(cost, {GROUP} => (0, 1))",
        f"sum(cost, {GROUP} => (0, 1)) OVER ()", f"avg(cost, {GROUP} => (0, 1 + 1))",
    ],
)  # fmt: skip
def test_what_they_cannot_say_is_refused(world: World, aggregate: str) -> None:
    db = world.load([])
    text = f"SELECT {aggregate} FROM stays"
    with pytest.raises(QueryError) as caught:
        db.plan(text, epsilon=1)
    assert "^" in caught.value.message, "it is shown where"


def test_within_a_unit_there_is_nothing_to_bound(world: World) -> None:
    db = world.load([])
    for aggregate in (f"sum(cost, {GROUP} => (0, 1))", f"count(*, {GROUP} => (0, 1))"):
        with pytest.raises(NotAllowed, match="takes one value here"):
            db.plan(f"SELECT sum(s) FROM (SELECT person, {aggregate} AS s FROM stays GROUP BY person)", epsilon=1)


def test_bounds_that_no_engine_holds_are_refused(world: World) -> None:
    db = world.load([])
    for wide in (f"sum(cost, {GROUP} => (0, 1e18))", f"avg(cost, {GROUP} => (4e18, 4.1e18))"):
        with pytest.raises(MayOverflow, match="closer bounds"):
            db.plan(f"SELECT {wide} FROM stays", epsilon=1)
    assert db.plan(f"SELECT sum(points, {GROUP} => (0, 1000000)) FROM stays", epsilon=1)


# Replay


TEXTS = [
    f"SELECT ward, count(*, {GROUP} => (0, 2)) FROM stays GROUP BY ward",
    f"SELECT ward, sum(cost, {GROUP} => (-5, 60)) FROM stays GROUP BY ward",
    f"SELECT ward, avg(cost, {GROUP} => (20, 60)) FROM stays GROUP BY ward",
    f"SELECT sum(points, {ROW} => (-5, 60)) FROM stays",
]


def examined(folder: Path, budget: Budget | None = None) -> list[str]:
    """One more person with many rows, and the same people in another order."""
    for side in "ab":
        (folder / side).mkdir(exist_ok=True)
    worst = [row(99, ward=ward, cost=90.0, points=10**6) for ward in ("a", "b", "c") for _ in range(9)]
    limits, found = Limits(max_groups=2, max_rows=3), []
    one, two = World(folder / "a", budget=budget), World(folder / "b", budget=budget)
    db = one.load(PEOPLE, limits=limits)
    bases = {text: ask(db, text) for text in TEXTS}
    for what, changed in (("unit", [*PEOPLE, *worst]), ("order", Random("o").sample(PEOPLE, len(PEOPLE)))):
        other = two.load(changed, limits=limits)
        for text, base in bases.items():
            for a, b in ((base, ask(other, text)), (tallied(db, base), tallied(other, base))):
                found += [f"{what}: {text}: {fault}" for fault in faults(a, b, same=what != "unit")]
    one.close()
    two.close()
    return found


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
def test_replay_finds_nothing(tmp_path: Path, delta: Fraction) -> None:
    assert examined(tmp_path, Budget(epsilon=Fraction(10**6), delta=delta)) == []


def test_replay_catches_bounds_that_only_the_noise_knows(tmp_path: Path) -> None:
    """The noise is made for what the question says, and the rows are clamped to what the owner has declared."""
    honest = Inside.prepare

    def unbounded(self: Inside, request: Any, **more: Any) -> Any:
        wide = tuple(replace(one, bounds=(-(1 << 40), 1 << 40)) for one in request.aggregate.tallies)
        return honest(self, Tallies(aggregate=replace(request.aggregate, tallies=wide)), **more)

    with mock.patch.object(Inside, "prepare", unbounded):
        found = examined(tmp_path)
    assert any("count" in one and "9 steps in one group, and 2 was proven" in one for one in found), found


def test_the_interpreter_agrees(world: World) -> None:
    db = world.load(PEOPLE, limits=Limits(max_groups=5, max_rows=3))
    for text in TEXTS:
        op = db.plan(text, epsilon=1).aggregate
        meant = interpreter.aggregate(op, {"stays": PEOPLE}, lambda unit, own: own)
        assert list(meant.values()) == exact(db, text)


def test_without_a_clause_the_aggregate_is_itself() -> None:
    (only,) = parse_select("SELECT sum(x) FROM t").expressions
    assert clauses.take_off_bounds(only) == (only, Said())
