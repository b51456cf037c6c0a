"""From tables to a release: bounded for each unit, charged once, stored, and the same when it is asked again."""

import json
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import hubbub as hb
from hubbub import publish
from hubbub.errors import (
    BudgetExceeded,
    HubbubError,
    LedgerCorrupt,
    MissingBounds,
    NotAllowed,
    ParameterError,
    QueryError,
    TooHeavy,
)
from hubbub.ledger import Marks
from hubbub.policy.tables import Limits
from hubbub.privacy.sensitivity import Neighbors, Norm
from hubbub.publish.axes import lay_out
from hubbub.publish.offer import contribution_of
from hubbub.publish.strategies.layer import CellLayer
from hubbub.query.plan.plan import plan

WARDS = ["a", "b", "c"]
ROWS = """SELECT i // 3 AS person, (i * 7) % 50 AS age, ['a', 'b', 'd'][1 + i % 3] AS ward,
    (i % 40) / 4.0::DOUBLE AS cost, DATE '2026-01-01' + (i % 5)::INTEGER AS day, (i * 11) % 20000 AS place
    FROM range(3000) AS t(i)"""
EXACT = 1000


def written(folder: Path) -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({ROWS}) TO '{folder}/stays.parquet' (FORMAT parquet)")
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return written(tmp_path)


def opening(folder: Path, **changes: Any) -> hb.Database:
    options: dict[str, Any] = {
        "unit": "person",
        "budget": hb.Budget(epsilon=Fraction(10_000)),
        "limits": Limits(max_groups=3, max_rows=3),
        "ledger": folder / "stays.ledger",
        "marks": Marks(folder / "state"),
    }
    return hb.open(folder / "stays.parquet", **(options | changes))


@pytest.fixture
def db(files: Path) -> Iterator[hb.Database]:
    with opening(files) as made:
        yield made


@pytest.fixture(scope="module")
def unused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Database]:
    """For what is refused: nothing may ever be paid."""
    with opening(written(tmp_path_factory.mktemp("unused"))) as made:
        yield made


def truth(folder: Path, columns: str, where: str = "true") -> dict[Any, int]:
    with duckdb.connect() as connection:
        text = f"SELECT {columns}, count(*) FROM '{folder}/stays.parquet' WHERE {where} GROUP BY ALL"
        return {row[:-1]: row[-1] for row in connection.execute(text).fetchall()}


def test_rows_of_every_cell(db: hb.Database, files: Path) -> None:
    made = db.publish(publish.Flat(), over={"age": range(60), "ward": WARDS}, epsilon=EXACT)
    real = truth(files, "age, ward")
    assert made.cells.shape == (60, 3)
    for place, age in enumerate(range(60)):
        for other, ward in enumerate(WARDS):
            assert made.cells[place, other] == real.get((age, ward), 0), (age, ward)
    assert made.range(ward="a").value == 1000
    assert made.range(age=(10, 19), ward=("a", "b")).value == sum(
        many for (age, ward), many in real.items() if 10 <= age <= 19 and ward in "ab"
    )


def test_a_condition_bins_dates_and_expressions(db: hb.Database, files: Path) -> None:
    binned = db.publish(publish.Flat(), over={"cost": publish.bins(1, 9, 4)}, where="ward = 'a'", epsilon=EXACT)
    real = truth(files, "cost", "ward = 'a'")
    wanted = [sum(many for (cost,), many in real.items() if low <= cost < low + 2) for low in (1, 3, 5, 7)]
    assert binned.cells.tolist() == wanted
    assert binned.range(3, 7).value == wanted[1] + wanted[2]
    days = [date(2026, 1, 2), date(2026, 1, 9)]
    assert db.publish(publish.Flat(), over={"day": days}, epsilon=EXACT).cells.tolist() == [600, 0]
    tens = db.publish(publish.Flat(), over={"age // 10": range(5)}, epsilon=EXACT)
    assert tens.cells.tolist() == [many for _, many in sorted(truth(files, "age // 10").items())]


