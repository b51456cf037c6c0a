"""Distances to trouble: the fast forms against the obvious ones, and the two properties that all proofs rest on."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.mechanisms.local_sensitivity import distance as d

TOP = 30
VALUES = st.lists(st.integers(0, TOP), max_size=9)
QS = st.sampled_from([Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 100)])


def order_statistic(rows: list[int], at: int, top: int = TOP) -> int:
    return 0 if at < 1 else top if at > len(rows) else sorted(rows)[at - 1]


def local(rows: list[int], q: Fraction, k: int, m: int = 1, top: int = TOP) -> int:
    """A_k straight from its definition."""
    rank, wide = math.ceil(q * len(rows)), (k + 1) * m
    return max(
        order_statistic(rows, j + wide, top) - order_statistic(rows, j, top) for j in range(rank - wide, rank + 1)
    )


def quantile(rows: list[int], q: Fraction) -> int:
    return order_statistic(rows, math.ceil(q * len(rows)))


def changed(rows: list[int], data: st.DataObject, m: int) -> list[int]:
    """At most m values added, removed or replaced, some of each: one unit's doing under either relation."""
    removed = data.draw(st.integers(0, min(m, len(rows))))
    kept = data.draw(st.permutations(rows))[removed:]
    return kept + data.draw(st.lists(st.integers(0, TOP), max_size=m))


@given(VALUES, QS, st.integers(1, 3), st.data())
def test_neighbours_are_covered_one_step_further(rows: list[int], q: Fraction, m: int, data: st.DataObject) -> None:
    other = changed(rows, data, m)
    for k in range(6):
        assert local(rows, q, k, m) <= local(other, q, k + 1, m)
    assert abs(quantile(rows, q) - quantile(other, q)) <= min(local(rows, q, 0, m), local(other, q, 0, m))


def test_the_bound_at_no_distance_is_no_larger_than_it_must_be() -> None:
    """Under replace-one, A_0 of the median of an odd number is exactly the local sensitivity."""
    half = Fraction(1, 2)
    for rows in itertools.product((0, 3, 9, 10), repeat=3):
        swapped = [[*rows[:at], new, *rows[at + 1 :]] for at in range(3) for new in range(TOP + 1)]
        moved = max(abs(quantile(list(rows), half) - quantile(other, half)) for other in swapped)
        assert local(list(rows), half, 0) == moved


@given(VALUES, QS, st.integers(1, 3), st.sampled_from([0.05, 0.4, 1.5]), st.sampled_from([1, TOP]))
def test_the_smooth_bound_is_the_greatest_window(rows: list[int], q: Fraction, m: int, beta: float, top: int) -> None:
    rows = [min(row, top) for row in rows]
    rank = d.quantile_rank(len(rows), q)
    found = d.quantile_smooth_bound(np.sort(np.array(rows, dtype=np.int64)), rank, top, beta=Fraction(beta), rows=m)
    windows = [
        (order_statistic(rows, high, top) - order_statistic(rows, low, top)) * math.exp(-beta * ((high - low) / m - 1))
        for low in range(-30, rank + 1)
        for high in range(rank, len(rows) + 32)
        if high - low >= m
    ]
    expected = max(*windows, float(d.FLOOR))
    assert expected * (1 - 1e-12) <= float(found) <= expected * (1 + 1e-8)
    assert found >= local(rows, q, 0, m, top)


@given(VALUES, QS, st.integers(1, 3), st.data())
def test_the_smooth_bound_moves_by_at_most_beta(rows: list[int], q: Fraction, m: int, data: st.DataObject) -> None:
    beta = Fraction(1, 5)
    found = [
        d.quantile_smooth_bound(
            np.sort(np.array(side, dtype=np.int64)), d.quantile_rank(len(side), q), TOP, beta=beta, rows=m
        )
        for side in (rows, changed(rows, data, m))
    ]
    assert abs(math.log(found[0] / found[1])) <= float(beta)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(20, 400), st.sampled_from([0.002, 0.05, 0.9]))
