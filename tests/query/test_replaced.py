"""Units that are replaced: one moves exactly what was proven, with every set of limits, through the engine too."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.mechanisms import Geometric
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm, Sensitivity
from hubbub.query.aggregates.histogram import BinCounts
from hubbub.query.expression import literal
from hubbub.query.ops import ExactCounts, Histogram, Measure, Tally
from hubbub.query.plan.both_ends import BothEnds
from hubbub.query.plan.plan import Plan
from hubbub.query.plan.statistic import Reach, TallyStatistic, bound_tally
from tests.query.inside import WARDS, World, fixed_key, row

F = Fraction
ONE = F(1)
Vector = tuple[int, ...]


# Every pair of units


def apart(units: list[Vector]) -> tuple[int, int, int, int]:
    """The greatest l0, L1, squared L2 and Linf between any two."""
    steps = [[abs(a - b) for a, b in zip(*pair, strict=True)] for pair in itertools.combinations(units, 2)]
    return (
        max(sum(step != 0 for step in each) for each in steps),
        max(map(sum, steps)),
        max(sum(step**2 for step in each) for each in steps),
        max(map(max, steps)),
    )


def stated(proven: Sensitivity) -> tuple[Any, ...]:
    return proven.l0, proven.l1, proven.l2_squared, proven.linf


def reach_of(groups: int, cells: int) -> Reach:
    return Reach(groups=groups, neighbors=Neighbors.REPLACE_ONE, cells=cells)


LIMITED = [(groups, cells) for cells in range(1, 5) for groups in range(1, cells + 1)]


@pytest.mark.parametrize("bounds", [(0, 1), (0, 3), (-1, 2), (-2, 2), (1, 2), (-3, -1), (2, 2)])
@pytest.mark.parametrize(("groups", "cells"), LIMITED)
def test_a_tally_moves_as_far_as_was_proven_and_no_further(groups: int, cells: int, bounds: tuple[int, int]) -> None:
    numbers = sorted({0, *bounds})  # a unit without a row there, or without a value, adds 0
    units = [one for one in itertools.product(numbers, repeat=cells) if sum(map(bool, one)) <= groups]
    tally = Tally(measure=Measure.TOTAL, argument=None, bounds=bounds)
    assert stated(bound_tally(tally, reach_of(groups, cells))) == apart(units)


@pytest.mark.parametrize(("rows", "bins"), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize(("groups", "cells"), [one for one in LIMITED if one[1] <= 3])
def test_bins_do_too(groups: int, cells: int, rows: int, bins: int) -> None:
    held = [one for one in itertools.product(range(rows + 1), repeat=bins) if sum(one) in {0, rows}]
    units = [sum(chosen, ()) for chosen in itertools.product(held, repeat=cells) if sum(map(any, chosen)) <= groups]
    ends = F(0), F(bins - 1)
    histogram = Histogram(argument=literal(0), clamp=ends, origin=F(0), grid=ONE, most_rows=rows)
    proven = BinCounts(histogram=histogram, column=0, reach=reach_of(groups, cells)).sensitivity
    l0, *others = stated(proven)
    found, *rest = apart(units)
    assert others == rest
    assert l0 >= found


@pytest.mark.parametrize(("groups", "cells"), [one for one in LIMITED if one[1] <= 3])
def test_distances_from_both_bounds_do_too(groups: int, cells: int) -> None:
    reach, half, rows = reach_of(groups, cells), 2, 1
    count = TallyStatistic(tally=Tally(measure=Measure.ROWS, argument=None), column=0, reach=reach)
    total = TallyStatistic(tally=Tally(measure=Measure.TOTAL, argument=None, bounds=(-2, 2)), column=1, reach=reach)
    both = BothEnds(reach=reach, count=count, total=total, half=half, rows=rows)
    pairs = [(0, 0), (1, -half), (1, 0), (1, half)]
    units = [
        tuple(map(int, both(ExactCounts(cells=(), tallies=list(chosen)))))
        for chosen in itertools.product(pairs, repeat=cells)
        if sum(rows for rows, _ in chosen) <= groups
    ]
    assert stated(both.sensitivity) == apart(units)


def test_what_nobody_listed_may_be_any_number_of_groups() -> None:
    reach = Reach(groups=2, neighbors=Neighbors.REPLACE_ONE)
    assert stated(bound_tally(Tally(measure=Measure.UNITS, argument=None), reach)) == (4, 4, 4, 1)


# Through the engine


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    held = World(tmp_path, budget=Budget(epsilon=F(10**6), neighbors=Neighbors.REPLACE_ONE))
    yield held
    held.close()


def counted(world: World, text: str, rows: list[dict[str, Any]], **limits: Any) -> tuple[Plan, ExactCounts]:
    others = [row(other, ward=ward, cost=3.0, nights=2, points=1) for other in (1, 2, 3) for ward in "ab"]
    db = world.load([*others, *rows], limits=Limits(**{"max_groups": 1, "max_rows": 1} | limits))
    made = db.plan(text, epsilon=1)
    with fixed_key():
        return made, exact_of(db, made.aggregate)


def full(person: int, wards: Iterable[str], many: int, **values: Any) -> list[dict[str, Any]]:
    return [row(person, ward=ward, **values) for ward in wards for _ in range(many)]


HIGH, LOW = {"nights": 10, "cost": 100.0}, {"nights": 0, "cost": 0.0}
ABOVE = "sum(least(greatest(points, -3), 7))"
REACHED: list[tuple[str, dict[str, int], list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("SELECT count(*) FROM stays", {}, full(9, "a", 3), []),
    ("SELECT count(*) FROM stays", {"max_rows": 4}, full(9, "a", 9), []),
    ("SELECT count(*) FROM stays WHERE ward = 'b'", {"max_rows": 2}, full(9, "b", 2), full(8, "a", 2)),
    ("SELECT count(DISTINCT person) FROM stays WHERE ward = 'b'", {}, full(9, "b", 1), full(8, "a", 1)),
    ("SELECT sum(nights) FROM stays", {"max_rows": 2}, full(9, "a", 2, **HIGH), full(8, "a", 2, **LOW)),
    (f"SELECT {ABOVE} FROM stays", {"max_rows": 2}, full(9, "a", 2, points=99), full(8, "a", 2, points=-99)),
    ("SELECT sum(50 + least(greatest(nights, 0), 10)) FROM stays", {}, full(9, "a", 1, **HIGH), []),
    ("SELECT ward, count(*) FROM stays GROUP BY ward", {}, full(9, "a", 1), full(8, "b", 1)),
    (
        "SELECT ward, count(*) FROM stays GROUP BY ward",
        {"max_groups": 3, "max_rows": 2},
        full(9, "abc", 2),
        [one for ward in WARDS[3:] for one in full(8, [ward], 2)],
    ),
    (
        "SELECT coalesce(urgent, false), count(*) FROM stays GROUP BY 1",
        {"max_groups": 2},
        [*full(9, "a", 1, urgent=True), *full(9, "a", 1, urgent=False)],
        [],
    ),
    (
        "SELECT urgent, count(*) FROM stays GROUP BY urgent",
        {"max_groups": 2},
        [*full(9, "a", 1, urgent=True), *full(9, "a", 1, urgent=False)],
        full(8, "a", 1),
    ),
    ("SELECT histogram(nights, [5]) FROM stays", {"max_rows": 2}, full(9, "a", 2, **HIGH), full(8, "a", 2, **LOW)),
    ("SELECT count(DISTINCT points) FROM stays", {"max_rows": 3}, [row(9, points=n) for n in (5, 6, 7)], []),
]
"""Questions, limits, and two units that replace each other and are as far apart in L1 as any."""


def steps(made: Plan, one: ExactCounts, other: ExactCounts) -> list[int]:
    take = made.measurements[0].take
    pairs = zip(take(one), take(other), strict=True)
    return [abs(int(a) - int(b)) for a, b in pairs]


@pytest.mark.parametrize(("text", "limits", "mine", "instead"), REACHED)
def test_the_proven_distance_is_reached_through_the_engine(
    world: World, text: str, limits: dict[str, int], mine: list[dict[str, Any]], instead: list[dict[str, Any]]
) -> None:
    made, one = counted(world, text, mine, **limits)
    again, other = counted(world, text, instead, **limits)
    assert made.mechanisms == again.mechanisms
    moved, proven = steps(made, one, other), made.measurements[0].sensitivity
    squares = proven.in_norm(Norm.L2)
    assert squares is not None
    assert sum(moved) == proven.in_norm(Norm.L1)
    assert sum(step**2 for step in moved) <= squares


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("SELECT count(*) FROM stays", 1),
        ("SELECT count(DISTINCT person) FROM stays", 1),
        ("SELECT sum(nights) FROM stays", 10),
        ("SELECT ward, count(*) FROM stays GROUP BY ward", 2),
    ],
)
def test_the_noise_is_that_of_the_tight_bound(world: World, text: str, moved: int) -> None:
    db = world.load([], limits=Limits(max_groups=1, max_rows=1))
    assert db.plan(text, epsilon=1).mechanisms == (
        Geometric(epsilon=ONE, sensitivity=moved, neighbors=Neighbors.REPLACE_ONE),
    )
    assert db.plan(text, epsilon=1).events[0].neighbors is Neighbors.REPLACE_ONE


def test_answers_with_more_noise_are_not_taken_for_these(world: World) -> None:
    """What was drawn under the bounds of before is found under another name: its margins are wider."""
    policy = world.load([], limits=Limits(max_groups=1, max_rows=1)).policy
    added = replace(policy, budget=Budget(epsilon=ONE))
    assert policy.fingerprint != added.fingerprint