def test_many_whole_numbers_are_counted_in_blocks(db: hb.Database, files: Path) -> None:
    made = db.publish(publish.Flat(), over={"place": range(5, 17_000)}, epsilon=EXACT)
    real = truth(files, "place")
    assert made.cells.shape == (16_995,)
    assert made.cells.tolist() == [real.get((place,), 0) for place in range(5, 17_000)]


@pytest.mark.parametrize("total", [None, 4])
@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
def test_what_a_unit_adds_is_what_the_plan_proves(files: Path, neighbors: Neighbors, total: int | None) -> None:
    """The strategy is told no less than the plan's own sensitivity; for whole cells, the same."""
    budget = hb.Budget(epsilon=Fraction(10), neighbors=neighbors)
    with opening(files, budget=budget, limits=Limits(max_groups=2, max_rows=3, max_total_rows=total)) as db:
        layout = lay_out(publish.Domain.of({"ward": WARDS}), "stays", None, db)
        planned = plan(layout.question, db.policy, epsilon=1)
        one = contribution_of(planned)
        assert (one.cells, one.each, one.total) == (2, 3, total or 6)
        proven, used = planned.measurements[0].sensitivity, CellLayer(shape=(3,)).reach(one)
        assert used.in_norm(Norm.L1) == proven.in_norm(Norm.L1)
        assert used.in_norm(Norm.L2) == proven.in_norm(Norm.L2)


def test_a_unit_with_very_many_rows_is_cut_off(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT CASE WHEN i < 900 THEN 0 ELSE i END AS person, i % 10 AS age FROM range(910) AS t(i)) "
            f"TO '{tmp_path}/stays.parquet' (FORMAT parquet)"
        )
    with opening(tmp_path) as db:
        made = db.publish(publish.Flat(), over={"age": range(10)}, epsilon=EXACT)
        assert made.cells.sum() == 10 + 3 * 3
        fewer = db.publish(publish.Flat(), over={"age": range(10)}, cells=2, each=1, epsilon=EXACT)
        assert fewer.cells.sum() == 10 + 2
        one = fewer.prepared.terms.contribution
        assert (one.cells, one.each, one.total) == (2, 1, 2)


def test_paid_once_and_free_again(db: hb.Database, files: Path) -> None:
    over = {"age": range(50)}
    first = db.publish(publish.Flat(), over=over, epsilon=Fraction(1, 2))
    spent = db.ledger.statement("people").spent
    assert spent.charges == 1
    again = db.publish(publish.Flat(), over=over, epsilon=Fraction(1, 2))
    cheaper = db.publish(publish.Flat(), over=over, epsilon=Fraction(1, 4))
    assert db.ledger.statement("people").spent == spent
    assert again.entry == cheaper.entry == first.entry
    assert np.array_equal(again.cells, first.cells)
    assert np.array_equal(cheaper.cells, first.cells)
    assert cheaper.epsilon == Fraction(1, 2), "its errors are those of the answer that is there"
    other = db.publish(publish.Flat(), over=over, epsilon=1)
    assert other.entry != first.entry
    others: list[dict[str, Any]] = [{"over": {"age": range(49)}}, {"where": "ward = 'a'"}, {"each": 2}]
    for changed in others:
        before = db.ledger.statement("people").spent.charges
        asked: dict[str, Any] = {"over": over, "epsilon": Fraction(1, 2)} | changed
        db.publish(publish.Flat(), **asked)
        assert db.ledger.statement("people").spent.charges == before + 1, changed
    db.close()
    with opening(files) as later:
        assert np.array_equal(later.publish(publish.Flat(), over=over, epsilon=Fraction(1, 2)).cells, first.cells)


@pytest.mark.parametrize(
    "strategy",
    [publish.Hierarchy(), publish.Wavelet(), publish.CountSketch(), publish.Matrix()],
    ids=lambda one: one.name,
)
def test_other_strategies_are_stored_and_read_again(db: hb.Database, strategy: Any) -> None:
    over = {"age": range(32)}
    first, again = (db.publish(strategy, over=over, epsilon=2) for _ in range(2))
    assert np.array_equal(first.cells, again.cells)
    assert first.certificate() == again.certificate()
    assert db.ledger.statement("people").spent.charges == 1


