"""Every attack of the lab on its naive target and on Hubbub at ε = 1 in all, in one table (docs/attack.md holds it).

Attacks share no code with what they attack: they are handed answers, or something that answers. Hubbub answers through
real sessions with ledgers of their own, over people who are made up. About a minute.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.lab import unnamed
from hubbub.attack.composition import LECTURE, composition, lecture
from hubbub.attack.finding import AttackFinding
from hubbub.attack.gateway.averaging import averaging, fresh_noise
from hubbub.attack.gateway.exclusion import count_exactly, district, not_named
from hubbub.attack.gateway.naive_gateway import NaiveGateway
from hubbub.attack.gateway.oracles import FAILING, HARD_MATCH, error_oracle, suspects, timing_oracle
from hubbub.attack.green_hair import green_hair, perceptron, town
from hubbub.attack.linkage import linkage
from hubbub.attack.made_up import MadeUp
from hubbub.attack.marginals import CENSUS, block, marginals, margins
from hubbub.attack.membership import against_model, examples, population, tracing
from hubbub.attack.precision import floating_point, possible, precision, whole
from hubbub.attack.reconstruction import exact, noised, reconstruction
from hubbub.attack.success_rate import most_allowed
from hubbub.attack.suppression import hcup, suppression
from hubbub.cli.lab import targets
from hubbub.cli.lab import targets as learned

EPSILON = Fraction(1)
BOUND = most_allowed(0.5, epsilon=float(EPSILON))
"""No attack finds more of fair bits than this, on average, whatever it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything; smaller in tests."""

    people: int = 1000
    subsets: int = 4000
    traced: int = 200
    attributes: int = 4000
    examples: int = 200
    answers: int = 500
    runs: int = 100
    suspects: int = 40
    guesses: int = 1000
    records: int = 400
    pupils: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One attack, twice."""

    attack: str
    naive: AttackFinding
    ours: AttackFinding
    figure: str
    """What is counted."""
    shown: str
    """The number of both findings that says it."""
    kind: str = ".1%"

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """As text."""
        both = (format(one.numbers[self.shown], self.kind) for one in (self.naive, self.ours))
        return (self.attack, self.figure, *both)  # type: ignore[return-value]


def lines(sizes: Sizes) -> Iterator[Line]:
    """One after the other, as they are done."""
    yield Line(
        attack="small counts left out (HCUP's table)", figure="hidden counts known exactly", shown="pinned", kind=".0f",
        naive=suppression(hcup()), ours=unnamed.noisy_table(EPSILON),
    )  # fmt: skip
    pupils = district(people=200)
    with targets.pupils(pupils, epsilon=EPSILON, questions=sizes.pupils + 1) as count:
        yield Line(
            attack="everybody, and everybody but Frank", figure="marks found", shown="found",
            naive=not_named(pupils, count_exactly(pupils), victims=sizes.pupils, target="exact counts"),
            ours=not_named(pupils, count, victims=sizes.pupils, target="Hubbub"),
        )  # fmt: skip
    yield from rebuilt(sizes)
    living = block(people=30)
    exact = margins(living, domain=CENSUS, ways=3)
    noisy = targets.publish_tables(living, domain=CENSUS, ways=exact, epsilon=EPSILON)
    yield Line(
        attack="a census block's tables", figure="records worked out", shown="right",
        naive=marginals(living, exact, target="exact tables"),
        ours=marginals(living, noisy, target="Hubbub's tables"),
    )  # fmt: skip
    yield from named_again(sizes)
    yield from recognised(sizes)
    truth = 412
    with targets.ask_repeatedly(truth, epsilon=EPSILON, each=Fraction(1, 10), reworded=True) as ask:
        fresh = fresh_noise(truth, scale=10)
        yield Line(
            attack="one question, asked again and again", figure="answers given", shown="answers", kind=",.0f",
            naive=averaging(fresh, truth=truth, times=20_000, target="fresh noise"),
            ours=averaging(ask, truth=truth, times=200, target="Hubbub, reworded each time"),
        )  # fmt: skip
    yield from side_doors(sizes)


def rebuilt(sizes: Sizes) -> Iterator[Line]:
    """Reconstruction from random subsets; and the whole budget on one person."""
    secret = MadeUp(0, "secret").bits(sizes.people)
    attack = partial(reconstruction, secret, count=sizes.subsets)
    small = math.sqrt(sizes.people) / 6
    gate = attack(targets.subsets(secret, epsilon=EPSILON), target="Hubbub")
    yield Line(
        attack="random subsets, exact answers", figure="bits found", shown="found",
        naive=attack(exact(secret), target="exact answers"), ours=gate,
    )  # fmt: skip
    yield Line(
        attack=f"random subsets, noise up to √n/6 = {small:.0f}", figure="bits found", shown="found",
        naive=attack(noised(secret, size=small), target="noise of o(√n)"), ours=gate,
    )  # fmt: skip
    bits = MadeUp(0, "bits").bits(sizes.guesses).tolist()
    told = [learned.counts(bit, epsilon=EPSILON, times=1)[0] for bit in bits]
    right = sum((answer >= 1) == bool(bit) for answer, bit in zip(told, bits, strict=True))
    guessed = partial(unnamed.guesses, trials=len(bits))
    yield Line(
        attack="the whole ε on one person's bit", figure=f"bits found (at most {BOUND:.1%} on average)", shown="found",
        naive=guessed("one exact count", len(bits), base=0.5), ours=guessed("one count", right, base=BOUND),
    )  # fmt: skip


