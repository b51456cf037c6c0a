"""``hubbub ledger``: look into a ledger, check it, take it elsewhere."""

import json
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.options import LedgerArgument, location, open_to_read

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.ledger import Entry, Ledger

app = typer.Typer(help="The ledger: verify, show, export and report it; adopt or forget one.", no_args_is_help=True)

OneAccount = Annotated[str | None, typer.Option("--account", help="Only this account.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


class Format(StrEnum):
    """The formats of an export."""

    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


@app.command()
def verify(*, ledger: LedgerArgument = None) -> None:
    """Check every entry, every cap and every balance; name the first entry that is bad, and exit with 1."""
    from hubbub.cli.printing import complain, progress, say
    from hubbub.errors import LedgerCorrupt
    from hubbub.ledger.stores.opening import store_at
    from hubbub.ledger.verify.verify import verify_store

    place = location(ledger)
    unopened: LedgerCorrupt | None = None
    try:
        with open_to_read([place]):
            pass  # not rolled back, and of a format that we know
    except LedgerCorrupt as problem:
        unopened = problem  # its end is damaged; the first bad entry may come earlier
    try:
        with progress("verifying") as told:
            found = verify_store(store_at(place, patience=5.0), progress=told)
        if unopened is not None:
            raise unopened
    except LedgerCorrupt as problem:
        complain(str(problem))
        raise typer.Exit(1) from problem
    entries = f"{found.entries:,} {'entry' if found.entries == 1 else 'entries'}"
    accounts = f"{found.accounts:,} account{'' if found.accounts == 1 else 's'}"
    say(f"The ledger is whole: {entries}, {accounts}; every cap holds and every balance agrees.")
    say(f"Head: {found.hash}")


@app.command()
def show(
    *,
    ledger: LedgerArgument = None,
    account: OneAccount = None,
    last: Annotated[int, typer.Option("--last", min=1, help="How many of the newest.")] = 20,
    entry: Annotated[int | None, typer.Option("--entry", min=1, help="One entry in full.")] = None,
) -> None:
    """The newest entries, or one in full."""
    from hubbub.cli.printing import say
    from hubbub.errors import ParameterError

    with open_to_read(ledger) as opened:
        if entry is None:
            say(_entries(_newest(opened, account, last)))
            return
        found = next(iter(opened.entries(first=entry, last=entry)), None)
        if found is None:
            raise ParameterError("entry", f"one of the entries of {opened.store.location}", entry)
        say(f"entry  {found.seq}", f"time   {found.moment.isoformat()}", f"kind   {found.kind}", f"hash   {found.hash}")
        for line in json.dumps(found.content, indent=2, sort_keys=True).splitlines():
            say(line)


@app.command()
def export(
    *,
    ledger: LedgerArgument = None,
    form: Annotated[Format, typer.Option("--format", help="json and jsonl keep every entry exactly.")] = Format.JSONL,
    out: Annotated[Path | None, typer.Option("--out", help="A new file; without it, standard output.")] = None,
) -> None:
    """All entries as JSON, as JSON lines, or as a table for a spreadsheet.

    In CSV, text that begins like a formula gets an apostrophe in front, and what does not print becomes an escape.
    """
    from hubbub.cli.export import GUARDED, export_entries
    from hubbub.cli.printing import note

    with open_to_read(ledger) as opened:
        export_entries(opened, form.value, out)
    if form is Format.CSV:
        note(GUARDED)


@app.command()
def report(*, ledger: LedgerArgument = None, account: OneAccount = None) -> None:
    """Report the spending, by whom and when; a second accountant counts every loss again (exit 1 if short)."""
    from hubbub.cli.printing import progress
    from hubbub.cli.reporting import print_report
    from hubbub.ledger.report import report as reported

    with open_to_read(ledger) as opened:
        with progress("counting again") as told:
            found = reported(opened, account=account, progress=told)
        print_report(found, place=opened.store.location)
    if not found.holds:
        raise typer.Exit(1)


@app.command()
def adopt(*, ledger: LedgerArgument = None, yes: Yes = False) -> None:
    """Take a ledger as it is although this machine has seen more of it: after the newest file was lost."""
    from contextlib import closing

    from hubbub.cli.printing import say
    from hubbub.errors import LedgerCorrupt
    from hubbub.ledger import Marks
    from hubbub.ledger.book import head_of
    from hubbub.ledger.ledger import wall_clock
    from hubbub.ledger.stores.opening import adopt as adopted
    from hubbub.ledger.stores.opening import store_at

    store, marks = store_at(location(ledger), patience=5.0), Marks()
    with closing(store.reader()) as session:
        head = head_of(session)
    try:
        mark = marks.of(head.ledger)
        seen = "nothing" if mark is None else f"entry {mark.seq}"
    except LedgerCorrupt:
        seen = "a mark that is damaged"
    say(f"The ledger {store.location} ends at entry {head.seq}; this machine has seen {seen} of it.")
    say("Whatever was spent after that end is forgotten, and can be spent once more.")
    if not yes:
        typer.confirm("Is this the ledger from now on?", abort=True)
    head = adopted(store, marks=marks, clock=wall_clock)
    say(f"Adopted at entry {head.seq}. Head: {head.hash}")


@app.command()
def forget(*, ledger: LedgerArgument = None, yes: Yes = False) -> None:
    """Let a new ledger be created where one was lost: all that was spent on it is forgotten."""
    from hubbub.cli.printing import say
    from hubbub.ledger import Marks
    from hubbub.ledger.stores.opening import store_at

    store, marks = store_at(location(ledger), patience=5.0), Marks()
    if marks.ledger_at(store.location) is None:
        say(f"This machine has seen no ledger at {store.location}.")
        return
    say(f"This machine has seen a ledger at {store.location}.")
    say("Once that is forgotten, another ledger may lie there, in which nothing was spent.")
    if not yes:
        typer.confirm("Forget it?", abort=True)
    marks.forget(store.location)
    say("Forgotten.")


def _newest(ledger: "Ledger", account: str | None, count: int) -> list["Entry"]:
    from contextlib import closing

    from hubbub.ledger.book import head_of
    from hubbub.ledger.verify.recompute import sense_of

    if account is None:
        with closing(ledger.store.reader()) as session:
            end = head_of(session).seq
        return list(ledger.entries(first=max(1, end - count + 1)))
    ledger.statement(account)  # or UnknownAccount
    charges: set[int] = set()
    kept: deque[Entry] = deque(maxlen=count)
    for entry in ledger.entries():
        with sense_of(entry):
            content = entry.content
        if content.get("account") == account or content.get("charge") in charges:
            kept.append(entry)
            charges.update({entry.seq} if entry.kind == "charge" else ())
    return list(kept)


def _entries(entries: list["Entry"]) -> "Table":
    from hubbub.cli.printing import cell, shorten, table
    from hubbub.ledger.verify.recompute import sense_of

    made = table("Entries", "entry", "time", "kind", "what", right=("entry",))
    for entry in entries:
        with sense_of(entry):
            what = shorten(_what(entry.kind, entry.content), 160)
        made.add_row(cell(entry.seq), cell(f"{entry.moment:%Y-%m-%d %H:%M:%S}"), cell(entry.kind), what)
    return made


def _what(kind: str, content: Mapping[str, Any]) -> str:
    """An entry in a few words."""
    match kind:
        case "charge":
            return f"{content['principal']} on {content['account']}: {content['question']}"
        case "answer" | "publish":
            return f"of entry {content['charge']}"
        case "serve" | "share":
            return f"entry {content['charge']} to {content['principal']}"
        case "account":
            return f"{content['account']}: {content['population']}" if content["population"] else content["account"]
        case "failure":
            return f"of entry {content['charge']}, by {content['principal']} on {content['account']}"
        case "project" | "grant" | "revoke" | "thaw":
            return f"{content.get('project' if kind == 'project' else 'principal')} on {content['account']}"
        case "renewal":
            named = f" {content['name']}" if content["name"] else ""
            return f"{content['holder']}{named} on {content['account']}: period {content['period']}"
        case "budget":
            named = f" {content['name']}" if content["name"] else ""
            terms = content["terms"]
            to = "closed" if terms["closed"] else f"ε = {terms['epsilon']}, δ = {terms['delta']}"
            return f"{content['holder']}{named} on {content['account']}: {to}"
        case "fact":
            return f"{content['name']} of {content['account']}, paid by entry {content['paid']}"
    return json.dumps(content, sort_keys=True)
