"""Real numbers known to any precision, logarithms among them: the ground under every comparison.

A number is known through ``bounds(bits)``: two integers with ``low <= value * 2**bits <= high``. Integer arithmetic
alone is used, and each operation rounds outward, so the bounds are proofs and not estimates. A uniform real, of which
more and more bits are drawn, is compared with such a number until the two cannot be confused: the result is exact
although neither is ever known completely.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from hubbub.noise.entropy import Source
from hubbub.noise.entropy import bits as fresh_bits

WORD = 64
MORE_BITS = 64


@dataclass(frozen=True, slots=True)
class Exact:
    """A non-negative real number: ``bounds(bits)`` brackets it between two integers over 2^bits."""

    bounds: Callable[[int], tuple[int, int]]

    def __mul__(self, other: "Exact") -> "Exact":
        def bounds(bits: int) -> tuple[int, int]:
            wide = bits + 8
            (a, b), (c, d) = self.bounds(wide), other.bounds(wide)
            return a * c >> 2 * wide - bits, -(-b * d >> 2 * wide - bits)

        return Exact(bounds)

    def __add__(self, other: "Exact") -> "Exact":
        def bounds(bits: int) -> tuple[int, int]:
            (a, b), (c, d) = self.bounds(bits), other.bounds(bits)
            return a + c, b + d

        return Exact(bounds)

    def __truediv__(self, other: "Exact") -> "Exact":
        def bounds(bits: int) -> tuple[int, int]:
            wide = bits + 8
            (a, b), (c, d) = self.bounds(wide), other.bounds(wide)
            while c == 0:
                wide *= 2
                (a, b), (c, d) = self.bounds(wide), other.bounds(wide)
            return (a << bits) // d, -(-(b << bits) // c)

        return Exact(bounds)

    def complement(self) -> "Exact":
        """One minus this number, which must be at most one."""

        def bounds(bits: int) -> tuple[int, int]:
            low, high = self.bounds(bits)
            one = 1 << bits
            return max(0, one - high), one - low

        return Exact(bounds)


def exactly(value: Fraction | int) -> Exact:
    """A non-negative rational."""
    value = Fraction(value)

    def bounds(bits: int) -> tuple[int, int]:
        scaled, rest = divmod(value.numerator << bits, value.denominator)
        return scaled, scaled + (rest != 0)

    return Exact(bounds)


def exp_minus(exponent: Fraction) -> Exact:
    """exp(-exponent) for a rational exponent at or above zero."""
    return Exact(lambda bits: exp_minus_bounds(exponent, bits))


@lru_cache(maxsize=4096)
def exp_minus_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low <= exp(-exponent) * 2^bits <= high, for a rational exponent at or above zero.

    The exponent is halved until it is under 2^-8, the alternating Taylor series is summed there (its partial sums
    bracket the value), and the result is squared back. Every step rounds outward in fixed point with guard bits enough
    to keep high - low <= 1 almost always; the bounds hold in any case.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent > bits + 1:  # exp(-x) < 2^-x
        return 0, 1
    halvings = max(0, exponent.numerator.bit_length() - exponent.denominator.bit_length() + 1) + 8
    wide = bits + 2 * halvings + 16
    scaled = (exponent.numerator << wide) // (exponent.denominator << halvings)
    low = _taylor_exp_minus(scaled + 1, wide)[0]
    high = _taylor_exp_minus(scaled, wide)[1]
    for _ in range(halvings):
        low = low * low >> wide
        high = -(-high * high >> wide)
    return low >> wide - bits, -(-high >> wide - bits)


def _taylor_exp_minus(scaled: int, wide: int) -> tuple[int, int]:
    """Bounds on exp(-scaled / 2^wide) * 2^wide for 0 <= scaled < 2^(wide - 6)."""
    total = term = 1 << wide
    index = 1
    while term:
        term = term * scaled // (index << wide)
        total += -term if index & 1 else term
        index += 1
    return total - 2 * index, total + 2 * index  # each of the fewer than `index` terms is off by less than two units


@dataclass(slots=True)
class Uniform:
    """A uniform real in [0, 1) whose binary digits are drawn as they are needed."""

    source: Source
    value: int
    bits: int

    def extend(self, count: int = MORE_BITS) -> None:
        self.value = self.value << count | fresh_bits(self.source, count)
        self.bits += count

    def below(self, number: Exact) -> bool:
        """Decide if this real is less than ``number``, as soon as the known digits of both cannot be confused.

        Each round of 64 more digits stays undecided with probability about 2^-64 times the width of the bounds, so this
        ends, and what it returns has exactly the probability ``number``.
        """
        while True:
            low, high = number.bounds(self.bits)
            if self.value + 1 <= low:
                return True
            if self.value >= high:
                return False
            self.extend()


def fresh_uniform(source: Source) -> Uniform:
    """A uniform real with its first 64 digits drawn."""
    return Uniform(source, source.word(), WORD)


def log2_floor(value: Fraction) -> int:
    """The largest integer e with 2^e <= value, for a positive rational."""
    estimate = value.numerator.bit_length() - value.denominator.bit_length()
    return estimate if Fraction(2) ** estimate <= value else estimate - 1


SMALL_FACTORIAL = 1024
_GUARD = 24


@lru_cache(maxsize=1 << 14)
def log_bounds(number: int, bits: int) -> tuple[int, int]:
    """Integers with low <= ln(number) * 2^bits <= high, for a whole number at or above one.

    ln(y · 2^k) = k ln 2 + 2 artanh((y - 1) / (y + 1)) with y in [3/4, 3/2); the series is cut where its terms vanish.
    """
    wide = bits + _GUARD + number.bit_length().bit_length()
    exponent = number.bit_length()
    if 4 * number < 3 << exponent:
        exponent -= 1
    numerator, denominator = number - (1 << exponent), number + (1 << exponent)
    low, high = _artanh_bounds(abs(numerator), denominator, wide)
    if numerator < 0:
        low, high = -high, -low
    two_low, two_high = _log_two(wide)
    low, high = exponent * two_low + 2 * low, exponent * two_high + 2 * high
    return low >> wide - bits, -(-high >> wide - bits)


@lru_cache(maxsize=64)
def _log_two(wide: int) -> tuple[int, int]:
    low, high = _artanh_bounds(1, 3, wide)
    return 2 * low, 2 * high


def _artanh_bounds(numerator: int, denominator: int, wide: int) -> tuple[int, int]:
    """artanh(t) = t + t³/3 + t⁵/5 + … for 0 <= t <= 1/3, each term rounded down; what is cut off is under one unit."""
    power = (numerator << wide) // denominator
    square = power * power >> wide
    total, index, terms = 0, 1, 0
    while power:
        total += power // index
        power = power * square >> wide
        index += 2
        terms += 1
    return total, total + 4 * terms + 4


@lru_cache(maxsize=1 << 14)
def log_factorial_bounds(number: int, bits: int) -> tuple[int, int]:
    """Integers with low <= ln(number!) * 2^bits <= high.

    Small factorials are formed; for large ones Stirling's series is summed in rationals. Its terms alternate and its
    partial sums bracket the value, so the first term left out bounds the error (Ref: Robbins 1955 for the bracket).
    """
    if number < SMALL_FACTORIAL:
        return log_bounds(math.factorial(number), bits)
    wide = bits + _GUARD + number.bit_length()
    log_low, log_high = log_bounds(number, wide)
    root_low, root_high = _log_root_two_pi(wide)
    low = (2 * number + 1) * log_low // 2 - (number << wide) + root_low
    high = -(-(2 * number + 1) * log_high // 2) - (number << wide) + root_high
    correction, index = 0, 1
    while True:
        term = _bernoulli(2 * index) / (2 * index * (2 * index - 1) * number ** (2 * index - 1))
        scaled = (term.numerator << wide) // term.denominator
        if abs(scaled) <= 1:
            break
        correction += scaled
        index += 1
    low += correction - index - 1
    high += correction + index + 1
    return low >> wide - bits, -(-high >> wide - bits)


@lru_cache(maxsize=64)
def _log_root_two_pi(wide: int) -> tuple[int, int]:
    """ln(sqrt(2π)), from Machin's 4 artan(1/5) - artan(1/239) for π/4."""
    inner = wide + 16
    five_low, five_high = _artan_bounds(5, inner)
    far_low, far_high = _artan_bounds(239, inner)
    pi_low, pi_high = 4 * (4 * five_low - far_high), 4 * (4 * five_high - far_low)
    low = log_bounds(pi_low, inner)[0] + log_bounds(2, inner)[0] - inner * _log_two(inner)[1]
    high = log_bounds(pi_high, inner)[1] + log_bounds(2, inner)[1] - inner * _log_two(inner)[0]
    return low // 2 >> 16, -(-high // 2 >> 16)


def _artan_bounds(inverse: int, wide: int) -> tuple[int, int]:
    """artan(1/inverse) by its alternating series."""
    power = (1 << wide) // inverse
    total, index = 0, 0
    while power:
        total += power // (2 * index + 1) * (-1 if index & 1 else 1)
        power //= inverse * inverse
        index += 1
    return total - 2 * index - 2, total + 2 * index + 2


@lru_cache(maxsize=256)
def _bernoulli(index: int) -> Fraction:
    """The Bernoulli number B_index for an even index (or 0, 1)."""
    total = Fraction(0)
    for k in range(index):
        if k < 2 or k % 2 == 0:
            total += math.comb(index + 1, k) * _bernoulli(k)
    return Fraction(1) if index == 0 else -total / (index + 1)
