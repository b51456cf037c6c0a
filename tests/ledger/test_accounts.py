"""Accounts and what is charged to them, on SQLite and on PostgreSQL alike."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from hubbub.errors import AccountingError, BudgetExceeded, CapacityError, ParameterError, UnknownAccount
from hubbub.ledger import Ask, Ledger, Renewal
from hubbub.privacy.filter import Budget, Charge
from hubbub.privacy.sensitivity import Neighbors
from tests.ledger.asking import HALF, UNIT, ask, charges, gaussian, loss, pure, thresholded

Opening = Callable[..., Ledger]

pytestmark = pytest.mark.usefixtures("location")


class TestAccounts:
    def test_a_new_account_has_all_of_its_budget(self, ledger: Ledger) -> None:
        statement = ledger.statement("patients")
        assert statement.budget == Budget(epsilon=Fraction(2))
        assert statement.left.parts == (Charge(loss=2 << 40, pure=2 << 40),)
        assert statement.spent.charges == 0

    def test_opening_on_the_same_terms_again_changes_nothing(self, ledger: Ledger) -> None:
        ledger.reserve(ask())
        before = [*ledger.entries()]
        ledger.open_account("patients", Budget(epsilon=Fraction(2)))
        assert [*ledger.entries()] == before
        assert loss(ledger) == HALF

    @pytest.mark.parametrize(
        "budget",
        [
            Budget(epsilon=Fraction(3)),
            Budget(epsilon=Fraction(2), delta=Fraction(1, 100)),
            Budget(epsilon=Fraction(2), neighbors=Neighbors.REPLACE_ONE),
        ],
    )
    def test_an_account_keeps_the_budget_it_was_opened_with(self, ledger: Ledger, budget: Budget) -> None:
        with pytest.raises(ParameterError, match="what account 'patients' was opened with"):
            ledger.open_account("patients", budget)

    def test_another_renewal_is_another_budget(self, ledger: Ledger) -> None:
        with pytest.raises(ParameterError, match="opened with"):
            ledger.open_account("patients", Budget(epsilon=Fraction(2)), renewal=Renewal(days=1))

    def test_a_budget_beyond_64_bits_is_refused(self, ledger: Ledger) -> None:
        ledger.open_account("large", Budget(epsilon=Fraction((1 << 22) - 1)))
        with pytest.raises(CapacityError, match="64-bit"):
            ledger.open_account("larger", Budget(epsilon=Fraction(1 << 22)))

    @pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, "a\x1b[31m", 7])
    def test_names_print_on_one_line(self, ledger: Ledger, name: str) -> None:
        with pytest.raises(ParameterError, match="account must be a name"):
            ledger.open_account(name, Budget(epsilon=Fraction(1)))

    def test_an_unknown_account_is_an_error_for_everyone(self, ledger: Ledger) -> None:
        budget = Budget(epsilon=Fraction(1))
        for attempt in (
            lambda: ledger.reserve(ask(account="doctors")),
            lambda: ledger.statement("doctors"),
            lambda: ledger.grant("doctors", "ann"),
            lambda: ledger.revoke("doctors", "ann"),
            lambda: ledger.open_project("doctors", "flu", budget),
        ):
            with pytest.raises(UnknownAccount, match="no account 'doctors'"):
                attempt()

    def test_accounts_do_not_pay_for_each_other(self, ledger: Ledger) -> None:
        ledger.open_account("devices", Budget(epsilon=Fraction(1)))
        ledger.reserve(ask())
        assert ledger.statement("devices").spent.loss == 0


class TestCharges:
    def test_the_last_unit_can_be_spent_and_not_one_more(self, ledger: Ledger) -> None:
        ledger.reserve(ask("a", event=pure(Fraction(2) - UNIT)))
        ledger.reserve(ask("b", event=pure(UNIT)))
        assert ledger.statement("patients").left.parts == (Charge(loss=0, pure=0),)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("c", event=pure(UNIT)))
        assert charges(ledger) == 2

    def test_amounts_are_rounded_up(self, ledger: Ledger) -> None:
        ticket = ledger.reserve(ask(event=pure(UNIT / 3)))
        assert ticket.cost == Charge(loss=1, pure=1)

    def test_each_event_is_rounded_up_by_itself(self, ledger: Ledger) -> None:
        ticket = ledger.reserve(ask(events=(pure(UNIT / 3), pure(UNIT / 3), pure(UNIT))))
        assert ticket.paid == Charge(loss=3, pure=3)

    def test_a_refusal_says_asked_left_of_how_much_and_since_when(self, ledger: Ledger) -> None:
        ledger.reserve(ask("a", event=pure(Fraction(3, 2))))
        with pytest.raises(BudgetExceeded) as refused:
            ledger.reserve(ask("b", event=pure(1)))
        assert str(refused.value) == (
            '[budget-exceeded] This costs ε = 1; account "patients" has ε = 0.5 left of its budget ε = 2 '
            "(1 charge since 2023-11-14). Ask for less, or request a grant."
        )
        assert loss(ledger) == Fraction(3, 2)

    def test_a_refusal_writes_nothing(self, ledger: Ledger) -> None:
        before = [*ledger.entries()]
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask(event=pure(3)))
        assert [*ledger.entries()] == before

    def test_a_pure_account_takes_no_other_events(self, ledger: Ledger) -> None:
        with pytest.raises(AccountingError, match="not pure"):
            ledger.reserve(ask(event=gaussian(Fraction(1, 100))))
        assert charges(ledger) == 0

    def test_both_parts_of_delta_are_checked(self, ledger: Ledger) -> None:
        delta = Fraction(1, 1 << 10)
        ledger.open_account("tails", Budget(epsilon=Fraction(10), delta=delta))
        half = thresholded(Fraction(1, 100), delta / 4)
        ledger.reserve(ask("a", account="tails", event=half))
        ledger.reserve(ask("b", account="tails", event=half))
        with pytest.raises(BudgetExceeded, match="δ₀ = 0 left"):
            ledger.reserve(ask("c", account="tails", event=thresholded(Fraction(1, 100), Fraction(1, 1 << 62))))
        ledger.reserve(ask("d", account="tails", event=gaussian(Fraction(1, 100))))

    def test_an_event_about_other_neighbours_is_refused(self, ledger: Ledger) -> None:
        ledger.open_account("swaps", Budget(epsilon=Fraction(2), neighbors=Neighbors.REPLACE_ONE))
        with pytest.raises(AccountingError, match="neighbours"):
            ledger.reserve(ask(account="swaps"))

    def test_what_is_kept_of_a_charge(self, ledger: Ledger) -> None:
        ticket = ledger.reserve(ask("SELECT 1", policy="f00d", version="2026-11", delta=Fraction(1, 1000)))
        entry = [*ledger.entries()][-1]
        assert entry.seq == ticket.entry
        kept = entry.content
        assert kept["question"] == "SELECT 1"
        assert (kept["policy"], kept["version"], kept["principal"]) == ("f00d", "2026-11", "owner")
        assert (kept["epsilon"], kept["delta"], kept["loss"], kept["failure"]) == ("1/2", "1/1000", 1 << 39, 0)
        assert kept["events"] == [pure().to_json()]

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("events", ()),
            ("events", ("laplace",)),
            ("epsilon", 0),
            ("epsilon", -1),
            ("delta", 1),
            ("principal", ""),
            ("version", "\n"),
            ("key", ""),
            ("question", 7),
            ("policy", None),
        ],
    )
    def test_bad_questions_are_refused_before_anything(self, field: str, value: object) -> None:
        changes: dict[str, Any] = {field: value}
        with pytest.raises(ParameterError, match=field):
            ask(**changes)


def test_an_ask_names_its_question_whatever_it_costs() -> None:
    assert ask().digest == ask(epsilon=Fraction(1), key="k", principal="ann").digest
    assert len({a.digest for a in (ask(), ask("x"), ask(policy="p"), ask(version="2"))}) == 4
    assert isinstance(ask(), Ask)
