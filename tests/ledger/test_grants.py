"""Grants, limits and renewals, on SQLite and on PostgreSQL alike."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from hubbub.errors import BudgetExceeded, GrantError, GrantExpired, ParameterError
from hubbub.ledger import Ledger, Renewal
from hubbub.privacy.filter import Budget, Charge
from hubbub.privacy.sensitivity import Neighbors
from tests.ledger.asking import DAY, HALF, Clock, ask, loss, pure

Opening = Callable[..., Ledger]

pytestmark = pytest.mark.usefixtures("location")


class TestGrants:
    def test_only_the_owner_needs_no_grant(self, ledger: Ledger) -> None:
        with pytest.raises(GrantError, match="'ann' has no grant on account 'patients'"):
            ledger.reserve(ask(principal="ann"))
        ledger.grant("patients", "ann")
        assert ledger.reserve(ask(principal="ann")).cost == Charge(loss=1 << 39, pure=1 << 39)

    def test_a_grant_is_good_before_its_end_and_not_from_it_on(self, ledger: Ledger, clock: Clock) -> None:
        end = datetime.fromtimestamp(clock.now // 1_000_000, UTC) + timedelta(days=1)
        ledger.grant("patients", "ann", expires=end)
        clock.now += DAY - 1
        ledger.reserve(ask("a", principal="ann"))
        clock.now += 1
        with pytest.raises(GrantExpired, match=r"was good until 2023-11-15 22:13 UTC"):
            ledger.reserve(ask("b", principal="ann"))

    def test_an_expired_grant_serves_nothing_again_either(self, ledger: Ledger, clock: Clock) -> None:
        end = datetime.fromtimestamp(clock.now // 1_000_000, UTC) + timedelta(days=1)
        ledger.grant("patients", "ann", expires=end)
        ticket = ledger.reserve(ask(principal="ann", key="k"))
        ledger.settle(ticket, "1")
        clock.now += DAY
        with pytest.raises(GrantExpired):
            ledger.reserve(ask(principal="ann", key="k"))

    def test_a_revoked_grant_ends_at_once_and_its_spending_stays(self, ledger: Ledger) -> None:
        ledger.grant("patients", "ann", limit=Budget(epsilon=Fraction(1)))
        ledger.reserve(ask("a", principal="ann"))
        ledger.revoke("patients", "ann")
        with pytest.raises(GrantError, match="revoked"):
            ledger.reserve(ask("b", principal="ann"))
        ledger.grant("patients", "ann", limit=Budget(epsilon=Fraction(1)))
        ledger.reserve(ask("b", principal="ann"))
        with pytest.raises(BudgetExceeded, match='principal "ann" of account "patients"'):
            ledger.reserve(ask("c", principal="ann"))

    def test_revoking_what_was_never_granted_is_an_error(self, ledger: Ledger) -> None:
        with pytest.raises(GrantError, match="'bob' has no grant"):
            ledger.revoke("patients", "bob")

    def test_the_owner_cannot_be_granted(self, ledger: Ledger) -> None:
        with pytest.raises(ParameterError, match="other than the owner"):
            ledger.grant("patients", "owner")

    def test_a_moment_needs_a_time_zone(self, ledger: Ledger) -> None:
        with pytest.raises(ParameterError, match="time zone"):
            ledger.grant("patients", "ann", expires=datetime(2030, 1, 1))

    def test_a_grant_on_one_account_opens_no_other(self, ledger: Ledger) -> None:
        ledger.open_account("devices", Budget(epsilon=Fraction(1)))
        ledger.grant("devices", "ann")
        with pytest.raises(GrantError, match="'patients'"):
            ledger.reserve(ask(principal="ann"))

    @pytest.mark.parametrize(
        "limit",
        [
            Budget(epsilon=Fraction(1), delta=Fraction(1, 10)),
            Budget(epsilon=Fraction(1), neighbors=Neighbors.REPLACE_ONE),
        ],
    )
    def test_a_limit_is_counted_like_its_account(self, ledger: Ledger, limit: Budget) -> None:
        with pytest.raises(ParameterError, match="counted like account 'patients'"):
            ledger.grant("patients", "ann", limit=limit)
        with pytest.raises(ParameterError, match="counted like account 'patients'"):
            ledger.open_project("patients", "flu", limit)

    def test_a_grant_names_a_project_that_exists(self, ledger: Ledger) -> None:
        with pytest.raises(ParameterError, match="a project of account 'patients'"):
            ledger.grant("patients", "ann", project="flu")


class TestLimits:
    def test_every_cap_binds_and_a_refusal_by_one_charges_none(self, ledger: Ledger) -> None:
        ledger.open_project("patients", "flu", Budget(epsilon=Fraction(1)))
        ledger.grant("patients", "ann", project="flu", limit=Budget(epsilon=HALF))
        ledger.grant("patients", "bob", project="flu")
        ledger.reserve(ask("a", principal="ann"))
        with pytest.raises(BudgetExceeded, match='principal "ann"'):
            ledger.reserve(ask("b", principal="ann"))
        ledger.reserve(ask("c", principal="bob"))
        with pytest.raises(BudgetExceeded, match='project "flu" of account "patients"'):
            ledger.reserve(ask("d", principal="bob"))
        assert loss(ledger) == 1
        assert loss(ledger, "project", "flu") == 1
        assert loss(ledger, "principal", "ann") == loss(ledger, "principal", "bob") == HALF

    def test_the_account_binds_whoever_asks(self, ledger: Ledger) -> None:
        ledger.grant("patients", "ann", limit=Budget(epsilon=Fraction(100)))
        ledger.reserve(ask("a", event=pure(Fraction(3, 2))))
        with pytest.raises(BudgetExceeded, match='; account "patients" has'):
            ledger.reserve(ask("b", principal="ann", event=pure(1)))
        assert loss(ledger, "principal", "ann") == 0

    def test_new_terms_of_a_project_keep_what_it_has_spent(self, ledger: Ledger) -> None:
        ledger.open_project("patients", "flu", Budget(epsilon=HALF))
        ledger.grant("patients", "ann", project="flu")
        ledger.reserve(ask("a", principal="ann"))
        ledger.open_project("patients", "flu", Budget(epsilon=Fraction(1)))
        ledger.reserve(ask("b", principal="ann"))
        with pytest.raises(BudgetExceeded, match="project"):
            ledger.reserve(ask("c", principal="ann"))


class TestRenewal:
    def test_a_period_starts_with_the_whole_budget_and_the_turn_is_exact(
        self, open_ledger: Opening, clock: Clock
    ) -> None:
        ledger = open_ledger(clock=clock)
        ledger.open_account("patients", Budget(epsilon=HALF), renewal=Renewal(days=30))
        ledger.reserve(ask("a"))
        clock.now += 30 * DAY - 1
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("b"))
        clock.now += 1
        assert ledger.statement("patients").spent.loss == 0
        ledger.reserve(ask("b"))
        with pytest.raises(BudgetExceeded, match="since 2023-12-14"):
            ledger.reserve(ask("c"))
        assert [entry.kind for entry in ledger.entries()].count("renewal") == 1

    def test_missed_periods_do_not_add_up(self, open_ledger: Opening, clock: Clock) -> None:
        ledger = open_ledger(clock=clock)
        ledger.open_account("patients", Budget(epsilon=HALF), renewal=Renewal(days=1))
        clock.now += 100 * DAY
        ledger.reserve(ask("a"))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("b"))

    def test_a_refused_question_renews_nothing(self, open_ledger: Opening, clock: Clock) -> None:
        ledger = open_ledger(clock=clock)
        ledger.open_account("patients", Budget(epsilon=HALF), renewal=Renewal(days=1))
        clock.now += DAY
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("a", event=pure(1)))
        assert "renewal" not in [entry.kind for entry in ledger.entries()]

    def test_limits_are_renewed_by_their_own_policy_only(self, open_ledger: Opening, clock: Clock) -> None:
        ledger = open_ledger(clock=clock)
        ledger.open_account("patients", Budget(epsilon=Fraction(10)))
        ledger.grant("patients", "ann", limit=Budget(epsilon=HALF), renewal=Renewal(days=7))
        ledger.grant("patients", "bob", limit=Budget(epsilon=HALF))
        for name in ("ann", "bob"):
            ledger.reserve(ask(f"{name} 1", principal=name))
        clock.now += 7 * DAY
        ledger.reserve(ask("ann 2", principal="ann"))
        with pytest.raises(BudgetExceeded, match='"bob"'):
            ledger.reserve(ask("bob 2", principal="bob"))
        assert loss(ledger) == Fraction(3, 2)

    @pytest.mark.parametrize("kind", ["project", "principal"])
    @pytest.mark.parametrize("before", [None, Renewal(days=365)])
    def test_another_length_of_periods_lends_nothing(
        self, open_ledger: Opening, clock: Clock, kind: str, before: Renewal | None
    ) -> None:
        """Counted from the opening, forty periods of a day would be over at once."""
        ledger = open_ledger(clock=clock)
        ledger.open_account("patients", Budget(epsilon=Fraction(10)))
        ledger.open_project("patients", "flu", Budget(epsilon=Fraction(10)))
        limit = Budget(epsilon=HALF)

        def set_terms(renewal: Renewal | None) -> None:
            if kind == "project":
                ledger.open_project("patients", "flu", limit, renewal=renewal)
                ledger.grant("patients", "ann", project="flu")
            else:
                ledger.grant("patients", "ann", project="flu", limit=limit, renewal=renewal)

        set_terms(before)
        clock.now += 40 * DAY
        ledger.reserve(ask("a", principal="ann"))
        for renewal in (Renewal(days=1), Renewal(days=1), before, Renewal(days=2)):
            set_terms(renewal)
            with pytest.raises(BudgetExceeded):
                ledger.reserve(ask("b", principal="ann"))
        clock.now += 2 * DAY - 1
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("b", principal="ann"))
        clock.now += 1
        ledger.reserve(ask("b", principal="ann"))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("c", principal="ann"))
        clock.now += 2 * DAY
        set_terms(Renewal(days=30))  # what is over is over, though nothing was asked since
        ledger.reserve(ask("d", principal="ann"))
        clock.now += 29 * DAY
        set_terms(Renewal(days=30))
        ledger.set_budget(
            "patients",
            Budget(epsilon=Fraction(3, 4)),
            project="flu" if kind == "project" else None,
            principal="ann" if kind == "principal" else None,
        )
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("e", principal="ann"))
        clock.now += DAY
        ledger.reserve(ask("e", principal="ann"))
        assert ledger.verify().accounts == 1

    @pytest.mark.parametrize("days", [0, -1, 36_501, 1.5, True])
    def test_a_period_is_a_number_of_days(self, days: int) -> None:
        with pytest.raises(ParameterError, match="days"):
            Renewal(days=days)
