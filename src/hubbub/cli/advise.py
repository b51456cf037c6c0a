"""``hubbub advise``: limits and bounds for the policy, out of a private look at how much people have."""

import json
from fractions import Fraction
from typing import Annotated

import typer

from hubbub.cli.data import DataOptions, with_data
from hubbub.cli.options import Json, Key, Log, exact


@with_data
def advise(
    *,
    data: DataOptions,
    epsilon: Annotated[
        Fraction, typer.Option("--epsilon", parser=exact, metavar="NUMBER", help="What the look may cost, once.")
    ],
    price: Annotated[
        Fraction | None,
        typer.Option("--price", parser=exact, metavar="NUMBER", help="What a question costs; else 1."),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", help="The private table; needed where there are several.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMN", help="A column that is grouped by; without any, all with public keys."),
    ] = None,
    key: Key = None,
    as_json: Json = False,
    log: Log = None,
) -> None:
    """Advise max_rows, max_groups, max_total_rows and bounds, with the error each would give: private, and paid once.

    Exit status: 0 advised; 2 refused; 3 the engine failed, and the charge stands.
    """
    with data.open(log=log) as database:
        from hubbub.cli.printing import say, show_clock

        with show_clock(database.policy.limits.seconds):
            found = database.advise(
                epsilon=epsilon, price=1 if price is None else price, table=table, by=by or None, key=key
            )
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        say(*repr(found).split("\n"))