def test_the_charge_is_that_of_the_certificate(db: hb.Database) -> None:
    made = db.publish(publish.Flat(), over={"age": range(50)}, epsilon=Fraction(1, 3))
    told = json.loads(made.certificate())
    spent = db.ledger.statement("people").spent
    assert (told["loss_units"], told["failure_units"]) == (spent.loss, spent.failure)
    assert told["events"] == [
        {"event": "discrete-laplace", "version": 1, "neighbors": "add-remove", "scale": told["events"][0]["scale"]}
        | {"sensitivity": 9}
    ]
    assert told["contribution"] == {"cells": 3, "each": 3, "total": 9}
    assert Fraction(told["events"][0]["scale"]) >= 27
    assert "PUBLISH" in told["question"]
    assert told["entry"] == made.entry


def test_too_dear_is_refused_before_anything_is_paid(files: Path) -> None:
    with opening(files, budget=hb.Budget(epsilon=Fraction(1)), limits=Limits(max_groups=2)) as db:
        with pytest.raises(BudgetExceeded):
            db.publish(publish.Flat(), over={"age": range(50)}, epsilon=2)
        assert db.ledger.statement("people").spent.charges == 0, "nor are limits bought for it"


def test_limits_that_nobody_declared_are_bought(files: Path) -> None:
    with opening(files, limits=Limits()) as db:
        over = {"ward": WARDS}
        told = db.explain_publish(publish.Flat(), over=over, epsilon=200)
        assert [what for what, _ in told.to_buy] == ["rows of a unit in a group", "groups of a unit"]
        assert db.ledger.statement("people").spent.charges == 0
        made = db.publish(publish.Flat(), over=over, epsilon=200)
        assert db.ledger.statement("people").spent.charges == 3
        assert db.ledger.statement("people").spent.loss == told.cost.loss
        assert made.prepared.terms.contribution.cells == 2, "nobody is in more than two of the three"
        assert made.epsilon == 150
        known = db.explain_publish(publish.Flat(), over=over, epsilon=200)
        assert not known.to_buy
        assert len(known.bought) == 2
    with opening(files, limits=Limits(buy=False)) as db, pytest.raises(MissingBounds):
        db.publish(publish.Flat(), over=over, epsilon=1)


def test_an_account_with_delta_takes_the_noise_that_it_can_pay(files: Path) -> None:
    """The better noise by its sum of ε; once Gaussian noise was paid, that sum is closed, and ρ pays for Gaussian."""

    def noise_of(made: Any) -> str:
        return str(json.loads(made.certificate())["events"][0]["event"])

    with opening(files, budget=hb.Budget(epsilon=Fraction(1), delta=Fraction(1, 10**6))) as db:
        quiet = publish.Flat(noise=publish.Noise.GAUSSIAN)
        terms: dict[str, Any] = {"cells": 1, "each": 1}
        told = db.explain_publish(publish.Flat(), over={"age": range(50)}, epsilon=Fraction(9, 10), **terms)
        assert type(told.prepared.measurements[0].mechanism).__name__ == "Geometric"
        assert told.fits
        assert noise_of(db.publish(quiet, over={"age": range(48)}, epsilon=Fraction(1, 10), **terms)) == (
            "discrete-gaussian"
        )
        made = db.publish(publish.Flat(), over={"age": range(50)}, epsilon=Fraction(8, 10), **terms)
        assert made.delta == Fraction(1, 10**8)
        assert noise_of(made) == "discrete-gaussian"
        laplace = publish.Flat(noise=publish.Noise.LAPLACE)
        with pytest.raises(BudgetExceeded):
            db.publish(laplace, over={"age": range(49)}, epsilon=Fraction(8, 10), **terms)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"over": {"nothing": range(3)}}, QueryError),
        ({"over": {"cost": range(3)}}, QueryError),
        ({"over": {"ward": publish.bins(0, 1, 2)}}, QueryError),
        ({"over": {"age": ["x"]}}, ParameterError),
        ({"over": {"*": [1]}}, QueryError),
        ({"over": {"count(age)": [1]}}, QueryError),
        ({"over": {"age": range(3_000), "place": range(4_000)}}, TooHeavy),
        ({"over": {}}, ParameterError),
        ({"where": "age"}, QueryError),
        ({"where": "true) GROUP BY (age > 5"}, NotAllowed),
        ({"where": "true) LIMIT (1"}, NotAllowed),
        ({"cells": 4}, NotAllowed),
        ({"each": 4}, NotAllowed),
        ({"each": 0}, ParameterError),
        ({"table": "others"}, ParameterError),
        ({"epsilon": 0}, ParameterError),
    ],
)
def test_refused_without_a_charge(unused: hb.Database, changed: dict[str, Any], error: type[HubbubError]) -> None:
    asked: dict[str, Any] = {"over": {"age": range(50)}, "epsilon": 1} | changed
    with pytest.raises(error):
        unused.publish(publish.Flat(), **asked)
    with pytest.raises(error):
        unused.explain_publish(publish.Flat(), **asked)
    assert unused.ledger.statement("people").spent.charges == 0


