"""What a report says about a ledger, and that a charge which is too small does not pass."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import LedgerCorrupt, UnknownAccount
from hubbub.ledger import Ledger, Marks
from hubbub.ledger.report import LedgerReport, report
from hubbub.ledger.verify.recompute import recompute
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT
from hubbub.privacy.loss import Approx, Pure
from tests.ledger import sample
from tests.ledger.sample import Clock, Draft, damage, fill, forged, question


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.sample(tmp_path_factory.mktemp("sample") / "ledger.db")


def opened(path: Path) -> Ledger:
    return Ledger(path, marks=Marks(path.parent / "report-state"), create=False, writes=False)


@pytest.fixture(scope="module")
def found(original: Path) -> LedgerReport:
    with opened(original) as ledger:
        return report(ledger)


def test_each_charge_has_its_line(found: LedgerReport) -> None:
    people = found.accounts[0]
    first, second, pending = people.lines
    assert (first.entry, first.principal, first.project) == (sample.FIRST, "ann", "study")
    assert (first.answer, first.public, first.shared) == (sample.ANSWER, True, ("bob",))
    assert (second.question, second.version, second.answer) == ("which keys", "2", None)
    assert second.spent.failure * DELTA_UNIT == pytest.approx(Fraction(1, 10**9), rel=1e-6)
    assert (pending.shared, pending.public) == ((), False)
    assert [line.after.loss for line in people.lines] == [
        first.spent.loss,
        first.spent.loss + second.spent.loss,
        people.lifetime.loss,
    ]


def test_totals_by_principal_project_and_period(found: LedgerReport) -> None:
    people, staff = found.accounts
    assert {name: (one.spent.charges, one.shares.charges) for name, one in people.principals.items()} == {
        "ann": (3, 0),
        "bob": (0, 1),
    }
    assert people.principals["bob"].shares.loss == people.lines[0].spent.loss
    assert people.projects["study"].spent.loss == people.lifetime.loss
    assert [(period.number, period.spent.charges) for period in staff.periods] == [(0, 1), (1, 1)]
    assert (staff.periods[1].since - staff.periods[0].since).days == 30
    assert [line.period for line in staff.lines] == [0, 1]
    assert staff.lines[1].after.loss == staff.lines[1].spent.loss, "each period begins at nothing"
    assert staff.lifetime.loss == 2 * staff.lines[0].spent.loss
    assert staff.odometer == Pure(epsilon=staff.lifetime.loss * LOSS_UNIT)
    assert [total for _, _, total in staff.days()] == [staff.lines[0].spent.loss, staff.lifetime.loss]
    assert len(people.days()) == 2


def test_the_report_agrees_with_the_ledgers_own_balances(original: Path, found: LedgerReport) -> None:
    with opened(original) as ledger:
        people = found.accounts[0]
        assert people.lifetime == ledger.statement("people").spent
        assert people.odometer == ledger.statement("people").odometer


def test_the_fixed_plan_is_below_the_odometer_and_stands_at_the_accounts_delta(found: LedgerReport) -> None:
    people, staff = found.accounts
    assert people.fixed is not None
    assert staff.fixed is not None
    assert isinstance(people.odometer, Approx)
    assert people.fixed.method == "pld"
    assert people.fixed.loss.delta == sample.PEOPLE.delta
    assert 0 < people.fixed.loss.epsilon < people.odometer.epsilon
    assert staff.fixed.loss.epsilon <= 1


def test_a_sound_ledger_has_no_shortfall(original: Path, found: LedgerReport) -> None:
    assert found.holds
    with opened(original) as ledger:
        again = recompute(ledger)
        assert (again.charges, again.distinct, again.on_trust, again.shortfalls) == (5, 3, 0, ())
        assert recompute(ledger, account="staff").charges == 2


def halved(drafts: list[Draft]) -> None:
    drafts[sample.FIRST - 1].content["loss"] //= 2
    drafts[sample.PAID - 1].content["loss"] //= 2
    drafts[sample.SECOND - 1].content["failure"] //= 2


def test_a_halved_charge_in_a_perfect_chain_is_a_shortfall(original: Path, tmp_path: Path) -> None:
    path = forged(original, tmp_path / "forged.db", halved)
    with opened(path) as ledger:
        with pytest.raises(LedgerCorrupt, match=f"Entry {sample.FIRST} "):
            ledger.verify()
        short = recompute(ledger).shortfalls
        told = report(ledger)
    assert [(one.entry, one.account, one.symbol) for one in short] == [
        (sample.FIRST, "people", "ρ"),
        (sample.SECOND, "people", "δ₀"),
        (sample.PAID, "staff", "ε"),
    ]
    for one in short:
        assert one.recounted == pytest.approx(2 * float(one.charged), rel=0.01)
    assert not told.holds
    assert [len(account.recomputed.shortfalls) for account in told.accounts] == [2, 1]


def test_the_report_of_one_account_has_nothing_of_others(original: Path) -> None:
    with opened(original) as ledger:
        (only,) = report(ledger, account="staff").accounts
        assert (only.name, len(only.lines)) == ("staff", 2)
        with pytest.raises(UnknownAccount):
            report(ledger, account="x")


def test_a_broken_chain_gives_no_report(original: Path, tmp_path: Path) -> None:
    path = forged(original, tmp_path / "damaged.db", lambda drafts: None)
    with opened(path) as ledger:
        damage(path, "UPDATE entries SET time = time - 1 WHERE seq = 9")
        for look in (report, recompute):
            with pytest.raises(LedgerCorrupt, match="Entry 9 "):
                look(ledger)


def test_equal_charges_are_counted_once(sqlite_path: Path, open_ledger: Callable[..., Ledger]) -> None:
    from hubbub.ledger.verify.recount import recount

    clock = Clock()
    ledger = open_ledger(sqlite_path, clock=clock)
    fill(ledger, clock)
    recount.cache_clear()
    for number in range(10):
        ledger.reserve(question(f"number {number}"))
    told: list[tuple[int, int]] = []
    again = recompute(ledger, progress=lambda done, total: told.append((done, total)))
    assert (again.charges, again.distinct) == (15, 3)
    assert recount.cache_info().misses == 3
    assert told[-1][0] == told[-1][1] == sample.ENTRIES + 10


def test_an_account_without_charges_has_an_empty_report(sqlite_path: Path, open_ledger: Callable[..., Ledger]) -> None:
    ledger = open_ledger(sqlite_path)
    assert report(ledger).accounts == ()
    ledger.open_account("people", sample.PEOPLE)
    (only,) = report(ledger).accounts
    assert (only.lines, only.fixed, only.days()) == ((), None, [])
    assert report(ledger).holds


def test_many_kinds_of_events_are_added_up_as_curves(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.ledger.verify.recompute._KINDS", 1)
    with opened(original) as ledger:
        people, staff = report(ledger).accounts
    assert people.fixed is not None
    assert staff.fixed is not None
    assert (people.fixed.method, staff.fixed.method) == ("rdp", "pld")
