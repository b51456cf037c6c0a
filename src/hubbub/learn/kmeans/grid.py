"""Centres from a noisy grid: counts of cells are bought once, and clustering the cells is free.

Privacy:
    Claim: the grid costs the shares that are taken for its histograms and its counts.
    Proof: histograms of columns and counts of cells are tallies (``tally``). Their bins are public or follow from
        earlier releases; which cells are kept, and the clustering of those, is computed from noisy counts.
    Needs: ``Box``, whose rows choose their own cells.
    Ref: Su, Cao, Li, Bertino, Jin 2016 (EUGkM); cells here are cut by noisy histograms, and faint ones left out.
"""

import math
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hubbub.learn.kmeans.axes import BinnedAxis, Box, Grid, Shadow, find_bins
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.histograms import NoisyHistogram, tally
from hubbub.learn.tuition import Tuition
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.totals import Code

Axes = tuple[BinnedAxis, ...]
BINS = (8, 64)
"""Fewer bins of a column are not worth their price, and more tell nothing new."""
CLEAR = 6.0
"""Rows that a bin should hold at least, in standard deviations of its noise, were they spread evenly."""
MOST_CELLS = 1 << 16
FLAT = 2
FINER = 128
"""Parts of a column begin at one of so many places: within a bin, rows are taken to lie evenly."""
DENSE, FAINT = (1.0, 1.4), (0.06, 0.02)
"""For two columns at most, and for more, whose rows lie in fewer of their cells. Cells for each row and deviation of a
count: one of average density is about as large as its noise. And cells with so few rows that noise alone would fill
them with this share of all rows, or with a deviation for each cluster if that is less, are left out."""
FAINTEST = 0.005
QUIET = 1e-6
"""A deviation is taken for no less than this: for a price so high, noise is 0 whenever anybody looks."""
NARROW, SURE = 0.5, 0.9
"""A column gets closer ends where half of its bins at most hold this share of all rows."""
TRIES = 12
"""Restarts of the clustering of cells: free, since cells are public."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Centres in steps, how many rows each has, and how far rows lie from them in each column (all of it noisy)."""

    centres: Array
    weights: Array
    spread: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class GridBudget:
    """The budget for measuring a table's rows, and how many rows there are (noisy)."""

    tuition: Tuition
    data: Features
    rows: float

    def deviation(self, share: Fraction, *, columns: int) -> float:
        """Of the noise, in rows, that a share buys for histograms of so many columns."""
        one, most = Fraction(columns), self.data.most
        reach = Sensitivity(l0=columns, l1=one * most, l2_squared=one * most * most, linf=Fraction(most))
        return max(self.tuition.additive(share, reach).standard_deviation, QUIET)


def cluster_cells(
    points: Box | Shadow, clusters: int, *, buyer: GridBudget, histograms: Fraction, share: Fraction
) -> Found:
    """Return clusters of cells. What the histograms do not need of their share goes to the cells."""
    axes = tuple(BinnedAxis(start=-end, stop=end) for end in points.ends.tolist())
    width, half, left = len(axes), histograms / 2, share + histograms
    bins = buyer.rows / (CLEAR * buyer.deviation(half, columns=width))
    if bins >= BINS[0] and width > 1:
        many = 1 << int(math.log2(min(bins, BINS[1])))
        axes, close = _histograms(points, axes, buyer, bins=many, share=half, label="columns")
        left -= half
        if close is not axes:
            axes, _ = _histograms(points, close, buyer, bins=many, share=half, label="columns, closer")
            left -= half
    cells = DENSE[width > FLAT] * buyer.rows / buyer.deviation(left, columns=1)
    grid = Grid.of(axes, cells=int(min(MOST_CELLS, max(2 * clusters, cells))))

    counted = tally([grid.code(points.rows)], buyer.data, tuition=buyer.tuition, share=left, label="cells")
    return _cluster(grid, counted, clusters, rows=buyer.rows)


