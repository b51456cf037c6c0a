"""The cuts of each column, and their number: from noisy histograms, or evenly where there are none.

All of it is computed from releases. A column whose values lie close together needs no cuts, and one with two humps a
cut between them; the cells of the grid go where they save most.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.learn.statistics.cells import Array
from hubbub.query.totals import Code, Number, number

FINE = 1024
"""Bins of a column that is cut evenly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedAxis:
    """One column between two ends, in bins; ``mass`` is the share of each bin, or None where nothing is known."""

    start: float
    stop: float
    mass: Array | None = None

    @property
    def bins(self) -> int:
        return FINE if self.mass is None else len(self.mass)

    @property
    def step(self) -> float:
        """The width of a bin."""
        return (self.stop - self.start) / self.bins

    def cuts(self, most: int) -> list[tuple[float, Array | None]]:
        """For 1, 2, … parts: the mean squared distance to the part's mean, and the bins where parts begin and end.

        None stands for even parts.
        """
        if self.mass is None:
            even = (self.stop - self.start) ** 2 / 12
            return [(even / many**2, None) for many in range(1, min(most, FINE) + 1)]
        return _optimal(self.mass, self.step, min(most, self.bins))

    def describe(self, edges: Array) -> tuple[Array, Array]:
        """Return the mean and the variance of each part."""
        centres = self.start + self.step * (np.arange(self.bins) + 0.5)
        mass = np.full(self.bins, 1 / FINE) if self.mass is None else self.mass
        within = self.step**2 / 12
        held = np.add.reduceat(mass, edges[:-1])
        mean = np.add.reduceat(mass * centres, edges[:-1]) / held
        square = np.add.reduceat(mass * centres**2, edges[:-1]) / held
        return mean, np.maximum(square - mean**2, 0.0) + within


def _optimal(mass: Array, step: float, most: int) -> list[tuple[float, Array | None]]:
    """The best cuts into each number of parts (dynamic programming over bins)."""
    bins = len(mass)
    centres = step * (np.arange(bins) + 0.5)
    held, first, second = (
        np.concatenate([[0.0], np.cumsum(each)]) for each in (mass, mass * centres, mass * (centres**2 + step**2 / 12))
    )
    weight, moment, square = (each[None, :] - each[:, None] for each in (held, first, second))
    later = weight > 0  # a part ends behind its beginning
    cost = np.where(later, square - moment**2 / np.where(later, weight, 1.0), np.inf)
    best = cost[0]
    ways: list[Array] = []
    found: list[tuple[float, Array | None]] = []
    for many in range(1, most + 1):
        if many > 1:
            options = best[:, None] + cost
            ways.append(options.argmin(axis=0))
            best = options.min(axis=0)
        edges = [bins]
        for way in reversed(ways):
            edges.append(int(way[edges[-1]]))
        found.append((float(best[bins]), np.array([0, *reversed(edges)])))
    return found


def find_bins(axes: Sequence[BinnedAxis], rows: Number) -> Number:
    """Return the bin of each value; what lies outside is in the first or last one."""
    starts, bins = [axis.start for axis in axes], [float(axis.bins) for axis in axes]
    widths = [axis.stop - axis.start + 1 for axis in axes]
    last = [many - 1 for many in bins] if len(set(bins)) > 1 else bins[0] - 1
    return ((rows - starts) * bins / widths).floor().clip(0.0, last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A product of parts of all columns."""

    axes: tuple[BinnedAxis, ...]
    edges: tuple[Array, ...]

    @classmethod
    def of(cls, axes: tuple[BinnedAxis, ...], *, cells: int) -> "Grid":
        """At most so many cells: one part more wherever that saves most for the factor that it costs."""
        options = [axis.cuts(cells) for axis in axes]
        parts = [1] * len(axes)
        while True:
            total = int(np.prod(parts))
            gains = [
                (held[part - 1][0] - held[part][0]) / np.log((part + 1) / part)
                if part < len(held) and total // part * (part + 1) <= cells
                else 0.0
                for part, held in zip(parts, options, strict=True)
            ]
            best = int(np.argmax(gains)) if gains else 0
            if not gains or gains[best] <= 0:
                break
            parts[best] += 1
        cut = [held[part - 1][1] for part, held in zip(parts, options, strict=True)]
        even = [np.rint(np.linspace(0, FINE, part + 1)).astype(np.int64) for part in parts]
        return cls(
            axes=axes, edges=tuple(own if own is not None else other for own, other in zip(cut, even, strict=True))
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(edges) - 1 for edges in self.edges)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def code(self, rows: Number) -> Code:
        """Code the cell of each row."""
        bins, found = find_bins(self.axes, rows), number(0.0)
        for column, (axis, edges) in enumerate(zip(self.axes, self.edges, strict=True)):
            if len(edges) > 2:
                part_of = np.searchsorted(edges[1:-1], np.arange(axis.bins), side="right")
                found = found * float(len(edges) - 1) + bins[column].pick(part_of.astype(np.float64).tolist())
        return Code(number=found, size=self.size)

    def describe(self, cells: Array) -> tuple[Array, Array]:
        """The mean point and the variances of some cells, columns taken to be independent within a cell."""
        places = np.unravel_index(cells, self.shape)
        each = [
            tuple(each[place] for each in axis.describe(edges))
            for axis, edges, place in zip(self.axes, self.edges, places, strict=True)
        ]
        return np.stack([mean for mean, _ in each], axis=1), np.stack([variance for _, variance in each], axis=1)
