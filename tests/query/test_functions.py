"""The typing rules: what each function takes, what it returns, and where whole numbers stop."""

import itertools
from collections.abc import Iterable, Sequence
from datetime import date

import pytest

from hubbub.errors import MayOverflow, TypeMisfit
from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer, of
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import FUNCTIONS, MOST_TEXT, call
from tests.query import interpreter


def column(kind: Kind, name: str = "x") -> Column:
    return Column(name, kind)


def whole(low: int, high: int, *, nullable: bool = False) -> Column:
    return column(integer(low, high, nullable=nullable))


REAL, TEXT, DATE, MOMENT, FLAG = (
    column(of(type_)) for type_ in (Type.REAL, Type.TEXT, Type.DATE, Type.TIMESTAMP, Type.BOOLEAN)
)
FULL = column(of(Type.INTEGER))
ALL: dict[Type, Column] = {one.kind.type: one for one in (REAL, TEXT, DATE, MOMENT, FLAG, FULL)}
SURE = {type_: column(of(type_, nullable=False)) for type_ in Type}

N, R, B, T, D, M = Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.TIMESTAMP
SAME = [(one, one) for one in Type]
CALENDAR: list[tuple[Type, ...]] = [(D,), (M,)]
NUMBERS: list[tuple[Type, ...]] = [(N,), (R,)]


def _each(functions: Iterable[str], taken: Sequence[tuple[Type, ...]]) -> dict[str, Sequence[tuple[Type, ...]]]:
    return dict.fromkeys(functions, taken)


TAKES: dict[str, Sequence[tuple[Type, ...]]] = {
    "and": [(B, B), (B, B, B)],
    "or": [(B, B), (B, B, B)],
    "not": [(B,)],
    "is_null": [(one,) for one in Type],
    **_each(("eq", "ne", "lt", "le", "gt", "ge", "nullif"), SAME),
    "in": [],
    **_each(("add", "subtract", "multiply"), [(N, N), (R, R)]),
    "divide": [(R, R)],
    **_each(("quotient", "remainder"), [(N, N)]),
    **_each(("negate", "abs"), NUMBERS),
    **_each(("least", "greatest"), [(N, N), (R, R), (N, N, N), (R, R, R)]),
    "to_real": [(N,)],
    **_each(("to_integer", "floor", "ceil", "sqrt", "ln", "exp"), [(R,)]),
    "case": [(B, one, one) for one in Type],
    "coalesce": [*SAME, *((one, one, one) for one in Type)],
    **_each(("lower", "upper", "trim", "length"), [(T,)]),
    **_each(("like", "starts_with", "substring"), []),
    **_each(("year", "quarter", "month", "day", "weekday"), CALENDAR),
    **_each(("hour", "minute"), [(M,)]),
    **_each((f"start_of_{span}" for span in ("year", "quarter", "month", "week", "day")), CALENDAR),
    "days_between": [(D, D)],
}
"""All that each function takes, up to three columns; those with constants are tested below."""


def test_the_table_above_is_whole() -> None:
    assert TAKES.keys() == FUNCTIONS.keys()


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_takes_these_and_nothing_else(function: str) -> None:
    """Every combination of up to three types: taken, or refused with a sentence that names the function."""
    for many in range(4):
        for types in itertools.product(Type, repeat=many):
            arguments = [whole(-9, 9) if one is Type.INTEGER else ALL[one] for one in types]
            if types in TAKES[function]:
                assert call(function, *arguments).arguments == tuple(arguments)
            else:
                with pytest.raises(TypeMisfit, match=rf"{function} takes .*\.$"):
                    call(function, *arguments)


