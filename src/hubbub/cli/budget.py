"""``hubbub budget``: what accounts have left, and what their owner decides about them."""

import json
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hubbub.cli.options import (
    Epsilon,
    Json,
    LedgerArgument,
    RenewDays,
    SomeDelta,
    SomeEpsilon,
    TotalDelta,
    exact,
    expiry,
    limit_of,
    open_to_read,
    open_to_write,
    renewal_of,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from hubbub.ledger import Failures, Grant, Statement
    from hubbub.privacy.filter import Budget
    from hubbub.privacy.ways import Payer

_BAR = 12


class _ShowFirst(TyperGroup):
    """``hubbub budget LEDGER`` means ``hubbub budget show LEDGER``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {*self.commands, *self.get_help_option_names(ctx)}
        return super().parse_args(ctx, args if args and args[0] in known else ["show", *args])


app = typer.Typer(cls=_ShowFirst, help="Budgets: what is left of them (show), and what their owner decides.")

Account = Annotated[str, typer.Argument(help="The account.", show_default=False)]


@app.command()
def show(*, ledger: LedgerArgument = None, as_json: Json = False) -> None:
    """List the state of every account, project and principal; the same as `hubbub budget LEDGER`."""
    from hubbub.cli.printing import say

    with open_to_read(ledger) as opened:
        statements, grants, failures = opened.statements(), opened.grants(), opened.failures()
        place = opened.store.location
    if as_json:
        typer.echo(json.dumps(_as_json(statements, grants, failures), indent=2))
        return
    if not statements:
        say(f"There is no account in {place} yet. Open one with: hubbub budget open.")
        return
    say(_table(f"Accounts in {place}", [s for s in statements if s.kind == "account"]))
    below = [s for s in statements if s.kind != "account"]
    if below:
        say("", _table("Limits below them", below))
    if grants:
        say("", _grants(grants))
    if failures:
        say("", _failures(failures))


@app.command("open")
def open_account(
    *,
    ledger: LedgerArgument = None,
    account: Account,
    epsilon: Epsilon,
    delta: TotalDelta = None,
    replace_one: Annotated[
        bool, typer.Option("--replace-one", help="Neighbours replace one unit; without this they add or remove one.")
    ] = False,
    population: Annotated[str, typer.Option(help="Whom the account protects, in words.")] = "",
    renew_days: RenewDays = None,
) -> None:
    """Open an account for a population of units; creates the ledger where there is none."""
    from hubbub.cli.printing import say
    from hubbub.privacy.filter import Budget
    from hubbub.privacy.sensitivity import Neighbors

    neighbors = Neighbors.REPLACE_ONE if replace_one else Neighbors.ADD_REMOVE
    budget = Budget(epsilon=epsilon, delta=delta or Fraction(0), neighbors=neighbors)
    with open_to_write(ledger, create=True) as opened:
        opened.open_account(account, budget, population=population, renewal=renewal_of(renew_days))
        say(f'Account "{account}" has {_budget(budget)}{_every(renew_days)}.')


@app.command()
def project(
    *,
    ledger: LedgerArgument = None,
    account: Account,
    name: Annotated[str, typer.Argument(metavar="PROJECT", help="The project.", show_default=False)],
    epsilon: Epsilon,
    delta: SomeDelta = None,
    renew_days: RenewDays = None,
) -> None:
    """Open a project under an account, or give it new limits: what it has spent stays spent."""
    from hubbub.cli.printing import say

    with open_to_write(ledger) as opened:
        limit = limit_of(opened, account, epsilon, delta)
        assert limit is not None
        opened.open_project(account, name, limit, renewal=renewal_of(renew_days))
        say(f'Project "{name}" of account "{account}" has {_budget(limit)}{_every(renew_days)}.')


@app.command()
def grant(
    *,
    ledger: LedgerArgument = None,
    account: Account,
    principal: Annotated[str, typer.Argument(help="Who may spend.", show_default=False)],
    epsilon: SomeEpsilon = None,
    delta: SomeDelta = None,
    under: Annotated[str | None, typer.Option("--project", help="The project that this counts against too.")] = None,
    days: Annotated[int | None, typer.Option(min=1, help="How long the grant is good.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="MOMENT", help="Until when, such as 2027-01-31.")] = None,
    renew_days: RenewDays = None,
) -> None:
    """Let a principal spend from an account: all of it, or up to a limit."""
    from hubbub.cli.printing import say

    until = expiry(days, expires)
    if renew_days is not None and epsilon is None:
        raise typer.BadParameter("needs an --epsilon: only a limit of its own is renewed.", param_hint="--renew-days")
    with open_to_write(ledger) as opened:
        limit = limit_of(opened, account, epsilon, delta)
        opened.grant(account, principal, limit=limit, project=under, expires=until, renewal=renewal_of(renew_days))
        upto = f"up to {_budget(limit)}{_every(renew_days)}" if limit else "all that the account has"
        within = f' within project "{under}"' if under else ""
        good = f"until {_moment(until)}" if until else "without an end"
        say(f'"{principal}" may spend {upto} from account "{account}"{within}, {good}.')


@app.command()
def history(
    *,
    ledger: LedgerArgument = None,
    account: Annotated[str | None, typer.Option(help="This account alone.")] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it too: a .png, .svg or .pdf (needs hubbub[plot]).")
    ] = None,
) -> None:
    """Show what was spent by whom on what, over time."""
    from hubbub.cli.printing import progress, say
    from hubbub.cli.reporting import print_history
    from hubbub.ledger.report import report

    with open_to_read(ledger) as opened:
        with progress("reading the ledger") as told:
            found = report(opened, account=account, progress=told)
        print_history(found, place=opened.store.location)
    if picture is not None:
        from hubbub.report.spending import plot_spending

        plot_spending(found.accounts).figure.savefig(picture, dpi=150)
        say("", f"Drawn in {picture}.")


@app.command("set")
def set_budget(
    *,
    ledger: LedgerArgument = None,
    account: Account,
    epsilon: Annotated[
        Fraction | None,
        typer.Option("--epsilon", parser=exact, metavar="NUMBER", help="The new total ε; without it, as it was."),
    ] = None,
    delta: Annotated[
        Fraction | None,
        typer.Option("--delta", parser=exact, metavar="NUMBER", help="The new total δ; without it, as it was."),
    ] = None,
    project: Annotated[str | None, typer.Option(help="Set the limits of this project instead.")] = None,
    principal: Annotated[str | None, typer.Option(help="Set the limits of this principal instead.")] = None,
    close: Annotated[
        bool, typer.Option("--close", help="Let nothing more be spent; what is stored is served.")
    ] = False,
) -> None:
    """Raise, lower, close or reopen a budget: what was spent stays spent, and the ledger keeps that it was changed."""
    from hubbub.cli.printing import room, say

    with open_to_write(ledger) as opened:
        kind = "project" if project else "principal" if principal else "account"
        was = opened.statement(account, kind, project or principal or "").budget
        budget = limit_of(
            opened, account, was.epsilon if epsilon is None else epsilon, was.delta if delta is None else delta
        )
        found = opened.set_budget(account, budget, project=project, principal=principal, closed=close)
        say(f"{_title(found)} had {_budget(was)}.")
        if found.closed:
            say("It is closed: nothing more is charged to it, and stored answers are served as before.")
        else:
            say(f"It has {_budget(found.budget)} now, of which {room(found)} can still be asked for.")
        if kind == "account" and (found.budget.epsilon, found.budget.delta) != (was.epsilon, was.delta):
            say("Its promise is that of the greatest budget that was ever in force.")


def _title(one: "Statement") -> str:
    own = f'Account "{one.account}"'
    return own if one.kind == "account" else f'{one.kind.capitalize()} "{one.name}" of account "{one.account}"'


@app.command()
def revoke(
    *,
    ledger: LedgerArgument = None,
    account: Account,
    principal: Annotated[str, typer.Argument(help="Who may spend no longer.", show_default=False)],
) -> None:
    """End a grant now; what was spent under it stays spent."""
    from hubbub.cli.printing import say

    with open_to_write(ledger) as opened:
        opened.revoke(account, principal)
        say(f'"{principal}" may spend nothing more from account "{account}".')


@app.command()
def thaw(
    *,
    ledger: LedgerArgument = None,
    account: Account,
    principal: Annotated[str, typer.Argument(help="Who may ask again.", show_default=False)],
) -> None:
    """Give a principal a new allowance of engine failures: look first why the engine failed."""
    from hubbub.cli.printing import say
    from hubbub.ledger import ALLOWANCE

    with open_to_write(ledger) as opened:
        many = opened.thaw(account, principal)
    if not many:
        say(f'"{principal}" has no failures on account "{account}": nothing was written.')
        return
    say(f'"{principal}" had {_times(many)} on account "{account}", and is allowed {ALLOWANCE} again.')


def _table(title: str, statements: list["Statement"]) -> "Table":
    from hubbub.cli.printing import bar, cell, percent, room, share_of, stack, table

    made = table(title, "who", "budget", "spent", "left", "charges", kept=("budget", "spent", "left", "charges"))
    for one in statements:
        share = share_of(one)
        left = "closed" if one.closed else room(one)
        every = [f"every {one.renewal.days} days"] if one.renewal else []
        made.add_row(
            _who(one),
            stack(*str(one.budget.filter.budget).split(", "), one.budget.neighbors),
            stack(bar(share, _BAR) + cell(f" {percent(share)}"), *str(one.odometer).split(", ")),
            stack(*left.replace(" (", ", ").rstrip(")").split(", ")),
            stack(one.spent.charges, f"since {one.since:%Y-%m-%d}", *every),
        )
    return made


def _who(one: "Statement") -> "Text":
    from hubbub.cli.printing import cell

    if one.kind == "account":
        return cell(one.account, "bold")
    return cell(f"{one.kind} ") + cell(one.name, "bold") + cell(f" of {one.account}")


def _grants(grants: list["Grant"]) -> "Table":
    from hubbub.cli.printing import cell, table

    made = table("Grants", "principal", "account", "project", "good until", "entry", right=("entry",))
    for one in grants:
        until = "revoked" if one.revoked else _moment(one.expires) if one.expires else "no end"
        made.add_row(cell(one.principal), cell(one.account), cell(one.project or "–"), cell(until), cell(one.entry))
    return made


def _failures(failures: list["Failures"]) -> "Table":
    from hubbub.cli.printing import cell, table
    from hubbub.ledger import ALLOWANCE, OWNER

    made = table("Engine failures after a charge", "principal", "account", "failures", "state")
    for one in failures:
        allowed = "" if one.principal == OWNER else f" of {ALLOWANCE}"
        state = "frozen: look, then hubbub budget thaw" if one.frozen else "–"
        made.add_row(cell(one.principal), cell(one.account), cell(f"{one.many}{allowed}"), cell(state))
    return made


def _times(many: int) -> str:
    return "1 failure" if many == 1 else f"{many} failures"


def _budget(budget: "Budget") -> str:
    return f"{budget.filter.budget} ({budget.neighbors})"


def _every(days: int | None) -> str:
    return "" if days is None else f", anew every {days} days"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _payer(one: "Statement") -> "Payer":
    from hubbub.privacy.ways import Payer

    return Payer(terms=one.budget.filter, room=one.left)


def _as_json(statements: list["Statement"], grants: list["Grant"], failures: list["Failures"]) -> dict[str, Any]:
    from hubbub.ledger.entry import ratio
    from hubbub.ledger.verify.recompute import symbol_of
    from hubbub.privacy.affordable import largest_epsilon
    from hubbub.privacy.filter import DELTA_UNIT, LOSS_UNIT

    return {
        "holders": [
            {
                "account": one.account,
                "kind": one.kind,
                "name": one.name,
                "epsilon": ratio(one.budget.epsilon),
                "delta": ratio(one.budget.delta),
                "neighbors": one.budget.neighbors.value,
                "renewal_days": one.renewal.days if one.renewal else None,
                "opened": one.opened.isoformat(),
                "since": one.since.isoformat(),
                "period": one.period,
                "counted_in": "epsilon" if symbol_of(one.budget.filter) == "ε" else "rho",
                "spent": ratio(one.spent.loss * LOSS_UNIT),
                "spent_failure": ratio(one.spent.failure * DELTA_UNIT),
                "spent_as": str(one.odometer),
                "spent_pure": None if one.spent.pure is None else ratio(one.spent.pure * LOSS_UNIT),
                "closed": one.closed,
                "largest_epsilon": ratio(largest_epsilon(_payer(one), delta=one.budget.delta / 100)),
                "left": ratio(one.left.loss * LOSS_UNIT),
                "left_pure": None if one.left.pure is None else ratio(one.left.pure * LOSS_UNIT),
                "left_failure": ratio(one.left.failure * DELTA_UNIT),
                "charges": one.spent.charges,
            }
            for one in statements
        ],
        "grants": [
            {
                "account": one.account,
                "principal": one.principal,
                "project": one.project,
                "expires": one.expires.isoformat() if one.expires else None,
                "revoked": one.revoked,
                "entry": one.entry,
            }
            for one in grants
        ],
        "failures": [
            {"account": one.account, "principal": one.principal, "failures": one.many, "frozen": one.frozen}
            for one in failures
        ],
    }
