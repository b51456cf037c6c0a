"""Random policies: whatever is declared, neighbours move what is measured no further than was proven.

Each question goes through the whole product on pairs of neighbours, worst ones first, as ``hubbub audit`` takes them:
what was charged, what was in the ledger when the data was read, refusals and failures are looked at too.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import hubbub as hb
from hubbub.audit.chance import Chance
from hubbub.audit.subject import Pair
from hubbub.audit.subjects.in_process.apart import apart
from hubbub.audit.subjects.in_process.inside import World, counted, fixed_key
from hubbub.audit.subjects.queries import OfQuery
from hubbub.errors import HubbubError
from hubbub.policy.tables import Policy
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.plan import statistic
from hubbub.query.plan.plan import Plan
from hubbub.testing.made_up import Schema, with_declared_keys
from hubbub.testing.replay import replayed
from tests.query import policies
from tests.query.generate import TIMES

WHATS = ("outcome", "draws", "plans", "spent")
QUESTIONS, PAIRS = 6 * min(TIMES, 20), 3
"""Of each kind of account and of question; pairs of neighbours of each."""


def audits(kind: str, asks: Any, *, many: int = QUESTIONS) -> Iterator[tuple[str, Policy, OfQuery]]:
    """Questions that can be answered, under policies of their own."""
    made = 0
    for number in itertools.count():
        rng = Random(f"{kind} {asks.__name__} {number}")
        policy, text = policies.any_policy(rng, kind), asks(rng)
        try:
            subject = OfQuery(policy, text, epsilon=rng.choice((Fraction(1), Fraction(1, 3), Fraction(30))))
        except HubbubError:
            continue
        yield text, policy, subject
        made += 1
        if made == many:
            return


@pytest.mark.parametrize("kind", policies.KINDS)
@pytest.mark.parametrize("asks", [policies.side_by_side, policies.plain], ids=lambda one: one.__name__)
def test_neighbours_are_within_what_was_proven(kind: str, asks: Any) -> None:
    for text, policy, subject in audits(kind, asks):
        for pair in itertools.islice(subject._schema.pairs(Chance(text)), PAIRS):
            found = subject.faults(subject._register(pair))
            assert not found, (text, policy.limits, policy.tables["stays"], pair.about, found)


@pytest.mark.parametrize("kind", ["pure", "replace"])
def test_what_is_declared_is_used(kind: str) -> None:
    """The generator makes conditions side by side and, where units are replaced, means of a public number of values."""
    plans = [subject._plan for _, _, subject in audits(kind, policies.side_by_side, many=30)]
    assert sum(one.beside is not None for one in plans) >= 4
    assert len({one.aggregate.single for one in plans}) == 2
    parts = [one for _, _, subject in audits(kind, policies.plain, many=40) for one in subject._plan.parts]
    assert sum(one.size is not None for one in parts) >= (2 if kind == "replace" else 0)


@pytest.mark.parametrize("kind", policies.KINDS)
def test_so_are_they_where_several_questions_share_a_price(kind: str) -> None:
    grouped: Counter[bool] = Counter()
    for number in range(2 * QUESTIONS):
        rng = Random(f"together {kind} {number}")
        policy, texts = policies.any_policy(rng, kind, large=rng.random() < 0.7), policies.together(rng)
        world = World(with_declared_keys(policy))
        schema = Schema(policy=world.policy)
        world.put(schema.public)
        for pair in itertools.islice(schema.pairs(Chance(str(number))), 2):
            found = differences(world, texts, pair)
            assert not found, (number, texts, policy.limits, policy.tables["stays"], pair.about, found)
        grouped[any(one.beside is not None for one in plans_of(world, texts))] += 1
        world.close()
    assert grouped[True] > 0
    assert grouped[False] > 0


def differences(world: World, texts: Sequence[str], pair: Pair) -> list[str]:
    """What differs that must not: outcome, price, draws; and exact numbers that differ by more than was proven."""
    sides = []
    for data in (pair.x, pair.y):
        world.put(data.tables())
        db = world.opened()
        outcome, draws, plans = asked(db, texts)
        spent = db.ledger.statement(db.policy.account).spent
        public = [(one.events, one.aggregate.tallies, one.ways, one.cells) for one in plans]
        exact = [counted(db, one) for one in plans if not one.is_read_elsewhere]
        again = asked(db, texts)
        if plans and (again[1] or db.ledger.statement(db.policy.account).spent != spent):
            return ["asked again, it drew or charged"]
        sides.append((outcome, draws, public, spent, exact, plans))
    one, other = sides
    found = [f"{what} differ" for what, a, b in zip(WHATS, one, other, strict=False) if a != b]
    measured = [plan for plan in one[5] if not plan.is_read_elsewhere]
    for plan, left, right in zip(measured, one[4], other[4], strict=True):
        pairs = zip(plan.sets or (plan,), left, right, strict=True)
        found += [fault for own, a, b in pairs for fault in apart(own, a, b, same=False)]
    return found


def asked(db: hb.Database, texts: Sequence[str]) -> tuple[str, tuple[Any, ...], list[Plan]]:
    """How it ended, what was drawn, and the plans of what was answered."""
    with fixed_key(), replayed(3) as source:
        try:
            answers = db.ask(texts, epsilon=1)
        except HubbubError as error:
            return f"{type(error).__name__}: {error}", tuple(source.draws), []
    return "answered", tuple(source.draws), [one.plan for one in answers]


def plans_of(world: World, texts: Sequence[str]) -> list[Plan]:
    return asked(world.opened(), texts)[2]


# What would be found


def alone(self: statistic.Reach, *, alone: Fraction, both: Fraction) -> Fraction:
    """Forget the group that both of two units are in."""
    return self.groups * alone


def narrow(tally: Any, reach: Any, real: Any = statistic.bound_tally) -> Sensitivity:
    """Take the sensitivity of units that come and go for those that are replaced."""
    return Sensitivity(l0=reach.touched, linf=Fraction(tally.linf))


def catches(kind: str, asks: Any) -> bool:
    return any(
        subject.faults(subject._register(pair))
        for _, _, subject in audits(kind, asks, many=12)
        for pair in itertools.islice(subject._schema.pairs(Chance("planted")), PAIRS)
    )


@pytest.mark.parametrize("kind", ["replace", "replace gaussian"])
def test_forgetting_a_replaced_unit_is_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistic.Reach, "bound_groups", alone)
    assert catches(kind, policies.plain)


def test_conditions_that_are_taken_to_be_disjoint_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that stand under several conditions, of units that are said to have one row."""
    from hubbub.query.plan import plan as planning

    real = planning.one_row_a_unit
    monkeypatch.setattr(
        planning, "one_row_a_unit", lambda relation, policy: bool(policy.enforced) or real(relation, policy)
    )
    assert catches("pure", policies.side_by_side)
