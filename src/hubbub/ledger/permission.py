"""Permission to ask of an account: a valid grant, and an allowance of failures that is not used up."""

from hubbub.errors import Frozen, GrantError, GrantExpired, LedgerCorrupt
from hubbub.ledger.entry import moment_of
from hubbub.ledger.failures import failures_of
from hubbub.ledger.holder import checksum
from hubbub.ledger.stores.store import StoreSession
from hubbub.ledger.terms import ALLOWANCE, OWNER


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
