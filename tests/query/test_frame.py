"""Questions in Python: the same text, the same plan and the same answer as in SQL."""

from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.query.frame.columns import bracket, function_of
from hubbub.query.frame.frame import Asking
from hubbub.query.plan.plan import Plan
from hubbub.testing.replay import replayed
from tests.query.inside import World, row


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def db(world: World) -> hb.Database:
    wards = ("a", "b", "c")
    return world.load([row(n, ward=wards[n % 3], cost=float(n), nights=n % 7) for n in range(60)])


cost, nights, ward = (hb.col(name) for name in ("cost", "nights", "ward"))

SAME: list[tuple[Any, str]] = [
    (lambda t: t.agg(n=hb.count()), "SELECT count(*) AS n FROM stays"),
    (
        lambda t: t.group_by("ward").agg(n=hb.count(), cost=hb.mean("cost")),
        "SELECT ward AS ward, count(*) AS n, avg(cost) AS cost FROM stays GROUP BY ward",
    ),
    (
        lambda t: t.where(cost > 10, (nights >= 2) & (nights < 5) | ~ward.is_null()).agg(s=hb.sum(cost - 1)),
        "SELECT sum(cost - 1) AS s FROM stays WHERE cost > 10 AND ((nights >= 2 AND nights < 5) OR NOT ward IS NULL)",
    ),
    (
        lambda t: t.group_by(dear=hb.when(cost > 30, "dear", otherwise="cheap")).agg(n=hb.count_distinct("person")),
        "SELECT CASE WHEN cost > 30 THEN 'dear' ELSE 'cheap' END AS dear, count(DISTINCT person) AS n FROM stays "
        "GROUP BY CASE WHEN cost > 30 THEN 'dear' ELSE 'cheap' END",
    ),
    (
        lambda t: (
            t.group_by("ward").agg(n=hb.count(), m=hb.stddev("nights")).having(hb.col("n") > 3).order_by("n").limit(2)
        ),
        "SELECT ward AS ward, count(*) AS n, stddev_samp(nights) AS m FROM stays GROUP BY ward HAVING n > 3 "
        "ORDER BY n LIMIT 2",
    ),
    (
        lambda t: t.join("places", on=hb.col("ward", of="stays") == hb.col("id", of="places"), how="left").agg(
            n=hb.count(hb.col("floor")), v=hb.variance("nights")
        ),
        "SELECT count(floor) AS n, var_samp(nights) AS v FROM stays LEFT JOIN places ON stays.ward = places.id",
    ),
    (
        lambda t: t.where(ward.is_in(["a", "b"]), nights.between(1, 3), ward.like("%a")).agg(n=hb.count()),
        "SELECT count(*) AS n FROM stays WHERE ward IN ('a', 'b') AND (nights >= 1 AND nights <= 3) AND ward LIKE '%a'",
    ),
    (
        lambda t: t.where(-nights * 2 // 3 % 5 + cost / 2 != 7, ward.call("lower") == "a").agg(n=hb.count()),
        "SELECT count(*) AS n FROM stays WHERE ((-nights * 2) // 3) % 5 + cost / 2 <> 7 AND lower(ward) = 'a'",
    ),
]


def unnamed(plan: Plan) -> tuple[Any, ...]:
    """What is measured; groups are named after their text, which may have more brackets."""
    aggregate = plan.aggregate
    groups = [(group.expression, group.values) for group in aggregate.groups]
    return aggregate.input, aggregate.tallies, aggregate.most_groups, groups, plan.mechanisms


@pytest.mark.parametrize(("asked", "text"), SAME)
def test_the_same_plan_and_answer_as_in_sql(db: hb.Database, asked: Any, text: str) -> None:
    question: Asking = asked(db.table("stays"))
    mine, theirs = db.plan(question.sql, epsilon=1), db.plan(text, epsilon=1)
    assert unnamed(mine) == unnamed(theirs)
    assert mine.question.outputs == theirs.question.outputs
    with replayed(1):
        found = question.answer(epsilon=1)
    with replayed(1):
        assert found.to_dicts() == db.sql(text, epsilon=1).to_dicts()
    assert str(question.explain(epsilon=1)).splitlines()[-1] == str(db.explain(text, epsilon=1)).splitlines()[-1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("it's", "'it''s'"), (-1, "(-1)"), (3, "3"), (-0.5, "(-0.5)"), (None, "NULL"), (True, "TRUE"), (False, "FALSE"),
        (date(2024, 2, 29), "CAST('2024-02-29' AS DATE)"),
        (datetime(2024, 2, 29, 1, 2, 3), "CAST('2024-02-29 01:02:03' AS TIMESTAMP)"),
    ],
)  # fmt: skip
def test_values_are_literals(value: Any, text: str) -> None:
    assert bracket(value) == text


