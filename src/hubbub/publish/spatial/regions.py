"""Trees of rectangles: cut at private medians, then in halves; and all levels counted, the leaves at most."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.splits import Cuts
from hubbub.mechanisms.staged import GRAIN, Step, Sums
from hubbub.parameters import Real, probability, whole
from hubbub.publish.layer import Array, Shape
from hubbub.publish.spatial.prepared import PreparedMap, flat_map, parts, prepared_map
from hubbub.publish.terms import Terms

MEDIANS = Fraction(3, 10)
"""The share for where to cut, as first proposed."""
_TWICE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class KdTree:
    """Rectangles cut at private medians, along one axis after the other, so that leaves hold about as many rows each.

    One level is two cuts; all levels are counted, at shares that grow towards the leaves by the third root of 2, and
    the cells follow by least squares.

    Privacy:
        Claim: ε of the terms for cells that one unit moves within its contribution.
        Proof: one run of mechanisms.Staged: ``medians`` of the price is split evenly over the cuts from the whole to
            the leaves, of which each cell sees one at a time; the rest over the levels of counts. Rectangles of one
            step are disjoint. Where cuts are tried comes from the grid.
        Needs: mechanisms.Staged; a contribution that was enforced before cells were counted.
        Ref: Cormode, Procopiuc, Srivastava, Shen, Yu 2012.
    """

    height: int = 4
    medians: Real = MEDIANS
    name: str = "kd-tree"

    def __post_init__(self) -> None:
        whole("height", self.height, least=1, most=10)
        object.__setattr__(self, "medians", probability("medians", self.medians))

    def prepare(self, shape: Shape, terms: Terms) -> PreparedMap:
        return prepared_map(_plan(shape, self.height, 0, Fraction(self.medians)), terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid:
    """Private medians for the upper levels, halves for the lower ones: cuts are paid only where rows abound.

    Privacy:
        Claim: ε of the terms for cells that one unit moves within its contribution.
        Proof: as KdTree; halves depend on the rectangles alone and cost nothing.
        Needs: mechanisms.Staged; a contribution that was enforced before cells were counted.
        Ref: Cormode, Procopiuc, Srivastava, Shen, Yu 2012.
    """

    kd: int = 2
    quad: int = 3
    medians: Real = MEDIANS
    name: str = "hybrid"

    def __post_init__(self) -> None:
        whole("kd", self.kd, least=1, most=10)
        whole("quad", self.quad, least=0, most=10 - self.kd)
        object.__setattr__(self, "medians", probability("medians", self.medians))

    def prepare(self, shape: Shape, terms: Terms) -> PreparedMap:
        return prepared_map(_plan(shape, self.kd, self.quad, Fraction(self.medians)), terms)


def _plan(shape: Shape, kd: int, quad: int, medians: Fraction) -> "RegionsPlan":
    cuts = max(1, parts(medians) // (_TWICE * kd))
    left, levels = GRAIN - cuts * _TWICE * kd, kd + quad + 1
    return RegionsPlan(shape=flat_map(shape), kd=kd, quad=quad, cuts=cuts, counts=geometric(left, levels))


def geometric(whole_price: int, levels: int) -> tuple[int, ...]:
    """Whole parts of a price for levels, the top first: each level below gets 2^(1/3) times as much."""
    weights = 2 ** (np.arange(levels) / 3)
    return tuple(int(one) for one in np.floor(whole_price * weights / weights.sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionsPlan:
    """First all cuts, then the counts of all levels."""

    shape: Shape
    kd: int
    quad: int
    cuts: int
    """The charge of one cut."""
    counts: tuple[int, ...]
    """The charge of each level of counts, the top first."""

    def step(self, told: Sequence[Array]) -> Step | None:
        paid = _TWICE * self.kd
        if len(told) < paid:
            region = self._below(told)
            return Cuts(shape=self.shape, regions=_with_axis(region, len(told) % 2), weight=self.cuts)
        level = len(told) - paid
        if level >= len(self.counts):
            return None
        regions = self.levels(told[:paid])[level]
        return Sums(labels=painted(self.shape, regions), weights=np.full(len(regions), self.counts[level]))

    def levels(self, cuts: Sequence[Array]) -> list[Array]:
        """The rectangles of each level that is counted, the whole first."""
        found = [self._below(cuts[: _TWICE * level]) for level in range(self.kd + 1)]
        for _ in range(self.quad):
            halves = found[-1]
            for axis in (0, 1):
                withs = _with_axis(halves, axis)
                halves = _cut(withs, (withs[np.arange(len(withs)), 2 * withs[:, 4]] + _ends(withs)) // 2)
            found.append(halves)
        return found

    def _below(self, cuts: Sequence[Array]) -> Array:
        """The rectangles after these cuts."""
        regions = np.array([[0, self.shape[0], 0, self.shape[1]]])
        for place, chosen in enumerate(cuts):
            regions = _cut(_with_axis(regions, place % 2), chosen)
        return regions


def _with_axis(regions: Array, axis: int) -> Array:
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


def painted(shape: Shape, regions: Array) -> Array:
    """The rectangle of each cell."""
    labels = np.full(shape, -1, dtype=np.int64)
    for place, (top, bottom, left, right) in enumerate(regions.tolist()):
        labels[top:bottom, left:right] = place
    return labels
