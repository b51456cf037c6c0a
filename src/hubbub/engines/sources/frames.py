"""Tables in memory: pandas, polars and pyarrow, and whatever else hands out an Arrow stream.

They are read once, when they are opened; what happens to them afterwards changes nothing. Columns of Python objects are
text, whatever their values look like: a type that was guessed from values would tell about them.
"""

import importlib
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from hubbub.engines.sources import arrow
from hubbub.engines.sources.cell_text import text_of
from hubbub.engines.sources.origins import TABLES
from hubbub.errors import ParameterError, PolicyError

_read: "weakref.WeakSet[Any]" = weakref.WeakSet()
"""Readers that have given their rows away."""


def write(frame: Any, path: str) -> None:
    """A frame as a Parquet file."""
    arrow.write(*_batches(frame), path)


def _batches(frame: Any) -> tuple[Any, Any]:
    """The schema and the batches of whatever is a table."""
    if _is(frame, "pandas", "DataFrame"):
        table = _from_pandas(frame)
        return table.schema, table.to_batches()
    if _is(frame, "polars", "LazyFrame"):
        frame = frame.collect()
    if _is(frame, "polars", "DataFrame"):
        frame = _plain(frame)
    elif hasattr(frame, "to_frame") or isinstance(frame, pa.Array | pa.ChunkedArray):
        raise ParameterError("data", f"{TABLES}; make one of a single column with its to_frame()", type(frame))
    elif isinstance(frame, pa.RecordBatchReader):
        if frame in _read:
            raise PolicyError("The rows of this reader were read already. Open a new one, or give its table.")
        _read.add(frame)
        return frame.schema, frame
    elif hasattr(frame, "scanner"):  # a pyarrow.dataset
        frame = frame.scanner()
    if hasattr(frame, "to_reader"):
        reader = frame.to_reader()
    elif hasattr(frame, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(frame)
    else:
        raise ParameterError("data", TABLES, type(frame))
    return reader.schema, reader


def _is(frame: Any, package: str, name: str) -> bool:
    """Return whether it is of that class or one made from it, without importing the package."""
    return any(one.__name__ == name and one.__module__.split(".")[0] == package for one in type(frame).__mro__)


def _from_pandas(frame: Any) -> Any:
    """The columns, after the levels of the index that have a name of their own."""
    arrays: list[Any] = []
    names: list[str] = []
    for name, column in _columns(frame):
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise PolicyError(
                f"Column {len(names)} is not named by a text, but by a {type(name).__name__}. Rename it.",
                name="columns",
            )
        names.append(str(name))
        arrays.append(_column(column))
    return pa.Table.from_arrays(arrays, names=names)


def _columns(frame: Any) -> Iterator[tuple[Any, Any]]:
    own = {str(name).lower() for name in frame.columns}
    levels = frame.index.to_frame(index=False)
    for place, name in enumerate(frame.index.names):
        if isinstance(name, str) and name.lower() not in own:
            yield name, levels.iloc[:, place]
    for place, name in enumerate(frame.columns):
        yield name, frame.iloc[:, place]


def _column(column: Any) -> Any:
    """A pandas column, or the categories of one, as Arrow."""
    kind = type(column.dtype).__name__
    if kind == "CategoricalDtype":
        codes = column.cat.codes.to_numpy()
        return _column(column.cat.categories).take(pa.array(codes, mask=codes < 0))
    if kind == "SparseDtype":
        column = column.sparse.to_dense()
    if str(column.dtype) != "object":
        try:
            return pa.array(column, from_pandas=True)
        except UnicodeEncodeError:
            pass
        except (pa.ArrowException, TypeError, ValueError):  # a type that Arrow does not know
            return pa.nulls(len(column))
    return arrow.text_array(text_of(value) for value in column)


def _plain(frame: Any) -> Any:
    """A polars frame without the types that only polars has."""
    polars = importlib.import_module("polars")
    for name, type_ in frame.schema.items():
        if str(type_) in {"Int128", "UInt128"}:
            frame = frame.with_columns(polars.col(name).cast(polars.Decimal(38, 0), strict=False))
        elif str(type_) == "Object":
            texts = [text_of(value) for value in frame[name].to_list()]
            frame = frame.with_columns(polars.Series(name, texts, dtype=polars.String))
    return frame
