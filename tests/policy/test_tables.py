"""Every declaration is checked where it is made, on both sides of every line."""

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.errors import ParameterError, PolicyError
from hubbub.policy.kinds import INT128, Kind, Type, integer, of
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors

INTEGER, REAL, TEXT = of(Type.INTEGER), of(Type.REAL), of(Type.TEXT)
FRAME = TableSource(format="frame")
WHO = TableColumn(name="who", kind=INTEGER)


def x(kind: Any, **more: Any) -> TableColumn:
    return TableColumn(name="x", kind=kind, **more)


def limits(**given: Any) -> Limits:
    return Limits(**given)


def pair(low: Any, high: Any) -> tuple[Fraction, Fraction]:
    return Fraction(low), Fraction(high)


def table(*columns: TableColumn, **more: Any) -> Table:
    given: dict[str, Any] = {"name": "t", "source": FRAME, "columns": columns or (WHO,), "unit": None}
    return Table(**given | more)


def policy(*tables: Table, **more: Any) -> Policy:
    made = {each.name: each for each in tables or (table(),)}
    given: dict[str, Any] = {"account": "a", "budget": Budget(epsilon=Fraction(1)), "tables": made}
    return Policy(**given | more)


@pytest.mark.parametrize("name", ["a", "Größe", "a b", "x" * 200, "__hubbu", "count(*)"])
def test_names_that_print(name: str) -> None:
    assert TableColumn(name=name, kind=TEXT).name == name


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "a\nb", "\x1b[1m", "x" * 201, "__hubbub", "__Hubbub_unit", 3, None, "a\u202eb"]
)
def test_names_that_do_not(name: Any) -> None:
    with pytest.raises(ParameterError, match="name of a column must be a name of 1 to 200 printable"):
        TableColumn(name=name, kind=TEXT)
    with pytest.raises(ParameterError, match="name of a table must be"):
        table(name=name)
    with pytest.raises(ParameterError, match="account must be"):
        policy(account=name)
    with pytest.raises(ParameterError, match="version must be"):
        policy(version=name)


def test_bounds_are_exact() -> None:
    assert x(REAL, bounds=(0, 0.5)).bounds == (Fraction(0), Fraction(1, 2))
    assert x(REAL, bounds=(Fraction(1, 10), Fraction(2, 10))).bounds == (Fraction(1, 10), Fraction(1, 5))
    made = x(INTEGER, bounds=[0, np.int64(7)])
    assert made.bounds == (Fraction(0), Fraction(7))
    assert type(made.bounds[1]) is Fraction


@pytest.mark.parametrize(
    "bounds",
    [
        (1, 1),
        (2, 1),
        (0, math.nan),
        (-math.inf, 0),
        (0, math.inf),
        (0,),
        (0, 1, 2),
        "01",
        5,
        (True, 2),
        ("0", "1"),
        {0, 1},
    ],
)
def test_bounds_that_are_none(bounds: Any) -> None:
    for kind in (INTEGER, REAL):
        with pytest.raises(ParameterError, match=r"bounds of column x must be a pair \(low, high\)"):
            x(kind, bounds=bounds)


def test_bounds_of_integers_are_whole_and_within_the_type() -> None:
    byte = integer(-128, 127)
    assert x(byte, bounds=(Fraction(-128), Fraction(127))).clamp == pair(-128, 127)
    for far in ((-129, 127), (-128, 128)):
        with pytest.raises(ParameterError, match="within -128 and 127, which its type can hold"):
            x(byte, bounds=far)
    for wrong in ((Fraction(1, 2), Fraction(3)), (Fraction(0), Fraction(3, 2))):
        with pytest.raises(ParameterError, match="whole numbers"):
            x(byte, bounds=wrong)


def test_bounds_of_reals_leave_room() -> None:
    most, least = Fraction(2) ** 1000, Fraction(1, 2**1000)
    assert x(REAL, bounds=(-most, most)).bounds
    assert x(REAL, bounds=(Fraction(0), least)).bounds
    for wrong in ((Fraction(0), most + 1), (-most - 1, Fraction(0)), (Fraction(0), least / 2)):
        with pytest.raises(ParameterError, match="within ±2"):
            x(REAL, bounds=wrong)


@pytest.mark.parametrize("type_", [Type.TEXT, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP])
def test_only_numbers_have_bounds_and_grids(type_: Type) -> None:
    with pytest.raises(PolicyError, match=r"only integers and reals have bounds. Leave them out"):
        x(of(type_), bounds=(Fraction(0), Fraction(1)))
    with pytest.raises(PolicyError, match=r"only integers and reals have a grid. Leave it out"):
        x(of(type_), grid=Fraction(1))
    assert x(of(type_)).step is None


