"""A map measured as finely as each part of it deserves: private quadrants, and budgets that suit the tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.staged.quads import Forest, Quads
from hubbub.mechanisms.staged.splits import Cuts, Rule, Splits
from hubbub.mechanisms.staged.staged import GRAIN, Step, Sums
from hubbub.parameters import Real, probability, whole
from hubbub.publish.spatial.prepared import (
    COUNTING,
    PreparedMap,
    everything,
    flat_map,
    parts,
    prepare_map,
    rows_at_least_one,
)
from hubbub.publish.spatial.regions import cut_apart, with_axis
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import OfCells
from hubbub.publish.terms import Terms

SPLITTING, CUTTING, TOP = Fraction(1, 4), Fraction(1, 25), 1
"""Chosen, as the rest, by made-up maps (cities, roads, spikes, a cross, wide, uniform, heaps) at ε = 0.1 with 10^4 and
10^6 rows, but CUTTING with an eye on a real one that is full along two edges; MANY was not tuned."""
_CUTS = 2
"""One along each axis."""
MANY = 10_000.0
"""Rows times ε, from which on a map counts as a rich one."""
POOR, RICH = (4, Fraction(1, 2)), (2, Fraction(0))
"""The base by which splits get dearer with depth, and the threshold in units of their noise."""
_OWN = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7)
"""What a node may keep for itself of what it and all below it have."""
_STEP = GRAIN >> 8
"""Charges are multiples of this, so that few laws are drawn from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto(OfCells):
    """Cut once along each axis, then split into quadrants while they seem to hold enough rows, down to cells; then each
    node gets what it is worth.

    The first cuts go where the two sides differ most in density, so that what lies along an edge, or in a corner, is
    not mixed with empty land. Which nodes are measured, and how well, follows from the tree alone: by how likely a
    random rectangle holds a node but not the one above it, from the cells upwards, each node keeps the share that makes
    the expected error least. Empty land is then one number, a single city is measured to its cells with nearly all of
    the price, and a wide dense map becomes a hierarchy.

    Privacy:
        Claim: ε of the terms for cells that one unit moves within its contribution.
        Proof: one run of mechanisms.Staged: ``counting`` of the price for the noisy number of rows, clamped to at
            least 1, which decides how readily quadrants are split; half of ``cutting`` for a cut of the whole, and half
            for cuts of both sides, which are disjoint; ``splitting`` for mechanisms.splits.Splits; what is left for
            sums over the nodes, of which no cell's path is charged more than that.
        Needs: mechanisms.Staged; a contribution that was enforced before cells were counted.
        Ref: Zhang, Xiao, Xie 2016 for the tree; Li, Hay, Miklau 2014 for measuring what was partitioned by its worth.
    """

    splitting: Real = SPLITTING
    cutting: Real = CUTTING
    counting: Real = COUNTING
    top: int = TOP
    """The depth that is always reached below the first cuts."""
    name: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "splitting", probability("splitting", self.splitting))
        object.__setattr__(self, "cutting", probability("cutting", self.cutting))
        object.__setattr__(self, "counting", probability("counting", self.counting))
        whole("top", self.top, least=0)

    def prepare(self, shape: Shape, terms: Terms) -> PreparedMap:
        plan = TreePlan(
            shape=flat_map(shape),
            counting=parts(Fraction(self.counting)),
            splitting=parts(Fraction(self.splitting)),
            cut=parts(Fraction(self.cutting) / _CUTS),
            top=self.top,
            worth=float(terms.epsilon) / terms.contribution.total,
        )
        return prepare_map(plan, terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlan:
    """The plan in steps: the number of rows, the cuts of the whole, the nodes that are split, and
    the nodes of each depth.
    """

    shape: Shape
    counting: int
    splitting: int
    cut: int
    """The charge of one cut."""
    top: int
    worth: float

    def step(self, told: Sequence[Array]) -> Step | None:
        if not told:
            return everything(self.shape, self.counting)
        cuts = told[1 : 1 + _CUTS]
        if len(cuts) < _CUTS:
            regions = with_axis(cut_apart(self.shape, cuts), len(cuts))
            return Cuts(shape=self.shape, regions=regions, weight=self.cut, rule=Rule.CONTRAST)
        splits = self._splits(told)
        if len(told) == 1 + _CUTS:
            return splits
        quads, depth = splits.quads, len(told) - _CUTS - 2
        if depth > quads.height:
            return None
        left = GRAIN - self.counting - self.splitting - _CUTS * self.cut
        nodes, charges = weigh_nodes(quads, splits.split(told[1 + _CUTS]), left)[depth]
        if not len(nodes):
            return None
        places = np.full(quads.count(depth), -1, dtype=np.int64)
        places[nodes] = np.arange(len(nodes))
        return Sums(labels=places[quads.labels(depth)], weights=charges)

    def _splits(self, told: Sequence[Array]) -> Splits:
        base, tall = RICH if rows_at_least_one(told) * self.worth >= MANY else POOR
        regions = cut_apart(self.shape, told[1 : 1 + _CUTS]).tolist()
        roots = tuple((top, bottom, left, right) for top, bottom, left, right in regions)
        return Splits(shape=self.shape, weight=self.splitting, regions=roots, top=self.top, base=base, tall=tall)


def weigh_nodes(quads: Quads | Forest, split: Sequence[Array], price: int) -> list[tuple[Array, Array]]:
    """The nodes of each depth, and what they are charged; along no path more than the price. From public facts alone.

    Let a node and all below it have the share 1. Its best estimate has the variance g: 2 for a leaf; and 1 over
    p²/2 + (1 - p)²/Σg for one that keeps p and leaves the rest to those below. The cost C of a node is P·g, where P is
    how likely a random rectangle holds it and not the node above, plus ΣC/(1 - p)² of those below; p makes it least.
    """
    nodes = _nodes(quads, split)
    keeps: list[Array] = []
    spread, cost, above = np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)
    for depth in range(len(nodes) - 1, -1, -1):
        held = _hold_probability(quads, depth, nodes[depth])
        inner = np.isin(nodes[depth], split[depth]) if depth < quads.height else np.zeros(len(held), dtype=bool)
        if depth:
            above_now = quads.parents(depth - 1)[nodes[depth]]
            alone = held - _hold_probability(quads, depth - 1, above_now)
        else:
            above_now, alone = np.zeros(len(held), dtype=np.int64), held
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
    return _charge_nodes(quads, nodes, keeps, price)


