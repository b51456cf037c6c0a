"""Facts that others have bought: not shown and not used for nothing, and no cap is passed or missed because of them."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub import publish
from hubbub.errors import BudgetExceeded, HubbubError, KeyConflict, MayOverflow, MissingBounds, NotAllowed
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import LOSS_UNIT
from hubbub.query.missing.bought import apply_facts
from hubbub.session import facts
from hubbub.session import questions as session
from tests.query.inside import World
from tests.session.granting import ALL, COUNT, ONE, TOTAL, entries, frame, granted, loaded, own


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def told(db: hb.Database) -> tuple[list[str], list[str]]:
    """What is known of a question for nothing, and what would be bought."""
    shown = db.explain(TOTAL, epsilon=1).to_dict()
    return [one["what"] for one in shown["bought"]], [one["what"] for one in shown["to_buy"]]


FACT = "bounds for sum(points)"


def test_facts_of_others_are_neither_shown_nor_used_for_nothing(world: World) -> None:
    db = loaded(world)
    ann, bob = granted(db, "ann"), granted(db, "bob", 10)
    before = told(bob), str(bob.explain(TOTAL, epsilon=1))
    ann.sql(TOTAL, epsilon=2)
    assert told(ann) == told(db) == ([FACT], []), "the owner sees what was released"
    assert (told(bob), str(bob.explain(TOTAL, epsilon=1))) == before
    assert told(bob) == ([], [FACT])
    for refused, ask in (
        (NotAllowed, lambda: bob.sql(TOTAL, within=10**6)),
        (NotAllowed, lambda: bob.explain(TOTAL, within=10**6)),
        (MissingBounds, lambda: bob.plan(TOTAL, epsilon=1)),
        (MissingBounds, lambda: hb.first_over(frame(bob).agg(s=hb.sum("points")), over=1, epsilon=1)),
    ):
        with pytest.raises(refused):
            ask()
    assert ann.explain(TOTAL, within=10**6).to_dict()["bought"]
    bob.sql(TOTAL, epsilon=1)
    assert told(bob) == ([FACT], []), "once it has paid for them"


def test_a_fact_that_is_public_is_everybodys(world: World) -> None:
    db = loaded(world)
    db.sql(TOTAL, epsilon=1)
    bob = granted(db, "bob", 1)
    look = next(entry for entry in db.ledger.entries() if entry.kind == "charge" and "fact" in entry.body)
    db.ledger.publish(look.seq)
    assert told(bob) == ([FACT], [])
    bob.sql("SELECT sum(points) AS t FROM stays WHERE urgent", epsilon=1)
    assert own(bob) == 1, "all of it for the question"


def test_limits_for_publications_that_others_bought_are_not_shown_either(world: World) -> None:
    db = loaded(world, limits=Limits())
    bob = granted(db, "bob", 10)
    before = str(bob.explain_publish(publish.Flat(), **ALL))
    db.publish(publish.Flat(), **ALL)
    assert db.explain_publish(publish.Flat(), **ALL).bought
    assert str(bob.explain_publish(publish.Flat(), **ALL)) == before
    bob.publish(publish.Flat(), **ALL)
    assert bob.explain_publish(publish.Flat(), **ALL).bought


# Caps


PAID: dict[str, Callable[[hb.Database, Any], object]] = {
    "sql": lambda db, key: db.sql(TOTAL, epsilon=1, key=key),
    "diagnose": lambda db, key: db.diagnose(TOTAL, epsilon=1, key=key),
    "publish": lambda db, key: db.publish(publish.Flat(), **ALL, key=key),
}


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("cap", ["principal", "project"])
@pytest.mark.parametrize("path", PAID)
def test_what_does_not_fit_is_refused_before_facts_are_bought(world: World, path: str, cap: str, served: bool) -> None:
    db = loaded(world, limits=Limits())
    if served:
        PAID[path](db, None)
    tight = Fraction(9, 10)
    db.ledger.open_project("people", "flu", hb.Budget(epsilon=tight if cap == "project" else ONE))
    bob = granted(db, "bob", tight if cap == "principal" else 1, project="flu")
    before = entries(db)
    with pytest.raises(BudgetExceeded, match=cap):
        PAID[path](bob, None)
    assert entries(db) == before
    db.ledger.open_project("people", "flu", hb.Budget(epsilon=ONE))
    db.ledger.grant("people", "bob", limit=hb.Budget(epsilon=ONE), project="flu")
    PAID[path](bob, None)
    assert own(bob) <= 1


@pytest.mark.parametrize("path", PAID)
def test_a_key_that_was_used_is_refused_before_facts_are_bought(world: World, path: str) -> None:
    bob = granted(loaded(world, limits=Limits()), "bob")
    bob.sql("SELECT count(DISTINCT person) AS n FROM stays", epsilon=1, key="k")
    before = entries(bob)
    with pytest.raises(KeyConflict):
        PAID[path](bob, "k")
    assert entries(bob) == before


@pytest.mark.parametrize("path", PAID)
def test_dear_facts_of_others_keep_nobody_from_buying_cheap_ones(world: World, path: str) -> None:
    """The owner's look cost 20 and more; Bob has 1, asks at 1, and gets what he would if he were alone."""
    db = loaded(world, limits=Limits())
    if path == "publish":
        db.publish(publish.Flat(), **{**ALL, "epsilon": 100})
    else:
        db.sql(TOTAL, epsilon=100)
    before = told(db)
    bob = granted(db, "bob", 1)
    charged = db.ledger.statement("people").spent.loss
    PAID[path](bob, None)
    paid = own(bob)
    assert paid == (db.ledger.statement("people").spent.loss - charged) * LOSS_UNIT
    assert 1 - paid < 10 * LOSS_UNIT, "all of it, in whole units"
    assert told(db) == before
    PAID[path](bob, None)
    assert own(bob) == paid, "and again for nothing"
    db.ledger.verify()


