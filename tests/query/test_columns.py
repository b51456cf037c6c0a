"""Answers as data frames of the real packages: types follow from the question, and nothing is lost."""

import sys
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.errors import MissingExtra
from hubbub.ledger import Marks
from hubbub.policy.kinds import INT64, Type
from hubbub.policy.tables import Limits
from hubbub.query.answer.answer import Answer, _unique
from hubbub.query.answer.columns import Shown, make_column, to_arrow, to_pandas, to_polars

SQL = """
    SELECT i AS person, CAST(i % 2 AS BIGINT) + 9007199254740992 AS big, i % 3 = 0 AS flag,
    CAST(i % 5 AS DOUBLE) AS cost, DATE '2026-01-01' + CAST(i % 2 AS INTEGER) AS day,
    TIMESTAMP '2026-01-01 12:00:00.000001' AS at, 'w' || i % 2 AS ward
    FROM range(40) t(i)
"""
KEYS: dict[str, list[Any]] = {
    "big": [9007199254740993, None],
    "day": [date(2026, 1, 1), date(9999, 12, 31)],
    "at": [datetime(2026, 1, 1, 12, 0, 0, 1), datetime(1, 1, 1)],
    "ward": ["w0", None],
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Database]:
    folder = tmp_path_factory.mktemp("answers")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({SQL}) TO '{folder / 'data.parquet'}' (FORMAT parquet)")
    with hb.open(
        folder / "data.parquet",
        unit="person",
        budget=hb.Budget(epsilon=Fraction(1000)),
        bounds={"cost": (0, 5)},
        keys=KEYS,
        limits=Limits(max_groups=2, max_rows=1, threads=1),
        ledger=folder / "data.ledger",
        marks=Marks(folder / "state"),
    ) as made:
        yield made


@pytest.fixture(scope="module")
def whole(db: hb.Database) -> Answer:
    """Every type, with missing values among the keys."""
    return db.sql(
        "SELECT big, flag, day, at, ward, count(*) AS n, sum(cost) AS s, avg(cost) AS m, count(*) > 5 AS many "
        "FROM data GROUP BY big, flag, day, at, ward",
        epsilon=1,
    )


@pytest.fixture(scope="module")
def none(db: hb.Database) -> Answer:
    """The same columns, and no row."""
    return db.sql(
        "SELECT big, flag, day, at, ward, count(*) AS n, sum(cost) AS s, avg(cost) AS m, count(*) > 5 AS many "
        "FROM data GROUP BY big, flag, day, at, ward HAVING count(*) > 1000000",
        epsilon=1,
    )


NAMES = [
    "big",
    "flag",
    "day",
    "at",
    "ward",
    "n",
    "n_low",
    "n_high",
    "s",
    "s_low",
    "s_high",
    "m",
    "m_low",
    "m_high",
    "many",
]


def same(rows: list[dict[str, Any]], answer: Answer) -> None:
    """Equal to the dictionaries, where a whole sum of reals counts as a real."""
    assert len(rows) == len(answer) > 0
    for row, wanted in zip(rows, answer.to_dicts(), strict=True):
        assert list(row) == list(wanted) == NAMES
        assert row == wanted


def test_dictionaries(whole: Answer, none: Answer) -> None:
    first = whole.to_dicts()[0]
    assert list(first) == NAMES
    assert (first["big"], first["day"], first["at"]) == (KEYS["big"][0], KEYS["day"][0], KEYS["at"][0])
    assert isinstance(first["n"], int)
    assert 0 <= first["n_low"] <= first["n"] <= first["n_high"]
    assert none.to_dicts() == []


def test_arrow(whole: Answer, none: Answer) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed, so there are no tables of its to make")
    table = whole.to_arrow()
    same(table.to_pylist(), whole)
    types = "int64 bool date32 timestamp[us] string" + " int64" * 3 + " double" * 6 + " bool"
    wanted = [pa.type_for_alias(name) for name in types.split()]
    assert table.schema.types == wanted
    assert none.to_arrow().schema == table.schema
    assert none.to_arrow().num_rows == 0


def test_polars(whole: Answer, none: Answer) -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed, so there are no frames of its to make")
    frame = whole.to_polars()
    same(frame.to_dicts(), whole)
    wanted = [
        pl.Int64,
        pl.Boolean,
        pl.Date,
        pl.Datetime("us"),
        pl.String,
        *[pl.Int64] * 3,
        *[pl.Float64] * 6,
        pl.Boolean,
    ]
    assert frame.dtypes == wanted
    assert none.to_polars().schema == frame.schema
    assert none.to_polars().height == 0


