"""Pieces of DuckDB's SQL, each whole in itself: a name, a literal, a call, or something in parentheses.

A ``Sql`` is made here and nowhere else. Names are quoted, constants are quoted literals of a stated type, so nothing
that an analyst or a table says is read as SQL. Pieces are texts: they can be used twice without a copy.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import NewType

from hubbub.errors import ParameterError
from hubbub.policy.kinds import Kind
from hubbub.policy.scanned import engine_type
from hubbub.query.expression import Value

Sql = NewType("Sql", str)

STAR = Sql("*")
NULL = Sql("NULL")
TRUE = Sql("TRUE")
FALSE = Sql("FALSE")


# Names and literals


def name(identifier: str, *, of: str | None = None) -> Sql:
    """A quoted name; of a table, where two could be meant."""
    quoted = '"' + identifier.replace('"', '""') + '"'
    if "\0" in quoted:
        raise ParameterError("name", "without NUL", identifier)
    return Sql(quoted if of is None else f"{name(of)}.{quoted}")


def text(value: str) -> Sql:
    """A text literal. NUL would end a statement early, so it is put together from its number."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParameterError("text", "valid UTF-8", value) from None
    if "\0" not in value:
        return Sql("'" + value.replace("'", "''") + "'")
    pieces: list[Sql] = []
    for index, piece in enumerate(value.split("\0")):
        pieces += [function("chr", Sql("0"))] if index else []
        pieces += [text(piece)] if piece else []
    return function("concat", *pieces)


def number(value: int) -> Sql:
    """A whole number of no stated type, in parentheses where it has a sign."""
    return Sql(f"{value:d}" if value >= 0 else f"({value:d})")


def constant(value: Value, kind: Kind) -> Sql:
    """A literal of the engine's type for its kind, exact to the last bit."""
    type_ = engine_type(kind)
    match value:
        case None:
            return cast(NULL, type_)
        case bool():
            return TRUE if value else FALSE
        case int():
            return cast(number(value), type_)
        case float() if math.isfinite(value):
            return cast(text(repr(value)), type_)
        case str():
            return text(value)
        case datetime() if value.tzinfo is None:
            return cast(text(value.isoformat(sep=" ")), type_)
        case date() if not isinstance(value, datetime):
            return cast(text(value.isoformat()), type_)
    raise ParameterError("constant", "finite, and without a time zone", value)


# Expressions


def cast(piece: Sql, type_: str) -> Sql:
    """A cast that cannot fail for the values it is used on."""
    return Sql(f"CAST({piece} AS {type_})")


def try_cast(piece: Sql, type_: str) -> Sql:
    """A cast that gives NULL where it fails."""
    return Sql(f"TRY_CAST({piece} AS {type_})")


def function(name_: str, *arguments: Sql) -> Sql:
    """A function of the engine, by its own name."""
    return Sql(f"{name_}({', '.join(arguments)})")


def infix(operator: str, *pieces: Sql) -> Sql:
    """An operator between pieces, all of it in parentheses."""
    return Sql("(" + f" {operator} ".join(pieces) + ")")


def negation(piece: Sql) -> Sql:
    """NOT."""
    return Sql(f"(NOT {piece})")


def missing(piece: Sql) -> Sql:
    """IS NULL."""
    return Sql(f"({piece} IS NULL)")


def present(piece: Sql) -> Sql:
    """IS NOT NULL."""
    return Sql(f"({piece} IS NOT NULL)")


def case(*pairs: tuple[Sql, Sql], otherwise: Sql | None = None) -> Sql:
    """CASE WHEN … THEN … ELSE … END."""
    whens = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
    return Sql(f"CASE {whens} END" if otherwise is None else f"CASE {whens} ELSE {otherwise} END")


def among(piece: Sql, choices: Sequence[Sql]) -> Sql:
    """IN a list."""
    return Sql(f"({piece} IN ({', '.join(choices)}))")


def over(called: Sql, *, partition: Sequence[Sql], order: Sequence[Sql] = (), frame: str = "") -> Sql:
    """A window function; missing values come last."""
    ordered = ", ".join(f"{one} NULLS LAST" for one in order)
    parts = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    parts += [f"ORDER BY {ordered}"] if ordered else []
    return Sql(f"{called} OVER ({' '.join([*parts, *([frame] if frame else [])])})")


def distinct(piece: Sql) -> Sql:
    """For an aggregate: each value once."""
    return Sql(f"DISTINCT {piece}")


def descending(piece: Sql) -> Sql:
    """For an order: the greatest first."""
    return Sql(f"{piece} DESC")


def secret(place: int) -> Sql:
    """One of the statement's secret numbers, which are its parameters."""
    return cast(Sql(f"${place:d}"), "UBIGINT")


def but(*columns: str) -> Sql:
    """All columns except these."""
    return Sql(f"{STAR} EXCLUDE ({', '.join(name(column) for column in columns)})")


def struct(fields: Mapping[str, Sql]) -> Sql:
    """Several values as one that is equal where all of them are, missing ones included."""
    return function("struct_pack", *(Sql(f"{name(field)} := {piece}") for field, piece in fields.items()))


# Statements


def alias(piece: Sql, called: str) -> Sql:
    """A named column."""
    return Sql(f"{piece} AS {name(called)}")


def select(
    source: Sql,
    *shown: Sql,
    where: Sequence[Sql] = (),
    by: Sequence[Sql] = (),
    order: Sequence[Sql] = (),
    most: int = 0,
) -> Sql:
    """SELECT shown FROM source WHERE … GROUP BY … ORDER BY … LIMIT."""
    parts = [f"SELECT {', '.join(shown)} FROM {source}"]
    parts += [f"WHERE {' AND '.join(where)}"] if where else []
    parts += [f"GROUP BY {', '.join(by)}"] if by else []
    parts += [f"ORDER BY {', '.join(order)}"] if order else []
    parts += [f"LIMIT {most:d}"] if most else []
    return Sql(" ".join(parts))


def within(query: Sql, called: str = "q") -> Sql:
    """A query as something to select from."""
    return Sql(f"({query}) AS {name(called)}")


def joined(left: Sql, right: Sql, on: Sequence[Sql], *, kind: str = "INNER") -> Sql:
    """Two sources side by side."""
    return Sql(f"{left} {kind} JOIN {right} ON {' AND '.join(on)}")


def union_all(queries: Sequence[Sql]) -> Sql:
    """All rows of several queries, one below the other."""
    return Sql(" UNION ALL ".join(f"({query})" for query in queries))


def with_once(query: Sql, called: str, then: Sql) -> Sql:
    """A statement that looks several times at the rows of a query, which are made once."""
    return Sql(f"WITH {name(called)} AS MATERIALIZED ({query}) {then}")


def reader(name_: str, paths: Sequence[str], options: Mapping[str, Sql] | None = None) -> Sql:
    """A table function that reads files."""
    named = [Sql(f"{key} = {value}") for key, value in (options or {}).items()]
    return function(name_, Sql("[" + ", ".join(text(path) for path in paths) + "]"), *named)
