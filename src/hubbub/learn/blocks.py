"""Sums over rows, a block at a time: nothing as large as the table is ever copied, and every sum is exact.

Rows come from a function of a slice, so that cleaning, scaling and products are made where they are used. Floats that
are whole numbers are added exactly as long as no partial sum leaves 53 bits; blocks are small enough for that, and are
added up in 64-bit integers.

Privacy:
    Claim: a total over rows of [−1, 1]^width moves by at most ``most``·2^bits in every coordinate when a unit comes or
        goes, in L1 by ``most``·width·2^bits, and in L2 by its root times width.
    Proof: each row is clipped, multiplied by its weight in [0, 1] and cut towards zero, so that it is a vector of whole
        numbers within ± weight·2^bits; a unit's weights sum to at most ``most`` (``Crowd.weights``).
    Needs: rows that depend on themselves and on earlier releases alone.
    Ref: SOUNDNESS 29.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from hubbub.learn.asked import Asked, Formula, unit_formula
from hubbub.learn.cells import Array
from hubbub.learn.crowd import Crowd
from hubbub.learn.steps import BITS, Steps
from hubbub.learn.tuition import Tuition, reached

BLOCK = 1 << 12
"""Rows at a time: 2^12 rows of 20 columns stay in a processor's cache, and 2^12·2^40 < 2^53."""
STRIP = 1 << 8
"""Rows that constants of columns are written out for: longer runs of one operation are faster than one row's."""
NONE = np.empty(0, dtype=np.int64)

Rows = Callable[[slice], Array] | Formula
"""The rows of a slice, as finite floats in two dimensions; or a formula for them, where they stay in an engine."""


def parts_of(rows: int, *, size: int = BLOCK) -> Iterator[slice]:
    """Slices that cover all rows."""
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def row_products(x: Array, coefficients: Array) -> Array:
    """x·c of each row by itself: one column after the other, so that every row goes through the same roundings.

    A product of matrices may round a row in another way when other rows stand beside it; decided by its last bit, a row
    would then move when somebody else comes or goes.
    """
    total = np.zeros(len(x))
    for column, coefficient in zip(x.T, coefficients.tolist(), strict=True):
        total += column * coefficient
    return total