def _histograms(
    points: Box | Shadow, axes: Axes, buyer: GridBudget, *, bins: int, share: Fraction, label: str
) -> tuple[Axes, Axes]:
    """Columns with the mass of their bins; and the same ones with closer ends, where all rows seem to lie in a part."""
    empty = tuple(replace(axis, mass=np.full(bins, 1 / bins)) for axis in axes)
    code = Code(number=find_bins(empty, points.rows), size=bins)
    found = tally([code], buyer.data, tuition=buyer.tuition, share=share, label=label)
    sure = found.deviation * math.sqrt(math.log(bins))
    kept = [np.where(table > sure, table, 0.0) for table in found.tables]
    certain = float(found.beyond(1, log_tests=math.log(100 * bins * len(axes))))
    clear = [np.where(table > certain, table, 0.0) for table in found.tables]
    close = tuple(_closer(axis, mass, buyer.rows) for axis, mass in zip(empty, clear, strict=True))
    filled = (np.maximum(mass, 1e-6 * buyer.rows) for mass in kept)
    finer = FINER // bins
    even = (np.repeat(mass / mass.sum(), finer) / finer for mass in filled)
    known = tuple(replace(axis, mass=mass) for axis, mass in zip(empty, even, strict=True))
    changed = any(one.start != other.start or one.stop != other.stop for one, other in zip(known, close, strict=True))
    return known, close if changed else known


def _closer(axis: BinnedAxis, mass: Array, rows: float) -> BinnedAxis:
    """New ends where a part of the range holds as good as all rows."""
    full = np.flatnonzero(mass)
    if mass.sum() < SURE * rows or full[-1] + 1 - full[0] > NARROW * axis.bins:
        return axis
    start, stop = axis.start + full[0] * axis.step, axis.start + (full[-1] + 1) * axis.step
    return replace(axis, start=float(math.floor(start)), stop=float(math.ceil(stop)))


def _cluster(grid: Grid, counted: NoisyHistogram, clusters: int, *, rows: float) -> Found:
    """Weighted k-means of the cells that are not faint."""
    from sklearn.cluster import KMeans as Exact  # a third of a second that no other estimator needs

    (counts,) = counted.tables
    share = min(max(clusters * counted.deviation / rows, FAINTEST), FAINT[len(grid.axes) > FLAT])
    kept = np.flatnonzero(counts > faint(grid.size, counted, rows=rows, share=share))
    if len(kept) < clusters:
        kept = np.argsort(-counts, kind="stable")[:clusters]
    points, variances = grid.describe(kept)
    weights = np.maximum(counts[kept], 1e-3)
    many = min(clusters, len(np.unique(points, axis=0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = Exact(many, n_init=TRIES, random_state=0).fit(points, sample_weight=weights)
    centres, owner = fitted.cluster_centers_, fitted.labels_
    apart = (points - centres[owner]) ** 2 + variances
    spread = np.sqrt((weights[:, None] * apart).sum(axis=0) / weights.sum())
    held = np.bincount(owner, weights=weights, minlength=many)
    more = np.arange(clusters) % many  # fewer cells than clusters: some centres stand twice
    shared = held[more] / np.bincount(more, minlength=many)[more]
    return Found(centres=centres[more], weights=shared / shared.sum() * rows, spread=spread)


def faint(cells: int, counted: NoisyHistogram, *, rows: float, share: float) -> float:
    """The count below which a cell is taken for empty: noise above it adds up to a small share of all rows."""
    deviation = max(counted.deviation, QUIET)
    scale = deviation / math.sqrt(2)
    for step in range(4, 400):
        level = step / 4 * scale
        if counted.tail:
            false = 0.5 * math.exp(-level / scale) * (level + scale)
        else:
            false = deviation / math.sqrt(2 * math.pi) * math.exp(-((level / deviation) ** 2) / 2)
        if cells * false <= share * rows:
            return level
    return level
