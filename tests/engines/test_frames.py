"""Tables of pandas, polars and pyarrow, and Arrow files, with the real packages: answered as their rows in Parquet."""

import stat
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pytest

import hubbub as hb
from hubbub.audit.subjects.in_process.inside import exact_of
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.sources.cell_text import text_of
from hubbub.errors import HubbubError, ParameterError, PolicyError
from hubbub.ledger import Marks
from hubbub.policy.build import single_table
from hubbub.policy.sources import source_of
from hubbub.policy.tables import Limits, TableSource
from hubbub.query.expression import Column as Named
from hubbub.query.ops import Scan, ScanColumn
from hubbub.testing.replay import replayed

pa = pytest.importorskip("pyarrow", reason="frames are read through pyarrow, which is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed, so there are no frames of its to read")
pl = pytest.importorskip("polars", reason="polars is not installed, so there are no frames of its to read")

from hubbub.engines.sources import arrow  # noqa: E402  (it needs pyarrow)

WARDS = ["a", "b", "c"]
ROWS: dict[str, list[Any]] = {
    "person": [number // 2 for number in range(60)],
    "ward": [None if number % 11 == 0 else WARDS[number % 3] for number in range(60)],
    "cost": [None if number % 7 == 0 else float(number % 9) / 2 for number in range(60)],
    "day": [date(2026, 1 + number % 3, 1) for number in range(60)],
}
QUESTION = "SELECT ward, count(*) AS n, sum(cost) AS s, avg(cost) AS m, sum(month(day)) AS d FROM data GROUP BY ward"


def opening(folder: Path, data: Any, **changes: Any) -> hb.Database:
    options: dict[str, Any] = {
        "unit": "person",
        "budget": hb.Budget(epsilon=Fraction(1000)),
        "bounds": {"cost": (0, 5)},
        "keys": {"ward": WARDS},
        "name": "data",
        "max_groups": 3,
        "max_rows": 4,
        "limits": Limits(max_groups=3, max_rows=4, threads=1, memory="500MB", temporary="1GB"),
        "ledger": folder / "frames.ledger",
        "marks": Marks(folder / "state"),
    }
    return hb.open(data, **(options | changes))


def told(folder: Path, data: Any) -> tuple[Any, ...]:
    """Everything that an answer shows, under the same noise for all."""
    with opening(folder, data) as db, replayed(seed=5):
        answer = db.sql(QUESTION, epsilon=1)
    declared = [(table.name, table.columns, table.unit) for table in answer.plan.policy.tables.values()]
    return answer.columns, answer.rows, answer.lows, answer.highs, declared


def arrow_table() -> Any:
    return pa.table(ROWS, schema=pa.schema({"person": "int64", "ward": "string", "cost": "float64", "day": "date32"}))


@pytest.fixture(scope="module")
def from_parquet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    folder = tmp_path_factory.mktemp("parquet")
    rows = list(zip(*ROWS.values(), strict=True))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t(person BIGINT, ward VARCHAR, cost DOUBLE, day DATE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        connection.execute(f"COPY t TO '{folder / 'data.parquet'}' (FORMAT parquet)")
    return told(folder, folder / "data.parquet")


class Stream:
    """Somebody's own table, known by its Arrow stream alone."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return arrow_table().__arrow_c_stream__(requested_schema)


def pandas_frame() -> Any:
    frame = pd.DataFrame(ROWS)
    frame["day"] = frame["day"].astype("date32[pyarrow]")
    return frame


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": pandas_frame,
    "pandas with its index": lambda: pandas_frame().set_index("person"),
    "pandas categories": lambda: pandas_frame().astype({"ward": "category"}),
    "polars": lambda: pl.DataFrame(ROWS),
    "polars lazy": lambda: pl.DataFrame(ROWS).lazy(),
    "polars categories": lambda: pl.DataFrame(ROWS).with_columns(pl.col("ward").cast(pl.Categorical)),
    "arrow": arrow_table,
    "arrow in chunks": lambda: pa.concat_tables([arrow_table().slice(at, 1) for at in range(60)]),
    "arrow dictionaries": lambda: arrow_table().set_column(1, "ward", arrow_table()["ward"].dictionary_encode()),
    "arrow batch": lambda: arrow_table().to_batches()[0],
    "arrow reader": lambda: arrow_table().to_reader(max_chunksize=7),
    "arrow dataset": lambda: pytest.importorskip("pyarrow.dataset").dataset(arrow_table()),
    "somebody's stream": Stream,
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_a_frame_is_answered_as_its_rows_in_parquet(
    tmp_path: Path, from_parquet: tuple[Any, ...], make: Callable[[], Any]
) -> None:
    assert told(tmp_path, make()) == from_parquet


def as_file(table: Any, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=13)


def as_stream(table: Any, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=13)


def as_feather(table: Any, path: Path) -> None:
    pl.from_arrow(table).write_ipc(path, compression="zstd")


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (as_file, "data.arrow"),
        (as_file, "data.ipc"),
        (as_stream, "data.arrow"),
        (as_stream, "data.arrows"),
        (as_feather, "data.feather"),
    ],
)
def test_an_arrow_file_is_answered_as_its_rows_in_parquet(
    tmp_path: Path, from_parquet: tuple[Any, ...], write: Callable[[Any, Path], None], name: str
) -> None:
    write(arrow_table(), tmp_path / name)
    assert told(tmp_path, tmp_path / name) == from_parquet


def test_several_arrow_files_are_one_table(tmp_path: Path, from_parquet: tuple[Any, ...]) -> None:
    as_file(arrow_table().slice(0, 20), tmp_path / "data1.arrow")
    as_stream(arrow_table().slice(20), tmp_path / "data2.arrow")
    assert told(tmp_path, tmp_path / "data*.arrow") == from_parquet
    as_file(pa.table({"person": [1], "ward": [2]}), tmp_path / "data3.arrow")
    with pytest.raises(PolicyError, match=r"data3\.arrow has not the columns and types of .*data1\.arrow"):
        told(tmp_path, tmp_path / "data*.arrow")


@pytest.mark.parametrize("spoil", [lambda _: b"", lambda _: b"FEA1 and more", lambda raw: raw[: len(raw) // 2]])
@pytest.mark.parametrize("write", [as_file, as_stream])
def test_a_damaged_arrow_file(
    engine: DuckDB, tmp_path: Path, write: Callable[[Any, Path], None], spoil: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "data.arrow"
    write(arrow_table(), path)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(PolicyError, match=r"data\.arrow could not be read as an Arrow file or stream"):
        engine.describe(source_of(path))


# What a column becomes


def seen(engine: DuckDB, frame: Any, column: str = "x") -> tuple[str, tuple[Any, ...]]:
    """The engine's type of a column, and its values as questions see them, sorted; missing ones are not shown."""
    source = TableSource(format="frame", frame=frame)
    schema = engine.describe(source)
    table = single_table(name="t", source=source, schema=schema, unit=None)
    found = table.column(column)
    if found is None:
        return dict(schema)[column], ()
    scan = Scan(table="t", columns=(ScanColumn(column, found.kind, column),), unit=None)
    values = engine.values(scan, Named(column, found.kind), tables={"t": table}, most=100)
    return dict(schema)[column], values


def pandas_of(values: list[Any], dtype: Any) -> Any:
    return pd.DataFrame({"x": pd.Series(values, dtype=dtype)})


def polars_of(values: list[Any], dtype: Any) -> Any:
    return pl.DataFrame({"x": pl.Series(values, dtype=dtype)})


def arrow_of(values: list[Any], dtype: Any) -> Any:
    return pa.table({"x": pa.array(values, dtype)})


NAN, INF = float("nan"), float("inf")
NOON = datetime(2026, 3, 1, 12)
HALF = Decimal("1.50")
INTEGERS = [("int8", "TINYINT"), ("int16", "SMALLINT"), ("int32", "INTEGER"), ("int64", "BIGINT")]
INTEGERS += [(f"u{name}", f"U{engine}") for name, engine in INTEGERS]


@pytest.mark.parametrize(("name", "expected"), INTEGERS)
def test_integers_of_every_width(engine: DuckDB, name: str, expected: str) -> None:
    ends = [int(np.iinfo(name).min), 1, int(np.iinfo(name).max)]
    nullable = name.replace("i", "I").replace("u", "U")
    assert seen(engine, pandas_of(ends, name)) == (expected, tuple(ends))
    assert seen(engine, pandas_of([*ends, None], nullable)) == (expected, tuple(ends))
    assert seen(engine, polars_of([*ends, None], getattr(pl, nullable))) == (expected, tuple(ends))
    assert seen(engine, arrow_of([*ends, None], name)) == (expected, tuple(ends))


COLUMNS: dict[str, tuple[Callable[[], Any], str, tuple[Any, ...]]] = {
    "pandas float64": (lambda: pandas_of([1.5, NAN, INF, -INF], "float64"), "DOUBLE", (1.5,)),
    "pandas float32": (lambda: pandas_of([1.5, NAN, INF], "float32"), "FLOAT", (1.5,)),
    "pandas float16": (lambda: pandas_of([1.5, NAN], "float16"), "FLOAT", (1.5,)),
    "pandas Float64": (lambda: pandas_of([1.5, None], "Float64"), "DOUBLE", (1.5,)),
    "pandas bool": (lambda: pandas_of([True, False], "bool"), "BOOLEAN", (False, True)),
    "pandas boolean": (lambda: pandas_of([True, None], "boolean"), "BOOLEAN", (True,)),
    "pandas str": (lambda: pandas_of(["ä", "", None], "str"), "VARCHAR", ("", "ä")),
    "pandas string": (lambda: pandas_of(["ä", "", pd.NA], "string"), "VARCHAR", ("", "ä")),
    "pandas broken letters": (lambda: pandas_of(["\ud800", "a"], "string[python]"), "VARCHAR", ("a",)),
    "pandas ns": (lambda: pandas_of([NOON, pd.NaT], "datetime64[ns]"), "TIMESTAMP_NS", (NOON,)),
    "pandas s": (lambda: pandas_of([NOON, pd.NaT], "datetime64[s]"), "TIMESTAMP", (NOON,)),
    "pandas s far": (
        lambda: pd.DataFrame({"x": np.array([2**40, 0]).astype("M8[s]")}),
        "TIMESTAMP",
        (datetime(1970, 1, 1),),
    ),
    "pandas tz": (
        lambda: pd.DataFrame({"x": pd.Series([NOON]).dt.tz_localize("Asia/Tokyo")}),
        "TIMESTAMP WITH TIME ZONE",
        (datetime(2026, 3, 1, 3),),
    ),
    "pandas category": (lambda: pandas_of(["b", "a", None], "category"), "VARCHAR", ("a", "b")),
    "pandas category of integers": (lambda: pandas_of([7, None], pd.CategoricalDtype([5, 7])), "BIGINT", (7,)),
    "pandas category of objects": (
        lambda: pandas_of([date(2026, 1, 2)], pd.CategoricalDtype([date(2026, 1, 2), "x"])),
        "VARCHAR",
        ("2026-01-02",),
    ),
    "pandas sparse": (lambda: pd.DataFrame({"x": pd.arrays.SparseArray([0, 3])}), "BIGINT", (0, 3)),
    "pandas objects": (
        lambda: pandas_of(["b", 1, None, NAN, pd.NA, pd.NaT, True], object),
        "VARCHAR",
        ("1", "b", "true"),
    ),
    "pandas decimals": (lambda: pandas_of([HALF, None], object), "VARCHAR", ("1.5",)),
    "pandas arrow decimals": (
        lambda: pandas_of([HALF, None], pd.ArrowDtype(pa.decimal128(9, 2))),
        "DECIMAL(9,2)",
        (1.5,),
    ),
    "polars Float32": (lambda: polars_of([1.5, NAN, None, INF], pl.Float32), "FLOAT", (1.5,)),
    "polars Boolean": (lambda: polars_of([True, None], pl.Boolean), "BOOLEAN", (True,)),
    "polars Decimal": (lambda: polars_of([HALF, None], pl.Decimal(9, 2)), "DECIMAL(9,2)", (1.5,)),
    "polars Int128": (lambda: polars_of([2**100, None, -(2**127)], pl.Int128), "DECIMAL(38,0)", (2**100,)),
    "polars Date": (lambda: polars_of([date(2026, 1, 2), None], pl.Date), "DATE", (date(2026, 1, 2),)),
    "polars ms": (lambda: polars_of([NOON, None], pl.Datetime("ms")), "TIMESTAMP", (NOON,)),
    "polars ns tz": (
        lambda: polars_of([NOON], pl.Datetime("ns", "UTC")).with_columns(
            pl.col("x").dt.convert_time_zone("Asia/Tokyo")
        ),
        "TIMESTAMP WITH TIME ZONE",
        (NOON,),
    ),
    "polars Categorical": (lambda: polars_of(["b", None, "a"], pl.Categorical), "VARCHAR", ("a", "b")),
    "polars Enum": (lambda: polars_of(["b", None], pl.Enum(["a", "b"])), "VARCHAR", ("b",)),
    "polars Object": (lambda: polars_of(["b", 1, None, object()], pl.Object), "VARCHAR", ("1", "b")),
    "arrow half": (lambda: arrow_of([np.float16(1.5), None], pa.float16()), "FLOAT", (1.5,)),
    "arrow decimal": (lambda: arrow_of([HALF, None], pa.decimal128(38, 10)), "DECIMAL(38,10)", (1.5,)),
    "arrow whole decimal": (lambda: arrow_of([Decimal(12), None], pa.decimal128(20, 0)), "DECIMAL(20,0)", (12,)),
    "arrow odd decimal": (lambda: arrow_of([Decimal("1.2E3"), None], pa.decimal128(5, -2)), "DOUBLE", (1200.0,)),
    "arrow big decimal": (lambda: arrow_of([HALF, None], pa.decimal256(50, 10)), "DOUBLE", (1.5,)),
    "arrow fitting decimal": (lambda: arrow_of([HALF, None], pa.decimal256(9, 2)), "DECIMAL(9,2)", (1.5,)),
    "arrow large text": (lambda: arrow_of(["ä", None], pa.large_string()), "VARCHAR", ("ä",)),
    "arrow text view": (lambda: arrow_of(["ä", None], pa.string_view()), "VARCHAR", ("ä",)),
    "arrow dictionary of integers": (
        lambda: pa.table({"x": pa.array([5, None]).dictionary_encode()}),
        "BIGINT",
        (5,),
    ),
    "arrow runs": (
        lambda: pa.table({"x": pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["b", None]))}),
        "VARCHAR",
        ("b",),
    ),
    "arrow uuid": (lambda: arrow_of([UUID(int=5).bytes, None], pa.uuid()), "UUID", (str(UUID(int=5)),)),
    "arrow date64": (
        lambda: arrow_of([86_400_000, None, 2**62, -(2**62)], pa.date64()),
        "DATE",
        (date(1970, 1, 2),),
    ),
    "arrow date32": (
        lambda: pa.table({"x": pa.array([1, 2**31 - 1, -(2**31), None], "int32").cast("date32")}),
        "DATE",
        (date(1970, 1, 2),),
    ),
    **{
        f"arrow {unit} {zone}": (
            partial(arrow_of, [0, 2**63 - 1, -(2**63) + 1, None], pa.timestamp(unit, zone)),
            "TIMESTAMP" if zone is None else "TIMESTAMP WITH TIME ZONE",
            (datetime(1970, 1, 1),),
        )
        for unit in ("s", "ms", "us")
        for zone in (None, "Asia/Tokyo")
    },
}


