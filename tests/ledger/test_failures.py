"""An engine that fails after the charge tells a bit: three for each principal and account, on either store."""

import threading
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import DataChanged, EngineError, Frozen, GrantError, HubbubError, LedgerCorrupt, UnknownAccount
from hubbub.gate.meter import Meter, Reply, answered
from hubbub.gate.secret import Facts, Sealed, Secret
from hubbub.ledger import ALLOWANCE, Failures, Ledger, Ticket
from hubbub.mechanisms import Geometric
from hubbub.mechanisms.keys.threshold import LaplaceThreshold
from hubbub.privacy.filter import Budget
from hubbub.privacy.sensitivity import Sensitivity
from tests.ledger.asking import DAY, Clock, ask, charges, pure
from tests.ledger.sample import damage

Opening = Callable[..., Ledger]

EIGHTH, ONE = Fraction(1, 8), Fraction(1)


@pytest.fixture
def granted(ledger: Ledger) -> Ledger:
    """Account "patients" of ε = 2, with grants for ann and bob."""
    ledger.grant("patients", "ann")
    ledger.grant("patients", "bob")
    return ledger


def fails(meter: Meter) -> str:
    raise EngineError


def paid(ledger: Ledger, question: str, principal: str = "ann") -> Ticket:
    return ledger.reserve(ask(question, principal=principal, epsilon=EIGHTH))


def end(ledger: Ledger, ticket: Ticket, drawn: str | None) -> str | None:
    return ledger.fail(ticket) if drawn is None else ledger.settle(ticket, drawn)


def freeze(ledger: Ledger, principal: str = "ann") -> None:
    ticket = paid(ledger, "fails", principal)
    for _ in range(ALLOWANCE):
        assert ledger.fail(ticket) is None


def many(ledger: Ledger) -> dict[str, int]:
    return {one.principal: one.many for one in ledger.failures()}


def written(ledger: Ledger) -> int:
    return len([*ledger.entries()])


