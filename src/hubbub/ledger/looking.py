"""Reading a ledger: by askers about themselves, and by whoever may open it about everyone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any

from hubbub.ledger import serving
from hubbub.ledger.book import entry_from, entry_of, head_of
from hubbub.ledger.entry import Entry, moment_of
from hubbub.ledger.holder import ACCOUNT, Holder, holder_of, holders_of
from hubbub.ledger.permission import Balances, account_of, all_failures, check_permission, limits_of
from hubbub.ledger.rules import no_such_holder
from hubbub.ledger.stores.store import StoreSession
from hubbub.ledger.terms import OWNER, Ask, Fact, Failures, Grant, Statement, Waiting
from hubbub.privacy.filter import Room, Spent
from hubbub.privacy.ways import Payer

_PAGE = 1000


class Looking(ABC):
    """The half of a ledger that writes nothing."""

    _clock: Callable[[], int]

    @abstractmethod
    def _looking(self) -> AbstractContextManager[StoreSession]:
        """A session to read in."""

    def _now(self, session: StoreSession) -> int:
        """Ledger time: the clock's, unless the clock has gone back."""
        return max(self._clock(), head_of(session).time)

    # What concerns one asker. Free paths of a database go by these alone.

    def check_grant(self, account: str, principal: str) -> None:
        """Raise GrantError where the principal may not ask of the account now; the owner always may."""
        if principal != OWNER:
            with self._looking() as session:
                check_permission(session, account, principal, now=self._now(session))

    def remaining(self, account: str, principal: str = OWNER) -> Room:
        """Return the room that the principal has: every balance that it counts against must admit what it asks."""
        return self.payer(account, principal).room

    def payer(self, account: str, principal: str = OWNER) -> Payer:
        """Return who pays for what the principal asks: how the account counts, and the room that is left."""
        with self._looking() as session:
            view = Balances(session=session, now=self._now(session))
            project = check_permission(session, account, principal, now=view.now)
            limits = limits_of(session, account, principal=principal, project=project)
            own = account_of(session, account)
            return Payer(terms=own.filter, room=view.remainder_of([own, *limits]))

    def waiting(self, ask: Ask) -> Waiting | None:
        """Return the terms of the charge that waits for this principal's answer to this question, if any.

        Those of the first version say nothing of their ways, and nor does this: the way of before.
        """
        with self._looking() as session:
            content = serving.waiting_charge(session, ask)
        return None if content is None else _terms_of(content)

    def list_free(self, ask: Ask) -> list[Waiting]:
        """List the terms of charges for this question, at this ε or more, whose answers cost the principal nothing."""
        with self._looking() as session:
            return [_terms_of(content) for content in serving.list_free(session, ask)]

    def is_served(self, ask: Ask) -> bool:
        """Return whether an answer is stored that the principal would be served for nothing."""
        with self._looking() as session:
            return serving.is_served(session, ask)

    def would_charge(self, ask: Ask) -> bool:
        """Return True if a request would be a charge of its own, as far as this principal's own past tells."""
        with self._looking() as session:
            return serving.would_charge(Balances(session=session, now=self._now(session)), ask)

    def check(self, asks: Sequence[Ask]) -> None:
        """Raise what these requests, one after the other, would be refused with now. Nothing is reserved by it."""
        with self._looking() as session:
            serving.check(Balances(session=session, now=self._now(session)), asks)

    def holds(self, charge: int, principal: str) -> bool:
        """Return True if a principal was given the answer that a charge paid for, or may have it for nothing."""
        with self._looking() as session:
            return serving.holds(session, charge, principal)

    def recall(self, account: str, name: str, *, version: str = "1") -> Fact | None:
        """A fact that was bought before."""
        with self._looking() as session:
            rows = session.rows(
                "SELECT entry FROM facts WHERE account = ? AND version = ? AND name = ?", account, version, name
            )
            if not rows:
                return None
            entry = entry_of(session, rows[0][0])
        content = entry.content
        return Fact(
            account=account,
            version=version,
            name=name,
            value=content["value"],
            entry=entry.seq,
            paid=content["paid"],
        )

    # What anyone may look at who can read the ledger.

    def statement(self, account: str, kind: str = ACCOUNT, name: str = "") -> Statement:
        """Return the statement of an account, or of a project or principal under it."""
        with self._looking() as session:
            own = account_of(session, account)
            holder = own if kind == ACCOUNT else holder_of(session, account, kind, name)
        if holder is None:
            raise no_such_holder(account, kind, name)
        return self._statement_of(holder)

    def statements(self) -> list[Statement]:
        """Return the statements of all holders, accounts first."""
        with self._looking() as session:
            holders = holders_of(session)
        return [self._statement_of(holder) for holder in holders]

    def grants(self) -> list[Grant]:
        """Return all grants: principals, and the accounts from which they may spend."""
        with self._looking() as session:
            rows = session.rows(
                "SELECT account, principal, project, expires, revoked, entry FROM grants ORDER BY account, principal"
            )
        return [
            Grant(
                account=account,
                principal=principal,
                project=project,
                expires=None if expires is None else moment_of(expires),
                revoked=bool(revoked),
                entry=entry,
            )
            for account, principal, project, expires, revoked, entry in rows
        ]

    def failures(self) -> list[Failures]:
        """Whom the engine has failed after a charge, and how often since the owner last looked."""
        with self._looking() as session:
            return all_failures(session)

    def entries(self, *, first: int = 1, last: int | None = None) -> Iterator[Entry]:
        """The entries as they are stored, in order and unchecked; ``verify`` checks them."""
        while last is None or first <= last:
            upto = first + _PAGE - 1 if last is None else min(last, first + _PAGE - 1)
            with self._looking() as session:
                rows = session.rows(
                    "SELECT seq, time, kind, body, hash FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq",
                    first,
                    upto,
                )
            if not rows:
                return
            yield from map(entry_from, rows)
            first = upto + 1

    def _statement_of(self, holder: Holder) -> Statement:
        period = holder.period_at(self._clock())
        spent = holder.spent if period == holder.period else Spent()
        return Statement(
            account=holder.account,
            kind=holder.kind,
            name=holder.name,
            budget=holder.budget,
            renewal=holder.renewal,
            opened=moment_of(holder.opened),
            since=moment_of(holder.since(period)),
            period=period,
            spent=spent,
            left=holder.filter.remaining(spent),
            odometer=holder.filter.odometer(spent),
            closed=holder.closed,
        )


def _terms_of(content: Mapping[str, Any]) -> Waiting:
    ways = tuple((name, Fraction(epsilon)) for name, epsilon in content.get("ways", []))
    return Waiting(
        ways=ways,
        bought=Fraction(content.get("bought", 0)),
        epsilon=Fraction(content["epsilon"] or 0),
        delta=Fraction(content["delta"]),
    )
