"""What is decided about a row, down to its last bit, does not depend on the rows that stand beside it."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from hubbub.engines.arrays.engine import Arrays
from hubbub.learn.linear.gradients import Pulls, short
from hubbub.learn.linear.linear_classifier import Ball
from hubbub.learn.statistics.crowd import Crowd
from hubbub.learn.statistics.features import Features
from hubbub.learn.statistics.row_steps import BITS
from hubbub.learn.tuition import Tuition
from hubbub.mechanisms.objective.convex import MarginLoss
from hubbub.query.totals import columns

ROWS = 3001


def pulls(features: np.ndarray, signs: np.ndarray) -> Pulls:
    return Pulls(features=features, signs=signs, crowd=Crowd(rows=len(signs)), tuition=Tuition.at(epsilon=1))


@pytest.mark.parametrize("columns", [1, 3])
def test_pulls_of_parts_add_up_exactly(columns: int) -> None:
    chance = np.random.default_rng(7)
    ball = Ball(low=np.full(11, -1.0), high=np.ones(11), norm=2.0, intercept=True)
    x = chance.uniform(-1.2, 1.2, size=(ROWS, 11))
    features = ball.rows(Features.of(x, Crowd(rows=ROWS)))
    signs = chance.choice([-1.0, 1.0], size=(ROWS, columns))
    theta = chance.normal(scale=3.0, size=(12, columns))
    whole = pulls(features, signs).total(MarginLoss.LOGISTIC.slope, theta)
    edges = [0, 1, 2, 5, 500, 501, 1777, ROWS]
    parts = [pulls(features[a:b], signs[a:b]).total(MarginLoss.LOGISTIC.slope, theta) for a, b in pairwise(edges)]
    assert (whole == sum(parts)).all()


def test_short_coefficients_are_near_and_their_sums_exact() -> None:
    chance = np.random.default_rng(3)
    theta = chance.normal(size=(20, 2)) * [[1e-3, 1e3]]
    held = short(theta)
    assert np.abs(held - theta).max() <= 2.0**-20 * np.abs(theta).sum(axis=0).max()
    steps = chance.integers(-(1 << BITS), 1 << BITS, size=(50, 20))
    exact = [[sum(Fraction(c) * int(s) for c, s in zip(held[:, k], row, strict=True)) for k in (0, 1)] for row in steps]
    assert [[Fraction(v) for v in row] for row in (steps.astype(float) @ held).tolist()] == exact
    assert (short(np.zeros((3, 1))) == 0).all()
    assert (short(np.full((3, 1), np.inf)) == 0).all()


def test_products_of_rows_alone_and_in_company() -> None:
    chance = np.random.default_rng(5)
    x, c = chance.normal(size=(ROWS, 17)), chance.normal(size=17)
    wanted = (columns(0, 17) * c.tolist()).added()
    together = Arrays(x).rows(wanted)
    assert np.allclose(together, x @ c)
    for start in (0, 1, 3, 1000, ROWS - 1):
        assert (together[start:] == Arrays(x[start:]).rows(wanted)).all()
        assert together[start] == Arrays(x[start : start + 1]).rows(wanted)[0]
