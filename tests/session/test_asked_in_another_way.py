"""A question that the balance lets be measured in another way is still the same question: it is paid for once.

Conditions are measured side by side, or by themselves, whichever errs less of what can be paid for. What is left
afterwards is less, and may speak for the other.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import hubbub as hb
from hubbub.errors import BudgetExceeded, EngineError, NotAllowed
from hubbub.ledger import Ask
from hubbub.policy.tables import Limits
from hubbub.privacy.charge import LOSS_UNIT
from hubbub.privacy.events.event import DiscreteGaussianEvent
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Neighbors
from hubbub.query.plan.plan import Plan
from hubbub.session import publishing
from hubbub.session import session as door
from hubbub.session.questions import draft_joint, sql_job
from tests.query.inside import World, row

REPLACED = Budget(epsilon=4, delta=Fraction(1, 10**9), neighbors=Neighbors.REPLACE_ONE)
ONE = Fraction(1)
SPANS = ("nights < 2", "nights >= 2 AND nights < 4", "nights >= 4 AND nights < 9")
TEXT = f"SELECT {', '.join(f'count(*) FILTER (WHERE {one})' for one in SPANS)} FROM stays"
PARTS = [f"SELECT count(*) FROM stays WHERE {one}" for one in SPANS]


@pytest.fixture(params=[Fraction(1), Fraction(1, 2)], ids=["to one grouping", "from one grouping"])
def asked(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[World, Fraction]]:
    """A world, and a price at which the way turns with what is left."""
    made = World(tmp_path, budget=REPLACED)
    yield made, request.param
    made.close()


def turned(world: World, plans: Callable[[hb.Database], Sequence[Plan]], *, unique: bool = True) -> hb.Database:
    """A database with just so much left that asking turns the way in which it would be asked again."""
    rows = [row(n, ward="abc"[n % 3], nights=n % 9) for n in range(100)]
    for part in range(1, 60):
        loaded = world.load(rows, limits=Limits(max_groups=1, max_rows=1), unique=unique)
        policy = replace(loaded.policy, account=f"people {part}")
        db = hb.Database(policy, ledger=world.ledger, engine=world.engine)
        payer = db.ledger.payer(policy.account)
        spend(db, payer.room.loss * LOSS_UNIT * part / 60)
        payer = db.ledger.payer(policy.account)
        found = plans(db)
        events = [event for one in found for event in one.events]
        if not payer.can_pay(events):
            continue
        left = payer.after(payer.price(events))
        with mock.patch.object(door.Session, "payer", lambda *_, left=left, **__: left):
            if (plans(db)[0].beside is None) is not (found[0].beside is None):
                return db
    raise AssertionError("no balance turns it")


def one(epsilon: Fraction) -> Callable[[hb.Database], Sequence[Plan]]:
    return lambda db: [db.plan(TEXT, epsilon=epsilon)]


def several(epsilon: Fraction) -> Callable[[hb.Database], Sequence[Plan]]:
    def plans(db: hb.Database) -> Sequence[Plan]:
        draft = draft_joint(PARTS, epsilon=epsilon, delta=None, policy=db.policy, catalogue=db._catalogue())
        return db._session.plan(draft)

    return plans


def spend(db: hb.Database, rho: Fraction) -> None:
    noise = DiscreteGaussianEvent(
        sigma=ONE, sensitivity_squared=2 * rho, dimension=None, neighbors=db.policy.budget.neighbors
    )
    db.ledger.reserve(Ask(account=db.policy.account, question="before", events=(noise,), epsilon=None))


def spent(db: hb.Database) -> tuple[int, int]:
    found = db.ledger.statement(db.policy.account).spent
    return found.loss, found.charges


def test_asked_again_it_is_served_whatever_is_left(asked: tuple[World, Fraction]) -> None:
    world, epsilon = asked
    db = turned(world, one(epsilon))
    first = db.sql(TEXT, epsilon=epsilon)
    before = spent(db)
    again, cheaper = db.sql(TEXT, epsilon=epsilon), db.sql(TEXT, epsilon=epsilon / 2)
    assert spent(db) == before
    assert again.rows == cheaper.rows == first.rows
    assert again.highs == cheaper.highs == first.highs
    assert again.stored is not None
    db.ledger.verify()


def test_under_its_key_too(asked: tuple[World, Fraction]) -> None:
    world, epsilon = asked
    db = turned(world, one(epsilon))
    first = db.sql(TEXT, epsilon=epsilon, key="mine")
    before = spent(db)
    assert db.sql(TEXT, epsilon=epsilon, key="mine").rows == first.rows
    assert spent(db) == before


def test_several_questions_at_one_price_are_served_too(asked: tuple[World, Fraction]) -> None:
    world, epsilon = asked
    db = turned(world, several(epsilon))
    first = db.ask(PARTS, epsilon=epsilon)
    before = spent(db)
    assert [each.rows for each in db.ask(PARTS, epsilon=epsilon)] == [each.rows for each in first]
    assert spent(db) == before


@pytest.mark.parametrize("key", [None, "mine"])
def test_a_charge_without_an_answer_is_answered_as_it_was_paid(asked: tuple[World, Fraction], key: str | None) -> None:
    world, epsilon = asked
    db = turned(world, one(epsilon))
    with mock.patch.object(world.engine, "broken", True), pytest.raises(EngineError):
        db.sql(TEXT, epsilon=epsilon, key=key)
    before = spent(db)
    assert len(db.sql(TEXT, epsilon=epsilon, key=key).rows) == 1
    assert spent(db) == before
    db.ledger.verify()


def test_a_diagnosis_is_served_too(asked: tuple[World, Fraction]) -> None:
    world, epsilon = asked
    db = turned(world, one(epsilon), unique=False)
    first = db.diagnose(TEXT, epsilon=epsilon)
    before = spent(db)
    assert db.diagnose(TEXT, epsilon=epsilon).entry == first.entry
    assert spent(db) == before


def test_whoever_may_not_have_it_for_nothing_pays(asked: tuple[World, Fraction]) -> None:
    world, epsilon = asked
    db = turned(world, one(epsilon))
    db.sql(TEXT, epsilon=epsilon)
    account, terms = db.policy.account, db.policy.budget
    db.ledger.set_budget(account, Budget(epsilon=40, delta=terms.delta, neighbors=terms.neighbors))
    db.ledger.grant(account, "ann")
    ann = hb.Database(db.policy, ledger=db.ledger, engine=world.engine, principal="ann")
    ann.sql(TEXT, epsilon=epsilon)
    assert db.ledger.statement(account, "principal", "ann").spent.charges == 1


@pytest.mark.parametrize("share", [Fraction(1, 6), Fraction(1, 3)])
@pytest.mark.parametrize("strategy", [hb.publish.Flat(), hb.publish.Hierarchy()])
def test_a_publication_that_failed_has_the_noise_that_was_paid_for(
    tmp_path: Path, strategy: Any, share: Fraction
) -> None:
    """The charge may leave too little for the same noise, and enough for the other."""
    world = World(tmp_path, budget=Budget(epsilon=4, delta=Fraction(1, 10**9)))
    db = world.load([row(n, nights=n % 9) for n in range(100)], limits=Limits(max_groups=1, max_rows=1))
    spend(db, db.ledger.payer(db.policy.account).room.loss * LOSS_UNIT * share)
    asked: dict[str, Any] = {"over": {"nights": range(10)}, "epsilon": Fraction(1, 2), "table": "stays"}
    with mock.patch.object(publishing, "measure_layers", side_effect=ValueError), pytest.raises(EngineError):
        db.publish(strategy, **asked)
    before = spent(db)
    release = db.publish(strategy, **asked)
    assert spent(db) == before
    assert release.stored is None
    db.ledger.verify()
    world.close()


@pytest.mark.parametrize("text", [TEXT, "SELECT count(*) FROM stays", "SELECT ward, count(*) FROM stays GROUP BY ward"])
def test_an_accuracy_that_was_paid_for_is_paid_for_once(tmp_path: Path, text: str) -> None:
    """With less left other noise would have to be paid for, at a higher ε."""
    world = World(tmp_path, budget=Budget(epsilon=4, delta=Fraction(1, 10**9)))
    loaded = world.load([row(n, nights=n % 9) for n in range(50)], limits=Limits(max_groups=1, max_rows=1))
    asked = 0
    for part in range(0, 60, 6):
        policy = replace(loaded.policy, account=f"people {part}")
        db = hb.Database(policy, ledger=world.ledger, engine=world.engine)
        spend(db, db.ledger.payer(policy.account).room.loss * LOSS_UNIT * (part + 1) / 60)
        try:
            first = db.sql(text, within=8)
        except (BudgetExceeded, NotAllowed):
            continue
        before, asked = spent(db), asked + 1
        again = db.sql(text, within=8)
        assert again.rows == first.rows
        assert again.highs == first.highs
        assert spent(db) == before
        db.ledger.grant(policy.account, "ann", limit=policy.budget)
        ann = hb.Database(policy, ledger=world.ledger, engine=world.engine, principal="ann")
        asks = ann._session.ask_of(sql_job(again.plan, price=LOSS_UNIT))
        assert db.ledger.list_free(replace(asks, principal="owner")), "the owner has it for nothing"
        assert not db.ledger.list_free(asks), "what she has not been given she does not find"
    assert asked >= 3
    world.close()
