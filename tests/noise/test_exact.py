"""Bounds that are proofs: outward, tight, and decided exactly."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from hubbub.noise import exact
from hubbub.noise.exact import Exact, Uniform, exactly, exp_minus, exp_minus_bounds, fresh_uniform, log2_floor
from tests.noise.sources import Script

rationals = st.fractions(min_value=0, max_value=50, max_denominator=10**12)
bits = st.integers(min_value=1, max_value=300)


@pytest.fixture(autouse=True)
def _precise() -> Any:
    with mp.workprec(1200):
        yield


def real(x: Fraction) -> Any:
    return mpf(x.numerator) / x.denominator


def check_brackets(bounds: tuple[int, int], truth: Any, precision: int, *, width: int) -> None:
    low, high = bounds
    with mp.workprec(1200):
        assert low <= truth * mpf(2) ** precision <= high
    assert low >= 0
    assert high - low <= width


@pytest.mark.parametrize(
    "exponent",
    [
        Fraction(1, 1 << 60),
        Fraction(1, 3),
        Fraction(1),
        Fraction(0.1),
        Fraction(63),
        Fraction(64),
        Fraction(65),
        Fraction(66),
        Fraction(129),
        Fraction(130),
        Fraction(10**30, 10**28 + 1),
        Fraction(1 << 20),
        Fraction(1 << 41),
    ],
)
@pytest.mark.parametrize("precision", [1, 64, 128, 192, 640])
def test_exp_minus_is_bracketed_tightly(exponent: Fraction, precision: int) -> None:
    check_brackets(exp_minus_bounds(exponent, precision), mp.exp(-real(exponent)), precision, width=2)


@given(x=rationals, precision=bits)
def test_exp_minus_is_bracketed_anywhere(x: Fraction, precision: int) -> None:
    with mp.workprec(1200):
        truth = mp.exp(-real(x))
    check_brackets(exp_minus_bounds(x, precision), truth, precision, width=2)


@pytest.mark.parametrize(
    "exponent", [Fraction(1, 3), Fraction(2, 3), Fraction(10, 7), Fraction(60), Fraction(1, 10**40)]
)
def test_the_series_is_summed_on_both_sides_of_the_exponent(
    exponent: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own margin would hide a lower bound that is taken at too small an exponent."""
    summed = []
    series = exact._taylor_exp_minus

    def watched(scaled: int, wide: int) -> tuple[int, int]:
        summed.append((scaled, wide))
        return series(scaled, wide)

    monkeypatch.setattr(exact, "_taylor_exp_minus", watched)
    exp_minus_bounds.__wrapped__(exponent, 64)
    (above, wide), (below, _) = summed
    halvings = (wide - 64 - 16) // 2
    assert below <= exponent * (1 << wide - halvings) <= above == below + 1
    for scaled in (below, above):
        assert scaled < 1 << wide - 6  # for which the series is proven
        low, high = series(scaled, wide)
        assert low <= mp.exp(-mpf(scaled) / mpf(2) ** wide) * mpf(2) ** wide <= high


def test_exp_minus_of_zero_is_one() -> None:
    assert exp_minus_bounds(Fraction(0), 64) == (1 << 64, 1 << 64)


def test_exp_minus_far_out_is_not_zero_for_ever() -> None:
    assert exp_minus_bounds(Fraction(100), 64) == (0, 1)
    low, _ = exp_minus_bounds(Fraction(100), 256)
    assert low > 0


@given(a=rationals, b=rationals, precision=bits)
def test_arithmetic_brackets(a: Fraction, b: Fraction, precision: int) -> None:
    one, two = exactly(a), exactly(b)
    room = 4 + int(a + b)
    check_brackets(one.bounds(precision), real(a), precision, width=1)
    check_brackets((one + two).bounds(precision), real(a + b), precision, width=2)
    check_brackets((one * two).bounds(precision), real(a * b), precision, width=room)


