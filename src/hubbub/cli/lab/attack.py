"""``hubbub attack``: what a planned or a past release gives away, and what the same attacks get from Hubbub."""

from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.options import Json, exact
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from hubbub.attack.finding import AttackFinding

FOUND, UNDECIDED = 1, 4
"""The exit status where an attack works, and where there are too few guesses to tell."""
ONE = Fraction(1)

app = typer.Typer(
    help="Attack a release, or a target of the lab. Exit status: 0 nothing is told that chance does not tell; 1 the "
    "attack works; 2 refused; 4 too few guesses to tell.",
    no_args_is_help=True,
)


class Target(StrEnum):
    """Whom an attack of the lab is tried on."""

    NAIVE = "naive"
    HUBBUB = "hubbub"


class Answering(StrEnum):
    """The way in which a target answers questions about subsets."""

    EXACT = "exact"
    ROUNDED = "rounded"
    NOISED = "noised"
    HUBBUB = "hubbub"


class Example(StrEnum):
    """Releases that lectures tell of."""

    LECTURE = "lecture"
    HOSPITALS = "hospitals"


AsText = Annotated[
    list[str] | None, typer.Option("--text", metavar="COLUMN", help="Not a number, whatever it looks like.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with the picture, too.")]
Seed = Annotated[int, typer.Option("--seed", help="Makes other people up.")]
TargetOption = Annotated[Target, typer.Option("--target", help="Without protection, or Hubbub.")]
Price = Annotated[
    Fraction | None,
    typer.Option("--epsilon", parser=exact, metavar="NUMBER", help="Hubbub's total ε in this attack; without it, 1."),
]
On = Annotated[
    list[str] | None, typer.Option("--on", metavar="COLUMN", help="What an attacker knows; as often as needed.")
]


def show(found: "AttackFinding", *, as_json: bool, html: Path | None) -> None:
    """Print the finding, and exit with 1 where the attack works, with 4 where it cannot be decided."""
    from hubbub.cli.printing import say

    if html is not None:
        found.to_html(html)
    if as_json:
        typer.echo(found.to_json())
    else:
        say(*str(found).splitlines())
        if html is not None:
            say("", f"Written: {html}")
    if found.works or found.is_undecided:
        raise typer.Exit(FOUND if found.works else UNDECIDED)


@app.command()
def suppression(
    *,
    table: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Counts with totals first; without one, a published table.")
    ] = None,
    most: Annotated[int | None, typer.Option("--most", min=0, help="The largest count that is hidden.")] = None,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Work hidden counts of a table out again from its totals."""
    from dataclasses import replace

    from hubbub.attack.suppression import hcup, read_table
    from hubbub.attack.suppression import suppression as attack

    held = replace(hcup(), most=most) if table is None else read_table(_there(table), most=most)
    show(attack(held), as_json=as_json, html=html)


@app.command()
def reconstruction(
    *,
    people: Annotated[int, typer.Option("--people", min=10, help="How many secret bits there are.")] = 1000,
    questions: Annotated[
        int | None, typer.Option("--questions", min=1, help="How many subsets are asked for.", show_default=False)
    ] = None,
    target: Annotated[Answering, typer.Option("--target", help="How the answers are protected.")] = Answering.EXACT,
    size: Annotated[float, typer.Option("--size", min=0, help="Of the rounding or the noise.")] = 5,
    program: Annotated[bool, typer.Option("--program", help="Linear programming, too: slower, and stronger.")] = False,
    epsilon: Price = None,
    seed: Seed = 0,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Rebuild a secret column from answers about random subsets of people."""
    from hubbub.attack.made_up import MadeUp
    from hubbub.attack.reconstruction import LEAST_SQUARES, METHODS, noised, rounded
    from hubbub.attack.reconstruction import exact as exactly
    from hubbub.attack.reconstruction import reconstruction as attack
    from hubbub.cli.lab.targets import subsets

    secret = MadeUp(seed, "secret").bits(people)
    match target:
        case Answering.EXACT:
            answers, named = exactly(secret), "exact answers"
        case Answering.ROUNDED:
            answers, named = rounded(secret, to=max(1, round(size))), f"answers rounded to {max(1, round(size))}"
        case Answering.NOISED:
            answers, named = noised(secret, size=size), f"answers with noise up to {size:g}"
        case Answering.HUBBUB:
            answers, named = subsets(secret.tolist(), epsilon=epsilon or ONE), _ours(epsilon)
    methods = METHODS if program else (LEAST_SQUARES,)
    found = attack(secret, answers, target=named, count=questions, seed=seed, methods=methods)
    show(found, as_json=as_json, html=html)


