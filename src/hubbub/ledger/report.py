"""A report of the questions asked of each account, their cost, and the verdict of a second accountant.

Everything here comes from the entries alone, whose chain is checked on the way; no balance is believed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

from hubbub.ledger.effects import charge_in
from hubbub.ledger.entry import Entry, canonical, moment_of
from hubbub.ledger.holder import ACCOUNT
from hubbub.ledger.older import Completing
from hubbub.ledger.terms import Renewal
from hubbub.ledger.verify.recompute import (
    FixedPlan,
    Recomputed,
    Recounter,
    account_holder,
    check_entries,
    sense_of,
    symbol_of,
)
from hubbub.ledger.verify.verify import Progress
from hubbub.privacy.filter import Budget, Charge, Spent
from hubbub.privacy.loss import Loss

if TYPE_CHECKING:
    from hubbub.ledger.ledger import Ledger

_SHORT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One charge."""

    entry: int
    moment: datetime
    principal: str
    project: str | None
    question: str
    """Its beginning."""
    version: str
    spent: Charge
    period: int
    after: Spent
    """The account's balance after it, in its period."""
    answer: int | None
    """The entry that holds the answer."""
    public: bool
    shared: tuple[str, ...]
    """Who else was given the answer, and paid for it from a limit of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingTotals:
    """The amounts spent on the account, and the amounts paid for answers that were stored already."""

    spent: Spent = field(default_factory=Spent)
    shares: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One period of an account."""

    number: int
    since: datetime
    spent: Spent
    odometer: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountReport:
    """One account from its opening to now."""

    name: str
    population: str
    budget: Budget
    renewal: Renewal | None
    opened: datetime
    lines: tuple[Line, ...]
    principals: Mapping[str, SpendingTotals]
    projects: Mapping[str, SpendingTotals]
    periods: tuple[Period, ...]
    lifetime: Spent
    odometer: Loss
    """The lifetime's spending as a guarantee."""
    recomputed: Recomputed
    fixed: FixedPlan | None
    changes: tuple[tuple[datetime, Budget, bool], ...] = ()
    """When its owner changed the budget, to what, and whether that closed it."""

    @property
    def symbol(self) -> str:
        """The symbol of the loss that the account counts in."""
        return symbol_of(self.budget.filter)

    def days(self) -> list[tuple[date, int, int]]:
        """Each day on which something was spent, its spending, and the sum up to then, in units."""
        days = [
            (day, sum(line.spent.loss for line in lines))
            for day, lines in groupby(self.lines, key=lambda line: line.moment.date())
        ]
        return [(day, loss, total) for (day, loss), total in zip(days, accumulate(s for _, s in days), strict=True)]

    def timeline(self) -> list[tuple[date, Spent]]:
        """Each day on which something was spent, and what its period had spent by its end."""
        return [(day, list(lines)[-1].after) for day, lines in groupby(self.lines, key=lambda line: line.moment.date())]

    def by_question(self) -> list[tuple[str, str, Spent]]:
        """Who has paid for which question, and how much altogether; the dearest first."""
        sums: dict[tuple[str, str], Spent] = {}
        for line in self.lines:
            key = line.principal, line.question
            sums[key] = sums.get(key, Spent()).plus(line.spent)
        found = [(who, question, spent) for (who, question), spent in sums.items()]
        return sorted(found, key=lambda one: -one[2].loss)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport:
    """A ledger, or one account of it."""

    ledger: str
    entries: int
    hash: str
    accounts: tuple[AccountReport, ...]

    @property
    def holds(self) -> bool:
        """True if no charge is smaller than it should be."""
        return not any(account.recomputed.shortfalls for account in self.accounts)


def report(ledger: "Ledger", *, account: str | None = None, progress: Progress | None = None) -> LedgerReport:
    """Read all entries and report the spending on each account, or on one of them."""
    if account is not None:
        ledger.statement(account)  # or UnknownAccount
    books: dict[str, _Book] = {}
    place: dict[int, _Book] = {}
    last: Entry | None = None
    completing = Completing()
    for entry in check_entries(ledger, progress):
        last = entry
        with sense_of(entry):
            content = completing.complete(entry.seq, entry.kind, entry.content)
            if entry.kind == "account" and account in (None, content["account"]):
                books[content["account"]] = _Book(entry, content)
            elif "account" in content and content["account"] in books:
                place[entry.seq] = books[content["account"]]
                _TAKEN.get(entry.kind, _Book.nothing)(place[entry.seq], entry, content)
            elif content.get("charge") in place:
                _TAKEN.get(entry.kind, _Book.nothing)(place[content["charge"]], entry, content)
    assert last is not None
    return LedgerReport(
        ledger=ledger.name,
        entries=last.seq,
        hash=last.hash,
        accounts=tuple(book.close() for _, book in sorted(books.items())),
    )


