"""``hubbub diagnose``: the number of units that the limits and bounds of a question clip."""

import json

import typer

from hubbub.cli.data import DataOptions, question_of, with_data
from hubbub.cli.options import Json, Key, Log, Price, Question, Slack


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
