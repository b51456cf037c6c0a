"""Balances: what an account, a project or a principal may spend, and what it has spent in the present period."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from hubbub.errors import LedgerCorrupt
from hubbub.ledger.stores.store import Row, StoreSession
from hubbub.ledger.terms import Renewal
from hubbub.privacy.filter import Budget, Filter, Spent
from hubbub.privacy.sensitivity import Neighbors

ACCOUNT, PROJECT, PRINCIPAL = "account", "project", "principal"
"""Who can hold a budget. An account's own holder has no name beside the account's."""

BEGUN, FIRST_PERIOD = "begun", "first_period"
"""In terms that changed the length of periods: when that was, and which period it was. What that one has spent counts
until the first new period ends; counted from the opening, a new length would renew a budget at once."""

_COLUMNS = "account, kind, name, terms, opened, period, loss, failure, charges, pure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One balance."""

    account: str
    kind: str
    name: str
    terms: str
    """Budget and renewal, as canonical JSON."""
    opened: int
    period: int
    spent: Spent

    @property
    def budget(self) -> Budget:
        """The budget of one period."""
        return _read(self.terms)[0]

    @property
    def renewal(self) -> Renewal | None:
        """The policy under which it is renewed, if any."""
        return _read(self.terms)[1]

    @property
    def filter(self) -> Filter:
        """The filter that counts its spending."""
        return _read(self.terms)[2]

    @property
    def closed(self) -> bool:
        """True where its owner lets nothing more be spent."""
        return self.filter.closed

    @property
    def title(self) -> str:
        """For people."""
        own = f'account "{self.account}"'
        return own if self.kind == ACCOUNT else f'{self.kind} "{self.name}" of {own}'

    def period_at(self, time: int) -> int:
        """The number of the period that a moment falls into; never an earlier one than the present."""
        if self.renewal is None:
            return self.period
        begun, first = self._periods
        return max(self.period, first + (time - begun) // self.renewal.microseconds)

    def since(self, period: int) -> int:
        """Return the time at which a period began."""
        begun, first = self._periods
        return begun + ((period - first) * self.renewal.microseconds if self.renewal else 0)

    @property
    def _periods(self) -> tuple[int, int]:
        """When the periods of the present length began, and with which number."""
        terms = json.loads(self.terms)
        return terms.get(BEGUN, self.opened), terms.get(FIRST_PERIOD, 0)


def holder_of(session: StoreSession, account: str, kind: str, name: str) -> Holder | None:
    """One balance, checked against its seal; None where there is none.

    That there is none is not left to the index: a flipped bit in it would hide a balance, and opening the account
    again, as programs do whenever they start, would lend all that was spent.
    """
    rows = session.rows(
        f"SELECT {_COLUMNS}, seal FROM holders WHERE account = ? AND kind = ? AND name = ?", account, kind, name
    )
    if rows:
        return _from(rows[0])
    hidden = "SELECT seal FROM holders WHERE account || '' = ? AND kind || '' = ? AND name || '' = ?"
    if session.rows(hidden, account, kind, name):
        raise LedgerCorrupt(f"The balance of {kind} {name or account!r} is not indexed. Restore the newest backup.")
    return None


def holders_of(session: StoreSession) -> list[Holder]:
    """All balances."""
    return [_from(row) for row in session.rows(f"SELECT {_COLUMNS}, seal FROM holders ORDER BY account, kind, name")]


def present(session: StoreSession, account: str, kind: str, name: str) -> Holder:
    """A balance that must be there."""
    holder = holder_of(session, account, kind, name)
    if holder is None:
        raise LedgerCorrupt(f"The balance of {kind} {name or account!r} is lost. Restore the newest backup.")
    return holder


def keep(session: StoreSession, holder: Holder) -> None:
    """Write a balance, with its seal."""
    spent = holder.spent
    fields = (
        *(holder.account, holder.kind, holder.name, holder.terms, holder.opened, holder.period),
        *(spent.loss, spent.failure, spent.charges, spent.pure),
    )
    session.run(
        f"INSERT INTO holders ({_COLUMNS}, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (account, kind, name) DO UPDATE SET terms = excluded.terms, period = excluded.period, "
        "loss = excluded.loss, failure = excluded.failure, charges = excluded.charges, pure = excluded.pure, "
        "seal = excluded.seal",
        *(*fields, checksum(fields)),
    )


def filter_of(terms: str) -> Filter:
    """The filter of terms, as canonical JSON."""
    return _read(terms)[2]


def checksum(fields: Sequence[object]) -> str:
    """A checksum over a row that decides what may be spent: a flipped bit must not lend."""
    return hashlib.sha256(repr(tuple(fields)).encode()).hexdigest()[:32]


def _from(row: Row) -> Holder:
    *fields, seal = row
    if checksum(fields) != seal:
        raise LedgerCorrupt(
            f"The balance of {row[1]} {row[2] or row[0]!r} is not what was written. Restore the newest backup."
        )
    account, kind, name, terms, opened, period, loss, failure, charges, pure = fields
    spent = Spent(loss=loss, failure=failure, charges=charges, pure=pure)
    return Holder(account=account, kind=kind, name=name, terms=terms, opened=opened, period=period, spent=spent)


@lru_cache(maxsize=4096)
def _read(terms: str) -> tuple[Budget, Renewal | None, Filter]:
    read = json.loads(terms)
    budget = Budget(
        epsilon=Fraction(read["epsilon"]), delta=Fraction(read["delta"]), neighbors=Neighbors(read["neighbors"])
    )
    days = read["renewal_days"]
    counted = replace(budget.filter, closed=True) if read.get("closed") else budget.filter
    return budget, None if days is None else Renewal(days=days), counted
