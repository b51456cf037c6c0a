"""Options that several commands have, each written once."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.arguments import exact

# Ledgers and budgets

LedgerArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LEDGER",
        help="A file or a postgresql:// URL; without one, the environment's HUBBUB_LEDGER.",
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
Slack = Annotated[
    Fraction | None,
    typer.Option("--delta", parser=exact, metavar="NUMBER", help="Its δ; without it, a hundredth of the budget's."),
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
