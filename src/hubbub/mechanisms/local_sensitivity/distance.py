"""Distance to instability: local sensitivities at every distance, for quantiles and for any other function.

A_k(x) bounds how far one more unit can move the answer once k units of x were changed. All that is used of it is that
A_0 bounds the local sensitivity and that A_k(x) <= A_{k+1}(x') for neighbours. From it follow a smooth bound, max_k
e^(-βk)·A_k, which neighbours change by at most e^β, and the distance to instability, min{k: A_k > b}, which they change
by at most 1.

Privacy:
    Claim: for the q-quantile x_(r), r = ⌈qn⌉, of sorted values in 0 … top, of which a unit adds, removes or replaces at
        most m, A_k = max (x_(l) - x_(j)) over j <= r <= l with l - j = (k+1)m is such a bound, where x_(i) is 0 for
        i < 1 and top for i > n.
    Proof: adding a value gives x_(i-1) <= x'_(i) <= x_(i) and r' in {r, r+1}, so a window j … l of x lies within the
        window j … l+1 of x', and that contains r'. Removing one gives x_(i) <= x'_(i) <= x_(i+1), r' in {r-1, r} and
        the window j-1 … l. Replacing one by a larger (smaller) one moves every x_(i) up (down) by at most one rank and
        leaves r alone: j-1 … l (or j … l+1). So m such steps widen a window by at most m. In the same way x'_(r') lies
        within m ranks of r: that is A_0.
    Needs: bounds and grid are public; each value is rounded and clamped by itself.
    Ref: Nissim, Raskhodnikova, Smith 2007, section 3.1, there for replaced values.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.base import Array
from hubbub.privacy.rounding import float_down, float_up

FLOOR = Fraction(1, 1 << 20)
"""No smooth bound is below this many steps: noise that small is almost surely 0, and e^-βk need not be followed on."""
SLACK = Fraction(1, 1 << 34)
"""What floats may do to a smooth bound, as part of β: relative errors of 2^-45 in 2·64 comparisons, and once more."""


def quantile_rank(count: int, q: Fraction) -> int:
    """⌈q·count⌉: one more value moves it by 0 or 1."""
    return -(-q.numerator * count // q.denominator)


def around(steps: Array, rank: int, top: int, reach: int) -> tuple[Array, Array]:
    """x_(r), x_(r-1), … and x_(r), x_(r+1), …: up to ``reach`` further, and no further than the first end of the range.

    ``steps`` are sorted whole steps in 0 … top.
    """
    padded = np.concatenate([[0], steps, [top]])
    down = padded[max(0, rank - reach) : rank + 1][::-1]
    up = padded[rank : rank + reach + 1]
    return down, up


def quantile_smooth_bound(steps: Array, rank: int, top: int, *, beta: Fraction, rows: int) -> Fraction:
    """A smooth bound for the order statistic ``rank``, in steps, in O(n log n): rounded up, and never below FLOOR.

    Windows of d ranks get the weight e^(-β·max(0, d/rows - 1)), which is geometric beyond ``rows`` ranks and e^-βk
    where d = (k+1)·rows.
    """
    rate = float_down(beta - SLACK) / rows
    reach = rows + math.ceil(math.log(float_up(top / FLOOR)) / rate)
    down, up = around(steps, rank, top, reach)
    ranks = np.arange(len(down) + len(up) - 1, dtype=np.float64)
    weights = np.exp(-rate * np.maximum(ranks - rows, 0))
    return _at_least(greatest_window(down, up, weights))


def greatest_window(down: Array, up: Array, weights: Array) -> float:
    """max (up[t] - down[s])·weights[s + t], for ``down`` falling, ``up`` rising and log-concave falling weights.

    The best t falls as s rises (Nissim, Raskhodnikova, Smith's observation), so the middle row's best column halves the
    work for the others: a few passes over all ranks for each of log₂ levels. Where a float mistakes the best column for
    one that is almost as good, the same inequality says that no other row loses more by it.
    """
    first, last = np.array([0]), np.array([len(down) - 1])
    low, high = np.array([0]), np.array([len(up) - 1])
    best = 0.0
    while len(first):
        middle = (first + last) // 2
        widths = high - low + 1
        starts = np.cumsum(widths) - widths
        columns = np.arange(int(widths.sum())) - np.repeat(starts - low, widths)
        rows = np.repeat(middle, widths)
        scores = (up[columns] - down[rows]).astype(np.float64) * weights[rows + columns]
        most = np.maximum.reduceat(scores, starts)
        hits = np.flatnonzero(scores == np.repeat(most, widths))
        at = columns[hits[np.searchsorted(hits, starts)]]
        best = max(best, float(most.max()))
        before, after = first < middle, middle < last
        first, last, low, high = (
            np.concatenate([first[before], middle[after] + 1]),
            np.concatenate([middle[before] - 1, last[after]]),
            np.concatenate([at[before], low[after]]),
            np.concatenate([high[before], at[after]]),
        )
    return best


def quantile_distance(steps: Array, rank: int, top: int, *, bound: int, rows: int, most: int) -> int:
    """The least k with A_k > bound, cut at ``most``: how many units have to change before one can move x_(r) so far."""
    down, up = around(steps, rank, top, (most + 1) * rows)
    beyond = np.searchsorted(up, down + bound, side="right")
    found = np.flatnonzero(beyond < len(up))
    if not len(found):
        return most
    ranks = int((found + beyond[found]).min())
    return min(max(0, -(-ranks // rows) - 1), most)


def by_unit(bounds: Sequence[Fraction], rows: int) -> list[Fraction]:
    """Local sensitivities by distance in units from those by distance in rows, for at most ``rows`` rows a unit.

    After k units at most k·rows rows are other ones, and the next unit takes up to ``rows`` more, one by one. Rows at
    the end that make no whole unit are left out.
    """
    return [sum(bounds[start : start + rows], Fraction(0)) for start in range(0, len(bounds) - rows + 1, rows)]


def smooth_bound(bounds: Sequence[int], top: int, *, beta: Fraction) -> Fraction:
    """max e^(-βk)·A_k, where beyond the bounds given one unit may do anything: rounded up, and never below FLOOR."""
    whole = np.append(np.clip(np.array(bounds, dtype=np.int64), 0, top), top)
    weights = np.exp(-float_down(beta - SLACK) * np.arange(len(whole), dtype=np.float64))
    return _at_least(float((whole * weights).max()))


def distance(bounds: Sequence[int], *, bound: int) -> int:
    """The least k with A_k > bound; all of the distances given, where none is."""
    return next((k for k, moved in enumerate(bounds) if moved > bound), len(bounds))


def _at_least(found: float) -> Fraction:
    """The exact maximum is at most this, and at least e^-SLACK of it."""
    return max(Fraction(found) * (1 + SLACK / 4), FLOOR)
