"""Audits of questions through the whole product: honest ones are not accused, and planted faults are, in few rows."""

from fractions import Fraction
from itertools import islice
from typing import Any

import pytest

from hubbub.audit.chance import Chance
from hubbub.audit.examine import Settings, examine
from hubbub.audit.subjects.bought_facts import OfLook, lacks, looks_of
from hubbub.audit.subjects.queries import OfQuery, audit_of, literals
from hubbub.errors import MissingKeys, NotAllowed
from hubbub.policy.tables import Limits, Policy, Table, TableSource
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.testing.made_up import Schema
from tests.query import planted, planted_own, posts, test_paths, test_relations_sql
from tests.query.inside import TABLES

PURE = Budget(epsilon=Fraction(4))
SLACK = Budget(epsilon=Fraction(4), delta=Fraction(1, 10))
REPLACED = Budget(epsilon=Fraction(4), neighbors=Neighbors.REPLACE_ONE)
POSTS = {
    "posts": Table(
        name="posts",
        source=TableSource(format="duckdb", paths=("/nowhere.duckdb",), table="posts"),
        columns=posts.POSTS,
        unit="person",
    )
}


def policy(budget: Budget = PURE, tables: Any = TABLES, **limits: Any) -> Policy:
    chosen = Limits(**({"max_groups": 2, "max_rows": 3, "buy": False} | limits))
    return Policy(account="people", budget=budget, tables=tables, limits=chosen)


SHOP, BOTH = test_paths.TABLES, test_relations_sql.TABLES
COUNTS = "SELECT ward, count(*) FROM stays GROUP BY ward"
SUMS = "SELECT ward, sum(cost) FROM stays GROUP BY ward"
NIGHTS = "SELECT sum(nights) FROM stays"
MEDIANS = "SELECT ward, median(nights) FROM stays GROUP BY ward"
WORDS = "SELECT word, count(*) FROM posts GROUP BY word"
BEDS = "SELECT floor, sum(beds) FROM stays JOIN places ON ward = id WHERE floor IN (1, 2, 3) GROUP BY floor"
EACH = "SELECT count(*) FROM (SELECT person, ward FROM stays GROUP BY person, ward) AS s"

GEOMETRIC = "SELECT ward, geometric_mean(greatest(cost, 1)) FROM stays GROUP BY ward"
WEIGHTED = "SELECT ward, weighted_avg(cost, nights) FROM stays GROUP BY ward"
ANY = "SELECT ward, bool_or(nights > 4) FROM stays GROUP BY ward"

FIRST = (
    "SELECT ward, count(*) FROM (SELECT ward, row_number() OVER (PARTITION BY person ORDER BY urgent) AS n FROM stays) "
    "AS s WHERE n <= 2 GROUP BY ward"
)

QUICK = Settings(pairs=16, pilots=3, pilot=400, steps=2, samples=4000)
"""For honest questions: as many kinds of pairs, fewer draws."""


@pytest.mark.parametrize(
    ("held", "text", "delta"),
    [
        (policy(), "SELECT count(*), count(DISTINCT points) FROM stays WHERE points > 2", None),
        (policy(), SUMS, None),
        (policy(), "SELECT avg(nights) FROM stays", None),
        (policy(), MEDIANS, None),
        (policy(), "SELECT median_interval(nights) FROM stays", None),
        (policy(), GEOMETRIC, None),
        (policy(), WEIGHTED, None),
        (policy(), ANY, None),
        (policy(REPLACED), "SELECT bool_and(nights > 1), weighted_avg(cost, nights) FROM stays", None),
        (policy(), "SELECT ward, count(*) FROM stays GROUP BY ROLLUP (ward)", None),
        (policy(), BEDS, None),
        (policy(), EACH, None),
        (policy(), FIRST, None),
        (policy(tables=BOTH), "SELECT count(*) FROM stays s JOIN visits v ON s.person = v.who", None),
        (policy(tables=SHOP), "SELECT count(*) FROM items", None),
        (policy(REPLACED), "SELECT ward, count(*), sum(nights) FROM stays GROUP BY ward", None),
        (policy(SLACK, POSTS), WORDS, Fraction(1, 20)),
        (policy(SLACK, max_groups=5), "SELECT ward, count(*), sum(cost) FROM stays GROUP BY ward", Fraction(1, 20)),
    ],
)
def test_honest_questions_are_not_accused(held: Policy, text: str, delta: Fraction | None) -> None:
    """A false alarm has probability 1e-6 each."""
    found = examine(OfQuery(held, text, epsilon=1, delta=delta), settings=QUICK)
    assert not found.accused, found
    assert found.tried.pairs == 16


