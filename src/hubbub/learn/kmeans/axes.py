"""Rows as whole steps within public ends, and the cuts of each column: from noisy histograms, or evenly.

Which cell a row is in, and which centre is nearest, is decided in whole numbers that 53 bits hold. So it does not
depend on which rows stand beside it, as the last bit of a product of matrices does.

All of it is computed from releases. A column whose values lie close together needs no cuts, and one with two humps a
cut between them; the cells of the grid go where they save most.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub import noise
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import BITS
from hubbub.query.totals import Code, Number, number

DEEP = 12
"""In more columns than this a grid has too many cells: random directions have fewer."""
_HELD = 51
"""2·d·(2^bits)² stays below 2^53."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The rows of a table in one unit of length for all columns; ``ends`` says how far each reaches on either side."""

    low: Array
    high: Array
    ends: Array
    unit: float
    """The length of one step, in the units of the table."""
    rows: Number
    """Whole numbers within ± ``ends``."""

    @classmethod
    def of(cls, data: Features, low: Array, high: Array) -> "Box":
        half = (high - low) / 2
        most = float(half.max(initial=0.0))
        bits = min(BITS, (_HELD - data.width.bit_length()) // 2)
        ends = np.floor(half / most * (1 << bits)) if most > 0 else np.zeros(len(low))
        middle, side = (low + half).tolist(), np.where(half > 0, half, 1.0).tolist()
        unit = ((data.x.fill_missing(middle) - middle) / side).clip(-1.0, 1.0)
        return cls(
            low=low, high=high, ends=ends, unit=most / (1 << bits) if most > 0 else 1.0,
            rows=(unit * ends.tolist()).truncate(),
        )  # fmt: skip

    def place(self, centres: Array) -> Array:
        """Return points in steps in the units of the table."""
        middle = self.low + (self.high - self.low) / 2
        return np.asarray(np.clip(middle + centres * self.unit, self.low, self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """The same rows seen from fewer directions: sums of their coordinates with signs that were drawn beforehand.

    Distances between rows are kept up to a factor near 1, and a grid of so few dimensions has few cells.
    """

    ends: Array
    shrunk: float
    """A length in steps of the box, for each step here, in the mean over directions."""
    rows: Number
    """Sums of whole numbers with signs are exact in any order; what lies far outside is moved to the ends."""

    @classmethod
    def of(cls, box: Box, *, directions: int) -> "Shadow":
        """Draw signs, which do not depend on the data (SOUNDNESS 29)."""
        width, end = len(box.ends), float(1 << (BITS - 1))
        signs = 2.0 * np.asarray(noise.uniform_below(2, size=width * directions)).reshape(width, directions) - 1.0
        reach = max(1.0, 2.0 * float(np.sqrt((box.ends * box.ends).sum())))
        seen = box.rows.project(signs.tolist()).clip(-reach, reach)
        return cls(
            ends=np.full(directions, end), shrunk=reach / end / float(np.sqrt(width)),
            rows=(seen * (end / reach)).truncate(),
        )  # fmt: skip


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
