"""What else is asked of PostgreSQL: keys that nobody listed, cells of publications, and rows dealt out to blocks."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from hubbub.engines.answers import read_text
from hubbub.engines.lower import private_keys as keyed
from hubbub.engines.postgres.engine import Postgres
from hubbub.gate.secret import open_sealed
from hubbub.policy.build import single_table
from hubbub.policy.kinds import INT64, Type, integer, of
from hubbub.policy.servers import postgres
from hubbub.policy.tables import Limits, Table
from hubbub.query.expression import Column
from hubbub.query.ops import Aggregate, ExactCounts, Group, Measure, Scan, ScanColumn, Tally, Together
from hubbub.query.requests import BlockRows, DenseCells, SparseCells, Tallies
from tests.engines.stored import StoredTables
from tests.engines.test_postgres_plans import Origins, keeping, load, made_case, prepared
from tests.postgres import PostgresServer
from tests.query import generate, interpreter
from tests.query.generate import TIMES, Case, seeds
from tests.query.owned import SECRET
from tests.query.test_private_random import units_by_hand

WHOLE = integer(*INT64)


@pytest.fixture(scope="module")
def stored(postgres_server: PostgresServer) -> Iterator[StoredTables]:
    tables = StoredTables(postgres_server.fresh_database())
    yield tables
    tables.close()


# Private keys


def asked(rng: Random, most_groups: int) -> tuple[Case, Aggregate] | None:
    """With at least one private key; reals make none."""
    made = made_case(rng)
    op = generate.aggregate(rng, made, most_groups=most_groups)
    can = [place for place, group in enumerate(op.groups) if group.type is not Type.REAL]
    if not can:
        return None
    chosen = set(rng.sample(can, rng.randint(1, len(can))))
    groups = [replace(one, values=(), private=True) if at in chosen else one for at, one in enumerate(op.groups)]
    return made, replace(op, groups=tuple(groups), weight_bits=rng.choice((None, None, 20)))


def count(stored: StoredTables, op: Aggregate, case: Case, origins: Origins) -> ExactCounts | None:
    statement = prepared(op, case, origins)
    if statement is None:
        return None
    rows = [list(row) for row in stored.run(statement, SECRET)]
    return keyed.read_counts(op, rows, read_text)


@given(rng=seeds())
@settings(max_examples=100 * TIMES, derandomize=True, deadline=None)
def test_what_units_have(stored: StoredTables, rng: Random) -> None:
    made = asked(rng, 50)
    if made is None:
        return
    case, op = made
    origins = load(stored, case)
    found = count(stored, op, case, origins)
    if found is None:
        return
    keep = keeping(stored, case, origins)
    if not interpreter.over(op, case.tables, keep):
        meant = interpreter.aggregate(op, case.tables, lambda unit, own: own, keep)
        assert dict(zip(found.cells, found.tallies, strict=True)) == meant
        assert dict(found.units) == units_by_hand(op, interpreter.added(op, case.tables, keep))
    load(stored, case.shuffled(rng))
    assert count(stored, op, case, origins) == found


@given(rng=seeds())
@settings(max_examples=50 * TIMES, derandomize=True, deadline=None)
def test_neighbours_under_one_key(stored: StoredTables, rng: Random) -> None:
    made = asked(rng, rng.choice((1, 2)))
    if made is None:
        return
    case, op = made
    whole = count(stored, op, case, load(stored, case))
    if whole is None:
        return
    top = 1 if op.weight_bits is None else 1 << op.weight_bits
    for unit in case.units[:2]:
        rest = count(stored, op, case, load(stored, case.without(unit).shuffled(rng)))
        assert rest is not None
        before, after = dict(whole.units), dict(rest.units)
        assert after.keys() <= before.keys()
        steps = [before[held] - after.get(held, 0) for held in before]
        assert all(0 <= step <= top for step in steps)
        assert sum(step != 0 for step in steps) <= op.most_groups
        cells, left = (dict(zip(one.cells, one.tallies, strict=True)) for one in (whole, rest))
        nothing = (0,) * len(op.tallies)
        for place, tally in enumerate(op.tallies):
            moved = [abs(numbers[place] - left.get(cell, nothing)[place]) for cell, numbers in cells.items()]
            assert sum(one != 0 for one in moved) <= op.most_groups
            assert max(moved, default=0) <= tally.linf


# Cells


def served(stored: StoredTables, rows: list[dict[str, Any]]) -> tuple[Postgres, dict[str, Table]]:
    """Units with places in three groups, on the server."""
    columns = [("who", WHOLE), *((f"x{place}", WHOLE) for place in range(3)), ("note", of(Type.TEXT))]
    stored.fill("cells", columns, rows)
    engine = Postgres(limits=Limits(seconds=60, memory="500MB"), dsn=stored.url)
    source = postgres(stored.url, table="cells", schema="data")
    return engine, {"cells": single_table(name="cells", source=source, schema=engine.describe(source), unit="who")}


def cells(*sizes: int, most: int = 10**6, together: Together | None = None) -> Aggregate:
    names = [f"x{place}" for place in range(len(sizes))]
    return Aggregate(
        input=Scan(table="cells", columns=tuple(ScanColumn(one, WHOLE, one) for one in names), unit="who"),
        groups=tuple(
            Group(name=one, expression=Column(one, WHOLE), values=range(size))
            for one, size in zip(names, sizes, strict=True)
        ),
        tallies=(Tally(measure=Measure.ROWS, argument=None, bounds=(0, 1 << 20), a_row=(0, 1) if together else None),),
        most_groups=most,
        together=together,
    )


def rows_of(rng: Random, many: int, sizes: tuple[int, ...], units: int = 50) -> list[dict[str, Any]]:
    """Some beyond the ranges, some missing, some nobody's."""
    return [
        {
            "who": rng.choice((None, *range(units))),
            "note": rng.choice((None, "a", "\\", "ß")),
            **{f"x{place}": rng.choice((None, -1, size, *range(size))) for place, size in enumerate(sizes)},
        }
        for _ in range(many)
    ]