def test_what_it_would_cost(db: hb.Database) -> None:
    told = db.explain_publish(publish.Flat(), over={"age": range(50), "ward": WARDS}, epsilon=1)
    assert db.ledger.statement("people").spent.charges == 0
    assert told.fits
    assert told.curve is not None
    sizes = [many for many, _ in told.curve]
    assert (sizes[0], sizes[-1]) == (1, 150)
    expected = told.curve[0][1]
    made = db.publish(publish.Flat(), over={"age": range(50), "ward": WARDS}, epsilon=1)
    assert made.deviations is not None
    assert made.deviations.max() == pytest.approx(expected)
    found = told.range({"age": (0, 9)})
    estimate = made.range(age=(0, 9))
    assert found is not None
    assert estimate.high is not None
    assert found == pytest.approx((estimate.deviation, estimate.high - estimate.value))
    assert "150: age (50) × ward (3)" in str(told)
    assert json.loads(json.dumps(told.to_dict()))["cells"] == 150


def test_an_answer_that_cannot_be_read_is_no_answer(db: hb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.publish(publish.Flat(), over={"age": range(50)}, epsilon=1)
    monkeypatch.setattr("hubbub.publish.release.saved.VERSION", 2)
    with pytest.raises(LedgerCorrupt):
        db.publish(publish.Flat(), over={"age": range(50)}, epsilon=1)


def test_an_axis_may_be_a_column_that_is_never_missing(files: Path) -> None:
    with opening(files, nullable={"age": False, "ward": False}) as db:
        layout = lay_out(publish.Domain.of({"ward": WARDS, "age + 1": range(1, 51)}), "stays", "age >= 0", db)
        assert layout.group_count == 150
        made = db.publish(publish.Flat(), over={"age": range(50)}, epsilon=EXACT)
        assert made.cells.sum() == 3000


@pytest.mark.parametrize(
    "axis", ["age, place", "age) FROM stays GROUP BY (age", "1", "count(age)", "*", "DISTINCT age"]
)
def test_nothing_but_an_expression_of_columns_is_an_axis(db: hb.Database, axis: str) -> None:
    with pytest.raises(QueryError):
        lay_out(publish.Domain.of({axis: range(5)}), "stays", None, db)


@pytest.mark.parametrize("where", ["age > 1) GROUP BY (age", "age > 1) LIMIT (1", "age > 1) ORDER BY (age"])
def test_nothing_but_a_condition_is_a_condition(db: hb.Database, where: str) -> None:
    with pytest.raises(NotAllowed, match="one condition"):
        lay_out(publish.Domain.of({"age": range(5)}), "stays", where, db)
