"""Purses, which pay: accounts in memory, accounts in a ledger, or a question that was paid for in advance."""

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from hubbub.errors import AccountingError, ParameterError, UnknownAccount
from hubbub.ledger import OWNER, Ask, Ledger, Ticket
from hubbub.ledger.entry import canonical, read, write
from hubbub.ledger.holder import PRINCIPAL
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import Budget, Charge, Filter, Spent
from hubbub.privacy.loss import Loss


@dataclass(frozen=True, slots=True)
class Payment:
    """One paid draw: the entry that paid, and the answer if it was drawn before."""

    entry: int
    answer: Any = None
    answered: bool = False
    stored: datetime | None = None
    """When that answer was stored, if it was stored before this was asked."""


class Purse(Protocol):
    """The operations of a budget that the gate needs."""

    def pay(self, account: str, event: Event, *, label: str, key: str | None) -> Payment:
        """Charge, or raise; nothing is read before this returns."""

    def encode(self, answer: Any) -> Any:
        """Return an answer in the form that ``keep`` stores; raise here, and not there, where it has none."""

    def decode(self, stored: Any) -> Any:
        """Return the answer that was stored in this form."""

    def keep(self, payment: Payment, stored: Any) -> Any:
        """Store an encoded answer, and give back the one to reply with, encoded too."""

    def fail(self, payment: Payment, *, settled: bool = False) -> Payment:
        """Count a failure after the charge; where another draw was stored for it meanwhile, return the payment with it.

        ``settled`` says that the charge has an answer already, as that of a watch has, and the failure counts anyway.
        """

    def check(self, payment: Payment) -> None:
        """Refuse a payer whose failures have used up the allowance."""

    def fits(self, account: str, event: Event) -> bool:
        """Return whether the event could be paid for now."""

    def spent(self, account: str) -> Loss:
        """Return what the account has spent so far."""


class InMemory:
    """Accounts that end with the process."""

    def __init__(self, accounts: Mapping[str, Budget]) -> None:
        if not accounts or not all(isinstance(budget, Budget) for budget in accounts.values()):
            raise ParameterError("accounts", "a mapping from account names to Budgets", accounts)
        self._filters = {name: budget.filter for name, budget in accounts.items()}
        self._spent = dict.fromkeys(accounts, Spent())
        self._lock = threading.Lock()

    def pay(self, account: str, event: Event, *, label: str, key: str | None) -> Payment:
        """The number of the charge is its entry."""
        if key is not None:
            raise ParameterError("key", "None without a ledger, since nothing is kept to find again", key)
        terms = self._terms(account)
        charge = terms.charge_of(event)
        with self._lock:
            spent = self._spent[account] = terms.spend(self._spent[account], charge)
        return Payment(spent.charges)

    def encode(self, answer: Any) -> Any:
        """Leave it as it is."""
        return answer

    def decode(self, stored: Any) -> Any:
        """Leave it as it is."""
        return stored

    def keep(self, payment: Payment, stored: Any) -> Any:
        """Nothing is kept."""
        return stored

    def fail(self, payment: Payment, *, settled: bool = False) -> Payment:
        """Count nothing: accounts in memory have no principals beside their owner, who has the data."""
        return payment

    def check(self, payment: Payment) -> None:
        """Refuse nobody."""

    def fits(self, account: str, event: Event) -> bool:
        """Return whether the event could be paid for now."""
        terms = self._terms(account)
        return terms.fits(self._spent[account], terms.charge_of(event))

    def spent(self, account: str) -> Loss:
        """Return what the account has spent so far."""
        return self._terms(account).odometer(self._spent[account])

    def _terms(self, account: str) -> Filter:
        try:
            return self._filters[account]
        except KeyError:
            known = ", ".join(sorted(self._filters))
            raise UnknownAccount(f"There is no account {account!r}. Known: {known}.", account=account) from None


