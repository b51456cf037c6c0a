"""Exact integers in and out of mechanisms: rounding to a grid, and sums that never wrap."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array

_INT64_MOST = (1 << 63) - 1
_WHOLE = tuple(np.dtype(kind) for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32))
_FLOATS = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))


def as_integers(value: Any) -> int | Array:
    """A whole number or an array of them, without loss; anything else is the caller's mistake and not the data's."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    # NumPy would make floats of some lists of whole numbers, depending on their size.
    array = np.array(value, dtype=object) if isinstance(value, list | tuple) else np.asarray(value)
    if array.dtype == object and all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in array.flat):
        return np.array([int(item) for item in array.flat], dtype=object).reshape(array.shape)
    if array.dtype.kind in "iu" and array.ndim:
        return array.astype(object) if array.dtype == np.uint64 else array.astype(np.int64)
    raise ParameterError("value", "a whole number or an array of whole numbers", type(value).__name__)


def exact_sum(value: int | Array, noise: int | Array) -> int | Array:
    """value + noise without wrapping: int64 where every sum fits, Python ints otherwise.

    Which of the two is returned depends on the sums alone, so it says no more than they do.
    """
    if isinstance(value, int):
        return value + noise
    if value.dtype != object and isinstance(noise, np.ndarray) and noise.dtype != object:
        total: Array = value + noise
        overflowed = ((value ^ total) & (noise ^ total)) < 0
        if not overflowed.any():
            return total
    wide: Array = value.astype(object) + noise
    fits = all(-_INT64_MOST - 1 <= item <= _INT64_MOST for item in wide.flat)
    return wide.astype(np.int64) if fits else wide


def on_grid(value: Any, grid: Fraction) -> int | Array:
    """Reals to whole multiples of ``grid``: ⌊x / grid + 1/2⌋, exactly. NaN, infinities and what is no number become 0.

    Halves go up and never to even: then |round(a) - round(b)| <= ⌈|a - b|⌉ for all a and b, which rounding to even
    breaks (0.5 and 1.5 would become 0 and 2).
    """
    if value is None or isinstance(value, int | float | Fraction | Decimal | np.integer | np.floating):
        return _round_one(value, grid)
    array = np.asarray(value)
    if array.dtype.kind not in "iufO":
        raise ParameterError("value", "a number or an array of numbers", str(array.dtype))
    if array.dtype in _FLOATS and _float_power_of_two(grid):
        with np.errstate(over="ignore", under="ignore"):
            scaled = array.astype(np.float64) / float(grid)  # exact: the grid is a power of two
        scaled = np.where(np.isfinite(array), scaled, 0.0)
        if np.abs(scaled).max(initial=0.0) < 2.0**52:
            whole: Array = np.floor(scaled)
            return (whole + (scaled - whole >= 0.5)).astype(np.int64)
    if array.dtype in _WHOLE:
        most = max(-int(array.min(initial=0)), int(array.max(initial=1)))
        if 2 * (most * grid.denominator + grid.numerator) <= _INT64_MOST:  # then no step of _round_one can wrap
            return (array.astype(np.int64) * (2 * grid.denominator) + grid.numerator) // (2 * grid.numerator)
    out = np.empty(array.shape, dtype=object)
    for index, item in np.ndenumerate(array):
        out[index] = _round_one(item, grid)
    fits = all(-_INT64_MOST - 1 <= item <= _INT64_MOST for item in out.flat)
    return out.astype(np.int64) if fits else out


def off_grid(multiples: Any, grid: Fraction) -> Any:
    """Whole multiples of ``grid`` as numbers: ints for a whole grid, else floats (rounded after the noise: free)."""
    if grid == 1:
        return multiples
    if isinstance(multiples, int):
        return multiples * grid.numerator if grid.denominator == 1 else _nearest_float(multiples * grid)
    fits = multiples.dtype != object and grid.denominator < _INT64_MOST
    if fits and len(multiples):
        fits = max(-int(multiples.min()), int(multiples.max())) * grid.numerator <= _INT64_MOST
    if grid.denominator == 1:
        return (multiples if fits else multiples.astype(object)) * grid.numerator
    if fits:
        return multiples * grid.numerator / grid.denominator
    return np.array([_nearest_float(int(item) * grid) for item in multiples.flat]).reshape(multiples.shape)


def grown_sensitivity(sensitivity: Fraction, grid: Fraction, coordinates: int) -> int:
    """Bound the L1 distance, in grid steps, of two rounded vectors that differ by ``sensitivity`` on ``coordinates``
    coordinates.

    Each coordinate moves by ⌈dᵢ⌉ < dᵢ + 1 steps, so the sum is less than sensitivity / grid + coordinates, and whole.
    """
    return math.ceil(sensitivity / grid + coordinates) - 1


def _round_one(value: Any, grid: Fraction) -> int:
    """⌊x / grid + 1/2⌋ of x = p / q and a grid n / d is ⌊(2pd + qn) / 2qn⌋."""
    p, q = 0, 1
    if isinstance(value, int | np.integer | np.bool_):
        p = int(value)
    elif isinstance(value, Fraction):
        p, q = value.numerator, value.denominator
    elif isinstance(value, float | np.floating | Decimal):
        finite = value.is_finite() if isinstance(value, Decimal) else bool(np.isfinite(value))
        p, q = value.as_integer_ratio() if finite else (p, q)
    return (2 * p * grid.denominator + q * grid.numerator) // (2 * q * grid.numerator)


def _float_power_of_two(grid: Fraction) -> bool:
    """Return True if dividing a float by the grid only changes its exponent."""
    numerator, denominator = grid.numerator, grid.denominator
    return max(numerator, denominator) <= 1 << 900 and numerator & (numerator - 1) == 0 == denominator & (
        denominator - 1
    )


def _nearest_float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
