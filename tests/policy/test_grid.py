"""Grids are exact: found by whole numbers, with the promised steps, and every multiple a DOUBLE."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.policy.build import default_grid
from hubbub.policy.kinds import ceil_log2, finest, floor_log2, is_power_of_two, nearest_power_of_two, outward, power

REALS = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False).map(Fraction)


@pytest.mark.parametrize(
    ("bounds", "grid"),
    [
        ((0, 1 << 20), 1),
        ((0, (1 << 20) - 1), Fraction(1, 2)),
        ((0, (1 << 21) - 1), 1),
        ((0, 1 << 21), 2),
        ((-1, 1), Fraction(1, 1 << 19)),
        ((Fraction(0), Fraction(1, 10)), Fraction(1, 1 << 24)),
        ((0, 50_000), Fraction(1, 32)),
        ((10**15, 10**15 + 1), Fraction(1, 8)),  # DOUBLEs near 10^15 are 1/8 apart
    ],
)
def test_the_default_grid(bounds: tuple[int, int], grid: Fraction) -> None:
    assert default_grid((Fraction(bounds[0]), Fraction(bounds[1]))) == grid


@given(REALS, REALS)
def test_a_default_grid_is_as_coarse_as_it_may_be_and_its_points_are_doubles(a: Fraction, b: Fraction) -> None:
    low, high = sorted((a, b))
    if high - low < Fraction(1, 1 << 900):
        return
    grid = default_grid((low, high))
    assert is_power_of_two(grid)
    enough = (high - low) / grid >= 1 << 20
    assert enough or grid == finest((low, high))
    assert (high - low) / (2 * grid) < 1 << 20
    for end in outward((low, high), grid):
        assert Fraction(float(end)) == end
    inner = outward((low, high), grid)[0] + grid
    assert Fraction(float(inner)) == inner


@given(REALS.filter(lambda x: x > 0))
def test_logarithms_are_exact(x: Fraction) -> None:
    assert power(floor_log2(x)) <= x < power(floor_log2(x) + 1)
    assert power(ceil_log2(x) - 1) < x <= power(ceil_log2(x))
    assert is_power_of_two(x) is (floor_log2(x) == ceil_log2(x))


def test_outward_never_moves_a_bound_in() -> None:
    assert outward((Fraction(1, 10), Fraction(9, 10)), Fraction(1, 4)) == (Fraction(0), Fraction(1))
    assert outward((Fraction(-1, 10), Fraction(3, 4)), Fraction(1, 4)) == (Fraction(-1, 4), Fraction(3, 4))
    assert outward((Fraction(1, 4), Fraction(1, 2)), Fraction(1, 4)) == (Fraction(1, 4), Fraction(1, 2))


@pytest.mark.parametrize(
    ("x", "near"),
    [
        (Fraction(1), 1),
        (Fraction(3), 4),
        (Fraction(14, 10), 1),
        (Fraction(15, 10), 2),
        (Fraction(1, 10), Fraction(1, 8)),
    ],
)
def test_the_nearest_power_of_two(x: Fraction, near: Fraction) -> None:
    assert nearest_power_of_two(x) == near


def test_zero_and_below_are_no_powers() -> None:
    assert not is_power_of_two(Fraction(0))
    assert not is_power_of_two(Fraction(-2))
