"""What publishing is tested against: every unit there could be, and matrices written out."""

import itertools
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from hubbub.privacy.events.event import Event
from hubbub.privacy.sensitivity import Neighbors
from hubbub.publish import Contribution
from hubbub.publish.strategies.layer import Layer, Shape

Array = np.ndarray[Any, Any]


@cache
def units(length: int, one: Contribution) -> Array:
    """All that one unit may add to so many cells, a row each; nothing at all among them."""
    found = [
        values
        for values in itertools.product(range(one.each + 1), repeat=length)
        if np.count_nonzero(values) <= one.cells and sum(values) <= one.total
    ]
    return np.array(found, dtype=np.int64)


@cache
def changes(length: int, one: Contribution) -> Array:
    """All differences of neighbours."""
    added = units(length, one)
    if one.neighbors is Neighbors.ADD_REMOVE:
        return added
    return np.unique((added[:, np.newaxis] - added[np.newaxis]).reshape(-1, length), axis=0)


def matrix(layer: Layer, shape: Shape) -> Array:
    """A layer's matrix, from what it does to each cell."""
    cells = int(np.prod(shape))
    return np.array([layer.apply(cell.reshape(shape)) for cell in np.eye(cells, dtype=np.int64)]).T


def norms(dense: Array, length: int, one: Contribution) -> tuple[int, int]:
    """The greatest L1 and squared L2 of A(x - x'), by trying everything."""
    moved = changes(length, one) @ dense.T
    return int(np.abs(moved).sum(axis=1).max()), int(np.square(moved).sum(axis=1).max())


def reached(layer: Layer, one: Contribution) -> tuple[int, int]:
    """What is claimed of the same two: whole numbers, since maps and units are whole."""
    reach = layer.reach(one)
    assert reach.l1 is not None
    assert reach.l2_squared is not None
    assert reach.l1.denominator == reach.l2_squared.denominator == 1
    return int(reach.l1), int(reach.l2_squared)


def paid(events: Iterable[Event], *, rho: bool = False) -> list[Fraction]:
    """The pure ε, or ρ, of each; all must have one."""
    found = [event.rho if rho else event.epsilon for event in events]
    assert None not in found
    return [one for one in found if one is not None]


CONTRIBUTIONS = [
    Contribution(cells=cells, each=each, total=total, neighbors=neighbors)
    for cells, each, total in ((1, 1, 0), (2, 1, 0), (3, 1, 0), (2, 2, 0), (2, 2, 3), (1, 3, 0))
    for neighbors in (Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE)
]