def _charge_nodes(
    quads: Quads | Forest, nodes: list[Array], keeps: list[Array], price: int
) -> list[tuple[Array, Array]]:
    """Return the part of the remaining price that each node keeps; leaves keep all of it."""
    found, left = [], np.full(len(nodes[0]), price)
    for depth, (here, keep) in enumerate(zip(nodes, keeps, strict=True)):
        if depth:
            before = nodes[depth - 1]
            left = left[np.searchsorted(before, quads.parents(depth - 1)[here])]
        charges = np.where(keep == 1, left, (left * keep / _STEP).astype(np.int64) * _STEP)
        found.append((here, charges))
        left = left - charges
    return found + [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))] * (quads.height + 1 - len(found))


def _nodes(quads: Quads | Forest, split: Sequence[Array]) -> list[Array]:
    """Those that exist, depth by depth."""
    found = [np.arange(quads.count(0))]
    for depth, some in enumerate(split):
        if not len(some):
            break
        marks = np.zeros(quads.count(depth), dtype=bool)
        marks[some] = True
        found.append(np.flatnonzero(marks[quads.parents(depth)]))
    return found


def _hold_probability(quads: Quads | Forest, depth: int, nodes: Array) -> Array:
    """Return the probability that a rectangle with sides uniform from 1 to all, anywhere it fits, holds each node."""
    found: Array = np.ones(len(nodes))
    for length, (begins, ends) in zip(quads.shape, quads.boxes(depth, nodes), strict=True):
        stretches, places = np.unique(begins * (length + 1) + ends, return_inverse=True)
        found *= _hold_probability_along(length, *np.divmod(stretches, length + 1))[places]
    return found


def _hold_probability_along(length: int, begins: Array, ends: Array) -> Array:
    sides = np.arange(1, length + 1)
    first = np.maximum(ends[:, np.newaxis] - sides, 0)
    last = np.minimum(begins[:, np.newaxis], length - sides)
    return np.asarray(np.mean(np.maximum(last - first + 1, 0) / (length - sides + 1), axis=1))
