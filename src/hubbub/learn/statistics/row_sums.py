"""Noisy sums of rows within a box or a ball.

Privacy:
    Claim: a total over rows of [−1, 1]^width moves by at most ``most``·2^bits in every coordinate when a unit comes or
        goes, in L1 by ``most``·width·2^bits, and in L2 by its root times width.
    Proof: each row is clipped, multiplied by its weight in [0, 1] and cut towards zero, so that it is a vector of whole
        numbers within ± weight·2^bits, in one place; a unit's weights sum to at most ``most`` (``query.totals``).
    Needs: rows that depend on themselves and on earlier releases alone.
    Ref: SOUNDNESS 29.
"""

from fractions import Fraction

import numpy as np

from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import BITS, Steps, ball_steps
from hubbub.learn.tuition import Tuition
from hubbub.query.totals import Code, Number, SumsRequest, beside


def unit_rows(
    x: Number, low: Array, high: Array, *, slope: Array | float = 1.0, shift: Array | float = 0.0,
    leading: float | None = None,
) -> Number:  # fmt: skip
    """Move each column's [low, high] to [−1, 1] and clip it; then multiply by ``slope`` and add ``shift``.

    What is no finite number is the middle of its column's bounds. ``leading`` is a constant before all others.
    """
    half = (high - low) / 2
    middle = (low + half).tolist()
    with np.errstate(divide="ignore"):
        inverse = np.where(half > 0, 1.0 / half, 0.0).tolist()
    unit = ((x.fill_missing(middle) - middle) * inverse).clip(-1.0, 1.0)
    if np.ndim(slope) or np.ndim(shift) or slope != 1.0 or shift != 0.0:
        slopes, shifts = (np.broadcast_to(each, half.shape).tolist() for each in (slope, shift))
        unit = unit * slopes + shifts
    return unit if leading is None else beside(leading, unit)


def box_sums(
    rows: Number, data: Features, *, tuition: Tuition, share: Fraction, label: str, code: Code | None = None
) -> tuple[Array, float]:
    """Return noisy sums of rows within [−1, 1]^width, and the standard deviation of each sum's noise.

    With a ``code``, one row of sums for each of its places.
    """
    most, width = 1 << BITS, rows.width or 1
    steps = Steps(grid=Fraction(1, most), l1=width * most, l2_squared=width * most * most, linf=most, l0=width)
    whole = (data.weigh(rows.clip(-1.0, 1.0)) * float(most)).truncate()
    sums = SumsRequest(values=whole, codes=() if code is None else (code,), bits=BITS)
    noisy, mechanism = tuition.measure_sums(data, sums, steps, share=share, label=label)
    return noisy if code is None else noisy.reshape(code.size, width), mechanism.standard_deviation / most


def ball_sums(
    rows: Number, data: Features, *, radius: float, tuition: Tuition, share: Fraction, label: str
) -> tuple[Array, float]:
    """Return noisy sums of rows that come as x / radius and are shortened to length 1, and their noise's deviation.

    Both are given back times ``radius``.

    Privacy:
        Claim: a unit moves the total by at most ``most``·2^bits in L2, and by the root of ``width`` times that in L1.
        Proof: whole numbers p with ‖p‖ <= 2^bits (``Number.shorten``), times a weight and cut towards zero.
        Needs: ``query.totals``.
        Ref: SOUNDNESS 29.
    """
    whole = rows.shorten(bits=BITS)
    sums = SumsRequest(values=whole if data.single else data.weigh(whole).truncate(), bits=BITS)
    noisy, mechanism = tuition.measure_sums(data, sums, ball_steps(rows.width or 1), share=share, label=label)
    return noisy * radius, mechanism.standard_deviation / (1 << BITS) * radius
