"""Compressed sensing: error against the number of cells and of those that are not empty, as a table and a picture.

python -m bench.sensing [picture.png]
"""

import sys

from hubbub.publish.strategies.sensing import SensingError, sensing_errors
from hubbub.report.pictures import plot_sensing

CELLS = (256, 1024, 4096, 16384)
SPARSITIES = (4, 16, 64)
EPSILON, DELTA = 1, 1e-6


def series(releases: int = 10) -> list[SensingError]:
    """All points of the figure."""
    return list(sensing_errors(cells=CELLS, sparsities=SPARSITIES, epsilon=EPSILON, delta=DELTA, releases=releases))


def main() -> None:
    errors = series()
    print(f"{'cells':>7} {'not empty':>9} {'sums':>6} {'recovered':>10} {'flat':>8}")
    for one in errors:
        print(f"{one.cells:>7} {one.sparsity:>9} {one.size:>6} {one.recovered:>10.1f} {one.flat:>8.1f}")
    if len(sys.argv) > 1:
        title = f"A sparse histogram from few random sums, ε = {EPSILON}, δ = {DELTA:g}"
        plot_sensing(errors, title=title).figure.savefig(sys.argv[1], dpi=120)


if __name__ == "__main__":
    main()
