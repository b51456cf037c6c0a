"""The ledger: open it, ask it, look into it."""

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from hubbub.errors import LedgerReadOnly, LedgerRolledBack, ParameterError
from hubbub.ledger import owning, rules
from hubbub.ledger.book import Transaction
from hubbub.ledger.holder import ACCOUNT, PRINCIPAL, PROJECT
from hubbub.ledger.looking import Looking
from hubbub.ledger.stores.opening import hash_at, open_store, store_at
from hubbub.ledger.stores.store import Store, StoreSession
from hubbub.ledger.stores.writer import Writer
from hubbub.ledger.terms import Ask, Charged, Renewal, Statement, Ticket
from hubbub.ledger.verify.marks import Marks
from hubbub.privacy.filter import Budget

if TYPE_CHECKING:
    from hubbub.ledger.verify.verify import Progress, Verified

T = TypeVar("T")


def wall_clock() -> int:
    """Microseconds since 1970, as the system's clock has it."""
    return time.time_ns() // 1000


class Ledger(Looking):
    """Budgets that survive crashes, races and clever people. Safe to share between threads, and across a fork.

    ``location`` is a path (SQLite) or a ``postgresql://`` URL; ``marks`` says where high-water marks are kept. With
    ``writes=False`` it can be looked at, and nothing can be spent.
    """

    def __init__(
        self,
        location: str | Path | Store,
        *,
        create: bool = True,
        writes: bool = True,
        marks: Marks | None = None,
        clock: Callable[[], int] = wall_clock,
        patience: float = 5.0,
    ) -> None:
        self.store = store_at(location, patience=patience) if isinstance(location, str | Path) else location
        self._marks = marks or Marks()
        self._clock, self._patience, self._writes = clock, patience, writes
        self._lock = threading.RLock()
        self._open(create=create)

    def _open(self, *, create: bool) -> None:
        self._pid = os.getpid()
        head = open_store(
            self.store,
            marks=self._marks,
            clock=self._clock,
            create=create,
            writes=self._writes,
            patience=self._patience,
        )
        self.name = head.ledger
        self._reader = self.store.reader()
        self._writer = (
            Writer(
                self.store,
                clock=self._clock,
                admit=self._admit,
                committed=self._marks.raise_to,
                patience=self._patience,
            )
            if self._writes
            else None
        )

    def _admit(self, tx: Transaction) -> None:
        """The ledger that was opened, and not an older one: also when the writer connects late, or again."""
        if tx.head.ledger != self.name:
            raise LedgerRolledBack(
                f"Another ledger was put at {self.store.location} while it was in use. Put the right one back, then "
                "open it again."
            )
        self._marks.check(tx.head, lambda seq: hash_at(tx.session, seq))

    def close(self) -> None:
        """Finish all waiting work and close."""
        if self._pid == os.getpid():
            with self._lock:
                self._reader.close()  # first: only a connection that can write folds the log away when it goes last
            if self._writer is not None:
                self._writer.close()
            self._marks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.store.location!r})"

    # What owners do.

    def open_account(
        self,
        name: str,
        budget: Budget,
        *,
        population: str = "",
        renewal: Renewal | None = None,
        sources: Sequence[str] = (),
    ) -> Statement:
        """An account for a population of units. It keeps the budget it was opened with, until ``set_budget``.

        ``sources`` name the data it is for. A new account for data that has one already is a second budget: it warns.
        """

        def work(tx: Transaction) -> str | None:
            return owning.open_account(tx, name, budget, population=population, renewal=renewal, sources=sources)

        other = self._write(work)
        if other is not None:
            warnings.warn(
                f"Account {name!r} is opened for data that account {other!r} was opened for: the same people have two "
                "budgets now, whose losses add up. To give an account more, its owner runs: hubbub budget set.",
                UserWarning,
                stacklevel=2,
            )
        return self.statement(name)

    def set_budget(
        self,
        account: str,
        budget: Budget | None = None,
        *,
        project: str | None = None,
        principal: str | None = None,
        closed: bool = False,
    ) -> Statement:
        """Raise, lower, close or reopen the budget of an account, or of a project or principal under it.

        What was spent stays spent. The account's claim is that of the greatest budget that was ever in force.
        """
        if project is not None and principal is not None:
            raise ParameterError("principal", "None beside a project: one budget is set at a time", principal)
        kind = PROJECT if project is not None else PRINCIPAL if principal is not None else ACCOUNT
        name = project or principal or ""
        self._write(lambda tx: owning.set_budget(tx, account, budget, kind=kind, name=name, closed=closed))
        return self.statement(account, kind, name)

    def open_project(self, account: str, project: str, limit: Budget, *, renewal: Renewal | None = None) -> None:
        """A limit below an account's, for all principals whose grants name the project."""
        self._write(lambda tx: owning.open_project(tx, account, project, limit, renewal=renewal))

    def grant(
        self,
        account: str,
        principal: str,
        *,
        limit: Budget | None = None,
        project: str | None = None,
        expires: datetime | None = None,
        renewal: Renewal | None = None,
    ) -> None:
        """Let a principal spend from an account, up to its own limit and until a moment."""
        self._write(
            lambda tx: owning.grant(
                tx, account, principal, limit=limit, project=project, expires=expires, renewal=renewal
            )
        )

    def revoke(self, account: str, principal: str) -> None:
        """End a grant now."""
        self._write(lambda tx: owning.revoke(tx, account, principal))

    def thaw(self, account: str, principal: str) -> int:
        """Give a new allowance, after the owner has looked into the failures. Return the number of failures."""
        return self._write(lambda tx: owning.thaw(tx, account, principal))

    def publish(self, charge: int) -> None:
        """Mark a charge's answer as public: everyone with a grant is served it for nothing."""
        self._write(lambda tx: owning.publish(tx, charge))

    # What askers do: reserve, read, draw, settle, reply.

    def reserve(self, ask: Ask, *, meanwhile: Callable[[], None] | None = None) -> Ticket:
        """Pay for a question, durably, or find an earlier payment for it. Nothing may be read earlier.

        ``meanwhile`` is called once while the charge is decided and written. It may be in vain, since the charge may
        still be refused or an answer be found, and it may read nothing private.
        """
        writer = self._writing()
        outcome = writer.submit(lambda tx: rules.reserve(tx, ask))
        if meanwhile is not None:  # not by the writer's thread: whoever it wakes takes its core, and the commit waits
            meanwhile()
        return writer.wait(outcome)

    def settle(self, paid: Charged, answer: str) -> str:
        """Store the answer durably and give back the one to reply with: the first that was stored."""
        return self._write(lambda tx: rules.settle(tx, paid.entry, answer))

    def fail(self, paid: Charged, *, settled: bool = False) -> str | None:
        """Count a failure after the charge. Where an answer is stored, return it instead, unless ``settled``."""
        return self._write(lambda tx: rules.fail(tx, paid.entry, settled=settled))

    def check_allowance(self, paid: Charged) -> None:
        """Raise Frozen or GrantError where whoever paid for this charge is to hear nothing more."""
        with self._looking() as session:
            rules.check_allowance(session, paid.entry, now=self._now(session))

    def remember(self, account: str, name: str, value: Any, *, paid: int, version: str = "1") -> None:
        """Keep a fact about the data that was bought with a charge."""
        self._write(lambda tx: rules.remember(tx, account, name, value, version=version, paid=paid))

    def verify(self, *, progress: "Progress | None" = None) -> "Verified":
        """Check every entry, every cap and every balance; LedgerCorrupt names the first entry that is bad."""
        from hubbub.ledger.verify.verify import verify

        self._after_fork()
        return verify(self, progress=progress)

    def _write(self, work: Callable[[Transaction], T]) -> T:
        return self._writing().run(work)

    def _writing(self) -> Writer:
        self._after_fork()
        if self._writer is None:
            raise LedgerReadOnly(f"The ledger {self.store.location} was opened only to look at. Open it for writing.")
        return self._writer

    @contextmanager
    def _looking(self) -> Iterator[StoreSession]:
        self._after_fork()
        with self._lock:
            yield self._reader

    def _after_fork(self) -> None:
        """A child has no writer thread, and must not touch its parent's connections: it opens its own."""
        if self._pid != os.getpid():
            self._lock = threading.RLock()
            self._open(create=False)
