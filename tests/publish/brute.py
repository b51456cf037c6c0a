"""What publishing is tested against: every unit there could be, and matrices written out."""

import itertools

import numpy as np

from hubbub.privacy.neighbors import Neighbors
from hubbub.publish import Contribution


def units(length: int, one: Contribution) -> np.ndarray:
    """All that one unit may add to so many cells, a row each; nothing at all among them."""
    found = [
        values
        for values in itertools.product(range(one.each + 1), repeat=length)
        if np.count_nonzero(values) <= one.cells and sum(values) <= one.total
    ]
    return np.array(found, dtype=np.int64)


def changes(length: int, one: Contribution) -> np.ndarray:
    """All differences of neighbours."""
    added = units(length, one)
    if one.neighbors is Neighbors.ADD_REMOVE:
        return added
    return np.unique((added[:, np.newaxis] - added[np.newaxis]).reshape(-1, length), axis=0)


def matrix(layer, shape) -> np.ndarray:
    """A layer's matrix, from what it does to each cell."""
    cells = int(np.prod(shape))
    return np.array([layer.apply(cell.reshape(shape)) for cell in np.eye(cells, dtype=np.int64)]).T


def norms(dense: np.ndarray, length: int, one: Contribution) -> tuple[int, int]:
    """The greatest L1 and squared L2 of A(x - x'), by trying everything."""
    moved = changes(length, one) @ dense.T
    return int(np.abs(moved).sum(axis=1).max()), int(np.square(moved).sum(axis=1).max())


CONTRIBUTIONS = [
    Contribution(cells=cells, each=each, total=total, neighbors=neighbors)
    for cells, each, total in ((1, 1, 0), (2, 1, 0), (3, 1, 0), (2, 2, 0), (2, 2, 3), (1, 3, 0))
    for neighbors in (Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE)
]
