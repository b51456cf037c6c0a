"""Values in whole steps of a grid, against exact fractions."""

from collections.abc import Sequence
from fractions import Fraction

import pytest

from hubbub.engines.lower.grid_steps import bound_total, steps
from hubbub.engines.nodes.words import name
from hubbub.errors import CapacityError
from hubbub.policy.kinds import INT64, INT128, Kind, integer
from hubbub.query.expression import Column
from hubbub.query.ops import Measure, Tally
from tests.engines.evaluating import REAL, SHARED, WHOLE, table_sql
from tests.engines.raw import sql

F = Fraction


def tally(clamp: tuple[Fraction, Fraction] | None, origin: Fraction, grid: Fraction, kind: Kind) -> Tally:
    return Tally(measure=Measure.TOTAL, argument=Column("c0", kind), clamp=clamp, origin=origin, grid=grid)


def stepped(op: Tally, kind: Kind, values: Sequence[int | float | None]) -> list[int | None]:
    text = sql(steps(op, name("c0"), kind))
    rows = table_sql([kind], [(value,) for value in values])
    SHARED.execute(f"CREATE OR REPLACE TABLE t AS SELECT row_number() OVER () AS n, * FROM {rows}")
    found = SHARED.execute(f"SELECT {text} AS v, typeof(v) FROM t ORDER BY n").fetchall()
    assert {one[1] for one in found} == {"BIGINT"}
    return [one[0] for one in found]


def exactly(op: Tally, value: int | None) -> int | None:
    if value is None:
        return None
    low, high = op.clamp or (F(value), F(value))
    return round((min(max(F(value), low), high) - op.origin) / op.grid)


@pytest.mark.parametrize("kind", [WHOLE, integer(-1000, 1000), integer(*INT128)])
@pytest.mark.parametrize("clamp", [(F(-50), F(50)), (F(-5, 2), F(7, 2)), (F(3), F(3)), (F(-1001), F(2000))])
def test_whole_numbers_are_exact(kind: Kind, clamp: tuple[Fraction, Fraction]) -> None:
    values = [None, *range(-12, 13), -51, -50, 50, 51, -1000, 1000, *kind.range]
    for grid in (F(1), F(2), F(4), F(3), F(1, 4), F(2, 3), F(10, 7)):
        for origin in (F(0), F(3), F(-7, 2)):
            op = tally(clamp, origin, grid, kind)
            assert stepped(op, kind, values) == [exactly(op, value) for value in values]


def test_without_bounds_the_range_is_enough() -> None:
    op = tally(None, F(0), F(1), WHOLE)
    assert stepped(op, WHOLE, [*INT64, 0, None]) == [*INT64, 0, None]
    with pytest.raises(CapacityError):
        steps(tally(None, F(0), F(1), integer(0, 1 << 63)), name("c0"), integer(0, 1 << 63))
    with pytest.raises(CapacityError):
        steps(tally(None, F(0), F(1, 2), WHOLE), name("c0"), WHOLE)
    assert stepped(tally(None, F(0), F(2), integer(0, 1 << 63)), integer(0, 1 << 63), [1 << 63, 3]) == [1 << 62, 2]


@pytest.mark.parametrize("grid", [F(1, 4), F(1), F(8), F(1, 10), F(1, 1 << 20)])
@pytest.mark.parametrize("origin", [F(0), F(1, 2), F(-3)])
def test_reals_follow_double_arithmetic(grid: Fraction, origin: Fraction) -> None:
    op = tally((F(-100), F(100)), origin, grid, REAL)
    values: list[float | None] = [
        0.0,
        -0.0,
        0.125,
        0.375,
        0.625,
        -0.125,
        1.5,
        2.5,
        4.0,
        12.0,
        99.999,
        100.0,
        100.1,
        -1e300,
        1e300,
        0.1,
        None,
    ]
    wanted = [
        None if value is None else round((min(max(value, -100.0), 100.0) - float(origin)) / float(grid))
        for value in values
    ]
    assert stepped(op, REAL, values) == wanted


def test_reals_need_bounds_that_fit() -> None:
    for clamp in (None, (F(0), F(1 << 63)), (F(-(1 << 64)), F(0)), (F(0), F(10) ** 300), (F(0), F(10) ** 400)):
        with pytest.raises(CapacityError):
            steps(tally(clamp, F(0), F(1), REAL), name("c0"), REAL)
    steps(tally((F(-(1 << 63)), F((1 << 63) - 1024)), F(0), F(1), REAL), name("c0"), REAL)


def test_what_a_unit_adds_is_bounded_and_never_missing() -> None:
    text = sql(bound_total(name("c0"), (-5, 7)))
    wide = integer(*INT128)
    values = table_sql([wide], [(value,) for value in (None, -6, -5, 0, 7, 8, *INT128)])
    rows = SHARED.execute(f"SELECT c0, {text} AS v, typeof(v) FROM {values}").fetchall()
    assert {row[0]: row[1] for row in rows} == {None: 0, -6: -5, -5: -5, 0: 0, 7: 7, 8: 7, INT128[0]: -5, INT128[1]: 7}
    assert {row[2] for row in rows} == {"BIGINT"}
    with pytest.raises(CapacityError):
        bound_total(name("c0"), (0, 1 << 63))
