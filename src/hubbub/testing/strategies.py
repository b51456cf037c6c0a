"""Hypothesis strategies for what a policy declares: values of its columns, its tables, neighbours and questions.

Nothing is read: tables are made up from the declarations alone. They hold the worst rows that are known (values far
beyond the bounds, units with very many rows, keys that nobody else has) before they hold any at random, since those are
what breaks a guarantee. Examples shrink towards the first of these.
"""

from datetime import date, datetime
from itertools import islice
from typing import Any

from hubbub.audit.chance import Chance
from hubbub.errors import MissingExtra
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Policy, TableColumn, Value
from hubbub.testing.made_up import Data, Row, Schema, odd, usual, with_declared_keys

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
except ImportError as missing:
    raise MissingExtra("hypothesis", "testing") from missing

Tables = dict[str, list[Row]]
"""Rows by the names of their tables."""

_PAIRS = 40
"""Pairs to choose from under one seed: ten that are known to be bad, and thirty at random."""
_SEEDS = 1 << 32
_NUMBERS = ("sum", "avg", "median", "min", "max", "stddev")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def values(column: TableColumn) -> SearchStrategy[Any]:
    """Draw a value for a column: one that its declaration leads to expect, or one that breaks it."""
    return st.sampled_from(usual(column)) | st.sampled_from(odd(column))


def neighbors(policy: Policy) -> SearchStrategy[tuple[Tables, Tables]]:
    """Draw two databases that differ in the rows of one unit, as the budget of the policy says what neighbours are."""
    schema = Schema(policy=with_declared_keys(policy))

    def build(seed: int, place: int) -> tuple[Tables, Tables]:
        pair = next(islice(schema.pairs(Chance(seed)), place, None))
        return _all_rows(schema, pair.x), _all_rows(schema, pair.y)

    return st.builds(build, st.integers(0, _SEEDS), st.integers(0, _PAIRS - 1))


def tables(policy: Policy) -> SearchStrategy[Tables]:
    """Draw rows for every table of a policy, the public ones too."""
    return neighbors(policy).map(lambda pair: pair[0])


@st.composite
def questions(draw: DrawFn, policy: Policy) -> str:
    """Draw a question in SQL about one private table. One that the policy does not allow is refused, on any data."""
    table = draw(st.sampled_from([table for table in policy.tables.values() if table.unit is not None]))
    columns = [column for column in table.columns if column.name != table.unit]
    grouped = draw(st.lists(st.sampled_from([_quote(column.name) for column in columns]), unique=True, max_size=2))
    outputs = draw(st.lists(_aggregates(columns), min_size=1, max_size=3, unique=True))
    text = f"SELECT {', '.join([*grouped, *outputs])} FROM {_quote(table.name)}"
    filtered = draw(st.booleans())
    if columns and filtered:
        text += f" WHERE {draw(_conditions(columns))}"
    return f"{text} GROUP BY {', '.join(grouped)}" if grouped else text


def _all_rows(schema: Schema, data: Data) -> Tables:
    return {**schema.public, **data.tables()}


def _aggregates(columns: list[TableColumn]) -> SearchStrategy[str]:
    names = ["count(*)"]
    for column in columns:
        quoted = _quote(column.name)
        names += [f"count({quoted})", f"count(DISTINCT {quoted})"]
        if column.kind.type in (Type.INTEGER, Type.REAL):
            names += [f"{function}({quoted})" for function in _NUMBERS]
    return st.sampled_from(names)


@st.composite
def _conditions(draw: DrawFn, columns: list[TableColumn]) -> str:
    column = draw(st.sampled_from(columns))
    if draw(st.booleans()):
        return f"{_quote(column.name)} IS {draw(st.sampled_from(('NULL', 'NOT NULL')))}"
    known = [value for value in usual(column) if value is not None]
    return f"{_quote(column.name)} {draw(st.sampled_from(_COMPARISONS))} {_literal(draw(st.sampled_from(known)))}"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Value) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return str(value)
