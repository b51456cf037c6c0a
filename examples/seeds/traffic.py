"""Traffic on a road map of 64,909 cells (lecture 004): what ε = 1, 0.01 and 0.001 leave of it.

The slide gives the average and the largest error of one run at each ε. The law gives what to expect: the mean of
|noise| for the average, and the expected largest of 64,909 for the maximum. The road map is generated.
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

from examples.pictures import GREY, OUT, blank, save
from hubbub import Budget, Facts, Meter, Secret, Sensitivity
from hubbub.mechanisms import Geometric

Array = np.ndarray[Any, Any]

CELLS = 64_909
SIDE = 300
EPSILONS = (Fraction(1), Fraction(1, 100), Fraction(1, 1000))
SLIDE = dict(zip(EPSILONS, ((1.02, 13.0), (98.56, 1041.0), (1003.23, 9663.0)), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """One release: its average and largest error, and what the exact law says of both."""

    epsilon: Fraction
    average: float
    largest: float
    law_average: float
    law_largest: float
    average_deviation: float
    """The standard deviation of the average."""
    noisy: Array


def road_map(seed: int = 4) -> tuple[Array, Array]:
    """Cars on each of 64,909 cells, and where they lie in a square: a grid of streets, a ring and diagonals."""
    rng = np.random.default_rng(seed)
    across, down = np.meshgrid(np.arange(SIDE), np.arange(SIDE))
    from_centre = np.hypot(across - SIDE / 2, down - SIDE / 2)
    traffic = np.zeros((SIDE, SIDE))
    for line in (across, down):
        for place in rng.choice(SIDE, size=34, replace=False):
            traffic += rng.lognormal(0, 0.5) * np.exp(-(((line - place) / 1.1) ** 2))
    for _ in range(6):
        slope, start = rng.normal(0, 1.2), rng.uniform(0.2 * SIDE, 0.8 * SIDE)
        away = (down - start - slope * (across - SIDE / 2)) / math.hypot(1, slope)
        traffic += rng.lognormal(1, 0.4) * np.exp(-((away / 1.6) ** 2))
    traffic += 4 * np.exp(-(((from_centre - 85) / 1.8) ** 2))
    busy = traffic * (0.12 + np.exp(-((from_centre / 80) ** 2)))
    cells = np.sort(np.argsort(busy, axis=None)[-CELLS:])
    return rng.poisson(busy.ravel()[cells] * 700).astype(np.int64), cells


def law_largest(mechanism: Geometric, cells: int) -> float:
    """The expected largest |noise| of so many cells: Σ_t P(largest > t), with P(|Z| > t) = 2q^(t+1) / (1 + q)."""
    ratio = math.exp(-1 / float(mechanism.scale))
    reach = np.arange(mechanism.error(beta=1e-12, dimension=cells))
    return float((-np.expm1(cells * np.log1p(-2 * ratio ** (reach + 1) / (1 + ratio)))).sum())


def new_meter() -> Meter:
    """One account that has room for all three maps."""
    return Meter({"traffic": Budget(epsilon=Fraction(2))})


def release(meter: Meter, epsilon: Fraction, counts: Array) -> Errors:
    """One histogram of all cells through the gate: a car is in one cell, so the noise has scale 1/ε."""
    mechanism = Geometric(epsilon=epsilon)
    facts = Facts(account="traffic", sensitivity=Sensitivity(l0=1, linf=Fraction(1)))
    noisy = meter.measure(mechanism, Secret(counts, facts), label="cars").value
    wrong = np.abs(noisy - counts)
    spread = mechanism.standard_deviation**2 - mechanism.mean_error**2
    return Errors(
        epsilon=epsilon,
        average=float(wrong.mean()),
        largest=float(wrong.max()),
        law_average=mechanism.mean_error,
        law_largest=law_largest(mechanism, len(counts)),
        average_deviation=math.sqrt(spread / len(counts)),
        noisy=noisy,
    )


def draw(counts: Array, cells: Array, releases: list[Errors], folder: Path = OUT) -> Path:
    """The true map and the three noisy ones, on one scale."""
    figure = blank(8.2, 7.2)
    row = figure.subplots(2, 2).ravel()
    top = float(np.quantile(counts, 0.995))
    shown = [("generated map", counts)] + [(f"ε = {float(one.epsilon):g}", one.noisy) for one in releases]
    for axes, (title, values) in zip(row, shown, strict=True):
        square = np.full(SIDE * SIDE, np.nan)
        square[cells] = np.sqrt(np.clip(values, 0, top))
        image = axes.imshow(
            square.reshape(SIDE, SIDE), cmap="cividis", vmin=0, vmax=math.sqrt(top), interpolation="nearest"
        )
        axes.set_facecolor("#efefef")
        axes.set_title(title)
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(False)
    for axes, one in zip(row[1:], releases, strict=True):
        axes.set_xlabel(f"average error {one.average:,.2f}, largest {one.largest:,.0f}", fontsize=9)
    row[0].set_xlabel(f"{CELLS:,} cells, {int(counts.sum()):,} cars", fontsize=9)
    marks = np.array([0, 0.1, 0.4, 1.0]) * top
    scale = figure.colorbar(image, ax=list(row), shrink=0.6, ticks=np.sqrt(marks), label="cars in a cell (root scale)")
    scale.ax.set_yticklabels([f"{mark:,.0f}" for mark in marks])
    scale.outline.set_edgecolor(GREY)
    return save(figure, "traffic.png", folder, dots=92)


def main() -> None:
    """Print the table and draw the maps."""
    counts, cells = road_map()
    meter = new_meter()
    releases = [release(meter, epsilon, counts) for epsilon in EPSILONS]
    table = Table(title=f"Traffic, {CELLS:,} cells: ours, the law, and the slide", title_justify="left")
    for heading in ("ε", "average", "law", "slide", "largest", "expected", "slide"):
        table.add_column(heading, justify="right")
    for one in releases:
        slide = SLIDE[one.epsilon]
        table.add_row(
            f"{float(one.epsilon):g}",
            f"{one.average:,.3f}",
            f"{one.law_average:,.3f}",
            f"{slide[0]:,.2f}",
            f"{one.largest:,.0f}",
            f"{one.law_largest:,.1f}",
            f"{slide[1]:,.0f}",
        )
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(table)
    console.print("The slide's noise is continuous (average 1/ε); ours is geometric, which errs less where ε is large.")
    console.print(f"The maps: {draw(counts, cells, releases).name} in out/")


if __name__ == "__main__":
    main()
