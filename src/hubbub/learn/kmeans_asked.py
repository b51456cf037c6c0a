"""What k-means needs of a table that stays in its engine: cells, columns' histograms, and sums about centres.

Each says in ``Number``s what its namesake does with arrays. Whole numbers below 2^53 are exact in any order, so a row
is in the same cell, and nearest to the same centre, wherever that is decided.
"""

from collections.abc import Sequence

import numpy as np

from hubbub.errors import NotAllowed
from hubbub.learn.asked import Asked
from hubbub.learn.cells import Array
from hubbub.learn.kmeans_axes import Axis, Grid
from hubbub.query.totals import WEIGHT, Code, Number, added, least, number, place_of

MOST_CLUSTERS = 256
"""The engine compares each row with each centre in one statement, which must not grow beyond reading."""


def boxed(table: Asked, low: Array, high: Array, ends: Array) -> list[Number]:
    """``Box.rows``: whole numbers within ± ends."""
    half = (high - low) / 2
    middle = (low + half).tolist()
    found = []
    for one, centre, side, end in zip(table.columns, middle, half.tolist(), ends.tolist(), strict=True):
        unit = ((one.known(centre) - centre) / side).clipped(-1.0, 1.0) if side > 0 else number(0.0)
        found.append((unit * end).truncated())
    return found


def binned(axis: Axis, value: Number) -> Number:
    """``Axis.coded``."""
    width = axis.stop - axis.start + 1
    return ((value - axis.start) * float(axis.bins) / width).floor().clipped(0.0, float(axis.bins - 1))


def bin_codes(axes: Sequence[Axis], values: Sequence[Number]) -> list[Code]:
    """One family of bins a column."""
    return [Code(number=binned(axis, one), size=axis.bins) for axis, one in zip(axes, values, strict=True)]


def cell_code(grid: Grid, values: Sequence[Number]) -> Code:
    """``Grid.coded``."""
    found: Number | None = None
    for axis, edges, value in zip(grid.axes, grid.edges, values, strict=True):
        parts = len(edges) - 1
        if parts > 1:
            part_of = np.searchsorted(edges[1:-1], np.arange(axis.bins), side="right").astype(np.float64)
            part = binned(axis, value).picks(tuple(part_of.tolist()))
        else:
            part = number(0.0)
        found = part if found is None else found * float(parts) + part
    return Code(number=number(0.0) if found is None else found, size=grid.size)


def nearest_to(values: Sequence[Number], centres: Array) -> Number:
    """``nearest``, for centres in whole steps."""
    if len(centres) > MOST_CLUSTERS:
        raise NotAllowed(f"In an engine there are at most {MOST_CLUSTERS} clusters. Ask for fewer, or fit an array.")
    scores = []
    for centre in np.rint(centres).tolist():
        square = sum(one * one for one in centre)
        scores.append(number(square) - added([value * (2.0 * one) for value, one in zip(values, centre, strict=True)]))
    return place_of(least(scores), scores)


def summed_asked(
    table: Asked, values: Sequence[Number], centres: Array, *, origin: Array, far: Array, ends: Array, counts: bool
) -> Array:
    """``kmeans_rounds.summed``: in the place of each row's nearest centre."""
    width, clusters = len(far), len(centres)
    about = np.broadcast_to(np.rint(origin), (clusters, width))
    factor = (ends[:width] / far).tolist()
    owner = nearest_to(values, centres)
    parts: list[Number] = []
    for place, value in enumerate(values):
        column = about[:, place].tolist()
        middle = owner.picks(tuple(column)) if len(set(column)) > 1 else number(column[0])
        end = float(ends[place])
        parts.append(((value - middle) * factor[place]).clipped(-end, end))
    if counts:
        parts.append(number(float(ends[width])))
    if table.crowd.units is not None:
        parts = [one * WEIGHT for one in parts]
    (found,) = table.ask([one.truncated() for one in parts], [Code(number=owner, size=clusters)])
    return found