def test_grids() -> None:
    assert x(INTEGER, grid=10).grid == 10
    assert x(INTEGER).step == 1
    assert x(INTEGER, grid=Fraction(5)).step == 5
    assert x(REAL).step is None
    assert x(REAL, grid=Fraction(1, 4)).step == Fraction(1, 4)
    assert x(REAL, grid=Fraction("9.094947017729282e-13")).grid == Fraction(1, 1 << 40)  # as it is printed
    assert x(REAL, bounds=(Fraction(0), Fraction(1))).step == Fraction(1, 1 << 20)
    with pytest.raises(ParameterError, match=r"grid of column x must be a whole number"):
        x(INTEGER, grid=Fraction(1, 2))
    with pytest.raises(ParameterError, match=r"a power of two, .* \(0\.125 is the nearest\)"):
        x(REAL, grid=Fraction(1, 10))
    for kind in (INTEGER, REAL):
        for wrong in (0, -1, math.nan, math.inf, True, "1"):
            with pytest.raises(ParameterError, match="grid of column x must be a positive number"):
                x(kind, grid=wrong)


def test_a_grid_of_reals_has_doubles_for_its_points() -> None:
    wide = (Fraction(0), Fraction(1 << 53))
    assert x(REAL, bounds=wide, grid=Fraction(1)).step == 1
    with pytest.raises(ParameterError, match="at least 1, since reals that large"):
        x(REAL, bounds=wide, grid=Fraction(1, 2))
    for fine in (Fraction(1, 2**1022), Fraction(2) ** 1000):
        assert x(REAL, grid=fine).step == fine
    for wrong in (Fraction(2) ** 1001, Fraction(1, 2**1023)):
        with pytest.raises(ParameterError, match="a power of two from"):
            x(REAL, grid=wrong)


def test_reals_are_clamped_on_the_grid() -> None:
    column = x(REAL, bounds=(Fraction(1, 10), Fraction(9, 10)), grid=Fraction(1, 4))
    assert column.clamp == pair(0, 1)
    assert column.bounds == (Fraction(1, 10), Fraction(9, 10))
    assert x(INTEGER, bounds=(Fraction(1), Fraction(19)), grid=Fraction(10)).clamp == pair(1, 19)
    assert x(REAL).clamp is None


