"""A map measured as finely as each part of it deserves: a private tree of quadrants, and budgets that suit the tree."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.quads import Quads
from hubbub.mechanisms.splits import Splits
from hubbub.mechanisms.staged import GRAIN, Step, Sums
from hubbub.parameters import Real, probability, whole
from hubbub.publish.layer import Array, Shape
from hubbub.publish.spatial.grids import COUNTING, rows_at_least_one
from hubbub.publish.spatial.prepared import PreparedMap, everything, flat_map, parts, prepared_map
from hubbub.publish.terms import Terms

SPLITTING, TOP = Fraction(1, 4), 2
"""Chosen, as the rest, by made-up maps (one city, many, roads, spikes, axes, wide, uniform, one hill) at ε = 0.1 with
10^4 and 10^6 rows; MANY is the middle of the two and was not tuned."""
MANY = 10_000.0
"""Rows times ε, from which on a map counts as a rich one."""
POOR, RICH = (4, Fraction(1, 2)), (2, Fraction(0))
"""The base by which splits get dearer with depth, and the threshold in units of their noise."""
_OWN = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7)
"""What a node may keep for itself of what it and all below it have."""
_STEP = GRAIN >> 8
"""Charges are multiples of this, so that few laws are drawn from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """Quadrants are split while they seem to hold enough rows, down to cells; then each node gets what it is worth.

    Which nodes are measured, and how well, follows from the tree alone: by how likely a random rectangle holds a node
    but not the one above it, from the cells upwards, each node keeps the share that makes the expected error least.
    Empty land is then one number, a single city is measured to its cells with nearly all of the price, and a wide
    dense map becomes a hierarchy.

    Privacy:
        Claim: ε of the terms for cells that one unit moves within its contribution.
        Proof: one run of mechanisms.Staged: ``counting`` of the price for the noisy number of rows, clamped to at
            least 1, which decides how readily quadrants are split; ``splitting`` for mechanisms.splits.Splits; what is
            left for sums over the nodes, of which no cell's path is charged more than that.
        Needs: mechanisms.Staged; a contribution that was enforced before cells were counted.
        Ref: Zhang, Xiao, Xie 2016 for the tree; Li, Hay, Miklau 2014 for measuring what was partitioned by its worth.
    """

    splitting: Real = SPLITTING
    counting: Real = COUNTING
    top: int = TOP
    """The depth that is always reached."""
    name: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "splitting", probability("splitting", self.splitting))
        object.__setattr__(self, "counting", probability("counting", self.counting))
        whole("top", self.top, least=0)

    def prepare(self, shape: Shape, terms: Terms) -> PreparedMap:
        plan = TreePlan(
            shape=flat_map(shape),
            counting=parts(Fraction(self.counting)),
            splitting=parts(Fraction(self.splitting)),
            top=self.top,
            worth=float(terms.epsilon) / terms.contribution.total,
        )
        return prepared_map(plan, terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlan:
    """How many rows, which nodes are split, and the nodes of each depth."""

    shape: Shape
    counting: int
    splitting: int
    top: int
    worth: float

    def step(self, told: Sequence[Array]) -> Step | None:
        if not told:
            return everything(self.shape, self.counting)
        splits = self._splits(told)
        if len(told) == 1:
            return splits
        quads, depth = Quads(self.shape), len(told) - 2
        if depth > quads.height:
            return None
        nodes, charges = weighted(quads, splits.split(told[1]), GRAIN - self.counting - self.splitting)[depth]
        if not len(nodes):
            return None
        places = np.full(math.prod(quads.parts(depth)), -1, dtype=np.int64)
        places[nodes] = np.arange(len(nodes))
        return Sums(labels=places[quads.labels(depth)], weights=charges)

    def _splits(self, told: Sequence[Array]) -> Splits:
        base, tall = RICH if rows_at_least_one(told) * self.worth >= MANY else POOR
        return Splits(shape=self.shape, weight=self.splitting, top=self.top, base=base, tall=tall)


def weighted(quads: Quads, split: Sequence[Array], price: int) -> list[tuple[Array, Array]]:
    """The nodes of each depth, and what they are charged; along no path more than the price. From public facts alone.

    Let a node and all below it have the share 1. Its best estimate has the variance g: 2 for a leaf; and 1 over
    p²/2 + (1 - p)²/Σg for one that keeps p and leaves the rest to those below. The cost C of a node is P·g, where P is
    how likely a random rectangle holds it and not the node above, plus ΣC/(1 - p)² of those below; p makes it least.
    """
    nodes = _nodes(quads, split)
    keeps: list[Array] = []
    spread, cost, above = np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)
    for depth in range(len(nodes) - 1, -1, -1):
        held = _held(quads, depth, nodes[depth])
        inner = np.isin(nodes[depth], split[depth]) if depth < quads.height else np.zeros(len(held), dtype=bool)
        if depth:
            above_now = quads.parents(depth - 1)[nodes[depth]]
            alone = held - _held(quads, depth - 1, above_now)
        else:
            above_now, alone = np.zeros(1, dtype=np.int64), held
        below = np.searchsorted(nodes[depth], above)
        sums, costs = (np.bincount(below, one, len(held)) for one in (spread, cost))
        best, keep, own = 2 * alone, np.ones(len(held)), np.full(len(held), 2.0)
        best[inner] = np.inf
        for share in _OWN:
            with np.errstate(divide="ignore"):
                found = 1 / (share**2 / 2 + (1 - share) ** 2 / sums)
                total = alone * found + costs / (1 - share) ** 2
            better = inner & (total < best)
            best, keep, own = (np.where(better, new, old) for new, old in ((total, best), (share, keep), (found, own)))
        keeps.insert(0, keep)
        spread, cost, above = own, best, above_now
    return _charged(quads, nodes, keeps, price)


