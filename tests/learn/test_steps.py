"""Whole steps keep the bounds that are proven of them, whatever the values are."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from hubbub.engines.arrays.engine import Arrays
from hubbub.learn.statistics.row_steps import BITS, ball_steps, fill_missing, in_ball, scale_columns
from hubbub.query.totals import columns

Array = np.ndarray[Any, Any]
ODD = (0.0, -0.0, 1.0, -1.0, 1.0 + 2**-52, -1.0 - 2**-52, 0.3, 1e308, -1e308, math.inf, -math.inf, math.nan, 5e-324)


def in_box(rows: Array, *, bits: int) -> Array:
    """The whole numbers of rows in a box, as they are added up."""
    x = columns(0, rows.shape[1]).fill_missing([0.0] * rows.shape[1])
    return Arrays(rows).rows((x.clip(-1.0, 1.0) * float(1 << bits)).truncate()).astype(np.int64)


@pytest.mark.parametrize("bits", [1, 3, BITS])
def test_every_row_of_odd_values_stays_within_the_norms_of_its_box(bits: int) -> None:
    each = np.abs(in_box(np.array(list(product(ODD, repeat=2))), bits=bits))
    assert each.max() == 1 << bits
    assert each.sum(axis=1).max() == 2 << bits
    assert (each**2).sum(axis=1).max() == 2 << 2 * bits


def test_coordinates_are_cut_towards_zero() -> None:
    assert in_box(np.array([[0.999, -0.999, 0.5, -0.26]]), bits=2).tolist() == [[3, -3, 2, -1]]
    assert in_box(np.array([[1.0, -1.0, 1.5, math.inf]]), bits=2).tolist() == [[4, -4, 4, 0]]


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("bits", [2, 8, BITS])
def test_every_row_in_a_ball_is_no_longer_than_the_ball(width: int, bits: int) -> None:
    chance = np.random.default_rng(width * 100 + bits)
    rows = np.vstack(
        [
            np.array([ODD[:width], ODD[2 : 2 + width], ODD[7 : 7 + width]]),
            chance.normal(size=(2000, width)) * 10.0 ** chance.integers(-3, 4, (2000, 1)),
            np.full((1, width), 1 / math.sqrt(width)),
        ]
    )
    parts, steps = in_ball(rows, bits=bits), ball_steps(width, bits=bits)
    squares = (parts**2).sum(axis=1)
    assert squares.max() <= steps.l2_squared == (1 << bits) ** 2
    assert np.abs(parts).sum(axis=1).max() <= steps.l1
    assert squares.max() >= 0.5 * steps.l2_squared


def test_missing_values_become_constants_before_any_arithmetic() -> None:
    rows = np.array([[math.nan, 2.0], [math.inf, -math.inf]])
    assert fill_missing(rows, missing=np.array([7.0, 8.0])).tolist() == [[7.0, 2.0], [7.0, 8.0]]
    assert np.isnan(rows[0, 0])


def test_scaling_clips_at_both_ends_and_survives_columns_without_width() -> None:
    low, high = np.array([0.0, 5.0]), np.array([10.0, 5.0])
    rows = np.array([[0.0, 5.0], [10.0, 4.0], [-0.001, 6.0], [10.001, math.nan], [2.5, 5.0], [math.nan, 0.0]])
    assert scale_columns(rows, low, high).tolist() == [[-1, 0], [1, 0], [-1, 0], [1, 0], [-0.5, 0], [0, 0]]