def test_names_are_quoted(db: hb.Database) -> None:
    assert [hb.col(name).text for name in ("cost", "Cost", "a b", "select", "ünit")] == [
        "cost", '"Cost"', '"a b"', '"select"', '"ünit"',
    ]  # fmt: skip
    assert hb.col('a" OR 1=1 --').text == '"a"" OR 1=1 --"'
    assert hb.col("a", of='t"').text == '"t""".a'
    with pytest.raises(hb.HubbubError, match="no table"):
        db.table('stays" --').agg(n=hb.count()).explain(epsilon=1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", [1], object()])
def test_what_is_no_value_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError):
        bracket(value)


def test_what_python_would_misread_is_refused() -> None:
    with pytest.raises(ParameterError, match="not with and"):
        bool(cost > 1)
    with pytest.raises(ParameterError, match="not with and"):
        assert 1 < cost < 3
    with pytest.raises(TypeError):
        hash(cost)


def test_steps_that_make_no_sense_are_refused(db: hb.Database) -> None:
    stays = db.table("stays")
    with pytest.raises(ParameterError, match="condition"):
        stays.where("cost > 1")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="how"):
        stays.join("places", on="ward", how="right")
    with pytest.raises(ParameterError, match="before where"):
        stays.where(cost > 1).join("places", on="ward")
    with pytest.raises(ParameterError, match="aggregates"):
        stays.agg()
    with pytest.raises(ParameterError, match="limit"):
        stays.agg(n=hb.count()).limit(-1)
    with pytest.raises(ParameterError, match="name of a function"):
        function_of("lower(ward); DROP", ward)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        hb.quantile("cost", 1.5)
    with pytest.raises(ParameterError, match="at least one"):
        ward.is_in([])
    with pytest.raises(ParameterError, match="in turn"):
        hb.when(cost > 1, 1, cost > 2)


def test_aggregates_in_sql() -> None:
    assert hb.quantile("cost", [0.5, 0.9]).text == "quantile_cont(cost, [0.5, 0.9])"
    assert hb.quantile("cost", 0.5).text == "quantile_cont(cost, 0.5)"
    assert [one("x").text for one in (hb.min, hb.max, hb.median)] == ["min(x)", "max(x)", "median(x)"]
    assert hb.correlation("x", hb.col("y")).text == "corr(x, y)"
    assert hb.geometric_mean("x").text == "geometric_mean(x)"
    assert hb.weighted_mean("x", hb.col("y") + 1).text == "weighted_avg(x, (y + 1))"
    assert [one(hb.col("x") > 1).text for one in (hb.bool_and, hb.bool_or)] == ["bool_and((x > 1))", "bool_or((x > 1))"]
    assert hb.covariance("x", hb.col("y") + 1).text == "covar_samp(x, (y + 1))"


def test_each_step_makes_a_new_frame(db: hb.Database) -> None:
    stays = db.table("stays")
    stays.where(cost > 1)
    assert stays.agg(n=hb.count()).sql == "SELECT count(*) AS n FROM stays"
    asking = stays.agg(n=hb.count())
    asking.having(hb.col("n") > 3).order_by("n", descending=True).limit(1)
    assert asking.sql == "SELECT count(*) AS n FROM stays"
