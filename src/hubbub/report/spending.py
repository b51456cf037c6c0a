"""The spending of accounts over time as a picture: the share of each period's budget, after each charge."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from hubbub.ledger.report import AccountReport
from hubbub.privacy.filter import share_spent
from hubbub.query.answer.printable import clean
from hubbub.report.plot import new_axes

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")  # told apart by any eye


def plot_spending(accounts: Sequence[AccountReport], *, ax: Any = None) -> Any:
    """Draw one line for each account, which begins anew with each period; returns matplotlib's axes."""
    axes = new_axes() if ax is None else ax
    for place, account in enumerate(accounts):
        colour, counted = _COLOURS[place % len(_COLOURS)], account.budget.filter
        label: str | None = clean(account.name)
        for _, lines in groupby(account.lines, key=lambda line: line.period):
            drawn = list(lines)
            shares = [100 * share_spent(counted, line.after) for line in drawn]
            moments = [line.moment for line in drawn]
            axes.step([moments[0], *moments], [0.0, *shares], where="post", color=colour, label=label)
            axes.plot(moments, shares, "o", color=colour, markersize=3)
            label = None
        for moment, _, closed in account.changes:
            axes.axvline(moment, color=colour, linestyle=":" if closed else "--", linewidth=1)
    axes.axhline(100, color="#222222", linewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("share of the budget that is spent, in %")
    if any(account.lines for account in accounts):
        axes.legend(loc="upper left")
    axes.figure.autofmt_xdate()
    return axes
