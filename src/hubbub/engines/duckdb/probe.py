"""The SQL of the owner's check: conditions on single values, counted in one scan.

It runs on the owner's own connection and has nothing to do with how questions are answered, except that it reads values
by the same rule: what is not of the declared type, or out of its range, is missing.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime

from hubbub.engines.duckdb.scan import scan_identity, scan_value
from hubbub.policy.kinds import Type
from hubbub.policy.sources import REPLACED
from hubbub.policy.tables import Table, TableColumn, Value


def quote(name: str) -> str:
    """A name, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def value_of(column: TableColumn) -> str:
    """A column's value as its kind, missing where it is none."""
    return scan_value(quote(column.name), column.kind)


def identity_of(table: Table, column: TableColumn) -> str:
    """A column's value where it names a unit or leads to one: missing where it could be several."""
    replaced = table.source.format in REPLACED
    return scan_identity(quote(column.name), column.kind, replaced=replaced)


def literal(value: Value) -> str:
    """A constant of the policy."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return f"CAST('{value}' AS HUGEINT)"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    parts = ("'" + part.replace("'", "''") + "'" for part in value.split("\0"))
    return "(" + " || chr(0) || ".join(parts) + ")"


def outside(column: TableColumn) -> str:
    """Below or above the declared bounds."""
    if column.bounds is None:
        return "false"
    whole = column.kind.type is Type.INTEGER
    low, high = (literal(int(end) if whole else float(end)) for end in column.bounds)
    return f"{value_of(column)} < {low} OR {value_of(column)} > {high}"


def elsewhere(column: TableColumn) -> str:
    """Not among the declared keys."""
    keys = [key for key in column.keys or () if key is not None]
    value = value_of(column)
    known = f"{value} IN ({', '.join(literal(key) for key in keys)})" if keys else "false"
    missing = f"{value} IS NULL" if column.keys and None in column.keys else "false"
    return f"NOT coalesce({known}, false) AND NOT ({missing})"


def statement(table: Table, conditions: Sequence[str]) -> str:
    """Count all rows, and the rows for which each condition is true."""
    parts = ["count(*)", *(f"count(*) FILTER (WHERE {condition})" for condition in conditions)]
    return f"SELECT {', '.join(parts)} FROM {quote(table.name)}"


def owners(table: Table, tables: Mapping[str, Table], key: TableColumn | None = None) -> str:
    """For each row the key k, if there is one, and its unit u, found by the path of the table; missing if it is not."""
    shown = "NULL" if key is None else identity_of(table, key)
    if not table.path:
        unit = None if table.unit is None else table.column(table.unit)
        owner = "NULL" if unit is None else identity_of(table, unit)
        return f"SELECT {shown} AS k, {owner} AS u FROM {quote(table.name)}"
    step, there = table.path[0], tables[table.path[0].table]
    column, other = table.column(step.column), there.column(step.key)
    assert column is not None
    assert other is not None
    rows = f"SELECT {shown} AS k, {identity_of(table, column)} AS n FROM {quote(table.name)}"
    return f"SELECT r.k AS k, o.u AS u FROM ({rows}) AS r LEFT JOIN ({owners(there, tables, other)}) AS o ON r.n = o.k"


def count_lost(table: Table, tables: Mapping[str, Table]) -> str:
    """Count all rows, and those that find no unit."""
    return f"SELECT count(*), count(*) FILTER (WHERE u IS NULL) FROM ({owners(table, tables)})"


def count_repeated(table: Table, column: TableColumn) -> str:
    """Count the different values of a column, and those of them that are there more than once."""
    values = f"SELECT {value_of(column)} AS v FROM {quote(table.name)}"  # by itself: the table may have a column v
    return (
        "SELECT count(*), count(*) FILTER (WHERE n > 1) FROM "
        f"(SELECT v, count(*) AS n FROM ({values}) WHERE v IS NOT NULL GROUP BY v)"
    )


def span(table: Table, column: TableColumn) -> str:
    """Select the number of values of a column of whole numbers, the least and the greatest."""
    value = value_of(column)
    return f"SELECT count(v), min(v), max(v) FROM (SELECT {value} AS v FROM {quote(table.name)})"


def different(table: Table, column: TableColumn, low: int, high: int) -> str:
    """Count the different values of a column, all from ``low`` to ``high``: one bit for each that there could be.

    Where that can be held it is ten times as fast as counting each value, and takes no more memory than its bits.
    """
    value = f"CAST({value_of(column)} AS BIGINT)"
    bits = f"bitstring_agg(v, CAST('{low}' AS BIGINT), CAST('{high}' AS BIGINT))"
    return f"SELECT bit_count({bits}) FROM (SELECT {value} AS v FROM {quote(table.name)})"


def units(table: Table, tables: Mapping[str, Table], most: int) -> str:
    """Count all units, those that have several rows, and those that have more than ``most``."""
    return (
        f"SELECT count(*), count(*) FILTER (WHERE n > 1), count(*) FILTER (WHERE n > {most}) FROM "
        f"(SELECT u, count(*) AS n FROM ({owners(table, tables)}) WHERE u IS NOT NULL GROUP BY u)"
    )
