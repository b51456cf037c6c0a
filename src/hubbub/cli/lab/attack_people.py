"""``hubbub attack``, continued: who was in the data, and side doors. Each on a naive target, or on Hubbub."""

from fractions import Fraction
from functools import partial
from typing import Annotated

import typer

from hubbub.cli.lab.attack import ONE, Html, Price, Seed, Target, TargetOption, show
from hubbub.cli.options import Json

Doubles = Annotated[int, typer.Option("--answers", min=1, help="About each of two neighbouring tables.")]


def add(app: typer.Typer) -> None:
    """Into the tree of commands."""
    for command in (tracing, model, perceptron, floats, precision, errors, timing):
        app.command()(command)


def name_target(target: Target, naive: str, epsilon: Fraction) -> str:
    """Name the target of an attack for a report."""
    return naive if target is Target.NAIVE else f"Hubbub at ε = {float(epsilon):g} in all"


def tracing(
    *,
    people: Annotated[int, typer.Option("--people", min=10, help="Whose means are published.")] = 200,
    attributes: Annotated[int, typer.Option("--attributes", min=1, help="How many means there are.")] = 4000,
    target: TargetOption = Target.NAIVE,
    epsilon: Price = None,
    seed: Seed = 0,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Recognise people in published means of many attributes."""
    from hubbub.attack.membership import population
    from hubbub.attack.membership import tracing as attack
    from hubbub.cli.lab.targets import means

    price = epsilon or ONE
    inside, outside, shares = population(people=people, strangers=2000, attributes=attributes, seed=seed)
    told = inside.mean(axis=0) if target is Target.NAIVE else means(inside, epsilon=price)
    what = name_target(target, "exact means", price).replace("Hubbub", "means of Hubbub")
    show(attack(inside, outside, told, shares=shares, target=what), as_json=as_json, html=html)


def model(
    *,
    people: Annotated[int, typer.Option("--people", min=10, help="Whom the model learns from.")] = 200,
    target: TargetOption = Target.NAIVE,
    epsilon: Price = None,
    seed: Seed = 0,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Recognise the examples of a model by its loss."""
    from hubbub.attack.membership import against_model, examples
    from hubbub.cli.lab.targets import overfit_model, private_model

    price = epsilon or ONE
    inside, outside = examples(people=people, strangers=2000, columns=2 * people, seed=seed)
    loss = overfit_model(*inside) if target is Target.NAIVE else private_model(*inside, epsilon=price)
    what = name_target(target, "a model with more weights than examples", price)
    show(against_model(loss, inside, outside, target=what), as_json=as_json, html=html)


def perceptron(
    *,
    people: Annotated[int, typer.Option("--people", min=2, help="In town; one has green hair.")] = 300,
    runs: Annotated[int, typer.Option("--runs", min=1, help="With the person ill, and as many well.")] = 100,
    target: TargetOption = Target.NAIVE,
    epsilon: Price = None,
    seed: Seed = 0,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Read the diagnosis of the one person with green hair from a model's weight."""
    from hubbub.attack.green_hair import green_hair, town
    from hubbub.attack.green_hair import perceptron as attack
    from hubbub.cli.lab.targets import private_perceptron

    price = epsilon or ONE
    rows, signs = town(people=people, seed=seed)
    ours = private_perceptron(epsilon=price, low=[-1] * (rows.shape[1] - 1) + [0], high=[1] * rows.shape[1])
    learn = attack if target is Target.NAIVE else ours
    what = name_target(target, "the perceptron", price).replace("Hubbub", "Hubbub's perceptron")
    show(green_hair(learn, rows, signs, target=what, repeats=runs), as_json=as_json, html=html)


def _answers(target: Target, *, epsilon: Fraction, answers: int, seed: int) -> list[list[float]]:
    from hubbub.attack.made_up import MadeUp
    from hubbub.cli.lab.targets import counts

    if target is Target.HUBBUB:
        return [counts(truth, epsilon=epsilon, times=answers) for truth in (0, 1)]
    scale = float(1 / epsilon)
    return [(truth + MadeUp(seed, f"about {truth}").laplace(answers, scale)).tolist() for truth in (0, 1)]


def floats(
    *,
    target: TargetOption = Target.NAIVE,
    answers: Doubles = 500,
    epsilon: Price = None,
    seed: Seed = 0,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Find answers that doubles allow for one of two neighbouring tables alone."""
    from hubbub.attack.precision import floating_point, possible, whole

    price = epsilon or ONE
    told = _answers(target, epsilon=price, answers=answers, seed=seed)
    reaches = whole if target is Target.HUBBUB else partial(possible, scale=float(1 / price))
    what = name_target(target, "Laplace noise in doubles", price)
    show(floating_point(told, truths=(0, 1), reaches=reaches, target=what), as_json=as_json, html=html)


def precision(
    *,
    target: TargetOption = Target.NAIVE,
    answers: Doubles = 500,
    epsilon: Price = None,
    seed: Seed = 0,
    as_json: Json = False,
    html: Html = None,
) -> None:
    """Read the truth from how fine the last bit of an answer is."""
    from hubbub.attack.precision import precision as attack

    price = epsilon or ONE
    told = _answers(target, epsilon=price, answers=answers, seed=seed)
    what = name_target(target, "Laplace noise in doubles", price)
    show(attack(told, truths=(0, 1), target=what), as_json=as_json, html=html)


People = Annotated[int, typer.Option("--people", min=4, max=200, help="Whose bit is read.")]


def errors(
    *, people: People = 40, target: TargetOption = Target.NAIVE, epsilon: Price = None, seed: Seed = 0,
    as_json: Json = False, html: Html = None,
) -> None:  # fmt: skip
    """Read bits from whether a SQL gateway fails."""
    from hubbub.attack.gateway.naive_gateway import NaiveGateway
    from hubbub.attack.gateway.oracles import FAILING, error_oracle, suspects
    from hubbub.cli.lab.targets import clinic

    price = epsilon or ONE
    who = suspects(people=people, seed=seed)
    what = name_target(target, "a naive gateway", price)
    if target is Target.NAIVE:
        with NaiveGateway(who.truth, epsilon=float(price)) as gateway:
            found = error_oracle(gateway.ask, who, target=what)
    else:
        with clinic(who.truth, epsilon=price, questions=people * len(FAILING)) as ask:
            found = error_oracle(ask, who, target=what)
    show(found, as_json=as_json, html=html)


def timing(
    *, people: People = 40, repeats: Annotated[int, typer.Option("--repeats", min=1, help="Of each question.")] = 5,
    target: TargetOption = Target.NAIVE, epsilon: Price = None, seed: Seed = 0,
    as_json: Json = False, html: Html = None,
) -> None:  # fmt: skip
    """Read bits from how long a SQL gateway takes."""
    from hubbub.attack.gateway.naive_gateway import NaiveGateway
    from hubbub.attack.gateway.oracles import HARD_MATCH, suspects, timing_oracle
    from hubbub.cli.lab.targets import clinic

    price = epsilon or ONE
    who = suspects(people=people, seed=seed)
    what = name_target(target, "a naive gateway", price)
    if target is Target.NAIVE:
        with NaiveGateway(who.truth, epsilon=float(price)) as gateway:
            found = timing_oracle(gateway.ask, who, target=what, repeats=repeats)
    else:
        with clinic(who.truth, epsilon=price, questions=people * repeats) as ask:
            found = timing_oracle(ask, who, target=what, repeats=repeats, template=HARD_MATCH)
    show(found, as_json=as_json, html=html)
