"""The exact (ε, δ) curve of Gaussian noise on one integer, bounded from above.

With losses rising in j, δ(ε) = Σ_{j>t} p(j)·(1 − e^(−(j−t)Δ/σ²)) where t = εσ²/Δ − Δ/2 and p(j) ∝ e^(−j²/2σ²).

Privacy:
    Claim: ``delta_rounded_up`` is at least δ(ε) for every shift up to Δ.
    Proof: a smaller shift d has δ = sup_c P(X ≥ c) − e^ε·P(X ≥ c + d), which grows with d. Up to σ = 2^13 the sum is
        taken term by term until the terms are below e^-60 of the first, and the rest is a geometric series. Beyond,
        Euler and Maclaurin give |Σ g(j) − ∫ g| ≤ V/12, V the variation of g' (|B₂| ≤ 1/6); g'' is two quadratics times
        two exponentials, so has at most 5 zeros, and V ≤ 13·sup|g'|. For t ≥ 0, sup|g'| ≤ 1.11·e^(−t²/2σ²)·Δ/σ²; for
        t < 0 it is at most Δ/σ² + 0.61/σ. The normaliser Σ e^(−j²/2σ²) is at least √(2πσ²) by Poisson summation, and
        at least 1 + 2e^(−1/2σ²).
    Needs: float exp, expm1 and erfcx within a few units in the last place; every float sum is enlarged by 2^-38, some
        thousand times its error, and tests compare it with 50-digit sums.
    Ref: Canonne, Kamath, Steinke 2020; Balle, Wang 2018.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.privacy.rounding import exp_up, float_down, float_up

_ONE = Fraction(1)
_WIDEST_SUM = 1 << 13
_SLACK = 1 + 2.0**-38
_CACHE = 4096


@lru_cache(maxsize=_CACHE)
def delta_rounded_up(sigma: Fraction, epsilon: Fraction, shift: int) -> Fraction:
    """At least the δ(ε) of discrete Gaussian noise for integers within ``shift`` of each other."""
    threshold = epsilon * sigma * sigma / shift - Fraction(shift, 2)
    if threshold < -40 * sigma:
        return _ONE
    exponent = max(threshold, Fraction(0)) ** 2 / (2 * sigma * sigma)
    if exponent > 4000:
        return exp_up(-exponent + 1)  # every bound below is at most this
    near = _sum_terms if sigma <= _WIDEST_SUM else _integrate
    return min(_ONE, near(sigma, shift, threshold, epsilon))


def _sum_terms(sigma: Fraction, shift: int, threshold: Fraction, epsilon: Fraction) -> Fraction:
    first = math.floor(threshold) + 1
    peak = max(first, 0)
    s = float(sigma)
    width = math.sqrt(peak * peak + 120 * s * s) - peak + 2
    j = np.arange(0, peak - first + math.ceil(width), dtype=np.float64)
    below = (first + j - peak) * (first + j + peak)  # j² − peak², exactly
    weights = np.exp(-below / (2 * s * s))
    beyond = j + float_up(first - threshold)
    gains = -np.expm1(-beyond * (shift / (s * s)))
    last = first + len(j)
    rest = math.exp(-(last - peak) * (last + peak) / (2 * s * s)) / -math.expm1(-(2 * last + 1) / (2 * s * s))
    total = (float(np.sum(weights * gains)) + rest) * _SLACK
    return Fraction(total) * exp_up(-Fraction(peak * peak) / (2 * sigma * sigma)) / _normaliser_down(sigma)


def _integrate(sigma: Fraction, shift: int, threshold: Fraction, epsilon: Fraction) -> Fraction:
    from scipy.special import erfcx

    ratio, spread = float(epsilon * sigma / shift), float(shift / sigma)
    low, high = (ratio - spread / 2) / math.sqrt(2), (ratio + spread / 2) / math.sqrt(2)
    if low < -20:
        return _ONE
    continuous = (erfcx(low) - erfcx(high)) / 2 + 2.0**-48 * erfcx(low)
    peak = max(threshold, Fraction(0))
    steepest = float(shift / sigma**2) * 1.11 + (0 if threshold >= 0 else 0.61 / float(sigma))
    correction = 13 / 12 * steepest / math.sqrt(2 * math.pi) / float(sigma)
    scaled = exp_up(-(peak**2) / (2 * sigma * sigma))
    # erfcx carries e^(−low²); for t ≥ 0 that is the factor e^(−t²/2σ²) itself.
    factor = scaled if threshold >= 0 else exp_up(-(Fraction(low) ** 2))
    return Fraction(continuous * _SLACK) * factor + Fraction(correction * _SLACK) * scaled


def _normaliser_down(sigma: Fraction) -> Fraction:
    s = float_down(sigma)
    below = math.sqrt(2 * math.pi) * s
    if s < 4:
        k = np.arange(1, 64)
        below = max(below, 1 + 2 * float(np.sum(np.exp(-k * k / (2 * s * s)))))
    return Fraction(below * (2 - _SLACK))
