"""Audits of the whole path find nothing; every fault that is planted in it is caught, and by what is said here."""

from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

import hubbub as hb
from hubbub.audit import Finding, lower_bound
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import EngineError, LedgerCorrupt
from hubbub.mechanisms import Gaussian, Geometric, Mechanism
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from tests.query import interpreter, planted
from tests.query.inside import PUBLIC, Handed, World, ask, faults, fixed_key, row

COUNTS = "SELECT ward, count(*) FROM stays GROUP BY ward"
UNITS = "SELECT count(DISTINCT person) FROM stays"
SUMS = "SELECT ward, sum(cost) FROM stays GROUP BY ward"
NIGHTS = "SELECT sum(nights) FROM stays"
MEANS = "SELECT avg(nights) FROM stays"
LIMITS = Limits(max_groups=2, max_rows=3)


def people() -> list[dict[str, Any]]:
    """Thirty, each in all five wards, in no order."""
    wards = ("a", "b", "c", "\x1b[31mred", "<img src=x onerror=alert(1)>")
    rows = [row(person, ward=ward, cost=20.0, nights=2) for person in range(30) for ward in wards[: 3 + person % 3]]
    return Random("people").sample(rows, len(rows))


def someone() -> list[dict[str, Any]]:
    """The worst that one person can do: many rows everywhere, and values beyond everything."""
    wards = ("a", "b", "c", "\x1b[31mred", "<img src=x onerror=alert(1)>")
    return [row(99, ward=ward, cost=1e308, nights=2_000_000_000) for ward in (*wards, "c") for _ in range(9)]


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
    """What replay finds, on neighbours of each kind."""
    rows = people()
    orphans = [row(None, ward="a", cost=50.0, nights=5) for _ in range(4)]
    kinds = [
        ("unit", [*rows, *someone()]),
        ("orphans", [*rows, *orphans]),
        ("order", Random("order").sample(rows, len(rows))),
    ]
    found = []
    db = sides[0].load(rows, limits=LIMITS)
    base = {text: ask(db, text) for text in (COUNTS, SUMS, NIGHTS, MEANS)}
    for what, changed in kinds:
        other = sides[1].load(changed, limits=LIMITS)
        for text, seen in base.items():
            found += [f"{what}: {fault}" for fault in faults(seen, ask(other, text), same=what != "unit")]
    return found


def test_replay_finds_nothing(sides: tuple[World, World]) -> None:
    assert examined(sides) == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("no_bounding_of_groups", "unit: tally of count(*) moved by 5 groups"),
        ("groups_by_data_order", "order: tally of count(*) moved"),
        ("groups_chosen_among_all_units", "unit: tally of count(*) moved by 3 groups"),
        ("rows_of_null_units_kept", "orphans: tally of count(*) moved"),
        ("count_not_bounded", "steps in one group, and 30 was proven"),
        ("places_not_bounded", "unit: tally of count(*) moved by 9 steps in one group, and 3 was proven"),
        ("uniqueness_believed", "moved by 5 groups, and 1 was proven"),
        ("no_clamp", "steps in one group"),
        ("no_clamp_of_a_units_total", "steps in one group"),
        ("an_error_for_some_rows", "unit: outcome differ"),
        ("sensitivity_of_one_group", "moved by 2 groups, and 1 was proven"),
        ("sensitivity_of_one_row", "steps in one group, and 1 was proven"),
    ],
)
def test_replay_catches(sides: tuple[World, World], fault: str, words: str) -> None:
    with planted.REPLAY[fault]():
        found = examined(sides)
    assert any(words in sentence for sentence in found), found


