"""The SQL of the owner's check: conditions on single values, counted in one scan.

It runs on the owner's own connection and has nothing to do with how questions are answered, except that it reads values
by the same rule: what is not of the declared type, or out of its range, is missing.
"""

from collections.abc import Sequence
from datetime import date, datetime

from hubbub.policy.kinds import Type
from hubbub.policy.tables import Column, Table, Value

_ENGINE = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INTEGER: "HUGEINT",
    Type.REAL: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


def quoted(name: str) -> str:
    """A name, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def value_of(column: Column) -> str:
    """A column's value as its kind, missing where it is none."""
    kind = column.kind
    value = f"TRY_CAST({quoted(column.name)} AS {_ENGINE[kind.type]})"
    match kind.type:
        case Type.INTEGER:
            low, high = (literal(end) for end in kind.range)
            return f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} END"
        case Type.REAL:
            return f"CASE WHEN isfinite({value}) THEN {value} END"
        case Type.DATE:
            return f"CASE WHEN {value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {value} END"
        case Type.TIMESTAMP:
            first, last = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
            return f"CASE WHEN {value} BETWEEN {first} AND {last} THEN {value} END"
    return value


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


def outside(column: Column) -> str:
    """Below or above the declared bounds."""
    if column.bounds is None:
        return "false"
    whole = column.kind.type is Type.INTEGER
    low, high = (literal(int(end) if whole else float(end)) for end in column.bounds)
    return f"{value_of(column)} < {low} OR {value_of(column)} > {high}"


def elsewhere(column: Column) -> str:
    """Not among the declared keys."""
    keys = [key for key in column.keys or () if key is not None]
    value = value_of(column)
    known = f"{value} IN ({', '.join(literal(key) for key in keys)})" if keys else "false"
    missing = f"{value} IS NULL" if column.keys and None in column.keys else "false"
    return f"NOT coalesce({known}, false) AND NOT ({missing})"


def statement(table: Table, conditions: Sequence[str]) -> str:
    """How many rows there are, and for how many each condition is true."""
    parts = ["count(*)", *(f"count(*) FILTER (WHERE {condition})" for condition in conditions)]
    return f"SELECT {', '.join(parts)} FROM {quoted(table.name)}"


def units(table: Table, unit: Column, most: int) -> str:
    """How many units there are, how many have several rows, and how many more than ``most``."""
    value = value_of(unit)
    return (
        f"SELECT count(*), count(*) FILTER (WHERE n > 1), count(*) FILTER (WHERE n > {most}) FROM "
        f"(SELECT {value} AS u, count(*) AS n FROM {quoted(table.name)} WHERE {value} IS NOT NULL GROUP BY u)"
    )
