"""The matrix of products against brute force: exact, within its bounds, and with less noise off the diagonal."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from hubbub.engines.arrays.blocks import shorten
from hubbub.engines.arrays.engine import Arrays
from hubbub.gate.secret import open_sealed
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.moments import (
    EVEN,
    FROBENIUS,
    GRAM_BITS,
    foresee_deviation,
    measure_products,
    products,
    reach_of_products,
    triangle,
)
from hubbub.learn.statistics.row_steps import BITS, scale_columns
from hubbub.learn.statistics.row_sums import ball_sums, box_sums, unit_rows
from hubbub.learn.tuition import ACCOUNT, Tuition
from hubbub.privacy.filter import Budget
from hubbub.query.totals import columns
from hubbub.testing.replay import RecordingMeter

Array = np.ndarray[Any, Any]
ONE = 1 << GRAM_BITS


def total_of(x: Array, crowd: Crowd) -> Array:
    """The exact sums of products of rows."""
    data = Features.of(x, crowd)
    (found,) = open_sealed(data.add_up(products(data.x, data)))
    return np.asarray(found)


def shortened(x: Array, *, bits: int, weights: Array | None) -> Array:
    """Rows as whole numbers."""
    block = np.array(x.T)
    return shorten(block, float(1 << bits), weights, out=np.empty_like(block), room=np.empty_like(block)).T


def whole_rows(x: Array, weights: Array) -> list[list[int]]:
    """The same rows one by one, in Python's integers: shortened, weighted, cut towards zero."""
    found = []
    for row, weight in zip(x, weights, strict=True):
        length = max(1.0, float(np.sqrt(np.sum(row * row))))
        found.append([int(value * (ONE / length * np.sqrt(weight))) for value in row])
    return found


@pytest.mark.parametrize("most", [None, 1, 2])
def test_the_total_is_the_exact_sum_of_whole_products(most: int | None) -> None:
    chance = np.random.default_rng(1)
    x = chance.normal(size=(40_000, 3)) * 0.4
    groups = None if most is None else chance.integers(0, 9_000, size=len(x))
    crowd = Crowd.of(groups, rows=len(x), most=most or 1)
    total = total_of(x, crowd)
    rows = whole_rows(x[:500], crowd.weights[:500])
    wide = sum(np.outer(row, row).astype(object) for row in rows)
    assert total.dtype == np.int64
    if most is None:
        assert (total_of(x[:500], Crowd(rows=500)) == wide).all()
    # Blocks add up to the whole, whatever their number.
    pieces = np.zeros((3, 3), dtype=np.int64)
    for start in range(0, len(x), 7_001):
        part = slice(start, start + 7_001)
        block = shortened(x[part], bits=GRAM_BITS, weights=None if most is None else crowd.weights[part])
        pieces += block.astype(np.int64).T @ block.astype(np.int64)
    assert (pieces == total).all()


@pytest.mark.parametrize("weights", [FROBENIUS, EVEN])
@pytest.mark.parametrize("most", [1, 3])
def test_no_unit_moves_the_triangle_further_than_stated(weights: tuple[int, int], most: int) -> None:
    chance = np.random.default_rng(2)
    reach = reach_of_products(width=3, most=most, weights=weights)
    assert reach.l1 is not None
    assert reach.l2_squared is not None
    assert reach.linf is not None
    closest = [0.0, 0.0]
    corners = [np.array(c, dtype=float) for c in product((-1, 0, 1), repeat=3) if any(c)]
    for trial in range(150):
        rows = [corners[trial % len(corners)] * 5] if trial < 60 else list(chance.normal(size=(1 + trial % 7, 3)))
        x = np.array(rows * (most + 2 if trial % 2 else 1))
        crowd = Crowd.of(np.zeros(len(x), dtype=int), rows=len(x), most=most)
        moved = triangle(total_of(x, crowd).astype(object), weights=weights)
        assert sum(abs(moved)) <= reach.l1
        assert sum(moved * moved) <= reach.l2_squared
        assert max(abs(moved)) <= reach.linf
        closest = [max(closest[0], sum(abs(moved)) / reach.l1), max(closest[1], sum(moved * moved) / reach.l2_squared)]
    assert closest[1] > 0.99  # and the bound on the L2 norm is reached
    if weights == EVEN:
        assert closest[0] > 0.99


def test_weights_of_the_triangle_stay_within_the_frobenius_norm() -> None:
    diagonal, beside = FROBENIUS
    assert beside**2 <= 2 * diagonal**2 < (beside + 1) ** 2


