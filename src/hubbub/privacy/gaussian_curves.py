"""The (ε, δ) curves of Gaussian noise on integers: exact for one, and within a hair for vectors.

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

Integer noise is continuous noise rounded by chance: draw W from N(x, σ² − τ²), then an integer from the discrete
Gaussian of parameter τ about W. The result is the discrete Gaussian of parameter σ about x, but for a factor that is
nearly 1 already at τ = 3/4. Rounding cannot add to the loss, so integers lose about what σ² − τ² does on reals.

Privacy:
    Claim: ``vector_delta_rounded_up`` is at least the δ(ε) of independent discrete Gaussian noise on the coordinates of
        integer vectors that differ in at most ``coordinates`` places and by at most Δ in L2.
    Proof: let φ_s be the density of N(0, s²), s² = σ² − τ², and q = e^(−2π²τ²). By Poisson summation N(w) = Σ_j
        e^(−(j−w)²/2τ²) is √2π·τ·(1 + z(w)), z(w) = 2Σ_{n≥1} q^(n²)·cos 2πnw, and |z| ≤ κ = 2q/(1 − q³) as n² ≥ 3n − 2.
        One coordinate: W about x, rounded to k with chance e^(−(k−w)²/2τ²)/N(w), has the law R_x(k) = ∫ φ_s(w − x)·
        φ_τ(k − w)/(1 + z(w)) dw. The product of the densities is φ_σ(k − x) times a normal density of w of variance v =
        s²τ²/σ², so R_x(k) = φ_σ(k − x)·E[1/(1 + z)] under it. There 1/(1 + z) = 1 − z + z²/(1 + z), its last term is
        between 0 and κ²/(1 − κ), and |E z| ≤ 2Σ (qr)^(n²) ≤ 2qr/(1 − (qr)³), r = e^(−2π²v), since E cos 2πnw is r^(n²)
        times a cosine. With β the sum of the two bounds, R_x is within φ_σ(k − x)·(1 ± β). The noise itself has D_x(k)
        = φ_σ(k − x)/(1 + κ') at integer x, κ' ≥ 0 being z(0) for σ in place of τ. So, at every k, R_x/(1 + β) ≤ (1 +
        κ')·D_x ≤ R_x/(1 − β).
        Vectors: a coordinate in which they agree has the same law on both sides, independent of the others, and may be
        left out. On the t that differ, multiply: with c = (1 + κ')^−t and for every event S,
        D_x(S) ≤ c(1 − β)^−t·R_x(S) and c·R_x'(S) ≤ (1 + β)^t·D_x'(S). R is made of N(x, s²I) without another look at
        x, so R_x(S) ≤ e^a·R_x'(S) + δ_s(a) for every a, δ_s the continuous Gaussian's curve. Together, as c ≤ 1,
        D_x(S) ≤ e^a·((1 + β)/(1 − β))^t·D_x'(S) + (1 − β)^−t·δ_s(a). For η = 2tβ/(1 − β²) ≥ t·ln((1 + β)/(1 − β)) and
        a = ε − η this is δ(ε) ≤ e^η·δ_s(ε − η). The other direction is the same with x and x' swapped. Nothing was cut
        off, so no tail is left over; it holds for every τ < σ, and a poor one only makes it looser.
        δ_s(a) = Φ(μ/2 − a/μ) − e^a·Φ(−μ/2 − a/μ), μ = Δ/s, grows with μ (its slope is a density) and falls with a.
        Integer vectors within Δ differ in at most ⌊Δ²⌋ places, whatever ``coordinates`` says.
    Needs: float erfcx within a few units in the last place: for x ≥ −6, rounding x moves erfcx(x) by less than 2^-45 of
        itself, and the difference of two is enlarged by 2^-44 of the larger. All else is rational.
    Ref: Micciancio, Regev 2007 and Peikert 2010 for rounding by chance; Balle, Wang 2018 for the continuous curve.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.privacy.rounding import exp_up, float_down, float_up, short_up, sqrt_up

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


_TWO_PI_SQUARED_DOWN = Fraction(19739208, 10**6)
_FARTHEST = Fraction(128)
_GRAIN = 1024


@lru_cache(maxsize=_CACHE)
def vector_delta_rounded_up(
    sigma: Fraction, epsilon: Fraction, sensitivity_squared: Fraction, coordinates: int | None = None
) -> Fraction:
    """Bound the δ(ε) of discrete Gaussian noise on integer vectors within Δ that differ in at most
    ``coordinates`` coordinates.
    """
    moved = most_coordinates(sensitivity_squared, coordinates)
    blur = _blur(sigma, epsilon, moved)
    extra = _extra_rounded_up(sigma, blur, moved)
    if extra >= min(epsilon, _ONE):
        return _ONE
    spread = sqrt_up(sensitivity_squared / (sigma * sigma - blur))
    return min(_ONE, exp_up(extra) * continuous_delta_rounded_up(spread, epsilon - extra))


def most_coordinates(sensitivity_squared: Fraction, coordinates: int | None) -> int:
    """In how many coordinates integer vectors within Δ can differ: each takes at least 1 of Δ²."""
    most = max(1, math.floor(sensitivity_squared))
    return most if coordinates is None else min(most, coordinates)


def continuous_delta_rounded_up(spread: Fraction, epsilon: Fraction) -> Fraction:
    """At least the δ(ε) of Gaussian noise on reals that are ``spread`` standard deviations apart."""
    from scipy.special import erfcx

    near = epsilon / spread - spread / 2
    if near < -8:
        return _ONE
    start = min(near, _FARTHEST)  # what follows falls as it grows
    low, high = float_down(start) / math.sqrt(2), float_up(near + spread) / math.sqrt(2)
    gap = (erfcx(low) - erfcx(high)) / 2 + 2.0**-44 * erfcx(low)
    return min(_ONE, exp_up(-start * start / 2) * Fraction(float(gap)))


def _blur(sigma: Fraction, epsilon: Fraction, moved: int) -> Fraction:
    """A good τ²: there the noise that it takes away and the ε that it leaves over cost about the least together."""
    wanted = (math.log(96 * math.pi**2) + _log(moved * sigma * sigma / epsilon)) / (4 * math.pi**2)
    return min(Fraction(max(1, math.ceil(wanted * _GRAIN)), _GRAIN), sigma * sigma / 2)


def _extra_rounded_up(sigma: Fraction, blur: Fraction, moved: int) -> Fraction:
    """η, the ε that rounding by chance with τ² = ``blur`` leaves over; 1 where it is that much or more."""
    q = exp_up(-_TWO_PI_SQUARED_DOWN * blur)
    if q > Fraction(1, 5):
        return _ONE
    both = exp_up(-_TWO_PI_SQUARED_DOWN * blur * (2 - blur / (sigma * sigma)))
    most = short_up(2 * q / (1 - q**3))
    miss = short_up(2 * both / (1 - both**3) + most * most / (1 - most))
    return min(_ONE, short_up(2 * moved * miss / (1 - miss * miss)))  # miss is below 7/10, as q and qr are below 1/5


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)
