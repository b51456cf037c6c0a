"""Units that no limit cuts are not ranked, and every number is the one that ranking all rows gives."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest

from hubbub.engines.lower import total_limit
from hubbub.engines.lower.aggregate import aggregate
from hubbub.engines.nodes.words import relation
from hubbub.policy.kinds import Type, of
from hubbub.policy.tables import TableColumn as Declared
from hubbub.query.expression import Column
from hubbub.query.ops import Aggregate, Group, Measure, Scan, ScanColumn, Tally, Together
from tests.engines.evaluating import table_of
from tests.engines.raw import printed

WHOLE = of(Type.INTEGER)
TABLE = table_of(Declared(name="who", kind=WHOLE), Declared(name="x", kind=WHOLE), Declared(name="y", kind=WHOLE))
NARROW, WIDE = tuple(range(3)), range(1 << 40)
CASES, NOBODY = 60, 11


def counting(
    *, rows: int, groups: int, total: int | None = None, values: Any = NARROW, low: int = 0, **more: Any
) -> Aggregate:
    """Rows in cells of two axes: at most so many of a unit in a cell, in so many cells, and altogether."""
    scan = Scan(table="t", columns=(ScanColumn("x", WHOLE, "x"), ScanColumn("y", WHOLE, "y")), unit="who")
    axes = tuple(
        Group(name=axis, expression=Column(axis, WHOLE), values=own) for axis, own in (("x", values), ("y", NARROW))
    )
    together = None if total is None else Together(rows=rows, total=total)
    tally = Tally(measure=Measure.ROWS, argument=None, bounds=(low, rows), a_row=None if total is None else (0, 1))
    return Aggregate(input=scan, groups=axes, tallies=(tally,), most_groups=groups, together=together, **more)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with duckdb.connect(config={"threads": 2}) as made:
        made.execute("SET preserve_insertion_order = false; SET disabled_optimizers = 'top_n_window_elimination'")
        for place in range(2):
            made.execute(f'CREATE TABLE keys{place} AS SELECT i AS "value", i AS "place" FROM range(3) AS t(i)')
        yield made


def numbers(connection: Any, op: Aggregate, *, ranked: bool = False, one_more: bool = False) -> dict[int, int]:
    """Of every cell that is told; ``ranked``: as if every unit were beyond the limits."""
    least = total_limit.least_limit(op)
    with mock.patch.object(total_limit, "least_limit", return_value=0 if ranked else least + one_more):
        made = printed(aggregate(op, {"t": TABLE}, {"t": relation("rows")}, wide=True))
    assert ("SEMI JOIN" in made.sql) is not ranked
    return {code: int(many) for code, many in connection.execute(made.sql, [7, 11][: made.secrets]).fetchall()}


def drawn(connection: Any, chance: np.random.Generator, values: Any) -> Aggregate:
    """Rows of a few units, with numbers of rows around the limits; some have no unit, or no cell."""
    many = int(chance.integers(0, 60))
    who: list[int | None] = [None if one == NOBODY else one for one in chance.integers(0, NOBODY + 1, many).tolist()]
    cells = [chance.integers(-1, 4, many).tolist() for _ in range(2)]
    connection.execute(
        "CREATE OR REPLACE TABLE rows AS SELECT unnest(?::BIGINT[]) AS who, unnest(?::BIGINT[]) AS x, "
        "unnest(?::BIGINT[]) AS y",
        [who, *cells],
    )
    rows, groups = (int(chance.integers(1, 6)) for _ in range(2))
    total = int(chance.integers(rows, rows * groups + 1)) if chance.integers(2) else None
    return counting(rows=rows, groups=groups, total=total, values=values)


@pytest.mark.parametrize("values", [NARROW, WIDE], ids=["listed", "counted"])
def test_numbers_are_those_of_ranking_everybody(connection: Any, values: Any) -> None:
    """Also a cell with rows of which none counts is told, with 0. One row more that is not cut would be seen."""
    chance = np.random.default_rng(3)
    seen = 0
    for _ in range(CASES):
        op = drawn(connection, chance, values)
        meant = numbers(connection, op, ranked=True)
        assert numbers(connection, op) == meant, op
        seen += numbers(connection, op, one_more=True) != meant
    assert seen > CASES // 10


@pytest.mark.parametrize(
    ("op", "least"),
    [
        (counting(rows=3, groups=5), 3),
        (counting(rows=5, groups=3), 3),
        (counting(rows=5, groups=4, total=5), 4),
        (counting(rows=3, groups=4, total=6), 3),
        (replace(counting(rows=3, groups=4), together=Together(rows=3, total=2)), 2),
        (replace(counting(rows=3, groups=4), together=Together(rows=2, total=9)), 2),
        (counting(rows=3, groups=4, low=1), 0),
        (counting(rows=0, groups=4), 0),
        (replace(counting(rows=3, groups=4), groups=()), 0),
    ],
)
def test_the_least_limit_decides(op: Aggregate, least: int) -> None:
    assert total_limit.least_limit(op) == least


def test_only_rows_alone_are_counted_so() -> None:
    op = counting(rows=3, groups=4)
    (tally,) = op.tallies
    units, values = replace(tally, measure=Measure.UNITS), replace(tally, argument=Column("x", WHOLE))
    private = replace(op.groups[0], values=(), private=True)
    for other in (
        replace(op, tallies=(units,)),
        replace(op, tallies=(values,)),
        replace(op, tallies=(tally, tally)),
        replace(op, groups=(private, op.groups[1])),
    ):
        assert total_limit.least_limit(other) == 0


def test_a_question_is_ranked_as_ever_and_nothing_is_where_there_is_nothing_to_bound() -> None:
    """A small question would take longer to plan."""
    tables, origins = {"t": TABLE}, {"t": relation("rows")}
    assert "SEMI JOIN" not in printed(aggregate(counting(rows=3, groups=4), tables, origins)).sql
    assert "SEMI JOIN" not in printed(aggregate(counting(rows=3, groups=9), tables, origins, wide=True)).sql
    assert (
        "SEMI JOIN" not in printed(aggregate(counting(rows=1, groups=1, single=True), tables, origins, wide=True)).sql
    )
