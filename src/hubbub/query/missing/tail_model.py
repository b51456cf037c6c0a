"""Rows behind noise, bin after bin: what is thought to lie beyond each edge, given noisy counts.

From the fullest bin on, how many rows a bin holds is thought of as a chain:

- the law may end here, the likelier the further the next edge is away, and then nothing is beyond;
- or it goes on, and falls the faster the lower it is, as bells, exponential and log-normal laws all do: how fast is one
  of a few rates, weighed by how well each explains all counts;
- or, rarely, it jumps to any number: values that were cut off somewhere, and are all there;
- where it has ended, a heap may lie further out, the more rarely the further.

The noisy counts weigh these against each other, forward and backward; given them, the mean square of what is lost at
every edge is exact for the chain (five moments, from the outside in). Edges may rise or fall: what is beyond is further
from zero, or nearer to it. Nothing here is about privacy: it is post-processing of released numbers.

Ref: Rabiner 1989 for chains behind noise.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from hubbub.mechanisms.base import Array

FALSE = 1e-4
"""How likely it is at most that a heap which is taken for rows is noise."""
_HEAP, _FAR = 0.002, 4.0
"""That a heap lies beyond the end, for each doubling; and how many halvings of that there are for each of them."""
_LEVELS = 2.0 ** np.arange(-2, 41, 0.5)
_SIDE = 2.0**0.25
_LEAST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The assumed tail of distributions of one sort: set by hand, on generated distributions and public tables."""

    ends: tuple[float, ...]
    """That it ends, for each doubling of the edge: one of these, weighed as rates are."""
    rates: tuple[float, ...]
    """How many halvings there are for each doubling, at the first of them."""
    bends: float
    """The power of the halvings so far with which that grows: 0 for powers of the edge, 1/2 for bells."""
    spread: float
    """By how many halvings that may be off, over one doubling."""
    jump: float
    """That it jumps, for each doubling."""
    weight: float
    """How many times as bad as noise a loss of the same size is: more than once where tails may be unlike all these."""


VALUES = Tail(ends=(0.8, 0.05), rates=(1.0, 3.0), bends=0.5, spread=0.2, jump=1e-4, weight=1.0)
"""What is measured of people goes far: a census keeps its largest incomes in a heap, behind a gap."""
LIMITS = Tail(ends=(0.65,), rates=(0.8, 1.5, 3.0), bends=0.5, spread=0.4, jump=0.003, weight=1.0)
"""Rows and groups of one unit: mostly few, and where the first bin is full, often all."""
INWARD = Tail(ends=(0.1,), rates=(1.0, 2.0, 6.0), bends=0.0, spread=0.6, jump=0.01, weight=4.0)
"""Towards zero: a law that goes on to it falls with the width of the bins."""


def loss_beyond(counts: Array, edges: Array, *, noise: float, step: int, tail: Tail) -> Array:
    """For each edge the mean square of what lies beyond it, times its weight.

    Bin i is between edge i - 1 and edge i, in whole numbers if ``step`` is not 0: 1 where edges belong to the bins
    within, -1 where to those beyond. The first bin is the fullest.
    """
    found = [_loss(counts, edges, noise, step, tail, law) for law in product(tail.ends, tail.rates)]
    best = max(evidence for evidence, _ in found)
    weights = [math.exp(evidence - best) for evidence, _ in found]
    lost = sum(weight * squares for weight, (_, squares) in zip(weights, found, strict=True)) / sum(weights)
    return np.asarray(tail.weight * lost)


def rows_squared(count: float, *, often: float, most: float, noise: float) -> float:
    """The mean square of the rows in a bin of its own, that has rows so often."""
    levels = _LEVELS[: max(8, int(np.searchsorted(_LEVELS, 2 * max(2.0, most))))]
    held = _likely(count, levels, noise) * np.append(1 - often, often * _heaps(levels, 2 * most)[1:])
    return float(held[1:] @ levels**2 / held.sum())