@app.command()
def marginals(
    *,
    people: Annotated[int, typer.Option("--people", min=1, max=500, help="In the made-up block.")] = 30,
    ways: Annotated[int, typer.Option("--ways", min=1, max=4, help="Attributes of each published table.")] = 3,
    target: TargetOption = Target.NAIVE,
    epsilon: Price = None,
    seed: Seed = 0,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Work the records of a made-up census block out again from tables of counts."""
    from hubbub.attack.marginals import CENSUS, block, margins
    from hubbub.attack.marginals import marginals as attack
    from hubbub.cli.lab.targets import publish_tables

    truth = block(people=people, seed=seed)
    tables, named = margins(truth, domain=CENSUS, ways=ways), "exact counts"
    if target is Target.HUBBUB:
        tables, named = publish_tables(truth, domain=CENSUS, ways=tables, epsilon=epsilon or ONE), _ours(epsilon)
    show(attack(truth, tables, target=named), as_json=as_json, html=html)


@app.command()
def linkage(
    *,
    released: Annotated[Path, typer.Argument(metavar="RELEASED", help="The table without names (CSV, Parquet).")],
    known: Annotated[
        Path | None, typer.Argument(metavar="[KNOWN]", help="A list with names; without one, who is alone.")
    ] = None,
    on: On = None,
    name: Annotated[str, typer.Option("--name", help="The column of names in KNOWN.")] = "name",
    sensitive: Annotated[str, typer.Option("--sensitive", help="What RELEASED tells about people.")] = "",
    most: Annotated[int | None, typer.Option("--most", min=1, help="Columns in one combination, at most.")] = None,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Count who is alone with what is known of them, and put names back on a table."""
    from hubbub.attack.linkage import linkage as attack
    from hubbub.attack.linkage import unique_people
    from hubbub.cli.lab.tables import read_columns

    rows = read_columns(released, text=True)
    if known is None:
        found = unique_people(rows, quasi=on or [], most=most)
    else:
        found = attack(rows, read_columns(known, text=True), on=on or [], name=name, sensitive=sensitive)
    show(found, as_json=as_json, html=html)


@app.command()
def composition(
    *,
    first: Annotated[Path | None, typer.Argument(metavar="[FIRST", help="An anonymised table (CSV, Parquet).")] = None,
    second: Annotated[Path | None, typer.Argument(metavar="SECOND]", help="Another about the same people.")] = None,
    example: Annotated[
        Example, typer.Option("--example", help="The tables, where no files are given.")
    ] = Example.LECTURE,
    on: On = None,
    sensitive: Annotated[str, typer.Option("--sensitive", help="What both tables tell about people.")] = "",
    person: Annotated[
        list[str] | None, typer.Option("--person", metavar="COLUMN=VALUE", help="What is known of somebody.")
    ] = None,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Hold two anonymised releases side by side."""
    from hubbub.attack.composition import HOSPITALS, LECTURE, hospitals, lecture
    from hubbub.attack.composition import composition as attack
    from hubbub.cli.lab.tables import pairs, read_columns

    known = pairs(person, option="--person")
    if first is not None and second is not None:
        columns, secret = tuple(on or ()), sensitive
        one, two = (read_columns(place, text=True) for place in (first, second))
        found = attack(one, two, on=columns, sensitive=secret, person=known or None)
    elif first is not None:
        raise ParameterError("SECOND", "given beside FIRST: a release composes with another", None)
    elif example is Example.LECTURE:
        known = known or {"zip": "13012", "age": "28"}
        found = attack(*lecture(), on=LECTURE, sensitive="condition", person=known)
    else:
        known = known or {"age": "20", "gender": "Male"}
        found = attack(*hospitals(), on=HOSPITALS, sensitive="diagnosis", person=known)
    show(found, as_json=as_json, html=html)


@app.command()
def differencing(
    *,
    log: Annotated[
        Path | None, typer.Argument(metavar="[LOG]", help="Questions, or conditions, one a line; without it, Frank's.")
    ] = None,
    table: Annotated[Path | None, typer.Option("--table", help="The rows that LOG asks about (CSV, Parquet).")] = None,
    text: AsText = None,
    few: Annotated[int, typer.Option("--few", min=1, help="So many people are few.")] = 3,
    terms: Annotated[int, typer.Option("--terms", min=1, max=3, help="Questions in one combination.")] = 2,
    people: Annotated[int, typer.Option("--people", min=1, help="Without a table: how many there are.")] = 200,
    values: Annotated[
        list[str] | None, typer.Option("--values", metavar="COLUMN=NUMBER", help="Without one: values of a column.")
    ] = None,
    target: TargetOption = Target.NAIVE,
    epsilon: Price = None,
    seed: Seed = 0,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Find questions in a log whose differences are about few people; without a log, try it on a target."""
    from hubbub.attack.gateway.differencing import differencing as planner
    from hubbub.attack.gateway.differencing import plan
    from hubbub.attack.gateway.exclusion import count_exactly, district, not_named
    from hubbub.attack.gateway.exclusion import exclusion as estimate
    from hubbub.cli.lab.tables import pairs, read_columns
    from hubbub.cli.lab.targets import pupils
    from hubbub.cli.printing import note

    if log is None:
        made_up = district(people=people, seed=seed)
        victims = min(people, 100)
        if target is Target.NAIVE:
            found = not_named(made_up, count_exactly(made_up), victims=victims, target="exact answers")
        else:
            with pupils(made_up, epsilon=epsilon or ONE, questions=victims + 1) as count:
                found = not_named(made_up, count, victims=victims, target=_ours(epsilon))
    else:
        lines = [line for line in _there(log).read_text(encoding="utf-8").splitlines() if line.strip()]
        if table is not None:
            sets, unread = plan(lines, read_columns(table, text=text or ()))
            for one in unread:
                note(f"Left out: {one}")
            found = planner(sets, few=few, terms=terms)
        else:
            many = {name: float(exact(one)) for name, one in pairs(values, option="--values").items()}
            found = estimate(lines, people=people, values=many, few=few)
    show(found, as_json=as_json, html=html)


@app.command()
def averaging(
    *,
    target: TargetOption = Target.NAIVE,
    times: Annotated[int, typer.Option("--times", min=2, help="How often it is asked.")] = 20_000,
    reworded: Annotated[
        bool, typer.Option("--reworded", help="In other words each time, where a store would help.")
    ] = False,
    epsilon: Price = None,
    each: Annotated[
        Fraction | None,
        typer.Option("--each", parser=exact, metavar="NUMBER", help="The price of one answer; without it, 0.1."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Ask the same again and again, and average the noise away."""
    from hubbub.attack.gateway.averaging import averaging as attack
    from hubbub.attack.gateway.averaging import fresh_noise
    from hubbub.cli.lab.targets import ask_repeatedly

    people, price = 412, each or Fraction(1, 10)
    if target is Target.NAIVE:
        ask = fresh_noise(people, scale=float(1 / price), seed=seed)
        found = attack(ask, truth=people, times=times, target="fresh noise, no account")
    else:
        named = f"{_ours(epsilon)}, {'in other words each time' if reworded else 'the same question'}"
        with ask_repeatedly(people, epsilon=epsilon or ONE, each=price, reworded=reworded) as ask:
            found = attack(ask, truth=people, times=min(times, 200), target=named)
    show(found, as_json=as_json, html=html)


def _ours(epsilon: Fraction | None) -> str:
    return f"Hubbub at ε = {float(epsilon or ONE):g} in all"


def _there(path: Path) -> Path:
    if not path.is_file():
        raise ParameterError("FILE", "a file that is there", str(path))
    return path
