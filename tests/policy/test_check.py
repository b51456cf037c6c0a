"""The owner's check: exact counts of what does not keep a declaration."""

from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from hubbub.engines.duckdb.owner_check import Check, OwnerReport, check
from hubbub.engines.duckdb.probe import literal, outside, quote
from hubbub.errors import PolicyError
from hubbub.policy.kinds import Type, integer, of
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import Budget

ROWS = """
    (1, 10, 1.5, 'north', DATE '2024-01-01', '1'),
    (1, 20, 'nan', 'south', NULL, 'x'),
    (2, 300, 'inf', 'NORTH', DATE '2024-01-02', '200'),
    (2, NULL, -1, NULL, DATE '10000-01-01', NULL),
    (2, 0, 2.25, 'north', DATE '2024-01-01', '-128'),
    (NULL, 101, 2, 'it''s', DATE '2024-01-01', '127')
"""


def columns(**changes: Any) -> tuple[TableColumn, ...]:
    made = {
        "who": TableColumn(name="who", kind=of(Type.INTEGER)),
        "n": TableColumn(name="n", kind=of(Type.INTEGER), bounds=(Fraction(0), Fraction(100))),
        "cost": TableColumn(name="cost", kind=of(Type.REAL), bounds=(Fraction(0), Fraction(2))),
        "ward": TableColumn(name="ward", kind=of(Type.TEXT), keys=("north", "it's")),
        "day": TableColumn(name="day", kind=of(Type.DATE), keys=(date(2024, 1, 1), None)),
        "code": TableColumn(name="code", kind=integer(-128, 127)),
    }
    return tuple((made | changes).values())


def run(*, unique: bool = False, limits: Limits = Limits(), unit: str | None = "who", **changes: Any) -> OwnerReport:  # noqa: B008
    table = Table(
        name='my "t"', source=TableSource(format="frame"), columns=columns(**changes), unit=unit, unique=unique
    )
    policy = Policy(
        account="a", budget=Budget(epsilon=Fraction(1)), tables={table.name: table}, limits=limits, version="v7"
    )
    connection = duckdb.connect()
    connection.execute(
        f'CREATE TABLE "my ""t""" (who BIGINT, n INTEGER, cost DOUBLE, ward VARCHAR, day DATE, code VARCHAR); '
        f'INSERT INTO "my ""t""" VALUES {ROWS}'
    )
    return check(policy, lambda sql: connection.execute(sql).fetchall())


def against(report: OwnerReport) -> dict[tuple[str | None, Check], tuple[int, int]]:
    return {(f.column, f.fact): (f.against, f.out_of) for f in report.findings}


def test_every_declaration_is_counted() -> None:
    report = run()
    assert against(report) == {
        ("who", Check.READABLE): (0, 6),
        ("who", Check.UNIT): (1, 6),
        ("n", Check.READABLE): (0, 6),
        ("n", Check.BOUNDS): (2, 6),
        ("cost", Check.READABLE): (2, 6),
        ("cost", Check.BOUNDS): (2, 6),
        ("ward", Check.READABLE): (0, 6),
        ("ward", Check.KEYS): (3, 6),
        ("day", Check.READABLE): (1, 6),
        ("day", Check.KEYS): (1, 6),
        ("code", Check.READABLE): (2, 6),
    }
    assert report.holds
    assert report.version == "v7"
    assert report.unique == frozenset()


def test_promises_that_are_broken() -> None:
    report = run(ward=TableColumn(name="ward", kind=of(Type.TEXT, nullable=False)), unique=True)
    found = against(report)
    assert found["ward", Check.NOT_NULL] == (1, 6)
    assert found["who", Check.UNIQUE] == (2, 2)
    assert not report.holds
    assert report.unique == frozenset()
    assert '✗ "my ""t""".ward: not null: not 1 of 6 rows. Take the declaration back: nullable = true.' in str(report)
    assert '✗ "my ""t""".who: one row a unit: not 2 of 2 units.' in str(report)
    assert str(report).startswith("Version v7: broken promises.")


