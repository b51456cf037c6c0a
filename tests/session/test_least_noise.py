"""Noise by the balance, through the one door: priced as it is charged, planned again in a race, kept after a crash."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import hubbub as hb
from hubbub.errors import BudgetExceeded, EngineError
from hubbub.ledger import Ask
from hubbub.policy.tables import Limits
from hubbub.privacy.charge import LOSS_UNIT
from hubbub.privacy.events.event import DiscreteGaussianEvent
from hubbub.privacy.filter import Budget
from hubbub.session import session as door
from tests.query.inside import World, row

FAMILY = Budget(epsilon=Fraction(4), delta=Fraction(1, 10**9))
COUNT = "SELECT count(*) AS n FROM stays"
GROUPED = "SELECT ward, count(*) AS n FROM stays GROUP BY ward"
ASKED = Fraction(3, 4)
TOTAL = "SELECT sum(points) AS s FROM stays"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, budget=FAMILY)
    yield made
    made.close()


@pytest.fixture
def db(world: World) -> hb.Database:
    people = [row(unit, ward="ab"[unit % 2], nights=1, cost=1.0, points=unit % 40) for unit in range(60)]
    return world.load(people, limits=Limits(max_groups=1, max_rows=1), buys=True)


def spend(db: hb.Database, rho: Fraction, *, name: str = "other", principal: str = "owner") -> None:
    """Let somebody pay for Gaussian noise."""
    event = DiscreteGaussianEvent(sigma=Fraction(1), sensitivity_squared=2 * rho)
    db.ledger.reserve(Ask(account="people", question=name, events=(event,), epsilon=Fraction(1), principal=principal))


def charges(db: hb.Database) -> list[dict[str, Any]]:
    return [entry.content for entry in db.ledger.entries() if entry.kind == "charge"]


def test_four_counts_at_one_are_answered_with_geometric_noise(db: hb.Database) -> None:
    for column in ("nights", "points", "cost", "person"):
        answer = db.sql(f"SELECT count({column}) AS n FROM stays", epsilon=1)
        assert [type(one).__name__ for one in answer.plan.mechanisms] == ["Geometric"]
    with pytest.raises(BudgetExceeded, match="has ε = 0 or ρ = 0 left"):
        db.sql(COUNT, epsilon=1)
    assert db.ledger.verify().accounts == 1


def test_what_is_explained_is_what_is_charged(db: hb.Database) -> None:
    spend(db, FAMILY.filter.loss_cap * LOSS_UNIT / 2)
    for text, epsilon in ((GROUPED, Fraction(1, 4)), (TOTAL, Fraction(1, 10)), (COUNT, Fraction(1))):
        told = db.explain(text, epsilon=epsilon).to_dict()
        before = len(charges(db))
        answer = db.sql(text, epsilon=epsilon)
        paid = charges(db)[before:]
        assert told["cost"]["loss_units"] == sum(one["loss"] for one in paid)
        assert told["charged_epsilon"] == float(answer.plan.price)
        assert f"ε = {float(answer.plan.price):.6g}" in repr(answer)


def test_the_answer_says_the_epsilon_that_was_used(db: hb.Database) -> None:
    spend(db, FAMILY.filter.loss_cap * LOSS_UNIT / 8)
    answer = db.sql(COUNT, epsilon=2)
    ((name, used),) = answer.plan.ways
    assert name.startswith("pure")
    assert used < 2
    assert f"ε = {float(used):.6g}" in repr(answer)
    again = db.sql(COUNT, epsilon=2)
    assert (again.entry, again.rows, again.lows, again.highs) == (answer.entry, answer.rows, answer.lows, answer.highs)
    assert again.plan.ways == answer.plan.ways, "it is read as it was drawn, whatever can be paid for now"


def test_a_price_with_bought_facts_is_all_of_it(db: hb.Database) -> None:
    answer = db.sql(TOTAL, epsilon=Fraction(1, 2))
    assert answer.plan.price == Fraction(1, 2)
    assert answer.plan.used < Fraction(1, 2)
    assert "ε = 0.5 " in repr(answer)
    assert db.sql(TOTAL, epsilon=Fraction(1, 2)).plan.price == Fraction(1, 2), (
        "served again, it is what was charged then"
    )


def test_the_balance_changes_between_price_and_charge(db: hb.Database) -> None:
    """Somebody pays for Gaussian noise after it was planned: it is planned again, and charged for what is drawn."""
    honest = door.Session._ready
    raced: list[Any] = []

    def ready(self: Any, job: Any, ask: Any, *given: Any) -> Callable[[], Any]:
        if not raced:
            raced.append(job.ways)
            spend(db, FAMILY.filter.loss_cap * LOSS_UNIT / 2)
        return honest(self, job, ask, *given)

    with mock.patch.object(door.Session, "_ready", ready):
        answer = db.sql(COUNT, epsilon=1)
    assert raced == [(("pure", Fraction(1)),)]
    assert answer.plan.ways != raced[0]
    assert charges(db)[-1]["events"] == [event.to_json() for event in answer.plan.events]
    db.ledger.verify()


def test_a_race_that_leaves_nothing_ends_in_a_refusal(db: hb.Database) -> None:
    honest = door.Session._ready
    raced: list[Any] = []

    def ready(self: Any, job: Any, ask: Any, *given: Any) -> Callable[[], Any]:
        if not raced:
            raced.append(job)
            spend(db, FAMILY.filter.loss_cap * LOSS_UNIT)
        return honest(self, job, ask, *given)

    with mock.patch.object(door.Session, "_ready", ready), pytest.raises(BudgetExceeded):
        db.sql(COUNT, epsilon=1)
    assert len(charges(db)) == 1, "the other's alone"


@pytest.mark.parametrize("key", [None, "once"])
def test_a_charge_that_lost_its_answer_is_answered_as_it_was_paid(db: hb.Database, key: str | None) -> None:
    """The question has used up what its way needs: asked again it would be planned otherwise, and charged twice."""
    spend(db, FAMILY.filter.loss_cap * LOSS_UNIT / 2)
    with mock.patch.object(db.ledger, "settle", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        db.sql(COUNT, epsilon=1, key=key)
    paid = charges(db)
    fresh = db.plan(COUNT, epsilon=1)
    assert [event.to_json() for event in fresh.events] != paid[-1]["events"], "it would be planned otherwise now"
    answer = db.sql(COUNT, epsilon=1, key=key)
    assert charges(db) == paid
    assert [event.to_json() for event in answer.plan.events] == paid[-1]["events"]


def test_a_failure_leaves_the_way_for_the_next_attempt(db: hb.Database) -> None:
    spend(db, FAMILY.filter.loss_cap * LOSS_UNIT / 2)
    with mock.patch("hubbub.session.questions.measure_sets", side_effect=ValueError), pytest.raises(EngineError):
        db.sql(COUNT, epsilon=1)
    paid = charges(db)
    db.sql(COUNT, epsilon=1)
    assert charges(db) == paid


def test_a_principal_is_planned_for_by_its_own_balance(db: hb.Database) -> None:
    """Ann has paid Gaussian noise from a small limit; the owner's questions are as before, and so are bob's."""
    for name in ("ann", "bob"):
        db.ledger.grant("people", name, limit=Budget(epsilon=Fraction(1), delta=FAMILY.delta))
    spend(db, Fraction(1, 200), principal="ann")
    ann, bob = (hb.Database(db.policy, ledger=db.ledger, engine=db._engine, principal=name) for name in ("ann", "bob"))
    mine, theirs = ann.plan(COUNT, epsilon=ASKED), bob.plan(COUNT, epsilon=ASKED)
    assert mine.ways == (("gaussian", ASKED),)
    assert theirs.ways[0][0].startswith("pure"), "as far as the account's ρ goes, of which ann has spent too"
    assert ann.explain(COUNT, epsilon=ASKED).to_dict()["charged_epsilon"] == float(mine.used)
    with pytest.raises(BudgetExceeded):
        ann.sql(COUNT, epsilon=ASKED, delta=0)
    ann.sql(COUNT, epsilon=ASKED)
    db.ledger.verify()


def test_several_questions_and_diagnoses_are_planned_by_the_balance(db: hb.Database) -> None:
    spend(db, FAMILY.filter.loss_cap * LOSS_UNIT / 4)
    first, second = db.ask([COUNT, GROUPED], epsilon=1)
    assert first.plan.ways == second.plan.ways
    again = db.ask([COUNT, GROUPED], epsilon=1)
    assert [one.rows for one in again] == [first.rows, second.rows]
    assert [one.highs for one in again] == [first.highs, second.highs]
    db.ledger.verify()


def test_explain_tells_odds_and_how_often(db: hb.Database) -> None:
    told = db.explain(COUNT, epsilon=1)
    facts = told.to_dict()
    assert facts["questions_like_it"] == 4
    assert facts["odds"]["posterior"] == pytest.approx(0.7310585786)
    assert facts["odds"]["rows_posterior"] == pytest.approx(1 / (1 + math.exp(-2))), (
        "from one row to another is two steps"
    )
    assert "as not that one person is in the data holds it at most 73.11% likely" in str(told)
    assert "something that the person's rows say at most 88.08%" in str(told)
    assert facts["odds"]["chance"] == 0
    assert "pays for 4 questions at this price" in str(told)
    assert facts["left"].startswith("ε = 4 (ρ = ")
