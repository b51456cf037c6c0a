"""Rounding to a grid and sums that never wrap: exact, on both sides of every edge."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.errors import ParameterError
from hubbub.mechanisms.integers import as_integers, exact_sum, grown_sensitivity, off_grid, on_grid

MOST = (1 << 63) - 1
grids = st.sampled_from(
    [Fraction(1), Fraction(1, 4), Fraction(8), Fraction(1, 3), Fraction(3), Fraction(0.1), Fraction(7, 10)]
)
reals = st.floats(allow_nan=False, allow_infinity=False, width=64)


def obvious(value: Any, grid: Fraction) -> int:
    return math.floor(Fraction(value) / grid + Fraction(1, 2))


class TestOnGrid:
    @given(st.lists(reals, max_size=5), grids)
    def test_arrays_and_scalars_agree_with_rationals(self, values: list[float], grid: Fraction) -> None:
        expected = [obvious(value, grid) for value in values]
        assert list(np.asarray(on_grid(np.array(values, dtype=np.float64), grid))) == expected
        assert [on_grid(value, grid) for value in values] == expected

    @given(st.fractions(-1000, 1000, max_denominator=1000), st.fractions(-1000, 1000, max_denominator=1000), grids)
    def test_rounding_moves_neighbours_apart_by_less_than_a_step(
        self, a: Fraction, b: Fraction, grid: Fraction
    ) -> None:
        one, two = on_grid(a, grid), on_grid(b, grid)
        assert isinstance(one, int)
        assert isinstance(two, int)
        assert abs(one - two) <= math.ceil(abs(a - b) / grid)

    @given(st.integers(-(10**6), 10**6), st.floats(0, 4), st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(2)]))
    def test_and_so_do_arrays_of_floats(self, start: int, gap: float, grid: Fraction) -> None:
        a = start / 8
        b = a + gap
        pair = np.asarray(on_grid(np.array([a, b]), grid))
        assert 0 <= int(pair[1]) - int(pair[0]) <= math.ceil((Fraction(b) - Fraction(a)) / grid)

    def test_halves_go_up_and_never_to_even(self) -> None:
        values = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]
        expected = [-2, -1, 0, 1, 2, 3]
        assert list(np.asarray(on_grid(np.array(values), Fraction(1)))) == expected
        assert [on_grid(value, Fraction(1)) for value in values] == expected
        assert on_grid(Fraction(1, 6), Fraction(1, 3)) == 1
        below = math.nextafter(0.5, 0)
        assert on_grid(below, Fraction(1)) == 0
        assert on_grid(np.array([below, -below]), Fraction(1)).tolist() == [0, 0]  # type: ignore[union-attr]

    @pytest.mark.parametrize("grid", [Fraction(1), Fraction(1, 3)])
    def test_what_is_no_finite_number_is_zero(self, grid: Fraction) -> None:
        odd = [
            math.nan,
            math.inf,
            -math.inf,
            None,
            Decimal("NaN"),
            Decimal("sNaN"),
            Decimal("-Infinity"),
            "x",
            object(),
        ]
        array = np.empty(len(odd) + 1, dtype=object)
        array[:] = [*odd, 2.0]
        rounded = np.asarray(on_grid(array, grid))
        assert rounded.tolist() == [0] * len(odd) + [2 / grid]
        for value in odd[:7]:
            assert on_grid(value, grid) == 0
        assert np.asarray(on_grid(np.array([math.nan, math.inf, -math.inf, 2.0]), grid)).tolist() == [0, 0, 0, 2 / grid]

    @pytest.mark.parametrize("grid", [Fraction(1, 10), Fraction(1, 3), Fraction(10), Fraction(0.1), Fraction(1, 8)])
    def test_halves_of_other_grids_are_decided_exactly(self, grid: Fraction) -> None:
        """Dividing by a grid that is no power of two in floats would put some of these on the wrong side."""
        near = [float((step + Fraction(1, 2)) * grid) for step in range(-400, 400)]
        values = [*near, *(math.nextafter(x, math.inf) for x in near), *(math.nextafter(x, -math.inf) for x in near)]
        assert list(np.asarray(on_grid(np.array(values), grid))) == [obvious(value, grid) for value in values]

    def test_finite_values_that_overflow_the_division_are_not_zero(self) -> None:
        big = 1.7e308
        assert list(np.asarray(on_grid(np.array([big, 1.0]), Fraction(1, 4)))) == [int(big) * 4, 4]

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
    def test_every_width_of_float(self, dtype: Any) -> None:
        values = np.array([0.5, -1.5, 3.25], dtype=dtype)
        for grid in (Fraction(1), Fraction(1, 4), Fraction(1, 3)):
            expected = [obvious(float(value), grid) for value in values]
            assert list(np.asarray(on_grid(values, grid))) == expected
            assert [on_grid(value, grid) for value in values] == expected

    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
    def test_every_width_of_whole_number(self, dtype: Any) -> None:
        """In 64 bits as long as nothing can wrap, and beyond them where something could."""
        ends, sizes = np.iinfo(dtype), (1, 2, 3, 7, 1 << 20, (1 << 61) - 1, 1 << 61, (1 << 62) - 1, 1 << 62, 1 << 70)
        for grid in {Fraction(*pair) for pair in itertools.product(sizes, repeat=2)}:
            for values in ([], [0], [1, 3], [0, 1, 2, 3, 5], [ends.min, ends.max], [ends.max // 4, ends.min // 4]):
                found = np.asarray(on_grid(np.array(values, dtype=dtype), grid))
                expected = [obvious(value, grid) for value in values]
                assert found.tolist() == expected
                assert (found.dtype == object) == any(not -(1 << 63) <= one < 1 << 63 for one in expected)

    @pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="long doubles are doubles on this machine")
    def test_long_doubles_are_not_rounded_twice(self) -> None:
        """1.5 - 2^-54 and 0.5 - 2^-54 are one apart; through double precision they would end two apart."""
        a, b = np.longdouble(1.5) - np.longdouble(2) ** -54, np.longdouble(0.5) - np.longdouble(2) ** -54
        assert np.asarray(on_grid(np.array([a, b]), Fraction(1))).tolist() == [1, 0]
        assert on_grid(a, Fraction(1)) == 1
        huge = np.longdouble(10) ** 400
        assert on_grid(huge, Fraction(1)) == int(huge)

    def test_other_kinds_of_number(self) -> None:
        assert on_grid(Decimal("0.35"), Fraction(1, 10)) == 4
        assert on_grid(10**30, Fraction(1, 2)) == 2 * 10**30
        assert np.asarray(on_grid(np.array([3, 5]), Fraction(2))).tolist() == [2, 3]
        assert np.asarray(on_grid([10**30, 1], Fraction(1))).tolist() == [10**30, 1]
        with pytest.raises(ParameterError):
            on_grid(np.array(["1", "2"]), Fraction(1))

    def test_a_grid_of_three_is_no_power_of_two(self) -> None:
        """A third above a whole number of 52 bits: as a float it would be a half, and go up."""
        assert np.asarray(on_grid(np.array([3 * 2.0**51 + 1]), Fraction(3))).tolist() == [1 << 51]

    def test_where_the_fast_path_ends(self) -> None:
        for edge in (2.0**52, 2.0**52 - 0.5, 2.0**52 + 1, 2.0**63, -(2.0**63), 2.0**64):
            assert list(np.asarray(on_grid(np.array([edge, 0.5]), Fraction(1)))) == [obvious(edge, Fraction(1)), 1]
        assert np.asarray(on_grid(np.array([-(2.0**63)]), Fraction(1))).dtype == np.int64
        assert np.asarray(on_grid(np.array([2.0**63]), Fraction(1))).dtype == object

    def test_whole_numbers_on_both_sides_of_int64(self) -> None:
        for value, fits in ((MOST, True), (MOST + 1, False), (-MOST - 1, True), (-MOST - 2, False)):
            found = np.asarray(on_grid(np.array([value], dtype=object), Fraction(1)))
            assert found.tolist() == [value]
            assert found.dtype == (np.int64 if fits else object)

    def test_grids_that_floats_cannot_hold(self) -> None:
        for grid in (Fraction(1, 1 << 1100), Fraction(1 << 1100)):
            assert list(np.asarray(on_grid(np.array([0.0, 1.0]), grid))) == [0, obvious(1, grid)]


class TestOffGrid:
    @given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), grids)
    @settings(max_examples=200)
    def test_nothing_wraps(self, values: list[int], grid: Fraction) -> None:
        for dtype in (np.int64, object):
            back = off_grid(np.array(values, dtype=dtype), grid)
            if grid.denominator == 1:
                assert list(back) == [value * grid.numerator for value in values]
            else:
                assert back.dtype == np.float64
                assert np.allclose(back, [float(value * grid) for value in values], rtol=1e-15)

    def test_edges(self) -> None:
        three = Fraction(3)
        assert off_grid(np.array([MOST // 3]), three).dtype == np.int64
        for largest in (MOST // 7, -(MOST // 7)):  # 2^63 - 1 is a multiple of 7
            whole = off_grid(np.array([largest]), Fraction(7))
            assert (whole.dtype, whole.tolist()) == (np.int64, [7 * largest])
        assert off_grid(np.array([MOST // 7 + 1]), Fraction(7)).tolist() == [MOST + 7]
        assert off_grid(np.array([MOST // 3 + 1]), three).tolist() == [3 * (MOST // 3 + 1)]
        assert off_grid(np.array([-(MOST // 3) - 1]), three).tolist() == [3 * (-(MOST // 3) - 1)]
        assert off_grid(np.array([], dtype=np.int64), three).shape == (0,)
        assert off_grid(np.array([5]), Fraction(1)).tolist() == [5]
        assert off_grid(np.array([-MOST - 1]), Fraction(1)).dtype == np.int64
        assert off_grid(5, Fraction(2)) == 10
        assert off_grid(MOST, three) == 3 * MOST  # as a float it would be rounded
        assert off_grid(5, Fraction(1, 2)) == 2.5
        assert off_grid(np.arange(-9, 10), Fraction(1, 10)).tolist() == [
            off_grid(k, Fraction(1, 10)) for k in range(-9, 10)
        ]
        assert off_grid(10**400, Fraction(1, 2)) == math.inf
        assert off_grid(-(10**400), Fraction(1, 2)) == -math.inf
        assert off_grid(np.array([3, -3]), Fraction(1, 1 << 70)).tolist() == [3 / 2**70, -3 / 2**70]
        assert off_grid(np.array([[1, 2]], dtype=object), Fraction(2, 3)).shape == (1, 2)


class TestAsIntegers:
    def test_what_it_takes(self) -> None:
        assert as_integers(5) == 5
        assert type(as_integers(np.int8(5))) is int
        assert np.asarray(as_integers(np.array([1, 2], dtype=np.uint8))).dtype == np.int64
        assert np.asarray(as_integers(np.array([2**64 - 1], dtype=np.uint64))).tolist() == [2**64 - 1]
        assert np.asarray(as_integers([2**63, -1])).tolist() == [2**63, -1]
        assert np.asarray(as_integers([])).shape == (0,)
        wide = np.asarray(as_integers(np.array([np.int64(MOST), 2**70], dtype=object)))
        assert all(type(item) is int for item in wide)
        assert np.asarray(as_integers([[1], [2]])).shape == (2, 1)

    @pytest.mark.parametrize(
        "bad", [True, 1.0, "1", None, [1.5], [True], np.array([1.0]), np.array([True]), np.bool_(1)]
    )
    def test_what_it_refuses(self, bad: Any) -> None:
        with pytest.raises(ParameterError, match="whole number"):
            as_integers(bad)


class TestExactSum:
    @given(
        st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=4)
    )
    @settings(max_examples=300)
    def test_sums_are_exact_and_their_type_depends_on_them_alone(self, pairs: list[tuple[int, int]]) -> None:
        values, noise = [a for a, _ in pairs], [b for _, b in pairs]
        sums = [a + b for a, b in pairs]
        fits = all(-MOST - 1 <= total <= MOST for total in sums)
        for left in (np.int64, object):
            for right in (np.int64, object):
                found = exact_sum(np.array(values, dtype=left), np.array(noise, dtype=right))
                assert isinstance(found, np.ndarray)
                assert found.tolist() == sums
                assert found.dtype == (np.int64 if fits else object)

    @pytest.mark.parametrize(
        ("value", "noise"), [(MOST, 0), (MOST, 1), (-MOST - 1, 0), (-MOST - 1, -1), (MOST, -1), (-1, -MOST)]
    )
    def test_edges(self, value: int, noise: int) -> None:
        total = value + noise
        for left in (np.int64, object):
            found = np.asarray(exact_sum(np.array([value], dtype=left), np.array([noise])))
            assert found.tolist() == [total]
            assert found.dtype == (np.int64 if -MOST - 1 <= total <= MOST else object)
        assert exact_sum(value, noise) == total


class TestGrownSensitivity:
    @given(
        st.integers(1, 4),
        grids,
        st.lists(st.fractions(0, 5, max_denominator=40), min_size=4, max_size=4),
        st.lists(st.fractions(-5, 5, max_denominator=40), min_size=4, max_size=4),
    )
    def test_it_bounds_the_distance_of_rounded_vectors(
        self, coordinates: int, grid: Fraction, moves: list[Fraction], start: list[Fraction]
    ) -> None:
        moved = moves[:coordinates]
        if not sum(moved):
            return
        steps = sum(abs(obvious(x + move, grid) - obvious(x, grid)) for x, move in zip(start, moved, strict=False))
        assert steps <= grown_sensitivity(Fraction(sum(moved)), grid, coordinates)

    @pytest.mark.parametrize("grid", [Fraction(1), Fraction(1, 3)])
    @pytest.mark.parametrize("coordinates", [1, 2, 3])
    @pytest.mark.parametrize("sensitivity", [Fraction(1, 10), Fraction(1), Fraction(3, 2), Fraction(2)])
    def test_it_is_attained(self, sensitivity: Fraction, coordinates: int, grid: Fraction) -> None:
        """All but one coordinate move by a hair across a half, the last by the rest."""
        hair = sensitivity / 10**6
        moves = [hair] * (coordinates - 1) + [sensitivity - hair * (coordinates - 1)]
        total = 0
        for move in moves:
            start = grid / 2 - hair / 10**6  # just below a half: any move of a hair goes up
            whole_steps = math.ceil(move / grid)
            best = max(obvious(start + move, grid) - obvious(start, grid), 0)
            assert best <= whole_steps
            total += best
        assert total == grown_sensitivity(sensitivity, grid, coordinates)

    def test_one_coordinate_is_the_ceiling(self) -> None:
        assert grown_sensitivity(Fraction(1), Fraction(1), 1) == 1
        assert grown_sensitivity(Fraction(11, 10), Fraction(1), 1) == 2
        assert grown_sensitivity(Fraction(1), Fraction(1, 4), 1) == 4
        assert grown_sensitivity(Fraction(1, 100), Fraction(1), 1) == 1
