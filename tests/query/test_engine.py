"""The engine's statements, run here, equal the reference interpreter: any rows, in any order, on many threads."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.lower import scalars as lowering
from hubbub.engines.lower.aggregate import aggregate
from hubbub.engines.nodes.words import relation
from hubbub.errors import CapacityError
from hubbub.policy.kinds import Kind, Type, of
from hubbub.query.expression import Column, Expression
from hubbub.query.functions import call
from hubbub.query.ops import Aggregate, Cap, Reduce, Window
from tests.engines.raw import printed, sql
from tests.query import generate, interpreter
from tests.query.generate import GOOD, TIMES, Case, Expressions, seeds
from tests.query.owned import SECRET, Connection, connected, declared, fill, keeping, load


@pytest.fixture(scope="module")
def engine() -> Iterator[Connection]:
    connection = connected()
    yield connection
    connection.close()


def prepared(op: Aggregate, case: Case) -> SqlStatement | None:
    """The statement that the engine would run; None where it says beforehand that it could not hold the sums."""
    origins = {table: relation(table) for table in case.schema}
    try:
        return printed(aggregate(op, declared(case), origins))
    except CapacityError:
        return None


def run(engine: Connection, op: Aggregate, statement: SqlStatement) -> dict[Any, tuple[int, ...]]:
    """The engine's answer on the tables that were loaded last."""
    for keys in statement.keys:
        engine.execute(
            f'CREATE OR REPLACE TEMP TABLE "{keys.table}" AS SELECT CAST(v AS {keys.type}) AS "value", p AS "place" '
            "FROM (SELECT unnest(CAST($1 AS VARCHAR[])) AS v, unnest(CAST($2 AS INTEGER[])) AS p)",
            [list(keys.values), list(keys.places)],
        )
    cells = list(itertools.product(*(group.values for group in op.groups)))
    found = dict.fromkeys(cells, (0,) * len(op.tallies))
    for code, *sums in engine.execute(statement.sql, SECRET[: statement.secrets]).fetchall():
        found[cells[code]] = tuple(int(one) for one in sums)
    return found


def choices(op: Aggregate, case: Case, keep: interpreter.Keep) -> int:
    known = interpreter.added(op, case.tables, keep)
    ways = math.comb if op.together is None else math.perm
    return math.prod(ways(len(own), min(len(own), op.most_groups)) for own in known.amounts.values())


def evaluated(engine: Connection, expression: Expression, columns: Sequence[Column], rows: Sequence[Any]) -> list[Any]:
    """The engine's values of an expression, row by row."""
    kinds = [(column.name, column.kind) for column in columns]
    fill(engine, "scratch", [("row", Kind(type=Type.REAL)), *kinds], [{"row": n, **row} for n, row in enumerate(rows)])
    node = lowering.lower(expression, {column.name: column.name for column in columns})
    text = f'SELECT {sql(node)} FROM scratch ORDER BY "row"'
    return [row[0] for row in engine.execute(text).fetchall()]


def same(found: Any, meant: Any) -> bool:
    """Equal; the last bits of ln and exp are the library's own."""
    if isinstance(found, float) and isinstance(meant, float):
        return math.isclose(found, meant, rel_tol=1e-13, abs_tol=5e-322)
    return type(found) is type(meant) and bool(found == meant)


@pytest.mark.parametrize("function", generate.ALL_FUNCTIONS)
def test_each_function_on_every_edge_value(engine: Connection, function: str) -> None:
    """The matrix of totality: nothing raises, and every value is the interpreter's."""
    for seed in range(6):
        rng = Random(seed)
        pattern = Expressions(rng, []).of_function(function, 0)
        fixed = {"in": 1, "like": 1, "starts_with": 1, "substring": 1}.get(function, len(pattern.arguments))
        kinds = [of(argument.kind.type) for argument in pattern.arguments[:fixed]]
        columns = [Column(f"c{place}", kind) for place, kind in enumerate(kinds)]
        expression = call(function, *columns, *pattern.arguments[fixed:])
        grid = list(itertools.product(*([None, *GOOD[kind.type]] for kind in kinds)))
        rows = [
            {column.name: one for column, one in zip(columns, values, strict=True)}
            for values in (grid if len(grid) <= 600 else rng.sample(grid, 600))
        ]
        for row, found in zip(rows, evaluated(engine, expression, columns, rows), strict=True):
            assert same(found, interpreter.value(expression, row)), (function, row, found)


