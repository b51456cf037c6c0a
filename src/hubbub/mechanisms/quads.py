"""Nested quadrants of a rectangle of cells: where the nodes of each depth lie, and which node they are part of.

At depth k each axis is cut into 2^k blocks, or into single cells where it has no more of them. An axis of n cells in m
blocks is cut at ⌊i·n/m⌋, so that sides of any length will do and every depth is nested in the one above.
"""

from dataclasses import dataclass

import numpy as np

from hubbub.mechanisms.base import Array

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quads:
    """Nodes are numbered row by row at each depth."""

    shape: Shape

    @property
    def height(self) -> int:
        """The depth at which nodes are cells."""
        return max((length - 1).bit_length() for length in self.shape)

    def parts(self, depth: int) -> Shape:
        """How many blocks along each axis."""
        return tuple(min(1 << depth, length) for length in self.shape)

    def starts(self, depth: int) -> list[Array]:
        """Where blocks begin along each axis, and where the last one ends."""
        pairs = zip(self.shape, self.parts(depth), strict=True)
        return [np.arange(parts + 1, dtype=np.int64) * length // parts for length, parts in pairs]

    def labels(self, depth: int) -> Array:
        """The node that each cell lies in."""
        edges = self.starts(depth)
        each = [
            np.searchsorted(edge, np.arange(length), side="right") - 1
            for edge, length in zip(edges, self.shape, strict=True)
        ]
        return _joined(each, self.parts(depth))

    def parents(self, depth: int) -> Array:
        """Of each node of ``depth`` + 1: the node of ``depth`` that it is part of."""
        above, below = self.starts(depth), self.starts(depth + 1)
        each = [np.searchsorted(up, down[:-1], side="right") - 1 for up, down in zip(above, below, strict=True)]
        return _joined(each, self.parts(depth)).reshape(-1)

    def boxes(self, depth: int, nodes: Array) -> list[tuple[Array, Array]]:
        """Of some nodes: where they begin and end along each axis."""
        places = np.unravel_index(nodes, self.parts(depth))
        return [(edge[at], edge[at + 1]) for edge, at in zip(self.starts(depth), places, strict=True)]


def _joined(each: list[Array], parts: Shape) -> Array:
    joined: Array = np.ravel_multi_index(np.ix_(*each), parts)
    return joined
