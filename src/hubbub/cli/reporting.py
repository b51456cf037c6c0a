"""A report in the terminal: tables, a timeline of bars, and the second accountant's verdict."""

from collections.abc import Mapping

from rich.table import Table

from hubbub.cli.printing import amount, bar, cell, complain, percent, prose, say, shorten, table
from hubbub.ledger.report import AccountReport, LedgerReport, SpendingTotals
from hubbub.ledger.verify.recompute import Shortfall
from hubbub.privacy.filter import Filter, share_spent
from hubbub.privacy.loss import number

_LINES = 15
_DAYS = 14
_SHORTFALLS = 20
_BAR = 30


def print_report(report: LedgerReport, *, place: str) -> None:
    """The whole report."""
    say(place)
    prose(f"{report.entries:,} entries, whose chain was checked up to {report.hash[:16]}…")
    if not report.accounts:
        prose("There is no account yet.")
    for account in report.accounts:
        _account(account)


def _account(account: AccountReport) -> None:
    budget = account.budget.filter.budget
    about = f": {account.population}" if account.population else ""
    say("")
    prose(f'Account "{account.name}"{about}')
    every = f", anew every {account.renewal.days} days" if account.renewal else ""
    prose(f"budget {budget} ({account.budget.neighbors}){every}, opened {account.opened:%Y-%m-%d}", indent=2)
    charges = f"{account.lifetime.charges:,} charge{'' if account.lifetime.charges == 1 else 's'}"
    prose(
        f"spent {account.odometer} in {charges}: {amount(account.budget.filter, account.lifetime)} added up", indent=2
    )
    if account.fixed is not None:
        prose(
            f"as if the questions had been fixed in advance: {account.fixed.loss} "
            f"({account.fixed.method.upper()}; not a promise)",
            indent=2,
        )
    if not account.lines:
        return
    say("", _timeline(account))
    if len(account.periods) > 1:
        say("", _periods(account))
    say("", _totals("By principal", account.budget.filter, account.principals))
    if account.projects:
        say("", _totals("By project", account.budget.filter, account.projects))
    say("", _charges(account))
    say("")
    _verdict(account)


def _timeline(account: AccountReport) -> Table:
    days, counted = account.timeline(), account.budget.filter
    made = table("Spending, day by day", "day", "spent in its period", "of the budget", right=())
    if len(days) > _DAYS:
        made.title = cell(f"Spending, the last {_DAYS} of {len(days)} days", "bold")
    for day, spent in days[-_DAYS:]:
        share = share_spent(counted, spent)
        made.add_row(cell(day), cell(amount(counted, spent)), bar(share, _BAR) + cell(f" {percent(share)}"))
    return made


def print_history(report: LedgerReport, *, place: str) -> None:
    """What was spent by whom on what, and when."""
    say(place)
    for account in report.accounts:
        budget = account.budget.filter.budget
        say("")
        prose(f'Account "{account.name}", budget {budget}')
        if not account.lines:
            prose("Nothing was spent yet.", indent=2)
            continue
        for moment, changed, closed in account.changes:
            to = "closed" if closed else f"changed to {changed.filter.budget}"
            prose(f"{moment:%Y-%m-%d}: the budget was {to}", indent=2)
        say("", _timeline(account))
        say("", _by_question(account))


def _by_question(account: AccountReport) -> Table:
    found = account.by_question()
    title = "By whom, on what" if len(found) <= _LINES else f"By whom, on what: the {_LINES} dearest of {len(found):,}"
    made = table(title, "who", "question", "charges", "spent", right=("charges",))
    for who, question, spent in found[:_LINES]:
        made.add_row(
            cell(who), cell(shorten(question, 60)), cell(spent.charges), cell(amount(account.budget.filter, spent))
        )
    return made


def _periods(account: AccountReport) -> Table:
    made = table("By period", "period", "since", "charges", "spent", right=("period", "charges"))
    for one in account.periods:
        made.add_row(cell(one.number), cell(f"{one.since:%Y-%m-%d}"), cell(one.spent.charges), cell(one.odometer))
    return made


def _totals(title: str, counted: Filter, totals: Mapping[str, SpendingTotals]) -> Table:
    made = table(title, "who", "charges", "spent", "shared", "paid for those", right=("charges", "shared"))
    for who, one in totals.items():
        made.add_row(
            *(cell(who), cell(one.spent.charges), cell(amount(counted, one.spent))),
            *(cell(one.shares.charges), cell(amount(counted, one.shares) if one.shares.charges else "–")),
        )
    return made


def _charges(account: AccountReport) -> Table:
    lines = account.lines[-_LINES:]
    title = "Charges" if len(lines) == len(account.lines) else f"The last {_LINES} of {len(account.lines):,} charges"
    made = table(title, "entry", "time", "who", "question", "spent", "after", right=("entry",))
    for line in lines:
        who = cell(line.principal) + cell(f" ({line.project})" if line.project else "")
        state = "" if line.answer else " (no answer stored)"
        shared = f" → {', '.join(line.shared)}" if line.shared else ""
        public = " (public)" if line.public else ""
        question = shorten(line.question, 60) + shorten(f" v{line.version}{state}{public}{shared}", 60)
        made.add_row(
            *(cell(line.entry), cell(f"{line.moment:%Y-%m-%d %H:%M}"), who, question),
            *(cell(amount(account.budget.filter, line.spent)), cell(amount(account.budget.filter, line.after))),
        )
    return made


def _verdict(account: AccountReport) -> None:
    found = account.recomputed
    counted = f"{found.charges:,} charges ({found.distinct:,} different)"
    trust = f"; {found.on_trust:,} hold events that only their own proof covers" if found.on_trust else ""
    if not found.shortfalls:
        prose(f"Counted again by a second accountant: {counted}, none too small{trust}.")
        return
    complain(f'Account "{account.name}": {len(found.shortfalls):,} of {counted} are too small{trust}.')
    for short in found.shortfalls[:_SHORTFALLS]:
        complain(_sentence(short))


def _sentence(short: Shortfall) -> str:
    return (
        f"Entry {short.entry}: charged {short.symbol} = {number(short.charged)}, "
        f"but its events cost {short.symbol} = {number(short.recounted)}."
    )
