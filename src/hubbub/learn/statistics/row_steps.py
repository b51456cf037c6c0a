"""Rows as whole steps of a grid: cleaned, clipped and cut towards zero, so that the integers themselves keep the bound.

Nothing here fails because of a value: what is no finite number becomes a declared constant, before any arithmetic.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.learn.statistics.cells import Array

BITS = 20
"""A value of 1 is 2^20 steps: rounding adds less than a millionth of it, and 2^42 rows fit into 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The bounds on the whole numbers of each row, and their grid."""

    grid: Fraction
    l1: int
    l2_squared: int
    linf: int
    l0: int | None = None


def fill_missing(values: Array, *, missing: Array | float = 0.0) -> Array:
    """Return a copy in floats, with a constant (one for all, or one a column) where there is no finite number."""
    floats = np.array(values, dtype=np.float64)
    return np.where(np.isfinite(floats), floats, missing)


def scale_columns(values: Array, low: Array, high: Array) -> Array:
    """Move each column's [low, high] to [−1, 1] and clip; one without width becomes 0; what is missing, its middle."""
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    half = (high - low) / 2
    middle = low + half
    moved = fill_missing(values, missing=middle) - middle
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.where(half > 0, moved / half, 0.0)
    return np.asarray(np.clip(np.nan_to_num(unit, nan=0.0), -1.0, 1.0))


def in_ball(values: Array, *, bits: int = BITS) -> Array:
    """Return rows of L2 norm at most 1 in whole steps: longer ones are shortened, and the integers keep the bound."""
    most = 1 << bits
    floats = np.clip(fill_missing(values), -1e150, 1e150)
    norms = np.linalg.norm(floats, axis=1, keepdims=True)
    parts: Array = np.trunc(floats / np.maximum(norms, 1.0) * most).astype(np.int64)
    beyond = (parts * parts).sum(axis=1) > most * most
    # Rounding of the division can leave a row one step too long: one step less in every coordinate is enough.
    parts[beyond] -= np.sign(parts[beyond])
    return parts


def ball_steps(width: int, *, bits: int = BITS) -> Steps:
    """Return what bounds rows of L2 norm at most 1."""
    most, root = 1 << bits, int(np.ceil(np.sqrt(width)))
    return Steps(grid=Fraction(1, most), l1=root * most, l2_squared=most * most, linf=most)
