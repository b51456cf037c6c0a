"""k-means as a lecture draws it, and as it is done today: four ways to the same clusters, three of them private.

The lecture (ten rounds, T = 10) adds Laplace(2T/ε) to each count and Laplace(2T·|dom|/ε) to each sum. Taken together, a
count and a sum move by 1 + |dom| when a row comes or goes, so that Laplace((1 + |dom|)·T/ε) is enough for both. And
rounds are dear: rows counted once in a grid of cells, clustered for free and corrected once, leave nearly no error.
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
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.pictures import OUT, blank, save
from hubbub.learn import KMeans
from hubbub.mechanisms import Geometric
from hubbub.report import plot_clusters

Array = np.ndarray[Any, Any]

ROUNDS = 10
EPSILON = Fraction(1, 2)
STEPS = 1 << 20
"""Whole steps of a coordinate from 0 to its end."""
COLUMNS = 2
LARGE = ((-0.7, 0.6), (0.05, -0.7), (0.65, 0.65))
SMALL = ((-0.72, -0.62), (-0.5, -0.42), (-0.42, -0.74), (0.62, -0.22), (0.8, -0.4))
"""Middles of the clumps: three that anybody finds, and five small ones close together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Centres:
    """What a way has found."""

    cluster_centers_: Array


def rows(seed: int = 4) -> Array:
    """Made-up points within [−1, 1]²: rows that nobody has to protect."""
    chance = np.random.default_rng(seed)
    large = [chance.normal(middle, 0.08, (800, COLUMNS)) for middle in LARGE]
    small = [chance.normal(middle, 0.04, (300, COLUMNS)) for middle in SMALL]
    return np.clip(np.vstack([*large, *small]), -1, 1)


def start(clusters: int, seed: int) -> Array:
    """Random centres, the same for every way that needs some."""
    return np.random.default_rng(seed).uniform(-0.9, 0.9, (clusters, COLUMNS))


def lloyd(x: Array, centres: Array, noisy: Callable[[Array, Array], tuple[Array, Array]]) -> Centres:
    """Ten rounds of counts and sums, as ``noisy`` tells them."""
    for _ in range(ROUNDS):
        owner = ((x[:, None, :] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        counts = np.bincount(owner, minlength=len(centres)).astype(np.int64)
        steps = np.trunc(x * STEPS).astype(np.int64)
        sums = np.zeros((len(centres), COLUMNS), dtype=np.int64)
        np.add.at(sums, owner, steps)
        held, summed = noisy(counts, sums)
        known = held >= 1
        moved = centres.copy()
        moved[known] = np.clip(summed[known] / held[known, None], -1, 1)
        centres = moved
    return Centres(cluster_centers_=centres)


def exactly(counts: Array, sums: Array) -> tuple[Array, Array]:
    """Without privacy."""
    return counts.astype(np.float64), sums / STEPS


def separately(counts: Array, sums: Array) -> tuple[Array, Array]:
    """Half of a round's ε for counts, half for sums: Laplace(2T/ε) and Laplace(2T·|dom|/ε)."""
    half = EPSILON / (2 * ROUNDS)
    told = Geometric(epsilon=half, sensitivity=1).draw(counts)
    summed = Geometric(epsilon=half, sensitivity=COLUMNS * STEPS).draw(sums)
    return np.asarray(told, dtype=np.float64), np.asarray(summed, dtype=np.float64) / STEPS


def jointly(counts: Array, sums: Array) -> tuple[Array, Array]:
    """One vector with counts and sums, of sensitivity 1 + |dom| in all."""
    both = np.hstack([counts[:, None] * STEPS, sums])
    noisy = Geometric(epsilon=EPSILON / ROUNDS, sensitivity=(1 + COLUMNS) * STEPS).draw(both)
    told = np.asarray(noisy, dtype=np.float64) / STEPS
    return told[:, 0], told[:, 1:]


def original(x: Array, clusters: int, *, tries: int = 100) -> Centres:
    """Without privacy one starts from rows, several times, and keeps the best."""
    chance = np.random.default_rng(0)
    found = [lloyd(x, chance.choice(x, clusters, replace=False), exactly) for _ in range(tries)]
    return min(found, key=lambda model: distance(x, model.cluster_centers_))


def distance(x: Array, centres: Array) -> float:
    """The mean squared distance to the nearest centre: looked at here because the rows are made up."""
    return float(((x[:, None, :] - centres[None]) ** 2).sum(axis=2).min(axis=1).mean())


def models(x: Array, *, seed: int = 0) -> dict[str, Any]:
    """Each private way with what it finds, at the same ε."""
    clusters = len(LARGE) + len(SMALL)
    first = start(clusters, seed)
    return {
        "the lecture: Laplace(2T/ε), Laplace(2T·|dom|/ε)": lloyd(x, first, separately),
        "counts and sums jointly": lloyd(x, first, jointly),
        "hubbub.learn.KMeans": KMeans(clusters, epsilon=float(EPSILON), bounds=(-1, 1)).fit(x),
    }


def _middle(x: Array, found: list[Any]) -> Any:
    """Neither the luckiest run nor the unluckiest."""
    return sorted(found, key=lambda model: distance(x, model.cluster_centers_))[len(found) // 2]


def main(folder: Path = OUT, *, times: int = 10) -> Path:
    """Draw the middle run of each way side by side, and say how far rows are from their centres over all runs."""
    x = rows()
    known = {"original k-means": original(x, len(LARGE) + len(SMALL))}
    runs = [known | models(x, seed=seed) for seed in range(times)]
    found = {name: _middle(x, [run[name] for run in runs]) for name in runs[0]}
    figure = blank(15, 4.3)
    for place, (name, model) in enumerate(found.items()):
        axes = figure.add_subplot(1, len(found), place + 1)
        plot_clusters(model, rows=x, title=name if place != 1 else "the lecture, separately", ax=axes)
        axes.set_xlim(-1, 1)
        axes.set_ylim(-1, 1)
        axes.set_xlabel(f"mean squared distance {distance(x, model.cluster_centers_):.4f}")
        axes.set_ylabel("")
    path = save(figure, "kmeans.png", folder)
    table = Table(title=f"Mean squared distance, ε = {float(EPSILON):g}, T = {ROUNDS}, {times} runs")
    table.add_column("")
    table.add_column("mean", justify="right")
    table.add_column("±", justify="right")
    for name in found:
        each = [distance(x, run[name].cluster_centers_) for run in runs]
        table.add_row(name, f"{np.mean(each):.4f}", f"{np.std(each, ddof=1) / len(each) ** 0.5:.4f}")
    console = Console()
    console.print(table)
    console.print(str(found["hubbub.learn.KMeans"].claim_))
    return path


if __name__ == "__main__":
    main()
