"""Sparse domains: how long 2^40 cells take, and how far sums are off for each way to show few of them.

python -m bench sparse, or all errors and a picture of them: python -m bench.sparse [picture.png]
"""

import importlib
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.record import Bench, Row
from hubbub.publish import sparse

CELLS, FULL = 1 << 40, 10**6
SMALL, SMALL_FULL = 1 << 20, 10**4
SIZES = (1_000, 3_000, 10_000, 30_000)
WIDTHS = (1 << 10, 1 << 14, 1 << 18)
MOST = 10.0


def data(size: int, full: int, seed: int = 1) -> tuple[Any, Any]:
    """Places anywhere, and counts of which few are large."""
    chance = np.random.default_rng(seed)
    places = np.unique(chance.integers(0, size, full + full // 50))[:full]
    return places, np.minimum(chance.zipf(1.7, len(places)), 10_000)


def filters(size: int) -> dict[str, Any]:
    """All that show about so many cells."""
    return {
        "threshold": sparse.Threshold(expected_false=size / 2),
        "largest": sparse.Largest(count=size),
        "high-pass": sparse.HighPass(expected_false=size / 2),
        "sample": sparse.Sample(expected_false=size),
        "priority": sparse.Priority(count=size),
        "priority, filtered": sparse.Priority(count=size, least=5),
    }


def speed() -> list[tuple[str, int, float, float]]:
    """Cells shown, wall time and processor time of a release of 2^40 cells."""
    places, counts = data(CELLS, FULL)
    out = []
    for name, shown in {**filters(100_000), "first above": sparse.FirstAbove(at=9_000, count=20)}.items():
        wall, busy = time.perf_counter(), time.process_time()
        found = sparse.run(places, counts, CELLS, shown, epsilon=1)
        out.append((name, len(found), time.perf_counter() - wall, time.process_time() - busy))
    return out


def errors(releases: int = 5) -> list[tuple[str, int, int, float]]:
    """The root of the mean squared error of sums over ranges, by filter, number of cells shown and width."""
    places, counts = data(SMALL, SMALL_FULL)
    exact = np.zeros(SMALL + 1)
    exact[places + 1] = counts
    exact = np.cumsum(exact)
    out: list[tuple[str, int, int, float]] = []
    for size in SIZES:
        for name, shown in filters(size).items():
            squares: dict[int, list[float]] = {width: [] for width in WIDTHS}
            for _ in range(releases):
                found = sparse.run(places, counts, SMALL, shown, epsilon=1)
                sums = np.concatenate([[0.0], np.cumsum(found.values)])
                for width in WIDTHS:
                    low = np.arange(0, SMALL - width + 1, max(width // 2, SMALL // 512))
                    ends = [sums[np.searchsorted(found.codes, edge)] for edge in (low, low + width)]
                    off = ends[1] - ends[0] - (exact[low + width] - exact[low])
                    squares[width].append(float(np.mean(off**2)))
            out.extend((name, size, width, float(np.mean(one)) ** 0.5) for width, one in squares.items())
    return out


def run() -> Iterator[Row]:
    """The time of each filter, and the squared error of sums beside that of plain thresholding."""
    for name, shown, wall, busy in speed():
        figures = {"seconds": wall, "CPU seconds": busy, "told": float(shown)}
        yield Row(what=f"{name}, 2^40 cells, 10^6 not empty", figures=figures, target="< 10 s", holds=wall < MOST)
    known = {(name, size, width): error for name, size, width, error in errors()}
    for name in filters(1):
        ratios = {
            f"{size:,} told": (known[name, size, WIDTHS[-1]] / known["threshold", size, WIDTHS[-1]]) ** 2
            for size in SIZES
        }
        yield Row(what=f"{name}: squared error of sums of {WIDTHS[-1]:,} cells beside a threshold", figures=ratios)


def main() -> None:
    print(f"{'filter':>20} {'shown':>8} {'wall s':>7} {'cpu s':>7}")
    for name, shown, wall, busy in speed():
        print(f"{name:>20} {shown:>8} {wall:>7.2f} {busy:>7.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    series = errors()
    plain = {(size, width): error for name, size, width, error in series if name == "threshold"}
    print(f"{'filter':>20} {'size':>7} {'width':>7} {'RMSE':>9} {'squared error against threshold':>36}")
    for name, size, width, error in series:
        print(f"{name:>20} {size:>7} {width:>7} {error:>9.1f} {(error / plain[size, width]) ** 2:>36.3g}")
    if len(sys.argv) > 1:
        _plot(series).savefig(sys.argv[1], dpi=120)


def _plot(series: list[tuple[str, int, int, float]]) -> Any:
    """One panel for each width."""
    figure, panels = importlib.import_module("matplotlib.pyplot").subplots(1, len(WIDTHS), figsize=(13, 4))
    for panel, width in zip(panels, WIDTHS, strict=True):
        for name in filters(1):
            points = [(size, error) for one, size, wide, error in series if (one, wide) == (name, width)]
            panel.loglog(*zip(*points, strict=True), marker="o", label=name)
        panel.set(title=f"sums of {width:,} cells", xlabel="cells shown", ylabel="RMSE")
    panels[-1].legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    return figure


BENCH = Bench(
    name="sparse",
    about="2^40 cells of which 10^6 are not empty, in memory; sums over what few of 2^20 are told",
    run=run,
    steps=2 * len(filters(1)) + 1,
    notes=(
        "A threshold has two errors of opposite sign, which cancel where about 10,000 are told: by the data's luck.",
    ),
)


if __name__ == "__main__":
    main()
