"""Replay and audits of values that are chosen and of different values: nothing is found, and every fault is."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest

from hubbub.audit import Finding, lower_bound
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import EngineError, MisfitError
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.plan.plan import Plan
from tests.query import planted
from tests.query.inside import Handed, World, ask, faults, fixed_key, row
from tests.query.test_audits import LIMITS, people
from tests.query.test_replay import tallied

MEDIANS = "SELECT ward, median(nights) FROM stays GROUP BY ward"
DISTINCT = "SELECT ward, count(DISTINCT points) FROM stays GROUP BY ward"
NINTH = "SELECT quantile_cont(nights, 0.9) FROM stays"
LISTED = "SELECT quantile_cont(nights, [0.25, 0.5, 0.75]) FROM stays"
HELD = "SELECT quantile_interval(nights, 0.9) FROM stays"
MOST = "SELECT ward, max(nights) FROM stays GROUP BY ward"
MODES = "SELECT mode(ward) FROM stays"
URGENT = "SELECT ward, mode(urgent) FROM stays GROUP BY ward"
WARDS = ("a", "b", "c", "\x1b[31mred", "<img src=x onerror=alert(1)>")


def someone() -> list[dict[str, Any]]:
    """Many rows everywhere, each with another value."""
    count = itertools.count()
    return [row(99, ward=ward, nights=next(count) % 11, points=next(count)) for ward in WARDS for _ in range(9)]


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[tuple[World, World]]:
    for side in "ab":
        (tmp_path / side).mkdir()
    made = World(tmp_path / "a"), World(tmp_path / "b")
    yield made
    for world in made:
        world.close()


# Replay


def examined(sides: tuple[World, World]) -> list[str]:
    rows = [*people(), *[one | {"person": 98} for one in someone()]]
    kinds = [("unit", [*rows, *someone()]), ("order", Random("order").sample(rows, len(rows)))]
    found = []
    db = sides[0].load(rows, limits=LIMITS)
    texts = (MEDIANS, DISTINCT, NINTH, LISTED, MOST, MODES)
    base = {text: ask(db, text) for text in texts}
    whole = {text: tallied(db, seen) for text, seen in base.items()}
    for what, changed in kinds:
        other = sides[1].load(changed, limits=LIMITS)
        for text in texts:
            both = [(base[text], ask(other, text)), (whole[text], tallied(other, whole[text]))]
            found += [f"{what}: {text}: {fault}" for a, b in both for fault in faults(a, b, same=what != "unit")]
    return found


def test_replay_finds_nothing(sides: tuple[World, World]) -> None:
    assert examined(sides) == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("rows_of_a_unit_not_limited", "lost or won 9 rows in a group, and 3 was proven"),
        ("rows_of_a_unit_by_data_order", "order: "),
        ("choices_in_one_group", "moved in 2 groups, and 1 was proven"),
    ],
)
def test_replay_catches(sides: tuple[World, World], fault: str, words: str) -> None:
    with planted.REPLAY_CHOICES[fault]():
        found = examined(sides)
    assert any(words in sentence for sentence in found), found


def test_replay_catches_values_that_are_not_limited(sides: tuple[World, World]) -> None:
    with planted.rows_of_a_unit_not_limited():
        found = examined(sides)
    assert any("count(DISTINCT points)" in one and "steps in one group, and 3 was proven" in one for one in found)


# The gate


@pytest.mark.parametrize("text", [MEDIANS, MODES])
def test_the_gate_catches_a_choice_for_fewer_rows(sides: tuple[World, World], text: str) -> None:
    """The mechanism was made for one row, and a unit has three."""
    db = sides[0].load(people(), limits=Limits(max_groups=2, max_rows=1))
    made = db.plan(text, epsilon=1)
    wide = sides[0].load(people(), limits=Limits(max_groups=2, max_rows=3)).plan(text, epsilon=1)
    with pytest.raises(MisfitError):
        Handed(db, _with(wide, made)).draw(_counted(db, wide))


def test_the_gate_catches_a_choice_for_fewer_groups(sides: tuple[World, World]) -> None:
    made = sides[0].load(people(), limits=Limits(max_groups=1, max_rows=3)).plan(MEDIANS, epsilon=1)
    db = sides[0].load(people(), limits=Limits(max_groups=2, max_rows=3))
    wide = db.plan(MEDIANS, epsilon=1)
    with pytest.raises(MisfitError, match="changed coordinates"):
        Handed(db, _with(wide, made)).draw(_counted(db, wide))


def test_the_gate_catches_a_choice_that_was_not_paid_for(sides: tuple[World, World]) -> None:
    db = sides[0].load(people(), limits=LIMITS)
    cheap = db.plan(MEDIANS, epsilon=0.5).events
    log: list[str] = []
    db._session.log = log.append
    with mock.patch.object(Plan, "events", property(lambda self: cheap)), pytest.raises(EngineError):
        db.sql(MEDIANS, epsilon=1)
    assert "AccountingError" in log[0]


def _with(plan: Plan, other: Plan) -> Plan:
    pairs = zip(plan.measurements, other.mechanisms, strict=True)
    return replace(plan, measurements=tuple(replace(one, mechanism=mechanism) for one, mechanism in pairs))


def _counted(db: Any, plan: Plan) -> Any:
    with fixed_key():
        return exact_of(db, plan.aggregate)


# Audits


def audited(world: World, text: str, *, draws: int, groups: int = 2, rows: int = 3, few: int = 6) -> Finding:
    """What an audit proves of a question about few people, with the worst of them and without."""
    others = [row(person, ward=ward, nights=0, points=person) for person in range(few) for ward in WARDS[:2]]
    worst = [row(99, ward=ward, nights=10, points=100 + copy, urgent=True) for ward in WARDS for copy in range(9)]
    counted = []
    for held in ([*others, *worst], others):
        db = world.load(held, limits=Limits(max_groups=groups, max_rows=rows))
        plan = db.plan(text, epsilon=1)
        counted.append(_counted(db, plan))
    return lower_bound(Handed(db, plan), counted[0], counted[1], samples=draws)


@pytest.mark.parametrize(
    ("text", "draws"),
    [
        (MEDIANS, 3000),
        (DISTINCT, 4000),
        (NINTH, 6000),
        (LISTED, 2000),
        (HELD, 4000),
        (MOST, 3000),
        (MODES, 6000),
        (URGENT, 3000),
    ],
)
def test_audits_find_nothing(sides: tuple[World, World], text: str, draws: int) -> None:
    """At ε = 1; a false alarm has probability 1e-6. That they could find something is shown below."""
    found = audited(sides[0], text, draws=draws)
    assert not found.accuses(1.0), found


@pytest.mark.parametrize("text", [MEDIANS, MODES])
def test_audits_of_replaced_units_find_nothing(tmp_path: Path, text: str) -> None:
    world = World(tmp_path, budget=Budget(epsilon=Fraction(1000), neighbors=Neighbors.REPLACE_ONE))
    others = [row(person, ward=ward, nights=0) for person in range(4) for ward in WARDS[:2]]
    counted = []
    for nights, ward in ((10, "a"), (0, "b")):
        held = [*others, *(row(99, ward=ward, nights=nights) for _ in range(9))]
        db = world.load(held, limits=Limits(max_groups=2, max_rows=3))
        plan = db.plan(text, epsilon=1)
        counted.append(_counted(db, plan))
    found = lower_bound(Handed(db, plan), counted[0], counted[1], samples=3000)
    world.close()
    assert not found.accuses(1.0), found


@pytest.mark.parametrize(
    ("fault", "text", "options"),
    [
        ("rows_of_a_unit_not_limited", NINTH, {"rows": 1}),
        ("rows_of_a_unit_not_limited", DISTINCT, {"rows": 1}),
        ("choices_in_one_group", URGENT, {"groups": 5, "draws": 6000}),
        ("rank_moves_by_the_smaller_share", NINTH, {}),
        ("rank_of_one_row", NINTH, {"rows": 9, "few": 0}),
        ("ends_of_one_row_at_the_whole_price", HELD, {"rows": 9, "few": 0}),
    ],
)
def test_audits_catch(sides: tuple[World, World], fault: str, text: str, options: dict[str, int]) -> None:
    """Each loses so much more than 1 that an audit misses it once in a million times, or less."""
    with planted.AUDIT_CHOICES[fault]():
        found = audited(sides[0], text, **{"draws": 4000} | options)
    assert found.accuses(1.0), found


def test_every_fault_is_asked_about() -> None:
    tests: dict[Any, Any] = {test_replay_catches: planted.REPLAY_CHOICES, test_audits_catch: planted.AUDIT_CHOICES}
    for test, known in tests.items():
        marks = [mark for mark in test.pytestmark if mark.name == "parametrize"]
        assert {case[0] for case in marks[0].args[1]} == known.keys()


def test_a_choice_is_the_same_again_from_the_ledger(sides: tuple[World, World]) -> None:
    """Steps are stored, and values made of them again; at a lower ε the same answer is served."""
    db = sides[0].load(people(), limits=LIMITS)
    texts = ("SELECT ward, median(cost), max(nights), count(*) FROM stays GROUP BY ward", LISTED, MODES)
    for text in texts:
        first = db.sql(text, epsilon=1)
        again, later = db.sql(text, epsilon=1), db.sql(text, epsilon=0.5)
        assert first.rows == again.rows == later.rows
        assert first.entry == again.entry == later.entry
