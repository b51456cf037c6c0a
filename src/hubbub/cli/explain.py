"""``hubbub explain``: the price of a question and the noise of its answer, for nothing."""

import json

from hubbub.cli.data import DataOptions, question_of, with_data
from hubbub.cli.options import Json, Price, Question, Slack


@with_data
def explain(
    *,
    data: DataOptions,
    sql: Question,
    epsilon: Price,
    delta: Slack = None,
    as_json: Json = False,
) -> None:
    """Say what a question would cost and how noisy its answer would be. Nothing private is read, nothing is paid.

    Exit status: 0 explained (also where it would not fit into what is left); 2 refused.
    """
    import typer

    from hubbub.cli.printing import say

    text = question_of(sql)
    with data.open() as database:
        explained = database.explain(text, epsilon=epsilon, delta=delta)
    if as_json:
        typer.echo(json.dumps(explained.to_dict(), indent=2))
    else:
        say(*str(explained).split("\n"))
