"""Trees of rectangles: cut at private medians, then in halves; and all levels counted, the leaves at most."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.staged.splits import Cuts
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
from hubbub.publish.strategies.layer import Array, Shape
from hubbub.publish.strategies.strategy import OfCells
from hubbub.publish.terms import Terms

MEDIANS, FEW = Fraction(3, 10), Fraction(1, 10)
"""The share for where to cut: as first proposed, and where only the first level is cut."""
MOST = 10
"""Levels, at most."""
LEAF = 4
"""About so many rows times ε are left in a leaf, where the number of levels follows from a noisy count."""
_TWICE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class KdTree(OfCells):
    """Rectangles cut at private medians, along one axis after the other, so that leaves hold about as many rows each.

    One level is two cuts; all levels are counted, at shares that grow towards the leaves by the third root of 2, and
    the cells follow by least squares. Without a ``height`` there are as many levels as a noisy number of rows deserves.

    Privacy:
        Claim: ε of the terms for cells that one unit moves within its contribution.
        Proof: one run of mechanisms.Staged: ``counting`` of the price for the noisy number of rows, clamped to at
            least 1, where it decides the height; ``medians`` of the price is split evenly over the cuts from the whole
            to the leaves, of which each cell sees one at a time; the rest over the levels of counts. Rectangles of one
            step are disjoint. Where cuts are tried comes from the grid.
        Needs: mechanisms.Staged; a contribution that was enforced before cells were counted.
        Ref: Cormode, Procopiuc, Srivastava, Shen, Yu 2012.
    """

    height: int | None = None
    medians: Real = MEDIANS
    counting: Real = COUNTING
    name: str = "kd-tree"

    def __post_init__(self) -> None:
        if self.height is not None:
            whole("height", self.height, least=1, most=MOST)
        object.__setattr__(self, "medians", probability("medians", self.medians))
        object.__setattr__(self, "counting", probability("counting", self.counting))

    def prepare(self, shape: Shape, terms: Terms) -> PreparedMap:
        return prepare_map(_plan(self, shape, terms, kd=self.height, quad=0), terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid(OfCells):
    """Private medians for the upper levels, halves for the lower ones: cuts are paid only where rows abound.

    Without ``quad`` there are as many lower levels as a noisy number of rows deserves.

    Privacy:
        Claim: ε of the terms for cells that one unit moves within its contribution.
        Proof: as KdTree; halves depend on the rectangles alone and cost nothing.
        Needs: mechanisms.Staged; a contribution that was enforced before cells were counted.
        Ref: Cormode, Procopiuc, Srivastava, Shen, Yu 2012.
    """

    kd: int = 1
    quad: int | None = None
    medians: Real = FEW
    counting: Real = COUNTING
    name: str = "hybrid"

    def __post_init__(self) -> None:
        whole("kd", self.kd, least=1, most=MOST)
        if self.quad is not None:
            whole("quad", self.quad, least=0, most=MOST - self.kd)
        object.__setattr__(self, "medians", probability("medians", self.medians))
        object.__setattr__(self, "counting", probability("counting", self.counting))

    def prepare(self, shape: Shape, terms: Terms) -> PreparedMap:
        return prepare_map(_plan(self, shape, terms, kd=self.kd, quad=self.quad), terms)


def _plan(of: KdTree | Hybrid, shape: Shape, terms: Terms, *, kd: int | None, quad: int | None) -> "RegionsPlan":
    counted = kd is None or quad is None
    return RegionsPlan(
        shape=flat_map(shape),
        kd=kd,
        quad=quad,
        counting=parts(Fraction(of.counting)) if counted else 0,
        medians=parts(Fraction(of.medians)),
        worth=float(terms.epsilon) / terms.contribution.total,
    )


def geometric(whole_price: int, levels: int) -> tuple[int, ...]:
    """Whole parts of a price for levels, the top first: each level below gets 2^(1/3) times as much."""
    weights = 2 ** (np.arange(levels) / 3)
    return tuple(int(one) for one in np.floor(whole_price * weights / weights.sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionsPlan:
    """The plan in steps: the number of rows if that decides anything, then all cuts, then the counts of all levels."""

    shape: Shape
    kd: int | None
    quad: int | None
    counting: int
    """The charge of the number of rows; 0 where it is not asked for."""
    medians: int
    """The charge of all cuts together."""
    worth: float
    """ε for each row of a unit."""

    def step(self, told: Sequence[Array]) -> Step | None:
        if self.counting and not told:
            return everything(self.shape, self.counting)
        kd, quad = self.sizes(told)
        cut = max(1, self.medians // (_TWICE * kd))
        after, paid = told[1:] if self.counting else told, _TWICE * kd
        if len(after) < paid:
            regions = with_axis(cut_apart(self.shape, after), len(after) % 2)
            return Cuts(shape=self.shape, regions=regions, weight=cut)
        level, counts = len(after) - paid, geometric(GRAIN - self.counting - cut * paid, kd + quad + 1)
        if level >= len(counts):
            return None
        regions = self.levels(after[:paid], kd, quad)[level]
        return Sums(labels=paint(self.shape, regions), weights=np.full(len(regions), counts[level]))

    def sizes(self, told: Sequence[Array]) -> tuple[int, int]:
        """Return the number of levels cut at medians, and of levels cut in halves."""
        if self.kd is not None and self.quad is not None:
            return self.kd, self.quad
        deep = round(math.log(max(rows_at_least_one(told) * self.worth / LEAF, 1), 4))
        room = min(MOST, max((length - 1).bit_length() for length in self.shape))
        if self.kd is None:
            return max(1, min(deep, room)), 0
        return self.kd, max(0, min(deep, room) - self.kd)

    def levels(self, cuts: Sequence[Array], kd: int, quad: int) -> list[Array]:
        """The rectangles of each level that is counted, the whole first."""
        found = [cut_apart(self.shape, cuts[: _TWICE * level]) for level in range(kd + 1)]
        for _ in range(quad):
            halves = found[-1]
            for axis in (0, 1):
                withs = with_axis(halves, axis)
                halves = _cut(withs, (withs[np.arange(len(withs)), 2 * withs[:, 4]] + _ends(withs)) // 2)
            found.append(halves)
        return found


def cut_apart(shape: Shape, cuts: Sequence[Array]) -> Array:
    """The rectangles after these cuts, along one axis after the other."""
    regions = np.array([[0, shape[0], 0, shape[1]]])
    for place, chosen in enumerate(cuts):
        regions = _cut(with_axis(regions, place % 2), chosen)
    return regions


def with_axis(regions: Array, axis: int) -> Array:
    """Along the axis whose turn it is, or the other one where that is a single cell wide."""
    wide = regions[:, 2 * axis + 1] - regions[:, 2 * axis] > 1
    return np.column_stack([regions, np.where(wide, axis, 1 - axis)])


def _ends(regions: Array) -> Array:
    ends: Array = regions[np.arange(len(regions)), 2 * regions[:, 4] + 1]
    return ends


def _cut(regions: Array, places: Array) -> Array:
    """Both sides of each place, strictly within; rectangles that cannot be cut stay as they are."""
    found = []
    for (*box, axis), place in zip(regions.tolist(), np.asarray(places).tolist(), strict=True):
        begin, end = box[2 * axis], box[2 * axis + 1]
        if not begin < place < end:
            found.append(box)
            continue
        first, second = list(box), list(box)
        first[2 * axis + 1] = second[2 * axis] = place
        found += [first, second]
    return np.array(found)


def paint(shape: Shape, regions: Array) -> Array:
    """The rectangle of each cell."""
    labels = np.full(shape, -1, dtype=np.int64)
    for place, (top, bottom, left, right) in enumerate(regions.tolist()):
        labels[top:bottom, left:right] = place
    return labels
