"""The local-sensitivity fallacy (lecture 001) as an attack: the scale of the noise reveals which case we are in.

X = [0ⁿ, 0, 0, Tⁿ⁻¹] and X' = [0ⁿ, 0, Tⁿ] differ in one person, and both have the median 0. Nobody can move the median
of X; one person can move that of X' to T. Noise in proportion to that *local* sensitivity is none at all on X and huge
on X': one look at the answer tells which of the two it was. A smooth bound of it looks at what is near as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.console import Console

if __package__ in {None, ""}:  # run as a file: let the sibling modules be found
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.pictures import BLUE, ORANGE, OUT, blank, save
from hubbub import Neighbors, noise
from hubbub.audit import Finding, lower_bound
from hubbub.mechanisms import SmoothQuantile
from hubbub.mechanisms.local_sensitivity.distance import around, quantile_rank

Rows = Sequence[int]
Median = Callable[[Rows], int]

T = 100
EACH = 20
EPSILON = Fraction(1)
RUNS = 4_000

QUIET = (0,) * (EACH + 2) + (T,) * (EACH - 1)
"""X of the slide."""
BRINK = (0,) * (EACH + 1) + (T,) * EACH
"""X': one person away from a median of T."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How often the attacker names the right dataset of the two, and what an audit proves."""

    right: float
    finding: Finding


def honest() -> SmoothQuantile:
    """The median with noise in proportion to a smooth bound: pure ε."""
    bounds = (Fraction(0), Fraction(T))
    return SmoothQuantile(epsilon=EPSILON, bounds=bounds, grid=Fraction(1), neighbors=Neighbors.REPLACE_ONE)


def local_median(rows: Rows) -> int:
    """BROKEN: the median with Laplace noise for the local sensitivity of these very rows."""
    steps = np.sort(np.asarray(rows, dtype=np.int64))
    rank = quantile_rank(len(steps), Fraction(1, 2))
    down, up = around(steps, rank, T, 1)
    local = int(max(up[-1] - up[0], down[0] - down[-1]))
    drawn = noise.rounded_laplace(scale=local / EPSILON, reach=100 * T) if local else 0
    return int(steps[rank - 1]) + drawn


def smooth_median(rows: Rows) -> int:
    """The same question, answered with smooth sensitivity."""
    return int(honest().draw(rows))


def attack(median: Median, *, runs: int = RUNS) -> Outcome:
    """Guess the quiet dataset whenever the answer is the exact median, and count how often that is right."""
    quiet = sum(median(QUIET) == 0 for _ in range(runs))
    brink = sum(median(BRINK) != 0 for _ in range(runs))
    return Outcome(right=(quiet + brink) / (2 * runs), finding=lower_bound(median, QUIET, BRINK, samples=runs))


def most_right(epsilon: float) -> float:
    """No attacker can be right more often than this between two datasets, if the answer is ε-private."""
    return float(1 / (1 + np.exp(-epsilon)))


def draw(folder: Path = OUT, *, runs: int = RUNS) -> Path:
    """Answers on both datasets, for both ways."""
    figure = blank(9.4, 3.2)
    panels = figure.subplots(1, 2, sharey=True)
    ways: tuple[tuple[str, Median], ...] = (("local sensitivity", local_median), ("smooth sensitivity", smooth_median))
    edges = np.arange(-3 * T - 5, 3 * T + 6, 10)
    for axes, (name, median) in zip(panels, ways, strict=True):
        for label, rows, colour in (("X: nobody can move it", QUIET, BLUE), ("X′: one person can", BRINK, ORANGE)):
            answers = [median(rows) for _ in range(runs)]
            weights = np.full(runs, 1 / runs)
            axes.hist(answers, bins=edges, weights=weights, histtype="stepfilled", alpha=0.35, color=colour)
            axes.hist(answers, bins=edges, weights=weights, histtype="step", color=colour, linewidth=1.5, label=label)
        axes.set_title(f"noise for the {name}")
        axes.set_xlabel("the median, as answered (it is 0 in both)")
    panels[0].set_ylabel("share of answers")
    panels[1].legend(loc="upper right")
    return save(figure, "local.png", folder)


def main() -> None:
    """Attack both and say what came out."""
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    console.print(
        f"X and X′ differ in one of {len(QUIET)} people; both have the median 0; claimed ε = {float(EPSILON):g}"
    )
    for name, median in (("local sensitivity", local_median), ("smooth sensitivity", smooth_median)):
        found = attack(median)
        verdict = "caught by the audit" if found.finding.accuses(float(EPSILON)) else "no accusation"
        console.print(f"  {name}: the attacker is right {found.right:.1%} of the time; {verdict}")
        console.print(f"    {found.finding!r}")
    console.print(f"  at ε = {float(EPSILON):g} nobody can be right more than {most_right(float(EPSILON)):.1%}")
    console.print(f"The figure: {draw().name} in out/")


if __name__ == "__main__":
    main()