@pytest.mark.parametrize(("make", "type_", "values"), COLUMNS.values(), ids=COLUMNS.keys())
def test_what_a_column_becomes(engine: DuckDB, make: Callable[[], Any], type_: str, values: tuple[Any, ...]) -> None:
    assert seen(engine, make()) == (type_, values)


def test_the_calendar_ends_where_it_ends(engine: DuckDB) -> None:
    ends = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)
    seconds = [int(end.replace(tzinfo=UTC).timestamp()) for end in ends]
    for unit, second, last in (("s", 1, 0), ("ms", 1000, 999)):
        inside = [seconds[0] * second, seconds[1] * second + last]
        outside = [inside[0] - 1, inside[1] + 1]
        wanted = ends[0], ends[1] + timedelta(milliseconds=last)
        assert seen(engine, arrow_of(inside + outside, pa.timestamp(unit)))[1] == wanted


UNUSABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "pandas complex": (lambda: pandas_of([1j], "complex128"), "type that is not known"),
    "pandas period": (lambda: pd.DataFrame({"x": pd.period_range("2026-01", periods=1, freq="M")}), "not known"),
    "pandas interval": (lambda: pd.DataFrame({"x": pd.interval_range(0, 1)}), "not known"),
    "pandas timedelta": (lambda: pandas_of([timedelta(1)], "timedelta64[ns]"), "not known"),
    "polars Duration": (lambda: polars_of([timedelta(1)], pl.Duration), "not known"),
    "polars Null": (lambda: polars_of([None], pl.Null), "not known"),
    "polars Time": (lambda: polars_of([time(1)], pl.Time), "times without a day"),
    "polars List": (lambda: polars_of([[12345]], pl.List(pl.Int64)), "lists"),
    "polars Struct": (lambda: polars_of([{"a": 12345}], pl.Struct({"a": pl.Int64})), "structures"),
    "polars Binary": (lambda: polars_of([b"12345"], pl.Binary), "bytes"),
    "arrow map": (lambda: arrow_of([[(1, 12345)]], pa.map_(pa.int8(), pa.int64())), "maps"),
    "arrow bytes": (lambda: arrow_of([b"12345"], pa.binary(5)), "bytes"),
    "arrow lists": (lambda: arrow_of([[12345]], pa.list_(pa.int64(), 1)), "lists"),
}


