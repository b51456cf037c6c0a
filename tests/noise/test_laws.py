"""The closed forms that error bars come from, against sums at high precision."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import special

from hubbub.noise import laws

SCALES = [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(40)]
SIGMAS = [Fraction(1, 3), Fraction(7, 10), Fraction(1), Fraction(21, 20), Fraction(2), Fraction(9, 4), Fraction(50)]


def real(x: Fraction) -> Any:
    return mpf(x.numerator) / x.denominator


def laplace(scale: Fraction) -> dict[int, Any]:
    q = mp.exp(-1 / real(scale))
    reach = math.ceil(60 * scale) + 5
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}


def gaussian(sigma: Fraction) -> dict[int, Any]:
    reach = math.ceil(14 * sigma) + 14
    weights = {k: mp.exp(-mpf(k * k) / (2 * real(sigma) ** 2)) for k in range(-reach, reach + 1)}
    total = mp.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def tail(law: dict[int, Any], k: int) -> Any:
    return mp.fsum(mass for value, mass in law.items() if value >= k)


@pytest.mark.parametrize("scale", SCALES)
def test_laplace(scale: Fraction) -> None:
    law = laplace(scale)
    for k in (-7, -1, 0, 1, 2, 9):
        assert laws.laplace_log_mass(k, scale) == pytest.approx(float(mp.log(law[k])), rel=1e-12, abs=1e-13)
        assert laws.laplace_tail(k, scale) == pytest.approx(float(tail(law, k)), rel=1e-12)
    for k in (1, 2, 9):
        low, high = laws.laplace_tail_exactly(k, scale).bounds(200)
        assert high - low <= 4
        assert low <= tail(law, k) * mpf(2) ** 200 * (1 + mpf(10) ** -15)
        assert high >= tail(law, k) * mpf(2) ** 200 * (1 - mpf(10) ** -15)
    assert laws.laplace_mean_error(scale) == pytest.approx(
        float(mp.fsum(abs(k) * p for k, p in law.items())), rel=1e-12
    )
    assert laws.laplace_variance(scale) == pytest.approx(float(mp.fsum(k * k * p for k, p in law.items())), rel=1e-12)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("beta", [0.9, 0.5, 0.05, 1e-3, 1e-9])
def test_laplace_quantile_is_the_least(scale: Fraction, beta: float) -> None:
    t = laws.laplace_quantile(beta, scale)
    assert t >= 0
    assert 2 * laws.laplace_tail(t + 1, scale) <= beta
    assert t == 0 or 2 * laws.laplace_tail(t, scale) > beta


@pytest.mark.parametrize("t", [0, 1, 5])
def test_quantiles_take_a_beta_that_is_met_exactly(t: int) -> None:
    for scale in (Fraction(1), Fraction(5, 2)):
        assert laws.laplace_quantile(2 * laws.laplace_tail(t + 1, scale), scale) == t
    for sigma in (Fraction(1), Fraction(9, 4), Fraction(10**6)):
        assert laws.gaussian_quantile(2 * laws.gaussian_tail(t + 1, sigma), sigma) == t


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("count", [1, 2, 1000])
def test_laplace_mean_maximum(scale: Fraction, count: int) -> None:
    law = laplace(scale)
    reach = max(law)
    inside = law[0]
    expected = mpf(0)
    for t in range(reach):
        expected += 1 - inside**count
        inside += 2 * law[t + 1]
    assert laws.laplace_mean_maximum(count, scale) == pytest.approx(float(expected), rel=1e-9)
    assert laws.laplace_mean_maximum(1, scale) == pytest.approx(laws.laplace_mean_error(scale), rel=1e-9)


def test_tiny_scales_do_not_overflow() -> None:
    tiny = Fraction(1, 1 << 20)
    assert laws.laplace_mean_error(tiny) == pytest.approx(0, abs=1e-300)
    assert laws.laplace_variance(tiny) == pytest.approx(0, abs=1e-300)
    assert laws.laplace_log_mass(0, tiny) == 0
    assert laws.laplace_log_mass(1, tiny) == -(1 << 20)
    assert laws.gaussian_log_mass(0, tiny) == 0
    assert laws.gaussian_variance(tiny) == 0


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian(sigma: Fraction) -> None:
    law = gaussian(sigma)
    for k in (-4, -1, 0, 1, 3):
        assert laws.gaussian_log_mass(k, sigma) == pytest.approx(float(mp.log(law[k])), rel=1e-11, abs=1e-12)
        assert laws.gaussian_tail(k, sigma) == pytest.approx(float(tail(law, k)), rel=1e-11)
    variance = float(mp.fsum(k * k * p for k, p in law.items()))
    assert laws.gaussian_variance(sigma) == pytest.approx(variance, rel=1e-11)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("beta", [0.9, 0.5, 0.05, 1e-3, 1e-9])
def test_gaussian_quantile_is_the_least(sigma: Fraction, beta: float) -> None:
    t = laws.gaussian_quantile(beta, sigma)
    assert t >= 0
    assert 2 * laws.gaussian_tail(t + 1, sigma) <= beta
    assert t == 0 or 2 * laws.gaussian_tail(t, sigma) > beta


@pytest.mark.parametrize("sigma", [*SIGMAS, Fraction(4096), Fraction(4097), Fraction(10**6)])
@pytest.mark.parametrize("in_sigmas", [Fraction(1, 10), Fraction(1), Fraction(4), Fraction(8)])
def test_gaussian_tail_rounded_up_is_above_and_close(sigma: Fraction, in_sigmas: Fraction) -> None:
    k = max(1, round(in_sigmas * sigma))
    bound = laws.gaussian_tail_rounded_up(k, sigma)
    assert bound <= 1
    if sigma <= 100:
        truth = float(tail(gaussian(sigma), k))
        assert truth * (1 + 1e-11) < bound <= truth * (1 + 1e-8)
    else:
        normal = float(special.ndtr(-(k - 0.5) / float(sigma)))  # the discrete tail, within 1e-6
        assert normal * (1 - 1e-6) < bound <= normal * 1.01


def test_gaussian_tail_at_and_below_zero() -> None:
    for sigma in (Fraction(1), Fraction(50), Fraction(10**5)):
        assert laws.gaussian_tail(-(10**7), sigma) == 1
        assert laws.gaussian_tail_rounded_up(0, sigma) == 1
        assert laws.gaussian_tail_rounded_up(-5, sigma) == 1
        assert laws.gaussian_tail(-2, sigma) == pytest.approx(1 - laws.gaussian_tail(3, sigma))
    assert laws.gaussian_tail(1, Fraction(10**5)) == pytest.approx(0.5, abs=1e-5)
    assert laws.gaussian_tail(10**5, Fraction(10**5)) == pytest.approx(0.158655, abs=1e-5)


@pytest.mark.parametrize("sigma", [4097, 10**6])
@pytest.mark.parametrize("in_sigmas", [0, 1, 4])
def test_gaussian_tails_beyond_the_sum_are_bounded_by_the_normal_law_one_lower(sigma: int, in_sigmas: int) -> None:
    """That is what is proven; the normal law half a step lower is closer, and no bound."""
    k = 1 + in_sigmas * sigma
    with mp.workdps(30):
        proven = mp.erfc(mpf(k - 1) / sigma / mp.sqrt(2)) / 2
        assert proven <= laws.gaussian_tail_rounded_up(k, Fraction(sigma)) <= proven * (1 + mpf(10) ** -8)


@pytest.mark.parametrize("in_sigmas", [1, 4, 8])
def test_gaussian_tail_is_summed_up_to_the_limit(in_sigmas: int) -> None:
    """There the normal law is already off by up to 2e-7 of the tail, more than the room left for rounding up."""
    sigma = 4096
    k = in_sigmas * sigma
    steps = np.arange(k, k + 15 * sigma, dtype=np.float64)
    truth = math.fsum(np.exp(-(steps**2) / (2 * sigma**2))) / (math.sqrt(2 * math.pi) * sigma)
    assert laws.gaussian_tail(k, Fraction(sigma)) == pytest.approx(truth, rel=1e-10)
    assert truth * (1 + 1e-10) < laws.gaussian_tail_rounded_up(k, Fraction(sigma)) < truth * (1 + 1e-8)
    beyond = Fraction(sigma + 1)
    assert laws.gaussian_tail(k, beyond) == pytest.approx(special.ndtr(-(k - 0.5) / float(beyond)), rel=1e-13)
