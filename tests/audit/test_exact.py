"""Exact losses against closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

from hubbub.audit.exact import Laws, zcdp_delta


def response(epsilon: float) -> Laws:
    truth, lie = epsilon - math.log1p(math.exp(epsilon)), -math.log1p(math.exp(epsilon))
    return Laws(first=np.array([truth, lie]), second=np.array([lie, truth]))


def gaussian(sigma: float) -> Laws:
    """A fine grid of a normal law: the hockey-stick and Rényi divergences of the continuous one, nearly."""
    grid = np.linspace(-12, 13, 50_001)
    first, second = (stats.norm.logpdf(grid, centre, sigma) + math.log(grid[1] - grid[0]) for centre in (0, 1))
    return Laws(first=first, second=second)


def test_randomized_response() -> None:
    laws = response(1.25)
    assert laws.loss() == pytest.approx(1.25, abs=1e-12)
    assert laws.totals == pytest.approx((1.0, 1.0))
    p, q = math.exp(laws.first[0]), math.exp(laws.second[0])
    assert laws.delta(0.5) == pytest.approx(p - math.exp(0.5) * q)
    assert laws.delta(1.25) == pytest.approx(0.0, abs=1e-15)
    assert laws.epsilon(0.0) == pytest.approx(1.25)
    assert laws.epsilon(laws.delta(0.7)) == pytest.approx(0.7, abs=1e-9)
    assert laws.epsilon(0.99) == 0.0
    assert laws.renyi(2.0) == pytest.approx(math.log(p**2 / q + q**2 / p))


def test_the_gaussian_curve() -> None:
    laws = gaussian(1.0)
    assert laws.delta(1.0) == pytest.approx(stats.norm.cdf(-0.5) - math.e * stats.norm.cdf(-1.5), abs=1e-6)
    for order in (1.5, 2.0, 8.0):
        assert laws.renyi(order) == pytest.approx(order / 2, rel=1e-6)


def test_the_larger_of_both_orders_is_what_counts() -> None:
    laws = Laws(first=np.log([0.5, 0.5]), second=np.log([0.9, 0.1]))
    swapped = Laws(first=laws.second, second=laws.first)
    for each in (laws, swapped):
        assert each.loss() == pytest.approx(math.log(5))
        assert each.delta(1.0) == pytest.approx(0.5 - 0.1 * math.e)
        assert each.renyi(2.0) == pytest.approx(math.log(0.25 / 0.9 + 0.25 / 0.1))
        assert each.standard_errors(epsilon=1.0, delta=0.0, bounds="epsilon") == pytest.approx(
            (math.log(5) - 1) / math.sqrt(1 + 9)
        )
        assert each.standard_errors(epsilon=1.0, delta=0.1, bounds="delta") == pytest.approx(
            (0.4 - 0.1 * math.e) / math.sqrt(0.25 + math.e**2 * 0.09)
        )


def test_an_output_that_only_one_input_can_give_is_an_infinite_loss_and_a_finite_delta() -> None:
    with np.errstate(divide="ignore"):
        laws = Laws(first=np.log([0.05, 0.95, 0.0]), second=np.log([0.0, 1.0, 0.0]))
    assert laws.loss() == math.inf
    assert laws.renyi(2.0) == math.inf
    assert laws.delta(3.0) == pytest.approx(0.05)
    assert laws.epsilon(0.04) == math.inf
    assert laws.epsilon(0.06) == 0.0


def test_identical_laws_lose_nothing() -> None:
    laws = Laws(first=np.log([0.5, 0.5]), second=np.log([0.5, 0.5]))
    assert laws.loss() == laws.delta(0.0) == laws.epsilon(0.1) == 0.0
    assert laws.standard_errors(epsilon=0.1, delta=0.0, bounds="epsilon") == 0.0


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_the_conversion_of_zcdp_covers_the_gaussian_and_not_by_miles(epsilon: float) -> None:
    exact = gaussian(1.0).delta(epsilon)
    assert exact <= zcdp_delta(0.5, epsilon) <= 5 * exact
    assert zcdp_delta(0.4, epsilon) < zcdp_delta(0.5, epsilon)