@pytest.mark.parametrize(("make", "reason"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_what_no_question_can_use_says_what_it_is_and_is_not_copied(
    engine: DuckDB, make: Callable[[], Any], reason: str
) -> None:
    frame = pa.table(make()) if isinstance(make(), pa.Table) else make()
    source = TableSource(format="frame", frame=frame)
    with pytest.raises(PolicyError, match=reason):
        single_table(name="t", source=source, schema=engine.describe(source), unit=None)
    (path,) = engine._sources.origin(source).paths
    assert pytest.importorskip("pyarrow.parquet").read_table(path)["x"].null_count == 1


def test_days_with_a_part_of_a_day_are_missing() -> None:
    days = pa.array([0, 1, 86_400_000, 86_400_001, -86_400_000, None], pa.int64()).view(pa.date64())
    stored = arrow._store(days, pa.date32()).to_pylist()
    assert stored == [date(1970, 1, 1), None, date(1970, 1, 2), None, date(1969, 12, 31), None]


@pytest.mark.parametrize("type_", ["string", "large_string", "string_view"])
def test_text_that_is_not_utf8_is_missing(engine: DuckDB, type_: str) -> None:
    raw = pa.array([b"good", b"\xff\xfe and longer than a view", None, "ä".encode()])
    target = {"string": pa.binary(), "large_string": pa.large_binary(), "string_view": pa.binary_view()}[type_]
    column = raw.cast(target).view(getattr(pa, type_)())
    assert seen(engine, pa.table({"x": column}))[1] == ("good", "ä")
    if type_ != "string_view":
        indices = pa.array([1, 0, None], "int8")
        assert seen(engine, pa.table({"x": pa.DictionaryArray.from_arrays(indices, column)}))[1] == ("good",)


def test_offsets_that_lead_elsewhere_are_refused(engine: DuckDB, told: list[str]) -> None:
    offsets = pa.py_buffer(np.array([0, 1 << 20, 2], dtype=np.int32).tobytes())
    column = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    with pytest.raises(HubbubError):
        seen(engine, pa.table({"x": column}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: pandas_of([1, 2], "category"), lambda: pandas_of([1, None], "category")),
        (lambda: pandas_of([1, 2], object), lambda: pandas_of(["x", None], object)),
        (lambda: pandas_of([1, 2], object), lambda: pandas_of([None, None], object)),
        (lambda: pandas_of([date(2026, 1, 1)], object), lambda: pandas_of([[1], {"a": 2}], object)),
        (lambda: polars_of([5], pl.Int128), lambda: polars_of([-(2**127)], pl.Int128)),
        (lambda: arrow_of([5], pa.timestamp("s")), lambda: arrow_of([2**62], pa.timestamp("s"))),
    ],
)
def test_a_type_does_not_follow_from_values(engine: DuckDB, one: Any, other: Any) -> None:
    assert seen(engine, one())[0] == seen(engine, other())[0]


class Odd:
    def __str__(self) -> str:
        raise AssertionError("nobody asked")

    __repr__ = __str__


class Unwilling(int):
    """A number of somebody's own."""

    def __int__(self) -> int:
        raise RuntimeError("7")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ä", "ä"),
        ("", ""),
        ("\ud800", None),
        (np.str_("n"), "n"),
        (True, "true"),
        (np.bool_(False), "false"),
        (12, "12"),
        (np.int8(-3), "-3"),
        (10**5000, None),
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (np.float32(0.5), "0.5"),
        (NAN, None),
        (INF, None),
        (Decimal("1.00"), "1"),
        (Decimal("-1.250"), "-1.25"),
        (Decimal("12345678901234567890123456789012345678.5"), "12345678901234567890123456789012345678.5"),
        (Decimal("1E+400"), "1" + "0" * 400),
        (Decimal("1E+401"), None),
        (Decimal("1E-401"), None),
        (Decimal("0E-999"), "0"),
        (Decimal("NaN"), None),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05"),
        (pd.Timestamp("2026-01-02 12:00", tz="Asia/Tokyo"), "2026-01-02 03:00:00+00:00"),
        (pd.Timestamp("2026-01-02 03:00:00.000000001"), "2026-01-02 03:00:00.000000001"),
        (np.longdouble(1), "1"),
        (np.longdouble("0.1"), "0.1"),
        (np.longdouble("inf"), None),
        (datetime.min.replace(tzinfo=UTC).astimezone(UTC), "0001-01-01 00:00:00+00:00"),
        (pd.NaT, None),
        (pd.NA, None),
        (None, None),
        (np.datetime64("2026-01-02T03:04:05.123456789"), "2026-01-02 03:04:05.123456789"),
        (np.datetime64("20000-01-01"), None),
        (np.datetime64("2026-01-02"), "2026-01-02 00:00:00"),
        (np.datetime64("NaT"), None),
        (UUID(int=5), str(UUID(int=5))),
        (b"bytes", None),
        ([1], None),
        ({"a": 1}, None),
        (1j, None),
        (Odd(), None),
        (Unwilling(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_as_text(value: object, text: str | None) -> None:
    assert text_of(value) == text


def test_objects_can_be_declared_as_what_they_are(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "person": [1, 1, 2, 2],
            "ward": pd.Series(["a", None, "b", "a"], dtype=object),
            "cost": pd.Series([1, 2.5, Decimal("3.50"), "oops"], dtype=object),
            "day": pd.Series([date(2026, 1, 1), None, datetime(2026, 2, 1), "2026-03-01"], dtype=object),
        }
    )
    with opening(tmp_path, frame, types={"cost": "real", "day": "date"}) as db:
        assert exact(db, "SELECT sum(cost), count(cost), sum(month(day)) FROM data")[1:] == [3, 6]


def exact(db: hb.Database, text: str) -> list[int]:
    """The tallies of the only group, before any noise."""
    (cells,) = exact_of(db, db.plan(text, epsilon=1).aggregate).tallies
    return list(cells)


# Columns and their names


def names(engine: DuckDB, frame: Any) -> list[str]:
    return [name for name, _ in engine.describe(TableSource(format="frame", frame=frame))]


def test_an_index_with_a_name_is_a_column(engine: DuckDB) -> None:
    frame = pd.DataFrame({"x": [1]})
    assert names(engine, frame) == ["x"]
    assert names(engine, frame.set_index(pd.Index([7], name="i"))) == ["i", "x"]
    levels = pd.MultiIndex.from_tuples([(1, 2, 3)], names=["i", None, "X"])
    assert names(engine, frame.set_index(levels)) == ["i", "x"], "levels without a name of their own are left out"
    assert seen(engine, frame.set_index(pd.Index([7], name="i")), "i") == ("BIGINT", (7,))


def test_names_are_kept_whatever_they_hold(engine: DuckDB) -> None:
    odd = ['it\'s "x"', "select", "ä b", "a.b", "%s", "0"]
    for frame in (
        pd.DataFrame([range(6)], columns=odd),
        pl.DataFrame([range(6)], schema=odd, orient="row"),
        pa.table({name: [1] for name in odd}),
    ):
        assert names(engine, frame) == odd
    assert names(engine, pd.DataFrame([[1, 2]])) == ["0", "1"]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: pd.DataFrame([[1, 2]], columns=["p", "p"]), "Two columns are called 'p'"),
        (lambda: pd.DataFrame([[1, 2]], columns=["p", "P"]), "Two columns are called 'P'"),
        (lambda: pd.DataFrame([[1, 2]], columns=[1, "1"]), "Two columns are called '1'"),
        (lambda: pl.DataFrame({"p": [1], "P": [2]}), "Two columns are called 'P'"),
        (lambda: pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["p", "p"]), "Two columns are called 'p'"),
        (lambda: pd.DataFrame([[1, 2]], columns=["", "p"]), "has no name"),
        (lambda: pd.DataFrame([[1, 2]], columns=[("a", "b"), ("a", "c")]), "by a tuple. Rename"),
        (lambda: pd.DataFrame([[1, 2]], columns=[None, "p"]), "Rename"),
        (lambda: pd.DataFrame([[1, 2]], columns=pd.Index([True, "p"], dtype=object)), "by a bool"),
        (pd.DataFrame, "no columns"),
        (pl.DataFrame, "no columns"),
        (lambda: pa.table({}), "no columns"),
    ],
)
def test_columns_have_names_of_their_own(engine: DuckDB, make: Callable[[], Any], match: str) -> None:
    with pytest.raises(PolicyError, match=match):
        engine.describe(TableSource(format="frame", frame=make()))


