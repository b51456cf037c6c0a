"""Least squares for noisy sums over groups of cells that are nested from stage to stage, of any shape and number.

What is left unmeasured below a group is spread evenly over its cells: the one step here that is not unbiased.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.publish.strategies.layer import Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """One stage: the group of each cell (-1 for none), and each group's noisy sum with the variance of its noise."""

    labels: Array
    noisy: Array
    variances: Array
    """Infinite where a group was not measured."""


def solve_cells(stages: Sequence[Stage]) -> Array:
    """The cells by weighted least squares, in one pass up and one down, linear in the number of cells.

    The first stage covers all cells; each later one covers whole groups of the stage before, or leaves them out. A
    group that has nothing below it must be measured. Going up, a group's own number and the sum of what lies below are
    weighted by their precision; going down, what the sum lacks is shared out in proportion to variance.
    """
    parents = [_parents(above.labels, below) for above, below in itertools.pairwise(stages)]
    means, spreads = [stages[-1].noisy.astype(float)], [stages[-1].variances]
    sums: list[Array] = []
    together: list[Array] = []
    for stage, parent in zip(stages[-2::-1], parents[::-1], strict=True):
        groups = len(stage.noisy)
        sums.append(np.bincount(parent, means[-1], groups))
        together.append(np.bincount(parent, spreads[-1], groups))
        with np.errstate(divide="ignore"):
            own = 1 / stage.variances
            below = np.where(together[-1] > 0, 1 / together[-1], 0)
        spreads.append(1 / (own + below))
        means.append(spreads[-1] * (own * stage.noisy.astype(float) + below * sums[-1]))
    final = means.pop()
    spreads.pop()
    cells = _spread(final, stages[0].labels, np.zeros(stages[0].labels.shape))
    for stage, parent in zip(stages[1:], parents, strict=True):
        total = together.pop()
        lacking = (final - sums.pop()) / np.where(total > 0, total, 1)
        final = means.pop() + spreads.pop() * lacking[parent]
        cells = _spread(final, stage.labels, cells)
    return cells


def _parents(above: Array, below: Stage) -> Array:
    """The group of the stage above that each group lies in."""
    inside = below.labels >= 0
    found: Array = np.full(len(below.noisy), -1, dtype=np.int64)
    found[below.labels[inside]] = above[inside]
    if len(found) and found.min() < 0:
        raise TypeError("a group without cells, or outside the groups above")
    return found


def _spread(values: Array, labels: Array, cells: Array) -> Array:
    """Evenly over the cells of each group; cells without one keep what they have."""
    inside = labels >= 0
    sizes = np.bincount(labels[inside], minlength=len(values))
    return np.where(inside, np.append(values / np.maximum(sizes, 1), 0)[labels], cells)