@pytest.mark.usefixtures("location")
class TestAllowance:
    def test_the_allowance_is_three(self) -> None:
        assert ALLOWANCE == 3

    def test_a_failure_is_an_entry_about_its_charge(self, granted: Ledger) -> None:
        ticket = paid(granted, "q")
        assert granted.fail(ticket) is None
        last = [*granted.entries()][-1]
        assert (last.kind, last.content) == (
            *("failure", {"account": "patients", "charge": ticket.entry, "principal": "ann"}),
        )
        assert granted.failures() == [Failures(account="patients", principal="ann", many=1)]
        assert charges(granted) == 1, "the charge stands, and no other is made"

    def test_two_failures_stop_nobody_and_the_third_does(self, granted: Ledger) -> None:
        ticket = paid(granted, "fails")
        for _ in range(2):
            granted.fail(ticket)
        other = paid(granted, "other")
        assert granted.settle(other, "1") == "1"
        granted.fail(ticket)
        with pytest.raises(Frozen, match=r"'ann' is frozen on account 'patients': the engine failed 3 times") as told:
            paid(granted, "another")
        assert isinstance(told.value, GrantError)
        assert told.value.code == "frozen"
        assert told.value.message.endswith("hubbub budget thaw.")
        assert told.value.operands["failures"] == 3

    def test_failures_of_different_charges_add_up(self, granted: Ledger) -> None:
        tickets = [paid(granted, f"{number}") for number in range(3)]
        for ticket in tickets:
            granted.fail(ticket)
        with pytest.raises(Frozen):
            paid(granted, "another")

    def test_whoever_is_frozen_gets_nothing_and_nothing_is_written(self, granted: Ledger) -> None:
        answer = ask("answered", principal="ann", key="k")
        granted.settle(granted.reserve(answer), "41")
        public = granted.reserve(ask("public"))
        granted.settle(public, "42")
        granted.publish(public.entry)
        granted.settle(paid(granted, "bob's", "bob"), "43")
        freeze(granted)
        before = written(granted)
        for refused in (
            *(answer, ask("answered", principal="ann"), ask("answered", principal="ann", key="new")),
            *(ask("public", principal="ann"), ask("bob's", principal="ann", epsilon=EIGHTH)),
            *(ask("fails", principal="ann", epsilon=EIGHTH), ask("new", principal="ann")),
        ):
            with pytest.raises(Frozen):
                granted.reserve(refused)
        assert written(granted) == before

    def test_others_and_other_accounts_go_on(self, granted: Ledger) -> None:
        granted.open_account("devices", Budget(epsilon=Fraction(1)))
        granted.grant("devices", "ann")
        freeze(granted)
        assert paid(granted, "q", "bob").answer is None
        assert granted.reserve(ask("q", principal="ann", account="devices")).cost.loss > 0

    def test_the_owners_failures_are_counted_and_freeze_nobody(self, granted: Ledger) -> None:
        ticket = paid(granted, "q", "owner")
        for _ in range(5):
            granted.fail(ticket)
        assert many(granted) == {"owner": 5}
        assert not granted.failures()[0].frozen
        assert granted.settle(ticket, "1") == "1"
        granted.verify()

    def test_a_new_grant_a_new_period_or_a_new_opening_thaw_nobody(
        self, open_ledger: Opening, granted: Ledger, clock: Clock
    ) -> None:
        freeze(granted)
        granted.revoke("patients", "ann")
        granted.grant("patients", "ann", limit=Budget(epsilon=Fraction(1)))
        clock.now += 1000 * DAY
        granted.close()
        again = open_ledger(clock=clock)
        with pytest.raises(Frozen):
            paid(again, "another")

    def test_a_revoked_grant_is_told_first(self, granted: Ledger) -> None:
        freeze(granted)
        granted.revoke("patients", "ann")
        with pytest.raises(GrantError, match="revoked"):
            paid(granted, "another")

    def test_a_charge_with_an_answer_cannot_fail(self, granted: Ledger) -> None:
        ticket = paid(granted, "q")
        granted.settle(ticket, "41")
        before = written(granted)
        assert granted.fail(ticket) == "41"
        assert written(granted) == before
        assert many(granted) == {}

    def test_only_a_charge_can_fail(self, granted: Ledger) -> None:
        ticket = paid(granted, "q")
        wrong = replace(ticket, entry=1)
        with pytest.raises(HubbubError, match="Entry 1 is not a charge"):
            granted.fail(wrong)

    def test_a_frozen_ledger_verifies(self, granted: Ledger) -> None:
        freeze(granted)
        assert granted.verify().entries == written(granted)


@pytest.mark.usefixtures("location")
class TestUnderWay:
    """Many questions at once must not show more failures than one after the other."""

    def test_what_ends_after_the_freeze_is_told_the_same_however_it_ended(self, granted: Ledger) -> None:
        good, bad = paid(granted, "good"), paid(granted, "bad")
        freeze(granted)
        before = written(granted)
        told = []
        for ticket, drawn in ((good, "41"), (bad, None)):
            with pytest.raises(Frozen) as refused:
                end(granted, ticket, drawn)
            told.append(refused.value.message.replace(f"entry {ticket.entry}", "x"))
        assert told[0] == told[1]
        assert told[0].endswith("The charge (x) stands: ask again afterwards.")
        assert written(granted) == before
        assert many(granted) == {"ann": ALLOWANCE}

    def test_an_answer_stored_before_the_freeze_is_not_told_after_it(self, granted: Ledger) -> None:
        ticket = paid(granted, "q")
        granted.settle(ticket, "41")
        freeze(granted)
        for drawn in ("42", None):
            with pytest.raises(Frozen):
                end(granted, ticket, drawn)

    def test_of_ten_failures_at_once_three_are_seen(self, granted: Ledger) -> None:
        together = threading.Barrier(10)

        def work(meter: Meter) -> str:
            together.wait(timeout=60)
            raise EngineError

        def told(number: int) -> str:
            event = pure(EIGHTH)
            try:
                return answered(granted, ask(f"{number}", event=event, principal="ann", epsilon=EIGHTH), work).answer
            except HubbubError as problem:
                return problem.code

        with ThreadPoolExecutor(max_workers=10) as pool:
            codes = Counter(pool.map(told, range(10)))
        assert codes == {"engine-failed": 3, "frozen": 7}
        granted.verify()

    def test_after_a_thaw_the_charge_is_found_again(self, granted: Ledger) -> None:
        ticket = paid(granted, "q")
        freeze(granted)
        with pytest.raises(Frozen):
            granted.settle(ticket, "41")
        granted.thaw("patients", "ann")
        spent = charges(granted)
        again = paid(granted, "q")
        assert (again.entry, again.answer) == (ticket.entry, None)
        assert granted.settle(again, "41") == "41"
        assert charges(granted) == spent


