"""Estimating a proportion three ways (lecture 003, figure 5): randomized response, Laplace, no privacy; ε = 0.5.

(a) The standard deviation of the estimate for n = 50 … 5,000 people, each holding a 1 with probability 0.25, over
10,000 runs. (b) The estimates at n = 100. All noise is exact, one coin a person in each run.
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
from rich.table import Table

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.pictures import BLUE, GREEN, GREY, ORANGE, OUT, blank, save
from hubbub import noise
from hubbub.mechanisms import Geometric, RandomizedResponse

Array = np.ndarray[Any, Any]

EPSILON = Fraction(1, 2)
BIAS = 0.25
RUNS = 10_000
CHUNK = 1 << 22
PEOPLE = (50, 100, 200, 350, 500, 750, 1000, 1500, 2000, 3000, 4000, 5000)
NAMES = ("randomized response", "Laplace", "no privacy")
COLOURS = dict(zip(NAMES, (ORANGE, BLUE, GREEN), strict=True))
MARKS = dict(zip(NAMES, ("o", "s", "^"), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """10,000 estimates of the bias from n people, by each way, and the standard deviations that the laws give."""

    people: int
    found: dict[str, Array]
    law: dict[str, float]

    def deviation(self, name: str) -> float:
        """The standard deviation over the runs."""
        return float(self.found[name].std())


def estimate(people: int, *, runs: int = RUNS, seed: int = 3) -> Estimates:
    """Flip n coins in each run, then estimate their share three ways. The coins are data; the noise is exact."""
    ones = np.random.default_rng(seed + people).binomial(people, BIAS, size=runs)
    response = RandomizedResponse(epsilon=EPSILON)
    truthful = response.honest_float
    said_one = _reports(response, ones, people)
    shares = (said_one / people - (1 - truthful)) / (2 * truthful - 1)
    laplace = Geometric(epsilon=EPSILON)
    noisy = (ones + noise.discrete_laplace(scale=laplace.scale, size=runs)) / people
    sampling = BIAS * (1 - BIAS) / people
    return Estimates(
        people=people,
        found=dict(zip(NAMES, (shares, noisy, ones / people), strict=True)),
        law={
            "randomized response": math.sqrt(sampling + (response.deviation(reports=people) / people) ** 2),
            "Laplace": math.sqrt(sampling + (laplace.standard_deviation / people) ** 2),
            "no privacy": math.sqrt(sampling),
        },
    )


def _reports(response: RandomizedResponse, ones: Array, people: int) -> Array:
    """How many say 1 in each run: those who hold it and are truthful, and those who do not and are not."""
    said = np.empty(len(ones), dtype=np.int64)
    step = max(1, CHUNK // people)
    for start in range(0, len(ones), step):
        held = np.arange(people) < ones[start : start + step, None]
        truthful = noise.bernoulli(response.honest, size=held.size).reshape(held.shape)
        said[start : start + step] = (truthful == held).sum(axis=1)
    return said


def draw(rows: list[Estimates], folder: Path = OUT) -> Path:
    """Both parts of the figure."""
    figure = blank(9.4, 3.9)
    left, right = figure.subplots(1, 2)
    sizes = [row.people for row in rows]
    for name in NAMES:
        left.plot(sizes, [row.law[name] for row in rows], color=COLOURS[name], linewidth=1.5)
        left.plot(
            sizes, [row.deviation(name) for row in rows], MARKS[name], color=COLOURS[name], markersize=4.5, label=name
        )
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xticks([50, 100, 500, 1000, 5000], ["50", "100", "500", "1,000", "5,000"])
    left.minorticks_off()
    left.set_yticks([0.01, 0.03, 0.1, 0.3], ["0.01", "0.03", "0.1", "0.3"])
    left.set_xlabel("people, n")
    left.set_ylabel("standard deviation of the estimate")
    left.set_title("(a) dots: 10,000 runs; lines: the law")
    left.grid(color="#dddddd", linewidth=0.7)
    left.legend(loc="lower left")
    hundred = next(row for row in rows if row.people == 100)
    _distributions(right, hundred)
    figure.supxlabel(
        f"Estimating a proportion of {BIAS:g} at ε = {float(EPSILON):g}", fontsize=9, color=GREY, x=0.01, ha="left"
    )
    return save(figure, "figure5.png", folder)


def _distributions(axes: Any, row: Estimates) -> None:
    """One histogram over the other, with edges halfway between the values that estimates can take."""
    between_answers = 1 / (2 * RandomizedResponse(epsilon=EPSILON).honest_float - 1)
    for name, step, bars in zip(NAMES, (between_answers, 1.0, 1.0), (2, 2, 1), strict=True):
        found = row.found[name]
        edges = np.arange(
            found.min() - step / 2 / row.people, found.max() + bars * step / row.people, bars * step / row.people
        )
        axes.hist(found, bins=edges, density=True, histtype="stepfilled", alpha=0.35, color=COLOURS[name])
        axes.hist(found, bins=edges, density=True, histtype="step", color=COLOURS[name], linewidth=1.3)
    axes.axvline(BIAS, color=GREY, linewidth=1, linestyle=":")
    axes.axvspan(-1, 0, color=GREY, alpha=0.12, linewidth=0)
    axes.axvspan(1, 2, color=GREY, alpha=0.12, linewidth=0)
    axes.set_xlim(-0.55, 1.1)
    axes.set_xlabel("estimate at n = 100 (grey: no proportion at all)")
    axes.set_ylabel("density")
    axes.set_title("(b) 10,000 estimates")


def main() -> None:
    """Print figure 5 (a) as a table and draw both parts."""
    rows = [estimate(people) for people in PEOPLE]
    table = Table(title=f"Figure 5 (a): standard deviation over {RUNS:,} runs, beside the law", title_justify="left")
    table.add_column("n", justify="right")
    for name in NAMES:
        table.add_column(name, justify="right")
        table.add_column("law", justify="right")
    for row in rows:
        cells = [f"{value:.4f}" for name in NAMES for value in (row.deviation(name), row.law[name])]
        table.add_row(f"{row.people:,}", *cells)
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(table)
    outside = float(np.mean((rows[1].found[NAMES[0]] < 0) | (rows[1].found[NAMES[0]] > 1)))
    console.print(f"At n = 100, {outside:.0%} of the estimates by randomized response lie outside [0, 1].")
    console.print(f"The figure: {draw(rows).name} in out/")


if __name__ == "__main__":
    main()
