"""Quadtrees asked about small rectangles: a geometric budget with least squares against an even one without.

python -m bench.small_boxes [picture.png]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import shared
from bench.utility import DATA_2D, EPSILON, SIDE, resampled
from examples.pictures import BLUE, ORANGE, blank, save
from hubbub import publish
from hubbub.publish import spatial

Array = np.ndarray[Any, Any]
SIDES = (1, 2, 4, 8, 16, 32)
TICKS = (1, 2, 5, 10, 20, 50, 100)
ROWS, RELEASES, ASKED = 1_000_000, 3, 1_000
SMALL = 0.001
"""Answers below this part of all rows count as that much: what is relative to nothing tells nothing."""


def maps() -> dict[str, Array]:
    """The four, reduced."""
    found = {}
    for name in DATA_2D:
        whole = np.load(shared("histograms_2d", f"{name}_256_256.npy"))
        found[name] = whole.reshape(SIDE, 2, SIDE, 2).sum(axis=(1, 3))
    return found


def answered(cells: Array, low: Array, high: Array) -> Array:
    """Sums over rectangles from ``low`` up to ``high``, one a row of each, by a table of sums."""
    table = np.zeros(tuple(length + 1 for length in cells.shape))
    table[1:, 1:] = np.cumsum(np.cumsum(cells, axis=0), axis=1)
    (top, left), (bottom, right) = low.T, high.T
    found: Array = table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]
    return found


def canonical(levels: Sequence[Array], low: Array, high: Array) -> Array:
    """Rectangles from the fewest noisy quadrants that make each up, as a tree without least squares answers.

    The quadrants of a level that lie within are a rectangle of their own; those below a quadrant that was counted
    already are taken off.
    """
    total = np.zeros(len(low))
    first = last = np.zeros_like(low)
    for level in levels:
        size = SIDE // level.shape[0]
        begin, end = -(-low // size), high // size
        full = (end > begin).all(axis=1)
        begin, end = (np.where(full[:, np.newaxis], one, 0) for one in (begin, end))
        total += answered(level, begin, end) - answered(level, 2 * first, 2 * last)
        first, last = begin, end
    return total


def levels_of(found: publish.Published) -> list[Array]:
    """The noisy quadrants of each level, the whole first."""
    measured = zip(found.noisy, found.prepared.measurements, strict=True)
    return [np.asarray(one).reshape(by.layer.parts) for one, by in measured]  # type: ignore[attr-defined]


def placed(side: int, many: int, chance: np.random.Generator) -> tuple[Array, Array]:
    """Squares anywhere on the map."""
    low = chance.integers(0, SIDE - side + 1, (many, 2))
    return low, low + side


def relative(cells: Array, side: int, chance: np.random.Generator, releases: int = RELEASES) -> tuple[float, float]:
    """Median relative errors over squares of this side: geometric with least squares, and even without."""
    off: list[list[Array]] = [[], []]
    for _ in range(releases):
        best = publish.run(cells, spatial.QuadTree(), epsilon=EPSILON).cells
        even = publish.run(cells, spatial.QuadTree(shares=spatial.Shares.UNIFORM), epsilon=EPSILON)
        low, high = placed(side, ASKED, chance)
        true = answered(cells, low, high)
        scale = np.maximum(true, SMALL * float(cells.sum()))
        for kind, told in enumerate((answered(best, low, high), canonical(levels_of(even), low, high))):
            off[kind].append(np.abs(told - true) / scale)
    ours, theirs = (float(np.median(np.concatenate(one))) for one in off)
    return ours, theirs


def series() -> dict[str, list[tuple[float, float]]]:
    """All points of the figure."""
    chance = np.random.default_rng(12)
    found = {}
    for name, shape in maps().items():
        cells = resampled(shape, ROWS, chance)
        found[name] = [relative(cells, side, chance) for side in SIDES]
    return found


def drawn(found: dict[str, list[tuple[float, float]]], path: Path) -> Path:
    """One panel a map."""
    figure = blank(9.6, 2.9)
    panels = figure.subplots(1, len(found), sharey=True)
    for panel, (name, points) in zip(panels, found.items(), strict=True):
        ours, theirs = (100 * np.array(one) for one in zip(*points, strict=True))
        panel.plot(SIDES, theirs, "s--", color=ORANGE, label="even budget, without")
        panel.plot(SIDES, ours, "o-", color=BLUE, label="geometric, least squares")
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks(SIDES, [str(side) for side in SIDES])
        panel.set_yticks(TICKS, [str(tick) for tick in TICKS])
        panel.minorticks_off()
        panel.set_ylim(1, 100)
        panel.set_title(name.split("_")[0])
        panel.set_xlabel("cells a side")
    panels[0].set_ylabel("median relative error, %")
    panels[0].legend(frameon=False, fontsize=8.5, loc="lower right")
    return save(figure, path.name, path.parent)


def main() -> None:
    found = series()
    print(f"{'map':<14} {'side':>4} {'geometric + LS':>15} {'even without':>13} {'times':>6}")
    for name, points in found.items():
        for side, (ours, theirs) in zip(SIDES, points, strict=True):
            print(f"{name:<14} {side:>4} {ours:>15.4f} {theirs:>13.4f} {theirs / ours:>6.1f}")
    if len(sys.argv) > 1:
        drawn(found, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
