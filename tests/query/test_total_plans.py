"""Rows of a unit counted over all groups together: sensitivities and noise, where it is declared, and what is said."""

import itertools
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

import hubbub as hb
from hubbub.mechanisms import Gaussian, Geometric
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors, Norm, Sensitivity
from hubbub.query.answer.diagnose import Cut
from hubbub.query.ops import Measure, Tally, Together
from hubbub.query.plan.choice import HistogramStatistic
from hubbub.query.plan.plan import Plan, plan
from hubbub.query.plan.statistic import Reach, bound_tally
from tests.query.asking import TABLES, Catalogue, policy, read
from tests.query.inside import World, row
from tests.query.test_diagnose import counted, cuts

F = Fraction
HALF = F(1, 2)
BY_POINTS = "FROM stays WHERE points IN (1, 2, 3, 4, 5, 6, 7) GROUP BY points"
REPLACED = Budget(epsilon=F(4), neighbors=Neighbors.REPLACE_ONE)
WITH_DELTA = Budget(epsilon=F(4), delta=F(1, 10**6))


# Plans


def limited(total: int | None = 12, *, groups: int = 5, rows: int = 10, **changes: Any) -> Policy:
    return policy(limits=Limits(max_groups=groups, max_rows=rows, max_total_rows=total), **changes)


def planned(shown: str, given: Policy, *, rest: str = BY_POINTS, epsilon: Fraction = HALF) -> Plan:
    return plan(read(f"SELECT {shown} {rest}", Catalogue(given)), given, epsilon=epsilon, delta=given.budget.delta / 10)


def norms(found: Plan, place: int = 0) -> tuple[Any, ...]:
    return shown_norms(found.measurements[place].sensitivity)


def norms_of(found: Plan, tally: Tally) -> tuple[Any, ...]:
    """Those of a tally by itself, however it is measured."""
    together, most = found.aggregate.together, found.aggregate.most_groups
    reach = Reach(groups=most, neighbors=found.policy.budget.neighbors, together=together)
    return shown_norms(bound_tally(tally, reach))


def shown_norms(proven: Sensitivity) -> tuple[Any, ...]:
    return proven.l0, proven.in_norm(Norm.L1), proven.in_norm(Norm.L2), proven.linf


def test_the_noise_of_a_count_is_that_of_twelve_rows() -> None:
    (noise,), (before,) = planned("count(*)", limited()).mechanisms, planned("count(*)", limited(None)).mechanisms
    assert isinstance(noise, Geometric)
    assert isinstance(before, Geometric)
    assert (noise.event.scale, before.event.scale) == (F(12 * 2), F(50 * 2))


def test_each_norm_of_a_count_and_of_a_sum() -> None:
    assert norms(planned("count(*)", limited())) == (5, 12, 10**2 + 2**2, 10)
    assert norms(planned("count(points)", limited())) == (5, 12, 104, 10)
    assert norms(planned("sum(age)", limited())) == (5, 12 * 110, 104 * 110**2, 10 * 110)
    assert norms(planned("sum(least(greatest(age - 20, -5), 10))", limited())) == (5, 120, 104 * 100, 100)
    mean = planned("avg(age)", limited())
    assert [norms(mean, place) for place in range(2)] == [(5, 12 * 55, 104 * 55**2, 550), (5, 12, 104, 10)]
    assert [one.a_row for one in mean.aggregate.tallies] == [(-55, 55), (0, 1)]
    assert mean.aggregate.together == Together(rows=10, total=12)


def test_gaussian_noise_is_that_of_the_squares() -> None:
    many = f"FROM stays WHERE points IN ({', '.join(map(str, range(60)))}) GROUP BY points"
    found, before = (
        planned("count(*)", limited(total, groups=60, rows=4, budget=WITH_DELTA), rest=many).mechanisms[0]
        for total in (202, None)
    )
    assert isinstance(found, Gaussian)
    assert isinstance(before, Gaussian)
    assert (found.sensitivity_squared, before.sensitivity_squared) == (F(50 * 16 + 2**2), F(60 * 16))
    assert found.sigma < before.sigma
    few = planned("count(*)", limited(12, groups=60, rows=4, budget=WITH_DELTA), rest=many).mechanisms[0]
    assert isinstance(few, Geometric), "12 rows are less in L1 than their √48 is with δ"
    assert few.event.scale == 24


