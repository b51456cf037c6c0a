"""Accounts of several sums on disk: what one sum admits, changed budgets, old ledgers, and who else checks them."""

import sqlite3
import threading
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hubbub.errors import BudgetExceeded, LedgerCorrupt, ParameterError, UnknownAccount
from hubbub.ledger import Ledger, Marks, Renewal
from hubbub.ledger.report import report
from hubbub.ledger.stores.opening import store_at
from hubbub.ledger.stores.store import DERIVED, MIGRATIONS, migrate
from hubbub.ledger.verify.recompute import recompute
from hubbub.ledger.verify.verify import verify
from hubbub.privacy.events.event import BoundedRangeEvent, DiscreteLaplaceEvent, Event, PureEvent, event_from_json
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT, Budget, FamilyFilter, Spent, price_of
from hubbub.privacy.sensitivity import Neighbors
from tests.ledger.asking import DAY, Clock, ask, gaussian, pure, thresholded
from tests.ledger.sample import Draft, forged
from tests.ledger.test_format import FIRST_FORMAT

FAMILY = Budget(epsilon=Fraction(4), delta=Fraction(1, 10**9))
ONE = Fraction(1)
R = FAMILY.filter.loss_cap * LOSS_UNIT


@pytest.fixture
def ledger(location: str | Path, open_ledger: Callable[..., Ledger], clock: Clock) -> Ledger:
    opened = open_ledger(location, clock=clock)
    opened.open_account("patients", FAMILY)
    return opened


def refused(ledger: Ledger, name: str, event: Event, **changes: Any) -> bool:
    before = [entry.seq for entry in ledger.entries()]
    try:
        ledger.reserve(ask(name, event=event, **changes))
    except BudgetExceeded:
        assert [entry.seq for entry in ledger.entries()] == before
        return True
    return False


def agree(ledger: Ledger) -> None:
    """The chain, the witness, the tables, the report and the second accountant say the same."""
    assert verify(ledger).entries == len([*ledger.entries()])
    assert not recompute(ledger).shortfalls
    found = report(ledger)
    assert found.holds
    for account in found.accounts:
        assert account.periods[-1].spent == ledger.statement(account.name).spent


class TestSums:
    def test_four_answers_at_one_are_paid_by_epsilon(self, ledger: Ledger) -> None:
        for name in "abcd":
            assert not refused(ledger, name, DiscreteLaplaceEvent(scale=ONE))
        spent = ledger.statement("patients").spent
        assert spent.pure == 4 << 40
        assert spent.loss > FAMILY.filter.loss_cap
        assert refused(ledger, "e", DiscreteLaplaceEvent(scale=Fraction(10**9)))
        assert refused(ledger, "f", gaussian(LOSS_UNIT))
        agree(ledger)

    def test_gaussian_noise_ends_the_sum_of_epsilon_and_not_that_of_rho(self, ledger: Ledger) -> None:
        assert not refused(ledger, "a", gaussian(R / 2))
        assert ledger.statement("patients").spent.pure is None
        assert refused(ledger, "b", pure(1)), "it would have fitted into ε by itself"
        assert not refused(ledger, "c", BoundedRangeEvent(range=Fraction(1, 2)))
        assert not refused(ledger, "d", pure(Fraction(1, 8)))
        agree(ledger)

    def test_what_one_sum_admits_counts_in_the_other(self, ledger: Ledger) -> None:
        assert not refused(ledger, "a", pure(1))
        assert refused(ledger, "b", gaussian(LOSS_UNIT)), "the sum of ρ is full, and Gaussian noise has no ε"
        assert not refused(ledger, "c", pure(3))
        assert refused(ledger, "d", pure(LOSS_UNIT))
        agree(ledger)

    def test_the_last_unit_of_either_sum(self, ledger: Ledger) -> None:
        assert not refused(ledger, "a", pure(4))
        assert refused(ledger, "b", pure(LOSS_UNIT))
        ledger.open_account("quiet", FAMILY)
        assert not refused(ledger, "a", gaussian(FAMILY.filter.loss_cap * LOSS_UNIT), account="quiet")
        assert refused(ledger, "b", gaussian(LOSS_UNIT), account="quiet")
        assert refused(ledger, "c", pure(LOSS_UNIT), account="quiet")
        agree(ledger)

    def test_failure_masses_are_held_to_the_pool_whichever_sum_admits(self, ledger: Ledger) -> None:
        pool = FAMILY.filter.failure_cap * DELTA_UNIT
        assert not refused(ledger, "a", thresholded(ONE, pool))
        assert ledger.statement("patients").spent.pure == 1 << 40
        assert refused(ledger, "b", thresholded(Fraction(1, 10**6), DELTA_UNIT))
        assert not refused(ledger, "c", pure(1))
        agree(ledger)

    def test_a_refusal_names_both_sums(self, ledger: Ledger) -> None:
        ledger.reserve(ask(event=pure(3)))
        with pytest.raises(
            BudgetExceeded, match=r"costs ε = 2 or ρ = .*; account \"patients\" has ε = 1 or ρ = 0 left"
        ):
            ledger.reserve(ask("b", event=pure(2)))


