"""Permission to ask of an account: a valid grant, an allowance of failures, and every cap that a charge counts against.

A principal learns of a cap that it shares with others only what it can still spend itself. How often others have asked
and what they have left beyond that is not in any refusal, and its own limit is the first to refuse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hubbub.errors import Frozen, GrantError, GrantExpired, LedgerCorrupt, UnknownAccount
from hubbub.ledger.entry import day_of, moment_of
from hubbub.ledger.holder import ACCOUNT, PRINCIPAL, PROJECT, Holder, checksum, holder_of, present
from hubbub.ledger.stores.store import Row, StoreSession
from hubbub.ledger.terms import ALLOWANCE, OWNER, Failures
from hubbub.privacy.filter import FREE, Charge, Room, Spent, history_of, refusal

_COLUMNS = "account, principal, many"


def failures_of(session: StoreSession, account: str, principal: str) -> Failures:
    """One count, checked against its seal.

    No index is asked: a flipped bit in one would hide a row and lend a new allowance. Few are ever here.
    """
    rows = session.rows(
        f"SELECT {_COLUMNS}, seal FROM failures WHERE account || '' = ? AND principal || '' = ?", account, principal
    )
    return _from(rows[0]) if rows else Failures(account=account, principal=principal, many=0)


def all_failures(session: StoreSession) -> list[Failures]:
    """All counts that are not zero."""
    rows: Sequence[Row] = session.rows(f"SELECT {_COLUMNS}, seal FROM failures ORDER BY account, principal")
    return [found for found in map(_from, rows) if found.many]


def keep_failures(session: StoreSession, failures: Failures) -> None:
    """Write a count, with its seal."""
    fields = (failures.account, failures.principal, failures.many)
    session.run(
        f"INSERT INTO failures ({_COLUMNS}, seal) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (account, principal) DO UPDATE SET many = excluded.many, seal = excluded.seal",
        *(*fields, checksum(fields)),
    )


def _from(row: Row) -> Failures:
    *fields, seal = row
    account, principal, many = fields
    if checksum(fields) != seal:
        raise LedgerCorrupt(f"The failures of {principal!r} are not what was written. Restore the newest backup.")
    return Failures(account=account, principal=principal, many=many)


def check_permission(session: StoreSession, account: str, principal: str, *, now: int) -> str | None:
    """Return the project under which the principal may spend now; GrantError where it may not."""
    if principal == OWNER:
        return None
    who = f"{principal!r} has no grant on account {account!r}"
    operands = {"account": account, "principal": principal}
    rows = session.rows(
        "SELECT account, principal, project, expires, revoked, entry, seal FROM grants "
        "WHERE account = ? AND principal = ?",
        *(account, principal),
    )
    if not rows:
        raise GrantError(f"{who}. Ask its owner for one: hubbub budget grant.", **operands)
    *fields, seal = rows[0]
    if checksum(fields) != seal:
        raise LedgerCorrupt(f"The grant of {principal!r} is not what was written. Restore the newest backup.")
    project: str | None
    project, expires, revoked = fields[2:5]
    if revoked:
        raise GrantError(f"{who} any more: it was revoked. Ask its owner for a new one.", **operands)
    if expires is not None and now >= expires:
        until = f"{moment_of(expires):%Y-%m-%d %H:%M} UTC"
        raise GrantExpired(
            f"The grant of {principal!r} on account {account!r} was good until {until}. Ask its owner for a new one.",
            **operands,
        )
    return project


def refuse_frozen(session: StoreSession, account: str, principal: str, charge: int | None = None) -> None:
    """Raise Frozen where the engine has failed a principal so often that its owner must look first."""
    if principal == OWNER:
        return
    failures = failures_of(session, account, principal)
    if failures.frozen:
        stands = "" if charge is None else f" The charge (entry {charge}) stands: ask again afterwards."
        raise Frozen(
            f"{principal!r} is frozen on account {account!r}: the engine failed {failures.many} times after a charge, "
            f"and {ALLOWANCE} is all that is allowed. Ask its owner to look, and then: hubbub budget thaw.{stands}",
            account=account,
            principal=principal,
            failures=failures.many,
            entry=charge,
        )


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
        return spent.plus(waiting, charges=0)

    def fits(self, holders: Sequence[Holder], charge: Charge) -> bool:
        """Return True if all holders can pay."""
        return all(holder.filter.fits(self.spending_of(holder), charge) for holder in holders)

    def remainder_of(self, holders: Sequence[Holder]) -> Room:
        """Return the room that all of them leave."""
        rooms = [holder.filter.remaining(self.spending_of(holder)) for holder in holders]
        return Room.of(part for room in rooms for part in room.parts)

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
