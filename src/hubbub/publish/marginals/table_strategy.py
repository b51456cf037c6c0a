"""Strategies that need marginals of the cells and never the cells themselves: their domains may have any size.

What is limited is how many noisy numbers there would be, which the sizes of the columns decide. So it is public, and
refused before anything is paid.
"""

import math
from collections.abc import Iterator

from hubbub.errors import TooHeavy
from hubbub.publish.domain import Domain
from hubbub.publish.marginals.cube import Cube, PreparedCube
from hubbub.publish.marginals.cube_release import CubeRelease
from hubbub.publish.marginals.marginal_release import MarginalRelease
from hubbub.publish.marginals.marginals import Marginals, PreparedMarginals
from hubbub.publish.marginals.records import Axes
from hubbub.publish.strategies.layer import Shape
from hubbub.publish.strategies.strategy import Prepared, Strategy

MOST_NUMBERS = 50_000_000
"""Noisy numbers that are published at once."""
MOST_SETS = 100_000
"""Sets of columns that are measured."""
MOST_VALUES = 2048
"""Of one column of ``Marginals``, whose contrasts are a matrix."""

Tables = MarginalRelease | CubeRelease
"""A release of marginals."""


def by_marginals(strategy: Strategy) -> bool:
    """Return True if the strategy publishes marginals."""
    return isinstance(strategy, Marginals | Cube)


def check_size(strategy: Strategy, domain: Domain) -> None:
    """TooHeavy where there would be too many numbers, or too much to prepare them."""
    if not isinstance(strategy, Marginals | Cube):
        return
    shape = domain.shape
    remedy = "Publish marginals of fewer columns (ways=2, or of= those that matter), or columns with fewer values."
    ways = None if strategy.ways is None else min(strategy.ways, len(shape))
    if ways is None:
        sets = sum(1 << len(marginal) for marginal in strategy.of)
    else:
        sets = sum(math.comb(len(shape), size) for size in range(ways + 1))
    if sets > MOST_SETS:
        raise TooHeavy(f"There would be {sets:,} sets of columns; at most {MOST_SETS:,} are published. {remedy}")
    for axis in domain.axes:
        if isinstance(strategy, Marginals) and len(axis.labels) > MOST_VALUES:
            raise TooHeavy(
                f"{axis.name} has {len(axis.labels):,} values, and Marginals take {MOST_VALUES:,}. "
                "Put them into fewer (bins, or an expression), or use publish.Cube."
            )
    numbers = _numbers(strategy, shape)
    if numbers > MOST_NUMBERS:
        raise TooHeavy(f"There would be {numbers:,} noisy numbers; at most {MOST_NUMBERS:,} are published. {remedy}")


def _numbers(strategy: Marginals | Cube, shape: Shape) -> int:
    """Bound the number of values: of each set of columns, those of its contrasts or coefficients."""
    each = [size - 1 if isinstance(strategy, Marginals) else 1 if size <= 2 else size for size in shape]
    if strategy.ways is None:
        sets = {part for marginal in strategy.workload(shape) for part in _parts(marginal)}
        return sum(math.prod(each[axis] for axis in part) for part in sets)
    # The elementary symmetric polynomials of the sizes: no list of sets is made.
    totals = [1, *([0] * min(strategy.ways, len(shape)))]
    for size in each:
        for place in range(len(totals) - 1, 0, -1):
            totals[place] += totals[place - 1] * size
    return sum(totals)


def _parts(marginal: Axes) -> Iterator[Axes]:
    for bits in range(1 << len(marginal)):
        yield tuple(axis for place, axis in enumerate(marginal) if bits >> place & 1)


def deviations(prepared: Prepared, domain: Domain) -> list[tuple[tuple[str, ...], int, float]] | None:
    """Of each marginal that would be published: its columns, its cells, and the root mean square error of a cell.

    Exact and public; None for strategies that do not publish marginals.
    """
    if not isinstance(prepared, PreparedMarginals | PreparedCube):
        return None
    found = []
    for axes in prepared.workload:
        names = tuple(domain.axes[axis].name for axis in axes)
        found.append((names, math.prod(domain.shape[axis] for axis in axes), math.sqrt(prepared.cell_variance(axes))))
    return found