class TestHolders:
    def test_each_holder_admits_by_a_sum_of_its_own(self, ledger: Ledger) -> None:
        """The account by ρ, since it has paid Gaussian noise; the principal, who has not, by its ε."""
        ledger.grant("patients", "ann", limit=Budget(epsilon=Fraction(1, 16), delta=FAMILY.delta))
        ledger.reserve(ask("noise", event=gaussian(R / 4)))
        event = DiscreteLaplaceEvent(scale=Fraction(32))
        assert not refused(ledger, "a", event, principal="ann")
        assert not refused(ledger, "b", event, principal="ann")
        assert refused(ledger, "c", event, principal="ann")
        agree(ledger)

    def test_shares_count_in_every_sum_of_whoever_is_given_them(self, ledger: Ledger) -> None:
        for name in ("ann", "bob"):
            ledger.grant("patients", name, limit=FAMILY)
        ledger.settle(ledger.reserve(ask(event=pure(1), principal="ann")), "1")
        before = ledger.statement("patients").spent
        assert ledger.reserve(ask(event=pure(1), principal="bob")).answer == "1"
        assert ledger.statement("patients").spent == before
        assert ledger.statement("patients", "principal", "bob").spent == before
        assert refused(ledger, "noise", gaussian(LOSS_UNIT), principal="bob")
        agree(ledger)

    def test_a_new_period_has_both_sums_anew(self, ledger: Ledger, clock: Clock) -> None:
        ledger.open_account("monthly", FAMILY, renewal=Renewal(days=30))
        ledger.reserve(ask("a", event=gaussian(R), account="monthly"))
        assert refused(ledger, "b", pure(1), account="monthly")
        clock.now += 31 * DAY
        assert not refused(ledger, "c", pure(4), account="monthly")
        agree(ledger)


