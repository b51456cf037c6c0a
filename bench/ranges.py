"""Range queries: the mean variance of all ranges against the number of cells, as a table and a picture.

python -m bench.ranges [picture.png]

Every figure is exact and needs no data: the mean, over all n(n+1)/2 ranges of n cells, of the variance that a
strategy's answers have at pure ε = 1. Lecture 001 promises O(log³ n) where noise on every cell has O(n).
"""

import sys
from collections.abc import Callable, Sequence

from hubbub import publish
from hubbub.publish.strategies.hierarchy import LevelPlan
from hubbub.publish.strategies.layer import Nodes
from hubbub.publish.strategies.split import Demand
from hubbub.publish.strategies.wavelet import expected_variance
from hubbub.publish.terms import Terms, variance
from hubbub.report.pictures import Line, plot_ranges

EPSILON = 1
CELLS = tuple(2**power for power in range(4, 21))
SEARCHED = 4096
"""The most cells for which a matrix is searched; the others have closed forms, exact for powers of two."""
BRANCHES = (2, 4, 8, 16, 32, 64)
LAPLACE = publish.Noise.LAPLACE


def flat(cells: int) -> float:
    """Noise on every cell."""
    ready = publish.Flat(noise=LAPLACE).prepare((cells,), Terms.at(EPSILON))
    (one,) = ready.measurements
    return variance(one.mechanism) * Demand.of((cells,), None).share_of((1.0,))  # type: ignore[arg-type]


def tree(cells: int, *, branching: int, even: bool = False) -> float:
    """A hierarchy of equal blocks."""
    strategy = publish.Hierarchy(branching=branching, noise=LAPLACE, even=even)
    ready = strategy.prepare((cells,), Terms.at(EPSILON))
    levels = tuple(one.layer.parts for one in ready.measurements if isinstance(one.layer, Nodes))
    return LevelPlan(levels=levels, split=(), model=0.0).expect(Demand.of((cells,), None), ready)


def hierarchy(cells: int) -> float:
    """The best of several widths, as a hierarchy chooses, or the cells alone."""
    return min(flat(cells), *(tree(cells, branching=width) for width in BRANCHES))


def wavelet(cells: int, *, even: bool = False) -> float:
    """Haar coefficients, with the shares of the price that are best for ranges, or the same for each level."""
    ready = publish.Wavelet(noise=LAPLACE, even=even).prepare((cells,), Terms.at(EPSILON))
    return expected_variance(Demand.of((cells,), None), ready)


def matrix(cells: int) -> float:
    """The matrix mechanism, optimised for all ranges."""
    found = publish.Matrix(noise=LAPLACE).error(publish.Ranges(length=cells), EPSILON)
    return found.variance / found.queries


STRATEGIES: dict[str, Callable[[int], float]] = {
    "identity": flat,
    "binary tree, even shares": lambda cells: tree(cells, branching=2, even=True),
    "wavelet, even shares (Privelet)": lambda cells: wavelet(cells, even=True),
    "wavelet": wavelet,
    "hierarchy": hierarchy,
    "matrix mechanism": matrix,
}
EVEN = ("binary tree, even shares", "wavelet, even shares (Privelet)")
"""As first published: every level has the same share of the price."""


def series(cells: Sequence[int] = CELLS) -> dict[str, Line]:
    """All points of the figure."""
    return {
        name: [(many, of(many)) for many in cells if of is not matrix or many <= SEARCHED]
        for name, of in STRATEGIES.items()
    }


def main() -> None:
    found = series()
    print("cells".rjust(9), *(name[:18].rjust(18) for name in found))
    rows = {name: dict(line) for name, line in found.items()}
    for many in CELLS:
        print(f"{many:>9,}", *(f"{row[many]:>18,.1f}" if many in row else " " * 17 + "–" for row in rows.values()))
    if len(sys.argv) > 1:
        plot_ranges(found, even=EVEN, epsilon=EPSILON).figure.savefig(sys.argv[1], dpi=110)


if __name__ == "__main__":
    main()
