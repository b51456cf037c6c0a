"""Lowered expressions and statements, run on a plain connection in this process."""

import itertools
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import duckdb

from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.duckdb import worker
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.duckdb.scan import engine_type
from hubbub.engines.lower.aggregate import aggregate
from hubbub.engines.lower.scalars import lower
from hubbub.engines.nodes.words import constant, relation
from hubbub.gate.secret import open_sealed
from hubbub.policy.kinds import Kind, Type, of
from hubbub.policy.tables import Table, TableColumn, TableSource
from hubbub.query.expression import Column as Named
from hubbub.query.expression import Expression
from hubbub.query.functions import call
from hubbub.query.ops import Aggregate, ExactCounts, Group, Measure, Scan, ScanColumn, Tally
from hubbub.query.requests import Tallies
from tests.engines.raw import printed, sql

BOOLEAN, REAL, TEXT, DATE, TIMESTAMP = (
    of(one) for one in (Type.BOOLEAN, Type.REAL, Type.TEXT, Type.DATE, Type.TIMESTAMP)
)
WHOLE = of(Type.INTEGER)
LIMITS = {"memory": "1GB", "temporary": "1GB", "scratch": ""}


def connected() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


SHARED = connected()
"""For expressions, which leave nothing behind."""


def literal_sql(value: Any, kind: Kind) -> str:
    """A constant; values that no question could hold (NaN, far dates) by their text."""
    if value is None or kind.type is not Type.REAL:
        return sql(constant(value, kind))
    return f"CAST('{value!r}' AS {engine_type(kind)})"


def table_sql(kinds: Sequence[Kind], rows: Sequence[Sequence[Any]]) -> str:
    names = ", ".join(f"c{index}" for index in range(len(kinds)))
    listed = ", ".join(
        "(" + ", ".join(literal_sql(value, kind) for value, kind in zip(row, kinds, strict=True)) + ")" for row in rows
    )
    return f"(SELECT * FROM (VALUES {listed}) AS t({names}))"


def columns(kinds: Sequence[Kind]) -> list[Named]:
    return [Named(f"c{index}", kind) for index, kind in enumerate(kinds)]


def evaluated(expression: Expression, kinds: Sequence[Kind], rows: Sequence[Sequence[Any]]) -> list[Any]:
    """The value for every row, one row after the other; its engine type is held against its kind."""
    text = sql(lower(expression, {f"c{index}": f"c{index}" for index in range(len(kinds))}))
    SHARED.execute(f"CREATE OR REPLACE TABLE t AS SELECT row_number() OVER () AS n, * FROM {table_sql(kinds, rows)}")
    found = SHARED.execute(f"SELECT {text} AS v, typeof(v) FROM t ORDER BY n").fetchall()
    assert {type_ for _, type_ in found} == {engine_type(expression.kind)}
    return [value for value, _ in found]


def applied(function: str, kinds: Sequence[Kind], rows: Sequence[Sequence[Any]]) -> list[Any]:
    """A function on columns of these kinds, for every row."""
    return evaluated(call(function, *columns(kinds)), kinds, rows)


# Aggregates

UNIT = TableColumn(name="who", kind=TEXT)


def table_of(*declared: TableColumn, unit: str | None = "who", name: str = "t") -> Table:
    return Table(
        name=name, source=TableSource(format="parquet", paths=("/nowhere.parquet",)), columns=declared, unit=unit
    )


def answered(
    op: Aggregate, tables: dict[str, Table], contents: dict[str, str], *, secret: tuple[int, int] = (1, 2),
    threads: int = 1, rewrite: Any = lambda text: text,
) -> list[tuple[int, ...]]:  # fmt: skip
    """An aggregate over tables given as SQL, on a locked connection."""
    clauses = {table: relation(f"data_{table}") for table in contents}
    statement = printed(aggregate(op, tables, clauses))
    rows = _run(SqlStatement(rewrite(statement.sql), statement.keys), secret[: statement.secrets], contents, threads)
    cells = list(itertools.product(*(group.values for group in op.groups)))
    found = [(0,) * len(op.tallies)] * len(cells)
    for code, *sums in rows:
        found[code] = tuple(int(one) for one in sums)
    return found


def _run(statement: SqlStatement, secrets: Sequence[int], contents: dict[str, str], threads: int) -> list[list[Any]]:
    keys = [{"table": k.table, "type": k.type, "places": k.places, "values": k.values} for k in statement.keys]
    request = {
        "statement": statement.sql, "secrets": secrets, "keys": keys, "paths": [], "files": [], "databases": {},
        "stored": [],
    }  # fmt: skip
    with connected() as connection:
        for table, text in contents.items():
            connection.execute(f'CREATE TABLE "data_{table}" AS {text}')
        worker.settle(connection)
        worker.limit(connection, {**LIMITS, "threads": threads})
        return worker.rows_of(connection, json.loads(json.dumps(request)))


def scan(table: Table, *names: str) -> Scan:
    kinds = {column.name: column.kind for column in table.columns}
    return Scan(table=table.name, columns=tuple(ScanColumn(name, kinds[name], name) for name in names), unit=table.unit)


def rows_tally(most: int = 10**6, argument: Expression | None = None) -> Tally:
    return Tally(measure=Measure.ROWS, argument=argument, bounds=(0, most))


def units_tally(argument: Expression | None = None) -> Tally:
    return Tally(measure=Measure.UNITS, argument=argument)


def total(argument: Expression, low: int, high: int, *, bounds: tuple[int, int], grid: Fraction = Fraction(1)) -> Tally:
    clamp = (Fraction(low), Fraction(high))
    return Tally(measure=Measure.TOTAL, argument=argument, clamp=clamp, grid=grid, bounds=bounds)


def group(expression: Named, *values: Any) -> Group:
    return Group(name=expression.name, expression=expression, values=values)


def tallied(engine: DuckDB, op: Aggregate, tables: Mapping[str, Table]) -> list[tuple[int, ...]]:
    """The exact tallies that an engine counts."""
    found: ExactCounts = open_sealed(engine.prepare(Tallies(aggregate=op), tables=tables)())
    return found.tallies