@pytest.mark.parametrize("make", [pandas_frame, lambda: pl.DataFrame(ROWS), arrow_table])
def test_a_frame_without_rows(tmp_path: Path, make: Callable[[], Any]) -> None:
    frame = make()
    empty = frame.iloc[:0] if hasattr(frame, "iloc") else frame.slice(0, 0)
    if isinstance(frame, pl.DataFrame):
        empty = empty.clear()
    with opening(tmp_path, empty) as db:
        assert exact(db, "SELECT count(*), sum(cost) FROM data") == [0, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.Series([12345], name="person"),
        lambda: pl.Series("person", [12345]),
        lambda: pa.chunked_array([[12345]]),
        lambda: pa.array([12345]),
        lambda: {"person": [12345]},
        lambda: [{"person": 12345}],
        lambda: np.array([[12345]]),
        lambda: None,
        list,
    ],
)
def test_what_is_no_table_is_refused_without_showing_it(tmp_path: Path, make: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError, match="must be a path") as refused:
        opening(tmp_path, make())
    assert "12345" not in str(refused.value)


def test_a_lazy_frame_that_fails_does_not_say_why_in_public(tmp_path: Path) -> None:
    heard: list[str] = []
    lazy = pl.DataFrame({"person": ["12345"]}).lazy().with_columns(pl.col("person").str.to_date(strict=True))
    with pytest.raises(PolicyError, match="could not be read") as refused:
        opening(tmp_path, lazy, log=heard.append)
    assert "12345" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
    assert len(heard) == 1