@pytest.mark.parametrize("function", sorted(set(FUNCTIONS) - {"in", "like", "starts_with", "substring"}))
def test_missing_arguments(function: str) -> None:
    """What is never missing for sure arguments, and may be for others."""
    always = {"quotient", "remainder", "divide", "to_integer", "floor", "ceil", "sqrt", "ln", "exp", "nullif"}
    for types in TAKES[function]:
        sure = [whole(-9, 9) if one is Type.INTEGER else SURE[one] for one in types]
        arithmetic = types == (R, R) and function in {"add", "subtract", "multiply"}
        assert call(function, *sure).kind.nullable is (function in always or arithmetic)
        for place in range(len(types)):
            some = [ALL[one] if n == place else sure[n] for n, one in enumerate(types)]
            condition = function == "case" and place == 0
            if function == "is_null" or condition or function == "coalesce":
                assert not call(function, *some).kind.nullable
            else:
                assert call(function, *some).kind.nullable
    if function == "coalesce":
        assert call("coalesce", TEXT, TEXT).kind.nullable


def test_there_is_no_other_function() -> None:
    with pytest.raises(TypeMisfit, match="no function random"):
        call("random")


RANGES = [(-3, 5), (0, 4), (-7, -2), (2, 9), (0, 0), (-1, 1)]


@pytest.mark.parametrize("function", ["add", "subtract", "multiply", "quotient", "remainder", "least", "greatest"])
@pytest.mark.parametrize(("left", "right"), list(itertools.product(RANGES, RANGES)))
def test_ranges_of_two_integers(function: str, left: tuple[int, int], right: tuple[int, int]) -> None:
    """Every value lies in the range, and for exact rules both ends are reached."""
    sure = (integer(*ends, nullable=False) for ends in (left, right))
    expression = call(function, *(column(kind, name) for kind, name in zip(sure, "ab", strict=True)))
    values = [
        found
        for a in range(left[0], left[1] + 1)
        for b in range(right[0], right[1] + 1)
        if (found := interpreter.value(expression, {"a": a, "b": b})) is not None
    ]
    low, high = expression.kind.range
    assert all(low <= one <= high for one in values)
    if not expression.kind.nullable:
        assert len(values) == (left[1] - left[0] + 1) * (right[1] - right[0] + 1)
    if function not in {"quotient", "remainder"}:
        assert (min(values), max(values)) == (low, high)


@pytest.mark.parametrize("function", ["negate", "abs"])
@pytest.mark.parametrize("ends", RANGES)
def test_ranges_of_one_integer(function: str, ends: tuple[int, int]) -> None:
    expression = call(function, column(integer(*ends), "a"))
    values = [interpreter.value(expression, {"a": a}) for a in range(ends[0], ends[1] + 1)]
    assert (min(values), max(values)) == expression.kind.range


def test_whole_numbers_end_at_128_bits() -> None:
    most = whole(0, INT128[1])
    least = whole(INT128[0], 0)
    one, none = literal(1), whole(0, 0)
    assert call("add", most, none).kind.range == (0, INT128[1])
    assert call("subtract", least, none).kind.range == (INT128[0], 0)
    assert call("negate", least).kind.range == (0, INT128[1])
    assert call("abs", whole(*INT128)).kind.range == (0, INT128[1])
    assert call("quotient", whole(*INT128), whole(-1, 1)).kind.range == (-INT128[1], INT128[1])
    for function, arguments in (
        ("add", (most, one)),
        ("subtract", (least, one)),
        ("multiply", (most, literal(2))),
        ("multiply", (least, literal(2))),
        ("negate", (column(Kind(type=N, low=INT128[0] - 1, high=0)),)),
        ("abs", (column(Kind(type=N, low=INT128[0] - 1, high=0)),)),
    ):
        with pytest.raises(MayOverflow, match="may not fit 128 bits"):
            call(function, *arguments)


def test_products_of_64_bits_fit_and_three_of_them_do_not() -> None:
    square = call("multiply", FULL, FULL)
    assert square.kind.range == (INT64[0] * INT64[1], INT64[0] ** 2)
    assert square.kind.wide
    with pytest.raises(MayOverflow):
        call("multiply", square, FULL)


@pytest.mark.parametrize(("low", "high", "fits"), [(*INT64, True), (INT64[0] - 1, 0, False), (0, INT64[1] + 1, False)])
def test_reals_are_made_of_64_bits_alone(low: int, high: int, fits: bool) -> None:
    if fits:
        assert call("to_real", whole(low, high)).kind.type is Type.REAL
    else:
        with pytest.raises(TypeMisfit):
            call("to_real", whole(low, high))


