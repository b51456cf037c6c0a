"""``hubbub describe``: which tables and columns there are, and what is declared of them."""

import json
from typing import Annotated

import typer

from hubbub.cli.data import DataOptions, with_data
from hubbub.cli.options import Json


@with_data
def describe(
    *,
    data: DataOptions,
    table: Annotated[str | None, typer.Option("--table", metavar="NAME", help="Only this table.")] = None,
    as_json: Json = False,
) -> None:
    """List tables and columns with what is declared of them. It costs nothing: no row is read."""
    from hubbub.cli.printing import say

    with data.open() as database:
        listing, balance = database.schema(table), database.budget
    if as_json:
        typer.echo(json.dumps({"columns": listing.to_dicts(), "budget": balance.to_dict()}, indent=2))
    else:
        say(*repr(listing).split("\n"), "", repr(balance))