class TestChangedBudgets:
    def test_raised_and_lowered(self, ledger: Ledger) -> None:
        ledger.reserve(ask("a", event=pure(3)))
        assert refused(ledger, "b", pure(2))
        more = Budget(epsilon=Fraction(6), delta=FAMILY.delta)
        assert ledger.set_budget("patients", more).budget == more
        assert not refused(ledger, "b", pure(2))
        ledger.set_budget("patients", Budget(epsilon=Fraction(2), delta=FAMILY.delta))
        assert ledger.statement("patients").spent.pure == 5 << 40, "nothing is taken back"
        assert refused(ledger, "c", pure(LOSS_UNIT))
        assert ledger.statement("patients").left.fits(price_of(FAMILY.filter, [])), "what is free stays free"
        agree(ledger)

    def test_a_lower_delta_keeps_what_the_pool_has_spent(self, ledger: Ledger) -> None:
        """Nothing with a failure mass fits any more then, and raising δ again lends nothing."""
        used = FAMILY.filter.failure_cap // 2 * DELTA_UNIT
        assert not refused(ledger, "a", thresholded(ONE, used))
        ledger.set_budget("patients", Budget(epsilon=FAMILY.epsilon, delta=used))
        assert ledger.statement("patients").spent.failure * DELTA_UNIT == used
        assert refused(ledger, "b", thresholded(Fraction(1, 10**6), DELTA_UNIT))
        assert not refused(ledger, "c", pure(1))
        for _ in range(3):  # lowered and raised, it is the same pool
            ledger.set_budget("patients", Budget(epsilon=FAMILY.epsilon, delta=used))
            ledger.set_budget("patients", FAMILY)
        assert not refused(ledger, "d", thresholded(Fraction(1, 10**6), used))
        assert refused(ledger, "e", thresholded(Fraction(1, 10**6), 2 * DELTA_UNIT))
        agree(ledger)

    def test_closed_and_opened_again(self, ledger: Ledger) -> None:
        ledger.settle(ledger.reserve(ask("a")), "1")
        assert ledger.set_budget("patients", closed=True).closed
        assert refused(ledger, "b", pure(LOSS_UNIT))
        with pytest.raises(BudgetExceeded, match='account "patients" is closed: its owner'):
            ledger.reserve(ask("b"))
        assert ledger.reserve(ask("a")).answer == "1"
        agree(ledger)
        assert not ledger.set_budget("patients").closed
        assert not refused(ledger, "b", pure(1))
        agree(ledger)

    def test_the_same_again_writes_nothing(self, ledger: Ledger) -> None:
        ledger.set_budget("patients", closed=True)
        before = [*ledger.entries()]
        ledger.set_budget("patients", closed=True)
        assert [*ledger.entries()] == before

    def test_limits_below_an_account(self, ledger: Ledger) -> None:
        ledger.open_project("patients", "flu", FAMILY)
        ledger.grant("patients", "ann", project="flu", limit=FAMILY)
        ledger.set_budget("patients", Budget(epsilon=ONE, delta=FAMILY.delta), project="flu")
        ledger.set_budget("patients", principal="ann", closed=True)
        assert refused(ledger, "a", pure(LOSS_UNIT), principal="ann")
        ledger.set_budget("patients", FAMILY, principal="ann")
        assert refused(ledger, "a", pure(2), principal="ann")
        assert not refused(ledger, "a", pure(1), principal="ann")
        agree(ledger)

    def test_programs_that_name_the_first_budget_or_the_one_in_force_open_it(self, ledger: Ledger) -> None:
        ledger.set_budget("patients", Budget(epsilon=Fraction(6), delta=FAMILY.delta))
        ledger.set_budget("patients", Budget(epsilon=Fraction(7), delta=FAMILY.delta))
        assert ledger.open_account("patients", FAMILY).budget.epsilon == 7
        assert ledger.open_account("patients", Budget(epsilon=Fraction(7), delta=FAMILY.delta)).budget.epsilon == 7
        with pytest.raises(ParameterError, match="opened with") as refused:
            ledger.open_account("patients", Budget(epsilon=Fraction(6), delta=FAMILY.delta))
        assert "now ε = 7, δ = 1e-9" in str(refused.value)
        assert "hubbub budget set" in str(refused.value)

    def test_programs_that_say_nothing_of_renewals_open_accounts_that_are_renewed(self, ledger: Ledger) -> None:
        ledger.open_account("monthly", FAMILY, renewal=Renewal(days=30))
        assert ledger.open_account("monthly", FAMILY).renewal == Renewal(days=30)
        ledger.set_budget("monthly", Budget(epsilon=Fraction(5), delta=FAMILY.delta))
        assert ledger.open_account("monthly", FAMILY).renewal == Renewal(days=30)
        with pytest.raises(ParameterError, match=r"opened with .*anew every 30 days"):
            ledger.open_account("monthly", FAMILY, renewal=Renewal(days=7))
        agree(ledger)

    def test_what_cannot_be_changed(self, ledger: Ledger) -> None:
        with pytest.raises(ParameterError, match="counted like"):
            ledger.set_budget("patients", Budget(epsilon=Fraction(4)))
        with pytest.raises(UnknownAccount):
            ledger.set_budget("nobody", FAMILY)
        with pytest.raises(ParameterError, match="a project of account"):
            ledger.set_budget("patients", FAMILY, project="none")
        with pytest.raises(ParameterError, match="None beside a project"):
            ledger.set_budget("patients", FAMILY, project="a", principal="b")

    def test_a_renewed_budget_keeps_its_periods(self, ledger: Ledger, clock: Clock) -> None:
        ledger.open_account("monthly", FAMILY, renewal=Renewal(days=30))
        ledger.set_budget("monthly", Budget(epsilon=Fraction(5), delta=FAMILY.delta))
        assert ledger.statement("monthly").renewal == Renewal(days=30)
        clock.now += 31 * DAY
        assert not refused(ledger, "c", pure(5), account="monthly")
        agree(ledger)