def _likely(count: float, levels: Array, epsilon: float) -> Array:
    """Return how likely a noisy count is with no rows, or with as many as each level stands for; the likeliest is 1."""
    low, high = levels / _SIDE, levels * _SIDE
    near = np.clip(count, low, high)
    inside = 2 - np.exp(-epsilon * (near - low)) - np.exp(-epsilon * (high - near))
    outside = -np.expm1(-epsilon * (high - low))
    mean = np.where(near == count, np.maximum(inside, _LEAST), outside) / (epsilon * (high - low))
    logs = np.append(-epsilon * abs(count), np.log(np.maximum(mean, _LEAST)) - epsilon * np.abs(count - near))
    return np.asarray(np.exp(logs - logs.max()))


def _moves(levels: Array, most: float, doublings: float, far: float, tail: Tail, law: tuple[float, float]) -> Array:  # noqa: PLR0917
    """From none and each level in one bin to none and each level in the next."""
    moves = np.array(_goes(len(levels), most, round(doublings, 9), tail, law))
    heap = _HEAP * min(1.0, doublings) * 2.0 ** (-_FAR * far)
    moves[0] = heap * _heaps(levels, most)
    moves[0, 0] = 1 - heap
    return moves


def _heaps(levels: Array, most: float) -> Array:
    """A heap is of any level that is not above the fullest bin's."""
    possible = np.append(False, (levels >= 1) & (levels <= most))
    return possible / float(np.count_nonzero(possible))


@lru_cache(maxsize=256)
def _goes(many: int, most: float, doublings: float, tail: Tail, law: tuple[float, float]) -> Array:
    """The same where the law has not ended yet: it ends the sooner the fewer rows there are."""
    levels, (ends, rate) = _LEVELS[:many], law
    halvings = np.log2(levels)
    falls = rate * np.maximum(0.0, math.log2(most) - halvings) ** tail.bends * doublings
    near = np.exp(-np.abs(halvings - (halvings - falls)[:, None]) / (tail.spread * math.sqrt(doublings)))
    jumps = 1 - (1 - tail.jump) ** doublings
    goes = (1 - jumps) * near / near.sum(axis=1, keepdims=True) + jumps * _heaps(levels, most)[1:]
    on = (1 - ends) ** doublings * -np.expm1(-levels)
    moves = np.zeros((many + 1, many + 1))
    moves[1:, 0], moves[1:, 1:] = 1 - on, goes * on[:, None]
    return moves


def _doublings(ends: Array) -> Array:
    """From edge to edge; one to zero."""
    low, high = np.minimum(ends[1:], ends[:-1]), np.maximum(ends[1:], ends[:-1])
    return np.log2(np.where(low > 0, high, 2.0) / np.where(low > 0, low, 1.0))


def _far(counts: Array, ends: Array, epsilon: float) -> list[float]:
    """Count the doublings from each bin back to the last one before it that is plainly not empty."""
    reached, found = float(ends[0]), []
    for count, end in zip(counts, ends, strict=True):
        away = _doublings(np.array([reached, end]))[0]
        found.append(away)
        if count * epsilon > -math.log(FALSE) + 2 * math.log(2) * away:
            reached = float(end)
    return found


def _loss(  # noqa: PLR0917
    counts: Array, ends: Array, epsilon: float, step: int, tail: Tail, law: tuple[float, float]
) -> tuple[float, Array]:
    """The logarithm of how well a rate explains the counts, and for each edge the mean square of what is beyond it."""
    most = 2.0 ** (math.ceil(2 * math.log2(max(2.0, float(counts.max())))) / 2)
    levels = _LEVELS[: max(8, int(np.searchsorted(_LEVELS, 2 * most)))]
    likely = [_likely(float(count), levels, epsilon) for count in counts]
    far, doublings = _far(counts, ends, epsilon), _doublings(ends)
    moves = [_moves(levels, most, float(one), away, tail, law) for one, away in zip(doublings, far[1:], strict=True)]
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
        width = abs(float(ends[place] - ends[place - 1]))
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
