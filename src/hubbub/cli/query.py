"""``hubbub query``, ``explain`` and ``diagnose``: ask and pay, or see the price, or see what limits clip."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.data import DataOptions, question_of, with_data
from hubbub.cli.options import Error, Json, Key, Log, Price, Question, Slack, SomePrice

if TYPE_CHECKING:
    from hubbub.query.answer.answer import Answer
    from hubbub.query.answer.listing import Listing


@with_data
def query(
    *,
    data: DataOptions,
    sql: Question,
    epsilon: SomePrice = None,
    delta: Slack = None,
    error: Error = None,
    key: Key = None,
    as_json: Json = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV, with _low and _high columns, and _ranks of choices.")
    ] = False,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Print intervals that hold in all groups together.")
    ] = False,
    log: Log = None,
) -> None:
    """Ask one question in SQL. It is paid before anything is read, and free if it was answered before.

    Exit status: 0 answered; 2 refused; 3 the engine failed, and the charge stands.
    """
    if as_json and as_csv:
        raise typer.BadParameter("--json or --csv, not both.", param_hint="--csv")
    text = question_of(sql)
    with data.open(log=log) as database:
        from hubbub.cli.printing import show_clock

        with show_clock(database.policy.limits.seconds):
            answer = database.sql(text, epsilon=epsilon, delta=delta, error=error, key=key)
    from hubbub.cli.printing import say
    from hubbub.query.answer.listing import Listing
    from hubbub.query.answer.render import as_text

    if simultaneous and not isinstance(answer, Listing):
        answer = answer.with_intervals(simultaneous=True)
    if as_json:
        told = answer.to_dicts() if isinstance(answer, Listing) else as_dict(answer)
        typer.echo(json.dumps(told, indent=2, default=_text))
    elif as_csv:
        _print_csv(answer)
    else:
        text = repr(answer) if isinstance(answer, Listing) else as_text(answer, most=None)
        say(*text.split("\n"))


def as_dict(answer: "Answer") -> dict[str, Any]:
    """For programs: numbers with their intervals, the price, and what an outsider needs to check it."""
    from hubbub.ledger.entry import ratio

    certificate = json.loads(answer.certificate())
    return {
        "columns": answer.columns,
        "rows": _plain(answer.rows),
        "lows": _plain(answer.lows),
        "highs": _plain(answer.highs),
        "ranks": _plain(answer.ranks),
        "confidence": answer.confidence,
        "simultaneous": answer.is_simultaneous,
        "terms": answer.terms,
        "price": {name: certificate[name] for name in ("epsilon", "delta", "loss_units", "failure_units")}
        | {"epsilon_in_all": ratio(answer.price)},
        "entry": answer.entry,
        "stored": None if answer.stored is None else answer.stored.isoformat(),
        "account": certificate["account"],
        "certificate": certificate,
    }


def _print_csv(answer: "Answer | Listing") -> None:
    import csv

    from hubbub.cli.export import GUARDED, guard
    from hubbub.cli.printing import note

    changed = False

    def cell(value: Any) -> Any:
        nonlocal changed
        if value is None or isinstance(value, int | float):
            return value
        shown = guard(json.dumps(_plain(value), default=_text) if isinstance(value, dict | list) else _text(value))
        changed = changed or shown.startswith("'")
        return shown

    made = answer.to_dicts()
    names = list(made[0]) if made else list(answer.columns)
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow([cell(name) for name in names])
    rows.writerows([cell(value) for value in row.values()] for row in made)
    if changed:
        note(GUARDED)


def _plain(value: Any) -> Any:
    """Cells as JSON can hold them: bins that are dates or reals have texts for names."""
    if isinstance(value, dict):
        return {bin_ if isinstance(bin_, str) else _text(bin_): one for bin_, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


@with_data
def explain(
    *,
    data: DataOptions,
    sql: Question,
    epsilon: Price,
    delta: Slack = None,
    error: Error = None,
    as_sql: Annotated[bool, typer.Option("--sql", help="Print what the engine would run. For the owner.")] = False,
    as_json: Json = False,
) -> None:
    """Say what a question would cost and how noisy its answer would be. Nothing private is read, nothing is paid.

    Exit status: 0 explained (also where it would not fit into what is left); 2 refused.
    """
    from hubbub.cli.printing import plain, say

    text = question_of(sql)
    with data.open() as database:
        if as_sql:
            statements = database.statements(text, epsilon=epsilon, delta=delta, error=error)
            if as_json:
                typer.echo(json.dumps({"statements": statements}, indent=2))
            else:
                typer.echo("\n\n".join("\n".join(map(plain, one.split("\n"))) + ";" for one in statements))
            return
        explained = database.explain(text, epsilon=epsilon, delta=delta, error=error)
    if as_json:
        typer.echo(json.dumps(explained.to_dict(), indent=2))
    else:
        say(*str(explained).split("\n"))


@with_data
def diagnose(
    *,
    data: DataOptions,
    sql: Question,
    epsilon: Price,
    delta: Slack = None,
    key: Key = None,
    as_json: Json = False,
    log: Log = None,
) -> None:
    """Count the units that max_groups, max_rows and bounds cut something off of: private, and paid like an answer.

    Exit status: 0 diagnosed; 2 refused; 3 the engine failed, and the charge stands.
    """
    text = question_of(sql)
    with data.open(log=log) as database:
        from hubbub.cli.printing import say, show_clock

        with show_clock(database.policy.limits.seconds):
            found = database.diagnose(text, epsilon=epsilon, delta=delta, key=key)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        say(*repr(found).split("\n"))
