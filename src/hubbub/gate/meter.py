"""The gate: charge, then open, then draw, then keep. There is no other way to an answer.

Privacy:
    Claim: whatever is asked, in whatever order, and however later questions depend on earlier answers, all answers of
        one account together keep its budget (ε, δ).
    Proof: a mechanism runs only if it fits what is proven about the Secret (Facts.check_fit), so its Event is true of
        it; the Event is charged by a filter that is valid for adaptive composition (privacy.filter) before the value is
        opened; a charge that does not fit raises before anything is read. Checks and prices depend on public facts
        only. On a ledger the charge is durable before the value is opened, and what is replied is the one answer that
        is stored for it (ledger.rules).
    Needs: Secrets made with true facts; samplers that draw exactly; one account for a population of units.
    Ref: Rogers, Roth, Ullman, Vadhan 2016 for filters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, TypeVar, overload

from hubbub.errors import AccountingError, EngineError, ParameterError
from hubbub.gate.attempt import Log, attempt
from hubbub.gate.purse import InMemory, OnLedger, Payment, Prepaid, Purse
from hubbub.gate.receipts import Receipts
from hubbub.gate.release import Release
from hubbub.gate.secret import Secret, open_secret
from hubbub.gate.watch import Watch
from hubbub.ledger import OWNER, Ask, Ledger, Ticket
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.integers import off_grid
from hubbub.mechanisms.sparse.sparse_vector import SparseVector
from hubbub.mechanisms.sparse.threshold_stream import Stream
from hubbub.parameters import Real, positive
from hubbub.privacy.filter import Budget
from hubbub.privacy.loss import Loss
from hubbub.privacy.sensitivity import ADDITIVE

T = TypeVar("T")


class Meter:
    """Accounts with budgets: held in memory, or in a ledger (``Meter.on``). Safe to share between threads.

    Whatever goes wrong after a charge raises the one fixed EngineError. ``log`` receives what really happened, which
    may hold exact values: it is for the owner's eyes.
    """

    def __init__(self, accounts: Mapping[str, Budget] | Purse, *, log: Log | None = None) -> None:
        self.log = log
        self._purse = InMemory(accounts) if isinstance(accounts, Mapping) else accounts
        if not isinstance(self._purse, InMemory | OnLedger | Prepaid):
            raise ParameterError("accounts", "a mapping from account names to Budgets", accounts)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Meter":
        """Itself: a copied account would be a budget out of nothing, and scikit-learn's ``clone`` copies parameters."""
        return self

    @classmethod
    def on(
        cls,
        ledger: Ledger,
        *,
        principal: str = OWNER,
        policy: str = "",
        version: str = "1",
        log: Log | None = None,
    ) -> "Meter":
        """A gate whose charges and answers are on disk before anybody sees them."""
        return cls(OnLedger(ledger, principal=principal, policy=policy, version=version), log=log)

    def measure(
        self, mechanism: Mechanism, secret: Secret[Any], *, label: str = "value", key: str | None = None
    ) -> Release:
        """Check the fit, charge the Secret's own account, and only then open it and draw the answer.

        On a ledger, the same ``key`` again gives the same answer again, also after a crash, and costs nothing.
        """
        if not isinstance(secret, Secret):
            raise ParameterError("secret", "a Secret", type(secret).__name__)
        facts = secret.facts
        facts.check_fit(mechanism)
        event = mechanism.event
        grid = facts.grid if facts.grid is not None and mechanism.needs.norm in ADDITIVE else Fraction(1)
        payment = self._purse.pay(facts.account, event, label=label, key=key)

        def release(answer: Any) -> Release:
            return Release(
                value=off_grid(answer, grid),
                mechanism=mechanism,
                event=event,
                account=facts.account,
                entry=payment.entry,
                grid=grid,
                label=label,
                stored=payment.stored,
            )

        def draw() -> tuple[Any, Release]:
            drawn = self._purse.encode(mechanism.draw(self._open(mechanism, secret)))
            return drawn, release(self._purse.decode(drawn))

        if payment.answered:
            return release(payment.answer)
        made, failed = attempt(draw, log=self.log)
        if failed or made is None:
            payment = self._purse.fail(payment)
            if not payment.answered:
                raise EngineError
            return release(payment.answer)
        drawn, shown = made
        stored = self._purse.keep(payment, drawn)
        return shown if stored is drawn else release(self._purse.decode(stored))

    def count_failure(self, release: Release) -> None:
        """Count that what was computed after a measurement failed, against whoever paid for the measurement."""
        self._purse.fail(Payment(release.entry), settled=True)

    def watch(self, mechanism: SparseVector, *, account: str, grid: Real = 1, label: str = "watch") -> Watch:
        """Pay for a whole stream of questions against one threshold, and only then draw what it is compared with.

        Below the threshold any number of Secrets of this account may be asked about; ``mechanism.count`` answers above
        it were paid for. Threshold and sensitivity count steps of ``grid``, which must be that of every question.
        """
        step = positive("grid", grid)
        if not isinstance(mechanism, SparseVector):
            raise ParameterError("mechanism", "a SparseVector", type(mechanism).__name__)
        if isinstance(self._purse, Prepaid):
            raise AccountingError(
                "What was paid for in advance is answered as a whole, or drawn again: measure a SparseVector instead."
            )
        payment = self._purse.pay(account, mechanism.event, label=label, key=None)

        def begin() -> tuple[Any, Watch]:
            watch = Watch(
                stream=Stream(mechanism),
                account=account,
                grid=step,
                entry=payment.entry,
                opens=self._open,
                fails=lambda: self._purse.fail(payment, settled=True),
                checks=lambda: self._purse.check(payment),
                log=self.log,
            )
            return self._purse.encode("opened"), watch

        made, failed = attempt(begin, log=self.log)
        if failed or made is None:
            self._purse.fail(payment)
            raise EngineError
        settled, watch = made
        # Settled at once: a charge without an answer would let whoever retries draw another noisy threshold.
        self._purse.keep(payment, settled)
        return watch

    def _open(self, mechanism: Mechanism, secret: Secret[Any]) -> Any:
        """The one place where a Secret is opened; ``hubbub.testing.replay`` looks on from here."""
        return open_secret(secret)

    def fits(self, mechanism: Mechanism, account: str) -> bool:
        """Return whether one run of the mechanism would still fit into the account: free, and spends nothing."""
        return self._purse.fits(account, mechanism.event)

    def spent(self, account: str) -> Loss:
        """Return what the account has spent so far, as a guarantee (an odometer)."""
        return self._purse.spent(account)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The message that may be sent: the stored answer, and the entry that paid for it."""

    entry: int
    answer: str
    stored: datetime | None = field(default=None, compare=False)
    """When it was stored, if that was before it was asked for; None where it is fresh."""
    epsilon: Fraction | None = field(default=None, compare=False)
    """What it was drawn at, which is more than was asked for where an earlier answer is served again."""


@overload
def answered(
    ledger: Ledger,
    ask: Ask,
    work: Callable[[Meter], str],
    *,
    meanwhile: Callable[[], None] | None = None,
    log: Log | None = None,
    receipts: Receipts | None = None,
) -> Reply: ...


@overload
def answered(
    ledger: Ledger,
    ask: Ask,
    work: Callable[[Meter], str],
    *,
    present: Callable[[Reply], T],
    meanwhile: Callable[[], None] | None = None,
    log: Log | None = None,
    receipts: Receipts | None = None,
) -> T: ...


def answered(
    ledger: Ledger,
    ask: Ask,
    work: Callable[[Meter], str],
    *,
    present: Callable[[Reply], Any] | None = None,
    meanwhile: Callable[[], None] | None = None,
    log: Log | None = None,
    receipts: Receipts | None = None,
) -> Any:
    """Take one question from reserve to reply, or from the ledger where it was answered before.

    All its events are paid first; ``work`` gets a gate that lets through what they have paid for; its answer is stored,
    and what ``present`` makes of the stored one is returned. ``meanwhile`` is for what reads nothing and can be done
    while the charge is decided and written; ``receipts`` note what was charged, for whoever breaks it off.

    Privacy:
        Claim: beside what the events pay for, an asker learns of a fresh question whether it failed, and that at most
            ``ALLOWANCE`` times between two thaws.
        Proof: after the charge three things happen: the work, its presentation, and the transaction that stores the
            answer or counts the failure. Every exception of the first two, of whatever type, leads to the same
            transaction (``Ledger.fail``) and then to an EngineError without text, cause or context of its own. What is
            presented later is a function of what is stored, hence of releases. DataChanged depends on the time stamps
            of files alone (``policy.stamps``), not on rows.
        Needs: ``ledger.rules.fail``; a ``log`` that no asker reads.
        Ref: SOUNDNESS 8, 18, 35.
    """
    show = present or _as_it_is
    charged = Receipts() if receipts is None else receipts
    charged.begin(ask)
    ticket = ledger.reserve(ask, meanwhile=meanwhile)
    if ticket.answer is not None:
        charged.end(ticket)
        return show(_reply(ticket, ticket.answer, stored=ticket.stored))

    def draw() -> tuple[str, Any]:
        charged.end(ticket)
        drawn = work(Meter(Prepaid(ticket), log=log))
        drawn.encode()  # what no ledger can store fails here, where it is counted
        return drawn, show(_reply(ticket, drawn))

    made, failed = attempt(draw, log=log)
    if failed or made is None:
        stored = ledger.fail(ticket)
        if stored is None:
            raise EngineError
        return show(_reply(ticket, stored))
    drawn, shown = made
    stored = ledger.settle(ticket, drawn)
    return shown if stored == drawn else show(_reply(ticket, stored))


def _reply(ticket: Ticket, answer: str, *, stored: datetime | None = None) -> Reply:
    return Reply(entry=ticket.entry, answer=answer, stored=stored, epsilon=ticket.epsilon)


def _as_it_is(reply: Reply) -> Reply:
    return reply