def counted(rows: list[dict[str, Any]], sizes: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for row in rows:
        cell = tuple(row[f"x{place}"] for place in range(len(sizes)))
        if row["who"] is not None and all(
            one is not None and 0 <= one < size for one, size in zip(cell, sizes, strict=True)
        ):
            found[cell] += 1
    return found


@pytest.mark.parametrize("together", [None, Together(rows=1 << 20, total=1 << 20)])
def test_dense_cells_are_all_of_them(stored: StoredTables, together: Together | None) -> None:
    sizes = (7, 11, 5)
    rows = rows_of(Random(3), 3000, sizes)
    engine, tables = served(stored, rows)
    request = DenseCells(aggregate=cells(*sizes, together=together))
    found = open_sealed(engine.prepare(request, tables=tables)()).reshape(sizes)
    meant = np.zeros(sizes, dtype=np.int64)
    for cell, many in counted(rows, sizes).items():
        meant[cell] = many
    assert found.tolist() == meant.tolist()


def test_limits_hold_in_dense_cells(stored: StoredTables) -> None:
    sizes = (7, 11, 5)
    rows = rows_of(Random(4), 3000, sizes, units=20)
    engine, tables = served(stored, rows)
    request = DenseCells(aggregate=cells(*sizes, most=4, together=Together(rows=2, total=5)))
    found = open_sealed(engine.prepare(request, tables=tables)())
    owners = {row["who"] for row in rows} - {None}
    assert found.sum() <= 5 * len(owners)
    for owner in list(owners)[:5]:
        own = [row for row in rows if row["who"] == owner]
        engine, tables = served(stored, own)
        alone = open_sealed(engine.prepare(request, tables=tables)())
        assert alone.sum() <= 5
        assert (alone > 0).sum() <= 4
        assert alone.max() <= 2


@pytest.mark.parametrize("sizes", [(1 << 20, 1 << 20, 1 << 20), (1000, 1 << 40, 1 << 40)])
def test_sparse_cells_are_those_that_have_rows(stored: StoredTables, sizes: tuple[int, ...]) -> None:
    """Codes that one number holds, and codes that need several."""
    rng = Random(5)
    rows = [
        {
            "who": rng.randrange(30),
            "note": None,
            **{f"x{place}": rng.randrange(size) for place, size in enumerate(sizes)},
        }
        for _ in range(400)
    ]
    rows += rows[:100]
    engine, tables = served(stored, rows)
    found = open_sealed(engine.prepare(SparseCells(aggregate=cells(*sizes)), tables=tables)())
    made = {
        tuple(int(place[row]) for place in found.places): int(found.counts[row]) for row in range(len(found.counts))
    }
    assert made == dict(counted(rows, sizes))


# Sums


@pytest.mark.parametrize("end", [(1 << 31) - 1, 1 << 31, (1 << 62) - 1])
def test_sums_at_the_ends_of_what_a_row_may_add(stored: StoredTables, end: int) -> None:
    """Steps of 32 bits are added up in 64, and wider ones in as many as it takes."""
    rows = [{"who": 1 + place % 2, "x0": sign * end, "x1": 0, "x2": 0, "note": None}
            for place, sign in enumerate([1] * 900 + [-1] * 100)]  # fmt: skip
    rows += [{"who": 3, "x0": INT64[place], "x1": 0, "x2": 0, "note": None} for place in (0, 1)]
    engine, tables = served(stored, rows)
    tally = Tally(
        measure=Measure.TOTAL, argument=Column("x0", WHOLE), clamp=(Fraction(-end), Fraction(end)),
        bounds=(-(1 << 62), 1 << 62),
    )  # fmt: skip
    scan = Scan(table="cells", columns=(ScanColumn("x0", WHOLE, "x0"),), unit="who")
    op = Aggregate(input=scan, groups=(), tallies=(tally,), most_groups=1)
    ((found,),) = open_sealed(engine.prepare(Tallies(aggregate=op), tables=tables)()).tallies
    units = [sum(int(row["x0"] or 0) for row in rows if row["who"] == unit) for unit in (1, 2)]
    assert found == sum(min(max(one, -(1 << 62)), 1 << 62) for one in units)


# Blocks


def test_blocks_have_whole_units_in_the_order_of_their_values(stored: StoredTables) -> None:
    rows = rows_of(Random(6), 500, (7, 11, 5))
    engine, tables = served(stored, rows)
    names = {"who": WHOLE, "x0": WHOLE, "note": of(Type.TEXT)}
    relation = Scan(table="cells", columns=tuple(ScanColumn(*one, one[0]) for one in names.items()), unit="who")
    columns = tuple((one, Column(one, kind)) for one, kind in names.items())
    request = BlockRows(relation=relation, columns=columns, blocks=8)
    dealt = open_sealed(engine.prepare(request, tables=tables)())
    owners = [set(block["who"][1]) for block in dealt]
    assert sum(map(len, owners)) == len(set().union(*owners)) == len({row["who"] for row in rows} - {None})
    assert sum(1 for one in owners if one) > 4
    both = [row for block in dealt for row in zip(*(values for _, values in block.values()), strict=True)]
    meant = [(row["who"], row["x0"], row["note"]) for row in rows if row["who"] is not None]
    assert Counter(both) == Counter(meant)
    for block in dealt:
        units = block["who"][1]
        assert units == sorted(units)
    again = open_sealed(engine.prepare(request, tables=tables)())
    assert [set(block["who"][1]) for block in again] != owners, "secrets are fresh ones"