def named_again(sizes: Sizes) -> Iterator[Line]:
    """Names put back, from one release and from two."""
    released, known = unnamed.patients(people=sizes.records)
    link = linkage(released, known, on=unnamed.QUASI, name="name", sensitive="condition")
    yield Line(
        attack="names put back by zip, sex and age", figure="conditions told (by chance 20%)", shown="share",
        naive=unnamed.share(link, link.numbers["told"] / link.numbers["people"]),
        ours=unnamed.noisy_cells(known, releases=1, epsilon=EPSILON),
    )  # fmt: skip
    two = composition(*lecture(), on=LECTURE, sensitive="condition", person={"zip": "13012", "age": "28"})
    yield Line(
        attack="two anonymised releases of one person", figure="conditions told (by chance 20%)", shown="share",
        naive=unnamed.share(two, float(two.works)), ours=unnamed.noisy_cells(known, releases=2, epsilon=EPSILON),
    )  # fmt: skip


def recognised(sizes: Sizes) -> Iterator[Line]:
    """Who was in the data."""
    inside, outside, shares = population(people=sizes.traced, strangers=2000, attributes=sizes.attributes)
    trace = partial(tracing, inside, outside, shares=shares)
    yield Line(
        attack=f"{sizes.traced} people in {sizes.attributes:,} means",
        figure="recognised, at 1% accused", shown="power",
        naive=trace(inside.mean(axis=0), target="exact means"),
        ours=trace(learned.means(inside, epsilon=EPSILON), target="Hubbub's means"),
    )  # fmt: skip
    taught, others = examples(people=sizes.examples, strangers=2000, columns=2 * sizes.examples)
    overfitted, private = learned.overfit_model(*taught), learned.private_model(*taught, epsilon=EPSILON)
    yield Line(
        attack="the examples of a model, by their loss", figure="recognised, at 1% accused", shown="power",
        naive=against_model(overfitted, taught, others, target="an overfitted model"),
        ours=against_model(private, taught, others, target="Hubbub's regression"),
    )  # fmt: skip
    rows, signs = town(people=300)
    ours = learned.private_perceptron(epsilon=EPSILON, low=[-1, -1, -1, 0], high=[1, 1, 1, 1])
    yield Line(
        attack="the perceptron's weight of green hair", figure="diagnoses read", shown="right",
        naive=green_hair(perceptron, rows, signs, target="the perceptron", repeats=sizes.runs),
        ours=green_hair(ours, rows, signs, target="Hubbub's perceptron", repeats=sizes.runs),
    )  # fmt: skip


def side_doors(sizes: Sizes) -> Iterator[Line]:
    """Low bits, errors, the clock."""
    doubles = [(truth + MadeUp(0, f"about {truth}").laplace(sizes.answers, 1.0)).tolist() for truth in (0, 1)]
    ours = [learned.counts(truth, epsilon=EPSILON, times=sizes.answers) for truth in (0, 1)]
    reaches = partial(possible, scale=1.0)
    low = partial(floating_point, truths=(0, 1))
    yield Line(
        attack="the low bits of Laplace noise", figure="truths given away for certain", shown="right",
        naive=low(doubles, reaches=reaches, target="doubles"), ours=low(ours, reaches=whole, target="ours"),
    )  # fmt: skip
    fine = partial(precision, truths=(0, 1))
    yield Line(
        attack="how fine the last bit is", figure="truths given away for certain", shown="right",
        naive=fine(doubles, target="doubles"), ours=fine(ours, target="ours"),
    )  # fmt: skip
    who = suspects(people=sizes.suspects)
    ill = sum(who.truth) / len(who.truth)
    read = f"bits read (the commoner bit: {max(ill, 1 - ill):.0%})"
    many = len(FAILING) * sizes.suspects
    with NaiveGateway(who.truth) as naive, learned.clinic(who.truth, epsilon=EPSILON, questions=many) as ask:
        yield Line(
            attack="a question that fails for one person", figure=read, shown="read",
            naive=error_oracle(naive.ask, who, target="a naive gateway"),
            ours=error_oracle(ask, who, target="Hubbub"),
        )  # fmt: skip
    with NaiveGateway(who.truth) as naive, learned.clinic(who.truth, epsilon=EPSILON, questions=many) as ask:
        yield Line(
            attack="a question that is slow for one person", figure=read, shown="read",
            naive=timing_oracle(naive.ask, who, target="a naive gateway", repeats=3),
            ours=timing_oracle(ask, who, target="Hubbub", repeats=3, template=HARD_MATCH),
        )  # fmt: skip


def markdown(found: list[Line]) -> str:
    """For docs/attack.md."""
    head = ("attack", "what is counted", "naive target", "Hubbub, ε = 1 in all")
    rows = [head, ("---",) * 4, *(one.cells for one in found)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def main(sizes: Sizes | None = None) -> list[Line]:
    """Print the table."""
    found = list(lines(sizes or Sizes()))
    if "--markdown" in sys.argv:
        print(markdown(found))
        return found
    table = Table(title="Every attack on its naive target and on Hubbub", title_justify="left")
    for place, name in enumerate(("attack", "what is counted", "naive target", "Hubbub, ε = 1 in all")):
        table.add_column(name, justify="right" if place > 1 else "left")
    for one in found:
        table.add_row(*one.cells)
    Console(width=None if sys.stdout.isatty() else 130, highlight=False).print(table)
    return found


if __name__ == "__main__":
    main()
