"""What each function says in the engine: by hand, on the values where engines differ."""

import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import pytest

from hubbub.engines.lower.scalars import LOWERED, lower
from hubbub.engines.nodes.words import constant, text
from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, INT128, Kind, integer
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import FUNCTIONS, call
from tests.engines.evaluating import BOOLEAN, DATE, REAL, TEXT, TIMESTAMP, WHOLE, applied, connected, evaluated
from tests.engines.raw import sql

WIDE = integer(*INT128)
LEAST, MOST = INT64
HUGE = 1.7976931348623157e308
DAY, LAST = date(2024, 2, 29), date(9999, 12, 31)
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 999999)
Cases = Sequence[tuple[tuple[Any, ...], Any]]

CASES: dict[str, Sequence[tuple[Sequence[Kind], Cases]]] = {
    "and": [((BOOLEAN, BOOLEAN), [((True, None), None), ((False, None), False), ((True, True), True)])],
    "or": [((BOOLEAN, BOOLEAN), [((True, None), True), ((False, None), None), ((False, False), False)])],
    "not": [((BOOLEAN,), [((None,), None), ((True,), False), ((False,), True)])],
    "is_null": [((WHOLE,), [((None,), True), ((0,), False)])],
    "eq": [
        ((REAL, REAL), [((0.0, -0.0), True), ((0.1, 0.1), True), ((1.0, None), None)]),
        ((WHOLE, WIDE), [((MOST, MOST), True), ((MOST, MOST + 1), False)]),
        ((TEXT, TEXT), [(("a", "A"), False), (("a", "a "), False), (("é", "é"), True)]),
    ],
    "ne": [((WHOLE, WHOLE), [((1, 2), True), ((2, 2), False), ((None, None), None)])],
    "lt": [((TEXT, TEXT), [(("Z", "a"), True), (("a", "ab"), True), (("é", "z"), False), (("a", "a"), False)])],
    "le": [((DATE, DATE), [((DAY, DAY), True), ((LAST, DAY), False)])],
    "gt": [((WHOLE, WHOLE), [((MOST, LEAST), True), ((1, 1), False)])],
    "ge": [((TIMESTAMP, TIMESTAMP), [((MOMENT, MOMENT), True), ((datetime(1, 1, 1), MOMENT), False)])],
    "add": [
        ((WHOLE, WHOLE), [((MOST, MOST), 2 * MOST), ((LEAST, LEAST), 2 * LEAST), ((1, None), None)]),
        ((REAL, REAL), [((HUGE, HUGE), None), ((0.1, 0.2), 0.1 + 0.2), ((-HUGE, -HUGE), None), ((1.0, None), None)]),
    ],
    "subtract": [((WHOLE, WHOLE), [((LEAST, MOST), LEAST - MOST)]), ((REAL, REAL), [((-HUGE, HUGE), None)])],
    "multiply": [
        ((WHOLE, WHOLE), [((LEAST, LEAST), LEAST * LEAST), ((LEAST, MOST), LEAST * MOST)]),
        ((REAL, REAL), [((1e200, 1e200), None), ((1e-200, 1e-200), 0.0), ((3.0, -0.5), -1.5)]),
    ],
    "divide": [
        ((REAL, REAL), [((1.0, 0.0), None), ((0.0, 0.0), None), ((1.0, -0.0), None), ((1e300, 1e-300), None)]),
        ((REAL, REAL), [((1.0, 3.0), 1 / 3), ((None, 0.0), None)]),
    ],
    "quotient": [
        ((WHOLE, WHOLE), [((-7, 2), -3), ((7, -2), -3), ((7, 0), None), ((LEAST, -1), 1 << 63), ((None, 1), None)]),
        ((integer(-100, 100), integer(-9, 9)), [((-100, 7), -14), ((99, 0), None), ((-100, -1), 100)]),
        ((WIDE, WIDE), [((INT128[0], -1), INT128[1]), ((INT128[1], 2), INT128[1] // 2), ((5, 0), None)]),
    ],
    "remainder": [
        ((WHOLE, WHOLE), [((-7, 2), -1), ((7, -2), 1), ((7, 0), None), ((LEAST, -1), 0), ((LEAST, MOST), -1)]),
        ((integer(-100, 100), integer(-9, 9)), [((-100, 7), -2), ((99, 0), None)]),
        ((WIDE, integer(1, 10)), [((INT128[0], 10), -7), ((INT128[1], 10), 7)]),
    ],
    "negate": [((WHOLE,), [((LEAST,), 1 << 63), ((MOST,), -MOST)]), ((REAL,), [((HUGE,), -HUGE), ((None,), None)])],
    "abs": [((WHOLE,), [((LEAST,), 1 << 63), ((-5,), 5)]), ((REAL,), [((-HUGE,), HUGE)])],
    "least": [
        ((WHOLE, WHOLE), [((1, None), None), ((None, 1), None), ((2, 1), 1)]),
        ((REAL, REAL, REAL), [((3.0, 1.0, 2.0), 1.0), ((3.0, None, 2.0), None)]),
        ((WHOLE, WIDE), [((5, INT128[1]), 5), ((5, INT128[0]), INT128[0])]),
    ],
    "greatest": [
        ((WHOLE, WHOLE), [((1, None), None), ((2, 1), 2)]),
        ((integer(0, 5), WIDE), [((5, INT128[0]), 5), ((5, INT128[1]), INT128[1])]),
    ],
    "to_real": [((WHOLE,), [((MOST,), 2.0**63), (((1 << 53) + 1,), 2.0**53), ((LEAST,), -(2.0**63)), ((None,), None)])],
    "to_integer": [
        ((REAL,), [((0.5,), 0), ((1.5,), 2), ((2.5,), 2), ((-0.5,), 0), ((-1.5,), -2)]),
        ((REAL,), [((2.0**63,), None), ((-(2.0**63),), LEAST), ((HUGE,), None), ((2.0**62,), 1 << 62)]),
    ],
    "floor": [((REAL,), [((-0.5,), -1), ((1.9,), 1), ((2.0**63,), None), ((-(2.0**63),), LEAST), ((None,), None)])],
    "ceil": [((REAL,), [((-0.5,), 0), ((1.1,), 2), ((HUGE,), None)])],
    "sqrt": [((REAL,), [((-1.0,), None), ((-0.0,), 0.0), ((2.0,), math.sqrt(2)), ((None,), None)])],
    "ln": [((REAL,), [((0.0,), None), ((-1.0,), None), ((1.0,), 0.0), ((5e-324,), math.log(5e-324))])],
    "exp": [((REAL,), [((1000.0,), None), ((-1000.0,), 0.0), ((0.0,), 1.0)])],
    "case": [
        ((BOOLEAN, WHOLE, WIDE), [((True, 1, 2), 1), ((None, 1, INT128[1]), INT128[1]), ((False, 1, None), None)]),
        ((BOOLEAN, TEXT, BOOLEAN, TEXT, TEXT), [((None, "a", True, "b", "c"), "b"), ((False, "a", None, "b", ""), "")]),
    ],
    "coalesce": [((WHOLE, WIDE), [((None, INT128[1]), INT128[1]), ((1, 2), 1), ((None, None), None)])],
    "nullif": [
        ((WHOLE, WIDE), [((1, 1), None), ((1, INT128[1]), 1), ((1, None), 1), ((None, 1), None)]),
        ((REAL, REAL), [((0.0, -0.0), None), ((0.5, 1.0), 0.5)]),
    ],
    "lower": [((TEXT,), [(("ÀÉß Σ",), "àéß σ"), (("İ",), "i"), ((None,), None)])],
    "upper": [((TEXT,), [(("àéß",), "ÀÉẞ"), (("ﬃ",), "ﬃ"), (("",), "")])],
    "trim": [((TEXT,), [(("  a b  ",), "a b"), (("\t a\u00a0",), "\t a\u00a0"), (("   ",), "")])],
    "length": [((TEXT,), [(("né",), 2), (("🤦🏼‍♂️",), 5), (("",), 0), (("a\0b",), 3)])],
    "like": [],
    "starts_with": [],
    "substring": [],
    "in": [],
    "year": [((DATE,), [((date(1, 1, 1),), 1), ((LAST,), 9999)]), ((TIMESTAMP,), [((MOMENT,), 2024)])],
    "quarter": [((DATE,), [((DAY,), 1), ((LAST,), 4), ((date(2024, 4, 1),), 2)])],
    "month": [((TIMESTAMP,), [((MOMENT,), 2)])],
    "day": [((DATE,), [((DAY,), 29), ((None,), None)])],
    "weekday": [((DATE,), [((date(2026, 11, 15),), 0), ((date(2026, 11, 14),), 6), ((date(1, 1, 1),), 1)])],
    "hour": [((TIMESTAMP,), [((MOMENT,), 23), ((datetime(1, 1, 1),), 0)])],
    "minute": [((TIMESTAMP,), [((MOMENT,), 59)])],
    "start_of_year": [((DATE,), [((DAY,), date(2024, 1, 1)), ((date(1, 5, 5),), date(1, 1, 1))])],
    "start_of_quarter": [((TIMESTAMP,), [((datetime(9999, 12, 31, 23, 59, 59, 999999),), date(9999, 10, 1))])],
    "start_of_month": [((DATE,), [((DAY,), date(2024, 2, 1)), ((None,), None)])],
    "start_of_week": [((DATE,), [((date(2026, 11, 15),), date(2026, 11, 9)), ((date(1, 1, 7),), date(1, 1, 1))])],
    "start_of_day": [((TIMESTAMP,), [((MOMENT,), DAY), ((datetime(1, 1, 1),), date(1, 1, 1))])],
    "days_between": [
        ((DATE, DATE), [((LAST, date(1, 1, 1)), 3_652_058), ((date(1, 1, 1), LAST), -3_652_058), ((DAY, None), None)])
    ],
}  # fmt: skip


def test_the_table_is_total() -> None:
    assert LOWERED.keys() == FUNCTIONS.keys()
    assert CASES.keys() == FUNCTIONS.keys()


@pytest.mark.parametrize("function", [name for name, groups in CASES.items() if groups])
def test_by_hand(function: str) -> None:
    for kinds, cases in CASES[function]:
        found = applied(function, kinds, [arguments for arguments, _ in cases])
        assert found == [wanted for _, wanted in cases]
        assert [type(one) for one in found] == [type(wanted) for _, wanted in cases]
        for arguments, wanted in cases:
            constants = [literal(value, kind.type) for value, kind in zip(arguments, kinds, strict=True)]
            folded = call(function, *constants)
            assert evaluated(folded, [BOOLEAN], [(True,)]) == [wanted]


C0 = Column("c0", TEXT)


@pytest.mark.parametrize(
    ("function", "arguments", "value", "wanted"),
    [
        ("like", ("a%",), "abc", True),
        ("like", ("a_",), "abc", False),
        ("like", ("_é_",), "🤦éx", True),
        ("like", ("a\\%",), "a\\bc", True),
        ("like", ("a\\%",), "a%", False),
        ("like", ("a\\_",), "a\\b", True),
        ("like", ("%",), "", True),
        ("like", ("_",), "", False),
        ("like", ("%'--%",), "x'--y", True),
        ("like", ("A%",), "abc", False),
        ("like", ("%\n%",), "a\nb", True),
        ("like", ("a%",), None, None),
        ("starts_with", ("a%",), "a%b", True),
        ("starts_with", ("a%",), "ab", False),
        ("starts_with", ("",), "", True),
        ("starts_with", ("é",), "éa", True),
        ("substring", (2, 2), "néäb", "éä"),
        ("substring", (1, 0), "abc", ""),
        ("substring", (9, 5), "abc", ""),
        ("substring", (1 << 31, 1 << 31), "abc", ""),
        ("substring", (3, 1), "a\u0301🤦🏼", "🤦"),
        ("in", ("x", "it's", "a\0b"), "it's", True),
        ("in", ("x", "it's", "a\0b"), "a\0b", True),
        ("in", ("x", "it's", "a\0b"), "a", False),
        ("in", ("x",), None, None),
    ],
)
def test_text_with_constants(function: str, arguments: tuple[Any, ...], value: Any, wanted: Any) -> None:
    expression = call(function, C0, *(literal(one) for one in arguments))
    assert evaluated(expression, [TEXT], [(value,)]) == [wanted]


def test_in_over_wide_numbers() -> None:
    expression = call("in", Column("c0", WHOLE), literal(5), literal(INT128[1]))
    assert evaluated(expression, [WHOLE], [(5,), (6,), (None,)]) == [True, False, None]


@pytest.mark.parametrize("guarded", ["add", "multiply", "divide", "least", "greatest", "nullif", "exp"])
def test_deep_guards_stay_short(guarded: str) -> None:
    """Each guard looks at its argument twice; thirty of them must not be a billion."""
    expression: Expression = Column("c0", REAL)
    for _ in range(30):
        arguments = [expression] if guarded == "exp" else [expression, Column("c1", REAL)]
        expression = call(guarded, *arguments)
    assert len(sql(lower(expression, {"c0": "c0", "c1": "c1"}))) < 100_000
    wanted = {"add": 31.5, "multiply": 1.5, "divide": 1.5, "least": 1.0, "greatest": 1.5, "nullif": 1.5, "exp": None}
    rows = [(1.5, 1.0), (1.5, None), (None, 1.0)]
    found = evaluated(expression, [REAL, REAL], rows)
    alone = wanted[guarded] if guarded in {"nullif", "exp"} else None
    assert found == [wanted[guarded], alone, None]


def test_a_deep_divisor() -> None:
    """A divisor is looked at twice as well."""
    expression: Expression = Column("c0", WHOLE)
    for _ in range(20):
        expression = call("add", call("remainder", Column("c1", WHOLE), expression), literal(2))
    assert len(sql(lower(expression, {"c0": "c0", "c1": "c1"}))) < 20_000
    found = evaluated(expression, [WHOLE, WHOLE], [(7, 1000), (0, 1), (5, None)])
    assert found == [_remainders(7, 1000), None, None]


def _remainders(value: int, of_: int) -> int:
    for _ in range(20):
        value = of_ % value + 2
    return value


@pytest.mark.parametrize(
    "value", ["it's", '"; DROP TABLE t; --', "a\\'b", "\n\t\r", "x\0y", "\0", "", "é🤦", "$1 ? :a", "/* */", "E'\\x'"]
)
def test_text_survives(value: str) -> None:
    with connected() as connection:
        assert connection.execute("SELECT " + sql(text(value))).fetchone() == (value,)


def test_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(ParameterError):
        sql(text("\ud800"))


@pytest.mark.parametrize(
    "value",
    [0.1, 1e16 + 2, 5e-324, HUGE, -HUGE, 123456789.12345679, 2.2250738585072011e-308, -0.0, 1e22, 9007199254740993.0],
)
def test_reals_survive_to_the_last_bit(value: float) -> None:
    with connected() as connection:
        row = connection.execute("SELECT " + sql(constant(value, REAL))).fetchone()
    assert row is not None
    assert row[0].hex() == value.hex()


@pytest.mark.parametrize("value", [math.nan, math.inf, datetime.fromisoformat("2024-01-01T00:00:00+01:00")])
def test_constants_outside_their_kinds_are_refused(value: Any) -> None:
    with pytest.raises(ParameterError):
        sql(constant(value, REAL if isinstance(value, float) else TIMESTAMP))


def test_names_are_quoted() -> None:
    node = sql(lower(Column("x", WHOLE), {"x": 'a" OR 1=1 --'}))
    assert node == '"a"" OR 1=1 --"'