class TestSecondAccounts:
    def test_another_account_for_the_same_data_warns(self, ledger: Ledger) -> None:
        ledger.open_account("one", FAMILY, sources=["/data/a", "/data/b"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ledger.open_account("one", FAMILY, sources=["/data/a"])
            ledger.open_account("other", FAMILY, sources=["/data/c"])
        with pytest.warns(UserWarning, match="'two' is opened for data that account 'one' was opened for"):
            ledger.open_account("two", FAMILY, sources=["/data/b"])
        agree(ledger)


class TestRaces:
    def test_many_at_once_are_admitted_as_if_one_after_the_other(self, ledger: Ledger) -> None:
        """Pure and Gaussian questions race; whatever was admitted fits into one of the sums, and no unit is lost."""
        outcome: list[Fraction] = []
        lock = threading.Lock()

        def work(name: int) -> None:
            random = Random(name)
            for step in range(12):
                event: Event = gaussian(R / 9) if random.random() < 0.4 else pure(Fraction(random.randint(1, 8), 16))
                try:
                    ledger.reserve(ask(f"{name} {step}", event=event))
                except BudgetExceeded:
                    continue
                with lock:
                    outcome.append(ONE)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent = ledger.statement("patients").spent
        assert spent.charges == len(outcome) > 0
        caps = FAMILY.filter
        assert isinstance(caps, FamilyFilter)
        assert spent.loss <= caps.loss_cap or (spent.pure is not None and spent.pure <= caps.pure_cap)
        again = Spent()
        for entry in ledger.entries():
            if entry.kind == "charge":
                events = [event_from_json(stored) for stored in entry.content["events"]]
                again = caps.spend(again, price_of(caps, events))
        assert again == spent
        agree(ledger)


class TestLedgersOfBefore:
    def old(self, path: Path) -> Path:
        connection = sqlite3.connect(path)
        connection.executescript(FIRST_FORMAT.read_text())
        connection.close()
        return path

    def test_sums_of_epsilon_are_recomputed_from_the_events(self, tmp_path: Path) -> None:
        with Ledger(self.old(tmp_path / "old"), marks=Marks(tmp_path / "state")) as ledger:
            agree_on_sums(ledger)
            verify(ledger)
            assert not recompute(ledger).shortfalls
            assert {one.spent.pure is None for one in ledger.statements()} == {True, False}

    def test_either_store_is_upgraded(self, location: str | Path, tmp_path: Path, marks: Marks) -> None:
        """The same tables, row by row, in a fresh store of the first format."""
        source = sqlite3.connect(self.old(tmp_path / "old"))
        store = store_at(location, patience=5.0)
        session = store.writer()
        session.begin()
        migrate(session, store, present=0, migrations=MIGRATIONS[:1])
        for table in ("entries", "head", *DERIVED):
            rows = source.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in rows.description]
            for row in rows:
                marked = ", ".join("?" * len(names))
                session.run(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marked})", *row)
        session.commit()
        session.close()
        source.close()
        with Ledger(location, marks=marks) as ledger:
            agree_on_sums(ledger)
            verify(ledger)
            assert not refused(ledger, "new", gaussian(Fraction(1, 100)), account="patients")
            verify(ledger)

    def test_budgets_of_before_are_changed_like_others(self, tmp_path: Path) -> None:
        with Ledger(self.old(tmp_path / "old"), marks=Marks(tmp_path / "state")) as ledger:
            for one in ledger.statements():
                if one.kind != "account":
                    continue
                for epsilon, closed in ((one.budget.epsilon * 2, False), (one.budget.epsilon / 2, True)):
                    changed = Budget(epsilon=epsilon, delta=one.budget.delta, neighbors=one.budget.neighbors)
                    ledger.set_budget(one.account, changed, closed=closed)
                now = ledger.statement(one.account)
                assert now.spent == one.spent, "nothing is taken back, in any sum"
                assert now.closed
                ledger.open_account(one.account, one.budget, renewal=one.renewal)
            agree_on_sums(ledger)
            verify(ledger)

    def test_a_flipped_bit_is_not_sealed_anew(self, tmp_path: Path) -> None:
        path = self.old(tmp_path / "old")
        connection = sqlite3.connect(path)
        connection.execute("UPDATE holders SET loss = loss - 1 WHERE loss > 0")
        connection.commit()
        connection.close()
        with pytest.raises(LedgerCorrupt, match="not what was written"):
            Ledger(path, marks=Marks(tmp_path / "state"))

    def test_an_old_account_goes_on_by_whichever_sum_admits(self, tmp_path: Path) -> None:
        with Ledger(self.old(tmp_path / "old"), marks=Marks(tmp_path / "state")) as ledger:
            cap = ledger.statement("swapped").budget.filter.loss_cap * LOSS_UNIT
            large = PureEvent(bound=Fraction(35), neighbors=Neighbors.REPLACE_ONE)
            assert large.rho is not None
            assert large.rho > cap
            assert not refused(ledger, "new", large, account="swapped")
            assert refused(ledger, "newer", large, account="swapped")
            verify(ledger)


