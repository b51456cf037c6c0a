"""Where values end, seen through noise: the bound that costs a sum the least, read off a noisy histogram.

A sum that is clamped at u has noise that grows with u, and loses what lies beyond it: its squared error is the noise's
variance and the square of the loss. The least of both is where a handful of rows is beyond, and noise in each bin hides
that many. So what is beyond is thought of as a chain, bin after bin from the inside out, of how many rows a bin holds:

- the law may end here, the likelier the further the next edge is away, and then nothing is beyond;
- or it goes on, and falls the faster the lower it is, as bells, exponential and log-normal laws all do: how fast is one
  of a few rates, weighed by how well each explains all counts;
- or, rarely, it jumps to any number: values that were cut off somewhere, and are all there;
- where it has ended, a heap may lie further out, the more rarely the further.

The noisy counts weigh these against each other, forward and backward; given them, the mean square of what is lost at
every edge is exact for the chain (five moments, from the outside in). Rates and weights were set by hand, mostly on
generated laws. Nothing here is about privacy: it is post-processing of released numbers, and only decides how good a
choice is.

Ref: Amin, Kulesza, Muñoz, Vassilvitskii 2019 for the trade; Wilson et al. 2020 for bounds from noisy log-spaced counts;
Rabiner 1989 for chains behind noise.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.mechanisms.base import Array

_FALSE = 1e-4
"""How likely it is at most that the heap from which one goes outward is noise."""
_WINDOWS = (10, 3, 1)
"""So many bins together are looked at for it; where fewer will do, they are better."""
_ENDS = 0.65
"""That a law ends, for each doubling of the edge."""
_RATES = (0.8, 1.5, 3.0)
"""How many halvings there are for each doubling, times the root of the halvings so far."""
_SPREAD = 0.4
"""By how many halvings that may be off, over one doubling."""
_JUMP = 0.003
"""That it jumps, for each doubling."""
_HEAP, _FAR = 0.02, 4.0
"""That a heap lies beyond the end, for each doubling; and how many halvings of that there are for each of them."""
_LEVELS = 2.0 ** np.arange(-2, 41, 0.5)
_SIDE = 2.0**0.25
_LEAST = 1e-300


def outermost(
    noisy: Sequence[int],
    edges: Sequence[Fraction],
    *,
    noise: Fraction,
    rest: Fraction,
    step: int = 0,
    beside: Fraction | None = None,
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
    counts, ends = counts[start:], ends[start:]
    found = [_lost(counts, ends, float(noise), step, rate) for rate in _RATES]
    best = max(evidence for evidence, _ in found)
    weights = [math.exp(evidence - best) for evidence, _ in found]
    lost = sum(weight * squares for weight, (_, squares) in zip(weights, found, strict=True)) / sum(weights)
    return start + int(np.argmin(2 * (ends / float(rest)) ** 2 + lost))


def largest_noise(many: int, among: int, epsilon: float) -> float:
    """What the noise of so many bins together stays below, except with probability ``_FALSE`` among all (Chernoff)."""
    often = math.log(among * len(_WINDOWS) / _FALSE)
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


def _likely(count: float, levels: Array, epsilon: float) -> Array:
    """How likely a noisy count is if there are no rows, or as many as each level stands for; the likeliest is 1."""
    low, high = levels / _SIDE, levels * _SIDE
    near = np.clip(count, low, high)
    inside = 2 - np.exp(-epsilon * (near - low)) - np.exp(-epsilon * (high - near))
    outside = -np.expm1(-epsilon * (high - low))
    mean = np.where(near == count, np.maximum(inside, _LEAST), outside) / (epsilon * (high - low))
    logs = np.append(-epsilon * abs(count), np.log(np.maximum(mean, _LEAST)) - epsilon * np.abs(count - near))
    return np.asarray(np.exp(logs - logs.max()))


def _moves(levels: Array, most: float, doublings: float, far: float, rate: float) -> Array:
    """From none and each level in one bin to none and each level in the next."""
    moves = np.array(_goes(len(levels), most, round(doublings, 9), rate))
    heap = _HEAP * min(1.0, doublings) * 2.0 ** (-_FAR * far)
    moves[0] = heap * _heaps(levels, most)
    moves[0, 0] = 1 - heap
    return moves


def _heaps(levels: Array, most: float) -> Array:
    """A heap is of any level that is not above the fullest bin's."""
    possible = np.append(False, (levels >= 1) & (levels <= most))
    return possible / float(np.count_nonzero(possible))


