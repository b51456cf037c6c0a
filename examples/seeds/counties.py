"""How many people live in each of 3,143 counties (lecture 003, exercise 4.5): ε = 0.1, one person replaced by another.

Moving a person from one county to another changes two counts, so Δ = 2 and the noise has scale 2/0.1 = 20. Lemma 4.4
then promises an expected error of 20 for any one county, and at most 20·(ln 3143 + 1) ≈ 181 for the worst of all.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.seeds.traffic import law_largest
from hubbub import Budget, Facts, Meter, Neighbors, Secret, Sensitivity
from hubbub.mechanisms import Geometric

Array = np.ndarray[Any, Any]

COUNTIES = 3_143
EPSILON = Fraction(1, 10)
RUNS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Over many releases: the mean error of a county, and the mean of the largest error of any."""

    average: float
    largest: float
    law_average: float
    law_largest: float
    bound_largest: float
    average_deviation: float
    largest_deviation: float
    """Standard deviations of the two means, the second as measured."""


def mechanism() -> Geometric:
    """Replace-one: two counts move by one each."""
    return Geometric(epsilon=EPSILON, sensitivity=2, neighbors=Neighbors.REPLACE_ONE)


def populations(seed: int = 5) -> Array:
    """Generated counties: most small, a few very large."""
    return np.random.default_rng(seed).lognormal(10.2, 1.5, size=COUNTIES).astype(np.int64)


def measure(runs: int = RUNS) -> Errors:
    """Release all counties again and again, from an account with room for it: the people are generated."""
    law, people = mechanism(), populations()
    facts = Facts(account="census", sensitivity=Sensitivity(l0=2, linf=Fraction(1)), neighbors=Neighbors.REPLACE_ONE)
    secret = Secret(people, facts)
    wrong = np.empty((runs, COUNTIES))
    meter = Meter({"census": Budget(epsilon=Fraction(runs), neighbors=Neighbors.REPLACE_ONE)})
    for run in range(runs):
        wrong[run] = np.abs(meter.measure(law, secret, label="people").value - people)
    largest = wrong.max(axis=1)
    spread = law.standard_deviation**2 - law.mean_error**2
    return Errors(
        average=float(wrong.mean()),
        largest=float(largest.mean()),
        law_average=law.mean_error,
        law_largest=law_largest(law, COUNTIES),
        bound_largest=float(law.scale) * (math.log(COUNTIES) + 1),
        average_deviation=math.sqrt(spread / wrong.size),
        largest_deviation=float(largest.std(ddof=1) / math.sqrt(runs)),
    )


def main() -> None:
    """Print the exercise's two answers beside ours."""
    found = measure()
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    console.print(f"{COUNTIES:,} counties, ε = {float(EPSILON):g}, one person replaced (Δ = 2), {RUNS} releases")
    console.print(
        f"  error of a county: {found.average:.3f} on average; the law says {found.law_average:.3f}, the lemma 20"
    )
    console.print(
        f"  largest error of any: {found.largest:.1f} ± {2 * found.largest_deviation:.1f} on average; the law says "
        f"{found.law_largest:.1f}, the lemma at most {found.bound_largest:.1f}"
    )


if __name__ == "__main__":
    main()