class _Book:
    """One account while its entries are read."""

    def __init__(self, entry: Entry, content: Mapping[str, Any]) -> None:
        self._holder = account_holder(content["account"], entry, content["terms"])
        self._population = content["population"]
        self._recounter = Recounter(content["account"], self._holder.filter)
        self._lines: dict[int, Line] = {}
        self._principals: dict[str, SpendingTotals] = {}
        self._projects: dict[str, SpendingTotals] = {}
        self._periods: dict[int, Spent] = {0: Spent()}
        self._period = 0
        self._changes: list[tuple[datetime, Budget, bool]] = []

    def nothing(self, entry: Entry, content: Mapping[str, Any]) -> None:
        """Other entries do not show."""

    def renewal(self, entry: Entry, content: Mapping[str, Any]) -> None:
        """A new period of the account itself."""
        if content["holder"] == ACCOUNT:
            self._period = content["period"]
            self._periods[self._period] = Spent()

    def budget(self, entry: Entry, content: Mapping[str, Any]) -> None:
        """A changed budget of the account itself."""
        if content["holder"] == ACCOUNT:
            self._holder = replace(self._holder, terms=canonical(content["terms"]))
            self._changes.append((entry.moment, self._holder.budget, self._holder.closed))

    def charge(self, entry: Entry, content: Mapping[str, Any]) -> None:
        """A new line."""
        spent = charge_in(content)
        after = self._periods[self._period] = self._periods[self._period].plus(spent)
        self._add(content, lambda totals: replace(totals, spent=totals.spent.plus(spent)))
        self._recounter.take(entry.seq, content)
        self._lines[entry.seq] = Line(
            entry=entry.seq,
            moment=entry.moment,
            principal=content["principal"],
            project=content["project"],
            question=shorten(content["question"], _SHORT),
            version=content["version"],
            spent=spent,
            period=self._period,
            after=after,
            answer=None,
            public=False,
            shared=(),
        )

    def share(self, entry: Entry, content: Mapping[str, Any]) -> None:
        """An answer that someone else was given."""
        paid = charge_in(content)
        self._add(content, lambda totals: replace(totals, shares=totals.shares.plus(paid)))
        line = self._lines[content["charge"]]
        self._lines[line.entry] = replace(line, shared=(*line.shared, content["principal"]))

    def answer(self, entry: Entry, content: Mapping[str, Any]) -> None:
        """The answer of a charge."""
        self._lines[content["charge"]] = replace(self._lines[content["charge"]], answer=entry.seq)

    def publish(self, entry: Entry, content: Mapping[str, Any]) -> None:
        """An answer that everyone may have."""
        self._lines[content["charge"]] = replace(self._lines[content["charge"]], public=True)

    def _add(self, content: Mapping[str, Any], change: Callable[[SpendingTotals], SpendingTotals]) -> None:
        principal, project = content["principal"], content["project"]
        self._principals[principal] = change(self._principals.get(principal, SpendingTotals()))
        if project is not None:
            self._projects[project] = change(self._projects.get(project, SpendingTotals()))

    def close(self) -> AccountReport:
        """Everything that was found."""
        holder = self._holder
        lifetime = Spent()
        for spent in self._periods.values():
            lifetime = lifetime.plus(
                Charge(loss=spent.loss, failure=spent.failure, pure=spent.pure), charges=spent.charges
            )
        return AccountReport(
            name=holder.account,
            population=self._population,
            budget=holder.budget,
            renewal=holder.renewal,
            opened=moment_of(holder.opened),
            lines=tuple(self._lines.values()),
            principals=dict(sorted(self._principals.items())),
            projects=dict(sorted(self._projects.items())),
            periods=tuple(
                Period(
                    number=number,
                    since=moment_of(holder.since(number)),
                    spent=spent,
                    odometer=holder.filter.odometer(spent),
                )
                for number, spent in sorted(self._periods.items())
            ),
            lifetime=lifetime,
            odometer=holder.filter.odometer(lifetime),
            recomputed=self._recounter.close(),
            fixed=self._recounter.account_for_plan(),
            changes=tuple(self._changes),
        )


_TAKEN: Mapping[str, Callable[[_Book, Entry, Mapping[str, Any]], None]] = {
    "renewal": _Book.renewal,
    "budget": _Book.budget,
    "charge": _Book.charge,
    "share": _Book.share,
    "answer": _Book.answer,
    "publish": _Book.publish,
}


def shorten(text: str, length: int) -> str:
    """The beginning of a text, with a sign that there is more."""
    return text if len(text) <= length else text[: length - 1] + "…"