@lru_cache(maxsize=256)
def _goes(many: int, most: float, doublings: float, rate: float) -> Array:
    """The same where the law has not ended yet: it ends the sooner the fewer rows there are."""
    levels = _LEVELS[:many]
    halvings = np.log2(levels)
    falls = rate * np.sqrt(np.maximum(0.0, math.log2(most) - halvings)) * doublings
    near = np.exp(-np.abs(halvings - (halvings - falls)[:, None]) / (_SPREAD * math.sqrt(doublings)))
    jumps = 1 - (1 - _JUMP) ** doublings
    goes = (1 - jumps) * near / near.sum(axis=1, keepdims=True) + jumps * _heaps(levels, most)[1:]
    on = (1 - _ENDS) ** doublings * -np.expm1(-levels)
    moves = np.zeros((many + 1, many + 1))
    moves[1:, 0], moves[1:, 1:] = 1 - on, goes * on[:, None]
    return moves


def _far(counts: Array, ends: Array, epsilon: float) -> list[float]:
    """How many doublings each bin is from the last one before it that is plainly not empty."""
    reached, found = float(ends[0]), []
    for count, end in zip(counts, ends, strict=True):
        found.append(math.log2(end / reached))
        if count * epsilon > -math.log(_FALSE) + 2 * math.log(end / reached):
            reached = float(end)
    return found


def _lost(counts: Array, ends: Array, epsilon: float, step: int, rate: float) -> tuple[float, Array]:
    """The logarithm of how well a rate explains the counts, and for each edge the mean square of what is beyond it."""
    most = 2.0 ** (math.ceil(2 * math.log2(max(2.0, float(counts.max())))) / 2)
    levels = _LEVELS[: max(8, int(np.searchsorted(_LEVELS, 2 * most)))]
    likely = [_likely(float(count), levels, epsilon) for count in counts]
    far, doublings = _far(counts, ends, epsilon), np.log2(ends[1:] / ends[:-1])
    moves = [_moves(levels, most, float(one), away, rate) for one, away in zip(doublings, far[1:], strict=True)]
    state = likely[0].copy()
    state[0] = 0.0
    evidence, states = 0.0, []
    for place in range(len(counts)):
        if place:
            state = (state @ moves[place - 1]) * likely[place]
        evidence += math.log(max(float(state.sum()), _LEAST))
        state /= max(float(state.sum()), _LEAST)
        states.append(state)
    return evidence, _squares(states, likely, moves, ends, levels, step)


def _squares(  # noqa: PLR0917
    states: list[Array], likely: list[Array], moves: list[Array], ends: Array, levels: Array, step: int
) -> Array:
    """From the outside in, given how many rows a bin holds: the moments of the rows beyond, and of what they lose.

    Clamped one edge further in, each of the rows beyond loses the width of the bin more, and the bin's own rows lose
    half of it on average.
    """
    rows = np.append(0.0, levels)
    rows2 = rows**2 * (_SIDE**3 - _SIDE**-3) / (3 * (_SIDE - 1 / _SIDE))
    after = np.ones(len(rows))
    many, lost, many2, lost2, both = np.zeros((5, len(rows)))
    found = np.zeros(len(ends))
    for place in range(len(ends) - 1, -1, -1):
        held = states[place] * after
        found[place] = float(held @ lost2) / max(float(held.sum()), _LEAST)
        if place == 0:
            break
        width = float(ends[place] - ends[place - 1])
        own = (width + step) / 2
        next_ = np.stack(
            [
                np.ones(len(rows)),
                many + rows,
                lost + width * many + own * rows,
                many2 + 2 * rows * many + rows2,
                lost2
                + width**2 * many2
                + own**2 * rows2
                + 2 * (width * both + own * rows * lost + width * own * rows * many),
                both + width * many2 + own * rows * many + rows * lost + width * rows * many + own * rows2,
            ]
        )
        weighed = (next_ * (likely[place] * after)) @ moves[place - 1].T
        after = np.maximum(weighed[0], _LEAST)
        many, lost, many2, lost2, both = weighed[1:] / after
        after = after / after.max()
    return found