def test_facts_that_one_has_bought_stay_ones_own(world: World) -> None:
    """Bob could not pay for the owner's and has his own; Ann, who can, is served the owner's."""
    db = loaded(world)
    db.sql(TOTAL, epsilon=100)
    bob, ann = granted(db, "bob", 2), granted(db, "ann", 100)
    bob.sql(TOTAL, epsilon=1)
    ann.sql(TOTAL, epsilon=1)
    shown = [asker.explain(TOTAL, epsilon=1).to_dict()["bought"] for asker in (db, ann, bob)]
    assert shown[0] == shown[1]
    assert own(ann) > 20, "the owner's, which cost her as much as it cost the owner"
    paid = [entry.content["paid"] for entry in db.ledger.entries() if entry.kind == "fact"]
    assert len(paid) == len(set(paid)) == 2, "the owner's and Bob's; Ann's are the owner's"


def test_what_is_stored_is_shared_when_the_account_has_nothing_left(tmp_path: Path) -> None:
    world = World(tmp_path, budget=hb.Budget(epsilon=Fraction(2)))
    db = loaded(world)
    bob = granted(db, "bob", 2)
    db.sql(TOTAL, epsilon=1)
    db.sql(COUNT, epsilon=1)
    assert bob.explain(TOTAL, epsilon=1).to_dict()["fits"] is False, "nothing tells that it is there"
    assert bob.sql(TOTAL, epsilon=1).stored is not None
    assert own(bob) == 1, "bounds and answer, each as dear as it was for the owner"
    before = entries(db)
    with pytest.raises(BudgetExceeded, match='account "people" has ε = 0 left'):
        bob.sql("SELECT avg(points) AS m FROM stays", epsilon=1)
    assert entries(db) == before
    world.close()


