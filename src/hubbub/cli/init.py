"""``hubbub init``: a policy to start from. Of values, only those of text files are read, to guess their types."""

import os
import sys
from dataclasses import replace
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
        typer.Argument(
            metavar="FILE...",
            help="Tables: files or quoted globs, one each, or the postgresql:// URL of a database.",
            show_default=False,
        ),
    ],
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="COLUMN", help="The column that says whose a row is.")
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="A new file, or - to print it.")] = "hubbub.toml",
    schema: Annotated[
        list[str] | None, typer.Option("--schema", metavar="SCHEMA", help="A schema of a database; without it, all.")
    ] = None,
    account: Annotated[str, typer.Option("--account", help="Whom the budget protects.")] = "people",
    ledger: Annotated[str, typer.Option("--ledger", metavar="LEDGER", help="Where it will be.")] = "hubbub.ledger",
    accept: Annotated[
        bool, typer.Option("--accept", help="Take guesses (types of text, paths to the unit) as they are.")
    ] = False,
) -> None:
    """Write a policy to start from, out of the names and types of columns. It never replaces a file.

    Types of text files are guessed from their values, and paths to the unit from names that tables share; those of a
    database are its foreign keys. On a terminal you are asked about them; elsewhere they are comments in the file,
    unless you --accept them. A password is not written.
    """
    from hubbub.cli.printing import note, progress, say
    from hubbub.engines.duckdb.engine import DuckDB
    from hubbub.policy.files.write import starter

    if out != "-" and os.path.lexists(out):
        raise typer.BadParameter(f"{out} is there already, and is not replaced.", param_hint="--out")
    folder = Path(out).parent if out != "-" else Path()
    with progress("Converting text") as report, DuckDB(standbys=1, log=note, progress=report) as engine:
        drafts = [draft for file in files for draft in _drafts(engine, file, unit, folder, schema or [])]
    _check(drafts, unit)
    drafts = _confirm(_with_steps(drafts), accept=accept, asks=out != "-" and sys.stdin.isatty())
    text = starter(drafts, account=account, ledger=ledger)
    if out == "-":
        typer.echo(text, nl=False)
        return
    try:
        with open(out, "x", encoding="utf-8") as made:
            made.write(text)
    except OSError as problem:
        raise typer.BadParameter(f"{out} cannot be written ({problem.strerror}).", param_hint="--out") from problem
    say(f"Wrote {out}: {', '.join(draft.name for draft in drafts)}.", *_left(drafts, out))


def _left(drafts: "list[TableDraft]", out: str) -> list[str]:
    """Say what is left for the owner to do."""
    lines = []
    if any(draft.format == "postgres" for draft in drafts):
        lines.append(
            "Let questions run as a role of their own, which can read these tables alone: hubbub check says how."
        )
    for draft in drafts:
        if draft.problem is not None:
            lines.append(f"{draft.name} cannot be asked: see {out}.")
        elif draft.unit is None and not draft.has_path:
            path = f" {draft.name} may lead to it through {draft.steps[0]}: see {out}." if draft.steps else ""
            lines.append(f"Say whose the rows of {draft.name} are, or that they are public.{path}")
    untyped = [draft.name for draft in drafts if draft.types and not draft.has_types]
    if untyped:
        lines.append(f"Types of {', '.join(untyped)} were guessed: take out the # in {out} where they are right.")
    lines.append("Bounds and limits that you do not declare are bought with a share of a question's ε.")
    lines.append("Declare the keys of what will be grouped by; then: hubbub check")
    return [*lines, "For limits with which intervals hold the truth: hubbub advise --epsilon 0.1"]


def _with_steps(drafts: "list[TableDraft]") -> "list[TableDraft]":
    from hubbub.policy.shared_keys import find_steps

    columns = {draft.name: [column for column, _ in draft.schema] for draft in drafts}
    foreign = {draft.name: draft.foreign for draft in drafts if draft.foreign is not None}
    named = {draft.name: draft.unit or next(iter(draft.unit_keys), None) for draft in drafts}
    units = {name: unit for name, unit in named.items() if unit is not None}
    steps = find_steps(columns, units, foreign=foreign)
    return [replace(draft, steps=steps.get(draft.name, ())) for draft in drafts]


def _confirm(drafts: "list[TableDraft]", *, accept: bool, asks: bool) -> "list[TableDraft]":
    """Ask the owner about what was guessed, table by table."""
    from hubbub.cli.printing import plain

    def agrees(question: str) -> bool:
        return accept or (asks and typer.confirm(plain(question)))

    confirmed = []
    for draft in drafts:
        types = ", ".join(f"{name} {guess}" for name, guess in draft.types.items() if guess is not None)
        step = draft.steps[0] if draft.steps else None
        if len(draft.unit_keys) == 1 and agrees(
            f"Rows of {draft.name} belong to whom a foreign key leads their {draft.unit_keys[0]} to. Right?"
        ):
            draft = replace(draft, unit=draft.unit_keys[0])  # noqa: PLW2901
        has_types = bool(types) and agrees(f"Types of {draft.name}, guessed from its values: {types}. Right?")
        has_path = step is not None and agrees(
            f"Rows of {draft.name} belong to whom their {step.column} in {step.table} belongs to. Right?"
        )
        confirmed.append(replace(draft, has_types=has_types, has_path=has_path))
    return confirmed


def _drafts(engine: "DuckDB", file: str, unit: str | None, folder: Path, schemas: list[str]) -> "list[TableDraft]":
    """One table, or all tables of a DuckDB file or a server."""
    from hubbub.policy.servers import is_server

    if is_server(file):
        from hubbub.engines.postgres.drafting import draft_tables

        return draft_tables(file, schemas=schemas, unit=unit)
    from hubbub.cli.guessing import guess_types
    from hubbub.cli.owner import tables_in
    from hubbub.engines.public import schema_of
    from hubbub.policy.files.write import TableDraft
    from hubbub.policy.sources import UNTYPED, source_of, table_name

    path = file if os.path.isabs(file) else os.path.relpath(file, folder)
    source = source_of(file, name=table_name(file))
    names = tables_in(source.paths[0]) if source.format == "duckdb" else [table_name(file)]
    made = []
    for name in names:
        one = source_of(file, table=name) if source.format == "duckdb" else source
        schema = schema_of(engine, one)
        own = next((column for column, _ in schema if unit is not None and column.lower() == unit.lower()), None)
        types = guess_types(one, [column for column, _ in schema]) if source.format in UNTYPED and schema else {}
        made.append(
            TableDraft(
                name=name, path=path, format=source.format, schema=schema, table=one.table, unit=own, types=types
            )
        )
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
