"""Logarithms of integers and of factorials, bracketed to any number of bits, in integer arithmetic."""

import math
from fractions import Fraction
from functools import lru_cache

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
