"""Arrow as Parquet: batches from a frame or from Arrow files go into one file that the engine can read.

What a column becomes follows from its Arrow type and never from its values, and no value makes this fail: text that is
not UTF-8 and moments that no calendar holds are missing. Columns that no question can use keep their place and say what
they are, and none of their values is copied.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hubbub.errors import PolicyError
from hubbub.policy.stamps import NO_FILES, Stamp, name_of, stamp_opened

Batch = Any
"""A pyarrow.RecordBatch; the package has no types of its own."""

ROWS = 1 << 17
"""Rows of a group in the file: the engine's threads take one group each."""

DAMAGED = (pa.ArrowException, OSError, EOFError)

_MAGIC = b"ARROW1"
_A_SECOND = {"s": 1, "ms": 10**3}
"""Units in which years beyond the engine's can be written."""
_A_DAY = 24 * 60 * 60 * _A_SECOND["ms"]
_CALENDAR = tuple(int(end.replace(tzinfo=UTC, microsecond=0).timestamp()) for end in (datetime.min, datetime.max))
_NOTHING = pa.null()
_STAND_INS = (
    (pa.types.is_map, pa.map_(pa.int8(), pa.int8())),
    (pa.types.is_struct, pa.struct([("a", pa.int8())])),
    (pa.types.is_nested, pa.list_(pa.int8())),
    (pa.types.is_time, pa.time64("us")),
    (pa.types.is_binary, pa.binary()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
)
"""For what no question can use: a type that the engine calls by the same name."""


def write(schema: Any, batches: Iterable[Batch], path: str) -> None:
    """All batches as one Parquet file."""
    kept = schema_to_store(schema)
    with pq.ParquetWriter(path, kept, store_schema=False) as writer:
        waiting: list[Batch] = []
        for batch in batches:
            columns = [_store(column, field.type) for column, field in zip(batch.columns, kept, strict=True)]
            waiting.append(pa.RecordBatch.from_arrays(columns, schema=kept))
            if sum(one.num_rows for one in waiting) >= ROWS:
                writer.write_table(pa.Table.from_batches(waiting, kept), row_group_size=ROWS)
                waiting = []
        writer.write_table(pa.Table.from_batches(waiting, kept), row_group_size=ROWS)


def write_files(paths: Sequence[str], path: str) -> Stamp:
    """Write Arrow files as one Parquet file; they must have the same columns. Return the stamp of what was read.

    Each is opened whenever it is read, and stamped by its descriptor: a path may lead elsewhere and back meanwhile.
    """
    read = NO_FILES

    def opened(one: str) -> tuple[Any, Iterator[Batch]]:
        nonlocal read
        try:
            with open(one, "rb") as file:
                read |= stamp_opened(one, file.fileno())
                return _open(one, name_of(file.fileno(), one))
        except OSError:
            raise _unreadable(one) from None

    first = opened(paths[0])[0]
    for other in paths[1:]:
        if not schema_to_store(opened(other)[0]).equals(schema_to_store(first)):
            raise PolicyError(
                f"{other} has not the columns and types of {paths[0]}. Make a table of each.", name="path"
            )
    write(first, (batch for one in paths for batch in opened(one)[1]), path)
    return read


def schema_to_store(schema: Any) -> Any:
    """The columns of the Parquet file, each once."""
    seen: set[str] = set()
    for name in schema.names:
        if name.lower() in seen:
            raise PolicyError(
                f"Two columns are called {ascii(name)[:80]}, where capitals do not count. Rename one.", name="columns"
            )
        seen.add(name.lower())
        if not name:
            raise PolicyError("A column has no name. Give it one.", name="columns")
    if not seen:
        raise PolicyError("There are no columns. Give a table that has some.", name="columns")
    return pa.schema([pa.field(field.name, type_to_store(field.type)) for field in schema])


def type_to_store(type_: Any) -> Any:
    """Return the type in which a column of an Arrow type is stored."""
    match type_:
        case pa.DictionaryType() | pa.RunEndEncodedType():
            return type_to_store(type_.value_type)
        case pa.UuidType():
            return type_
        case pa.BaseExtensionType():
            return _NOTHING
        case pa.TimestampType(unit=unit, tz=zone) if unit in _A_SECOND or (unit == "ns" and zone is not None):
            return pa.timestamp("us", zone)  # the engine reads no nanoseconds with a time zone
    if pa.types.is_decimal(type_):
        fits = type_.precision <= 38 and 0 <= type_.scale <= type_.precision
        return pa.decimal128(type_.precision, type_.scale) if fits else pa.float64()
    if _is_text(type_):
        return pa.large_string()
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_date64(type_):
        return pa.date32()
    if any(
        asked(type_) for asked in (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_date)
    ):
        return type_
    if pa.types.is_timestamp(type_):
        return type_
    return next((stand_in for asked, stand_in in _STAND_INS if asked(type_)), _NOTHING)


def text_array(values: Iterable[str | None]) -> Any:
    """Texts as a column."""
    return pa.array(values, pa.large_string())


def _is_text(type_: Any) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _store(column: Any, kept: Any) -> Any:
    """The values of a column as its stored type."""
    if kept == _NOTHING or pa.types.is_nested(kept) or pa.types.is_time(kept) or pa.types.is_binary(kept):
        return pa.nulls(len(column), kept)
    if isinstance(column.type, pa.DictionaryType):
        return _store(column.dictionary, kept).take(column.indices)
    if isinstance(column.type, pa.RunEndEncodedType):
        return _store(pc.run_end_decode(column), kept)
    if _is_text(column.type):
        return _text(column)
    column.validate(full=pa.types.is_decimal(column.type))
    if column.type == kept:
        return column
    if pa.types.is_timestamp(kept) and column.type.unit in _A_SECOND:
        column = _in_calendar(column, _A_SECOND[column.type.unit])
    if pa.types.is_date(kept):
        column = _whole_days(_in_calendar(column, _A_SECOND["ms"]))
    return column.cast(kept, safe=False)  # moments lose what is below their unit; all else fits


def _text(column: Any) -> Any:
    """Text; what is not UTF-8 is missing."""
    column.validate()
    try:
        column.validate(full=True)
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:
        raw = column.view(pa.binary_view() if pa.types.is_string_view(column.type) else _bytes_of(column.type))
        raw.validate(full=True)  # it is the letters alone that were wrong
        return text_array(_decode(value) for value in raw.to_pylist())


def _bytes_of(type_: Any) -> Any:
    return pa.binary() if pa.types.is_string(type_) else pa.large_binary()


def _decode(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _in_calendar(column: Any, second: int) -> Any:
    """Moments of the years 1 to 9999; the others are missing, as they are for the engine."""
    low, high = _CALENDAR
    counted = column.cast(pa.int64())
    known = pc.and_(pc.greater_equal(counted, low * second), pc.less(counted, (high + 1) * second))
    return pc.if_else(known, column, pa.scalar(None, column.type))


def _whole_days(column: Any) -> Any:
    """Days in milliseconds; those with a part of a day, which is no day, are missing: two would become one."""
    counted = column.cast(pa.int64())
    whole = pc.equal(pc.multiply(pc.divide(counted, _A_DAY), _A_DAY), counted)
    return pc.if_else(whole, column, pa.scalar(None, column.type))


def _open(path: str, name: str) -> tuple[Any, Iterator[Batch]]:
    """The schema and the batches of an Arrow file, which is either a file or a stream by its first bytes."""
    try:
        source = pa.memory_map(name)
        if source.read(len(_MAGIC)) == _MAGIC:
            file = pa.ipc.open_file(source)
            return file.schema, _read(path, (file.get_batch(place) for place in range(file.num_record_batches)))
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, _read(path, stream)
    except DAMAGED:
        raise _unreadable(path) from None


def _read(path: str, batches: Iterable[Batch]) -> Iterator[Batch]:
    try:
        for batch in batches:
            batch.validate()
            yield batch
    except DAMAGED:
        raise _unreadable(path) from None


def _unreadable(path: str) -> PolicyError:
    return PolicyError(f"{path} could not be read as an Arrow file or stream. Write it again.", name="path")
