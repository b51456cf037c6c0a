"""The laws in closed form, for error bars and for checking: masses, tails, moments. No sampler uses these floats."""

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from hubbub.noise.exact import Exact, exactly, exp_minus

SUMMED_SIGMA = 1 << 12


def laplace_log_mass(k: int, scale: Fraction) -> float:
    """ln P(Z = k) = ln tanh(1/2s) - |k|/s for the discrete Laplace law: (1 - q) / (1 + q) = tanh(1/2s)."""
    rate = float(1 / scale)
    return math.log(math.tanh(rate / 2)) - abs(k) * rate


def laplace_tail(k: int, scale: Fraction) -> float:
    """P(Z >= k), for any integer k."""
    rate = float(1 / scale)
    if k <= 0:
        return 1 - laplace_tail(1 - k, scale)
    return math.exp(-k * rate) / (1 + math.exp(-rate))


def laplace_tail_exactly(k: int, scale: Fraction) -> Exact:
    """P(Z >= k) for k >= 1, as a number known to any precision: q^k / (1 + q)."""
    return exp_minus(k / scale) / (exactly(1) + exp_minus(1 / scale))


def laplace_quantile(beta: float, scale: Fraction) -> int:
    """The least t with P(|Z| > t) <= beta."""
    rate = float(1 / scale)
    guess = max(0, math.floor(-(math.log(beta) + math.log1p(math.exp(-rate)) - math.log(2)) / rate) - 2)
    while 2 * laplace_tail(guess + 1, scale) > beta:
        guess += 1
    return guess


def laplace_mean_error(scale: Fraction) -> float:
    """E|Z| = 2q / (1 - q²) = 1 / sinh(1/s)."""
    return 1 / math.sinh(min(float(1 / scale), 700.0))


def laplace_variance(scale: Fraction) -> float:
    """Var Z = 2q / (1 - q)² = 1 / (2 sinh²(1/2s))."""
    return 1 / (2 * math.sinh(min(float(1 / scale) / 2, 350.0)) ** 2)


def laplace_mean_maximum(count: int, scale: Fraction) -> float:
    """E max |Z_i| over ``count`` independent samples: the sum over t >= 0 of 1 - (1 - P(|Z| > t))^count."""
    rate = float(1 / scale)
    steps = math.ceil((math.log(count) + 45) / rate) + 2
    tails = 2 * np.exp(-rate * np.arange(1, steps + 1)) / (1 + math.exp(-rate))
    return float(-np.expm1(count * np.log1p(-tails)).sum())


def gaussian_log_mass(k: int, sigma: Fraction) -> float:
    """ln P(X = k) for the discrete Gaussian law."""
    return -(k * k) / float(2 * sigma * sigma) - _gaussian_log_total(sigma)


def gaussian_tail(k: int, sigma: Fraction) -> float:
    """P(X >= k): summed for moderate sigma, the normal law with half a step's correction beyond (within 1e-8 there)."""
    if k <= 0:
        return 1 - gaussian_tail(1 - k, sigma)
    if sigma > SUMMED_SIGMA:
        return _upper((k - 0.5) / float(sigma))
    steps = np.arange(k, k + math.ceil(12 * sigma) + 12, dtype=np.float64)
    return float(np.exp(-(steps**2) / float(2 * sigma * sigma) - _gaussian_log_total(sigma)).sum())


def _upper(point: float) -> float:
    """P(N >= point) for the normal law."""
    return math.erfc(point / math.sqrt(2)) / 2


def gaussian_tail_rounded_up(k: int, sigma: Fraction) -> float:
    """At least P(X >= k): the sum with room for rounding, or the normal law's P(N >= k - 1), which is above it.

    Ref: Canonne, Kamath, Steinke 2020, proposition 25, for the comparison with the normal law.
    """
    if k <= 0:
        return 1.0
    tail = gaussian_tail(k, sigma) if sigma <= SUMMED_SIGMA else _upper((k - 1) / float(sigma))
    return tail * (1 + 1e-9)


def gaussian_quantile(beta: float, sigma: Fraction) -> int:
    """A t with P(|X| > t) <= beta: the least one for moderate sigma, at most one more beyond."""
    guess = max(0, math.floor(-NormalDist().inv_cdf(beta / 2) * float(sigma)) - 1)
    while 2 * gaussian_tail(guess + 1, sigma) > beta:
        guess += 1
    return int(guess)


def gaussian_variance(sigma: Fraction) -> float:
    """Var X: below sigma², and equal to it but for 1e-30 from sigma = 2 on."""
    if sigma > 2:
        return float(sigma * sigma)
    steps = np.arange(1, 64, dtype=np.float64)
    mass = np.exp(-(steps**2) / float(2 * sigma * sigma) - _gaussian_log_total(sigma))
    return float(2 * (steps**2 * mass).sum())


@lru_cache(maxsize=256)
def _gaussian_log_total(sigma: Fraction) -> float:
    """ln Σ exp(-k²/2σ²), by the sum itself or by its Poisson transform, whichever converges at once."""
    wide = float(sigma)
    steps = np.arange(1, 40, dtype=np.float64)
    if wide < 1:
        with np.errstate(under="ignore"):
            return float(np.log1p(2 * np.exp(-(steps**2) / (2 * wide * wide)).sum()))
    correction = 2 * np.exp(-2 * math.pi**2 * wide**2 * steps**2).sum()
    return math.log(math.sqrt(2 * math.pi) * wide) + float(np.log1p(correction))
