"""Every direction is the direction in the name, and no rounding is loose."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from hubbub.errors import CapacityError
from hubbub.privacy import rounding as r
from tests.privacy.exact import real

positive = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)
exponents = st.fractions(min_value=-300, max_value=300)
TIGHT = Fraction(1, 1 << 63)


@given(positive, st.integers(2, 80))
def test_shortening_brackets_and_keeps_bits(value: Fraction, bits: int) -> None:
    low, high = r.short_down(value, bits=bits), r.short_up(value, bits=bits)
    assert low <= value <= high
    assert high - low <= value * Fraction(2, 1 << (bits - 1))
    for short in (low, high):
        assert short.denominator & (short.denominator - 1) == 0
        odd = short.numerator >> ((short.numerator & -short.numerator).bit_length() - 1)
        assert odd.bit_length() <= bits + 1
    assert r.short_up(low, bits=bits + 1) == low == r.short_down(low, bits=bits + 1)


@settings(max_examples=60)
@given(exponents, st.sampled_from([64, 240]))
def test_exp_is_bracketed(x: Fraction, bits: int) -> None:
    low, high, true = r.exp_down(x, bits=bits), r.exp_up(x, bits=bits), mp.exp(real(x))
    assert real(low) <= true * (1 + mp.mpf(10) ** -48)
    assert real(high) >= true * (1 - mp.mpf(10) ** -48)
    assert low < high <= low * (1 + Fraction(8, 1 << bits))


@settings(max_examples=60)
@given(st.fractions(min_value=1, max_value=10**20))
def test_log_is_bracketed(x: Fraction) -> None:
    low, high = r.log_down(x), r.log_up(x)
    with mp.workdps(120):  # x may be 1 but for 10^-40
        assert real(low) <= mp.log(real(x)) <= real(high)
    assert high - low <= high * TIGHT * 4


@given(positive)
def test_sqrt_is_bracketed_and_exact_on_squares(x: Fraction) -> None:
    low, high = r.sqrt_down(x), r.sqrt_up(x)
    assert low * low <= x <= high * high
    assert high - low <= high * TIGHT * 4
    assert r.sqrt_up(x * x) == x == r.sqrt_down(x * x)


@given(positive)
def test_floats_are_the_nearest_on_their_side(x: Fraction) -> None:
    low, high = r.float_down(x), r.float_up(x)
    assert Fraction(low) <= x <= Fraction(high)
    assert high == low or high - low <= high * 2.0**-52


def test_edges() -> None:
    assert r.log_up(Fraction(1)) == 0 == r.log_down(Fraction(1))
    assert r.short_up(Fraction(0)) == 0
    assert r.exp_down(Fraction(-5000)) == 0 < r.exp_up(Fraction(-5000)) < Fraction(1, 10**1000)
    assert r.float_up(Fraction(10) ** 400) == float("inf")
    assert r.float_up(Fraction(1, 3)) > Fraction(1, 3) > r.float_down(Fraction(1, 3))
    assert r.exp_up(Fraction(4000)) > 10**1700
    assert r.exp_down(Fraction(4000)) > 10**1700
    for bound in (r.exp_up, r.exp_down):
        with pytest.raises(CapacityError):
            bound(Fraction(4001))
    last = Fraction(-4000)
    assert 0 < r.exp_down(last) < r.exp_up(last) <= r.exp_down(last) * (1 + 4 * TIGHT)
    assert r.exp_down(last - TIGHT) == 0
