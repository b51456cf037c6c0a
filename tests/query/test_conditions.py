"""Conditions side by side: when they are one grouping, what that saves, and what a unit counts in."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.query.answer.diagnosis import Diagnosis
from hubbub.query.check.disjoint import are_disjoint
from hubbub.query.expression import Call, Expression
from hubbub.query.ops import Filter
from hubbub.query.plan.conditions import KNOWN_AS
from hubbub.query.plan.plan import Plan, plan
from hubbub.testing.replay import replayed
from tests.query.asking import Catalogue, policy, read
from tests.query.inside import World, fixed_key, row

F = Fraction
TEN = "SELECT " + ", ".join(f"count(*) FILTER (WHERE nights = {n}) AS n{n}" for n in range(10)) + " FROM stays"
NESTED = "SELECT count(*) FILTER (WHERE nights > 2), count(*) FILTER (WHERE nights > 5) FROM stays"
STATED = NESTED.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1)")
BUDGETS = {
    "pure": Budget(epsilon=F(10**6)),
    "gaussian": Budget(epsilon=F(10**6), delta=F(1, 10**6)),
    "replaced": Budget(epsilon=F(10**6), neighbors=Neighbors.REPLACE_ONE),
}


@pytest.fixture(params=list(BUDGETS))
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    held = World(tmp_path, budget=BUDGETS[request.param])
    yield held
    held.close()


def stays(many: int = 300) -> list[dict[str, Any]]:
    return [row(n, ward="abc"[n % 3], cost=float(n % 90), nights=n % 10, points=n % 7) for n in range(many)]


def loaded(world: World, rows: Sequence[dict[str, Any]] | None = None, **limits: Any) -> hb.Database:
    said = {"max_groups": 1, "max_rows": 1} | limits
    return world.load(stays() if rows is None else list(rows), limits=Limits(**said))


def margins(found: Plan) -> list[Fraction]:
    return [found.margins.bound(tally, 0.05) for part in found.parts for tally in part.tallies]


def apart(db: hb.Database, text: str, **price: Any) -> Plan:
    return plan(replace(db.plan(text, **price).question, grouped=False), db.policy, **price)


# What it saves


def test_ten_conditions_have_the_noise_of_one(world: World) -> None:
    db = loaded(world)
    beside, before = db.plan(TEN, epsilon=1), apart(db, TEN, epsilon=1)
    assert beside.beside is not None
    assert before.beside is None
    assert len(beside.measurements) == 1
    assert len(before.measurements) == 10
    moved = 2 if db.policy.budget.neighbors is Neighbors.REPLACE_ONE else 1
    assert beside.measurements[0].sensitivity.in_norm(Norm.L1) == moved
    gained = [float(old / new) for old, new in zip(margins(before), margins(beside), strict=True)]
    if db.policy.budget.delta:
        assert min(gained) > 2.5  # √10 of Gaussian noise, at most
    else:
        assert min(gained) >= 10 / moved * 0.85  # margins are whole


def test_answers_are_right(world: World) -> None:
    text = (
        "SELECT sum(cost) FILTER (WHERE ward = 'a') + 1 AS s, avg(cost) FILTER (WHERE ward = 'b') AS m, "
        "count(DISTINCT person) FILTER (WHERE ward = 'c') AS u, avg(cost) FILTER (WHERE ward = 'c') AS n, "
        "sum(cost) FILTER (WHERE ward = 'c') AS t FROM stays"
    )
    db = loaded(world)
    with replayed(1):
        found = db.sql(text, epsilon=10_000)
    assert found.plan.beside is not None
    (told,) = found.to_dicts()
    truth = {ward: [one["cost"] for one in stays() if one["ward"] == ward] for ward in "abc"}
    assert told["s"] == pytest.approx(1 + sum(truth["a"]), abs=10)
    assert told["m"] == pytest.approx(sum(truth["b"]) / 100, abs=0.1)
    assert told["u"] == 100
    assert told["n"] == pytest.approx(sum(truth["c"]) / 100, abs=0.1)
    assert told["t_low"] <= sum(truth["c"]) + 0.5
    assert told["t_high"] >= sum(truth["c"]) - 0.5
    again = db.sql(text, epsilon=10_000)
    assert again.stored is not None
    assert again.rows == found.rows


def test_what_was_drawn_at_a_higher_price_is_told_with_its_own_margins(world: World) -> None:
    db = loaded(world)
    found, cheaper = db.sql(TEN, epsilon=2), db.sql(TEN, epsilon=1)
    assert cheaper.stored is not None
    assert cheaper.rows == found.rows
    assert margins(cheaper.plan) == margins(found.plan)
    assert cheaper.plan.question.identity == found.plan.question.identity == f"{found.plan.question.text}{KNOWN_AS}"


def test_it_is_said(world: World) -> None:
    db = loaded(world)
    explained = db.explain(TEN, epsilon=1)
    assert explained.to_dict()["conditions"] == 10
    assert "under at most 1 of 10 conditions" in str(explained)
    assert "under at most 1 of 10 conditions" in str(db.sql(TEN, epsilon=1))
    assert db.explain("SELECT count(*) FROM stays", epsilon=1).to_dict()["conditions"] is None
    told = db.diagnose(TEN, epsilon=1)
    assert isinstance(told, Diagnosis)
    assert "in more than 1 group" in str(told)


# When it is done


@pytest.mark.parametrize(
    ("text", "limits", "grouped"),
    [
        (TEN, {}, True),
        (TEN, {"max_groups": 9}, None),
        (TEN, {"max_groups": 10}, False),
        (TEN, {"max_groups": None}, False),
        (NESTED, {}, False),
        (STATED, {}, True),
        (STATED, {"max_groups": 2}, True),
        ("SELECT count(*), count(*) FILTER (WHERE nights > 5) FROM stays", {}, False),
        ("SELECT ward, count(*) FILTER (WHERE nights > 5) FROM stays GROUP BY ward", {}, False),
        ("SELECT count(*) FILTER (WHERE nights > 5) FROM stays", {}, False),
        ("SELECT count(*) FILTER (WHERE urgent), sum(cost) FILTER (WHERE NOT urgent) FROM stays", {}, False),
        (
            "SELECT avg(cost) FILTER (WHERE urgent), avg(cost) FILTER (WHERE NOT urgent), "
            "avg(cost) FILTER (WHERE urgent IS NULL) FROM stays",
            {},
            True,
        ),
        ("SELECT count_if(ward = 'a'), count_if(ward = 'b'), count_if(ward IN ('c')) FROM stays", {}, True),
        ("SELECT corr(cost, nights) FILTER (WHERE urgent), count_if(NOT urgent) FROM stays", {}, False),
    ],
)
def test_limits_and_conditions_decide(tmp_path: Path, text: str, limits: dict[str, Any], grouped: bool | None) -> None:
    world = World(tmp_path)
    made = loaded(world, **limits).plan(text, epsilon=1)
    assert grouped is None or (made.beside is not None) is grouped
    assert (made.question.known_as == made.question.text + KNOWN_AS) is (made.beside is not None)
    world.close()


def test_one_row_under_one_condition_drops_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    db = world.load(stays(), limits=Limits(), unique=True)
    made = db.plan(TEN, epsilon=1)
    assert made.beside is not None, "nobody needs to declare a limit that drops nothing"
    assert made.beside.plan.aggregate.most_groups == 1
    with fixed_key():
        counted = exact_of(db, made.aggregate)
    assert counted.tallies == [(30,)] * 10
    world.close()


def test_less_noise_decides(tmp_path: Path) -> None:
    """At nine groups of ten, a grouping costs nine tenths; with four kinds of sums for two conditions it costs more."""
    world = World(tmp_path)
    many = ("sum(cost)", "sum(nights)", "count(*)", "sum(least(greatest(points, 0), 9))")
    text = ", ".join(f"{one} FILTER (WHERE nights = {place})" for place, one in enumerate(many))
    assert loaded(world).plan(f"SELECT {text} FROM stays", epsilon=1).beside is None
    world.close()


# What a unit counts in


def test_a_unit_counts_under_few_conditions_and_always_the_same(tmp_path: Path) -> None:
    world = World(tmp_path)
    everywhere = [row(1, nights=n) for n in range(10) for _ in range(3)]
    db = loaded(world, everywhere, max_groups=2, max_rows=2)
    made = db.plan(TEN, epsilon=1)
    with fixed_key():
        one, again = (exact_of(db, made.aggregate).tallies for _ in range(2))
    assert one == again
    assert sorted(one) == [(0,)] * 8 + [(2,)] * 2
    world.close()


def test_a_row_stands_under_each_of_its_conditions(tmp_path: Path) -> None:
    world = World(tmp_path)
    three = STATED.replace(" FROM", ", count(*) FILTER (WHERE nights > 7) FROM").replace("= 1", "= 2")
    db = loaded(world, [row(1, nights=9), row(2, nights=3), row(3, nights=6)], max_groups=2)
    made = db.plan(three, epsilon=1)
    assert made.beside is not None
    with fixed_key():
        counted = [each[0] for each in exact_of(db, made.aggregate).tallies]
    assert sum(counted) == 2 + 1 + 2, "of three conditions the first person counts in two"
    world.close()


@pytest.mark.parametrize("limits", [{"max_groups": 1}, {"max_groups": 3, "max_rows": 2}])
def test_neighbours_move_as_far_as_was_proven_and_reach_it(world: World, limits: dict[str, Any]) -> None:
    groups, rows = limits["max_groups"], limits.get("max_rows", 1)
    wide = [row(1000, nights=n) for n in range(5) for _ in range(4)]
    instead = [row(1001, nights=n) for n in range(5, 10) for _ in range(4)]
    found = []
    for mine in (wide, instead, []):
        db = loaded(world, [*stays(), *mine], **limits)
        made = db.plan(TEN, epsilon=1)
        assert made.beside is not None
        with fixed_key():
            found.append([each[0] for each in exact_of(db, made.aggregate).tallies])
    proven = made.measurements[0].sensitivity
    replaced = db.policy.budget.neighbors is Neighbors.REPLACE_ONE
    one, other = (found[0], found[1]) if replaced else (found[0], found[2])
    moved = [abs(a - b) for a, b in zip(one, other, strict=True)]
    assert sum(moved) == proven.in_norm(Norm.L1) == groups * rows * (2 if replaced else 1)
    assert sum(step**2 for step in moved) == proven.in_norm(Norm.L2)


# Several questions at one price


PARTS = [f"SELECT count(*) AS n FROM stays WHERE nights = {n}" for n in range(10)]


def test_parts_of_one_ask_are_one_grouping(world: World) -> None:
    db = loaded(world)
    before = db.ledger.statement("people").spent.loss
    with replayed(1):
        found = db.ask([*PARTS, "SELECT ward, count(*) AS n FROM stays GROUP BY ward"], epsilon=20)
    assert [one.plan.beside is not None for one in found] == [True] * 10 + [False]
    spent = db.ledger.statement("people").spent.loss - before
    assert spent == sum(one.plan.cost.loss for one in found)
    assert [one.plan.cost.loss > 0 for one in found] == [True] + [False] * 9 + [True]
    for one in found[:10]:
        assert one.to_dicts()[0]["n"] == pytest.approx(30, abs=20)
        assert one.to_dicts()[0]["n_low"] <= 50
    assert [
        one.rows for one in db.ask([*PARTS, "SELECT ward, count(*) AS n FROM stays GROUP BY ward"], epsilon=20)
    ] == [one.rows for one in found]
    assert db.ledger.statement("people").spent.loss - before == spent


def test_their_noise_is_that_of_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    db = loaded(world)
    found = db.ask(PARTS, epsilon=1)
    assert {float(margins(one.plan)[0]) for one in found} == {3.0}
    assert float(margins(db.plan(PARTS[0], epsilon=F(1, 10)))[0]) == 30
    cheaper = db.ask(PARTS, epsilon=F(1, 2))
    assert [one.stored is not None for one in cheaper] == [True] * 10
    assert {float(margins(one.plan)[0]) for one in cheaper} == {3.0}, "the margins of what was drawn"
    world.close()


@pytest.mark.parametrize(
    "texts",
    [
        ["SELECT count(*) FROM stays WHERE nights > 2", "SELECT count(*) FROM stays WHERE nights > 5"],
        ["SELECT count(*) FROM stays", "SELECT count(*) FROM stays WHERE nights > 5"],
        ["SELECT median(cost) FROM stays WHERE nights > 5", "SELECT count(*) FROM stays WHERE nights < 2"],
        [
            "SELECT ward, count(*) FROM stays WHERE nights > 5 GROUP BY ward",
            "SELECT 1 + count(*) FROM stays WHERE urgent",
        ],
    ],
)
def test_other_parts_add_up(tmp_path: Path, texts: list[str]) -> None:
    world = World(tmp_path)
    assert all(one.plan.beside is None for one in loaded(world).ask(texts, epsilon=1))
    world.close()


def test_exact_parts_are_the_conditions_own(tmp_path: Path) -> None:
    world = World(tmp_path)
    db = loaded(world)
    texts = [
        "SELECT sum(cost) AS s FROM stays WHERE ward = 'a' AND nights > 3",
        "SELECT sum(cost) AS s, count(*) AS n FROM stays WHERE ward = 'b'",
        "SELECT count(*) AS n FROM stays WHERE ward = 'c' AND points = 1",
    ]
    found = db.ask(texts, epsilon=10_000)
    kept = [
        [one for one in stays() if one["ward"] == "a" and one["nights"] > 3],
        [one for one in stays() if one["ward"] == "b"],
        [one for one in stays() if one["ward"] == "c" and one["points"] == 1],
    ]
    assert found[0].plan.beside is not None
    assert found[0].to_dicts()[0]["s"] == pytest.approx(sum(one["cost"] for one in kept[0]), abs=1)
    assert found[1].to_dicts()[0]["s"] == pytest.approx(sum(one["cost"] for one in kept[1]), abs=1)
    assert [found[1].to_dicts()[0]["n"], found[2].to_dicts()[0]["n"]] == [len(kept[1]), len(kept[2])]
    world.close()


# What no row fulfils twice


def conditions(*texts: str) -> list[Expression]:
    found = []
    for text in texts:
        relation = read(f"select count(*) from stays where {text}", Catalogue(policy())).relation
        assert isinstance(relation, Filter)
        assert isinstance(relation.condition, Call) or relation.condition.kind
        found.append(relation.condition)
    return found


@pytest.mark.parametrize(
    ("texts", "disjoint"),
    [
        (("ward = 'a'", "ward = 'b'"), True),
        (("ward = 'a'", "ward IN ('b', 'c')"), True),
        (("ward IN ('a', 'b')", "ward IN ('b', 'c')"), False),
        (("ward = 'a'", "cost > 3"), False),
        (("age < 3", "age >= 3"), True),
        (("age <= 3", "age >= 3"), False),
        (("age < 3", "age > 3"), True),
        (("age BETWEEN 1 AND 3", "age BETWEEN 4 AND 6", "age > 6"), True),
        (("age BETWEEN 1 AND 3", "age BETWEEN 3 AND 6"), False),
        (("age > 3", "age > 5"), False),
        (("3 > age", "4 < age"), True),
        (("urgent", "NOT urgent", "urgent IS NULL"), True),
        (("urgent", "urgent"), False),
        (("ward = 'a' AND age > 3", "ward = 'b' AND age > 3"), True),
        (("ward = 'a' OR age > 3", "ward = 'b'"), False),
        (("ward IS NULL", "ward = 'a'"), True),
        (("ward IS NULL", "age = 3"), False),
        (("cost = 1", "cost = 1.5"), True),
        (("age > 3", "NOT age > 3"), True),
        (("day < DATE '2020-01-01'", "day >= DATE '2020-01-01'"), True),
        (("ward <> 'a'", "ward = 'b'"), False),
    ],
)
def test_disjoint_conditions(texts: tuple[str, ...], disjoint: bool) -> None:
    assert are_disjoint(conditions(*texts)) is disjoint
