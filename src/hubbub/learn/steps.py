"""Rows as whole steps of a grid: cleaned, clipped and cut towards zero, so that the integers themselves keep the bound.

Nothing here fails because of a value: what is no finite number becomes a declared constant, before any arithmetic.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hubbub.learn.cells import Array

BITS = 20
"""A value of 1 is 2^20 steps: rounding adds less than a millionth of it, and 2^42 rows fit into 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Whole numbers with their grid and what bounds each row."""

    parts: Array
    grid: Fraction
    l1: int
    l2_squared: int
    linf: int
    l0: int | None = None


def cleaned(values: Array, *, missing: Array | float = 0.0) -> Array:
    """A copy in floats, with a constant (one for all, or one a column) where there is no finite number."""
    floats = np.array(values, dtype=np.float64)
    return np.where(np.isfinite(floats), floats, missing)


def scaled(values: Array, low: Array, high: Array) -> Array:
    """Each column's [low, high] to [−1, 1], clipped; a column without width becomes 0; what is missing, its middle."""
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    half = (high - low) / 2
    middle = low + half
    moved = cleaned(values, missing=middle) - middle
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.where(half > 0, moved / half, 0.0)
    return np.asarray(np.clip(np.nan_to_num(unit, nan=0.0), -1.0, 1.0))


def in_box(values: Array, *, bits: int = BITS) -> Steps:
    """Coordinates within [−1, 1], each by itself."""
    most = 1 << bits
    parts = np.trunc(np.clip(cleaned(values), -1.0, 1.0) * most).astype(np.int64)
    width = parts.shape[1]
    return Steps(parts=parts, grid=Fraction(1, most), l1=width * most, l2_squared=width * most * most, linf=most)


def in_ball(values: Array, *, bits: int = BITS) -> Steps:
    """Rows of L2 norm at most 1: longer ones are shortened, and the integers are checked to keep the bound."""
    most = 1 << bits
    floats = np.clip(cleaned(values), -1e150, 1e150)
    norms = np.linalg.norm(floats, axis=1, keepdims=True)
    parts = np.trunc(floats / np.maximum(norms, 1.0) * most).astype(np.int64)
    beyond = (parts * parts).sum(axis=1) > most * most
    # Rounding of the division can leave a row one step too long: one step less in every coordinate is enough.
    parts[beyond] -= np.sign(parts[beyond])
    return replace(ball_steps(parts.shape[1], bits=bits), parts=parts)


def ball_steps(width: int, *, bits: int = BITS) -> Steps:
    """What bounds rows of L2 norm at most 1, before there are any."""
    most, root = 1 << bits, int(np.ceil(np.sqrt(width)))
    return Steps(
        parts=np.empty((0, width), dtype=np.int64), grid=Fraction(1, most), l1=root * most, l2_squared=most * most,
        linf=most,
    )  # fmt: skip