def test_every_fault_is_asked_about() -> None:
    marks = [mark for mark in test_replay_catches.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {fault for fault, _ in marks[0].args[1]} == planted.REPLAY.keys()


def test_the_interpreter_catches_rows_that_are_not_clamped(sides: tuple[World, World]) -> None:
    """A unit's total is clamped after all, so that privacy holds; what it adds is wrong."""
    rows = [*people(), row(99, cost=1e9), row(99, cost=-1e9)]
    db = sides[0].load(rows, limits=LIMITS)
    plan = db.plan("SELECT sum(cost), avg(cost) FROM stays", epsilon=1)
    tables: interpreter.Tables = {"stays": rows, "places": PUBLIC}
    meant = list(interpreter.aggregate(plan.aggregate, tables, lambda unit, own: own).values())
    for fault, right in ((nullcontext, True), (planted.no_clamp_of_rows, False)):
        with fault(), fixed_key():
            assert (exact_of(db, plan.aggregate).tallies == meant) is right


# The gate and the ledger


def test_the_gate_catches_mechanisms_for_half_the_sensitivity(sides: tuple[World, World]) -> None:
    db = sides[0].load(people(), limits=LIMITS)
    with planted.calibrated_for_half():
        assert "MisfitError" in _cause(db, COUNTS)


def test_the_gate_catches_a_charge_at_half_epsilon(sides: tuple[World, World]) -> None:
    db = sides[0].load(people(), limits=LIMITS)
    with planted.charge_at_half_epsilon():
        assert "AccountingError" in _cause(db, COUNTS)


def _cause(db: hb.Database, text: str) -> str:
    """Ask what fails after the charge, and return what the owner's log says of it."""
    log: list[str] = []
    db._session.log = log.append
    with pytest.raises(EngineError):
        db.sql(text, epsilon=1)
    return log[0]


def test_verify_catches_a_ledger_that_counts_half(sides: tuple[World, World]) -> None:
    db = sides[0].load(people(), limits=LIMITS)
    db.sql(NIGHTS, epsilon=1)
    db.ledger.verify()
    with planted.charged_by_half():
        db.sql(COUNTS, epsilon=1)
    with pytest.raises(LedgerCorrupt):
        db.ledger.verify()


# Audits


def audited(
    world: World,
    text: str,
    *,
    draws: int = 10_000,
    groups: int = 2,
    delta: Fraction = Fraction(0),
    drawn_from: type[Mechanism] = Geometric,
) -> Finding:
    """What an audit proves of a question about few people, with the worst of them and without."""
    few = [row(person, ward="b", cost=20.0, nights=2) for person in range(3)]
    cells = []
    for rows in ([*few, *someone()], few):
        db = world.load(rows, limits=Limits(max_groups=groups, max_rows=3))
        plan = db.plan(text, epsilon=1, delta=delta)
        assert {type(one) for one in plan.mechanisms} == {drawn_from}
        with fixed_key():
            cells.append(exact_of(db, plan.aggregate).tallies)
    return lower_bound(Handed(db, plan), cells[0], cells[1], samples=draws, delta=float(delta))


@pytest.mark.parametrize(
    ("text", "draws"), [(COUNTS, 10_000), (UNITS, 10_000), (NIGHTS, 4000), (SUMS, 4000), (MEANS, 4000)]
)
def test_audits_find_nothing(sides: tuple[World, World], text: str, draws: int) -> None:
    """At ε = 1; a false alarm has probability 1e-6. That they could find something is shown below."""
    found = audited(sides[0], text, draws=draws)
    assert not found.accuses(1.0), found


def test_an_audit_of_gaussian_noise_finds_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, budget=Budget(epsilon=Fraction(4), delta=Fraction(1, 10)))
    text = "SELECT ward, count(*), sum(cost) FROM stays GROUP BY ward"
    found = audited(world, text, draws=2000, groups=5, delta=Fraction(1, 20), drawn_from=Gaussian)
    world.close()
    assert not found.accuses(1.0), found


@pytest.mark.parametrize(
    ("fault", "text", "groups"),
    [
        ("halved_scale", UNITS, 2),
        ("halved_scale", NIGHTS, 2),
        ("one_draw_for_all_groups", COUNTS, 2),
        ("clamped_at_the_exact_value", UNITS, 2),
        ("no_noise_on_empty_groups", COUNTS, 2),
        ("sensitivity_of_one_row", NIGHTS, 2),
        ("no_bounding_of_groups", COUNTS, 1),
        ("count_not_bounded", "SELECT count(*) FROM stays", 2),
        ("no_clamp", NIGHTS, 2),
    ],
)
def test_audits_catch(sides: tuple[World, World], fault: str, text: str, groups: int) -> None:
    """Each loses so much more than 1 that 3,000 draws miss it once in a million times, or less."""
    with planted.AUDIT[fault]():
        found = audited(sides[0], text, draws=3000, groups=groups)
    assert found.accuses(1.0), found


def test_an_audit_catches_noise_for_one_group_of_five(sides: tuple[World, World]) -> None:
    with planted.sensitivity_of_one_group():
        found = audited(sides[0], COUNTS, draws=6000, groups=5)
    assert found.accuses(1.0), found
