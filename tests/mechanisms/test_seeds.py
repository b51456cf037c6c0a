"""What the lectures say about these mechanisms, as numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hubbub.mechanisms import Geometric, RandomizedResponse
from hubbub.noise import laws
from hubbub.privacy.sensitivity import Neighbors
from tests.noise.sources import FALSE_ALARM

SIGMAS = float(stats.norm.isf(FALSE_ALARM / 2))
"""How many standard errors a mean may be off at the false-alarm rate: 4.9."""
COUNTIES, CELLS = 3143, 64_909


@pytest.mark.parametrize("scale", [Fraction(10**4), Fraction(10**6)])
@pytest.mark.parametrize("t", [0.5, 1, 3, 10])
def test_tail_is_exponential(scale: Fraction, t: float) -> None:
    """P(|Z| > t·λ) = exp(-t), in the limit of a fine grid."""
    found = 2 * laws.laplace_tail(math.floor(t * float(scale)) + 1, scale)
    assert found == pytest.approx(math.exp(-t), rel=3 / float(scale))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(20), Fraction(1000)])
@pytest.mark.parametrize("dimension", [1, 10, COUNTIES, CELLS])
def test_expected_maximum(scale: Fraction, dimension: int) -> None:
    """E max over d coordinates is at most λ(ln d + 1), and not far below it."""
    found = laws.laplace_mean_maximum(dimension, scale)
    bound = float(scale) * (math.log(dimension) + 1)
    assert found <= bound
    if scale >= 20 and dimension > 100:
        assert found >= float(scale) * math.log(dimension)


def test_counties() -> None:
    """3,143 counties at ε = 0.1 under replace-one: mean error 20, expected maximum at most 181."""
    mechanism = Geometric(epsilon=Fraction(1, 10), sensitivity=2, neighbors=Neighbors.REPLACE_ONE)
    assert mechanism.mean_error == pytest.approx(20, abs=0.02)
    assert 160 < laws.laplace_mean_maximum(COUNTIES, mechanism.scale) <= 181
    noise = np.abs(np.asarray(mechanism.draw(np.zeros((300, COUNTIES), dtype=np.int64))))
    error = mechanism.standard_deviation / math.sqrt(noise.size)
    assert abs(noise.mean() - mechanism.mean_error) < SIGMAS * error
    maxima = noise.max(axis=1)
    off = maxima.mean() - laws.laplace_mean_maximum(COUNTIES, mechanism.scale)
    assert abs(off) < SIGMAS * float(maxima.std()) / math.sqrt(300)


@pytest.mark.parametrize(
    ("epsilon", "mean", "maximum"),
    [(Fraction(1), 0.851, 11.66), (Fraction(1, 100), 100.0, 1166), (Fraction(1, 1000), 1000.0, 11658)],
)
def test_traffic(epsilon: Fraction, mean: float, maximum: float) -> None:
    """64,909 cells: the law's own averages and maxima, and draws against them."""
    mechanism = Geometric(epsilon=epsilon)
    assert mechanism.mean_error == pytest.approx(mean, rel=1e-4 if epsilon < 1 else 1e-3)
    expected = laws.laplace_mean_maximum(CELLS, mechanism.scale)
    assert expected == pytest.approx(maximum, rel=0.06 if epsilon == 1 else 2e-3)
    noise = np.abs(np.asarray(mechanism.draw(np.zeros((40, CELLS), dtype=np.int64))))
    error = mechanism.standard_deviation / math.sqrt(noise.size)
    assert abs(noise.mean() - mechanism.mean_error) < SIGMAS * error
    maxima = noise.max(axis=1)
    spread = max(float(maxima.std()), float(mechanism.scale))
    assert abs(maxima.mean() - expected) < SIGMAS * spread / math.sqrt(40)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_randomized_response_s_root_mean_square(epsilon: Fraction) -> None:
    """e^(ε/2) / (e^ε - 1) · √n, measured: 2,000 surveys of 1,000 people with a share of 0.25."""
    mechanism = RandomizedResponse(epsilon=epsilon)
    answers = np.tile(np.repeat([1, 0], [250, 750]), (2000, 1))
    seen = np.asarray(mechanism.draw(answers)).sum(axis=1)
    p = mechanism.honest_float
    estimates = (seen - 1000 * (1 - p)) / (2 * p - 1)
    e = float(epsilon)
    expected = math.exp(e / 2) / math.expm1(e) * math.sqrt(1000)
    chi = float(((estimates - 250) ** 2).sum()) / expected**2
    assert 2 * min(stats.chi2.cdf(chi, 2000), stats.chi2.sf(chi, 2000)) > FALSE_ALARM
    report = mechanism.estimate(np.asarray(mechanism.draw(answers[0])))
    assert report.standard_deviation.tolist() == pytest.approx([expected, expected])
