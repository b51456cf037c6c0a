"""Logarithms and log-factorials, bracketed: outward, tight, small and far beyond 2^62."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from hubbub.noise import exact
from hubbub.noise.exact import log_bounds, log_factorial_bounds


@pytest.fixture(autouse=True)
def _precise() -> Any:
    with mp.workprec(1500):
        yield


def check_brackets(bounds: tuple[int, int], truth: Any, bits: int, *, width: int) -> None:
    low, high = bounds
    scaled = truth * mpf(2) ** bits
    assert low <= scaled <= high
    assert high - low <= width


@pytest.mark.parametrize(
    "number", [1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 24, 25, 47, 48, 49, 1000, 2**62, 2**62 + 1, 3**200]
)
@pytest.mark.parametrize("bits", [8, 64, 192, 640])
def test_logarithm(number: int, bits: int) -> None:
    check_brackets(log_bounds(number, bits), mp.log(number), bits, width=2)


def test_the_logarithm_of_one_is_not_below_zero() -> None:
    assert log_bounds(1, 64) == (0, 1)


@given(number=st.integers(min_value=1, max_value=2**300), bits=st.integers(min_value=1, max_value=300))
def test_logarithm_anywhere(number: int, bits: int) -> None:
    with mp.workprec(1500):
        check_brackets(log_bounds(number, bits), mp.log(number), bits, width=2)


@pytest.mark.parametrize(
    "number", [0, 1, 2, 10, 100, 1022, 1023, 1024, 1025, 5000, 10**6, 10**6 + 1, 10**15, 2**62, 2**62 + 1, 2**200]
)
@pytest.mark.parametrize("bits", [64, 128, 256, 600])
def test_log_factorial(number: int, bits: int) -> None:
    check_brackets(log_factorial_bounds(number, bits), mp.loggamma(mpf(number) + 1), bits, width=2)


def test_stirling_agrees_with_the_product_where_both_work(monkeypatch: pytest.MonkeyPatch) -> None:
    log_factorial_bounds.cache_clear()
    monkeypatch.setattr(exact, "SMALL_FACTORIAL", 40)
    try:
        for number in (40, 41, 100, 1000):
            check_brackets(log_factorial_bounds(number, 64), mp.loggamma(mpf(number) + 1), 64, width=2)
    finally:
        log_factorial_bounds.cache_clear()


@pytest.mark.parametrize("wide", [64, 200, 700])
def test_constants(wide: int) -> None:
    check_brackets(exact._log_two(wide), mp.log(2), wide, width=4 * wide)
    check_brackets(exact._log_root_two_pi(wide), mp.log(2 * mp.pi) / 2, wide, width=64)


@pytest.mark.parametrize("wide", [6, 16, 64, 200])
def test_series_bracket_by_themselves(wide: int) -> None:
    """Guard bits would hide a bound that lies a few units on the wrong side."""
    for numerator, denominator in ((0, 1), (1, 3), (1, 5), (2, 7), (1, 1000)):
        bounds = exact._artanh_bounds(numerator, denominator, wide)
        check_brackets(bounds, mp.atanh(mpf(numerator) / denominator), wide, width=4 * wide + 4)
    for inverse in (5, 239):
        bounds = exact._artan_bounds(inverse, wide)
        check_brackets(bounds, mp.atan(mpf(1) / inverse), wide, width=4 * wide + 4)


def test_halves_in_stirling_s_series_are_rounded_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """(n + 1/2) ln n is half a whole number of units: where that is odd, the bounds are one unit further apart."""
    number, bits = 1024, 64
    monkeypatch.setattr(exact, "_GUARD", -number.bit_length())
    monkeypatch.setattr(exact, "_log_root_two_pi", lambda wide: (0, 0))
    width = {}
    for units in (1 << 40, (1 << 40) + 1):
        monkeypatch.setattr(exact, "log_bounds", lambda number, wide, units=units: (units, units))
        low, high = log_factorial_bounds.__wrapped__(number, bits)
        width[units & 1] = high - low
    assert width[1] == width[0] + 1


@pytest.mark.parametrize("bits", [15, 64, 200, 640])  # at 15 the first term is 2.67 units: too many to leave out
def test_stirling_s_series_brackets_by_itself(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every term is rounded down: guard bits would hide that the lower bound makes no room for it."""
    number = 1024
    monkeypatch.setattr(exact, "_GUARD", -number.bit_length())
    monkeypatch.setattr(exact, "_log_root_two_pi", lambda wide: (0, 0))
    monkeypatch.setattr(exact, "log_bounds", lambda number, wide: (0, 0))
    low, high = (bound + (number << bits) for bound in log_factorial_bounds.__wrapped__(number, bits))
    n = mpf(number)
    series = mp.loggamma(n + 1) - (n + mpf(1) / 2) * mp.log(n) + n - mp.log(2 * mp.pi) / 2
    assert low <= series * mpf(2) ** bits <= high


def test_half_of_a_bound_is_rounded_outward(monkeypatch: pytest.MonkeyPatch) -> None:
    """ln 2π is halved for the root: a bound that is odd must not move inward, be it by half of a guard bit."""
    unit = 1 << 17
    monkeypatch.setattr(exact, "_log_two", lambda wide: (0, 0))
    monkeypatch.setattr(exact, "log_bounds", lambda n, wide: (0, 0) if n == 2 else (unit - 1, unit + 1))
    assert exact._log_root_two_pi.__wrapped__(64) == (0, 2)


@pytest.mark.parametrize("loose", ["two", "pi", "exponent"])
def test_ln_2_pi_is_as_loose_as_its_parts(loose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ln 2, ln π in units and 80 times ln 2, which takes those units back: each is taken at its outer end."""
    wide, unit = 64, 1 << 17
    apart = {"two": (0, 0), "pi": (0, 0), "exponent": (0, 0)} | {loose: (-unit, unit)}
    monkeypatch.setattr(exact, "_log_two", lambda wide: apart["exponent"])
    monkeypatch.setattr(exact, "log_bounds", lambda n, wide: apart["two" if n == 2 else "pi"])
    times = wide + 16 if loose == "exponent" else 1
    assert exact._log_root_two_pi.__wrapped__(wide) == (-times, times)


def test_bernoulli_numbers() -> None:
    from fractions import Fraction

    expected = {0: Fraction(1), 1: Fraction(-1, 2), 2: Fraction(1, 6), 4: Fraction(-1, 30), 12: Fraction(-691, 2730)}
    assert {index: exact._bernoulli(index) for index in expected} == expected


@pytest.mark.parametrize("bits", [9, 16, 33, 64])
def test_bounds_hold_without_any_guard_bits(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard bits make the bounds tight; that they are bounds must come from the direction of every rounding."""
    caches = (log_bounds, log_factorial_bounds, exact._log_two, exact._log_root_two_pi)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr(exact, "_GUARD", -2)
    monkeypatch.setattr(exact, "SMALL_FACTORIAL", 30)
    try:
        for number in (*range(30, 80), 1000, 10**6 + 3, 2**62 + 1):
            low, high = log_bounds(number, bits)
            assert low <= mp.log(number) * mpf(2) ** (bits) <= high
            low, high = log_factorial_bounds(number, bits)
            assert low <= mp.loggamma(mpf(number) + 1) * mpf(2) ** (bits) <= high
    finally:
        for cache in caches:
            cache.cache_clear()