def test_pandas(whole: Answer, none: Answer) -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed, so there are no frames of its to make")
    frame = whole.to_pandas()
    days = ["Int64", "boolean", "datetime64[s]", "datetime64[us]", "string"]
    assert [str(one) for one in frame.dtypes] == [*days, *["Int64"] * 3, *["float64"] * 6, "boolean"]
    assert list(none.to_pandas().dtypes) == list(frame.dtypes)
    assert none.to_pandas().empty
    read = frame.astype(object).where(frame.notna(), None).to_dict("records")
    for row in read:
        row["day"], row["at"] = pd.Timestamp(row["day"]).date(), pd.Timestamp(row["at"]).to_pydatetime()
    same(read, whole)


WIDE = (INT64[1] + 1, None, INT64[0])


def test_whole_numbers_beyond_64_bits() -> None:
    column = make_column("x", Type.INTEGER, WIDE)
    assert column.wide
    assert column.values == WIDE
    assert not make_column("x", Type.INTEGER, (INT64[1], None, INT64[0])).wide


def test_wide_numbers_in_frames() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed, so there are no tables of its to make")
    pytest.importorskip("pandas", reason="pandas is not installed, so there are no frames of its to make")
    pytest.importorskip("polars", reason="polars is not installed, so there are no frames of its to make")
    column = make_column("x", Type.INTEGER, WIDE)
    assert [one and int(one) for one in to_arrow([column])["x"].to_pylist()] == list(WIDE)
    assert list(to_pandas([column])["x"]) == list(WIDE)
    assert [one and int(one) for one in to_polars([column])["x"]] == list(WIDE)


@pytest.mark.parametrize(
    ("type_", "values", "wanted"),
    [
        (Type.REAL, (1, None, 2.5), Shown("x", Type.REAL, (1.0, None, 2.5))),
        (Type.INTEGER, (1, None), Shown("x", Type.INTEGER, (1, None))),
        (Type.INTEGER, (1, 2.5), Shown("x", Type.REAL, (1.0, 2.5))),
        (Type.INTEGER, (10**38 - 1, 1 - 10**38), Shown("x", Type.INTEGER, (10**38 - 1, 1 - 10**38))),
        (Type.INTEGER, (10**38,), Shown("x", Type.REAL, (1e38,))),
        (Type.TEXT, ("1", None), Shown("x", Type.TEXT, ("1", None))),
    ],
)
def test_values_are_of_their_columns_type(type_: Type, values: tuple[Any, ...], wanted: Shown) -> None:
    found = make_column("x", type_, values)
    assert found == wanted
    assert [type(one) for one in found.values] == [type(one) for one in wanted.values]


@pytest.mark.parametrize(
    ("names", "noisy", "wanted"),
    [
        (["n", "n"], [True, True], ("n", "n_2")),
        (["n", "n", "n_2"], [False, False, False], ("n", "n_2", "n_2_2")),
        (["n", "n_low"], [True, False], ("n", "n_low_2")),
        (["n_high", "n"], [False, True], ("n_high", "n_2")),
        (["n", "n_low"], [False, False], ("n", "n_low")),
    ],
)
def test_no_name_hides_another(names: list[str], noisy: list[bool], wanted: tuple[str, ...]) -> None:
    for ends in (("_low", "_high"), ("_low", "_high", "_ranks")):
        assert _unique(names, [ends if each else () for each in noisy]) == wanted
    assert _unique(["n", "n_ranks"], [("_ranks",), ()]) == ("n", "n_ranks_2")


def test_an_interval_is_not_lost_to_a_column_of_its_name(db: hb.Database) -> None:
    (row,) = db.sql("SELECT count(*) AS n, count(*) * 0 AS n_low, sum(cost) AS n FROM data", epsilon=1).to_dicts()
    assert list(row) == ["n", "n_low", "n_high", "n_low_2", "n_2", "n_2_low", "n_2_high"]
    assert 0 <= row["n_low"] <= row["n"] <= row["n_high"]
    assert row["n_low_2"] == 0


@pytest.mark.parametrize(("package", "extra"), [("pandas", "pandas"), ("polars", "polars"), ("pyarrow", "arrow")])
def test_a_missing_package_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, none: Answer, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    made = {"pandas": none.to_pandas, "polars": none.to_polars, "pyarrow": none.to_arrow}
    with pytest.raises(MissingExtra, match=rf'pip install "hubbub\[{extra}\]"'):
        made[package]()
