"""The gate on a ledger: paid on disk before the value is opened, stored before it is shown."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.errors import (
    BudgetExceeded,
    EngineError,
    GrantError,
    KeyConflict,
    MisfitError,
    ParameterError,
    UnknownAccount,
)
from hubbub.gate.meter import Meter, answered
from hubbub.gate.secret import Facts, Secret
from hubbub.ledger import Ledger, Marks
from hubbub.ledger.entry import read, write
from hubbub.mechanisms import Geometric
from hubbub.mechanisms.base import Mechanism
from hubbub.privacy.filter import Budget
from hubbub.privacy.loss import Pure
from hubbub.privacy.sensitivity import Sensitivity
from tests.ledger.asking import HALF, ask


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "clinic.ledger", marks=Marks(tmp_path / "state")) as made:
        made.open_account("patients", Budget(epsilon=Fraction(2)))
        yield made


def count(value: Any = 1000, account: str = "patients") -> Secret[Any]:
    return Secret(value, Facts(account=account, sensitivity=Sensitivity(l0=1, linf=Fraction(1))))


def geometric(epsilon: Fraction = HALF) -> Geometric:
    return Geometric(epsilon=epsilon)


class Watched(Meter):
    """Says what the ledger held at the moment when a Secret was opened."""

    def __init__(self, accounts: Any, **more: Any) -> None:
        super().__init__(accounts, **more)
        self.kinds: list[list[str]] = []
        self.ledger: Ledger | None = None

    def _open(self, mechanism: Mechanism, secret: Secret[Any]) -> Any:
        if self.ledger is not None:
            self.kinds.append([entry.kind for entry in self.ledger.entries()])
        return super()._open(mechanism, secret)


def test_the_charge_is_written_before_the_value_is_opened_and_the_answer_before_it_is_shown(ledger: Ledger) -> None:
    meter = Watched.on(ledger)
    assert isinstance(meter, Watched)
    meter.ledger = ledger
    release = meter.measure(geometric(), count())
    assert meter.kinds == [["ledger", "account", "charge"]]
    entries = [*ledger.entries()]
    assert [entry.kind for entry in entries[-2:]] == ["charge", "answer"]
    assert release.entry == entries[-2].seq
    assert read(entries[-1].content["answer"]) == release.value


def test_every_measurement_is_its_own_charge(ledger: Ledger) -> None:
    meter = Meter.on(ledger)
    entries = {meter.measure(geometric(), count(), label="same").entry for _ in range(4)}
    assert len(entries) == 4
    assert meter.spent("patients") == Pure(epsilon=Fraction(2))
    assert not meter.fits(geometric(), "patients")
    with pytest.raises(BudgetExceeded):
        meter.measure(geometric(), count())


def test_the_same_key_gives_the_same_answer_and_costs_nothing(ledger: Ledger) -> None:
    meter = Meter.on(ledger)
    cells = np.arange(100)
    first = meter.measure(geometric(), count(cells), key="k")
    again = Meter.on(ledger).measure(geometric(), count(cells + 5), key="k")
    assert np.array_equal(first.value, again.value)
    assert first.entry == again.entry
    assert meter.spent("patients") == Pure(epsilon=HALF)
    with pytest.raises(KeyConflict):
        meter.measure(geometric(), count(cells), key="k", label="other")


def test_a_misfit_or_an_unknown_account_costs_nothing(ledger: Ledger) -> None:
    meter = Meter.on(ledger)
    wide = Secret(1, Facts(account="patients", sensitivity=Sensitivity(l0=1, linf=Fraction(2))))
    with pytest.raises(MisfitError):
        meter.measure(geometric(), wide)
    with pytest.raises(UnknownAccount):
        meter.measure(geometric(), count(account="doctors"))
    assert ledger.statement("patients").spent.charges == 0


def test_the_principal_needs_a_grant_and_keeps_its_limit(ledger: Ledger) -> None:
    meter = Meter.on(ledger, principal="ann", policy="f00d", version="7")
    with pytest.raises(GrantError):
        meter.measure(geometric(), count())
    ledger.grant("patients", "ann", limit=Budget(epsilon=HALF))
    meter.measure(geometric(), count())
    with pytest.raises(BudgetExceeded, match='principal "ann"'):
        meter.measure(geometric(), count())
    kept = [entry.content for entry in ledger.entries() if entry.kind == "charge"]
    assert [(entry["principal"], entry["policy"], entry["version"]) for entry in kept] == [("ann", "f00d", "7")]


def test_a_question_is_paid_whole_answered_in_parts_and_stored_whole(ledger: Ledger) -> None:
    event = geometric().event
    worked = []

    def work(meter: Meter) -> str:
        worked.append(meter)
        assert meter.fits(geometric(), "patients")
        values = [meter.measure(geometric(), count()).value for _ in range(2)]
        assert not meter.fits(geometric(), "patients")
        assert meter.spent("patients") == Pure(epsilon=Fraction(1))
        return write(values)

    question = ask(events=(event, event), epsilon=Fraction(1))
    first = answered(ledger, question, work)
    assert answered(ledger, question, work) == first
    assert len(worked) == 1
    assert ledger.statement("patients").spent.charges == 1
    assert ledger.statement("patients").spent.loss == 1 << 40


def test_a_question_says_what_was_taken_of_its_payment(ledger: Ledger) -> None:
    seen: list[object] = []

    def work(meter: Meter) -> str:
        seen.append(meter.spent("patients"))
        meter.measure(geometric(), count())
        seen.append(meter.spent("patients"))
        for ask_about in (meter.spent, lambda account: meter.fits(geometric(), account)):
            with pytest.raises(UnknownAccount, match="has paid from account 'patients', not 'devices'"):
                ask_about("devices")
        return "done"

    answered(ledger, ask(events=(geometric().event,) * 2, epsilon=Fraction(1)), work)
    assert seen == [Pure(epsilon=Fraction(0)), Pure(epsilon=HALF)]


@pytest.mark.parametrize("times", [1, 2])
def test_a_question_cannot_draw_more_than_it_has_paid_for(ledger: Ledger, times: int) -> None:
    event = geometric(Fraction(1, 4)).event

    def work(meter: Meter) -> str:
        for _ in range(times + 1):
            meter.measure(geometric(Fraction(1, 4)), count())
        return "never"

    log: list[str] = []
    with pytest.raises(EngineError):
        answered(ledger, ask(events=(event,) * times), work, log=log.append)
    assert "not among those that entry 3 has paid for" in log[0]
    assert [entry.kind for entry in ledger.entries()][-1] == "failure"


def test_a_question_pays_for_its_own_account_only(ledger: Ledger) -> None:
    ledger.open_account("devices", Budget(epsilon=Fraction(2)))

    def work(meter: Meter) -> str:
        meter.measure(geometric(), count(account="devices"))
        return "never"

    log: list[str] = []
    with pytest.raises(EngineError):
        answered(ledger, ask(events=(geometric().event,)), work, log=log.append)
    assert "has paid from account 'patients', not 'devices'" in log[0]
    assert ledger.statement("devices").spent.charges == 0


def test_work_that_fails_is_paid_and_may_be_done_again(ledger: Ledger) -> None:
    def fail(meter: Meter) -> str:
        raise RuntimeError("the engine stopped")

    with pytest.raises(EngineError):
        answered(ledger, ask(key="k"), fail)
    assert ledger.statement("patients").spent.charges == 1
    assert answered(ledger, ask(key="k"), lambda meter: "42").answer == "42"
    assert ledger.statement("patients").spent.charges == 1


def test_an_engine_that_fails_is_counted_before_it_is_told_and_has_no_answer(ledger: Ledger) -> None:
    def fail(meter: Meter) -> str:
        raise EngineError

    with pytest.raises(EngineError):
        answered(ledger, ask(key="k"), fail)
    assert [entry.kind for entry in ledger.entries()][-1] == "failure"
    assert answered(ledger, ask(key="k"), lambda meter: "42").answer == "42"
    assert ledger.statement("patients").spent.charges == 1


def test_without_a_ledger_there_is_nothing_to_find_by_a_key() -> None:
    meter = Meter({"patients": Budget(epsilon=Fraction(2))})
    with pytest.raises(ParameterError, match="key must be None without a ledger"):
        meter.measure(geometric(), count(), key="k")