def test_rows_that_are_shortened_keep_their_bound_in_integers() -> None:
    chance = np.random.default_rng(3)
    x = chance.normal(size=(20_000, 5)) * 10.0 ** chance.integers(-3, 8, size=(20_000, 1))
    weights = chance.uniform(0.01, 1, size=len(x))
    for some in (None, weights):
        whole = shortened(x, bits=GRAM_BITS, weights=some)
        assert (whole == np.trunc(whole)).all()
        allowed = float(ONE) ** 2 * (np.ones(len(x)) if some is None else some)
        assert ((whole * whole).sum(axis=1) <= allowed).all()
        long = (whole * whole).sum(axis=1) > allowed * 0.999
        assert long.sum() > 10_000
        assert (np.abs(whole) <= np.abs(x) * ONE).all()  # cut towards zero


def test_noise_is_what_was_foreseen_and_less_beside_the_diagonal() -> None:
    """Chi-square over 3,000 entries: within ten standard errors, which is far beyond a rate of 1e-6."""
    data = Features.of(np.zeros((1, 5)), Crowd(rows=1))
    found = []
    for _ in range(300):
        tuition = Tuition.at(epsilon=1.0, delta=1e-6)
        expected = foresee_deviation(width=5, most=1, tuition=tuition, share=Fraction(1))
        found.append(measure_products(data.x, data, radius=2.0, tuition=tuition, share=Fraction(1)))
    upper = np.array([one.matrix[np.triu_indices(5, 1)] for one in found])
    middle = np.array([np.diag(one.matrix) for one in found])
    assert found[0].beside == pytest.approx(4 * expected)
    assert np.mean(upper**2) == pytest.approx(found[0].beside ** 2, rel=10 * np.sqrt(2 / upper.size))
    assert np.mean(middle**2) == pytest.approx(found[0].on_diagonal ** 2, rel=10 * np.sqrt(2 / middle.size))
    assert found[0].on_diagonal / found[0].beside == pytest.approx(41 / 29)
    assert (found[0].matrix == found[0].matrix.T).all()


def test_a_rich_matrix_is_the_true_one() -> None:
    chance = np.random.default_rng(4)
    x = chance.uniform(-1, 1, size=(5_000, 4))
    for delta in (0.0, 1e-6):
        tuition = Tuition.at(epsilon=1000.0, delta=delta)
        data = Features.of(x, Crowd(rows=5_000))
        found = measure_products(data.x / 2.0, data, radius=2.0, tuition=tuition, share=Fraction(1))
        assert np.abs(found.matrix - x.T @ x).max() < 3
        assert tuition.left == 0


def test_rows_in_place_are_the_rows_of_steps() -> None:
    chance = np.random.default_rng(5)
    x = chance.normal(size=(100, 3)) * 4
    x[3, 1], x[5, 2], x[7, 0], x[8, 0] = np.nan, np.inf, -np.inf, 1e308
    low, high = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 5.0, 2.5])
    rows = unit_rows(columns(0, 3), low, high)
    got = np.concatenate([Arrays(x[at : at + 33, :2], x[at : at + 33, 2:]).rows(rows) for at in range(0, 100, 33)])
    assert got == pytest.approx(scale_columns(x, low, high))
    assert got[3, 1] == got[5, 2] == got[7, 0] == 0.0
    assert got[8, 0] == 1.0
    moved = Arrays(x).rows(unit_rows(columns(0, 3), low, high, slope=2.0, shift=1.0, leading=0.5))
    assert moved[:, 1:] == pytest.approx(got * 2 + 1)
    assert (moved[:, 0] == 0.5).all()


def test_totals_of_a_box_share_weights_between_the_rows_of_a_unit() -> None:
    crowd = Crowd.of(np.array([0, 0, 0, 0, 1]), rows=5, most=2)
    x = np.array([[1.0], [1.0], [1.0], [1.0], [-3.0]])
    data, meter = Features.of(x, crowd), RecordingMeter({ACCOUNT: Budget(epsilon=Fraction(9))})
    box_sums(data.x, data, tuition=Tuition.at(epsilon=1, meter=meter), share=Fraction(1), label="s")
    half = (1 << BITS - 1) - 1  # half a row each, cut towards zero; and no row is more than 1
    assert meter.measurements[0].value.tolist() == [4 * half - (1 << BITS)]


def test_sums_over_a_ball_are_within_it() -> None:
    x = np.array([[3.0, 4.0], [0.3, 0.4]])
    tuition = Tuition.at(epsilon=10_000.0)
    data = Features.of(x, Crowd(rows=2))
    sums, noise = ball_sums(data.x, data, radius=2.0, tuition=tuition, share=Fraction(1), label="s")
    assert sums == pytest.approx([2 * (0.6 + 0.3), 2 * (0.8 + 0.4)], abs=0.01)
    assert 0 < noise < 0.01