class OnLedger:
    """Every measurement is a question of its own; it is asked again only under the same key."""

    def __init__(self, ledger: Ledger, *, principal: str, policy: str, version: str) -> None:
        self._ledger, self._principal, self._policy, self._version = ledger, principal, policy, version

    def pay(self, account: str, event: Event, *, label: str, key: str | None) -> Payment:
        """Durable when this returns."""
        ask = Ask(
            account=account,
            question=canonical({"event": event.to_json(), "measure": label}),
            events=(event,),
            epsilon=None,
            principal=self._principal,
            policy=self._policy,
            version=self._version,
            key=uuid.uuid4().hex if key is None else key,
        )
        ticket = self._ledger.reserve(ask)
        if ticket.answer is None:
            return Payment(ticket.entry)
        return Payment(ticket.entry, answer=read(ticket.answer), answered=True, stored=ticket.stored)

    def encode(self, answer: Any) -> Any:
        """Write it as text."""
        return write(answer)

    def decode(self, stored: Any) -> Any:
        """Read what was written."""
        return read(stored)

    def keep(self, payment: Payment, stored: Any) -> Any:
        """Durable when this returns; another answer to the same charge may have been first."""
        return self._ledger.settle(payment, stored)

    def fail(self, payment: Payment, *, settled: bool = False) -> Payment:
        """Durable when this returns."""
        stored = self._ledger.fail(payment, settled=settled)
        return payment if stored is None else replace(payment, answer=read(stored), answered=True)

    def check(self, payment: Payment) -> None:
        """Frozen, where the allowance of failures is used up; GrantError, where the grant has ended."""
        self._ledger.check_allowance(payment)

    def fits(self, account: str, event: Event) -> bool:
        """Return whether every cap that the principal counts against has room."""
        charge = self._ledger.statement(account).budget.filter.charge_of(event)
        return self._ledger.remaining(account, self._principal).fits(charge)

    def spent(self, account: str) -> Loss:
        """Return what the account has spent in its present period; for a principal, what its own limit was charged."""
        self._ledger.check_grant(account, self._principal)
        if self._principal == OWNER:
            return self._ledger.statement(account).odometer
        return self._ledger.statement(account, PRINCIPAL, self._principal).odometer


class Prepaid:
    """The events of one question, paid for together; each is taken from what was paid, and no more."""

    def __init__(self, ticket: Ticket) -> None:
        self._ticket, self._terms = ticket, ticket.terms
        self._left = ticket.paid
        self._lock = threading.Lock()

    def pay(self, account: str, event: Event, *, label: str, key: str | None) -> Payment:
        """Take one event from what was paid."""
        self._check(account)
        charge = self._terms.charge_of(event)
        with self._lock:
            if not _covers(self._left, charge):
                raise AccountingError(
                    f"A {event.tag} event is not among those that entry {self._ticket.entry} has paid for.", event=event
                )
            self._left = _less(self._left, charge)
        return Payment(self._ticket.entry)

    def encode(self, answer: Any) -> Any:
        """Leave it as it is."""
        return answer

    def decode(self, stored: Any) -> Any:
        """Leave it as it is."""
        return stored

    def keep(self, payment: Payment, stored: Any) -> Any:
        """The question's answer is stored as a whole, by who asked it."""
        return stored

    def fail(self, payment: Payment, *, settled: bool = False) -> Payment:
        """Count nothing: the question fails as a whole, and ``answered`` counts it once."""
        return payment

    def check(self, payment: Payment) -> None:
        """Refuse nobody: the question is refused as a whole."""

    def fits(self, account: str, event: Event) -> bool:
        """Return whether the event is covered by what is left of the payment."""
        self._check(account)
        return _covers(self._left, self._terms.charge_of(event))

    def spent(self, account: str) -> Loss:
        """Return what was taken of the payment so far."""
        self._check(account)
        taken = _less(self._ticket.paid, self._left)
        return self._terms.odometer(Spent(charges=1, loss=taken.loss, failure=taken.failure, pure=taken.pure))

    def _check(self, account: str) -> None:
        if account != self._ticket.account:
            raise UnknownAccount(
                f"Entry {self._ticket.entry} has paid from account {self._ticket.account!r}, not {account!r}.",
                account=account,
            )


def _covers(paid: Charge, charge: Charge) -> bool:
    """Return True if what was paid covers a charge in every sum: whichever admitted it, all of them were charged."""
    if paid.pure is not None and (charge.pure is None or charge.pure > paid.pure):
        return False
    return charge.loss <= paid.loss and charge.failure <= paid.failure


def _less(paid: Charge, charge: Charge) -> Charge:
    pure = None if paid.pure is None or charge.pure is None else paid.pure - charge.pure
    return Charge(loss=paid.loss - charge.loss, failure=paid.failure - charge.failure, pure=pure)
