"""``hubbub audit``: look for a counterexample to anything that claims a guarantee, on made-up tables alone."""

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.data import POLICY
from hubbub.cli.options import Json, PolicyFile, Slack, exact
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hubbub.audit.report import Report
    from hubbub.audit.subject import Subject

FOUND = 1
"""The exit status where a claim was refuted."""


def audit(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME|SQL]…",
            help="What claims something: names from --list, or questions in quotes.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Everything that has a name.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Print the names, and end.")] = False,
    policy: PolicyFile = None,
    epsilon: Annotated[
        Fraction | None,
        typer.Option("--epsilon", parser=exact, metavar="NUMBER", help="What a question would cost; without it, 1."),
    ] = None,
    delta: Slack = None,
    draws: Annotated[int, typer.Option("--draws", min=1000, help="Answers counted on each of two inputs.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", help="Makes other inputs up.")] = 0,
    as_json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page for a reviewer, too.")
    ] = None,
) -> None:
    """Search for a counterexample to a claim of privacy, as hard as some seconds allow, and report it.

    A question is asked of tables that are made up from the schema of its policy. Data is never read.

    Exit status: 0 nothing found; 1 a claim is refuted; 2 refused.
    """
    from hubbub.audit.subjects.registry import SUBJECTS
    from hubbub.cli.printing import say, working

    if listed:
        say(*SUBJECTS)
        return
    wanted = [*(SUBJECTS if every else ()), *(what or ())]
    if not wanted:
        raise ParameterError("NAME", "given: a name from hubbub audit --list, a question in SQL, or --all", None)
    from hubbub.audit.examine import Settings, examine

    subjects = [one for name in wanted for one in _subjects(name, policy=policy, epsilon=epsilon, delta=delta)]
    settings = Settings(samples=draws)
    reports: list[Report] = []
    with working(len(subjects)) as step:
        for subject in subjects:
            reports.append(examine(subject, settings=settings, seed=seed, progress=step(subject.name)))
    told = [one.to_dict() for one in reports]
    if html is not None:
        from hubbub.report.audits import page_of

        html.write_text(page_of(told), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(told, indent=2))
    else:
        say(*(line for one in reports for line in str(one).splitlines()))
        if html is not None:
            say(f"Written: {html}")
    if any(one.accused for one in reports):
        raise typer.Exit(FOUND)


def _subjects(
    what: str, *, policy: Path | None, epsilon: Fraction | None, delta: Fraction | None
) -> "Sequence[Subject]":
    """A name, or a question: what is neither is one that is misspelt.

    A question that lacks bounds or limits is another one for each of their values: what it buys first is audited.
    """
    from hubbub.audit.subjects.registry import SUBJECTS, subject_of

    if what in SUBJECTS or not what.lstrip().lower().startswith(("select", "with", "(")):
        return [subject_of(what)]
    from contextlib import closing

    from hubbub.audit.subjects.bought_facts import lacks, looks_of
    from hubbub.audit.subjects.queries import OfQuery
    from hubbub.policy.files.read import read_policy
    from hubbub.policy.tables import Limits
    from hubbub.session.engines import EngineRoom
    from hubbub.session.opening import with_enforced

    place = policy or POLICY
    with closing(EngineRoom(limits=Limits())) as room:
        read, engine = read_policy(place, describe=room.describe), room.duckdb
        checked = with_enforced(read, place, at_rest=engine.stamp_at_rest, converted=engine.stamp_source)
        declared = room.with_constraints(checked)
    price = epsilon or Fraction(1)
    if not lacks(declared, what):
        return [OfQuery(declared, what, epsilon=price, delta=delta)]
    told = "The question buys what it lacks: that is audited. To audit its answer, declare bounds and limits."
    typer.echo(told, err=True)
    return looks_of(declared, what, epsilon=price)