def test_promises_that_are_kept() -> None:
    report = run(unit="n", unique=True, n=TableColumn(name="n", kind=of(Type.INTEGER)))
    assert against(report)["n", Check.UNIQUE] == (0, 5)
    assert report.unique == {'my "t"'}
    assert report.holds
    assert '✓ "my ""t""".n: one row a unit: yes, all 5 units.' in str(report)


@pytest.mark.parametrize(("most", "many"), [(1, 2), (2, 1), (3, 0)])
def test_units_with_many_rows(most: int, many: int) -> None:
    report = run(limits=Limits(max_rows=most))
    assert against(report)["who", Check.ROWS] == (many, 2)
    assert report.holds
    report = run(limits=Limits(max_total_rows=most))
    assert against(report)["who", Check.TOTAL] == (many, 2)
    assert ("who", Check.ROWS) not in against(report)
    assert f"within max_total_rows: {f'not {many} of' if many else 'yes, all'} 2 units." in str(report)
    assert report.holds


def test_a_missing_key_can_be_a_key() -> None:
    report = run(ward=TableColumn(name="ward", kind=of(Type.TEXT), keys=("north", None)))
    assert against(report)["ward", Check.KEYS] == (3, 6)
    report = run(ward=TableColumn(name="ward", kind=of(Type.TEXT), keys=(None,)))
    assert against(report)["ward", Check.KEYS] == (5, 6)


def test_a_public_table_has_no_units_to_check() -> None:
    report = run(unit=None)
    assert not {fact for _, fact in against(report)} & {Check.UNIT, Check.UNIQUE, Check.ROWS}


def test_bounds_are_compared_on_both_sides_exactly() -> None:
    report = run(n=TableColumn(name="n", kind=of(Type.INTEGER), bounds=(Fraction(0), Fraction(300))))
    assert against(report)["n", Check.BOUNDS] == (0, 6)
    report = run(n=TableColumn(name="n", kind=of(Type.INTEGER), bounds=(Fraction(1), Fraction(300))))
    assert against(report)["n", Check.BOUNDS] == (1, 6)
    report = run(cost=TableColumn(name="cost", kind=of(Type.REAL), bounds=(Fraction(-1), Fraction(9, 4))))
    assert against(report)["cost", Check.BOUNDS] == (0, 6)


def test_units_are_counted_only_where_something_was_said_of_them() -> None:
    asked: list[str] = []

    def ask(sql: str) -> list[tuple[int, ...]]:
        asked.append(sql)
        return [(0,) * 12]

    table = Table(name="t", source=TableSource(format="frame"), columns=columns(), unit="who")
    check(Policy(account="a", budget=Budget(epsilon=Fraction(1)), tables={"t": table}), ask)
    assert len(asked) == 1
    assert outside(table.columns[0]) == "false"


def test_an_answer_of_another_shape() -> None:
    table = Table(name="t", source=TableSource(format="frame"), columns=columns(), unit=None)
    policy = Policy(account="a", budget=Budget(epsilon=Fraction(1)), tables={"t": table})
    with pytest.raises(PolicyError, match="another shape"):
        check(policy, lambda sql: [(1, 2)])


VALUES: Sequence[Any] = [
    None,
    True,
    False,
    0,
    -(2**127) + 1,
    2**127 - 1,
    0.1,
    5e-324,
    -1.7976931348623157e308,
    "",
    "it's",
    "a\0b",
    "\0",
    "'; DROP TABLE t; --",
    "é\U0001f600",
    date(1, 1, 1),
    date(9999, 12, 31),
    datetime(2024, 2, 29, 23, 59, 59, 999999),
]


@pytest.mark.parametrize("value", VALUES)
def test_constants_come_back(value: Any) -> None:
    ((found,),) = duckdb.connect().execute(f"SELECT {literal(value)}").fetchall()
    assert found == value
    assert type(found) is type(value)


def test_names_come_back() -> None:
    name = 'a"; DROP TABLE t; --'
    assert duckdb.connect().execute(f"SELECT 1 AS {quote(name)}").description[0][0] == name