def agree_on_sums(ledger: Ledger) -> None:
    """Every holder's sum, added up by hand from the charges and shares of its present period."""
    filters = {one.account: one.budget.filter for one in ledger.statements() if one.kind == "account"}
    sums: dict[tuple[str, str, str], int | None] = {}
    paid: dict[int, int | None] = {}
    for entry in ledger.entries():
        content = entry.content
        if entry.kind == "renewal":
            sums[content["account"], content["holder"], content["name"]] = 0
        if entry.kind not in ("charge", "share"):
            continue
        if entry.kind == "charge":
            events = [event_from_json(stored) for stored in content["events"]]
            paid[entry.seq] = price_of(filters[content["account"]], events).pure
        pure_units = paid[content["charge"] if entry.kind == "share" else entry.seq]
        for kind, name in content["holders"]:
            before = sums.get((content["account"], kind, name), 0)
            known = None not in (before, pure_units)
            sums[content["account"], kind, name] = before + pure_units if known else None  # type: ignore[operator]
    for one in ledger.statements():
        key = (one.account, one.kind, "" if one.kind == "account" else one.name)
        if one.spent.charges:
            assert one.spent.pure == sums[key], key


PRICE = "but its events cost"


def _charge(**changes: Any) -> Callable[[list[Draft]], None]:
    """Another content for the last charge."""

    def change(drafts: list[Draft]) -> None:
        drafts[-1].content = {**drafts[-1].content, **changes}

    return change


def _other_delta(drafts: list[Draft]) -> None:
    drafts[-2].content["terms"]["delta"] = "0/1"


def _renewed(drafts: list[Draft]) -> None:
    drafts[-2].content["terms"]["renewal_days"] = 1


def _begun(drafts: list[Draft]) -> None:
    drafts[-2].content["terms"] |= {"begun": 0, "first_period": 0}


def _lowered(drafts: list[Draft]) -> None:
    drafts[-2].content["terms"]["epsilon"] = "1/2"


def _closed(drafts: list[Draft]) -> None:
    drafts[-2].content["terms"]["closed"] = True


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_charge(pure=0), PRICE),
        (_charge(pure=None), PRICE),
        (_charge(loss=0), PRICE),
        (_other_delta, "not counted as it was before"),
        (_renewed, "when the budget is renewed"),
        (_begun, "when the budget is renewed"),
        (_lowered, "passes the cap"),
        (_closed, "passes the cap"),
    ],
)
def test_a_forgery_in_a_perfect_chain_is_found(
    tmp_path: Path, change: Callable[[list[Draft]], None], words: str
) -> None:
    with Ledger(tmp_path / "original", marks=Marks(tmp_path / "state")) as ledger:
        ledger.open_account("patients", FAMILY)
        ledger.set_budget("patients", Budget(epsilon=Fraction(2), delta=FAMILY.delta))
        ledger.reserve(ask("a", event=DiscreteLaplaceEvent(scale=ONE)))
    made = forged(tmp_path / "original", tmp_path / "forged", change)
    with Ledger(made, marks=Marks(tmp_path / "other")) as ledger, pytest.raises(LedgerCorrupt, match=words):
        verify(ledger)


def test_periods_that_are_said_to_have_begun_earlier_are_found(tmp_path: Path) -> None:
    with Ledger(tmp_path / "original", marks=Marks(tmp_path / "state")) as ledger:
        ledger.open_account("patients", FAMILY)
        ledger.open_project("patients", "flu", FAMILY)
        ledger.open_project("patients", "flu", FAMILY, renewal=Renewal(days=1))

    def earlier(drafts: list[Draft]) -> None:
        drafts[-1].content["terms"]["begun"] -= DAY

    made = forged(tmp_path / "original", tmp_path / "forged", earlier)
    with (
        Ledger(made, marks=Marks(tmp_path / "other")) as ledger,
        pytest.raises(LedgerCorrupt, match="begin at another"),
    ):
        verify(ledger)
