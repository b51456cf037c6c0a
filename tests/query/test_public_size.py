"""A public number of units: what it saves, where it holds, and that no claim rests on it."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub.cli.app import app
from hubbub.errors import ParameterError, PolicyError
from hubbub.ledger import Marks
from hubbub.mechanisms import Geometric
from hubbub.policy.tables import Table
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.answer.stored import combine
from hubbub.query.plan.plan import Plan

POLICY = """
[budget]
account = "people"
epsilon = 1_000_000
neighbors = "replace-one"
[tables.people]
path = "people.parquet"
unit = "id"
unique = true
size = 90
[tables.people.columns]
age = { bounds = [50, 100], nullable = false }
pay = { type = "real", bounds = [0, 1000], nullable = false }
child = { bounds = [0, 10] }
"""
AGES = [50 + i % 41 for i in range(90)]
PEOPLE = "SELECT i AS id, 50 + i % 41 AS age, 10.0 * (i % 100) AS pay, CASE WHEN i > 5 THEN 3 END AS child"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    write(tmp_path, f"{PEOPLE} FROM range(90) AS t(i)")
    (tmp_path / "hubbub.toml").write_text(POLICY)
    return tmp_path / "hubbub.toml"


def write(folder: Path, select: str) -> None:
    duckdb.connect().execute(f"COPY ({select}) TO '{folder}/people.parquet'")


def check(policy: Path) -> int:
    return CliRunner().invoke(app, ["check", "--policy", str(policy)]).exit_code


def opened(policy: Path) -> hb.Database:
    folder = policy.parent
    return hb.open(policy, ledger=folder / "ledger", marks=Marks(folder / "marks"), limits=None)


def planned(policy: Path, text: str) -> Plan:
    with opened(policy) as db:
        return db.plan(text, epsilon=1)


def laplace(*sensitivities: int) -> tuple[Geometric, ...]:
    share = Fraction(1, len(sensitivities))
    return tuple(
        Geometric(epsilon=share, sensitivity=moved, neighbors=Neighbors.REPLACE_ONE) for moved in sensitivities
    )


def test_a_mean_is_its_sum_alone(policy: Path) -> None:
    assert check(policy) == 0
    mean = planned(policy, "SELECT avg(age) FROM people")
    assert mean.parts[0].size == 90
    assert mean.mechanisms == laplace(50), "one statistic, with the whole of ε"


def test_a_sum_moves_from_one_bound_to_the_other_and_no_further(policy: Path) -> None:
    assert check(policy) == 0
    assert planned(policy, "SELECT sum(age) FROM people").mechanisms == laplace(50)
    assert planned(policy, "SELECT sum(age) FROM people WHERE pay < 5").mechanisms == laplace(100)
    assert planned(policy, "SELECT sum(age), avg(age) FROM people").mechanisms == laplace(50), "they share it"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT avg(age) FROM people WHERE pay < 5",
        "SELECT avg(child) FROM people",
        "SELECT avg(age) FROM people GROUP BY child > 3",
        "SELECT avg(p.age) FROM people p JOIN people q ON p.id = q.id",
        "SELECT avg(p.age) FROM people p WHERE p.id IN (SELECT id FROM people WHERE pay > 3)",
        "SELECT avg(CASE WHEN pay > 5 THEN age END) FROM people",
    ],
)
def test_where_a_row_may_be_missing_nobody_knows_the_number(policy: Path, text: str) -> None:
    assert check(policy) == 0
    with opened(policy) as db:
        db._session.policy = replace(db.policy, limits=replace(db.policy.limits, max_rows=1, max_groups=1))
        made = db.plan(text, epsilon=1)
    assert all(part.size is None for part in made.parts)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT avg(n) FROM (SELECT age + 1 AS n FROM people)",
        "SELECT avg(a) FROM (SELECT id, max(age) AS a FROM people GROUP BY id)",
        "SELECT var_pop(age) FROM people",
        "SELECT stddev(pay) FROM people",
        "SELECT corr(age, pay) FROM people",
        "SELECT covar_samp(age, pay) FROM people",
        "SELECT regr_slope(age, pay) FROM people",
        "SELECT regr_intercept(age, pay) FROM people",
        "SELECT geometric_mean(age) FROM people",
    ],
)
def test_functions_of_a_mean_count_nothing(policy: Path, text: str) -> None:
    assert check(policy) == 0
    made = planned(policy, text)
    assert made.parts[0].size in {90, None if "max(age)" in text else 90}
    if made.parts[0].size is not None:
        assert all(tally.measure.value == "total" for tally in made.aggregate.tallies)


def exact(text: str) -> float:
    (found,) = duckdb.connect().execute(text.replace("people", f"({PEOPLE} FROM range(90) AS t(i))")).fetchall()
    return float(found[0])


@pytest.mark.parametrize(
    "shown",
    [
        "avg(age)",
        "sum(age)",
        "avg(pay)",
        "var_pop(age)",
        "stddev(pay)",
        "corr(age, pay)",
        "covar_samp(age, pay)",
        "regr_slope(age, pay)",
        "regr_intercept(age, pay)",
        "geometric_mean(age)",
    ],
)
def test_it_answers_the_same_as_without_noise(policy: Path, shown: str) -> None:
    text = f"SELECT {shown} FROM people"
    assert check(policy) == 0
    with opened(policy) as db:
        answer = db.sql(text, epsilon=100_000)
    (row,) = answer.to_dicts()
    (told,) = [value for name, value in row.items() if isinstance(value, int | float)][:1]
    assert told == pytest.approx(exact(text), rel=1e-2, abs=0.05)


def test_intervals_hold_the_sum_from_0(policy: Path) -> None:
    assert check(policy) == 0
    with opened(policy) as db:
        answer = db.sql("SELECT sum(age) AS s FROM people", epsilon=1)
    ((number,),) = combine(answer.plan, answer.noisy)
    assert isinstance(number.value, int)
    assert number.low <= number.value <= number.high
    assert number.high - number.low == 2 * answer.plan.margins.bound(answer.plan.parts[0].tallies[0], 0.05)
    assert abs(number.value - sum(AGES)) <= 50 * 40


def test_a_mean_errs_less_than_over_a_noisy_count(policy: Path) -> None:
    assert check(policy) == 0
    with opened(policy) as db:
        known = db.explain("SELECT avg(age) FROM people", epsilon=1)
    (column,) = known.to_dict()["columns"]
    assert "over 90 rows, as declared" in column["sentence"]
    assert column["margin"] == pytest.approx(150 / 90, rel=0.02)


def test_a_broken_promise_is_not_believed(policy: Path) -> None:
    write(policy.parent, f"{PEOPLE} FROM range(91) AS t(i)")
    told = CliRunner().invoke(app, ["check", "--policy", str(policy)])
    assert told.exit_code != 0
    assert "Declare the size" in " ".join(told.output.split())
    with opened(policy) as db:
        assert db.policy.enforced == frozenset()


def test_rows_that_came_since_end_it(policy: Path) -> None:
    assert check(policy) == 0
    write(policy.parent, f"{PEOPLE} FROM range(91) AS t(i)")
    with opened(policy) as db:
        assert "people" not in db.policy.enforced


def test_a_size_is_for_units_that_replace_each_other(policy: Path) -> None:
    policy.write_text(POLICY.replace("replace-one", "add-remove"))
    with pytest.raises(PolicyError, match="a size would tell it") as caught:
        opened(policy)
    assert caught.value.operands["line"]
    policy.write_text(POLICY.replace("unique = true\n", ""))
    with pytest.raises(PolicyError, match="Add unique = true"):
        opened(policy)


@pytest.mark.parametrize("size", [0, -1, "many", 1.5, True])
def test_a_size_is_a_whole_number(policy: Path, size: Any) -> None:
    with opened(policy) as db:
        table = db.policy.tables["people"]
    with pytest.raises(ParameterError):
        replace(table, size=size)
    assert isinstance(replace(table, size=1), Table)


def test_another_size_is_another_policy(policy: Path) -> None:
    with opened(policy) as db:
        one = db.policy
    other = replace(one, tables={"people": replace(one.tables["people"], size=91)})
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(("over", "passes"), [(sum(AGES) - 1000, True), (sum(AGES) + 1000, False)])
def test_a_threshold_is_held_against_the_sum_from_0(policy: Path, over: int, passes: bool) -> None:
    assert check(policy) == 0
    with opened(policy) as db:
        asking = db.table("people").agg(total=hb.sum("age"))
        assert db.plan(asking.sql, epsilon=1).parts[0].shift == 90 * 75
        found = hb.first_over(asking, over=over, epsilon=100)
    assert bool(found.found) is passes
    assert all(abs(one.estimate - sum(AGES)) < 500 for one in found.found)
