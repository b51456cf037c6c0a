"""The meaning of a guarantee for a person, and its cost for a study."""

import math
from fractions import Fraction
from typing import Any

from hubbub.cli.lab.tours.step import StepOutcome, TourStep

ONE = Fraction(1)


def _planning() -> StepOutcome:
    from hubbub.privacy import explain, sample_size

    rows = []
    for epsilon in (Fraction(1, 10), Fraction(1, 2), ONE, Fraction(3)):
        low, high = explain(epsilon, prior=0.1).posterior
        study: dict[str, Any] = {"alpha": Fraction(1, 100), "beta": Fraction(1, 20), "epsilon": epsilon}
        many = sample_size(**study)
        local = sample_size(**study, method="randomized-response")
        rows.append((f"{float(epsilon):g}", f"{low:.1%} … {high:.1%}", f"{many:,}", f"{local:,}"))
    return StepOutcome(
        says="What ε means to a person, and what it costs a study.",
        columns=("ε", "belief that was 10%", "people for ± 1%", "the same by randomized response"), rows=tuple(rows),
    )  # fmt: skip


def _meaning() -> StepOutcome:
    from hubbub.privacy import explain

    rows = []
    for epsilon in (Fraction(1, 10), ONE, Fraction(5)):
        low, high = explain(epsilon).posterior
        rows.append((f"{float(epsilon):g}", f"× {math.exp(epsilon):.2f}", f"{low:.1%} … {high:.1%}"))
    return StepOutcome(
        says="Whatever happens because of the data happens about as often without you.",
        columns=("ε", "any event's probability", "a belief of 50% becomes"), rows=tuple(rows),
    )  # fmt: skip


STEPS = (
    TourStep(name="planning", title="Planning a study, and reading a guarantee", lecture="002, 003", run=_planning,
         about="How far a belief can move, and how many people an accuracy needs."),
    TourStep(name="meaning", title="What ε means", lecture="002, 003", run=_meaning,
         about="The guarantee, read as odds."),
)  # fmt: skip