def test_replaced_units_move_twice_as_far() -> None:
    assert norms(planned("count(*)", limited(budget=REPLACED))) == (7, 24, 2 * 104, 10), "of seven groups"
    mixed = planned("sum(least(greatest(age - 20, -5), 10))", limited(budget=REPLACED))
    assert norms(mixed) == (7, 2 * 120, 2 * 10 * 15 * 104, 150)
    nearly = planned("sum(least(greatest(age - 20, -5), 10))", limited(49, budget=REPLACED))
    assert norms(nearly)[2] == 5 * 150**2, "what is known group by group is less than 2 · 10 · 15 · 481"


@pytest.mark.parametrize(
    ("shown", "given", "rest"),
    [
        ("count(*), avg(age)", limited(50), BY_POINTS),
        ("count(*), avg(age)", limited(12, groups=1), BY_POINTS),
        ("count(*), avg(age)", limited(10, groups=5), "FROM stays"),
        ("count(*)", limited(20), "FROM stays WHERE points IN (1, 2) GROUP BY points"),
        ("count(DISTINCT patient_id), count(DISTINCT ward), median(age), mode(ward)", limited(), BY_POINTS),
        ("sum(age, contribution_bounds_per_group => (0, 100))", limited(), BY_POINTS),
        ("avg(age, contribution_bounds_per_group => (0, 100))", limited(), BY_POINTS),
        ("count(*, contribution_bounds_per_group => (0, 4))", limited(), BY_POINTS),
        (
            "count(*), sum(age)",
            limited(
                tables={**TABLES, "stays": replace(TABLES["stays"], unique=True)},
                enforced=frozenset({"stays"}),
                seen={"stays": NO_FILES},
            ),
            BY_POINTS,
        ),
    ],
)
def test_elsewhere_nothing_changes(shown: str, given: Policy, rest: str) -> None:
    plain = replace(given, limits=replace(given.limits, max_total_rows=None))
    found, before = planned(shown, given, rest=rest), planned(shown, plain, rest=rest)
    assert (found.aggregate, found.mechanisms) == (before.aggregate, before.mechanisms)
    assert found.aggregate.together is None


def test_what_the_question_bounds_itself_is_beside_it() -> None:
    found = planned("count(*), count(*, contribution_bounds_per_group => (0, 10)), median(age)", limited())
    assert [norms(found, place) for place in range(2)] == [(5, 12, 104, 10), (5, 50, 500, 10)]
    assert all(one.take.rows == 10 for one in found.measurements if isinstance(one.take, HistogramStatistic))


def test_fewer_rows_in_all_groups_are_fewer_in_one() -> None:
    assert limited(4).limits.rows == 4
    assert (limited(None).limits.rows, limited(10).limits.rows, Limits(max_total_rows=4).rows) == (10, 10, None)
    found = planned("count(*), sum(age)", limited(4))
    assert [norms(found, place) for place in range(2)] == [(5, 4, 16, 4), (5, 440, 440**2, 440)]
    assert norms(planned("count(*)", limited(4), rest="FROM stays")) == (1, 4, 16, 4)
    assert planned("count(*)", limited(10)).aggregate.together == Together(rows=10, total=10)


def test_each_grouping_set_has_its_own_total() -> None:
    found = planned(
        "count(*)",
        limited(),
        rest=BY_POINTS.replace("points", "ROLLUP (points)").replace("ROLLUP (points) IN", "points IN"),
    )
    assert [one.aggregate.together for one in found.sets] == [Together(rows=10, total=12), None]


