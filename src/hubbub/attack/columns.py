"""Tables of any make as plain columns: rows of mappings, a mapping of columns, or whatever has named columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.errors import ParameterError

Columns = dict[str, list[Any]]


def columns_of(table: Any) -> Columns:
    """Read columns of Python values. A value that a frame marks as not a number is None."""
    if isinstance(table, Mapping):
        found = {str(name): [_plain(one) for one in values] for name, values in table.items()}
    elif hasattr(table, "to_pydict"):  # Arrow
        found = {str(name): [_plain(one) for one in values] for name, values in table.to_pydict().items()}
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):  # pandas, polars and their like
        found = {str(name): [_plain(one) for one in table[name]] for name in table.columns}
    elif isinstance(table, Iterable) and not isinstance(table, str | bytes):
        found = _from_rows(list(table))
    else:
        raise ParameterError("table", "rows of mappings, a mapping of columns, or a frame", table)
    if len({len(values) for values in found.values()}) > 1:
        raise ParameterError("table", "columns of one length", {name: len(values) for name, values in found.items()})
    return found


def pick(columns: Columns, names: Sequence[str], *, what: str) -> list[tuple[Any, ...]]:
    """One tuple for each row, of the columns that are meant."""
    if not names or isinstance(names, str):
        raise ParameterError(what, "a list of at least one column", names)
    for name in names:
        if name not in columns:
            raise ParameterError(what, f"columns of the table ({', '.join(columns)})", name)
    return list(zip(*(columns[name] for name in names), strict=True))


def _from_rows(rows: list[Any]) -> Columns:
    if not all(isinstance(row, Mapping) for row in rows):
        raise ParameterError("table", "rows that are mappings from column to value", rows[:1])
    names = list(rows[0]) if rows else []
    if any(set(row) != set(names) for row in rows):
        raise ParameterError("table", "rows that all have the same columns", names)
    return {str(name): [_plain(row[name]) for row in rows] for name in names}


def _plain(value: Any) -> Any:
    held = value.item() if isinstance(value, np.generic) else value
    return held if (held != held) is False else None  # noqa: PLR0124 (what is missing does not equal itself)
