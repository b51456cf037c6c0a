"""Every function on PostgreSQL equals the reference interpreter, on every edge value, and raises nothing."""

import itertools
import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from hubbub.engines.lower import scalars as lowering
from hubbub.engines.nodes.scalars import ScanValue
from hubbub.engines.nodes.words import alias, name, select, within
from hubbub.errors import NotAllowed
from hubbub.policy.kinds import INT64, Kind, Type, integer, of
from hubbub.query.expression import Column, Expression
from hubbub.query.functions import call
from tests.engines.stored import StoredTables, printable, storable
from tests.postgres import PostgresServer
from tests.query import generate, interpreter
from tests.query.generate import GOOD, TIMES, Expressions, seeds

ROW = integer(*INT64)


@pytest.fixture(scope="module")
def stored(postgres_server: PostgresServer) -> Iterator[StoredTables]:
    tables = StoredTables(postgres_server.fresh_database())
    yield tables
    tables.close()


def evaluated(
    stored: StoredTables, expression: Expression, columns: Sequence[Column], rows: Sequence[Any]
) -> list[Any] | None:
    """The engine's values of an expression, row by row; None where it says beforehand that it has none."""
    kinds = [("row", ROW), *((column.name, column.kind) for column in columns)]
    table = stored.fill("scratch", kinds, [{"row": place, **row} for place, row in enumerate(rows)])
    read = select(table, *(alias(ScanValue(called, kind), called) for called, kind in kinds))
    node = lowering.lower(expression, {column.name: column.name for column in columns})
    try:
        statement = printable(select(within(read), name("row"), node))
    except NotAllowed:
        return None
    found = dict(stored.run(statement))
    return [_plain(found[place], expression.kind) for place in range(len(rows))]


def _plain(value: Any, kind: Kind) -> Any:
    return int(value) if kind.type is Type.INTEGER and value is not None else value


def same(found: Any, meant: Any) -> bool:
    """Equal; the last bits of ln and exp are the library's own."""
    if isinstance(found, float) and isinstance(meant, float):
        return math.isclose(found, meant, rel_tol=1e-13, abs_tol=5e-322)
    return type(found) is type(meant) and bool(found == meant)


@pytest.mark.parametrize("function", generate.ALL_FUNCTIONS)
def test_each_function_on_every_edge_value(stored: StoredTables, function: str) -> None:
    """The matrix of totality: nothing raises, and every value is the interpreter's."""
    compared = 0
    for seed in range(8):
        rng = Random(seed)
        pattern = Expressions(rng, []).of_function(function, 0)
        fixed = {"in": 1, "like": 1, "starts_with": 1, "substring": 1}.get(function, len(pattern.arguments))
        kinds = [of(argument.kind.type) for argument in pattern.arguments[:fixed]]
        columns = [Column(f"c{place}", kind) for place, kind in enumerate(kinds)]
        expression = call(function, *columns, *pattern.arguments[fixed:])
        grid = list(itertools.product(*([None, *GOOD[kind.type]] for kind in kinds)))
        rows = [
            {column.name: storable(one) for column, one in zip(columns, values, strict=True)}
            for values in (grid if len(grid) <= 600 else rng.sample(grid, 600))
        ]
        found = evaluated(stored, expression, columns, rows)
        for row, one in zip(rows, found or (), strict=False):
            compared += 1
            assert same(one, interpreter.value(expression, row)), (function, row, one)
    assert compared


@given(rng=seeds())
@settings(max_examples=150 * TIMES, derandomize=True, deadline=None)
def test_random_expressions(stored: StoredTables, rng: Random) -> None:
    columns = [Column(f"c{place}", generate.kind_of(rng, type_)) for place, type_ in enumerate([*Type, *Type])]
    made = Expressions(rng, columns)
    expression = made.make(made.any_type(), 4)
    if {"ln", "exp"} & set(generate.functions_in(expression)):
        return  # their last bits may differ, and a comparison above them would
    rows = [{column.name: storable(generate.good(rng, column.kind)) for column in columns} for _ in range(20)]
    found = evaluated(stored, expression, columns, rows)
    for row, one in zip(rows, found or (), strict=False):
        assert same(one, interpreter.value(expression, row)), (expression, row, one)