def _charged(quads: Quads, nodes: list[Array], keeps: list[Array], price: int) -> list[tuple[Array, Array]]:
    """What each node keeps of what the one above has left; leaves keep all of it."""
    found, left = [], np.array([price])
    for depth, (here, keep) in enumerate(zip(nodes, keeps, strict=True)):
        if depth:
            before = nodes[depth - 1]
            left = left[np.searchsorted(before, quads.parents(depth - 1)[here])]
        charges = np.where(keep == 1, left, (left * keep / _STEP).astype(np.int64) * _STEP)
        found.append((here, charges))
        left = left - charges
    return found + [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))] * (quads.height + 1 - len(found))


def _nodes(quads: Quads, split: Sequence[Array]) -> list[Array]:
    """Those that exist, depth by depth."""
    found = [np.zeros(1, dtype=np.int64)]
    for depth, some in enumerate(split):
        if not len(some):
            break
        marks = np.zeros(math.prod(quads.parts(depth)), dtype=bool)
        marks[some] = True
        found.append(np.flatnonzero(marks[quads.parents(depth)]))
    return found


def _held(quads: Quads, depth: int, nodes: Array) -> Array:
    """How likely a rectangle with sides uniform from 1 to all, anywhere it fits, holds each node."""
    chances = [
        _held_along(length, edges[:-1], edges[1:])
        for length, edges in zip(quads.shape, quads.starts(depth), strict=True)
    ]
    rows, columns = np.unravel_index(nodes, quads.parts(depth))
    found: Array = chances[0][rows] * chances[1][columns]
    return found


def _held_along(length: int, begins: Array, ends: Array) -> Array:
    sides = np.arange(1, length + 1)
    first = np.maximum(ends[:, np.newaxis] - sides, 0)
    last = np.minimum(begins[:, np.newaxis], length - sides)
    return np.asarray(np.mean(np.maximum(last - first + 1, 0) / (length - sides + 1), axis=1))
