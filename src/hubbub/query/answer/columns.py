"""An answer column by column, for data frames.

Types follow from the question, so an answer without rows has them too, and a missing value does not make reals of whole
numbers. Only whole numbers beyond 64 bits need another type than the others.
"""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.errors import MissingExtra
from hubbub.policy.kinds import INT64, Type

_WIDE = 10**38
"""What a decimal of 38 digits cannot hold."""


@dataclass(frozen=True, slots=True)
class Nesting:
    """The content of a cell: one value, a list of them, or a mapping to them from keys of another type."""

    lists: bool = False
    keys: Type | None = None


PLAIN = Nesting()


@dataclass(frozen=True, slots=True)
class Shown:
    """One column: its values, and what they are."""

    name: str
    type: Type
    values: tuple[Any, ...]
    nesting: Nesting = PLAIN

    @property
    def wide(self) -> bool:
        """Return whether it holds whole numbers beyond 64 bits."""
        whole = self.type is Type.INTEGER and self.nesting == PLAIN
        return whole and not all(INT64[0] <= value <= INT64[1] for value in self.values if value is not None)


def make_column(name: str, type_: Type, values: Iterable[Any], nesting: Nesting = PLAIN) -> Shown:
    """A column whose values are of its type: a sum of reals may have come out whole."""
    found = tuple(values)
    if nesting != PLAIN:
        return Shown(name, type_, found, nesting)
    known = [value for value in found if value is not None]
    if type_ is Type.INTEGER and not all(isinstance(value, int) and abs(value) < _WIDE for value in known):
        type_ = Type.REAL
    if type_ is Type.REAL:
        found = tuple(None if value is None else float(value) for value in found)
    return Shown(name, type_, found)


def to_pandas(columns: Sequence[Shown]) -> Any:
    """A pandas DataFrame. Whole numbers, truths and texts are nullable; a date is midnight."""
    pandas = _package("pandas", "pandas")
    types = {
        Type.BOOLEAN: "boolean",
        Type.INTEGER: "Int64",
        Type.REAL: "float64",
        Type.TEXT: "string",
        Type.DATE: "datetime64[s]",
        Type.TIMESTAMP: "datetime64[us]",
    }

    def make(column: Shown) -> Any:
        plain = column.nesting == PLAIN and not column.wide
        return pandas.Series(list(column.values), dtype=types[column.type] if plain else "object")

    return pandas.DataFrame({column.name: make(column) for column in columns})


def to_polars(columns: Sequence[Shown]) -> Any:
    """A polars DataFrame."""
    polars = _package("polars", "polars")
    types = {
        Type.BOOLEAN: polars.Boolean,
        Type.INTEGER: polars.Int64,
        Type.REAL: polars.Float64,
        Type.TEXT: polars.String,
        Type.DATE: polars.Date,
        Type.TIMESTAMP: polars.Datetime("us"),
    }

    def make(column: Shown) -> Any:
        own, nesting = polars.Decimal(38, 0) if column.wide else types[column.type], column.nesting
        if nesting.keys is not None:
            pairs = polars.List(polars.Struct({"key": types[nesting.keys], "value": own}))
            listed = [None if one is None else _pairs(one, nesting.keys) for one in column.values]
            return polars.Series(column.name, listed, dtype=pairs)
        return polars.Series(column.name, list(column.values), dtype=polars.List(own) if nesting.lists else own)

    return polars.DataFrame([make(column) for column in columns])


def to_arrow(columns: Sequence[Shown]) -> Any:
    """A pyarrow Table."""
    pyarrow = _package("pyarrow", "arrow")
    types = {
        Type.BOOLEAN: pyarrow.bool_(),
        Type.INTEGER: pyarrow.int64(),
        Type.REAL: pyarrow.float64(),
        Type.TEXT: pyarrow.string(),
        Type.DATE: pyarrow.date32(),
        Type.TIMESTAMP: pyarrow.timestamp("us"),
    }

    def make(column: Shown) -> Any:
        own, nesting = pyarrow.decimal128(38, 0) if column.wide else types[column.type], column.nesting
        if nesting.keys is not None:
            pairs = [[tuple(pair.values()) for pair in _pairs(one, nesting.keys)] for one in column.values]
            return pyarrow.array(pairs, pyarrow.map_(types[nesting.keys], own))
        return pyarrow.array(column.values, pyarrow.list_(own) if nesting.lists else own)

    return pyarrow.table({column.name: make(column) for column in columns})


def _pairs(mapping: Mapping[Any, Any], keys: Type) -> list[dict[str, Any]]:
    """A mapping as data frames hold it: keys of one type, in order."""
    return [{"key": float(key) if keys is Type.REAL else key, "value": value} for key, value in mapping.items()]


def _package(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(name, extra) from None
