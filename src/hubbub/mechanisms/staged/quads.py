"""Nested quadrants of a rectangle of cells: where the nodes of each depth lie, and which node they are part of.

At depth k each axis is cut into 2^k blocks, or into single cells where it has no more of them. An axis of n cells in m
blocks is cut at ⌊i·n/m⌋, so that sides of any length will do and every depth is nested in the one above. A forest has
such quadrants in each of some rectangles that make up the whole.
"""

import math
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
        """Return the number of blocks along each axis."""
        return tuple(min(1 << depth, length) for length in self.shape)

    def count(self, depth: int) -> int:
        """Return the number of nodes."""
        return math.prod(self.parts(depth))

    def starts(self, depth: int) -> list[Array]:
        """Return the places where blocks begin along each axis, and the place where the last one ends."""
        pairs = zip(self.shape, self.parts(depth), strict=True)
        return [np.arange(parts + 1, dtype=np.int64) * length // parts for length, parts in pairs]

    def labels(self, depth: int) -> Array:
        """The node that each cell lies in."""
        edges = self.starts(depth)
        each = [
            np.searchsorted(edge, np.arange(length), side="right") - 1
            for edge, length in zip(edges, self.shape, strict=True)
        ]
        return _join(each, self.parts(depth))

    def parents(self, depth: int) -> Array:
        """Of each node of ``depth`` + 1: the node of ``depth`` that it is part of."""
        above, below = self.starts(depth), self.starts(depth + 1)
        each = [np.searchsorted(up, down[:-1], side="right") - 1 for up, down in zip(above, below, strict=True)]
        return _join(each, self.parts(depth)).reshape(-1)

    def boxes(self, depth: int, nodes: Array) -> list[tuple[Array, Array]]:
        """Of some nodes: where they begin and end along each axis."""
        places = np.unravel_index(nodes, self.parts(depth))
        return [(edge[at], edge[at + 1]) for edge, at in zip(self.starts(depth), places, strict=True)]


@dataclass(frozen=True, slots=True)
class Forest:
    """Quadrants of each of some rectangles; nodes are numbered rectangle by rectangle at each depth.

    A row of ``regions`` is a rectangle: first and last + 1 along the first axis, and along the second. Together they
    hold every cell once.
    """

    shape: Shape
    regions: tuple[tuple[int, int, int, int], ...]

    def __post_init__(self) -> None:
        boxes = np.array(self.regions, dtype=np.int64).reshape(-1, 4)
        sizes = boxes[:, 1::2] - boxes[:, ::2]
        ends, starts = np.minimum(boxes[:, None, 1::2], boxes[:, 1::2]), np.maximum(boxes[:, None, ::2], boxes[:, ::2])
        apart = (ends > starts).all(axis=2).sum() == len(boxes)
        inside = boxes.size and (boxes[:, ::2] >= 0).all() and (boxes[:, 1::2] <= self.shape).all()
        if not (inside and apart and (sizes > 0).all() and sizes.prod(axis=1).sum() == math.prod(self.shape)):
            raise TypeError("rectangles that do not hold every cell once")

    @property
    def trees(self) -> list[Quads]:
        return [Quads((bottom - top, right - left)) for top, bottom, left, right in self.regions]

    @property
    def height(self) -> int:
        """The depth at which all nodes are cells."""
        return max(tree.height for tree in self.trees)

    def count(self, depth: int) -> int:
        """Return the number of nodes."""
        return sum(tree.count(depth) for tree in self.trees)

    def labels(self, depth: int) -> Array:
        """The node that each cell lies in."""
        found, used = np.zeros(self.shape, dtype=np.int64), 0
        for (top, bottom, left, right), tree in zip(self.regions, self.trees, strict=True):
            found[top:bottom, left:right] = used + tree.labels(depth)
            used += tree.count(depth)
        return found

    def parents(self, depth: int) -> Array:
        """Of each node of ``depth`` + 1: the node of ``depth`` that it is part of."""
        found, used = [], 0
        for tree in self.trees:
            found.append(used + tree.parents(depth))
            used += tree.count(depth)
        return np.concatenate(found)

    def boxes(self, depth: int, nodes: Array) -> list[tuple[Array, Array]]:
        """Of some nodes: where they begin and end along each axis."""
        edges: list[list[Array]] = [[], [], [], []]
        for (top, _, left, _), tree in zip(self.regions, self.trees, strict=True):
            every = tree.boxes(depth, np.arange(tree.count(depth)))
            for place, (first, ends) in enumerate(zip((top, left), every, strict=True)):
                edges[2 * place].append(first + ends[0])
                edges[2 * place + 1].append(first + ends[1])
        tops, bottoms, lefts, rights = (np.concatenate(some)[nodes] for some in edges)
        return [(tops, bottoms), (lefts, rights)]


def _join(each: list[Array], parts: Shape) -> Array:
    joined: Array = np.ravel_multi_index(np.ix_(*each), parts)
    return joined
