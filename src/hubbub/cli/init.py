"""``hubbub init``: a policy to start from. Names and types of columns are read, and no value."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hubbub.engines.duckdb.engine import DuckDB
    from hubbub.policy.files.write import TableDraft


def init(
    *,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Tables: files or quoted globs, one each.", show_default=False),
    ],
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="COLUMN", help="The column that says whose a row is.")
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="A new file, or - to print it.")] = "hubbub.toml",
    account: Annotated[str, typer.Option("--account", help="Whom the budget protects.")] = "people",
    ledger: Annotated[str, typer.Option("--ledger", metavar="LEDGER", help="Where it will be.")] = "hubbub.ledger",
) -> None:
    """Write a policy to start from, out of the names and types of columns. It never replaces a file."""
    from hubbub.cli.printing import note, progress, say
    from hubbub.engines.duckdb.engine import DuckDB
    from hubbub.policy.files.write import starter

    if out != "-" and os.path.lexists(out):
        raise typer.BadParameter(f"{out} is there already, and is not replaced.", param_hint="--out")
    folder = Path(out).parent if out != "-" else Path()
    with progress("Converting text") as report, DuckDB(standbys=1, log=note, progress=report) as engine:
        drafts = [draft for file in files for draft in _drafts(engine, file, unit, folder)]
    _check(drafts, unit)
    text = starter(drafts, account=account, ledger=ledger)
    if out == "-":
        typer.echo(text, nl=False)
        return
    try:
        with open(out, "x", encoding="utf-8") as made:
            made.write(text)
    except OSError as problem:
        raise typer.BadParameter(f"{out} cannot be written ({problem.strerror}).", param_hint="--out") from problem
    say(f"Wrote {out}: {', '.join(draft.name for draft in drafts)}.")
    for draft in drafts:
        if draft.unit is None:
            say(f"Say whose the rows of {draft.name} are, or that they are public.")
    say("Declare bounds and keys of what will be added up and grouped by; then: hubbub check")


def _drafts(engine: "DuckDB", file: str, unit: str | None, folder: Path) -> "list[TableDraft]":
    """One table, or all tables of a DuckDB file."""
    from hubbub.cli.owner import tables_in
    from hubbub.engines.public import schema_of
    from hubbub.policy.files.write import TableDraft
    from hubbub.policy.sources import source_of, table_name

    path = file if os.path.isabs(file) else os.path.relpath(file, folder)
    source = source_of(file, name=table_name(file))
    names = tables_in(source.paths[0]) if source.format == "duckdb" else [table_name(file)]
    made = []
    for name in names:
        one = source_of(file, table=name) if source.format == "duckdb" else source
        schema = schema_of(engine, one)
        own = next((column for column, _ in schema if unit is not None and column.lower() == unit.lower()), None)
        made.append(TableDraft(name=name, path=path, format=source.format, schema=schema, table=one.table, unit=own))
    return made


def _check(drafts: "list[TableDraft]", unit: str | None) -> None:
    seen: set[str] = set()
    for draft in drafts:
        if draft.name.lower() in seen:
            raise typer.BadParameter(
                f"Two tables would be called {draft.name!r}. Quote a glob to make one table of its files.",
                param_hint="FILE",
            )
        seen.add(draft.name.lower())
    if unit is not None and all(draft.unit is None for draft in drafts):
        known = sorted({column for draft in drafts for column, _ in draft.schema})
        raise typer.BadParameter(f"no table has a column {unit!r}. There are: {', '.join(known)}.", param_hint="--unit")
