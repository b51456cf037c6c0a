"""Sums over blocks of a row of numbers, and over blocks of blocks: what a tree of equal blocks measures.

Every node of a level has as many children as the next, and all nodes get noise of the same law; then least squares is
one pass up and one down.
"""

import math
from dataclasses import dataclass

import numpy as np

from hubbub.mechanisms.base import Array

_QUERIES = 64


@dataclass(frozen=True, slots=True)
class Fans:
    """The number of children of the nodes of each level, the top first; the top itself is not measured."""

    children: tuple[int, ...]

    @classmethod
    def over(cls, leaves: int, *, bits: int) -> "Fans":
        """For a power of two of leaves: as few levels as have at most 2^bits children a node, spread evenly."""
        power = leaves.bit_length() - 1
        levels = max(1, -(-power // bits))
        each, more = divmod(power, levels)
        return cls(tuple(1 << (each + (level < more)) for level in range(levels)))

    @property
    def levels(self) -> int:
        return len(self.children)

    @property
    def widths(self) -> tuple[int, ...]:
        """The nodes of each level, leaves last."""
        return tuple(math.prod(self.children[: level + 1]) for level in range(self.levels))

    @property
    def size(self) -> int:
        return sum(self.widths)

    def sums(self, leaves: Array) -> Array:
        """All nodes of all levels, top first, exactly: every leaf is in one node of each level."""
        return np.concatenate([leaves.reshape(width, -1).sum(axis=1) for width in self.widths])

    def solve_leaves(self, nodes: Array) -> Array:
        """The leaves by least squares, for nodes whose noise has one law. The last axis holds the nodes.

        Going up, a node's own number and the sum of its children are weighted by their variances. Going down, what a
        node differs from the sum of its children is shared out equally.
        """
        ends = np.cumsum(self.widths)
        levels = np.split(np.asarray(nodes, dtype=float), ends[:-1], axis=-1)
        risen, variance = [levels[-1]], 1.0
        for own, fan in zip(levels[-2::-1], self.children[:0:-1], strict=True):
            below = fan * variance
            risen.append((own * below + _group(risen[-1], fan).sum(axis=-1)) / (1 + below))
            variance = below / (1 + below)
        found = risen[-1]
        for level, fan in zip(risen[-2::-1], self.children[1:], strict=True):
            parts = _group(level, fan)
            apart = (found - parts.sum(axis=-1)) / fan
            found = (parts + apart[..., np.newaxis]).reshape(level.shape)
        return found

    def spread(self) -> float:
        """The mean variance of sums of the first leaves, for noise of variance 1.

        qᵀ(AᵀA)⁻¹q, where (AᵀA)⁻¹q is what least squares makes of q on the leaves and 0 above.
        """
        leaves = self.widths[-1]
        ends = np.unique(np.linspace(1, leaves, min(leaves, _QUERIES)).astype(int))
        queries = (np.arange(leaves) < ends[:, np.newaxis]).astype(float)
        nodes = np.concatenate([np.zeros((len(ends), self.size - leaves)), queries], axis=1)
        return float(np.mean(np.sum(queries * self.solve_leaves(nodes), axis=1)))


def _group(level: Array, fan: int) -> Array:
    return level.reshape(*level.shape[:-1], -1, fan)
