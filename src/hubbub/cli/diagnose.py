"""``hubbub diagnose``: how many units the limits and bounds of a question cut off."""

import json
from pathlib import Path
from typing import Annotated

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


def diagnose(
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
    """Count the units that max_groups, max_rows and bounds cut something off of: private, and paid like an answer.

    Exit status: 0 diagnosed; 2 refused; 3 the engine failed, and the charge stands.
    """
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
        from hubbub.cli.printing import elapsed, say

        with elapsed(database.policy.limits.seconds):
            found = database.diagnose(text, epsilon=epsilon, delta=delta, key=key)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        say(*repr(found).split("\n"))