@pytest.mark.usefixtures("location")
class TestThaw:
    def test_a_thaw_allows_three_more_and_no_fourth(self, granted: Ledger) -> None:
        freeze(granted)
        assert granted.thaw("patients", "ann") == 3
        assert granted.failures() == []
        ticket = paid(granted, "other")
        for _ in range(ALLOWANCE):
            granted.fail(ticket)
        with pytest.raises(Frozen):
            granted.fail(ticket)
        with pytest.raises(Frozen):
            paid(granted, "another")
        assert granted.verify().entries == written(granted)

    def test_a_thaw_is_for_one_principal_on_one_account(self, granted: Ledger) -> None:
        freeze(granted)
        freeze(granted, "bob")
        granted.thaw("patients", "bob")
        assert many(granted) == {"ann": 3}

    def test_nothing_to_thaw_writes_nothing(self, granted: Ledger) -> None:
        before = written(granted)
        assert granted.thaw("patients", "ann") == 0
        assert granted.thaw("patients", "owner") == 0
        with pytest.raises(GrantError, match="'carl' has no grant"):
            granted.thaw("patients", "carl")
        with pytest.raises(UnknownAccount):
            granted.thaw("doctors", "ann")
        assert written(granted) == before


@pytest.mark.usefixtures("location")
class TestAnswering:
    def test_the_engines_failure_is_counted_before_it_is_told(self, granted: Ledger) -> None:
        question = ask(principal="ann", epsilon=EIGHTH)
        for times in (1, 2, 3):
            with pytest.raises(EngineError):
                answered(granted, question, fails)
            assert many(granted) == {"ann": times}
        with pytest.raises(Frozen):
            answered(granted, question, lambda meter: "41")
        granted.thaw("patients", "ann")
        assert answered(granted, question, lambda meter: "41").answer == "41"

    @pytest.mark.parametrize("problem", [ValueError("it was 41"), MemoryError(), OverflowError(41), KeyError("ann")])
    def test_every_other_exception_is_counted_and_says_the_same(self, granted: Ledger, problem: Exception) -> None:
        def broken(meter: Meter) -> str:
            raise problem

        log: list[str] = []
        with pytest.raises(EngineError) as refused:
            answered(granted, ask(principal="ann"), broken, log=log.append)
        assert refused.value.args == EngineError().args
        assert refused.value.__context__ is None
        assert refused.value.__cause__ is None
        assert many(granted) == {"ann": 1}
        assert log == [f"{type(problem).__name__}: {problem}"]

    def test_what_cannot_be_presented_is_counted_and_not_stored(self, granted: Ledger) -> None:
        def broken(reply: Reply) -> str:
            raise ValueError(reply.answer)

        with pytest.raises(EngineError) as refused:
            answered(granted, ask(principal="ann"), lambda meter: "41", present=broken)
        assert refused.value.__context__ is None
        assert many(granted) == {"ann": 1}
        assert all(entry.kind != "answer" for entry in granted.entries())

    @pytest.mark.parametrize("key", [b"b", (b"b",), 1j])
    def test_an_answer_that_no_ledger_stores_is_counted(self, granted: Ledger, key: Hashable) -> None:
        """Selected keys are values of rows: whether one of them can be written down is a fact about a row."""
        select = LaplaceThreshold(epsilon=Fraction(1), delta=Fraction(1, 100))
        granted.open_account("keys", Budget(epsilon=Fraction(2), delta=Fraction(1, 10)))
        granted.grant("keys", "ann")
        secret = Secret({key: 1000}, Facts(account="keys", sensitivity=Sensitivity(l0=1, linf=Fraction(1))))
        with pytest.raises(EngineError) as refused:
            Meter.on(granted, principal="ann").measure(select, secret)
        assert refused.value.args == EngineError().args
        assert refused.value.__context__ is None
        assert many(granted) == {"ann": 1}
        assert all(entry.kind != "answer" for entry in granted.entries())

    def test_text_that_no_ledger_stores_is_counted(self, granted: Ledger) -> None:
        with pytest.raises(EngineError) as refused:
            answered(granted, ask(principal="ann"), lambda meter: "\ud800")
        assert refused.value.__context__ is None
        assert many(granted) == {"ann": 1}

    def test_a_value_is_computed_when_it_is_opened_and_its_failure_is_counted(self, granted: Ledger) -> None:
        meter, facts = Meter.on(granted, principal="ann"), Facts(account="patients", sensitivity=Sensitivity(l1=ONE))
        seen: list[int] = []

        def compute() -> int:
            seen.append(len([entry for entry in granted.entries() if entry.kind == "charge"]))
            return len(seen) // 0

        before = len([entry for entry in granted.entries() if entry.kind == "charge"])
        with pytest.raises(EngineError) as refused:
            meter.measure(Geometric(epsilon=EIGHTH), Secret(Sealed.later(compute), facts))
        assert refused.value.__context__ is None
        assert seen == [before + 1], "the charge comes first"
        assert many(granted) == {"ann": 1}

    def test_an_interruption_by_the_user_is_no_failure(self, granted: Ledger) -> None:
        def stopped(meter: Meter) -> str:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            answered(granted, ask(principal="ann"), stopped)
        assert many(granted) == {}

    def test_data_that_changed_while_it_was_read_is_no_failure(self, granted: Ledger) -> None:
        def moved(meter: Meter) -> str:
            raise DataChanged("The files were changed.")

        with pytest.raises(DataChanged):
            answered(granted, ask(principal="ann"), moved)
        assert many(granted) == {}

    def test_a_log_that_fails_tells_nothing_either(self, granted: Ledger) -> None:
        def broken(meter: Meter) -> str:
            raise ValueError("it was 41")

        def full(line: str) -> None:
            raise OSError(line)

        with pytest.raises(EngineError) as refused:
            answered(granted, ask(principal="ann"), broken, log=full)
        assert refused.value.__context__ is None

    def test_where_an_answer_was_stored_meanwhile_it_is_the_reply(self, granted: Ledger) -> None:
        question = ask(principal="ann")

        def late(meter: Meter) -> str:
            granted.settle(granted.reserve(question), "41")
            raise EngineError

        reply = answered(granted, question, late)
        assert reply == Reply(entry=reply.entry, answer="41")
        assert many(granted) == {}

    def test_who_is_frozen_meanwhile_sees_no_fourth_failure(self, granted: Ledger) -> None:
        def late(meter: Meter) -> str:
            freeze(granted)
            raise EngineError

        with pytest.raises(Frozen) as refused:
            answered(granted, ask(principal="ann"), late)
        assert refused.value.__context__ is None, "the traceback does not tell either"
        assert many(granted) == {"ann": 3}


def test_a_count_that_was_changed_is_not_believed(open_ledger: Opening, sqlite_path: Path) -> None:
    ledger = open_ledger(sqlite_path)
    ledger.open_account("patients", Budget(epsilon=Fraction(2)))
    ledger.grant("patients", "ann")
    freeze(ledger)
    ledger.close()
    damage(sqlite_path, "UPDATE failures SET many = 2")
    again = open_ledger(sqlite_path)
    with pytest.raises(LedgerCorrupt, match="failures of 'ann' are not what was written"):
        paid(again, "another")