@given(a=rationals, b=st.fractions(min_value=Fraction(1, 1000), max_value=50, max_denominator=10**6), precision=bits)
def test_quotients_bracket(a: Fraction, b: Fraction, precision: int) -> None:
    check_brackets(
        (exactly(a) / exactly(b)).bounds(precision), real(a / b), precision, width=4 + int((a + 1) / b / b / 64 + a / b)
    )


def test_quotient_by_a_number_that_looks_like_zero_at_first() -> None:
    tiny = exactly(Fraction(1, 1 << 100))
    low, high = (exactly(1) / tiny).bounds(1)
    assert low <= 1 << 101 <= high
    assert (tiny / tiny).bounds(8)[0] <= 256 <= (tiny / tiny).bounds(8)[1]


@given(x=rationals, precision=bits)
def test_complements_bracket_and_stay_non_negative(x: Fraction, precision: int) -> None:
    with mp.workprec(1200):
        truth = 1 - mp.exp(-real(x))
    check_brackets(exp_minus(x).complement().bounds(precision), truth, precision, width=2)


def test_complement_is_never_below_zero() -> None:
    assert Exact(lambda bits: ((1 << bits) - 1, (1 << bits) + 1)).complement().bounds(8) == (0, 1)


def test_a_rational_is_exact_where_it_can_be() -> None:
    assert exactly(Fraction(3, 4)).bounds(2) == (3, 3)
    assert exactly(Fraction(3, 4)).bounds(1) == (1, 2)
    assert exactly(1).bounds(64) == (1 << 64, 1 << 64)


@pytest.mark.parametrize(
    ("value", "floor"),
    [
        (1, 0),
        (2, 1),
        (3, 1),
        (4, 2),
        (Fraction(1, 2), -1),
        (Fraction(1, 3), -2),
        (Fraction(3, 4), -1),
        (Fraction(7, 4), 0),
        (Fraction((1 << 70) - 1, 1), 69),
        (Fraction(1, (1 << 70) - 1), -70),
    ],
)
def test_log2_floor(value: Fraction, floor: int) -> None:
    assert log2_floor(Fraction(value)) == floor


class TestUniformBelow:
    """U in [value, value + 1) / 2^bits against a number: the boundary on both sides, then more digits."""

    half = exactly(Fraction(1, 2))
    third = exactly(Fraction(1, 3))

    def test_decided_at_once_on_both_sides_of_a_dyadic_number(self) -> None:
        assert Uniform(Script(), (1 << 63) - 1, 64).below(self.half)
        assert not Uniform(Script(), 1 << 63, 64).below(self.half)

    @pytest.mark.parametrize(("word", "less"), [((1 << 64) // 3 - 1, True), ((1 << 64) // 3 + 1, False)])
    def test_decided_at_once_beside_a_third(self, word: int, less: bool) -> None:
        assert Uniform(Script(), word, 64).below(self.third) is less

    @pytest.mark.parametrize(("follow", "less"), [((1 << 64) // 3 - 1, True), ((1 << 64) // 3 + 1, False)])
    def test_a_third_s_own_word_needs_more_digits(self, follow: int, less: bool) -> None:
        own = (1 << 64) // 3
        source = Script([follow])
        assert Uniform(source, own, 64).below(self.third) is less
        assert source.left == 0

    @pytest.mark.parametrize(("last", "less"), [(0, True), ((1 << 64) - 1, False)])
    def test_undecided_twice(self, last: int, less: bool) -> None:
        own = (1 << 64) // 3
        source = Script([own, last])
        assert Uniform(source, own, 64).below(self.third) is less
        assert source.left == 0

    def test_never_below_zero_and_always_below_one(self) -> None:
        assert not Uniform(Script(), 0, 64).below(exactly(0))
        assert Uniform(Script(), (1 << 64) - 1, 64).below(exactly(1))

    def test_more_digits_go_below_the_known_ones(self) -> None:
        uniform = fresh_uniform(Script([5, 7]))
        assert (uniform.value, uniform.bits) == (5, 64)
        uniform.extend()
        assert (uniform.value, uniform.bits) == (5 << 64 | 7, 128)
