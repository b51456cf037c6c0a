"""Bounds of values, seen through noise: those that cost an answer the least, read off a noisy histogram.

A sum that is clamped at u has noise that grows with u, and loses what lies beyond it: its squared error is the noise's
variance and the square of the loss. The least of both is where a handful of rows is beyond, and noise in each bin hides
that many; what is thought to be there is ``chain``'s. A mean has noise that grows with the distance of its bounds:
where all values are on one side of zero, and none are near it, the nearer bound is moved in the same way.

Nothing here is about privacy: it is post-processing of released numbers, and only decides how good a choice is.

Ref: Amin, Kulesza, Muñoz, Vassilvitskii 2019 for the trade; Wilson et al. 2020 for bounds from noisy log-spaced counts.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.base import Array
from hubbub.query.missing.tail_model import FALSE, INWARD, VALUES, Tail, loss_beyond, rows_squared

_WINDOWS = (10, 3, 1)
"""So many bins together are looked at for the heap to begin with; where fewer will do, they are better."""
_INWARD = 64
"""How many times smaller than the fullest bin's edge the lower bound may be: nearer to zero it would gain nothing."""
_ZEROS = 0.3
"""How often some values are zero, where most are not."""


def outermost(
    noisy: Sequence[float],
    edges: Sequence[Fraction],
    *,
    noise: Fraction,
    rest: Fraction,
    step: int = 0,
    beside: Fraction | None = None,
    tail: Tail = VALUES,
) -> int | None:
    """The place of the edge to clamp at; None where no rows can be told from noise.

    Bin i holds what is above edge i - 1 and not above edge i, in whole numbers if ``step`` is 1. ``noise`` is the ε of
    the counts, ``rest`` that of what will be added up. What is further out than ``beside``, the end on the other side
    of zero, must be the plainer for it.
    """
    counts, ends = np.asarray(noisy, dtype=float), np.array([float(edge) for edge in edges])
    needed = np.zeros(len(ends)) if beside is None else 2 * np.log(np.maximum(1.0, ends / float(beside)))
    start = _start(counts, needed, float(noise))
    if start is None:
        return None
    return start + int(np.argmin(_square_errors(counts[start:], ends[start:], noise, rest, step, tail).sum(axis=0)))


def weigh_edges(
    noisy: Sequence[float], edges: Sequence[Fraction], *, noise: Fraction, rest: Fraction, step: int, tail: Tail
) -> dict[Fraction, tuple[float, float]]:
    """Return for each edge at which one could clamp the mean square of the noise, and that of what would be lost.

    Nearer to zero than the fullest bin nobody would clamp: there what is lost is what the counts say.
    """
    counts, ends = np.asarray(noisy, dtype=float), np.array([float(edge) for edge in edges])
    start = _start(counts, np.zeros(len(ends)), float(noise))
    if start is None:
        return {}
    squares = _square_errors(counts[start:], ends[start:], noise, rest, step, tail)
    beyond = np.maximum(0.0, counts[::-1].cumsum()[::-1])  # units in each bin and in those further out
    steps = (ends[1 : start + 1] - ends[:start]) * beyond[1 : start + 1]
    near = (math.sqrt(squares[1][0]) + steps[::-1].cumsum()[::-1]) ** 2
    own = 2 * (ends[:start] / float(rest)) ** 2
    told = zip(edges, np.append(own, squares[0]), np.append(near, squares[1]), strict=True)
    return {edge: (float(noisy_), float(lost)) for edge, noisy_, lost in told}


def _square_errors(  # noqa: PLR0917
    counts: Array, ends: Array, noise: Fraction, rest: Fraction, step: int, tail: Tail
) -> Array:
    lost = loss_beyond(counts, ends, noise=float(noise), step=step, tail=tail)
    return np.stack([2 * (ends / float(rest)) ** 2, lost])


def around(
    noisy: Sequence[float],
    zeros: float,
    edges: Sequence[Fraction],
    *,
    noise: Fraction,
    rest: Fraction,
    step: int = 0,
) -> tuple[Fraction, Fraction] | None:
    """The bounds of values that are all on one side of zero: the lower one is 0 where some may be near it.

    ``zeros`` is the noisy count of what is zero; the rest is as above.
    """
    counts, ends = np.asarray(noisy, dtype=float), np.array([float(edge) for edge in edges])
    start = _start(counts, np.zeros(len(ends)), float(noise))
    if start is None:
        return None
    above = loss_beyond(counts[start:], ends[start:], noise=float(noise), step=step, tail=VALUES)
    last = int(np.searchsorted(ends, ends[start] / _INWARD))
    under = np.append(ends[last:start][::-1], 0.0)
    below = loss_beyond(counts[last : start + 1][::-1], under, noise=float(noise), step=-step, tail=INWARD)
    there = rows_squared(float(zeros), often=_ZEROS, most=float(counts.max()), noise=float(noise))
    below = below + INWARD.weight * there * under**2
    widths = ends[start:][:, None] - under
    squares = 2 * (widths / float(rest)) ** 2 + above[:, None] + below
    high, low = np.unravel_index(int(np.argmin(squares)), widths.shape)
    return (edges[start - 1 - int(low)] if under[low] else Fraction(0)), edges[start + int(high)]


def largest_noise(many: int, among: int, epsilon: float) -> float:
    """Bound the noise of ``many`` bins together, except with probability ``FALSE`` among all (Chernoff)."""
    often = math.log(among * len(_WINDOWS) / FALSE)
    if many == 1:
        return often / epsilon
    tilts = np.linspace(0.05, 0.99, 95)
    return float(np.min((often - many * np.log1p(-(tilts**2))) / tilts)) / epsilon


def _start(counts: Array, needed: Array, epsilon: float) -> int | None:
    """The fullest bin of the smallest window that cannot be all noise."""
    found = None
    for many in _WINDOWS:
        if many > len(counts):
            continue
        sums = np.convolve(counts, np.ones(many), mode="valid") - needed[many - 1 :] / epsilon
        first = int(np.argmax(sums))
        if sums[first] >= largest_noise(many, len(counts), epsilon):
            found = first + int(np.argmax(counts[first : first + many]))
    return found
