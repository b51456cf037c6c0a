"""Exponentials and logarithms of exact rationals, with the direction of every rounding in the name.

``decimal`` rounds ``exp`` and ``ln`` correctly (to the nearest 80-digit number), so one step of ``next_plus`` or
``next_minus`` brackets the true value; the argument is itself divided out in the same direction, and both functions
increase. Results are cut to 64 significant bits, again in the named direction, so that rationals stay short.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction

from hubbub.errors import CapacityError

_TRAPS = [InvalidOperation, DivisionByZero, Overflow]
_UP = Context(prec=80, rounding=ROUND_CEILING, Emin=-2000, Emax=2000, traps=_TRAPS)
_DOWN = Context(prec=80, rounding=ROUND_FLOOR, Emin=-2000, Emax=2000, traps=_TRAPS)
_LARGEST_EXPONENT = 4000
_BITS = 64


def short_up(value: Fraction, *, bits: int = _BITS) -> Fraction:
    """The least dyadic rational with ``bits`` significant bits that is at least ``value`` (which is not negative)."""
    exponent = _quantum(value, bits)
    if exponent is None:
        return value
    numerator, denominator = _scale_by_power(value, exponent)
    return _dyadic(-(-numerator // denominator), exponent)


def short_down(value: Fraction, *, bits: int = _BITS) -> Fraction:
    """The greatest dyadic rational with ``bits`` significant bits that is at most ``value`` (which is not negative)."""
    exponent = _quantum(value, bits)
    if exponent is None:
        return value
    numerator, denominator = _scale_by_power(value, exponent)
    return _dyadic(numerator // denominator, exponent)


def exp_up(x: Fraction, *, bits: int = _BITS) -> Fraction:
    """At least e^x, by less than one part in 2^(bits − 1), for up to 256 bits."""
    _refuse_huge(x)
    return short_up(Fraction(_UP.next_plus(_UP.exp(_divide(x, _UP)))), bits=bits)


def exp_down(x: Fraction, *, bits: int = _BITS) -> Fraction:
    """At most e^x, by less than one part in 2^(bits − 1) (0 where e^x is below 10^-1700)."""
    _refuse_huge(x)
    if x < -_LARGEST_EXPONENT:
        return Fraction(0)
    return short_down(Fraction(_DOWN.next_minus(_DOWN.exp(_divide(x, _DOWN)))), bits=bits)


def log_up(x: Fraction) -> Fraction:
    """At least ln x, for x >= 1."""
    if x == 1:
        return Fraction(0)
    return short_up(Fraction(_UP.next_plus(_UP.ln(_divide(x, _UP)))))


def log_down(x: Fraction) -> Fraction:
    """At most ln x, for x >= 1."""
    if x == 1:
        return Fraction(0)
    return short_down(max(Fraction(0), Fraction(_DOWN.next_minus(_DOWN.ln(_divide(x, _DOWN))))))


def sqrt_up(x: Fraction) -> Fraction:
    """At least √x, by less than one part in 2^63; exact for squares of rationals."""
    root = _root(x)
    return short_up(Fraction(_UP.next_plus(_UP.sqrt(_divide(x, _UP))))) if root is None else root


def sqrt_down(x: Fraction) -> Fraction:
    """At most √x, by less than one part in 2^63; exact for squares of rationals."""
    root = _root(x)
    return short_down(Fraction(_DOWN.next_minus(_DOWN.sqrt(_divide(x, _DOWN))))) if root is None else root


def float_up(x: Fraction) -> float:
    """The least float at least ``x``."""
    try:
        near = float(x)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= x else math.nextafter(near, math.inf)


def float_down(x: Fraction) -> float:
    """The greatest float at most ``x``."""
    return -float_up(-x)


def _divide(x: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


def _refuse_huge(x: Fraction) -> None:
    if x > _LARGEST_EXPONENT:
        raise CapacityError(f"e^x is only computed for x up to {_LARGEST_EXPONENT}.", x=x)


def _root(x: Fraction) -> Fraction | None:
    root = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
    return root if root * root == x else None


def _quantum(value: Fraction, bits: int) -> int | None:
    """The power of two that ``value`` is rounded to a multiple of; None where it is short already."""
    numerator, denominator = value.numerator, value.denominator
    if numerator == 0 or (numerator.bit_length() <= bits and denominator & (denominator - 1) == 0):
        return None
    return numerator.bit_length() - denominator.bit_length() - bits + 1


def _scale_by_power(value: Fraction, exponent: int) -> tuple[int, int]:
    """Numerator and denominator of value / 2^exponent."""
    shift = -exponent
    return (
        (value.numerator << shift, value.denominator) if shift >= 0 else (value.numerator, value.denominator << -shift)
    )


def _dyadic(multiple: int, exponent: int) -> Fraction:
    return Fraction(multiple << exponent) if exponent >= 0 else Fraction(multiple, 1 << -exponent)
