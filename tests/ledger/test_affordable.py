"""Another's answer is shared where one's limits can pay for it, and keeps nobody from a draw of their own."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubbub.errors import BudgetExceeded, Frozen, GrantError, KeyConflict, UnknownAccount
from hubbub.ledger import Ask, Ledger, Marks
from hubbub.privacy.filter import LOSS_UNIT, Budget
from tests.ledger.asking import DAY, HALF, Clock, ask, charges, loss, pure

TENTH = Fraction(1, 10)


def priced(epsilon: Fraction | int, question: str = "q", **changes: Any) -> Ask:
    """A question at a price that it costs."""
    return ask(question, epsilon=Fraction(epsilon), event=pure(epsilon), **changes)


def answered(ledger: Ledger, epsilon: Fraction | int, answer: str, **changes: Any) -> int:
    ticket = ledger.reserve(priced(epsilon, **changes))
    ledger.settle(ticket, answer)
    return ticket.entry


def entries(ledger: Ledger) -> int:
    return sum(1 for _ in ledger.entries())


@pytest.mark.usefixtures("location")
class TestSharing:
    @pytest.fixture
    def limited(self, ledger: Ledger) -> Ledger:
        """Bob may spend a quarter; the owner has asked at one."""
        ledger.grant("patients", "bob", limit=Budget(epsilon=Fraction(1, 4)))
        answered(ledger, 1, "dear")
        return ledger

    def test_who_cannot_pay_for_anothers_answer_draws_its_own(self, limited: Ledger) -> None:
        ticket = limited.reserve(priced(TENTH, principal="bob"))
        assert (ticket.answer, ticket.stored) == (None, None)
        assert limited.settle(ticket, "own") == "own"
        assert loss(limited) == 1 + Fraction(ticket.paid.loss) * LOSS_UNIT, "and the account pays for the second draw"
        assert limited.reserve(priced(TENTH, principal="bob")).answer == "own"
        assert limited.reserve(priced(TENTH)).answer == "own", "the owner is served the least that is good enough"
        assert limited.reserve(priced(HALF)).answer == "dear"
        limited.verify()

    def test_neither_fits_and_its_own_price_is_what_is_refused(self, limited: Ledger) -> None:
        with pytest.raises(
            BudgetExceeded, match=r'costs ε = 0\.5; principal "bob" of account "patients" has ε = 0\.25'
        ):
            limited.reserve(priced(HALF, principal="bob"))
        assert charges(limited) == 1

    def test_the_least_of_several_answers_that_can_be_paid(self, limited: Ledger) -> None:
        limited.grant("patients", "ann", limit=Budget(epsilon=Fraction(3, 16)))
        limited.settle(limited.reserve(priced(Fraction(3, 16), principal="ann")), "cheap")
        ticket = limited.reserve(priced(TENTH, principal="bob"))
        assert ticket.answer == "cheap"
        assert ticket.stored is not None
        assert loss(limited, "principal", "bob") < Fraction(1, 4)

    def test_a_dearer_answer_that_the_project_has_paid_for_is_cheaper(self, ledger: Ledger) -> None:
        ledger.open_project("patients", "flu", Budget(epsilon=Fraction(1)))
        for name in ("ann", "bob"):
            ledger.grant("patients", name, project="flu", limit=Budget(epsilon=Fraction(1)))
        ledger.settle(ledger.reserve(priced(Fraction(9, 10), principal="ann")), "the project's")
        answered(ledger, HALF, "the owner's")
        assert ledger.reserve(priced(TENTH, principal="bob")).answer == "the project's"
        assert loss(ledger, "project", "flu") < 1
        ledger.verify()

    def test_ones_own_charge_without_an_answer_comes_before_anothers_answer(self, ledger: Ledger) -> None:
        ledger.grant("patients", "bob")
        lost = ledger.reserve(priced(TENTH, principal="bob"))
        answered(ledger, 1, "dear")
        again = ledger.reserve(priced(TENTH, principal="bob"))
        assert (again.entry, again.answer) == (lost.entry, None)

    def test_room_is_left_for_what_is_asked_next(self, ledger: Ledger) -> None:
        answered(ledger, 1, "dear")
        ledger.grant("patients", "bob", limit=Budget(epsilon=Fraction(3, 2)))
        exactly = priced(TENTH, principal="bob", beside=(pure(HALF),))
        too_much = priced(TENTH, principal="bob", beside=(pure(HALF + LOSS_UNIT),))
        assert ledger.reserve(too_much).answer is None
        ledger.grant("patients", "cat", limit=Budget(epsilon=Fraction(3, 2)))
        assert ledger.reserve(replaced(exactly, "cat")).answer == "dear"

    def test_a_stored_answer_says_when_it_was_stored(self, ledger: Ledger, clock: Clock) -> None:
        ticket = ledger.reserve(priced(1, key="k"))
        assert ticket.stored is None
        clock.now += DAY
        ledger.settle(ticket, "1")
        clock.now += DAY
        moment = datetime.fromisoformat("2023-11-15T22:13:20+00:00")
        assert ledger.reserve(priced(1, key="k")).stored == moment
        assert ledger.reserve(priced(HALF)).stored == moment
        ledger.grant("patients", "bob")
        assert ledger.reserve(priced(HALF, principal="bob")).stored == moment


def replaced(asked: Ask, principal: str) -> Ask:
    return priced(TENTH, principal=principal, beside=asked.beside)


@pytest.mark.usefixtures("location")
class TestLookingAhead:
    def test_what_is_left_is_the_least_of_all_caps(self, ledger: Ledger, clock: Clock) -> None:
        def left(principal: str) -> Fraction:
            return ledger.remaining("patients", principal).loss * LOSS_UNIT

        ledger.open_project("patients", "flu", Budget(epsilon=HALF))
        ledger.grant("patients", "ann", limit=Budget(epsilon=Fraction(1)))
        ledger.grant("patients", "bob", project="flu")
        assert (left("owner"), left("ann"), left("bob")) == (Fraction(2), Fraction(1), HALF)
        answered(ledger, Fraction(7, 4), "1")
        assert (left("owner"), left("ann"), left("bob")) == (Fraction(1, 4),) * 3
        with pytest.raises(GrantError):
            left("eve")
        with pytest.raises(UnknownAccount):
            ledger.remaining("nobody")

    def test_several_requests_are_refused_as_one_and_nothing_is_written(self, ledger: Ledger) -> None:
        ledger.grant("patients", "bob", limit=Budget(epsilon=Fraction(1)))
        before = entries(ledger)
        asks = [priced(HALF, name, principal="bob") for name in ("a", "b", "c")]
        ledger.check(asks[:2])
        with pytest.raises(
            BudgetExceeded, match=r'costs ε = 1\.5; principal "bob" of account "patients" has ε = 1 left'
        ):
            ledger.check(asks)
        assert entries(ledger) == before

    def test_what_is_served_for_nothing_counts_for_nothing(self, ledger: Ledger) -> None:
        ledger.grant("patients", "bob", limit=Budget(epsilon=Fraction(1)))
        ledger.settle(ledger.reserve(priced(HALF, "a", principal="bob")), "1")
        ledger.publish(answered(ledger, 1, "2", question="b"))
        ledger.check([priced(HALF, name, principal="bob") for name in ("a", "b", "c")])

    def test_what_is_shared_counts_on_the_limits_and_not_on_the_account(self, ledger: Ledger) -> None:
        ledger.grant("patients", "bob", limit=Budget(epsilon=Fraction(2)))
        answered(ledger, 1, "1", question="a")
        answered(ledger, 1, "2", question="b")
        assert loss(ledger) == 2
        ledger.check([priced(1, "a", principal="bob"), priced(1, "b", principal="bob")])
        with pytest.raises(BudgetExceeded, match=r'account "patients" has ε = 0 left of its budget ε = 2\. Ask'):
            ledger.check([priced(TENTH, "c", principal="bob")])

    def test_grants_and_keys_are_looked_at_too(self, ledger: Ledger) -> None:
        with pytest.raises(GrantError):
            ledger.check([priced(HALF, principal="eve")])
        with pytest.raises(GrantError):
            ledger.check_grant("patients", "eve")
        with pytest.raises(GrantError):
            ledger.check_grant("nowhere", "eve")
        ledger.check_grant("patients", "owner")
        ledger.reserve(priced(HALF, key="k"))
        with pytest.raises(KeyConflict):
            ledger.check([priced(HALF, "other", key="k")])

    def test_a_grant_that_has_expired_is_none(self, ledger: Ledger, clock: Clock) -> None:
        end = datetime.fromtimestamp(clock.now // 1_000_000, UTC) + timedelta(days=1)
        ledger.grant("patients", "ann", expires=end)
        clock.now += DAY - 1
        ledger.check_grant("patients", "ann")
        clock.now += 1
        for look in (ledger.check_grant, ledger.remaining):
            with pytest.raises(GrantError):
                look("patients", "ann")
        ledger.reserve(priced(TENTH, "later"))
        clock.now -= DAY
        with pytest.raises(GrantError):
            ledger.check_grant("patients", "ann")

    def test_who_holds_what(self, ledger: Ledger) -> None:
        ledger.grant("patients", "ann")
        ledger.grant("patients", "bob")
        charge = ledger.reserve(priced(HALF, principal="ann"))
        ledger.settle(charge, "1")
        assert [ledger.holds(charge.entry, who) for who in ("owner", "ann", "bob")] == [True, True, False]
        ledger.reserve(priced(HALF, principal="bob"))
        assert ledger.holds(charge.entry, "bob")
        ledger.grant("patients", "cat")
        assert not ledger.holds(charge.entry, "cat")
        ledger.publish(charge.entry)
        assert ledger.holds(charge.entry, "cat")
        assert not ledger.holds(1, "owner"), "no charge at all"

    def test_a_watch_ends_with_its_grant(self, ledger: Ledger) -> None:
        ledger.grant("patients", "ann")
        ticket = ledger.reserve(priced(HALF, principal="ann"))
        ledger.check_allowance(ticket)
        ledger.revoke("patients", "ann")
        with pytest.raises(GrantError):
            ledger.check_allowance(ticket)


_QUESTIONS = ("a", "b")
_PEOPLE = ("owner", "ann", "bob")
_PRICES = st.integers(1, 12).map(lambda tenths: Fraction(tenths, 10))
_STEPS = st.lists(st.tuples(st.sampled_from(_QUESTIONS), _PRICES, st.sampled_from(_PEOPLE), st.booleans()), max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Ledger]:
    numbers = iter(range(10**6))
    place = tmp_path_factory.mktemp("affordable")

    def opened() -> Ledger:
        ledger = Ledger(place / f"{next(numbers)}", marks=Marks(place / "state"))
        ledger.open_account("patients", Budget(epsilon=Fraction(100)))
        ledger.open_project("patients", "flu", Budget(epsilon=Fraction(2)))
        ledger.grant("patients", "ann", limit=Budget(epsilon=Fraction(3, 2)), project="flu")
        ledger.grant("patients", "bob", limit=Budget(epsilon=Fraction(1)), project="flu")
        ledger.grant("patients", "cat", limit=Budget(epsilon=Fraction(1)))
        return ledger

    return opened


def done(ledger: Ledger, steps: list[tuple[str, Fraction, str, bool]]) -> None:
    for question, epsilon, who, answers in steps:
        try:
            ticket = ledger.reserve(priced(epsilon, question, principal=who))
        except (BudgetExceeded, Frozen):
            continue
        if answers and ticket.answer is None:
            ledger.settle(ticket, f"{question} {epsilon} {who}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS, wishes=st.lists(st.tuples(st.sampled_from(_QUESTIONS), _PRICES), min_size=1, max_size=3))
def test_nobody_is_refused_because_others_have_asked(
    folder: Callable[[], Ledger], steps: list[tuple[str, Fraction, str, bool]], wishes: list[tuple[str, Fraction]]
) -> None:
    """Cat, whose limits nobody shares: whatever is admitted if she is alone is admitted, and her cap holds."""
    with folder() as crowded:
        done(crowded, steps)
        for place, (question, epsilon) in enumerate(wishes):
            wish = priced(epsilon, question, principal="cat", key=f"{place}")
            before = crowded.remaining("patients", "cat").loss * LOSS_UNIT
            fits = epsilon <= before
            try:
                crowded.reserve(wish)
            except BudgetExceeded:
                assert not fits
            assert loss(crowded, "principal", "cat") <= 1
        crowded.verify()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=_STEPS,
    wishes=st.dictionaries(st.sampled_from(("c", *_QUESTIONS)), _PRICES, min_size=1),
)
def test_what_is_foretold_is_what_happens(
    folder: Callable[[], Ledger], steps: list[tuple[str, Fraction, str, bool]], wishes: dict[str, Fraction]
) -> None:
    """Bob, who shares a project: several requests pass the check just if they pass one after the other."""
    with folder() as ledger:
        done(ledger, steps)
        asks = [priced(epsilon, question, principal="bob") for question, epsilon in wishes.items()]
        before = entries(ledger)
        foretold = happened = "admitted"
        try:
            ledger.check(asks)
        except BudgetExceeded:
            foretold = "refused"
        assert entries(ledger) == before
        try:
            for asked in asks:
                ledger.reserve(asked)
        except BudgetExceeded:
            happened = "refused"
        assert foretold == happened
        ledger.verify()