@given(rng=seeds())
@settings(max_examples=150 * TIMES, derandomize=True)
def test_random_expressions(engine: Connection, rng: Random) -> None:
    columns = [Column(f"c{place}", generate.kind_of(rng, type_)) for place, type_ in enumerate([*Type, *Type])]
    made = Expressions(rng, columns)
    expression = made.make(made.any_type(), 4)
    if {"ln", "exp"} & set(generate.functions_in(expression)):
        return  # their last bits may differ, and a comparison above them would
    rows = [{column.name: generate.good(rng, column.kind) for column in columns} for _ in range(20)]
    for row, found in zip(rows, evaluated(engine, expression, columns, rows), strict=True):
        assert same(found, interpreter.value(expression, row)), (expression, row, found)


def asked(rng: Random) -> tuple[Case, Aggregate, SqlStatement | None]:
    case = generate.case(rng)
    op = generate.aggregate(rng, case, most_groups=rng.choice((None, 1, 50)))
    return case, op, prepared(op, case)


@given(rng=seeds())
@settings(max_examples=120 * TIMES, derandomize=True)
def test_aggregates_rows_shuffled_other_threads(engine: Connection, rng: Random) -> None:
    """The interpreter's answer where no unit has too many groups; else a possible one, and always the same."""
    case, op, statement = asked(rng)
    if statement is None:
        return
    load(engine, case)
    engine.execute("SET threads = 1")
    found, keep = run(engine, op, statement), keeping(engine, case)
    if not interpreter.over(op, case.tables, keep):
        assert found == interpreter.aggregate(op, case.tables, lambda unit, own: own, keep)
    elif choices(op, case, keep) <= 2000:
        assert interpreter.possible(op, case.tables, found, keep)
    load(engine, case.shuffled(rng))
    engine.execute("SET threads = 4")
    assert run(engine, op, statement) == found


@given(rng=seeds())
@settings(max_examples=60 * TIMES, derandomize=True)
def test_units_with_one_row_need_no_bounding(engine: Connection, rng: Random) -> None:
    """Where each unit has one row, the short way gives what the long way gives."""
    case = generate.case(rng)
    single = {
        table: list({case.owner(table, row): row for row in rows}.values()) if table != "public" else rows
        for table, rows in case.tables.items()
    }
    case = replace(case, tables=single)
    load(engine, case)
    units = [unit for unit, _ in interpreter.relation(case.relation, case.tables, keeping(engine, case))]
    if len(set(units)) != len(units):
        return  # a join made it more
    op = replace(generate.aggregate(rng, case, most_groups=1), single=True, together=None)
    statement = prepared(op, case)
    if statement is not None:
        if not any(isinstance(one, Cap | Reduce | Window) for one in generate.operations(case.relation)):
            assert "OVER" not in statement.sql
            assert 'GROUP BY "unit"' not in statement.sql
        keep = keeping(engine, case)
        assert run(engine, op, statement) == interpreter.aggregate(op, case.tables, lambda unit, own: own, keep)


@given(rng=seeds())
@settings(max_examples=60 * TIMES, derandomize=True)
def test_neighbours_under_one_key(engine: Connection, rng: Random) -> None:
    """The claim of Aggregate, of the engine itself."""
    case, op, statement = asked(rng)
    if statement is None:
        return
    load(engine, case)
    whole = run(engine, op, statement)
    for unit in case.units[:2]:
        load(engine, case.without(unit).shuffled(rng))
        rest = run(engine, op, statement)
        assert list(rest) == list(whole)
        for place, tally in enumerate(op.tallies):
            moved = [abs(whole[cell][place] - rest[cell][place]) for cell in whole]
            assert sum(one != 0 for one in moved) <= op.most_groups
            assert max(moved, default=0) <= tally.linf
