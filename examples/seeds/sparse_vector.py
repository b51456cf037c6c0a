"""Finding the c largest of 10,000 answers (lecture 001, sparse data): sparse vector against selection, at equal ε.

The answers are counts that fall like 1/rank, a million people in all, asked about in random order. A sparse vector is
told the c-th largest answer as its threshold; selections need no threshold, but must see all answers at once.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.pictures import BLUE, GREEN, GREY, ORANGE, OUT, SKY, blank, save
from hubbub import noise
from hubbub.mechanisms import PermuteAndFlip, SparseVector, TopK

Array = np.ndarray[Any, Any]

QUESTIONS, PEOPLE = 10_000, 1_000_000
COUNT = 50
EPSILONS = tuple(Fraction(tenth, 100) for tenth in (2, 5, 10, 20, 50, 100, 200))
COUNTS = (10, 25, 50, 100, 200)
EPSILON = Fraction(1, 5)
RUNS = 20


def answers(questions: int = QUESTIONS) -> Array:
    """Counts that fall like 1/rank. Adding a person lowers none, so all mechanisms may be monotone."""
    ranks = np.arange(1, questions + 1)
    counts: Array = (PEOPLE / (ranks * (1 / ranks).sum())).astype(np.int64)
    return counts


def one_sided(values: Array, count: int, epsilon: Fraction, threshold: int) -> Array:
    """Ours."""
    mechanism = SparseVector(epsilon=epsilon, threshold=threshold, count=count, monotone=True)
    return np.array(mechanism.draw(values)[0], dtype=np.int64)


def raised(values: Array, count: int, epsilon: Fraction, threshold: int) -> Array:
    """Ours with a higher threshold: of 10,000 answers most are small, and false alarms use up what was paid for."""
    scale = SparseVector(epsilon=epsilon, threshold=0, count=count, monotone=True).question_scale
    return one_sided(values, count, epsilon, threshold + math.floor(2 * scale))


def laplace(values: Array, count: int, epsilon: Fraction, threshold: int, *, ratio: float | None = None) -> Array:
    """Two-sided noise, with the split of Lyu, Su and Li, or another ratio of ε₂ to ε₁."""
    split = Fraction(count ** (2 / 3) if ratio is None else ratio).limit_denominator(1000)
    first = epsilon / (1 + split)
    bar = threshold + noise.discrete_laplace(scale=1 / first)
    noisy = values + noise.discrete_laplace(scale=count / (epsilon - first), size=len(values))
    return np.flatnonzero(noisy >= bar)[:count]


def laplace_halves(values: Array, count: int, epsilon: Fraction, threshold: int) -> Array:
    """Two-sided noise, half of ε for the threshold."""
    return laplace(values, count, epsilon, threshold, ratio=1.0)


def peeled(values: Array, count: int, epsilon: Fraction, _: int) -> Array:
    """The exponential mechanism count times; the same law as the count largest with Gumbel noise, drawn once."""
    return np.array(TopK(epsilon=epsilon, k=count, monotone=True).draw(values))


def flipped(values: Array, count: int, epsilon: Fraction, _: int) -> Array:
    """Permute-and-flip count times."""
    rate, left, found = PermuteAndFlip(epsilon=epsilon / count, monotone=True).rate, np.arange(len(values)), []
    for _round in range(count):
        at = noise.race(levels=-values[left], rate=rate)
        found.append(int(left[at]))
        left = np.delete(left, at)
    return np.array(found)


def one_shot(values: Array, count: int, epsilon: Fraction, _: int) -> Array:
    """The count largest with Laplace noise, drawn once."""
    noisy = values + noise.discrete_laplace(scale=count / epsilon, size=len(values))
    return np.argsort(-noisy, kind="stable")[:count]


Finder = Callable[[Array, int, Fraction, int], Array]
FINDERS: dict[str, tuple[Finder, str, str, str]] = {
    "exponential mechanism, peeled": (peeled, GREEN, "-", "s"),
    "permute-and-flip, peeled": (flipped, SKY, "-", "^"),
    "one-shot Laplace": (one_shot, GREY, "-", "v"),
    "sparse vector, one-sided (ours)": (one_sided, ORANGE, "-", "o"),
    "sparse vector, one-sided, threshold + 2b": (raised, ORANGE, "--", "D"),
    "sparse vector, Laplace": (laplace, BLUE, "--", "o"),
    "sparse vector, Laplace, ε in halves": (laplace_halves, BLUE, ":", "x"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The share of the c largest that was found, on average."""

    finder: str
    count: int
    epsilon: Fraction
    mean: float
    error: float
    """The standard error of the mean."""


def recall(finder: str, count: int, epsilon: Fraction, *, runs: int = RUNS, questions: int = QUESTIONS) -> Recall:
    """Ask in a new random order each time; the order is data, the noise exact."""
    values = answers(questions)
    order = np.random.default_rng(count)
    find, threshold = FINDERS[finder][0], int(values[count - 1])
    shares = []
    for _ in range(runs):
        places = order.permutation(questions)
        found = places[find(values[places], count, epsilon, threshold)]
        shares.append(float((found < count).sum()) / count)
    error = float(np.std(shares, ddof=1) / math.sqrt(runs))
    return Recall(finder=finder, count=count, epsilon=epsilon, mean=float(np.mean(shares)), error=error)


def draw(by_epsilon: Sequence[Recall], by_count: Sequence[Recall], folder: Path = OUT) -> Path:
    """Recall against ε, and against c."""
    figure = blank(9.4, 4.2)
    left, right = figure.subplots(1, 2, sharey=True)
    for name, (_, colour, line, mark) in FINDERS.items():
        for axes, rows, at in ((left, by_epsilon, "epsilon"), (right, by_count, "count")):
            mine = [row for row in rows if row.finder == name]
            axes.errorbar(
                [float(getattr(row, at)) for row in mine],
                [row.mean for row in mine],
                yerr=[2 * row.error for row in mine],
                color=colour,
                linestyle=line,
                marker=mark,
                markersize=4.5,
                linewidth=1.5,
                elinewidth=0.8,
                label=name,
            )
    for axes in (left, right):
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.grid(color="#dddddd", linewidth=0.7)
    ticks = sorted({float(row.epsilon) for row in by_epsilon})
    left.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    counts = sorted({row.count for row in by_count})
    right.set_xticks(counts, [str(tick) for tick in counts])
    left.set_xlabel("ε")
    left.set_ylabel("share of the c largest that is found")
    left.set_title(f"(a) c = {by_epsilon[0].count}")
    right.set_xlabel("c")
    right.set_title(f"(b) ε = {float(by_count[0].epsilon):g}")
    left.set_ylim(0, 1.03)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    return save(figure, "sparse_vector.png", folder)


def main() -> None:
    """Measure, print and draw."""
    by_epsilon = [recall(name, COUNT, epsilon) for name in FINDERS for epsilon in EPSILONS]
    by_count = [recall(name, count, EPSILON) for name in FINDERS for count in COUNTS]
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    table = Table(title=f"Share of the {COUNT} largest of {QUESTIONS:,} found, {RUNS} runs", title_justify="left")
    table.add_column("")
    for epsilon in EPSILONS:
        table.add_column(f"ε = {float(epsilon):g}", justify="right")
    for name in FINDERS:
        table.add_row(name, *(f"{row.mean:.3f} ± {2 * row.error:.3f}" for row in by_epsilon if row.finder == name))
    console.print(table)
    console.print(f"drawn: {draw(by_epsilon, by_count).name}")


if __name__ == "__main__":
    main()
