"""``hubbub explain``: the price of a question and the noise of its answer, for nothing."""

import json

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


def explain(
    *,
    sql: Question,
    file: File = None,
    epsilon: Price,
    delta: Slack = None,
    policy: PolicyFile = None,
    ledger: LedgerOption = None,
    principal: Principal = None,
    as_json: Json = False,
    unit: Unit = None,
    column: Columns = None,
    budget: Total = None,
    budget_delta: TotalSlack = None,
    max_groups: MaxGroups = None,
    max_rows: MaxRows = None,
    account: Account = None,
    data_version: DataVersion = None,
) -> None:
    """Say what a question would cost and how noisy its answer would be. Nothing private is read, nothing is paid.

    Exit status: 0 explained (also where it would not fit into what is left); 2 refused.
    """
    import typer

    from hubbub.cli.printing import say

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
    with Data(file=file, policy=policy, ledger=ledger, principal=principal, alone=alone).opened() as database:
        explained = database.explain(text, epsilon=epsilon, delta=delta)
    if as_json:
        typer.echo(json.dumps(explained.to_dict(), indent=2))
    else:
        say(*str(explained).split("\n"))