# One copy, for its owner


def test_a_reader_is_read_once(tmp_path: Path) -> None:
    reader = arrow_table().to_reader()
    with opening(tmp_path, reader) as db:
        assert exact(db, "SELECT count(*) FROM data") == [60]
        assert exact(db, "SELECT count(cost) FROM data") == [51]
    with pytest.raises(PolicyError, match=r"were read already\. Open a new one"):
        opening(tmp_path, reader)


@pytest.mark.parametrize("make", [pandas_frame, lambda: pl.DataFrame(ROWS)])
def test_what_is_read_is_a_copy(tmp_path: Path, make: Callable[[], Any]) -> None:
    frame = make()
    with opening(tmp_path, frame) as db:
        if isinstance(frame, pl.DataFrame):
            frame.extend(frame)
        else:
            frame.loc[:, "cost"] = 5.0
            del frame["ward"]
        assert exact(db, "SELECT count(*), count(cost) FROM data") == [60, 51]


def test_the_copy_is_the_owners_alone_and_goes_with_the_engine(tmp_path: Path) -> None:
    with opening(tmp_path, arrow_table()) as db:
        assert isinstance(db._engine, DuckDB)
        (path,) = db._engine._sources.origin(db.policy.tables["data"].source).paths
        file = Path(path)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert not file.exists()
    assert not file.parent.exists()


