"""Options that several commands have, each written once; the ledger, and exact numbers."""

import os
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hubbub.ledger import Ledger, Renewal
    from hubbub.privacy.filter import Budget

_NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{0,40})?([eE][-+]?[0-9]{1,3})?|[0-9]{1,40}/[0-9]{1,40}", re.ASCII)


def exact(text: str) -> Fraction:
    """A decimal or a fraction, taken at its exact value."""
    if not _NUMBER.fullmatch(text):
        raise typer.BadParameter(f"{text!r} is not a number such as 0.1, 1/10 or 1e-6.")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise typer.BadParameter(f"{text!r} divides by zero.") from None


def location(given: list[str] | None) -> str:
    """The ledger that is meant."""
    if given and len(given) > 1:
        raise typer.BadParameter(f"one ledger, not {len(given)}.", param_hint="LEDGER")
    found = given[0] if given else _policy_ledger() or os.environ.get("HUBBUB_LEDGER")
    if not found and Path("hubbub.ledger").exists():
        found = "hubbub.ledger"
    if not found:
        raise typer.BadParameter(
            "name one, set HUBBUB_LEDGER, or go to a folder with a hubbub.toml or a hubbub.ledger.", param_hint="LEDGER"
        )
    return found


def _policy_ledger() -> str | None:
    """Return where this folder's policy says that its ledger is, whatever else stands in it."""
    from hubbub.policy.files.read import ledger_named

    return ledger_named(Path("hubbub.toml"))


def open_to_read(given: list[str] | None) -> "Ledger":
    """The ledger, for looking only."""
    from hubbub.ledger import Ledger

    return Ledger(location(given), create=False, writes=False)


def open_to_write(given: list[str] | None, *, create: bool = False) -> "Ledger":
    """The ledger, for its owner to write to."""
    from hubbub.ledger import Ledger

    return Ledger(location(given), create=create)


def limit_of(ledger: "Ledger", account: str, epsilon: Fraction | None, delta: Fraction | None) -> "Budget | None":
    """A limit under an account, counted as the account is."""
    from hubbub.privacy.filter import Budget

    above = ledger.statement(account).budget
    if epsilon is None:
        if delta is not None:
            raise typer.BadParameter("needs an --epsilon beside it.", param_hint="--delta")
        return None
    return Budget(epsilon=epsilon, delta=above.delta if delta is None else delta, neighbors=above.neighbors)


def renewal_of(days: int | None) -> "Renewal | None":
    """A policy of renewal, if there is to be one."""
    from hubbub.ledger import Renewal

    return None if days is None else Renewal(days=days)


def expiry(days: int | None, expires: str | None) -> datetime | None:
    """Read the end of a grant: a number of days from now, or a moment (UTC unless it says otherwise)."""
    if days is not None and expires is not None:
        raise typer.BadParameter("--days and --expires say the same thing; give one.", param_hint="--expires")
    if days is not None:
        return datetime.now(UTC) + timedelta(days=days)
    if expires is None:
        return None
    try:
        moment = datetime.fromisoformat(expires)
    except ValueError:
        raise typer.BadParameter(
            f"{expires!r} is not a moment such as 2027-01-31 or 2027-01-31T12:00Z.", param_hint="--expires"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# Ledgers and budgets

LedgerArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LEDGER",
        help="A file or a postgresql:// URL; without one, that of ./hubbub.toml, HUBBUB_LEDGER, or ./hubbub.ledger.",
        show_default=False,
    ),
]
"""Variadic, so that it may be left out before other arguments; ``location`` wants at most one."""

Epsilon = Annotated[Fraction, typer.Option("--epsilon", parser=exact, metavar="NUMBER", help="The total ε.")]
TotalDelta = Annotated[
    Fraction | None,
    typer.Option("--delta", parser=exact, metavar="NUMBER", help="The total δ; without one, pure ε is counted."),
]
SomeEpsilon = Annotated[
    Fraction | None, typer.Option("--epsilon", parser=exact, metavar="NUMBER", help="A limit of its own.")
]
SomeDelta = Annotated[
    Fraction | None,
    typer.Option("--delta", parser=exact, metavar="NUMBER", help="The limit's δ; without it, the account's."),
]
RenewDays = Annotated[
    int | None,
    typer.Option("--renew-days", min=1, help="Renew the budget every so many days: k periods cost k budgets."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# Questions

Question = Annotated[
    str, typer.Argument(metavar="SQL", help="The question, in quotes; - reads it from standard input.")
]
File = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help="One private table: a file or a quoted glob.", show_default=False),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="The policy; without one, ./hubbub.toml if it is there."),
]
Price = Annotated[
    Fraction, typer.Option("--epsilon", parser=exact, metavar="NUMBER", help="What this answer may cost.")
]
SomePrice = Annotated[
    Fraction | None,
    typer.Option(
        "--epsilon",
        parser=exact,
        metavar="NUMBER",
        help="What this answer may cost. Only SHOW TABLES and DESCRIBE have no price.",
    ),
]
Slack = Annotated[
    Fraction | None,
    typer.Option("--delta", parser=exact, metavar="NUMBER", help="Its δ; without it, a hundredth of the budget's."),
]
Error = Annotated[
    str | None,
    typer.Option(
        "--error",
        metavar="noise|dropped|whole",
        help="What intervals cover: noise; what limits drop, too (the default under max_total_rows); or all of it.",
    ),
]
LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", metavar="LEDGER", help="Without it: the policy's, HUBBUB_LEDGER, or hubbub.ledger."),
]
Principal = Annotated[str | None, typer.Option("--principal", help="Who asks; without it, the owner.")]

Key = Annotated[str | None, typer.Option("--key", help="A name for this request: repeated with it, it is paid once.")]
Log = Annotated[Path | None, typer.Option("--log", metavar="FILE", help="Where the owner reads why the engine failed.")]

# One file without a policy

_ALONE = "With a file"
Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="COLUMN", help="The column that says whose a row is.", rich_help_panel=_ALONE),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="LINE",
        help="What a policy says of a column, as often as needed: 'cost = {bounds = [0, 500]}'.",
        rich_help_panel=_ALONE,
    ),
]
Total = Annotated[
    Fraction | None,
    typer.Option(
        "--budget",
        parser=exact,
        metavar="NUMBER",
        help="The total ε of all answers; not needed once the ledger has the account.",
        rich_help_panel=_ALONE,
    ),
]
TotalSlack = Annotated[
    Fraction | None,
    typer.Option("--budget-delta", parser=exact, metavar="NUMBER", help="Its δ, else 0.", rich_help_panel=_ALONE),
]
MaxGroups = Annotated[
    int | None,
    typer.Option("--max-groups", min=1, help="Groups in which a unit counts, else 1.", rich_help_panel=_ALONE),
]
MaxRows = Annotated[
    int | None,
    typer.Option("--max-rows", min=1, help="Rows of a unit that count in a group.", rich_help_panel=_ALONE),
]
Account = Annotated[
    str | None, typer.Option("--account", help="Whom the budget protects, else people.", rich_help_panel=_ALONE)
]
DataVersion = Annotated[
    str | None,
    typer.Option("--data-version", help="Your name for the state of the data, else 1.", rich_help_panel=_ALONE),
]