def test_the_squares_are_the_most_there_can_be() -> None:
    for rows, total in itertools.product(range(1, 5), range(1, 10)):
        if rows <= total:
            vectors = itertools.product(range(rows + 1), repeat=-(-total // rows))
            meant = max(sum(one**2 for one in vector) for vector in vectors if sum(vector) <= total)
            assert Together(rows=rows, total=total).squares == meant


def test_replacing_moves_no_further_than_is_proven() -> None:
    """Every pair of allowances in three groups, with what can be added at its ends."""
    given = limited(groups=3, budget=REPLACED)
    for (low, high), (rows, total) in itertools.product(
        ((0, 1), (-1, 1), (-1, 2), (-3, 2), (-2, 5)), ((2, 3), (2, 5), (3, 4), (2, 2))
    ):
        allowances = [one for one in itertools.product(range(rows + 1), repeat=3) if sum(one) <= total]
        tally = Tally(measure=Measure.TOTAL, argument=None, bounds=(low * rows, high * rows), a_row=(low, high))
        together = Together(rows=rows, total=total)
        proven = bound_tally(tally, Reach(groups=3, neighbors=given.budget.neighbors, together=together))
        moved = [
            [max(high * a - low * b, high * b - low * a) for a, b in zip(one, other, strict=True)]
            for one in allowances
            for other in allowances
        ]
        assert max(max(steps) for steps in moved) <= (proven.linf or 0)
        assert max(sum(step**2 for step in steps) for steps in moved) <= (proven.in_norm(Norm.L2) or 0)
        reach = max(-low, high)
        assert proven.in_norm(Norm.L1) == min(2 * reach * total, 6 * reach * rows)


def test_it_is_never_more_noise() -> None:
    rng = Random("less")
    for _ in range(60):
        rows, groups = rng.randint(1, 6), rng.randint(2, 7)
        total, budget = rng.randint(1, rows * groups + 2), rng.choice((REPLACED, Budget(epsilon=F(4))))
        shown = rng.choice(("count(*)", "sum(least(greatest(age - 20, -5), 10))", "sum(age)", "avg(age)"))
        new, old = (planned(shown, limited(one, groups=groups, rows=rows, budget=budget)) for one in (total, None))
        assert len(new.aggregate.tallies) == len(old.aggregate.tallies)
        for less, more in zip(new.aggregate.tallies, old.aggregate.tallies, strict=True):
            pairs = zip(norms_of(new, less), norms_of(old, more), strict=True)
            assert all(left <= right for left, right in pairs), (shown, rows, groups, total)


# What is said


def test_explain_says_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    db = world.load([], limits=Limits(max_groups=5, max_rows=10, max_total_rows=12))
    text = "SELECT ward, count(*) FROM stays GROUP BY ward"
    told = db.explain(text, epsilon=1)
    assert "counted     a unit counts with at most 12 rows over at most 5 groups by ward\n" in str(told)
    assert told.to_dict()["rows_over_groups"][0]["rows"] == 12
    assert db.explain("SELECT count(*) FROM stays", epsilon=1).to_dict()["rows_over_groups"] == []
    sets = db.explain(text.replace("BY ward", "BY ROLLUP (ward, urgent)"), epsilon=1)
    assert [one["by"] for one in sets.to_dict()["rows_over_groups"]] == [["ward", "urgent"], ["ward"]]
    world.close()


def test_people_with_more_rows_are_counted(tmp_path: Path) -> None:
    world = World(tmp_path)
    rows = [
        *(row(1, ward=ward) for ward in "aabbc"),  # five rows
        *(row(2, ward="a") for _ in range(9)),  # three of one group
        *(row(3, ward=ward) for ward in "aaab"),
        *(row(4, ward=ward) for ward in ("a", "a", "b", "nowhere", "nowhere")),
        *(row(5, ward=ward) for ward in "aaaaabbbb"),
        *(row(None, ward=ward) for ward in "aaabbb"),
    ]
    text = "SELECT ward, count(*) FROM stays GROUP BY ward"
    db = world.load(rows, limits=Limits(max_groups=2, max_rows=3, max_total_rows=4))
    found = counted(db, text)
    assert found["with more than 4 rows over all groups, at most 3 rows of each"] == 2
    assert found["with more than 3 rows in a group"] == 2
    assert cuts(db, text)[Cut.TOGETHER] == 1
    plain = world.load(rows, limits=Limits(max_groups=2, max_rows=3, max_total_rows=6))
    assert cuts(plain, text)[Cut.TOGETHER] == 0
    world.close()


def test_it_is_declared_where_the_data_is_opened(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("who,ward\n" + "".join(f"{who},{ward}\n" for who in range(50) for ward in "aabbb"))
    given: dict[str, Any] = {
        "unit": "who",
        "types": {"who": "integer", "ward": "text"},
        "keys": {"ward": ["a", "b"]},
        "budget": hb.Budget(epsilon=F(1000)),
    }
    with hb.open(
        tmp_path / "s.csv",
        limits=hb.Limits(max_groups=2, max_rows=3, max_total_rows=3),
        ledger=tmp_path / "ledger",
        **given,
    ) as db:
        assert db.policy.limits.max_total_rows == 3
        found = db.sql("SELECT ward, count(*) AS n FROM s GROUP BY ward", epsilon=500)
        assert sum(one["n"] for one in found.to_dicts()) == 50 * 3, "so many that noise is nearly never there"
    policy_text = f"""
[budget]
account = "a"
epsilon = 1
[limits]
max_groups = 2
max_rows = 3
max_total_rows = 3
[tables.s]
path = "{tmp_path}/s.csv"
format = "csv"
unit = "who"
[tables.s.columns]
who = {{ type = "integer" }}
ward = {{ type = "text", keys = ["a", "b"] }}
"""
    (tmp_path / "hubbub.toml").write_text(policy_text)
    with hb.open(tmp_path / "hubbub.toml", ledger=tmp_path / "other") as db:
        assert db.policy.limits == Limits(max_groups=2, max_rows=3, max_total_rows=3)
