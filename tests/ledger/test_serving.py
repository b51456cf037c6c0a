"""Keys, and what is served again for nothing, on SQLite and on PostgreSQL alike."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from hubbub.errors import BudgetExceeded, GrantError, HubbubError, KeyConflict
from hubbub.ledger import ALLOWANCE, Ledger
from hubbub.privacy.filter import FREE, Budget
from tests.ledger.asking import HALF, UNIT, ask, charges, loss, pure

Opening = Callable[..., Ledger]

pytestmark = pytest.mark.usefixtures("location")


class TestKeys:
    def test_the_same_key_finds_the_charge_and_then_the_answer(self, ledger: Ledger) -> None:
        first = ledger.reserve(ask(key="k"))
        again = ledger.reserve(ask(key="k"))
        assert (again.entry, again.cost, again.paid, again.answer) == (first.entry, FREE, first.paid, None)
        ledger.settle(first, "41")
        assert ledger.reserve(ask(key="k")).answer == "41"
        assert charges(ledger) == 1

    @pytest.mark.parametrize(
        "other",
        [
            {"question": "other"},
            {"epsilon": Fraction(1, 4)},
            {"delta": Fraction(1, 1000)},
            {"policy": "changed"},
            {"version": "2"},
            {"account": "devices"},
        ],
    )
    def test_the_same_key_with_another_body_is_a_conflict(self, ledger: Ledger, other: dict[str, Any]) -> None:
        ledger.open_account("devices", Budget(epsilon=Fraction(2)))
        ledger.settle(ledger.reserve(ask(key="k")), "1")
        with pytest.raises(KeyConflict, match="used for another question"):
            ledger.reserve(ask(key="k", **other))
        assert charges(ledger) == 1

    def test_keys_belong_to_their_principals(self, ledger: Ledger) -> None:
        ledger.grant("patients", "ann")
        ledger.reserve(ask("a", key="k"))
        ticket = ledger.reserve(ask("b", key="k", principal="ann"))
        assert ticket.cost.loss == 1 << 39

    def test_a_key_that_paid_for_other_noise_may_not_draw_this_one(self, ledger: Ledger) -> None:
        first = ledger.reserve(ask(key="k", event=pure(HALF)))
        with pytest.raises(KeyConflict, match="another way of answering"):
            ledger.reserve(ask(key="k", event=pure(1)))
        ledger.settle(first, "1")
        assert ledger.reserve(ask(key="k", event=pure(1))).answer == "1"

    def test_a_key_used_for_a_free_answer_is_used(self, ledger: Ledger) -> None:
        ledger.settle(ledger.reserve(ask(key="k")), "1")
        assert ledger.reserve(ask(key="other")).answer == "1"
        with pytest.raises(KeyConflict):
            ledger.reserve(ask("new", key="other"))
        assert ledger.reserve(ask(key="other")).answer == "1"


class TestServingAgain:
    @pytest.mark.parametrize(("epsilon", "free"), [(HALF, True), (Fraction(1, 4), True), (HALF + UNIT, False)])
    def test_the_same_question_is_free_at_the_same_or_a_lower_epsilon(
        self, ledger: Ledger, epsilon: Fraction, free: bool
    ) -> None:
        ledger.settle(ledger.reserve(ask()), "1")
        ticket = ledger.reserve(ask(epsilon=epsilon, event=pure(epsilon)))
        assert (ticket.answer == "1") is free
        assert (ticket.cost == FREE) is free

    def test_an_answer_with_less_delta_is_not_the_one_asked_for(self, ledger: Ledger) -> None:
        ledger.settle(ledger.reserve(ask(delta=Fraction(1, 100))), "1")
        assert ledger.reserve(ask(delta=Fraction(1, 101))).answer == "1"
        assert ledger.reserve(ask(delta=Fraction(1, 99))).answer is None

    @pytest.mark.parametrize("other", [{"question": "other"}, {"policy": "p2"}, {"version": "2"}])
    def test_another_question_policy_or_version_is_another_question(
        self, ledger: Ledger, other: dict[str, Any]
    ) -> None:
        ledger.settle(ledger.reserve(ask()), "1")
        assert ledger.reserve(ask(**other)).answer is None
        assert charges(ledger) == 2

    def test_another_account_is_another_question(self, ledger: Ledger) -> None:
        ledger.open_account("devices", Budget(epsilon=Fraction(2)))
        ledger.settle(ledger.reserve(ask()), "1")
        assert ledger.reserve(ask(account="devices")).answer is None

    def test_questions_without_epsilon_are_never_the_same(self, ledger: Ledger) -> None:
        ledger.settle(ledger.reserve(ask(epsilon=None)), "1")
        assert ledger.reserve(ask(epsilon=None)).answer is None
        assert ledger.reserve(ask()).answer is None
        assert charges(ledger) == 3

    def test_a_charge_that_a_crash_left_without_an_answer_is_found_again(self, ledger: Ledger) -> None:
        lost = ledger.reserve(ask())
        again = ledger.reserve(ask())
        assert (again.entry, again.cost, again.answer) == (lost.entry, FREE, None)
        assert charges(ledger) == 1

    def test_but_only_for_the_very_same_noise_and_the_same_principal(self, ledger: Ledger) -> None:
        ledger.grant("patients", "ann")
        ledger.reserve(ask())
        assert ledger.reserve(ask(event=pure(Fraction(1, 4)))).cost.loss == 1 << 38
        assert ledger.reserve(ask(principal="ann")).cost.loss == 1 << 39
        assert ledger.reserve(ask(epsilon=Fraction(1, 4))).cost.loss == 1 << 39

    def test_the_first_stored_answer_is_the_only_one(self, ledger: Ledger) -> None:
        one, two = ledger.reserve(ask()), ledger.reserve(ask())
        assert ledger.settle(one, "first") == "first"
        assert ledger.settle(two, "second") == "first"
        assert [entry.kind for entry in ledger.entries()].count("answer") == 1

    def test_only_charges_have_answers(self, ledger: Ledger) -> None:
        ticket = ledger.reserve(ask())
        with pytest.raises(HubbubError, match="is not a charge"):
            ledger.settle(replace(ticket, entry=1), "x")
        assert ledger.settle(ticket, "x") == "x"


class TestSharing:
    @pytest.fixture
    def shared(self, ledger: Ledger) -> Ledger:
        """Ann has an answer; Bob may ask too, up to ε = 1."""
        ledger.grant("patients", "ann")
        ledger.grant("patients", "bob", limit=Budget(epsilon=Fraction(1)))
        ledger.settle(ledger.reserve(ask(principal="ann")), "1")
        return ledger

    def test_another_principal_pays_once_from_its_own_limit_and_the_account_nothing(self, shared: Ledger) -> None:
        for _ in range(2):
            ticket = shared.reserve(ask(principal="bob"))
            assert (ticket.answer, ticket.cost) == ("1", FREE)
            assert loss(shared, "principal", "bob") == HALF
        assert loss(shared) == HALF

    def test_a_limit_that_is_spent_shows_nothing(self, shared: Ledger) -> None:
        shared.reserve(ask("other", principal="bob", event=pure(Fraction(3, 4)), epsilon=Fraction(3, 4)))
        with pytest.raises(BudgetExceeded, match='principal "bob"'):
            shared.reserve(ask(principal="bob"))

    def test_without_a_grant_nothing_is_shown(self, shared: Ledger) -> None:
        with pytest.raises(GrantError):
            shared.reserve(ask(principal="eve"))

    def test_the_owner_sees_what_was_released(self, shared: Ledger) -> None:
        before = [*shared.entries()]
        assert shared.reserve(ask()).answer == "1"
        assert [*shared.entries()] == before

    def test_a_public_answer_is_free_for_everyone_with_a_grant(self, shared: Ledger) -> None:
        shared.publish(next(entry.seq for entry in shared.entries() if entry.kind == "charge"))
        assert shared.reserve(ask(principal="bob")).answer == "1"
        assert loss(shared, "principal", "bob") == 0
        with pytest.raises(GrantError):
            shared.reserve(ask(principal="eve"))

    def test_publishing_twice_writes_once_and_needs_an_answer(self, shared: Ledger) -> None:
        charge = next(entry.seq for entry in shared.entries() if entry.kind == "charge")
        shared.publish(charge)
        shared.publish(charge)
        assert [entry.kind for entry in shared.entries()].count("publish") == 1
        pending = shared.reserve(ask("pending"))
        for not_published in (pending.entry, 1, 10_000):
            with pytest.raises(HubbubError, match="nothing to publish"):
                shared.publish(not_published)

    def test_the_least_answer_that_is_good_enough_is_shared(self, shared: Ledger) -> None:
        shared.settle(shared.reserve(ask(principal="ann", epsilon=Fraction(1), event=pure(1))), "better")
        assert shared.reserve(ask(principal="bob")).answer == "1"
        assert shared.reserve(ask(principal="ann")).answer == "1"

    def test_a_project_pays_once_for_all_its_members(self, ledger: Ledger) -> None:
        ledger.open_project("patients", "flu", Budget(epsilon=Fraction(1)))
        for name in ("bob", "cat"):
            ledger.grant("patients", name, project="flu", limit=Budget(epsilon=Fraction(1)))
        ledger.settle(ledger.reserve(ask()), "1")
        for name in ("bob", "cat", "bob"):
            assert ledger.reserve(ask(principal=name)).answer == "1"
        assert loss(ledger, "project", "flu") == HALF
        assert loss(ledger, "principal", "bob") == loss(ledger, "principal", "cat") == HALF


class TestFacts:
    def test_a_fact_is_recalled_with_the_entry_that_paid(self, ledger: Ledger) -> None:
        ticket = ledger.reserve(ask("bounds of cost"))
        ledger.remember("patients", "bounds:cost", [0, 50_000], paid=ticket.entry)
        fact = ledger.recall("patients", "bounds:cost")
        assert fact is not None
        assert (fact.value, fact.paid) == ([0, 50_000], ticket.entry)

    def test_facts_are_about_a_version_and_an_account(self, ledger: Ledger) -> None:
        ticket = ledger.reserve(ask("bounds"))
        ledger.remember("patients", "bounds", 1, paid=ticket.entry, version="1")
        assert ledger.recall("patients", "bounds", version="2") is None
        assert ledger.recall("devices", "bounds") is None
        assert ledger.recall("patients", "other") is None

    def test_the_newest_fact_counts(self, ledger: Ledger) -> None:
        ticket = ledger.reserve(ask("bounds"))
        for value in (1, 2):
            ledger.remember("patients", "bounds", value, paid=ticket.entry)
        fact = ledger.recall("patients", "bounds")
        assert fact is not None
        assert fact.value == 2

    def test_a_fact_must_have_been_paid_by_its_account(self, ledger: Ledger) -> None:
        ledger.open_account("devices", Budget(epsilon=Fraction(2)))
        ticket = ledger.reserve(ask("bounds"))
        with pytest.raises(HubbubError, match="is not a charge to account 'devices'"):
            ledger.remember("devices", "bounds", 1, paid=ticket.entry)
        with pytest.raises(HubbubError, match="is not a charge to account 'patients'"):
            ledger.remember("patients", "bounds", 1, paid=1)


class TestForeseenCharges:
    """What a principal's own past says of a question: whether to do ahead what a charge of its own will need."""

    def test_a_charge_is_foreseen_until_its_asker_has_asked(self, ledger: Ledger) -> None:
        ledger.grant("patients", "ann")
        asked = ask(principal="ann")
        assert ledger.would_charge(asked)
        ticket = ledger.reserve(asked)
        assert not ledger.would_charge(asked), "it waits for its answer"
        ledger.settle(ticket, "1")
        assert not ledger.would_charge(asked)
        assert not ledger.would_charge(ask(principal="ann", epsilon=Fraction(1), event=pure(1)))
        assert ledger.would_charge(ask("other", principal="ann"))
        assert ledger.would_charge(ask(principal="ann", version="2"))

    def test_what_others_asked_does_not_show(self, ledger: Ledger) -> None:
        """It would show in how long the same question takes, which is free to try."""
        for name in ("ann", "bob"):
            ledger.grant("patients", name)
        ledger.settle(ledger.reserve(ask(principal="ann")), "1")
        assert ledger.would_charge(ask(principal="bob"))
        assert not ledger.would_charge(ask()), "the owner is served what anybody paid for"
        assert ledger.reserve(ask(principal="bob")).answer == "1"
        assert not ledger.would_charge(ask(principal="bob"))

    def test_whoever_is_frozen_has_nothing_done_ahead(self, ledger: Ledger) -> None:
        ledger.grant("patients", "ann")
        ticket = ledger.reserve(ask("fails", principal="ann", epsilon=Fraction(1, 8), event=pure(Fraction(1, 8))))
        for failures in range(ALLOWANCE):
            assert ledger.would_charge(ask(principal="ann")), failures
            ledger.fail(ticket)
        assert not ledger.would_charge(ask(principal="ann"))
        ledger.thaw("patients", "ann")
        assert ledger.would_charge(ask(principal="ann"))

    @pytest.mark.parametrize("limit", [None, Budget(epsilon=Fraction(1))])
    def test_none_is_foreseen_that_a_limit_refuses(self, ledger: Ledger, limit: Budget | None) -> None:
        """To the last unit: what is foreseen for a new question is what reserving it does."""
        ledger.grant("patients", "ann", limit=limit)
        for epsilon in (Fraction(1), Fraction(1) + UNIT, Fraction(2), Fraction(2) + UNIT):
            asked = ask(f"at {epsilon}", principal="ann", epsilon=epsilon, event=pure(epsilon))
            fits = epsilon <= (2 if limit is None else 1)
            assert ledger.would_charge(asked) is fits
            if not fits:
                with pytest.raises(BudgetExceeded):
                    ledger.reserve(asked)

    def test_without_a_grant_nobody_is_told_anything(self, ledger: Ledger) -> None:
        with pytest.raises(GrantError):
            ledger.would_charge(ask(principal="ann"))
