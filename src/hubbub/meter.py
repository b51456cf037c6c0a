"""The gate: charge, then open, then draw. There is no other way to an answer.

Privacy:
    Claim: whatever is asked, in whatever order, and however later questions depend on earlier answers, all answers of
        one account together keep its budget (ε, δ).
    Proof: a mechanism runs only if it fits what is proven about the Secret (Facts.check_fit), so its Event is true of
        it; the Event is charged by a filter that is valid for adaptive composition (privacy.filter) before the value is
        opened; a charge that does not fit raises before anything is read. Checks and prices depend on public facts
        only.
    Needs: Secrets made with true facts; samplers that draw exactly; one account for a population of units.
    Ref: Rogers, Roth, Ullman, Vadhan 2016 for filters.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.errors import ParameterError, UnknownAccount
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.integers import off_grid
from hubbub.privacy.budget import Budget
from hubbub.privacy.event import Event
from hubbub.privacy.filter import Filter, Spent
from hubbub.privacy.loss import Loss
from hubbub.privacy.sensitivity import ADDITIVE
from hubbub.release import Release
from hubbub.secret import Secret, opened


@dataclass(slots=True)
class _Account:
    filter: Filter
    spent: Spent


class Meter:
    """Accounts with budgets, held in memory. Safe to share between threads."""

    def __init__(self, accounts: Mapping[str, Budget]) -> None:
        if not accounts or not all(isinstance(budget, Budget) for budget in accounts.values()):
            raise ParameterError("accounts", "a mapping from account names to Budgets", accounts)
        self._accounts = {name: _Account(budget.filter, Spent()) for name, budget in accounts.items()}
        self._lock = threading.Lock()

    def measure(self, mechanism: Mechanism, secret: Secret[Any], *, label: str = "value") -> Release:
        """Check the fit, charge the Secret's own account, and only then open it and draw the answer."""
        if not isinstance(secret, Secret):
            raise ParameterError("secret", "a Secret", type(secret).__name__)
        facts = secret.facts
        facts.check_fit(mechanism)
        event = mechanism.event
        entry = self._charge(facts.account, event)
        answer = mechanism.draw(self._open(mechanism, secret))
        grid = facts.grid if facts.grid is not None and mechanism.needs.norm in ADDITIVE else Fraction(1)
        return Release(
            value=off_grid(answer, grid),
            mechanism=mechanism,
            event=event,
            account=facts.account,
            entry=entry,
            grid=grid,
            label=label,
        )

    def _open(self, mechanism: Mechanism, secret: Secret[Any]) -> Any:
        """The one place where a Secret is opened; ``hubbub.testing.replay`` looks on from here."""
        return opened(secret)

    def _charge(self, name: str, event: Event) -> int:
        account = self._account(name)
        charge = account.filter.charge_of(event)
        with self._lock:
            account.spent = account.filter.spend(account.spent, charge)
            return account.spent.charges

    def fits(self, mechanism: Mechanism, account: str) -> bool:
        """Whether one run of the mechanism would still fit into the account: free, and spends nothing."""
        held = self._account(account)
        return held.filter.fits(held.spent, held.filter.charge_of(mechanism.event))

    def spent(self, account: str) -> Loss:
        """What the account has spent so far, as a guarantee (an odometer)."""
        held = self._account(account)
        return held.filter.odometer(held.spent)

    def _account(self, name: str) -> _Account:
        try:
            return self._accounts[name]
        except KeyError:
            known = ", ".join(sorted(self._accounts))
            raise UnknownAccount(f"There is no account {name!r}. Known: {known}.", account=name) from None
