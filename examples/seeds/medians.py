"""The median four ways (lecture 001): is the exponential mechanism preferable to smooth sensitivity, as the slide says?

Three made-up populations of 1,000: ages in whole years (many ties), incomes (skewed, a range a million wide), and two
groups with an empty middle close to the median. The mean error of the exponential mechanism, of smooth sensitivity
(pure, and with δ = 10⁻⁶) and of Laplace noise for the whole range, each at the same ε.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.pictures import BLUE, GREEN, GREY, ORANGE, OUT, blank, save
from hubbub.mechanisms import Quantile, SmoothQuantile, TruncatedGeometric
from hubbub.mechanisms.selection.quantile import OnRange

Array = np.ndarray[Any, Any]

PEOPLE = 1_000
RUNS = 4_000
DELTA = Fraction(1, 10**6)
EPSILONS = tuple(Fraction(step) for step in ("1/50", "1/20", "1/10", "1/5", "1/2", "1", "2", "5", "10"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Values in a public range."""

    name: str
    values: Array
    high: Fraction
    grid: Fraction

    @property
    def median(self) -> float:
        """The lower median: the 500th of 1,000 values."""
        return float(np.sort(self.values)[(len(self.values) + 1) // 2 - 1])

    @property
    def range(self) -> dict[str, Any]:
        """What every mechanism is told."""
        return {"bounds": (Fraction(0), self.high), "grid": self.grid}


def populations(seed: int = 7) -> tuple[Population, ...]:
    """The three of them, on their grids."""
    rng = np.random.default_rng(seed)
    ages = np.clip(rng.normal(45, 18, PEOPLE).round(), 0, 120)
    incomes = np.clip(rng.lognormal(10.3, 0.8, PEOPLE).round(), 0, 1_000_000)
    lower, upper = rng.normal(20, 4, PEOPLE // 2 + 20), rng.normal(80, 4, PEOPLE // 2 - 20)
    scores = np.round(np.clip(np.concatenate([lower, upper]), 0, 100) * 1024) / 1024
    return (
        Population(name="ages", values=ages, high=Fraction(120), grid=Fraction(1)),
        Population(name="incomes", values=incomes, high=Fraction(1_000_000), grid=Fraction(1)),
        Population(name="two groups", values=scores, high=Fraction(100), grid=Fraction(1, 1024)),
    )


def _laplace(epsilon: Fraction, people: Population, runs: int) -> Array:
    """Noise for the global sensitivity, which is the whole range, cut to it."""
    top = int(people.high / people.grid)
    law = TruncatedGeometric(epsilon=epsilon, low=0, high=top, sensitivity=top)
    return law.repeat(round(Fraction(people.median) / people.grid), times=runs) * float(people.grid)


def _by(make: Callable[..., OnRange], **options: Any) -> Callable[[Fraction, Population, int], Array]:
    def answers(epsilon: Fraction, people: Population, runs: int) -> Array:
        mechanism: Any = make(epsilon=epsilon, **people.range, **options)
        return np.asarray(mechanism.repeat(people.values, times=runs), dtype=np.float64)

    return answers


WAYS: dict[str, Callable[[Fraction, Population, int], Array]] = {
    "exponential": _by(Quantile),
    "smooth, pure": _by(SmoothQuantile),
    "smooth, Laplace with δ": _by(SmoothQuantile, delta=DELTA),
    "Laplace": _laplace,
}
COLOURS = dict(zip(WAYS, (BLUE, ORANGE, GREEN, GREY), strict=True))
MARKS = dict(zip(WAYS, ("o", "s", "D", "^"), strict=True))


def errors(people: Population, *, runs: int = RUNS) -> dict[str, list[float]]:
    """The mean distance from the true median, for each way and each ε."""
    return {
        name: [float(np.abs(answers(epsilon, people, runs) - people.median).mean()) for epsilon in EPSILONS]
        for name, answers in WAYS.items()
    }


def draw(found: dict[str, dict[str, list[float]]], folder: Path = OUT) -> Path:
    """A panel for each population."""
    figure = blank(10.2, 3.7)
    for axes, (name, rows) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
        for way, means in rows.items():
            shown = [mean if mean > 0 else np.nan for mean in means]
            axes.plot(
                [float(e) for e in EPSILONS], shown, MARKS[way] + "-", color=COLOURS[way], label=way, markersize=4
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(name)
        axes.set_xlabel("ε")
        axes.grid(color="#dddddd", linewidth=0.7)
    figure.axes[0].set_ylabel("mean error of the median")
    figure.axes[0].legend(loc="lower left", fontsize=8)
    return save(figure, "medians.png", folder)


def main() -> None:
    """Print the mean errors and draw them."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    found = {}
    for people in populations():
        rows = found[people.name] = errors(people)
        table = Table(title=f"{people.name}: median {people.median:,.2f} of 0 … {float(people.high):,.0f}, mean error")
        table.add_column("ε", justify="right")
        for way in WAYS:
            table.add_column(way, justify="right")
        for at, epsilon in enumerate(EPSILONS):
            table.add_row(f"{float(epsilon):g}", *(f"{rows[way][at]:,.3f}" for way in WAYS))
        console.print(table)
    console.print(f"The figure: {draw(found).name} in out/")


if __name__ == "__main__":
    main()