def test_small_chunks_do_not_make_small_groups(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"

    def groups(table: Any) -> list[int]:
        arrow.write(table.schema, table.to_batches(), str(path))
        file = parquet.ParquetFile(path)
        assert file.read().column("x").to_pylist() == table.column("x").to_pylist()
        return [file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)]

    small = [pa.table({"x": pa.array(range(at * 500, at * 500 + 500))}) for at in range(600)]
    made = groups(pa.concat_tables(small))
    assert len(made) <= 5
    assert max(made) <= arrow.ROWS
    assert groups(pa.table({"x": pa.array(range(2 * arrow.ROWS + 1))}))[:2] == [arrow.ROWS, arrow.ROWS]


# Public tables


@pytest.fixture
def floors() -> dict[str, Any]:
    rows = {"ward": ["a", "b", "c"], "floor": [1, 2, 2], "opened": [date(2020, 1, 1), date(2021, 1, 1), None]}
    return {"pandas": pd.DataFrame(rows), "polars": pl.DataFrame(rows), "arrow": pa.table(rows)}


@pytest.mark.parametrize("package", ["pandas", "polars", "arrow"])
def test_public_tables_may_be_frames(tmp_path: Path, floors: dict[str, Any], package: str) -> None:
    with opening(tmp_path, arrow_table(), tables={"wards": floors[package]}) as db:
        text = "SELECT w.floor, count(DISTINCT person) FROM data JOIN wards w ON data.ward = w.ward GROUP BY w.floor"
        answer = db.sql(text, epsilon=1)
        counted = exact_of(db, answer.plan.aggregate).tallies
    assert [row[0] for row in answer.rows] == [1, 2]
    stays = [stay for stay in zip(ROWS["person"], ROWS["ward"], strict=True) if stay[1]]
    assert counted == [
        (len({person for person, ward in stays if ward == "a"}),),
        (len({person for person, ward in stays if ward != "a"}),),
    ]


def test_a_public_table_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="must be a path"):
        opening(tmp_path, arrow_table(), tables={"wards": {"ward": ["a"]}})
