"""Grids: the steps to which values are rounded before they are added up, so that sums are sums of whole numbers.

For reals a step is a power of two, and every multiple of it within the bounds is a DOUBLE. Then subtracting a multiple
and dividing by the step round at most once, in the engine as in any other reader of the same value.
"""

from fractions import Fraction

STEPS = 1 << 20
"""How many steps a grid that nobody declared has at least."""
EXACT = 1 << 53
"""Whole numbers up to here are DOUBLEs."""
WIDEST = 1000
"""Bounds of reals lie within 2^WIDEST, and are at least 2^-WIDEST apart: nothing over- or underflows between them."""


def default_grid(bounds: tuple[Fraction, Fraction]) -> Fraction:
    """The largest power of two with at least 2^20 steps over the bounds.

    Far from zero DOUBLEs lie further apart than that; there it is the least power of two whose multiples are DOUBLEs.
    """
    low, high = bounds
    return max(power(floor_log2((high - low) / STEPS)), finest(bounds))


def finest(bounds: tuple[Fraction, Fraction]) -> Fraction:
    """The least power of two whose multiples within the bounds are all DOUBLEs."""
    return power(ceil_log2(max(abs(end) for end in bounds) / EXACT))


def outward(bounds: tuple[Fraction, Fraction], grid: Fraction) -> tuple[Fraction, Fraction]:
    """The bounds, moved out to multiples of the grid: an engine that clamps there clamps nothing declared as good."""
    low, high = bounds
    return low // grid * grid, -(-high // grid) * grid


def power(exponent: int) -> Fraction:
    """2 to a whole exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def floor_log2(value: Fraction) -> int:
    """The greatest e with 2^e ≤ value."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if power(guess) <= value else guess - 1


def ceil_log2(value: Fraction) -> int:
    """The least e with 2^e ≥ value."""
    below = floor_log2(value)
    return below if power(below) == value else below + 1


def is_power_of_two(value: Fraction) -> bool:
    """Return True if the value is 2^e for a whole e."""
    return value > 0 and power(floor_log2(value)) == value


def nearest_power_of_two(value: Fraction) -> Fraction:
    """The power of two with the least ratio to a positive value; the lower one of two."""
    below = power(floor_log2(value))
    return below if value * value <= 2 * below * below else 2 * below
