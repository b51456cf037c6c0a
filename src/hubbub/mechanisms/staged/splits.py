"""Steps that choose where to look closer: cuts at private places, and quadrants that are worth splitting."""

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from hubbub import noise
from hubbub.mechanisms.base import Array
from hubbub.mechanisms.staged.quads import Forest, Quads
from hubbub.mechanisms.staged.staged import Tariff
from hubbub.noise import laws


class Rule(StrEnum):
    """The score of a place to cut at."""

    MEDIAN = "median"
    """As many rows on either side."""
    CONTRAST = "contrast"
    """A side that is much denser than the other: empty land is told from a town, a full edge from what is within."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cuts:
    """A choice of the place where each of some disjoint rectangles is cut in two, by the exponential mechanism.

    ``regions`` has a row for each: first and last + 1 along the first axis, the same along the second, and the axis to
    cut. An answer is a place where the second half begins. A rectangle that is one cell wide is not looked at: its
    answer is where it begins.

    Privacy:
        Claim: a row loses at most ``weight`` (``Step``).
        Proof: let L of the rectangle's T rows lie before the u-th of its n lines. Such a place is scored by -|2·L - T|
            for medians, which a row in the rectangle moves by 1; and by |n·L - u·T| for contrasts, which a row moves by
            n - u or u, so by at most n - 1. Rows elsewhere move none. If D is that most, then with weights
            exp(rate · score) at rate of_a_row(weight)/2D a row changes ln P(place) by at most 2·D·rate: D·rate for the
            place itself, and as much for the sum of all weights. Rectangles choose independently, so that rows of a
            unit add up.
        Needs: noise.choice draws exactly; rectangles that do not overlap, which ``charges`` makes sure of.
        Ref: McSherry, Talwar 2007; Cormode, Procopiuc, Srivastava, Shen, Yu 2012 for medians.
    """

    shape: tuple[int, ...]
    regions: Array
    weight: int
    rule: Rule = Rule.MEDIAN

    @property
    def charges(self) -> Array:
        """The charge of each cell; where rectangles overlap, each is charged."""
        charged = np.zeros(self.shape, dtype=np.int64)
        for top, bottom, left, right, _ in self.regions:
            charged[top:bottom, left:right] += self.weight
        return charged

    def draw(self, cells: Array, price: Tariff) -> Array:
        return self.repeat(cells, price, 1)[0]

    def repeat(self, cells: Array, price: Tariff, times: int) -> list[Array]:
        found = np.empty((times, len(self.regions)), dtype=np.int64)
        for place, region in enumerate(self.regions):
            levels, rate = self._levels(cells, region), self._rate(region, price)
            first = int(region[2 * region[4]])
            found[:, place] = first + 1 + noise.choice(levels=levels, rate=rate, size=times) if len(levels) else first
        return list(found)

    def log_mass(self, cells: Array, answer: Array, price: Tariff) -> float:
        total = 0.0
        for region, place in zip(self.regions, answer, strict=True):
            levels, rate = self._levels(cells, region).astype(float), float(self._rate(region, price))
            at = int(place) - int(region[2 * region[4]]) - 1
            if not len(levels) and at == -1:
                continue
            if not 0 <= at < len(levels):
                return -math.inf
            total += float(-rate * levels[at] - np.logaddexp.reduce(-rate * levels))
        return total

    def length(self, rest: Array) -> int:
        return len(self.regions)

    def _rate(self, region: Array, price: Tariff) -> Fraction:
        """By how much a step of a level makes a place less likely, as a logarithm."""
        lines = int(region[2 * region[4] + 1] - region[2 * region[4]])
        return price.of_a_row(self.weight) / (2 if self.rule is Rule.MEDIAN else 2 * max(lines - 1, 1))

    def _levels(self, cells: Array, region: Array) -> Array:
        """Return the distance of each place strictly within from the best possible score: a score and a constant."""
        top, bottom, left, right, axis = (int(one) for one in region)
        before = np.cumsum(cells[top:bottom, left:right].sum(axis=1 - axis))
        levels: Array
        if self.rule is Rule.MEDIAN:
            levels = np.abs(2 * before[:-1] - before[-1])
            return levels
        lines = len(before)
        wide = before.astype(object) if float(np.abs(before.astype(float)).max()) * lines >= 1 << 60 else before
        levels = -np.abs(lines * wide[:-1] - np.arange(1, lines).astype(wide.dtype) * wide[-1])
        return levels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Splits:
    """A choice of the quadrants to split, from the ``top`` depth down, at a price that does not grow with depth.

    A node v at the j-th depth from the top is split if max(c(v) - j·decay, threshold - decay) + noise > threshold,
    where c counts its rows and the noise is two-sided geometric of scale λ; ``threshold`` and ``decay`` are whole. An
    answer has one bit for each node that exists, depth after depth and row by row; cells are never split.

    Privacy:
        Claim: a row loses at most ``weight`` (``Step``).
        Proof: let a = e^(-1/λ), t the threshold, and x be what a node's noise is added to. P(split) is a^(t+1-x)/(1+a)
            for x <= t and 1 - a^(x-t)/(1+a) above. A row more in a cell moves x by at most 1, and only for the nodes on
            the cell's path. From x - 1 to x, ln P(split) grows by r(x): 1/λ for x <= t + 1; and for x = t + 1 + k it is
            f(u) = ln((1 - au)/(1 - u)) at u = a^k/(1+a), which is convex with f(0) = 0 and f(1/(1+a)) = 1/λ, so that
            r(x) <= a^k/λ. Where the row counts, x >= t - decay + 1, and x falls by at least ``decay`` from each node to
            the next below. So the nodes of a path that are split grow likelier by at most 1/λ for the lowest, 1/λ for
            the next, and a^(i·decay)/λ for the i-th after that; the one that is not split grows less likely. In all at
            most S/λ, with S = 1 + Σ_{i=0}^{h-2} base^(-i) for h depths, since a^decay <= 1/base. The other way, splits
            grow less likely, and not to split the last node grows likelier by at most 1/λ: ln of a^(x-1-t)/a^(x-t) for
            x > t, and less below. λ = S / of_a_row(weight). Rows of a unit are added one after the other.
        Needs: noise.discrete_laplace draws exactly; cells are not negative (they are clamped), so that no node holds
            more than the one above.
        Ref: Zhang, Xiao, Xie 2016, whose proof for continuous noise this follows.
    """

    shape: tuple[int, ...]
    weight: int
    regions: tuple[tuple[int, int, int, int], ...] = ()
    """Rectangles that are the roots, as of Forest; the whole, where none is named."""
    top: int = 0
    base: int = 4
    tall: Fraction = Fraction(0)
    """The threshold, in units of λ."""

    @property
    def quads(self) -> Quads | Forest:
        return Forest(self.shape, self.regions) if self.regions else Quads(self.shape)

    @property
    def depths(self) -> range:
        """The depths at which nodes may be split."""
        return range(min(self.top, self.quads.height), self.quads.height)

    @property
    def charges(self) -> Array:
        return np.full(self.shape, self.weight, dtype=np.int64)

    def scale(self, price: Tariff) -> Fraction:
        """λ."""
        paths = 1 + sum((Fraction(1, self.base**i) for i in range(len(self.depths) - 1)), start=Fraction(0))
        return paths / price.of_a_row(self.weight)

    def decay(self, price: Tariff) -> int:
        """At least λ·ln(base), with room for what a float loses."""
        return math.ceil(float(self.scale(price)) * math.log(self.base) * (1 + 1e-9)) + 1

    def threshold(self, price: Tariff) -> int:
        return math.floor(self.scale(price) * self.tall)

    def split(self, bits: Array) -> list[Array]:
        """The nodes that are split, depth after depth, from an answer; those above the top are split anyway."""
        quads, found = self.quads, []
        living = np.arange(quads.count(self.depths.start))
        for depth in self.depths:
            own, bits = bits[: len(living)], bits[len(living) :]
            found.append(living[own != 0])
            living = np.flatnonzero(_mark(quads, depth, found[-1])[quads.parents(depth)])
        above = [np.arange(quads.count(depth)) for depth in range(self.depths.start)]
        return above + found

    def draw(self, cells: Array, price: Tariff) -> Array:
        return self.repeat(cells, price, 1)[0]

    def repeat(self, cells: Array, price: Tariff, times: int) -> list[Array]:
        quads, scale, threshold = self.quads, self.scale(price), self.threshold(price)
        living = np.ones((times, quads.count(self.depths.start)), dtype=bool)
        bits, owners = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for depth in self.depths:
            answers, nodes = np.nonzero(living)
            levels = self._bias(cells, depth, price)[nodes]
            own = (levels + noise.discrete_laplace(scale=scale, size=len(nodes)) > threshold).astype(bool)
            bits.append(own.astype(np.int64))
            owners.append(answers)
            split = np.zeros_like(living)
            split[answers[own], nodes[own]] = True
            living = split[:, quads.parents(depth)]
        whose = np.concatenate(owners)
        ends = np.cumsum(np.bincount(whose, minlength=times))[:-1]
        return np.split(np.concatenate(bits)[np.argsort(whose, kind="stable")], ends) if times else []

    def log_mass(self, cells: Array, answer: Array, price: Tariff) -> float:
        quads, total, left = self.quads, 0.0, answer
        scale, threshold = self.scale(price), self.threshold(price)
        living = np.arange(quads.count(self.depths.start))
        for depth in self.depths:
            own, left = left[: len(living)], left[len(living) :]
            if not np.isin(own, (0, 1)).all():
                return -math.inf
            for level, bit in zip(self._bias(cells, depth, price)[living], own, strict=True):
                total += _log_chance(threshold - int(level), scale, above=bool(bit))
            living = np.flatnonzero(_mark(quads, depth, living[own != 0])[quads.parents(depth)])
        return total

    def length(self, rest: Array) -> int:
        quads, used = self.quads, 0
        living = np.arange(quads.count(self.depths.start))
        for depth in self.depths:
            own = rest[used : used + len(living)]
            used += len(living)
            if len(own) < len(living):
                return used
            living = np.flatnonzero(_mark(quads, depth, living[own != 0])[quads.parents(depth)])
        return used

    def _bias(self, cells: Array, depth: int, price: Tariff) -> Array:
        counts = np.zeros(self.quads.count(depth), dtype=cells.dtype)
        np.add.at(counts, self.quads.labels(depth), np.maximum(cells, 0))
        decay, threshold = self.decay(price), self.threshold(price)
        found: Array = np.maximum(counts - (depth - self.depths.start) * decay, threshold - decay)
        return found


def _mark(quads: Quads | Forest, depth: int, nodes: Array) -> Array:
    marks = np.zeros(quads.count(depth), dtype=bool)
    marks[nodes] = True
    return marks


def _log_chance(gap: int, scale: Fraction, *, above: bool) -> float:
    """ln P(noise > gap), or of what is left."""
    upper = laws.laplace_tail(gap + 1, scale)
    return math.log(upper) if above else math.log(laws.laplace_tail(-gap, scale))
