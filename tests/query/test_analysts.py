"""Twelve questions after TPC-H, as analysts write them: accepted, right without noise, moved by one customer no further
than was proven. ``bench analysts`` asks the same at a larger size, and says how noisy they are."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench import trade
from bench.asked import Asked, Cells, differences, noiseless
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.errors import QueryError
from hubbub.ledger import Ledger, Marks
from hubbub.policy.stamps import NO_FILES
from hubbub.policy.tables import Limits, Policy, TableSource
from hubbub.privacy.filter import Budget
from hubbub.session.database import Database
from tests.query import inside

CUSTOMERS = 600
WIDE = Limits(max_groups=10_000, max_rows=900, max_unit_rows=900)
NARROW = Limits(max_groups=2, max_rows=3, max_unit_rows=20)
BY_NAME = pytest.mark.parametrize("asked", trade.QUESTIONS, ids=lambda one: one.name.split()[0])


class World:
    """The tables, all of them or without one customer."""

    def __init__(self, folder: Path) -> None:
        self.engine = inside.Inside(inside.connected())
        self.ledger = Ledger(folder / "ledger", marks=Marks(folder / "marks"))
        self.run = self.engine.connection.execute
        trade.make(self.run, customers=CUSTOMERS)
        self.tables = trade.declared(_source, lambda name: _columns(self.run(f"DESCRIBE {name}").fetchall()))
        for name in trade.PRIVATE:
            self.run(f"CREATE TABLE all_{name} AS FROM {name}")

    def without(self, customer: int, seed: int) -> None:
        """Take a customer's rows away (0: nobody's), and put the others into another order."""
        for name, unit in trade.PRIVATE.items():
            self.run(
                f"CREATE OR REPLACE TABLE {name} AS FROM all_{name} WHERE {unit} <> {customer} "
                f"ORDER BY hash({unit} + {seed}), hash(all_{name})"
            )

    def opened(self, limits: Limits) -> Database:
        policy = Policy(
            account="people",
            budget=Budget(epsilon=Fraction(10**6)),
            tables=self.tables,
            limits=limits,
            version=str(next(inside._VERSIONS)),
            enforced=frozenset({"customer"}),
            seen={"customer": NO_FILES},
        )
        return Database(policy, ledger=self.ledger, engine=self.engine)

    def plain(self, asked: Asked) -> Cells:
        rows = self.run(asked.text).fetchall()
        return {tuple(row[: asked.keys]): tuple(row[asked.keys :]) for row in rows}


def _source(name: str) -> TableSource:
    return TableSource(format="duckdb", paths=("/nowhere.duckdb",), table=name)


def _columns(described: list[tuple[Any, ...]]) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in described]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("trade"))
    yield made
    made.engine.connection.close()
    made.ledger.close()


@BY_NAME
def test_without_noise_it_is_what_duckdb_says(world: World, asked: Asked) -> None:
    world.without(0, 1)
    db = world.opened(WIDE)
    planned = db.plan(asked.text, epsilon=1)
    expected = world.plain(asked)
    assert any(value for numbers in expected.values() for value in numbers)
    assert differences(noiseless(planned, exact_of(db, planned.aggregate)), expected, tolerance=1e-5) == []


@BY_NAME
def test_one_customer_moves_it_by_what_was_proven(world: World, asked: Asked) -> None:
    rng = Random(asked.name)
    world.without(0, 1)
    before = inside.ask(world.opened(NARROW), asked.text)
    assert before.outcome == "answered"
    for gone in (*rng.sample(range(1, CUSTOMERS + 1), 2), 0):
        world.without(gone, 2 + gone)
        after = inside.ask(world.opened(NARROW), asked.text)
        assert inside.faults(before, after, same=not gone) == []


def test_a_customer_that_counts_is_among_those_taken_away(world: World) -> None:
    """So that the test above can fail: without limits, somebody moves the first question by more than they allow."""
    asked = trade.QUESTIONS[0]
    world.without(0, 1)
    whole = inside.exact(world.opened(WIDE), asked.text)
    most = max(
        range(1, 20), key=lambda one: world.run(f"SELECT count(*) FROM lineitem WHERE l_custkey = {one}").fetchone()[0]
    )
    world.without(most, 1)
    count = len(whole[0]) - 1
    fewer = inside.exact(world.opened(WIDE), asked.text)
    moved = [abs(one[count] - other[count]) for one, other in zip(whole, fewer, strict=True)]
    assert NARROW.max_rows is not None
    assert max(moved) > NARROW.max_rows


@pytest.mark.parametrize(
    ("shift", "first"),
    [
        ("DATE '1994-01-31' + INTERVAL '1' MONTH", "1994-02-28"),
        ("DATE '1996-01-31' + INTERVAL 1 MONTH", "1996-02-29"),
        ("DATE '1994-01-31' + INTERVAL '11 months'", "1994-12-31"),
        ("DATE '1994-03-31' - INTERVAL '1' QUARTER", "1993-12-31"),
        ("DATE '1996-02-29' + INTERVAL '-1' YEAR", "1995-02-28"),
        ("(DATE '1994-12-30' + INTERVAL (2) DAYS)", "1995-01-01"),
        ("DATE '1994-12-30' - INTERVAL '1' WEEK + INTERVAL '1' DAY", "1994-12-24"),
        ("TIMESTAMP '1994-12-30 23:00:00' + INTERVAL '90' MINUTE", "1994-12-31 00:30:00"),
    ],
)
def test_constants_are_moved_as_duckdb_moves_them(world: World, shift: str, first: str) -> None:
    (said,) = world.run(f"SELECT CAST({shift} AS TIMESTAMP) = TIMESTAMP '{first}'").fetchone()
    assert said
    db = world.opened(WIDE)
    side = "TIMESTAMP" if " " in first else "DATE"
    one, other = (
        db.plan(f"SELECT count(*) FROM orders WHERE {when} > {side} '1994-06-01'", epsilon=1).aggregate
        for when in (shift, f"{side} '{first}'")
    )
    assert one == other


@pytest.mark.parametrize(
    "condition",
    [
        "o_orderdate + INTERVAL '3' DAY > DATE '1994-01-01'",
        "o_orderdate > '1994-01-01' + INTERVAL '3' DAY",
        "o_orderdate > DATE '1994-01-01' + INTERVAL '1.5' DAY",
        "o_orderdate > DATE '1994-01-01' + INTERVAL '1 year 2 days'",
        "o_orderdate > DATE '1994-01-01' + INTERVAL '3' DECADE",
        "o_orderdate > DATE '1994-01-01' + INTERVAL '3' HOUR",
        "o_orderdate > DATE '1994-01-01' + INTERVAL '9000' YEAR",
        "o_orderdate > DATE '1994-01-01' - INTERVAL '999999999' DAY",
        "o_orderdate > DATE '1994-01-01' + INTERVAL o_orderkey DAY",
        "o_orderdate > INTERVAL '3' DAY",
    ],
)
def test_what_is_no_constant_date_is_not_moved(world: World, condition: str) -> None:
    with pytest.raises(QueryError):
        world.opened(WIDE).plan(f"SELECT count(*) FROM orders WHERE {condition}", epsilon=1)


@pytest.mark.parametrize(
    "shown",
    [
        "count(*) FILTER (WHERE o_totalprice > 100000)",
        "count_if(o_totalprice > 100000)",
        "count(o_orderkey) FILTER (o_orderstatus = 'F')",
        "sum(o_totalprice) FILTER (WHERE o_orderstatus = 'F')",
        "avg(o_totalprice) FILTER (WHERE o_orderstatus = 'F')",
        "max(o_totalprice) FILTER (WHERE o_orderstatus = 'F')",
        "count(DISTINCT o_custkey) FILTER (WHERE o_orderstatus = 'P')",
        "count(DISTINCT CASE WHEN o_orderstatus = 'P' THEN o_custkey END)",
        "count(DISTINCT CASE WHEN o_orderstatus = 'P' THEN o_custkey ELSE -1 END)",
        "count(DISTINCT o_orderdate) FILTER (WHERE o_orderstatus = 'P')",
    ],
)
def test_rows_that_an_aggregate_leaves_out(world: World, shown: str) -> None:
    """By month, which a range in WHERE makes public: what DuckDB says, and moved by one customer as was proven."""
    text = (
        f"SELECT month(o_orderdate) AS m, {shown} AS x FROM orders "
        "WHERE o_orderdate >= DATE '1995-05-01' AND o_orderdate < DATE '1995-05-01' + INTERVAL 3 MONTH GROUP BY m"
    )
    asked = Asked(name="", text=text, keys=1, max_groups=1, max_rows=1)
    world.without(0, 1)
    db = world.opened(WIDE)
    planned = db.plan(text, epsilon=1)
    expected = world.plain(asked)
    assert len(expected) == 3
    assert differences(noiseless(planned, exact_of(db, planned.aggregate)), expected, tolerance=1e-5) == []
    before = inside.ask(world.opened(NARROW), text)
    (gone,) = world.run(
        "SELECT o_custkey FROM orders WHERE o_orderstatus = 'P' GROUP BY 1 ORDER BY 1 LIMIT 1"
    ).fetchone()
    world.without(gone, 3)
    assert inside.faults(before, inside.ask(world.opened(NARROW), text)) == []


def test_units_within_case_are_counted_as_units(world: World) -> None:
    db = world.opened(WIDE)
    for shown, measure in (
        ("CASE WHEN o_orderstatus = 'P' THEN o_custkey END", "units"),
        ("CASE WHEN o_orderstatus = 'P' THEN o_custkey + 0 END", "distinct"),
        ("CASE WHEN o_orderstatus = 'P' THEN o_custkey ELSE 0 END", "distinct"),
        ("CASE WHEN o_orderstatus = 'P' THEN o_custkey WHEN true THEN o_orderkey END", "distinct"),
        ("CASE WHEN o_orderstatus = 'P' THEN o_orderkey END", "distinct"),
    ):
        (tally,) = db.plan(f"SELECT count(DISTINCT {shown}) FROM orders", epsilon=1).aggregate.tallies
        assert tally.measure == measure
