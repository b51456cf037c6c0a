"""The (ε, δ) curve of Gaussian noise on integer vectors, within a hair of the continuous one.

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

from hubbub.privacy.rounding import exp_up, float_down, float_up, short_up, sqrt_up

_ONE = Fraction(1)
_TWO_PI_SQUARED_DOWN = Fraction(19739208, 10**6)
_FARTHEST = Fraction(128)
_GRAIN = 1024
_CACHE = 4096


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