def unit_rows(
    tables: Sequence[Array | Asked], low: Array, high: Array, *, slope: Array | float = 1.0, shift: Array | float = 0.0,
    leading: float | None = None,
) -> Rows:  # fmt: skip
    """Rows of tables side by side, each column's [low, high] to [−1, 1], clipped; then times ``slope`` plus ``shift``.

    What is no finite number is the middle of its column's bounds. ``leading`` is a constant column before all others.
    The same as ``steps.scaled``, in place and in one block's memory.
    """
    away = [table for table in tables if isinstance(table, Asked)]
    if away:
        return unit_formula(away, low, high, slope=slope, shift=shift, leading=leading)
    arrays = [table for table in tables if not isinstance(table, Asked)]
    first = 0 if leading is None else 1
    half, width = np.append(np.zeros(first), (high - low) / 2), first + len(low)
    with np.errstate(divide="ignore"):
        inverse = np.where(half > 0, 1.0 / half, 0.0)
    middle = np.append(np.zeros(first), low) + half
    slopes, shifts = np.empty(width), np.empty(width)
    slopes[first:], shifts[first:] = slope, shift
    slopes[:first], shifts[:first] = 0.0, 0.0 if leading is None else leading
    moved = bool(np.any(slopes != 1.0) or np.any(shifts != 0.0))
    middle, inverse, slopes, shifts = (np.tile(one, STRIP) for one in (middle, inverse, slopes, shifts))
    ends = np.cumsum([first, *(table.shape[1] for table in tables)])

    def rows(part: slice) -> Array:
        count = part.stop - part.start
        strips = np.empty((-(-count // STRIP), STRIP * width))
        block = strips.reshape(-1, width)
        for table, start, stop in zip(arrays, ends, ends[1:], strict=False):
            block[:count, start:stop] = table[part]
        block[:count, :first] = 0.0
        block[count:] = 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            strips -= middle
            if not np.isfinite(strips.sum()):
                strips[~np.isfinite(strips)] = 0.0
            strips *= inverse
        np.clip(strips, -1.0, 1.0, out=strips)
        if moved:
            strips *= slopes
            strips += shifts
        return block[:count]

    return rows


def box_total(rows: Rows, *, width: int, crowd: Crowd, bits: int = BITS) -> Array:
    """Σ of rows within [−1, 1]^width, each counting for its weight, in steps of 2^-bits."""
    if isinstance(rows, Formula):
        return rows.box_total(bits=bits)
    total = np.zeros(width, dtype=np.int64)
    weights = None if crowd.units is None else crowd.weights
    for part in parts_of(crowd.rows):
        block = rows(part)
        np.clip(block, -1.0, 1.0, out=block)
        if weights is not None:
            block *= weights[part, None]
        block *= 1 << bits
        np.trunc(block, out=block)
        total += (np.ones(len(block)) @ block).astype(np.int64)
    return total


def shortened(block: Array, *, bits: int, weights: Array | None) -> Array:
    """Rows in place as whole numbers in floats, of squared length at most weight·2^2bits."""
    most = float(1 << bits)
    length = np.sqrt(np.einsum("ij,ij->i", block, block))
    scale = most / np.maximum(length, 1.0)
    if weights is not None:
        scale *= np.sqrt(weights)
    block *= scale[:, None]
    np.trunc(block, out=block)
    # Rounding of roots and quotients can leave a row that was shortened one step too long: one less is enough.
    most_squared = most * most if weights is None else most * most * weights
    beyond = np.flatnonzero(np.einsum("ij,ij->i", block, block) > most_squared)
    if len(beyond):
        block[beyond] -= np.sign(block[beyond])
    return block


def box_sums(
    rows: Rows, *, width: int, crowd: Crowd, tuition: Tuition, share: Fraction, label: str, moved: int | None = None
) -> tuple[Array, float]:
    """Noisy sums of rows within [−1, 1]^width, and the standard deviation of each sum's noise.

    ``moved``: a row has at most so many coordinates that are not 0 (all of them where that is not said).
    """
    most, some = 1 << BITS, width if moved is None else moved
    steps = Steps(parts=NONE, grid=Fraction(1, most), l1=some * most, l2_squared=some * most * most, linf=most, l0=some)
    reach = reached(steps, crowd)
    mechanism = tuition.additive(tuition.spend(share), reach)
    noisy = tuition.measure(
        mechanism, lambda: box_total(rows, width=width, crowd=crowd), reach, grid=steps.grid, label=label
    )
    return np.asarray(noisy, dtype=np.float64), mechanism.standard_deviation / most


def ball_total(rows: Rows, *, width: int, crowd: Crowd) -> Array:
    """Σ of rows shortened to length 1, each counting for its weight, in steps of 2^-BITS."""
    if isinstance(rows, Formula):
        return rows.ball_total(bits=BITS)
    weights = None if crowd.units is None else crowd.weights
    total = np.zeros(width, dtype=np.int64)
    for part in parts_of(crowd.rows):
        whole = shortened(rows(part), bits=BITS, weights=None)
        if weights is not None:
            np.trunc(whole * weights[part, None], out=whole)
        total += (np.ones(len(whole)) @ whole).astype(np.int64)
    return total


def ball_sums(
    rows: Rows, *, width: int, radius: float, crowd: Crowd, tuition: Tuition, share: Fraction, label: str
) -> tuple[Array, float]:
    """Noisy sums of rows that come as x / radius and are shortened to length 1, and the deviation of their noise.

    Both are given back times ``radius``.

    Privacy:
        Claim: a unit moves the total by at most ``most``·2^bits in L2, and by the root of ``width`` times that in L1.
        Proof: whole numbers p with ‖p‖ <= 2^bits (``shortened`` checks them), times a weight and cut towards zero.
        Needs: ``Crowd.weights``.
        Ref: SOUNDNESS 29.
    """
    most, root = 1 << BITS, int(np.ceil(np.sqrt(width)))
    steps = Steps(parts=NONE, grid=Fraction(1, most), l1=root * most, l2_squared=most * most, linf=most)
    reach = reached(steps, crowd)
    mechanism = tuition.additive(tuition.spend(share), reach)
    noisy = tuition.measure(
        mechanism, lambda: ball_total(rows, width=width, crowd=crowd), reach, grid=steps.grid, label=label
    )
    return np.asarray(noisy, dtype=np.float64) * radius, mechanism.standard_deviation / most * radius