FAULTS: list[tuple[str, Any, Policy, str]] = [
    ("no bounding of groups", planted.no_bounding_of_groups, policy(), COUNTS),
    ("groups in the order of the data", planted.groups_by_data_order, policy(), COUNTS),
    ("charged by half", planted.charged_by_half, policy(), COUNTS),
    ("one draw for all groups", planted.one_draw_for_all_groups, policy(), COUNTS),
    ("geometric means in all groups", planted.no_bounding_of_groups, policy(), GEOMETRIC),
    ("weights of one row", planted.sensitivity_of_one_row, policy(), WEIGHTED),
    ("counterexamples in one group", planted.sensitivity_of_one_group, policy(), ANY),
    ("windows with ties", planted_own.OWN["windows_tied"][0], policy(), FIRST),
]


@pytest.mark.parametrize(("fault", "held", "text"), [pytest.param(*one[1:], id=one[0]) for one in FAULTS])
def test_a_planted_fault_is_found_with_default_settings(fault: Any, held: Policy, text: str) -> None:
    with fault():
        found = audit_of(held, text, epsilon=1)
    assert found.counterexample is not None, found
    rows = [line for line in found.counterexample.shown.splitlines() if line.startswith("  ")]
    assert len(rows) <= 16, found


def test_neighbours_differ_in_one_unit() -> None:
    """In every table that has rows of units, and through paths too; public tables have none."""
    schema = Schema(policy=policy(tables=SHOP))
    for pair in islice(schema.pairs(Chance(1)), 12):
        assert pair.x.others is pair.y.others
        assert not any(pair.y.mine.values())
        keys = {row["cust"] for row in pair.x.mine["customers"]}
        assert not keys & {row["cust"] for row in pair.x.others["customers"]}
        assert {row["person"] for row in pair.x.mine["customers"]} == {0}
        customers = [row["cust"] for row in pair.x.tables()["customers"]]
        assert len(customers) == len(set(customers))
    assert "places" not in pair.x.tables()


def test_replaced_units_have_other_rows() -> None:
    schema = Schema(policy=policy(REPLACED))
    assert all(any(pair.y.mine.values()) for pair in islice(schema.pairs(Chance(1)), 6))


def test_what_cannot_be_asked_cannot_be_audited() -> None:
    with pytest.raises(MissingKeys):
        OfQuery(policy(), "SELECT day, count(*) FROM stays GROUP BY day", epsilon=1)
    with pytest.raises(NotAllowed, match="Declare"):
        OfQuery(policy(max_rows=None, buy=True), "SELECT count(*) FROM stays", epsilon=1)


def test_what_a_question_buys_is_audited_in_its_place() -> None:
    """Honest looks are not accused: false alarm below 1e-5."""
    held = policy(max_rows=None, max_groups=None, buy=True)
    text = "SELECT ward, count(*) FROM stays GROUP BY ward"
    found = looks_of(held, text)
    assert [one.name for one in found] == [
        f"rows of a unit in a group, bought for {text}",
        f"groups of a unit, bought for {text}",
    ]
    for one in found:
        report = examine(one, settings=QUICK)
        assert not report.accused, str(report)
        assert "stays" in one.show_pair(next(one.pairs(Chance(1))))
    with pytest.raises(NotAllowed, match="lacks nothing"):
        OfLook(policy(), "SELECT count(*) FROM stays", epsilon=1)
    assert not lacks(policy(), "SELECT count(*) FROM stays")


def test_literals_of_a_question() -> None:
    assert literals("SELECT 1 FROM t WHERE a = 'it''s' AND b > -2.5 AND c1 < 7") == (1, "it's", -2.5, 7)