def test_one_of_several_values_has_all_their_ranges() -> None:
    parts = whole(-5, 2), whole(1, 9)
    assert call("case", FLAG, *parts).kind.range == (-5, 9)
    assert call("coalesce", *parts).kind.range == (-5, 9)
    assert call("nullif", *parts).kind.range == (-5, 2)
    assert call("least", *parts).kind.range == (-5, 2)
    assert call("greatest", *parts).kind.range == (1, 9)


@pytest.mark.parametrize(
    "arguments", [(), (FLAG, FULL), (FLAG, FULL, FLAG, FULL), (FULL, FULL, FULL), (FLAG, FULL, TEXT)]
)
def test_case_needs_conditions_values_and_otherwise(arguments: tuple[Expression, ...]) -> None:
    with pytest.raises(TypeMisfit):
        call("case", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (FULL,),
        (FULL, FULL),
        (FULL, literal("a")),
        (FULL, literal(1), literal(1.0)),
        (FULL, literal(None, N)),
        (FULL, literal(1), FULL),
        (literal(1), literal(True)),
    ],
)
def test_in_takes_constants_of_the_type(arguments: tuple[Expression, ...]) -> None:
    with pytest.raises(TypeMisfit):
        call("in", *arguments)


def test_in_is_missing_where_its_value_is() -> None:
    assert call("in", FULL, literal(1)).kind.nullable
    assert not call("in", whole(0, 1), literal(1), literal(2)).kind.nullable


@pytest.mark.parametrize("function", ["like", "starts_with"])
def test_patterns_are_constants_of_bounded_length(function: str) -> None:
    assert not call(function, SURE[T], literal("a" * MOST_TEXT)).kind.nullable
    assert call(function, TEXT, literal("a")).kind.nullable
    assert call(function, SURE[T], literal(None, T)).kind.nullable
    for arguments in (
        (TEXT, TEXT),
        (TEXT, literal("a" * (MOST_TEXT + 1))),
        (FULL, literal("a")),
        (TEXT, literal(1)),
        (TEXT,),
    ):
        with pytest.raises(TypeMisfit):
            call(function, *arguments)


@pytest.mark.parametrize(
    ("start", "length", "fits"),
    [
        *((1, 0, True), (1 << 31, 1 << 31, True), (0, 1, False), (-1, 1, False), (1, -1, False)),
        *(((1 << 31) + 1, 1, False), (1, (1 << 31) + 1, False)),
    ],
)
def test_substring_takes_constant_places(start: int, length: int, fits: bool) -> None:
    arguments = TEXT, literal(start), literal(length)
    if fits:
        assert call("substring", *arguments).kind == of(T)
    else:
        with pytest.raises(TypeMisfit):
            call("substring", *arguments)


def test_substring_of_sure_text_may_be_missing_by_its_length() -> None:
    assert not call("substring", SURE[T], literal(1), literal(2)).kind.nullable
    assert call("substring", SURE[T], literal(1), literal(None, N)).kind.nullable
    for arguments in (
        (TEXT, whole(1, 2), literal(1)),
        (TEXT, literal(1), whole(1, 2)),
        (TEXT, literal(1)),
        (FULL, literal(1), literal(1)),
    ):
        with pytest.raises(TypeMisfit):
            call("substring", *arguments)


@pytest.mark.parametrize(
    ("function", "ends"),
    [
        *(("year", (1, 9999)), ("quarter", (1, 4)), ("month", (1, 12)), ("day", (1, 31)), ("weekday", (0, 6))),
        *(("hour", (0, 23)), ("minute", (0, 59))),
    ],
)
def test_parts_of_moments(function: str, ends: tuple[int, int]) -> None:
    assert call(function, MOMENT).kind.range == ends


def test_days_between_the_ends_of_the_calendar() -> None:
    kind = call("days_between", DATE, DATE).kind
    assert kind.range == (-(date.max - date.min).days, (date.max - date.min).days)
    assert call("length", TEXT).kind.range == (0, 1 << 32)
    assert call("to_integer", REAL).kind.range == INT64
