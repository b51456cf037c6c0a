"""Groups that a range in WHERE makes public: exactly those that rows within it can have, and none from the data."""

from datetime import date, datetime, timedelta

import pytest

from hubbub.errors import MissingKeys
from hubbub.query.check.keys import MOST_STEPS
from tests.query.asking import read


def values(key: str, where: str) -> tuple[object, ...]:
    (group,) = read(f"select {key} as k, count(distinct patient_id) from stays where {where} group by k").groups
    assert not group.private
    return tuple(group.values)


def days(first: str, last: str) -> tuple[date, ...]:
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    return tuple(start + timedelta(days=step) for step in range((end - start).days + 1))


@pytest.mark.parametrize(
    ("key", "where", "expected"),
    [
        ("points", "points between 3 and 5", (3, 4, 5)),
        ("points", "points > 3 and points < 6", (4, 5)),
        ("points", "3 <= points and 6 > points and age > 1", (3, 4, 5)),
        ("points", "points >= 3 and points <= 9 and points < 5 and 4 <= points", (4,)),
        ("points", "7 = points", (7,)),
        ("points // 10", "points between 5 and 31", (0, 1, 2, 3)),
        ("points % 3", "points between 5 and 8", (2, 0, 1)),
        ("points > 4", "points between 3 and 5", (False, True)),
        ("day", "day between date '2024-02-28' and date '2024-03-01'", days("2024-02-28", "2024-03-01")),
        ("day", "day > date '2024-02-28' and day < date '2024-03-01'", (date(2024, 2, 29),)),
        ("year(day)", "day >= date '2022-12-31' and day < date '2024-01-01'", (2022, 2023)),
        ("date_trunc('month', day)", "day >= '2024-01-15' and day <= '2024-02-01'", days("2024-01-01", "2024-01-01")
         + days("2024-02-01", "2024-02-01")),
        ("month(day)", "day between date '2023-12-31' and date '2024-02-01'", (12, 1, 2)),
        ("year(day)", "day >= date '9999-12-31' and day <= date '9999-12-31'", (9999,)),
        ("year(seen)", "seen >= timestamp '2023-06-01' and seen < timestamp '2024-01-01'", (2023,)),
        ("year(seen)", "seen >= timestamp '2023-06-01' and seen < timestamp '2024-01-01 00:00:01'", (2023, 2024)),
        ("year(seen)", "seen > timestamp '2023-12-31 23:59:59' and seen <= timestamp '2024-01-01'", (2023, 2024)),
        ("date_trunc('day', seen)", "seen between timestamp '2024-01-31 12:00:00' and timestamp '2024-02-01'",
         days("2024-01-31", "2024-02-01")),
    ],
)  # fmt: skip
def test_all_that_the_range_holds(key: str, where: str, expected: tuple[object, ...]) -> None:
    assert values(key, where) == expected


def test_what_comes_before_a_range() -> None:
    assert values("points", "points in (9, 1) and points between 0 and 20") == (9, 1)
    assert values("ward", "ward = 'c'") == ("c",)
    assert values("hour(seen)", "seen >= timestamp '2024-01-01' and seen < timestamp '2024-01-02'")[:24] == tuple(
        range(24)
    )


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("points", "points > 3"),
        ("points", "points < 3"),
        ("points", "points > 3 or points < 5"),
        ("points", "points > 3 and age < 5"),
        ("points", "points + 1 between 3 and 5"),
        ("points + age * 1000", "points between 3 and 5"),
        ("points", f"points between 1 and {MOST_STEPS + 1}"),
        ("seen", "seen between timestamp '2024-01-01' and timestamp '2024-01-02'"),
        ("floor(weight)", "weight between 1 and 3"),
    ],
)
def test_what_bounds_nothing_makes_nothing_public(key: str, where: str) -> None:
    with pytest.raises(MissingKeys):
        values(key, where)


def test_as_many_as_may_be_gone_through() -> None:
    assert len(values("points", f"points between 1 and {MOST_STEPS}")) == MOST_STEPS
    assert isinstance(values("day", "day = date '2024-01-01'")[0], date)
    assert not isinstance(values("day", "day between date '2024-01-01' and date '2024-01-02'")[0], datetime)
