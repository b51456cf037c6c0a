"""Rows that are alone in their group are added up at once, and every number is that of gathering all rows by unit."""

from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest

from hubbub.engines.lower import private_keys, unit_sums
from hubbub.engines.lower.aggregate import aggregate
from hubbub.engines.nodes.scalars import Scalar
from hubbub.engines.nodes.words import NULL, case, cast, infix, name, number, relation
from hubbub.policy.kinds import Type, of
from hubbub.policy.tables import TableColumn as Declared
from hubbub.query.expression import Column
from hubbub.query.ops import Aggregate, Group, Measure, Scan, ScanColumn, Tally
from tests.engines.evaluating import table_of
from tests.engines.raw import printed

WHOLE, REAL, TEXT = (of(one) for one in (Type.INTEGER, Type.REAL, Type.TEXT))
KINDS = {"x": WHOLE, "y": TEXT, "whole": WHOLE, "real": REAL}
TABLE = table_of(
    Declared(name="who", kind=WHOLE), *(Declared(name=column, kind=kind) for column, kind in KINDS.items())
)
SCAN = Scan(table="t", columns=tuple(ScanColumn(column, kind, column) for column, kind in KINDS.items()), unit="who")
COLUMNS = {column: Column(column, kind) for column, kind in KINDS.items()}
LISTED = (Group(name="x", expression=COLUMNS["x"], values=tuple(range(6))),)
UNLISTED = (Group(name="y", expression=COLUMNS["y"], values=(), private=True),)
BOTH = (Group(name="x", expression=COLUMNS["x"], values=(), private=True), *UNLISTED)
CASES = 60


def total(column: str, bounds: tuple[int, int], **more: Any) -> Tally:
    clamp, grid = (Fraction(-2), Fraction(3)), Fraction(1, 4)
    return Tally(
        measure=Measure.TOTAL, argument=COLUMNS[column], clamp=clamp, grid=grid, bounds=bounds, most_rows=2, **more
    )


TALLIES = (
    Tally(measure=Measure.ROWS, argument=None, bounds=(0, 2)),
    Tally(measure=Measure.ROWS, argument=COLUMNS["y"], bounds=(1, 2)),
    Tally(measure=Measure.UNITS, argument=None),
    Tally(measure=Measure.UNITS, argument=COLUMNS["real"]),
    total("real", (-16, 24), origin=Fraction(1, 2)),
    total("real", (-3, 2)),
    total("whole", (-9, 40)),
    total("whole", (2, 40)),
    total("whole", (-40, -1), origin=Fraction(1)),
)
"""Bounds that one row cannot leave, and bounds that it can; one that leaves no room for nothing."""


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with duckdb.connect(config={"threads": 2}) as made:
        made.execute("SET preserve_insertion_order = false; SET disabled_optimizers = 'top_n_window_elimination'")
        yield made


def fill(connection: Any, chance: np.random.Generator) -> None:
    """Rows of a few units, some with many in a group; units, keys and values are missing now and then."""
    many = int(chance.integers(0, 80))

    def drawn(low: int, high: int, share: float = 0.1) -> list[int | None]:
        return [None if chance.random() < share else int(one) for one in chance.integers(low, high, many)]

    columns = [drawn(0, 9), drawn(-1, 7), drawn(0, 4), drawn(-5, 6), drawn(-30, 40)]
    connection.execute(
        "CREATE OR REPLACE TABLE rows AS SELECT unnest($1::BIGINT[]) AS who, unnest($2::BIGINT[]) AS x, "
        "'k' || unnest($3::BIGINT[]) AS y, unnest($4::BIGINT[]) AS whole, unnest($5::BIGINT[]) / 8 AS real",
        columns,
    )


def asked(chance: np.random.Generator, groups: tuple[Group, ...]) -> Aggregate:
    chosen = chance.choice(len(TALLIES), size=int(chance.integers(1, 5)), replace=False)
    tallies = (TALLIES[1], *(TALLIES[place] for place in chosen if place != 1))
    weights = int(chance.integers(4, 20)) if groups[0].private and chance.integers(2) else None
    most = int(chance.integers(1, 5))
    return Aggregate(input=SCAN, groups=groups, tallies=tallies, most_groups=most, weight_bits=weights)


def numbers(connection: Any, op: Aggregate, *, gathered: bool = False) -> list[tuple[Any, ...]]:
    """All rows of the statement; ``gathered``: as if no row were alone."""
    with mock.patch.object(unit_sums, "is_plain", return_value=False) if gathered else nullcontext():
        made = printed(aggregate(op, {"t": TABLE}, {"t": relation("rows")}))
    assert ('"own"' in made.sql) is not gathered
    for keys in made.keys:
        connection.execute(
            f'CREATE OR REPLACE TEMP TABLE "{keys.table}" AS SELECT CAST(v AS {keys.type}) AS "value", p AS "place" '
            "FROM (SELECT unnest(CAST($1 AS VARCHAR[])) AS v, unnest(CAST($2 AS INTEGER[])) AS p)",
            [list(keys.values), list(keys.places)],
        )
    return sorted(connection.execute(made.sql, [7, 11][: made.secrets]).fetchall(), key=str)


def compare(connection: Any, groups: tuple[Group, ...]) -> list[bool]:
    """Whether both ways agree, for one random question and table after the other."""
    chance, same = np.random.default_rng(5), []
    for _ in range(CASES):
        fill(connection, chance)
        op = asked(chance, groups)
        same.append(numbers(connection, op) == numbers(connection, op, gathered=True))
    return same


@pytest.mark.parametrize("groups", [LISTED, UNLISTED, BOTH], ids=["listed", "unlisted", "two unlisted"])
def test_numbers_are_those_of_gathering_all_rows(connection: Any, groups: tuple[Group, ...]) -> None:
    assert all(compare(connection, groups))


def _everybody_alone(order: Scalar) -> Scalar:
    return cast(NULL, "int64")


def _first_rows_alone(order: Scalar) -> Scalar:
    return case((infix(">", name("place"), number(0)), name("unit")))


FAULTS = {
    "everybody alone": ("tell_alone", _everybody_alone),
    "the first row of a group alone": ("tell_alone", _first_rows_alone),
    "one row within all bounds": ("_is_within_bounds", lambda tally: True),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("groups", [LISTED, UNLISTED], ids=["listed", "unlisted"])
def test_faults_are_seen(connection: Any, groups: tuple[Group, ...], fault: str) -> None:
    what, planted = FAULTS[fault]
    with mock.patch.object(unit_sums, what, planted):
        where = private_keys if what == "tell_alone" else unit_sums
        with mock.patch.object(where, what, planted):
            assert not all(compare(connection, groups))


@pytest.mark.parametrize("keys", ["listed", "unlisted"])
def test_a_row_that_is_not_recognised_is_gathered_with_itself(connection: Any, keys: str) -> None:
    """As where the hashes of two groups of a unit are equal: nothing changes."""

    def nobody_alone(order: Scalar) -> Scalar:
        return name("unit")

    with (
        mock.patch.object(unit_sums, "tell_alone", nobody_alone),
        mock.patch.object(private_keys, "tell_alone", nobody_alone),
    ):
        assert all(compare(connection, LISTED if keys == "listed" else UNLISTED))
