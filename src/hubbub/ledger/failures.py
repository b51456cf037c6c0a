"""The number of engine failures of each principal after a charge: the table behind the failure allowance."""

from collections.abc import Sequence

from hubbub.errors import LedgerCorrupt
from hubbub.ledger.holder import checksum
from hubbub.ledger.stores.store import Row, StoreSession
from hubbub.ledger.terms import Failures

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
