"""Bounds of columns: as declared, or bought from the budget by noisy histograms that narrow down.

First every value is counted between signed powers of two, and bounds stand about all windows of cells whose noisy sum
is more than noise: a crowded cell is found, and a thin tail too, once it is long enough. Then twice more values are
counted in equal steps of what was found, and ends are cut off that hold next to nothing, as far as noise lets that be
seen. What lies outside is clipped, and it is little.

Privacy:
    Claim: bought bounds cost the share that is taken for them; declared ones nothing.
    Proof: each stage is one ``tally`` of all columns, in cells that are fixed, or that earlier stages released; the
        ends are read off the noisy histograms alone.
    Needs: ``tally``.
    Ref: SOUNDNESS 13; Amin, Kulesza, Munoz, Vassilvitskii 2019 for clipping that trades bias for noise.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.learn.estimator import column_bounds
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.histograms import NoisyHistogram, tally
from hubbub.learn.tuition import Tuition
from hubbub.query.totals import Code, Number

SHARE = Fraction(1, 5)
"""Of the price, for the bounds of all columns together."""
LEAST, MOST = -20, 40
SIZES = MOST - LEAST
"""Magnitudes from 2^-20 to 2^40: a cell holds what lies between two powers of two, on either side of 0."""
CELLS = 2 * SIZES + 1
FINER = 64
"""Equal cells of the second and the third stage."""
STAGES = 3
DOUBT = 1e-3
"""The chance that noise alone passes for values, in any cell of any column of a fit."""
LITTLE = 0.01
"""Cells at an end that hold less than this share of all values are cut off."""
UNKNOWN = (-1.0, 1.0)
"""Where nothing rises above the noise."""


def buy_bounds(
    bounds: Any, x: Number, data: Features, *, tuition: Tuition, share: Fraction = SHARE, label: str = "bounds"
) -> tuple[Array, Array]:
    """Return two arrays with one number a column, the lower below the upper; declared ones cost nothing."""
    many = x.width or 1
    declared = column_bounds(bounds, columns=many)
    if declared is not None:
        return declared
    taken = tuition.left * share
    code, edges = code_magnitudes(x), [_powers() for _ in range(many)]
    low, high = np.empty(many), np.empty(many)
    for stage in range(STAGES):
        found = tally([code], data, tuition=tuition, share=taken / STAGES, label=f"{label}, stage {stage + 1}")
        for place, cut in enumerate(edges):
            low[place], high[place] = _ends(found, place, cut, first=stage == 0)
        edges = [np.linspace(a, b, FINER + 1) for a, b in zip(low, high, strict=True)]
        code = code_evenly(x, low, high)
    return low, high


def _ends(found: NoisyHistogram, place: int, edges: Array, *, first: bool) -> tuple[float, float]:
    """The ends of what rises above the noise; all of it where nothing does."""
    table = found.tables[place]
    if first:
        doubt = math.log(CELLS * CELLS.bit_length() * len(found.tables) / DOUBT)
        span = _span(table, found, log_tests=doubt)
        if span is None:
            return UNKNOWN
    else:
        span = _empty(table, found), len(table) - _empty(table[::-1], found)
        if span[0] >= span[1]:
            span = 0, len(table)
    low, high = float(edges[span[0]]), float(edges[span[1]])
    least = 2.0**LEAST * max(1.0, abs(low))
    return low, max(high, low + least)


def _span(table: Array, found: NoisyHistogram, *, log_tests: float) -> tuple[int, int] | None:
    """From where to where windows of 1, 2, 4, … cells hold more than noise.

    Wider windows are looked at only beside what narrower ones found, so that no crowded cell drags empty ones along.
    """
    sums = np.append(0.0, np.cumsum(table))
    span: tuple[int, int] | None = None
    wide = 1
    while wide <= len(table):
        above = np.flatnonzero(sums[wide:] - sums[:-wide] > found.beyond(wide, log_tests=log_tests))
        if len(above) and span is None:
            span = int(above[0]), int(above[-1]) + wide
        elif span is not None:
            before, after = above[above + wide <= span[0]], above[above >= span[1]]
            span = int(before[0]) if len(before) else span[0], int(after[-1]) + wide if len(after) else span[1]
        wide *= 2
    return span


def _empty(table: Array, found: NoisyHistogram) -> int:
    """Count the first cells that hold next to nothing, even with their noise on top."""
    held = np.cumsum(table) + found.deviation * np.sqrt(np.arange(1, len(table) + 1))
    total = float(table.sum())
    if total <= found.beyond(len(table), log_tests=math.log(1 / DOUBT)):
        return 0  # nothing is known here, not even that there is nothing
    return int(np.flatnonzero(held <= LITTLE * total).max(initial=-1)) + 1


def _powers() -> Array:
    """Ends of the cells of the first stage. The cell about 0 has no width: what is that small is 0."""
    sizes = 2.0 ** np.arange(LEAST, MOST + 1)
    return np.concatenate([-sizes[:0:-1], [0.0, 0.0], sizes[1:]])


def code_magnitudes(x: Number) -> Code:
    """Code 0 … 2·SIZES: negative magnitudes from the largest, then 0, then positive ones; CELLS where none is known."""
    place = x.fill_missing([0.0] * (x.width or 1)).sign() * (x.exponent(LEAST, MOST) - float(LEAST)) + float(SIZES)
    return Code(number=place.known_by(x, float(CELLS)), size=CELLS)


def code_evenly(x: Number, low: Array, high: Array) -> Code:
    """Code equal cells; what lies outside counts at the ends, so that no stage cuts off twice what another did."""
    start, factor = low.tolist(), (FINER / (high - low)).tolist()
    moved = (x.fill_missing(start).clip(start, high.tolist()) - start) * factor
    place = moved.floor().clip(0.0, float(FINER - 1))
    return Code(number=place.known_by(x, float(FINER)), size=FINER)