NOON = dt.datetime(2024, 2, 29, 12)
GOOD_KEYS: list[tuple[Kind, list[Any], tuple[Any, ...]]] = [
    (TEXT, ["a", "A", "", "\0"], ("a", "A", "", "\0")),
    (INTEGER, [2, 1, np.int32(7)], (2, 1, 7)),
    (integer(0, 9), [0, 9], (0, 9)),
    (of(Type.BOOLEAN), [True, np.bool_(False)], (True, False)),
    (REAL, [1, 0.5, Fraction(1, 10), -0.0], (1.0, 0.5, 0.1, 0.0)),
    (of(Type.DATE), [dt.date(1, 1, 1), dt.date(9999, 12, 31)], (dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    (of(Type.TIMESTAMP), [NOON], (NOON,)),
    (TEXT, ["a", None], ("a", None)),
]


@pytest.mark.parametrize(("kind", "given", "kept"), GOOD_KEYS)
def test_keys(kind: Kind, given: list[Any], kept: tuple[Any, ...]) -> None:
    keys = x(kind, keys=given).keys
    assert keys == kept
    assert keys is not None
    assert [type(key) for key in keys] == [type(key) for key in kept]
    assert "-0.0" not in repr(keys)


BAD_KEYS: list[tuple[Kind, Any, str]] = [
    (TEXT, [], "a list of at least one value"),
    (TEXT, "north", "a list of at least one value"),
    (TEXT, {"a", "b"}, "a list of at least one value"),
    (TEXT, ["a", 1], "text values"),
    (TEXT, ["a", "a"], "different from each other; 'a' is there twice"),
    (TEXT, ["\ud800"], "text that UTF-8 can write"),
    (TEXT, [None, None], "different from each other"),
    (of(Type.TEXT, nullable=False), ["a", None], "without a missing value"),
    (INTEGER, [1.0], "integer values"),
    (INTEGER, [True], "integer values"),
    (INTEGER, ["1"], "integer values"),
    (integer(0, 9), [10], "from 0 to 9"),
    (integer(0, 9), [-1], "from 0 to 9"),
    (of(Type.BOOLEAN), [1], "boolean values"),
    (REAL, [math.nan], "finite real values"),
    (REAL, [math.inf], "finite real values"),
    (REAL, [10**400], "finite real values"),
    (REAL, [True], "finite real values"),
    (REAL, [0.0, -0.0], "different from each other"),
    (REAL, ["1"], "finite real values"),
    (of(Type.DATE), [NOON], "date values"),
    (of(Type.DATE), ["2024-02-29"], "date values"),
    (of(Type.TIMESTAMP), [dt.date(2024, 2, 29)], "timestamp values"),
    (of(Type.TIMESTAMP), [NOON.replace(tzinfo=dt.UTC)], "moments in UTC without a time zone"),
]


@pytest.mark.parametrize(("kind", "given", "said"), BAD_KEYS)
def test_keys_that_are_none(kind: Kind, given: Any, said: str) -> None:
    with pytest.raises(ParameterError, match="keys of column x must be ") as caught:
        x(kind, keys=given)
    assert said in str(caught.value)


def test_the_kind_of_a_column() -> None:
    assert x(integer(*INT128)).kind.wide
    for wrong in (integer(INT128[0] - 1, 0), integer(0, INT128[1] + 1)):
        with pytest.raises(ParameterError, match="at most 128 bits"):
            x(wrong)
    with pytest.raises(ParameterError, match="type of column x must be a Kind"):
        x("integer")


GOOD_SOURCES: list[dict[str, Any]] = [
    {"format": "parquet", "paths": ("/a", "/b")},
    {"format": "csv", "paths": ("/a",)},
    {"format": "duckdb", "paths": ("/a",), "table": "t"},
    {"format": "frame", "frame": object()},
]
BAD_SOURCES: list[dict[str, Any]] = [
    {"format": "excel", "paths": ("/a",)},
    {"format": "parquet"},
    {"format": "parquet", "paths": ("a",)},
    {"format": "parquet", "paths": ["/a"]},
    {"format": "parquet", "paths": (1,)},
    {"format": "parquet", "paths": ("/a",), "table": "t"},
    {"format": "parquet", "paths": ("/a",), "frame": object()},
    {"format": "duckdb", "paths": ("/a",)},
    {"format": "duckdb", "paths": ("/a", "/b"), "table": "t"},
    {"format": "frame", "paths": ("/a",)},
]


@pytest.mark.parametrize("given", GOOD_SOURCES)
def test_sources(given: dict[str, Any]) -> None:
    assert TableSource(**given).format == given["format"]


@pytest.mark.parametrize("given", BAD_SOURCES)
def test_sources_that_are_none(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        TableSource(**given)


def test_a_frame_is_not_shown_by_its_source() -> None:
    assert "secret" not in repr(TableSource(format="frame", frame="secret"))
    assert TableSource(format="frame", frame=1) == TableSource(
        format="frame", frame=2
    )  # frames have an == of their own


def test_columns_are_told_apart_whatever_their_case() -> None:
    with pytest.raises(PolicyError, match="columns of table t must differ in more than case: 'a' and 'A'"):
        table(TableColumn(name="a", kind=TEXT), WHO, TableColumn(name="A", kind=TEXT))
    with pytest.raises(PolicyError, match="differ in more than case"):
        table(WHO, WHO)
    with pytest.raises(PolicyError, match="differ in more than case"):
        table(WHO, unusable={"WHO": "It holds bytes."})
    both = table(TableColumn(name="a", kind=TEXT), TableColumn(name="b", kind=TEXT))
    assert both.column("A") is both.columns[0]
    assert both.column("c") is None


def test_a_table_has_columns_and_a_source() -> None:
    with pytest.raises(ParameterError, match="at least one Column"):
        table(columns=())
    with pytest.raises(ParameterError, match="at least one Column"):
        table(columns=(WHO, "x"))
    with pytest.raises(ParameterError, match="a Source"):
        table(source="t.parquet")
    assert hash(table()) == hash(table())


def test_the_unit_is_a_column() -> None:
    assert table(unit="WHO").unit == "who"
    with pytest.raises(PolicyError, match=r"no usable column whom to name the unit. Name one of its own columns"):
        table(unit="whom")
    with pytest.raises(PolicyError, match=r"no usable column photo to name the unit. It holds bytes."):
        table(unit="photo", unusable={"Photo": "It holds bytes."})
    with pytest.raises(ParameterError, match="the name of one column"):
        table(unit=["who"])


@pytest.mark.parametrize("type_", list(Type))
def test_a_unit_is_never_rounded(type_: Type) -> None:
    who = TableColumn(name="who", kind=of(type_))
    if type_ in {Type.REAL, Type.TIMESTAMP}:
        with pytest.raises(PolicyError, match=r"two units could become one. Use an integer or text"):
            table(who, unit="who")
    else:
        assert table(who, unit="who").unit == "who"


def test_uniqueness_is_of_units() -> None:
    assert table(unit="who", unique=True).unique
    with pytest.raises(ParameterError, match="unique of table t"):
        table(unique=True)
    with pytest.raises(ParameterError, match="unique of table t"):
        table(unit="who", unique=1)


def test_why_a_column_cannot_be_used() -> None:
    made = table(unusable={"Photo": "It holds bytes."})
    assert made.why_not("photo") == "It holds bytes."
    assert made.why_not("who") is None


@pytest.mark.parametrize(
    "name", ["max_groups", "max_rows", "max_total_rows", "max_cells", "max_fanout", "max_unit_rows", "threads", "lanes"]
)
def test_limits_are_counts(name: str) -> None:
    assert getattr(limits(**{name: 1}), name) == 1
    for wrong in (0, -1, 1.0, True, "1"):
        with pytest.raises(ParameterError, match=f"{name} must be a whole number from 1"):
            limits(**{name: wrong})
    optional = name in {"max_groups", "max_rows", "max_total_rows", "threads"}
    try:
        assert getattr(limits(**{name: None}), name) is None
    except ParameterError:
        assert not optional
    else:
        assert optional


@pytest.mark.parametrize("wrong", [0, 1, None, "yes"])
def test_whether_to_buy_is_true_or_false(wrong: object) -> None:
    with pytest.raises(ParameterError, match="buy must be true or false"):
        limits(buy=wrong)


def test_limits_that_nobody_declared() -> None:
    said = Limits()
    assert (said.max_groups, said.max_rows, said.max_cells, said.max_fanout) == (None, None, 1_000_000, 1000)
    assert (said.groups, said.buy, limits(max_groups=3).groups, limits(buy=False).buy) == (1, True, 3, False)
    assert (said.seconds, said.memory, said.temporary, said.threads, said.lanes) == (60.0, "4GB", "20GB", None, 1)
    assert limits(max_rows=1 << 40).max_rows == 1 << 40
    with pytest.raises(ParameterError, match="from 1 to 1099511627776"):
        limits(max_rows=(1 << 40) + 1)
    assert limits(lanes=1024).lanes == 1024
    with pytest.raises(ParameterError, match="from 1 to 1024"):
        limits(lanes=1025)


def test_limits_of_work() -> None:
    assert limits(seconds=Fraction(1, 2)).seconds == 0.5
    for wrong in (0, -1, math.inf, math.nan, "60", None):
        with pytest.raises(ParameterError, match="seconds must be a positive number"):
            limits(seconds=wrong)
    assert limits(seconds=10**9).seconds == 1e9
    for far in (10**9 + 1, 10**400, Fraction(1, 10**400)):
        with pytest.raises(ParameterError, match="at most 10"):
            limits(seconds=far)
    assert Limits(memory="1.5GiB", temporary="512MB").memory == "1.5GiB"
    for size in ("4", "4G", "-4GB", "0GB", "4GB; ATTACH 'x'", 4, None, ""):
        for name in ("memory", "temporary"):
            with pytest.raises(ParameterError, match=f"{name} must be an amount such as"):
                limits(**{name: size})


def test_a_policy_holds_together() -> None:
    made = policy(table(unit="who"))
    assert made.tables["t"].unit == "who"
    with pytest.raises(ParameterError, match="at least one Table"):
        policy(tables={})
    with pytest.raises(ParameterError, match="under their own names"):
        policy(tables={"s": table()})
    with pytest.raises(PolicyError, match="tables must differ in more than case"):
        policy(table(), table(name="T"))
    with pytest.raises(ParameterError, match="budget must be a Budget"):
        policy(budget=1)
    with pytest.raises(ParameterError, match="limits must be Limits"):
        policy(limits={})
    with pytest.raises(ParameterError, match="neighbors must be add-remove or replace-one"):
        policy(budget=Budget(epsilon=Fraction(1), neighbors=Neighbors.LOCAL))


def test_a_policy_does_not_change_with_what_it_was_made_of() -> None:
    tables = {"t": table()}
    made = policy(tables=tables)
    tables["s"] = table(name="s")
    assert list(made.tables) == ["t"]


def test_where_the_ledger_lies_is_not_printed() -> None:
    assert "password" not in repr(policy(ledger="postgresql://owner:password@host/db"))
