"""Kinds of values, known before any value is read, and the grids to which numbers are rounded before they are added up.

Every expression is total because of two rules that hold at every node. A REAL is finite: what would be NaN or infinite
is missing instead. An INTEGER stays within its stated range, which is computed from its parts, and an expression whose
range does not fit 128 bits is refused. So nothing that one person's row holds can raise an error in the engine.

For reals a step is a power of two, and every multiple of it within the bounds is a DOUBLE. Then subtracting a multiple
and dividing by the step round at most once, in the engine as in any other reader of the same value.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from hubbub.errors import ParameterError


class Type(StrEnum):
    """Six types are all there is."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"


INT64 = (-(1 << 63), (1 << 63) - 1)
INT128 = (-(1 << 127) + 1, (1 << 127) - 1)
"""DuckDB's HUGEINT, without its lowest value, whose negation would not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The type of an expression, and the facts known about its values. ``low`` and ``high`` are for integers alone."""

    type: Type
    nullable: bool = True
    low: int | None = None
    high: int | None = None

    def __post_init__(self) -> None:
        if (self.low is None) is not (self.type is not Type.INTEGER) or (self.low is None) is not (self.high is None):
            raise ParameterError("range", "given for integers, and for nothing else", self)
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ParameterError("range", "in order, the least value first", (self.low, self.high))

    @property
    def range(self) -> tuple[int, int]:
        """The least and greatest value of an integer."""
        if self.low is None or self.high is None:
            raise ParameterError("kind", "an integer", self.type)
        return self.low, self.high

    @property
    def wide(self) -> bool:
        """True if an integer needs 128 bits."""
        low, high = self.range
        return low < INT64[0] or high > INT64[1]

    def __str__(self) -> str:
        return self.type.value


def integer(low: int, high: int, *, nullable: bool = True) -> Kind:
    """An integer within a range."""
    return Kind(type=Type.INTEGER, nullable=nullable, low=low, high=high)


def of(type_: Type, *, nullable: bool = True) -> Kind:
    """A type; an integer of 64 bits."""
    if type_ is Type.INTEGER:
        return integer(*INT64, nullable=nullable)
    return Kind(type=type_, nullable=nullable)


STEPS = 1 << 20
"""How many steps a grid that nobody declared has at least."""
EXACT = 1 << 53
"""Whole numbers up to here are DOUBLEs."""
WIDEST = 1000
"""Bounds of reals lie within 2^WIDEST, and are at least 2^-WIDEST apart: nothing over- or underflows between them."""


@lru_cache(maxsize=4096)
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
