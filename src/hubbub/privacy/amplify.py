"""Amplification by secrecy of the sample or of the sender: numbers only; the events are in ``sampling``.

Privacy:
    Claim: sampling each unit with probability q, or m of n units, turns (ε, δ) into (ln(1 + q(e^ε − 1)), qδ), q = m/n;
        shuffling n reports that are each ε₀-DP gives (ε, δ) for the pairs returned by ``shuffled_delta_rounded_up``.
    Proof: sampling: the two laws are mixtures that share the part without the unit (advanced joint convexity).
        Shuffling: R(x_i) ≥ e^-ε₀·(R(x) + R(x'))/2 for every other device, and R(x), R(x') are mixtures of Q₀, Q₁ with
        weights e^ε₀ : 1 and 1 : e^ε₀, where Q₀ + Q₁ = R(x) + R(x'). So C ~ Binomial(n − 1, e^-ε₀) devices send a fair
        draw of Q₀, Q₁, and the multiset is a post-processing of how many of the C + 1 are Q₀. Given C this is two
        binomials, whose likelihood ratio rises; another clone is post-processing, so δ falls with C, and blocks of C
        are bounded by their least. The tails of C that are not summed are added in full.
    Needs: add/remove for Poisson samples, replace-one with public n for fixed sizes, local reports for shuffles; the
        sample and the order are ours and never shown. Binomial tails from scipy are taken to be right to 2^-36.
    Ref: Balle, Barthe, Gaboardi 2018; Feldman, McMillan, Talwar 2021.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hubbub.errors import AccountingError
from hubbub.parameters import Real, between, positive, whole
from hubbub.privacy.curves import Curve
from hubbub.privacy.loss import Approx
from hubbub.privacy.rounding import exp_up, float_down, float_up, log_up
from hubbub.privacy.sensitivity import Neighbors

_CACHE = 1024
_ROUNDING = 2.0**-36
_BLOCKS = 2048


def poisson(*, epsilon: Real, delta: Real = 0, rate: Real, neighbors: Neighbors) -> Approx:
    """(ε, δ) on a secret sample into which each unit comes with probability ``rate``; add/remove only."""
    _only(Neighbors.ADD_REMOVE, neighbors, "Poisson sampling")
    return _amplify(epsilon, delta, between("rate", rate, 0, 1, low_open=True))


def fixed_size(*, epsilon: Real, delta: Real = 0, size: int, population: int, neighbors: Neighbors) -> Approx:
    """(ε, δ) on a secret sample of ``size`` out of a public ``population``; replace-one only."""
    _only(Neighbors.REPLACE_ONE, neighbors, "Sampling of a fixed size")
    units = whole("population", population, least=1)
    return _amplify(epsilon, delta, Fraction(whole("size", size, least=1, most=units), units))


def shuffle(*, epsilon: Real, reports: int, delta: Real, neighbors: Neighbors) -> Approx:
    """(ε, δ) of shuffled reports that are each ε-DP by themselves; for one device's input replaced."""
    _only(Neighbors.LOCAL, neighbors, "Shuffling")
    local, mass = positive("epsilon", epsilon), between("delta", delta, 0, 1, high_open=True)
    return Approx(epsilon=shuffled_epsilon_rounded_up(local, whole("reports", reports, least=1), mass), delta=mass)


def _only(needed: Neighbors, got: Neighbors, what: str) -> None:
    if got is not needed:
        raise AccountingError(f"{what} is only proven for {needed} neighbours. Got {got}.", needed=needed, got=got)


def _amplify(epsilon: Real, delta: Real, rate: Fraction) -> Approx:
    mass = between("delta", delta, 0, 1)
    return Approx(epsilon=sampled_epsilon_rounded_up(positive("epsilon", epsilon), rate), delta=rate * mass)


@lru_cache(maxsize=_CACHE)
def sampled_epsilon_rounded_up(epsilon: Fraction, rate: Fraction) -> Fraction:
    """At least ln(1 + q(e^ε − 1)), never above ε."""
    if rate == 1 or epsilon > 1000:
        return epsilon
    return min(epsilon, log_up(1 + rate * (exp_up(epsilon, bits=240) - 1)))


@lru_cache(maxsize=_CACHE)
def shuffled_epsilon_rounded_up(local: Fraction, reports: int, delta: Fraction) -> Fraction:
    """An ε, never above the local one, at which shuffled reports are (ε, δ)-DP."""
    if delta == 0 or local > 60:
        return local
    low, high = 0.0, float_up(local)
    if shuffled_delta_rounded_up(local, reports, Fraction(0)) <= delta:
        return Fraction(0)
    while high - low > 2.0**-20 * high:
        middle = (low + high) / 2
        enough = shuffled_delta_rounded_up(local, reports, Fraction(middle)) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return min(local, Fraction(high))


def shuffled_delta_rounded_up(local: Fraction, reports: int, epsilon: Fraction) -> Fraction:
    """At least the δ at ε of ``reports`` shuffled reports that are each ``local``-DP."""
    from scipy.stats import binom

    if epsilon >= local:
        return Fraction(0)
    e0, e, others = float_up(local), float_down(epsilon), reports - 1
    clone = float_down(1 / exp_up(local))
    middle, spread = others * clone, 40 * math.sqrt(others * clone) + 1600
    first, last = max(0, math.floor(middle - spread)), min(others, math.ceil(middle + spread))
    step = max(1, (last - first) // _BLOCKS)
    clones = np.arange(first, last + 1, step)
    upto = np.minimum(clones + step - 1, last)
    below, above = binom.cdf(clones - 1, others, clone), binom.sf(upto, others, clone)
    from_below = binom.cdf(upto, others, clone) - below
    from_above = binom.sf(clones - 1, others, clone) - above
    mass = np.maximum(0, np.where(clones > middle, from_above, from_below))
    tails = float(below[0] + above[-1])
    total = float(np.sum(mass * _hidden_among(clones, e0, e))) * (1 + 2.0**-30) + tails * 2
    return min(Fraction(1), Fraction(total))


def shuffled_epsilon_closed_form(*, epsilon: Real, reports: int, delta: Real) -> float:
    """The closed-form bound of the same theorem, for comparison: looser, and only for ε₀ ≤ ln(n / 16 ln(2/δ))."""
    e0, d = float(positive("epsilon", epsilon)), float(between("delta", delta, 0, 1, low_open=True, high_open=True))
    n = whole("reports", reports, least=1)
    if e0 > math.log(n / (16 * math.log(2 / d))):
        raise AccountingError(
            "The closed form needs ε₀ at most ln(n / (16 ln(2/δ))).", epsilon=epsilon, reports=reports
        )
    root = 8 * math.sqrt(math.exp(e0) * math.log(4 / d) / n)
    return math.log1p(math.expm1(e0) / (math.exp(e0) + 1) * (root + 8 * math.exp(e0) / n))


def _hidden_among(clones: np.ndarray[Any, Any], e0: float, e: float) -> Curve:
    """Return δ at ε of one report among ``clones`` clones: the upper tail where the likelihood ratio passes e^ε."""
    from scipy.stats import binom

    shown = 1 / (1 + math.exp(-e0))
    hidden = 1 - shown
    gain, price = shown - math.exp(e) * hidden, math.exp(e) * shown - hidden
    least = np.floor((clones + 1) * (price / (gain + price))) + 1
    with_own, without = gain * binom.sf(least - 2, clones, 0.5), price * binom.sf(least - 1, clones, 0.5)
    bounded: Curve = np.clip(with_own - without + _ROUNDING * with_own, 0, 1)
    return bounded
