"""Where values end, seen through noise: the bound that costs a sum the least, read off a noisy histogram.

A sum that is clamped at u has noise that grows with u, and loses what lies beyond it: the least of both together is
where about √2/ε rows are beyond. The histogram has log-spaced bins, and noise in each that hides that many rows. So
what is beyond is estimated from the inside out, bin after bin, by what the next bin can be expected to hold:

- the law may end here, the likelier the further the next edge is away, and then nothing is beyond;
- or it goes on, with about half as many rows in the next bin for each doubling;
- or, rarely, and the more rarely the further away, a heap of rows lies far out.

The noisy count weighs one against the other, and the mean number of rows that is left is what is held against the
noise. Nothing here is about privacy: it is post-processing of released numbers, and only decides how good a choice is.

Ref: Amin, Kulesza, Muñoz, Vassilvitskii 2019 for the trade; Wilson et al. 2020 for bounds from noisy log-spaced counts.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.base import Array

_FALSE = 1e-4
"""How likely it is at most that the heap from which one goes outward is noise."""
_GOES_ON = 0.2
"""That a law goes on, for each doubling of the edge."""
_DECAY = 0.5
"""By how much the rows of a bin are fewer than those of the one before, for each doubling."""
_HEAP = 1e-5
"""That a heap lies far out, halved for each doubling; of so many rows:"""
_HEAPED = 1000.0
_INSIDE = 0.85
"""Where in a bin its rows are thought to be, as a share of its edge."""
_SURE = 0.9
"""From where on a bin is taken to hold rows, and what is far is counted from it."""
_COUNTS = 2.0 ** np.arange(-2, 41, 0.5)
_WIDTHS = np.gradient(_COUNTS)


def outermost(noisy: Sequence[int], edges: Sequence[Fraction], *, noise: Fraction, rest: Fraction) -> int | None:
    """The place of the edge to clamp at; None where no rows can be told from noise.

    Bin i holds what is above edge i - 1 and not above edge i. ``noise`` is the ε of the counts, ``rest`` that of what
    will be added up.
    """
    counts, ends = np.asarray(noisy, dtype=float), np.array([float(edge) for edge in edges])
    start = int(np.argmax(counts))
    if counts[start] < math.log(len(counts) / _FALSE) / float(noise):
        return None
    ends = ends[start:]
    left = _estimated(counts[start:], ends, float(noise))
    beyond = _after(left * _INSIDE * ends) - _after(left) * ends
    return start + int(np.argmin(math.sqrt(2) / float(rest) * ends + beyond))


def _after(values: Array) -> Array:
    """The sum of all that come after each."""
    return np.append(np.cumsum(values[::-1])[::-1][1:], 0.0)


def _estimated(counts: Array, ends: Array, epsilon: float) -> Array:
    """How many rows each bin holds, expected from the one before it and from its noisy count."""
    held, going, far = max(float(counts[0]), 1.0), 1.0, 0.0
    found = [held]
    for place in range(1, len(counts)):
        doublings = math.log2(ends[place] / ends[place - 1])
        far += doublings
        expected = max(held * _DECAY**doublings, 0.5)
        goes_on, heap = going * _GOES_ON**doublings, _HEAP * 0.5**far
        going, held = _posterior(float(counts[place]), expected, goes_on, heap, epsilon)
        found.append(going * held)
        if going > _SURE:
            far = 0.0
    return np.array(found)


def _posterior(count: float, expected: float, goes_on: float, heap: float, epsilon: float) -> tuple[float, float]:
    """Whether there are rows, and how many if there are any, by what was expected and what was seen."""
    before = goes_on * np.exp(-_COUNTS / expected) / expected + heap * np.exp(-_COUNTS / _HEAPED) / _HEAPED
    logs, none = -epsilon * np.abs(count - _COUNTS), -epsilon * abs(count)
    most = max(none, float(logs.max()))
    weights = before * _WIDTHS * np.exp(logs - most)
    some, nothing = float(weights.sum()), max(0.0, 1 - goes_on - heap) * math.exp(none - most)
    going = some / (some + nothing) if some + nothing > 0 else 0.0
    return going, float((weights * _COUNTS).sum()) / some if some > 0 else expected
