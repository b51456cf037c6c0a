"""Several questions at one price."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.errors import BudgetExceeded, NotAllowed, ParameterError, QueryError
from hubbub.policy.tables import Limits
from hubbub.testing.replay import replayed
from tests.query.inside import World, row

QUESTIONS = (
    "SELECT ward, count(*) AS n FROM stays GROUP BY ward",
    "SELECT avg(cost) AS m, sum(nights) AS s FROM stays",
    "SELECT median(cost) AS q FROM stays WHERE nights > 2",
)


def loaded(world: World) -> hb.Database:
    rows = [row(n, ward="abc"[n % 3], cost=float(n % 90), nights=n % 9) for n in range(300)]
    return world.load(rows, limits=Limits(max_groups=1, max_rows=1))


@pytest.fixture(params=["pure", "gaussian"])
def db(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[hb.Database]:
    delta = Fraction(0) if request.param == "pure" else Fraction(1, 10**6)
    world = World(tmp_path, budget=hb.Budget(epsilon=Fraction(1000), delta=delta))
    yield loaded(world)
    world.close()


def test_all_are_answered_in_one_charge(db: hb.Database) -> None:
    before = db.ledger.statement("people").spent.loss
    with replayed(1):
        found = db.ask(QUESTIONS, epsilon=30)
    assert len({one.entry for one in found}) == 1
    assert [len(one.rows) for one in found] == [5, 1, 1]
    assert {one["ward"]: one["n"] for one in found[0].to_dicts()}["a"] == pytest.approx(100, abs=20)
    assert found[1].rows[0][0] == pytest.approx(41.2, abs=5)
    assert found[2].rows[0][0] == pytest.approx(44, abs=8)
    spent = db.ledger.statement("people").spent.loss - before
    assert spent == sum(one.plan.cost.loss for one in found)
    again = db.ask(QUESTIONS, epsilon=30)
    assert [one.noisy for one in again] == [one.noisy for one in found]
    assert db.ledger.statement("people").spent.loss - before == spent


def test_in_an_account_with_delta_they_are_less_noisy_than_one_by_one(tmp_path: Path) -> None:
    world = World(tmp_path, budget=hb.Budget(epsilon=Fraction(1000), delta=Fraction(1, 10**6)))
    db = loaded(world)
    many = [f"SELECT count(*) FROM stays WHERE nights = {n}" for n in range(60)]
    with replayed(1):
        together = db.ask(many, epsilon=1)
    alone = db.plan(many[0], epsilon=Fraction(1, 60))
    assert together[0].plan.mechanisms[0].error(beta=0.05) < 0.7 * alone.mechanisms[0].error(beta=0.05)
    world.close()


def test_a_better_answer_keeps_its_own_error_bars(db: hb.Database) -> None:
    better = db.ask(QUESTIONS, epsilon=30)
    served = db.ask(QUESTIONS, epsilon=3)
    assert [one.entry for one in served] == [one.entry for one in better]
    assert served[0].highs == better[0].highs


def test_frames_can_be_among_them(db: hb.Database) -> None:
    asking = db.table("stays").agg(n=hb.count())
    (found, other) = db.ask([asking, QUESTIONS[0]], epsilon=2)
    assert found.columns == ("n",)
    assert other.columns == ("ward", "n")


def test_none_is_answered_if_one_cannot_be(db: hb.Database) -> None:
    before = db.ledger.statement("people").spent.loss
    with pytest.raises(QueryError):
        db.ask([QUESTIONS[0], "SELECT nothing FROM stays"], epsilon=1)
    with pytest.raises(NotAllowed, match="by themselves"):
        db.ask([QUESTIONS[0], "SELECT ward, count(*) FROM stays GROUP BY ROLLUP (ward)"], epsilon=1)
    with pytest.raises(ParameterError):
        db.ask([], epsilon=1)
    with pytest.raises(BudgetExceeded):
        db.ask(QUESTIONS, epsilon=10**5)
    assert db.ledger.statement("people").spent.loss == before
