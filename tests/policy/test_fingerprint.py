"""The fingerprint changes with what a question means and where it is read, and with nothing else; it is frozen."""

import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest

from hubbub.policy.fingerprint import canonical
from hubbub.policy.kinds import Kind, Type, integer, of
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import Budget

COLUMNS = (
    TableColumn(name="who", kind=integer(0, 999, nullable=False)),
    TableColumn(name="cost", kind=of(Type.REAL), bounds=(Fraction(0), Fraction(1, 10))),
    TableColumn(name="ward", kind=of(Type.TEXT), keys=("a", "é", None)),
    TableColumn(name="score", kind=of(Type.REAL), keys=(0.1, 2.0)),
    TableColumn(name="day", kind=of(Type.DATE), keys=(date(2024, 2, 29),)),
    TableColumn(name="at", kind=of(Type.TIMESTAMP), keys=(datetime(2024, 2, 29, 12),)),
    TableColumn(name="late", kind=of(Type.BOOLEAN), keys=(True, False)),
)
STAYS = Table(name="stays", source=TableSource(format="frame"), columns=COLUMNS, unit="who")
WARDS = Table(
    name="wards", source=TableSource(format="frame"), columns=(TableColumn(name="ward", kind=of(Type.TEXT)),), unit=None
)
POLICY = Policy(account="a", budget=Budget(epsilon=Fraction(1)), tables={"stays": STAYS, "wards": WARDS})
FROZEN = "3a96ac74954108c0aada2d5c957055c877cec4d5cf14e93328a93a5e3bed6587"


def stays(**changes: Any) -> Policy:
    return replace(POLICY, tables={"stays": replace(STAYS, **changes), "wards": WARDS})


def column(place: int, **changes: Any) -> Policy:
    return stays(columns=(*COLUMNS[:place], replace(COLUMNS[place], **changes), *COLUMNS[place + 1 :]))


def test_it_is_frozen() -> None:
    assert POLICY.fingerprint == FROZEN


def test_another_process_finds_the_same() -> None:
    code = (
        "from fractions import Fraction\n"
        "from hubbub.policy.kinds import Type, of\n"
        "from hubbub.policy.tables import *\n"
        "t = Table(name='t', source=TableSource(format='frame'), unit=None,\n"
        "          columns=(TableColumn(name='x', kind=of(Type.TEXT), keys=('a', 'b', 'ü')),))\n"
        "print(Policy(account='a', budget=Budget(epsilon=Fraction(1)), tables={'t': t}).fingerprint)\n"
    )
    run = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert run[0].stdout == run[1].stdout
    assert len(run[0].stdout.strip()) == 64


@pytest.mark.parametrize(
    "same",
    [
        replace(POLICY, account="b"),
        replace(POLICY, budget=Budget(epsilon=Fraction(2), delta=Fraction(1, 10**9))),
        replace(POLICY, version="2"),
        replace(POLICY, ledger="/somewhere"),
        replace(POLICY, tables={"wards": WARDS, "stays": STAYS}),
        replace(POLICY, limits=Limits(seconds=1, memory="1GB", temporary="1GB", threads=1, lanes=2, max_cells=5)),
        stays(unusable={"photo": "It holds bytes."}),
        column(1, grid=Fraction(1, 1 << 24)),  # the step it has anyway
    ],
)
def test_what_does_not_change_the_meaning_does_not_change_it(same: Policy) -> None:
    assert same.fingerprint == FROZEN


OTHERS = [
    stays(source=TableSource(format="frame", opening="a")),
    stays(source=TableSource(format="frame", opening="b")),
    stays(source=TableSource(format="parquet", paths=("/stays.parquet",))),
    stays(source=TableSource(format="parquet", paths=("/stays.parquet", "/more.parquet"))),
    stays(source=TableSource(format="parquet", paths=("/more.parquet", "/stays.parquet"))),
    stays(source=TableSource(format="parquet", paths=("/old/stays.parquet",))),
    stays(source=TableSource(format="csv", paths=("/stays.parquet",))),
    stays(source=TableSource(format="duckdb", paths=("/stays.duckdb",), table="stays")),
    stays(source=TableSource(format="duckdb", paths=("/stays.duckdb",), table="visits")),
    replace(POLICY, tables={"stays": STAYS, "wards": replace(WARDS, source=TableSource(format="frame", opening="a"))}),
    replace(POLICY, limits=Limits(max_groups=2)),
    replace(POLICY, limits=Limits(max_rows=1)),
    replace(POLICY, limits=Limits(max_total_rows=1)),
    replace(POLICY, limits=Limits(max_total_rows=2)),
    replace(POLICY, limits=Limits(max_fanout=1)),
    replace(POLICY, limits=Limits(max_unit_rows=1)),
    replace(POLICY, tables={"stays": STAYS}),
    replace(POLICY, tables={"visits": replace(STAYS, name="visits"), "wards": WARDS}),
    stays(unit=None),
    stays(unit="ward"),
    stays(unique=True),
    stays(columns=COLUMNS[:-1]),
    stays(columns=COLUMNS[::-1]),
    column(0, name="Who"),
    column(0, kind=integer(0, 1000, nullable=False)),
    column(0, kind=integer(-1, 999, nullable=False)),
    column(0, kind=integer(0, 999)),
    column(0, grid=Fraction(2)),
    column(0, kind=Kind(type=Type.TEXT, nullable=False)),
    column(1, bounds=(Fraction(0), Fraction(1, 5))),
    column(1, bounds=(Fraction(1, 100), Fraction(1, 10))),
    column(1, bounds=(Fraction(0), Fraction(0.1))),
    column(1, grid=Fraction(1, 4)),
    column(1, bounds=None),
    column(2, keys=("a", "é")),
    column(2, keys=("é", "a", None)),
    column(2, keys=None),
    column(3, keys=(0.1 + 2**-56, 2.0)),
    column(4, keys=(date(2024, 3, 1),)),
    column(5, keys=(datetime(2024, 2, 29, 12, 0, 0, 1),)),
    column(6, keys=(False, True)),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.fingerprint[:6])
def test_what_changes_the_meaning_changes_it(other: Policy) -> None:
    assert other.fingerprint != FROZEN


def test_no_two_of_them_agree() -> None:
    found = [other.fingerprint for other in OTHERS]
    assert len(set(found)) == len(found)


def test_what_is_hashed_is_plain_and_sorted() -> None:
    text = canonical(POLICY)
    assert text.isascii()
    assert '"bounds":["0/1","1/10"]' in text
    assert '"step":"1/16777216"' in text
    assert '"keys":["0x1.999999999999ap-4","0x1.0000000000000p+1"]' in text
    assert text.index('"stays"') < text.index('"wards"')