def test_two_who_buy_the_same_at_once_have_one_each(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob asks while Ann's bounds are measured: they are paid for, and not stored yet."""
    db = loaded(world)
    ann, bob = granted(db, "ann", 5), granted(db, "bob", 5)
    honest = facts.look_job
    asked: list[hb.Database] = []

    def meanwhile(*given: Any, **more: Any) -> Any:
        job = honest(*given, **more)

        def measure(read: Any, meter: Any) -> str:
            if not asked:
                asked.append(bob)
                bob.sql(TOTAL, epsilon=1)
            return job.measure(read, meter)

        return replace(job, measure=measure)

    monkeypatch.setattr(facts, "look_job", meanwhile)
    ann.sql(TOTAL, epsilon=1)
    assert told(ann) == told(bob) == ([FACT], [])
    paid = [entry.content["paid"] for entry in db.ledger.entries() if entry.kind == "fact"]
    assert len(paid) == len(set(paid)) == 2
    assert own(ann) == own(bob) == 1
    db.ledger.verify()


def test_errors_that_facts_of_others_would_make_are_not_told_before_they_are_paid(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan with the owner's bounds fails, as one with very large ones may: Bob hears of it when they are his."""
    db = loaded(world)
    db.sql(TOTAL, epsilon=100)
    bob = granted(db, "bob", 200)
    (bounds,) = db.explain(TOTAL, epsilon=1).known.values()

    def fails(asked: Any, policy: Any, facts: Any) -> Any:
        if bounds in facts.values():
            raise MayOverflow("Sums could get too large.")
        return apply_facts(asked, policy, facts)

    monkeypatch.setattr(session, "apply_facts", fails)
    bob.explain(TOTAL, epsilon=1)
    before = entries(db)
    with pytest.raises(MayOverflow):
        bob.sql(TOTAL, epsilon=1)
    assert entries(db) == before + 1, "the share that paid for them"
    assert own(bob) > 0


def test_a_wrong_question_says_the_same_whatever_others_have_asked(world: World) -> None:
    db = loaded(world)
    bob = granted(db, "bob")

    def heard() -> list[str]:
        sentences = []
        for text in ("SELECT nothing FROM stays", "SELECT sum(points) FROM nowhere", "SELECT sum(points FROM stays"):
            with pytest.raises(HubbubError) as refused:
                bob.explain(text, epsilon=1)
            sentences.append(str(refused.value))
        return sentences

    before = heard()
    db.sql(TOTAL, epsilon=1)
    assert heard() == before


# Whatever others do


VIEWS: dict[str, Callable[[hb.Database], object]] = {
    "a price": lambda db: str(db.explain(TOTAL, epsilon=1)),
    "a price for programs": lambda db: db.explain(TOTAL, epsilon=Fraction(1, 3)).to_dict(),
    "a count": lambda db: str(db.explain(COUNT, epsilon=1)),
    "an accuracy": lambda db: str(db.explain(TOTAL, within=10**5)),
    "a plan": lambda db: db.plan(TOTAL, epsilon=1).cost,
    "a mean": lambda db: str(db.explain("SELECT ward, avg(points) AS m FROM stays GROUP BY ward", epsilon=1)),
    "a publication": lambda db: str(db.explain_publish(publish.Flat(), **ALL)),
    "marginals": lambda db: db.explain_publish(publish.Marginals(ways=1), **ALL).to_dict(),
    "what is refused": lambda db: db.diagnose(TOTAL, epsilon=100),
    "what is left": lambda db: db.ledger.remaining("people", db.principal),
}
DEEDS: dict[str, Callable[[hb.Database, int], object]] = {
    "sum": lambda db, epsilon: db.sql(TOTAL, epsilon=epsilon),
    "count": lambda db, epsilon: db.sql(COUNT, epsilon=epsilon),
    "mean": lambda db, epsilon: db.sql("SELECT ward, avg(points) AS m FROM stays GROUP BY ward", epsilon=epsilon),
    "diagnose": lambda db, epsilon: db.diagnose(TOTAL, epsilon=epsilon),
    "publish": lambda db, epsilon: db.publish(publish.Flat(), **{**ALL, "epsilon": epsilon}),
    "revoke": lambda db, epsilon: db.ledger.revoke("people", db.principal),
    "grant": lambda db, epsilon: db.ledger.grant("people", db.principal, limit=hb.Budget(epsilon=Fraction(epsilon))),
    "limit": lambda db, epsilon: db.ledger.open_project("people", "theirs", hb.Budget(epsilon=Fraction(epsilon))),
}


def seen(db: hb.Database) -> dict[str, object]:
    """All that is free, refusals included."""
    found: dict[str, object] = {}
    for name, view in VIEWS.items():
        try:
            found[name] = view(db)
        except HubbubError as refused:
            found[name] = type(refused), str(refused), refused.operands.keys()
    return found


_NAMES = itertools.count()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.lists(st.sampled_from(["sum", "mean", "publish"]), max_size=1),
    deeds=st.lists(
        st.tuples(st.sampled_from([*DEEDS]), st.integers(1, 50), st.sampled_from(["owner", "ann", "cat"])),
        min_size=1,
        max_size=6,
    ),
)
def test_what_bob_sees_for_nothing_does_not_depend_on_what_others_do(
    world: World, before: list[str], deeds: list[tuple[str, int, str]]
) -> None:
    """Sharing shows on Bob's own limit, once he pays; nothing shows before."""
    number, db = next(_NAMES), loaded(world, limits=Limits())
    names = {who: "owner" if who == "owner" else f"{who} {number}" for who in ("owner", "ann", "bob", "cat")}
    askers = {who: db if who == "owner" else granted(db, names[who], 10) for who in names}
    for deed in before:
        DEEDS[deed](askers["bob"], 2)
    first = seen(askers["bob"])
    for deed, epsilon, who in deeds:
        with suppress(HubbubError):
            DEEDS[deed](askers[who], epsilon)
    assert seen(askers["bob"]) == first
