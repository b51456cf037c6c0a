"""Every charge counted again, and all charges of an account together, by a second accountant."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.errors import AccountingError, HubbubError, LedgerCorrupt, LedgerUnreachable
from hubbub.ledger.book import damage_at, head_of
from hubbub.ledger.entry import Entry, canonical
from hubbub.ledger.holder import ACCOUNT, Holder
from hubbub.ledger.older import paid_for
from hubbub.ledger.stores.store import Interrupted
from hubbub.ledger.verify.recount import covers, recount
from hubbub.ledger.verify.verify import Progress, check_links
from hubbub.privacy.accountant import Method, compose
from hubbub.privacy.events.event import RepeatedEvent, event_from_json
from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT, Filter, PureFilter, Spent
from hubbub.privacy.loss import Approx

if TYPE_CHECKING:
    from hubbub.ledger.ledger import Ledger

_KINDS = 64
"""How many different events a loss distribution is composed of; with more, Rényi curves are added up."""
_WIDE = 100.0
"""The ρ beyond which a loss distribution would not fit into memory."""
_SHOWN_DELTA = Fraction(1, 10**6)
"""Where the fixed-plan figure of an account without δ is read off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """A charge that is smaller than what the second accountant finds."""

    entry: int
    account: str
    symbol: str
    """ε, ρ or δ₀."""
    charged: Fraction
    recounted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """The charges that the second accountant has examined."""

    charges: int
    distinct: int
    """Lists of events that differ: each was counted once."""
    on_trust: int
    """Charges with events that no second accountant knows."""
    shortfalls: tuple[Shortfall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPlan:
    """All answers together, as if the questions had been fixed in advance: not a promise, a comparison."""

    loss: Approx
    method: str


def symbol_of(counted: Filter) -> str:
    """ε or ρ."""
    return "ε" if isinstance(counted, PureFilter) else "ρ"


def recompute(ledger: "Ledger", *, account: str | None = None, progress: Progress | None = None) -> Recomputed:
    """Every charge's loss by the second accountant, and the charges that are too small."""
    counts: dict[str, Recounter] = {}
    for entry in check_entries(ledger, progress):
        with sense_of(entry):
            if entry.kind == "account":
                name, terms = entry.content["account"], entry.content["terms"]
                if account in (None, name):
                    counts[name] = Recounter(name, account_holder(name, entry, terms).filter)
            elif entry.kind == "charge" and entry.content["account"] in counts:
                counts[entry.content["account"]].take(entry.seq, entry.content)
    parts = [one.close() for one in counts.values()]
    return Recomputed(
        charges=sum(part.charges for part in parts),
        distinct=sum(part.distinct for part in parts),
        on_trust=sum(part.on_trust for part in parts),
        shortfalls=tuple(sorted((s for part in parts for s in part.shortfalls), key=lambda short: short.entry)),
    )


class Recounter:
    """The second accountant at one account."""

    def __init__(self, account: str, counted: Filter) -> None:
        self._account, self._filter = account, counted
        self._on_trust = 0
        self._shortfalls: list[Shortfall] = []
        self.plan: Counter[str] = Counter()

    def take(self, seq: int, content: Mapping[str, Any]) -> None:
        """Compare one charge with what its events cost."""
        events = canonical(content["events"])
        self.plan[events] += 1
        found = recount(events)
        self._on_trust += bool(found.on_trust)
        pure = isinstance(self._filter, PureFilter)
        paid = paid_for(content, self._filter)
        checks = [
            (symbol_of(self._filter), paid.loss * LOSS_UNIT, found.epsilon if pure else found.rho),
            ("δ₀", paid.failure * DELTA_UNIT, found.failure),
        ]
        if not pure and paid.pure is not None:  # no pure ε counts as infinite, which covers everything
            checks.append(("ε", paid.pure * LOSS_UNIT, found.epsilon))
        for symbol, charged, recounted in checks:
            if not covers(float(charged), recounted):
                self._shortfalls.append(
                    Shortfall(entry=seq, account=self._account, symbol=symbol, charged=charged, recounted=recounted)
                )

    def close(self) -> Recomputed:
        """Return the result of the examination."""
        return Recomputed(
            charges=self.plan.total(),
            distinct=len(self.plan),
            on_trust=self._on_trust,
            shortfalls=tuple(self._shortfalls),
        )

    def account_for_plan(self) -> FixedPlan | None:
        """All events together, by the tightest method that covers them."""
        if not self.plan:
            return None
        delta = self._filter.delta if not isinstance(self._filter, PureFilter) else _SHOWN_DELTA
        events = [
            RepeatedEvent(event=event_from_json(stored), count=count)
            for text, count in self.plan.items()
            for stored in json.loads(text)
        ]
        rho = sum(count * recount(text).rho for text, count in self.plan.items())
        methods: list[Method] = ["pld", "rdp"] if len(self.plan) <= _KINDS and rho <= _WIDE else ["rdp"]
        for method in methods:
            try:
                return FixedPlan(loss=compose(events, method=method).to_approx(delta=delta), method=method)
            except AccountingError:
                continue
        return None


def account_holder(account: str, entry: Entry, terms: Mapping[str, Any]) -> Holder:
    """An account as it was opened."""
    return Holder(
        account=account,
        kind=ACCOUNT,
        name="",
        terms=canonical(terms),
        opened=entry.time,
        period=0,
        spent=Spent(),
    )


def check_entries(ledger: "Ledger", progress: Progress | None) -> Iterator[Entry]:
    """All entries, their chain checked on the way."""
    try:
        with closing(ledger.store.reader()) as session:
            last = head_of(session).seq
            for entry in check_links(session, last=last):
                yield entry
                if progress is not None and (entry.seq % 1000 == 0 or entry.seq == last):
                    progress(entry.seq, last)
    except Interrupted as problem:
        raise LedgerUnreachable(f"The ledger went away while it was read ({problem}). Try again.") from problem


@contextmanager
def sense_of(entry: Entry) -> Iterator[None]:
    """Name the entry in an error about contents that it should not hold."""
    try:
        yield
    except LedgerCorrupt:
        raise
    except (HubbubError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as problem:
        raise damage_at(entry.seq, f"it makes no sense ({type(problem).__name__}: {problem})") from problem
