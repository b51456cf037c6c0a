"""Every cap that a charge counts against: the account's, and those of the project and the principal below it.

A principal learns of a cap that it shares with others only what it can still spend itself. How often others have asked
and what they have left beyond that is not in any refusal, and its own limit is the first to refuse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hubbub.errors import UnknownAccount
from hubbub.ledger.entry import day_of
from hubbub.ledger.holder import ACCOUNT, PRINCIPAL, PROJECT, Holder, holder_of, present
from hubbub.ledger.stores.store import StoreSession
from hubbub.ledger.terms import OWNER
from hubbub.privacy.filter import Charge, Spent, history_of, refusal

FREE = Charge(loss=0)

_ORDER = (PRINCIPAL, PROJECT, ACCOUNT)
"""Who refuses first."""

Pending = Mapping[tuple[str, str], Charge]
"""What is about to be charged, by kind and name of the holder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balances:
    """The balances at one moment, as they will be once everything pending is charged."""

    session: StoreSession
    now: int
    """Ledger time."""
    pending: Pending = field(default_factory=dict)

    def spending_of(self, holder: Holder) -> Spent:
        """Return the amount that a holder has spent in the current period."""
        spent = holder.spent if holder.period_at(self.now) == holder.period else Spent()
        waiting = self.pending.get((holder.kind, holder.name), FREE)
        return Spent(loss=spent.loss + waiting.loss, failure=spent.failure + waiting.failure, charges=spent.charges)

    def fits(self, holders: Sequence[Holder], charge: Charge) -> bool:
        """Return True if all holders can pay."""
        return all(holder.filter.fits(self.spending_of(holder), charge) for holder in holders)

    def remainder_of(self, holders: Sequence[Holder]) -> Charge:
        """Return the largest charge that all of them can pay, in each part."""
        parts = [holder.filter.remaining(self.spending_of(holder)) for holder in holders]
        return Charge(loss=min(part.loss for part in parts), failure=min(part.failure for part in parts))

    def check(self, bills: Sequence[tuple[Holder, Charge]], *, principal: str) -> None:
        """Raise BudgetExceeded where somebody cannot pay what it is charged; the asker's own limit is the first."""
        for holder, charge in sorted(bills, key=lambda bill: _ORDER.index(bill[0].kind)):
            spent = self.spending_of(holder)
            if holder.filter.fits(spent, charge):
                continue
            own = principal == OWNER or holder.kind == PRINCIPAL
            history = history_of(spent, since=day_of(holder.since(holder.period_at(self.now)))) if own else ""
            left = self.remainder_of([holder] if own else [other for other, _ in bills])
            raise refusal(holder.filter, charge, left=left, whose=holder.title, history=history)


def account_of(session: StoreSession, name: str) -> Holder:
    """The account's own balance, or UnknownAccount."""
    holder = holder_of(session, name, ACCOUNT, "")
    if holder is None:
        raise UnknownAccount(
            f"There is no account {name!r} in this ledger. Open it, or see what there is with: hubbub budget.",
            account=name,
        )
    return holder


def limits_of(session: StoreSession, account: str, *, principal: str, project: str | None) -> list[Holder]:
    """Return the limits that a request counts against beside the account's: the project's, then the principal's own."""
    under = [] if project is None else [(PROJECT, project)]
    own = [] if principal == OWNER else [(PRINCIPAL, principal)]
    return [present(session, account, kind, name) for kind, name in under + own]
