"""Different values and histograms, by the engine's own statements: what each unit brings, and what all bring."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.lower import histogram
from hubbub.engines.lower.aggregate import aggregate
from hubbub.engines.nodes.words import relation
from hubbub.errors import CapacityError
from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.policy.kinds import Type, of
from hubbub.query.expression import Column
from hubbub.query.ops import Aggregate, ExactCounts, Histogram, Measure, Scan, ScanColumn, Tally
from tests.engines.raw import printed
from tests.query import generate, interpreter
from tests.query.generate import TIMES, Case, Expressions, seeds
from tests.query.owned import SECRET, Connection, connected, declared, keeping, load

UNITS = Tally(measure=Measure.UNITS, argument=None)


@pytest.fixture(scope="module")
def engine() -> Iterator[Connection]:
    connection = connected()
    yield connection
    connection.close()


def asked(rng: Random, case: Case) -> Aggregate:
    """Units first, so that one sees which groups are kept; then different values, and histograms."""
    op = generate.aggregate(rng, case, most_groups=rng.choice((1, 2, 50)))
    made = Expressions(rng, generate.kinds_of(case.relation))
    values = [
        Tally(measure=Measure.DISTINCT, argument=made.make(made.any_type(), 1), bounds=(0, rng.choice((1, 2, 50))))
        for _ in range(rng.randint(1, 2))
    ]
    tallies = (UNITS, *values, *op.tallies[:1])
    return replace(op, tallies=tallies, histograms=tuple(wanted(rng, made) for _ in range(rng.randint(0, 2))))


def wanted(rng: Random, made: Expressions) -> Histogram:
    type_ = rng.choice((Type.INTEGER, Type.REAL))
    grid = Fraction(1) if type_ is Type.INTEGER else Fraction(2) ** rng.choice((-20, -3, 0, 5))
    low, high = sorted(rng.sample(range(-1000, 1000), 2))
    return Histogram(
        argument=made.make(type_, 1),
        clamp=(low * grid, high * grid),
        origin=low * grid,
        grid=grid,
        most_rows=rng.choice((1, 2, 3, 50)),
    )


def prepared(op: Aggregate, case: Case) -> SqlStatement | None:
    try:
        return printed(aggregate(op, declared(case), {table: relation(table) for table in case.schema}))
    except CapacityError:
        return None


def run(engine: Connection, op: Aggregate, statement: SqlStatement) -> ExactCounts:
    for keys in statement.keys:
        engine.execute(
            f'CREATE OR REPLACE TEMP TABLE "{keys.table}" AS SELECT CAST(v AS {keys.type}) AS "value", p AS "place" '
            "FROM (SELECT unnest(CAST($1 AS VARCHAR[])) AS v, unnest(CAST($2 AS INTEGER[])) AS p)",
            [list(keys.values), list(keys.places)],
        )
    return histogram.read_counts(
        op, cells_of(op), engine.execute(statement.sql, SECRET[: statement.secrets]).fetchall()
    )


def cells_of(op: Aggregate) -> tuple[Any, ...]:
    return tuple(itertools.product(*(group.values for group in op.groups)))


def only(case: Case, unit: Any) -> Case:
    rows = {
        table: [row for row in held if row[case.unit] == unit] if held and case.unit in held[0] else held
        for table, held in case.tables.items()
    }
    return replace(case, tables=rows)


def pairs_of(found: ExactCounts) -> list[list[list[tuple[int, int]]]]:
    return [[one.pairs() for one in cells] for cells in found.histograms]


@given(rng=seeds())
@settings(max_examples=40 * TIMES, derandomize=True)
def test_each_unit_brings_what_it_may_and_all_of_it_is_there(engine: Connection, rng: Random) -> None:
    """By itself a unit brings as many rows and values as it has and may, its own, to the groups that its tallies keep;
    histograms of everybody are the sums of these. Order and threads change nothing."""
    case = generate.case(rng)
    op = asked(rng, case)
    statement = prepared(op, case)
    if statement is None:
        return
    load(engine, case)
    engine.execute("SET threads = 1")
    keep = keeping(engine, case)
    owned = interpreter.grouped(op, case.tables, keep)
    whole, cells = run(engine, op, statement), cells_of(op)
    sums = [[Counter[int]() for _ in cells] for _ in op.histograms]
    for unit, groups in owned.items():
        load(engine, only(case, unit))
        mine = run(engine, op, statement)
        kept = [place for place, numbers in enumerate(mine.tallies) if numbers[0]]
        assert len(kept) == min(len(groups), op.most_groups)
        for at, cell in enumerate(cells):
            rows = groups.get(cell, []) if at in kept else []
            for place, tally in enumerate(op.tallies):
                if tally.measure is Measure.DISTINCT:
                    brought = interpreter.amount(tally, rows)
                    assert isinstance(brought, frozenset)
                    assert mine.tallies[at][place] == len(brought)
            for place in range(len(op.histograms)):
                held = Counter(dict(mine.histograms[place][at].pairs()))
                every = replace(op, histograms=(replace(op.histograms[place], most_rows=10**6),))
                possible = Counter(interpreter.bins(every, 0, rows))
                assert held <= possible
                assert held.total() == min(possible.total(), op.histograms[place].most_rows)
                sums[place][at] += held
    assert pairs_of(whole) == [[sorted(held.items()) for held in one] for one in sums]
    load(engine, case.shuffled(rng))
    engine.execute("SET threads = 4")
    again = run(engine, op, statement)
    assert (again.tallies, again.histograms) == (whole.tallies, whole.histograms)


@given(rng=seeds())
@settings(max_examples=30 * TIMES, derandomize=True)
def test_where_nobody_has_too_much_it_is_the_interpreters(engine: Connection, rng: Random) -> None:
    case = generate.case(rng)
    op = replace(asked(rng, case), most_groups=10**6)
    tallies = tuple(replace(one, bounds=(0, 10**6)) if one.measure is Measure.DISTINCT else one for one in op.tallies)
    op = replace(op, tallies=tallies, histograms=tuple(replace(one, most_rows=10**6) for one in op.histograms))
    statement = prepared(op, case)
    if statement is None:
        return
    load(engine, case)
    found, keep = run(engine, op, statement), keeping(engine, case)
    meant = interpreter.aggregate(op, case.tables, lambda unit, own: own, keep)
    assert found.tallies == list(meant.values())
    assert [[one.each().tolist() for one in cells] for cells in found.histograms] == interpreter.histograms(
        op, case.tables, lambda unit, own: own, keep
    )


@given(rng=seeds())
@settings(max_examples=25 * TIMES, derandomize=True)
def test_neighbours_under_one_key(engine: Connection, rng: Random) -> None:
    """The claims of limit, distinct and Histogram, of the engine itself."""
    case = generate.case(rng)
    op = asked(rng, case)
    statement = prepared(op, case)
    if statement is None:
        return
    load(engine, case)
    whole = run(engine, op, statement)
    for unit in case.units[:2]:
        load(engine, case.without(unit).shuffled(rng))
        rest = run(engine, op, statement)
        for place, tally in enumerate(op.tallies):
            moved = [abs(a[place] - b[place]) for a, b in zip(whole.tallies, rest.tallies, strict=True)]
            assert sum(step != 0 for step in moved) <= op.most_groups
            assert max(moved, default=0) <= tally.linf
        for wanted_, one, other in zip(op.histograms, whole.histograms, rest.histograms, strict=True):
            gone = [Counter(dict(a.pairs())) - Counter(dict(b.pairs())) for a, b in zip(one, other, strict=True)]
            come = [Counter(dict(b.pairs())) - Counter(dict(a.pairs())) for a, b in zip(one, other, strict=True)]
            assert not any(come)
            assert sum(bool(held) for held in gone) <= op.most_groups
            assert all(held.total() <= wanted_.most_rows for held in gone)


@given(rng=seeds())
@settings(max_examples=20 * TIMES, derandomize=True)
def test_units_with_one_row_need_no_limit(engine: Connection, rng: Random) -> None:
    case = generate.case(rng)
    single = {
        table: list({row[case.unit]: row for row in rows}.values()) if rows and case.unit in rows[0] else rows
        for table, rows in case.tables.items()
    }
    case = replace(case, tables=single)
    load(engine, case)
    keep = keeping(engine, case)
    units = [unit for unit, _ in interpreter.relation(case.relation, case.tables, keep)]
    if len(set(units)) != len(units):
        return
    op = replace(asked(rng, case), most_groups=1)
    short, long = prepared(replace(op, single=True), case), prepared(op, case)
    if short is None or long is None:
        return
    assert (run(engine, replace(op, single=True), short)) == run(engine, op, long)


def test_a_units_rows_are_chosen_by_row_and_not_by_step(engine: Connection) -> None:
    """Of 90 rows here and 10 there, one is here nine times of ten."""
    kinds = (("who", of(Type.INTEGER)), ("x", of(Type.INTEGER)))
    rows = [{"who": unit, "x": int(copy >= 90)} for unit in range(400) for copy in range(100)]
    read = tuple(ScanColumn(column, kind, column) for column, kind in kinds)
    scan = Scan(table="private", columns=read, unit="who")
    case = Case({"private": kinds}, {"private": rows}, scan)
    one = Histogram(
        argument=Column("x", of(Type.INTEGER)),
        clamp=(Fraction(0), Fraction(1)),
        origin=Fraction(0),
        grid=Fraction(1),
        most_rows=1,
    )
    op = Aggregate(input=scan, groups=(), tallies=(), histograms=(one,), most_groups=1)
    statement = prepared(op, case)
    assert statement is not None
    load(engine, case)
    assert len(engine.execute(statement.sql, SECRET).fetchall()) == 1, "one row for all, and not one for each unit"
    ((found,),) = run(engine, op, statement).histograms
    here, there = (dict(found.pairs()).get(step, 0) for step in (0, 1))
    assert here + there == 400
    assert abs(here - 360) < 34, "5.6 standard deviations of 6: a false alarm has probability 1e-6 at most"


def test_what_is_read_back() -> None:
    assert histogram.read(None).pairs() == []
    assert histogram.read("[[7, 2], [-3, 1], [12, 9223372036854775807]]").pairs() == [
        (-3, 1),
        (7, 2),
        (12, (1 << 63) - 1),
    ]
    assert isinstance(histogram.read(None), StepCounts)