def test_divide_and_conquer_finds_what_looking_everywhere_finds(seed: int, size: int, rate: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.sort(rng.choice([rng.integers(0, 1 << 60, size), rng.integers(0, 9, size) << 55])).astype(np.int64)
    at = int(rng.integers(0, size))
    down, up = values[: at + 1][::-1], values[at:]
    weights = np.exp(-rate * np.maximum(np.arange(size) - 2, 0))
    places = np.add.outer(np.arange(len(down)), np.arange(len(up)))
    everywhere = ((up[None, :] - down[:, None]).astype(np.float64) * weights[places]).max()
    assert d.greatest_window(down, up, weights) == pytest.approx(everywhere, rel=2.0**-40)


def test_a_million_values_take_a_few_passes() -> None:
    values = np.sort(np.random.default_rng(1).integers(0, 1 << 40, 200_000))
    found = d.quantile_smooth_bound(values, 100_000, 1 << 40, beta=Fraction(1, 1000), rows=1)
    # dense data: max (k+1)·gap·e^-βk = gap·e^β/eβ, give or take what a thousand random gaps add up to
    assert float(found) == pytest.approx((1 << 40) / 200_000 * 1000 / math.e, rel=0.2)


@given(VALUES, QS, st.integers(1, 3), st.integers(0, TOP - 1), st.integers(1, 8))
def test_distance_is_the_first_k_that_is_too_far(rows: list[int], q: Fraction, m: int, bound: int, most: int) -> None:
    steps = np.sort(np.array(rows, dtype=np.int64))
    found = d.quantile_distance(steps, d.quantile_rank(len(rows), q), TOP, bound=bound, rows=m, most=most)
    assert found == next((k for k in range(most) if local(rows, q, k, m) > bound), most)


def test_ranks() -> None:
    half, tenth = Fraction(1, 2), Fraction(9, 10)
    assert [d.quantile_rank(n, half) for n in range(6)] == [0, 1, 1, 2, 2, 3]
    assert [d.quantile_rank(n, tenth) for n in (0, 1, 9, 10, 11)] == [0, 1, 9, 9, 10]
    for q in (half, tenth, Fraction(1, 7)):
        assert {d.quantile_rank(n + 1, q) - d.quantile_rank(n, q) for n in range(50)} == {0, 1}


def test_bounds_by_unit() -> None:
    rows = [Fraction(step) for step in (1, 2, 3, 4, 5, 6, 7)]
    assert d.by_unit(rows, 1) == rows
    assert d.by_unit(rows, 3) == [6, 15]
    assert d.by_unit(rows, 7) == [28]


def test_a_bound_that_is_given_is_smoothed_and_ends_in_the_whole_range() -> None:
    beta = Fraction(1, 2)
    decay = math.exp(-0.5)
    assert float(d.smooth_bound([3, 3, 3], 4, beta=beta)) == pytest.approx(3, rel=1e-9)
    assert float(d.smooth_bound([1, 4, 9], 10, beta=beta)) == pytest.approx(9 * decay**2, rel=1e-9)
    assert float(d.smooth_bound([0, 0], 10, beta=beta)) == pytest.approx(10 * decay**2, rel=1e-9)
    assert float(d.smooth_bound([0, 0, 50], 10, beta=beta)) == pytest.approx(10 * decay**2, rel=1e-9)
    assert d.smooth_bound([0] * 60, 10, beta=beta) == d.FLOOR
    assert d.smooth_bound([3, 3, 3], 4, beta=beta) > 3


def test_distance_of_a_bound_that_is_given() -> None:
    assert [d.distance([1, 2, 2, 5], bound=bound) for bound in (0, 1, 2, 4, 5)] == [0, 1, 3, 3, 4]


def test_what_floats_may_do_is_a_small_part_of_beta() -> None:
    """Rounding up covers 128 comparisons that are each off by 2^-45, and costs less than half of what β sets aside."""
    up = d._at_least(1.0)
    assert 1 + Fraction(128, 1 << 45) < up <= 1 + d.SLACK / 4
    assert Fraction(1, 1 << 34) == d.SLACK
    assert d._at_least(0.0) == d.FLOOR == Fraction(1, 1 << 20)
