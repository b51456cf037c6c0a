"""Relations run by the engine on a connection of this process: rows with their units, held against the interpreter."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb

from hubbub.audit.subjects.in_process import inside
from hubbub.engines.lower import relations
from hubbub.engines.nodes.words import name, relation, select, within
from hubbub.policy.paths import follow_path
from hubbub.policy.tables import Table, TableSource
from hubbub.policy.tables import TableColumn as Declared
from hubbub.query.ops import Cap, Relation
from tests.engines.raw import sql
from tests.query import interpreter
from tests.query.generate import Case, functions_of, kinds_of
from tests.query.relating import PATHS

fill = inside.fill
SECRET = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
Connection = Any
Rows = Counter[tuple[Any, ...]]
"""A multiset of rows, the unit first."""


def connected() -> Connection:
    """A connection that computes as the engine's own processes do."""
    connection = duckdb.connect(config={"threads": 2})
    connection.execute(
        "SET ieee_floating_point_ops = true; SET TimeZone = 'UTC'; SET preserve_insertion_order = false;"
        "SET disabled_optimizers = 'top_n_window_elimination'"
    )
    return connection


def declared(case: Case) -> dict[str, Table]:
    source = TableSource(format="parquet", paths=("/nowhere",))
    keys = {(step.table, step.key) for path in PATHS.values() for step in path}
    tables = {
        name: Table(
            name=name,
            source=source,
            columns=tuple(Declared(name=column, kind=kind, unique=(name, column) in keys) for column, kind in columns),
            unit=case.unit if case.unit in dict(columns) else None,
            through=PATHS[name][0] if name in PATHS else None,
        )
        for name, columns in case.schema.items()
    }
    return {name: follow_path(tables, name) for name in tables}


def load(engine: Connection, case: Case) -> None:
    for table, rows in case.tables.items():
        fill(engine, table, case.schema[table], rows)


def lowered(op: Relation, case: Case) -> tuple[str, int]:
    """A relation as a statement that shows the unit and all columns, and how many secrets it looks at."""
    made = relations.Lowering(declared(case), {table: relation(table) for table in case.schema})
    rows, names = made.relation(op)
    columns = [name(names[column.name]) for column in kinds_of(op)]
    return sql(select(within(rows), *relations.unit_of(op), *columns)), made.secrets


def rows_of(engine: Connection, op: Relation, case: Case, secret: Sequence[int] = SECRET) -> Rows:
    """What the engine makes of the tables that were loaded last."""
    statement, secrets = lowered(op, case)
    return Counter(tuple(map(settled, row)) for row in engine.execute(statement, list(secret)[:secrets]).fetchall())


def meant(engine: Connection, op: Relation, case: Case) -> Rows:
    """What the interpreter makes of them, where caps keep what the engine keeps, if that is possible."""
    columns = [column.name for column in kinds_of(op)]
    found = interpreter.relation(op, case.tables, keeping(engine, case))
    return Counter((settled(unit), *(settled(row[column]) for column in columns)) for unit, row in found)


def keeping(engine: Connection, case: Case, secret: Sequence[int] = SECRET) -> interpreter.Keep:
    """Of a unit's rows, those that the engine keeps: as many as it may, and each as often as it was there at most."""
    known: dict[Cap, Rows] = {}

    def keep(op: Cap, unit: Any, rows: list[interpreter.Row]) -> list[interpreter.Row]:
        if op not in known:
            known[op] = rows_of(engine, op, case, secret)
        left = Counter({row[1:]: many for row, many in known[op].items() if row[0] == settled(unit)})
        assert left.total() == op.most, (unit, left)
        kept = []
        for row in rows:
            content = tuple(settled(value) for value in row.values())
            if left[content] > 0:
                left[content] -= 1
                kept.append(row)
        assert len(kept) == op.most, (unit, left)
        return kept

    return keep


def settled(value: Any) -> Any:
    """Truth is not a number, a whole number not a real; zeros have no sign."""
    return (type(value).__name__, value + 0.0 if isinstance(value, float) else value) if value is not None else None


def exact(op: Relation) -> bool:
    """Whether engine and interpreter agree to the last bit."""
    return not {"ln", "exp"} & functions_of(op)
