"""``hubbub query``: ask, pay, and see the answer with its error bars."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.arguments import Json
from hubbub.cli.data import (
    Account,
    Alone,
    Columns,
    Data,
    DataVersion,
    File,
    LedgerOption,
    MaxGroups,
    MaxRows,
    PolicyFile,
    Price,
    Principal,
    Question,
    Slack,
    Total,
    TotalSlack,
    Unit,
    question_of,
)

if TYPE_CHECKING:
    from hubbub.query.answer import Answer


def query(
    *,
    sql: Question,
    file: File = None,
    epsilon: Price,
    delta: Slack = None,
    policy: PolicyFile = None,
    ledger: LedgerOption = None,
    principal: Principal = None,
    key: Annotated[
        str | None, typer.Option("--key", help="A name for this request: repeated with it, it is paid once.")
    ] = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, with _low and _high columns.")] = False,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Where the owner reads why the engine failed.")
    ] = None,
    unit: Unit = None,
    column: Columns = None,
    budget: Total = None,
    budget_delta: TotalSlack = None,
    max_groups: MaxGroups = None,
    max_rows: MaxRows = None,
    account: Account = None,
    data_version: DataVersion = None,
) -> None:
    """Ask one question in SQL. It is paid before anything is read, and free if it was answered before.

    Exit status: 0 answered; 2 refused; 3 the engine failed, and the charge stands.
    """
    if as_json and as_csv:
        raise typer.BadParameter("--json or --csv, not both.", param_hint="--csv")
    text = question_of(sql)
    alone = Alone(
        unit=unit,
        columns=column,
        budget=budget,
        budget_delta=budget_delta,
        max_groups=max_groups,
        max_rows=max_rows,
        account=account,
        version=data_version,
    )
    data = Data(file=file, policy=policy, ledger=ledger, principal=principal, alone=alone, log=log)
    with data.opened() as database:
        from hubbub.cli.printing import elapsed

        with elapsed(database.policy.limits.seconds):
            answer = database.sql(text, epsilon=epsilon, delta=delta, key=key)
    if as_json:
        typer.echo(json.dumps(as_dict(answer), indent=2, default=_text))
    elif as_csv:
        _print_csv(answer)
    else:
        from hubbub.cli.printing import say
        from hubbub.query.shown import as_text

        say(*as_text(answer, most=None).split("\n"))


def as_dict(answer: "Answer") -> dict[str, Any]:
    """For programs: numbers with their intervals, the price, and what an outsider needs to check it."""
    certificate = json.loads(answer.certificate())
    return {
        "columns": answer.columns,
        "rows": _plain(answer.rows),
        "lows": _plain(answer.lows),
        "highs": _plain(answer.highs),
        "confidence": answer.confidence,
        "price": {name: certificate[name] for name in ("epsilon", "delta", "loss_units", "failure_units")},
        "entry": answer.entry,
        "stored": None if answer.stored is None else answer.stored.isoformat(),
        "account": certificate["account"],
        "certificate": certificate,
    }


def _print_csv(answer: "Answer") -> None:
    import csv

    from hubbub.cli.export import GUARDED, guarded
    from hubbub.cli.printing import note

    changed = False

    def cell(value: Any) -> Any:
        nonlocal changed
        if value is None or isinstance(value, int | float):
            return value
        shown = guarded(json.dumps(_plain(value), default=_text) if isinstance(value, dict | list) else _text(value))
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
