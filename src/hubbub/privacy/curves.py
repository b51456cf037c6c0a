"""Costs of single laws in zCDP and in Rényi divergence: exact formulas, rounded towards privacy.

Everything here is about one pair of laws (P, Q) that dominates all neighbours of the mechanism named. ``rho`` functions
return rationals rounded up; ``rdp`` functions return float curves that include a bound on their own rounding error.

Privacy:
    Claim: D_α(P‖Q) ≤ α·ρ for every α > 1, with ρ = KL(P‖Q) as computed below, for binary and k-ary randomized response
        (k ≤ 6), Laplace and discrete Laplace noise; and ρ = ε²/8 for mechanisms of bounded range.
    Proof: for these pairs the supremum of D_α/α over α > 1 is its limit at α = 1, the KL divergence (cited). A k-ary
        response with k > 6 is a 6-ary one erased with a fixed probability, hence no worse. For small ε the formulas
        cancel, and ε²/2 (which bounds all of them, since tanh x ≤ x) takes over.
    Needs: nothing; tests compare D_α/α with ρ over a dense grid of orders at 50 digits.
    Ref: Harrison, Manurangsi 2025 (Laplace, discrete Laplace, response); Dong, Durfee, Rogers 2020 (ε²/8).
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hubbub.privacy.rounding import exp_down, exp_up, float_down, float_up, short_up

Curve = np.ndarray[Any, np.dtype[np.float64]]

_CACHE = 4096
_INNER_BITS = 240
_ROUNDING = 2.0**-44  # several hundred times the error of the few float operations below
_HIGHEST_SAMPLED = 1024
_SATURATED = 1000  # beyond this ε, e^-ε no longer shows in 64 bits


@lru_cache(maxsize=_CACHE)
def response_rho_rounded_up(epsilon: Fraction, categories: int = 2) -> Fraction:
    """zCDP of k-ary randomized response, ε(e^ε − 1)/(e^ε + k − 1); for k = 2, ε·tanh(ε/2), that of any ε-DP law."""
    if epsilon > _SATURATED:
        return epsilon
    shrink = exp_down(-epsilon, bits=_INNER_BITS)  # the formula falls as e^-ε grows
    exact = epsilon * (1 - shrink) / (1 + (min(categories, 6) - 1) * shrink)
    return short_up(min(exact, epsilon * epsilon / 2))


@lru_cache(maxsize=_CACHE)
def laplace_rho_rounded_up(epsilon: Fraction) -> Fraction:
    """zCDP of Laplace noise, ε + e^-ε − 1."""
    exact = epsilon + exp_up(-min(epsilon, Fraction(_SATURATED)), bits=_INNER_BITS) - 1
    return short_up(min(exact, response_rho_rounded_up(epsilon)))


@lru_cache(maxsize=_CACHE)
def discrete_laplace_rho_rounded_up(scale: Fraction, sensitivity: int) -> Fraction:
    """zCDP of discrete Laplace noise: (Δ − 2q(1 − q^Δ)/(1 − q²))/s with q = e^(−1/s).

    Between ε·tanh(ε/2) at Δ = 1, where it *is* randomized response, and ε + e^-ε − 1 as Δ and s grow together. The
    term taken off is 2q(1 + q + … + q^(Δ−1))/(1 + q), which rises with q: q is rounded down, and q^Δ up.
    """
    epsilon = sensitivity / scale
    anyone = response_rho_rounded_up(epsilon)
    q = exp_down(-1 / scale, bits=_INNER_BITS) if epsilon <= _SATURATED else Fraction(1)
    if sensitivity == 1 or q == 1:
        return anyone
    power = exp_up(-epsilon, bits=_INNER_BITS)
    exact = (sensitivity - 2 * q * (1 - power) / (1 - q * q)) / scale
    return short_up(min(exact, anyone))


def bounded_range_rho(epsilon: Fraction) -> Fraction:
    """zCDP of a mechanism whose loss lies in an interval of length ε, exactly ε²/8."""
    return epsilon * epsilon / 8


def response_rdp(orders: Curve, epsilon: Fraction, categories: int = 2) -> Curve:
    """Rényi curve of k-ary response, ln(1 + p(e^((α−1)ε) − 1)(1 − e^(−αε)))/(α − 1), p the chance of the truth."""
    e = float_up(epsilon)
    step = (orders - 1) * e
    log_truth = -np.log1p((categories - 1) * np.exp(-e))
    small = np.log1p(np.exp(log_truth) * np.expm1(np.minimum(step, 30)) * -np.expm1(-orders * e))
    large = np.logaddexp(0, step + log_truth)
    return _cap(np.where(step < 30, small, large) / (orders - 1), e)


def laplace_rdp(orders: Curve, epsilon: Fraction) -> Curve:
    """Rényi curve of Laplace noise: the loss of two points, of weights α and α − 1."""
    total = 2 * orders - 1
    return _two_points(orders, float_up(epsilon), orders / total, (orders - 1) / total)


def discrete_laplace_rdp(orders: Curve, scale: Fraction, sensitivity: int) -> Curve:
    """Rényi curve of discrete Laplace noise, summed in closed form over the three pieces of the line."""
    a = float_up(1 / scale)
    scatter = (1 + np.exp(-a)) * np.expm1(-(2 * orders - 1) * a)
    high = np.expm1(-2 * orders * a) / scatter
    low = np.exp(-a) * np.expm1(-(2 * orders - 2) * a) / scatter
    return _two_points(orders, float_up(sensitivity / scale), high, low)


def _two_points(orders: Curve, e: float, high: Curve, low: Curve) -> Curve:
    """ln(high·e^((α−1)ε) + low·e^(−αε))/(α − 1), for weights that sum to one."""
    step = (orders - 1) * e
    up, down = high * np.expm1(np.minimum(step, 30)), low * np.expm1(-orders * e)
    small = np.log1p(up + down + _ROUNDING * (up - down))
    with np.errstate(divide="ignore"):  # a weight that has vanished has the logarithm −∞
        large = np.logaddexp(np.log(high) + step, np.log(low) - orders * e)
    return _cap(np.where(step < 30, small, large) / (orders - 1), e)


def _cap(curve: Curve, epsilon: float) -> Curve:
    capped: Curve = np.minimum(curve * (1 + _ROUNDING), epsilon)
    return capped


def poisson_gaussian_rdp(orders: Curve, ratio: Fraction, rate: Fraction) -> Curve:
    """Rényi curve of a Gaussian of σ/Δ = ``ratio`` on a Poisson sample under add/remove, by dp_accounting."""
    import dp_accounting

    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    event = dp_accounting.PoissonSampledDpEvent(float_up(rate), dp_accounting.GaussianDpEvent(float_down(ratio)))
    return _by_dp_accounting(orders, event, relation)


def fixed_size_gaussian_rdp(orders: Curve, ratio: Fraction, size: int, population: int) -> Curve:
    """Rényi curve of a Gaussian of σ/Δ = ``ratio`` on a sample of fixed size under replace-one, by dp_accounting.

    Δ is the sensitivity to *replacing* a unit, which is what the bound's own Gaussian is a shift law for.
    """
    import dp_accounting

    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    gaussian = dp_accounting.GaussianDpEvent(float_down(ratio))
    event = dp_accounting.SampledWithoutReplacementDpEvent(population, size, gaussian)
    return _by_dp_accounting(orders, event, relation)


def _by_dp_accounting(orders: Curve, event: Any, relation: Any) -> Curve:
    """High orders cost a term each and are never best for samples: there the caller's own bound is left to stand."""
    from dp_accounting.rdp import RdpAccountant

    curve = np.full(orders.shape, np.inf)
    low = orders <= _HIGHEST_SAMPLED
    if low.any():
        accountant = RdpAccountant(list(orders[low]), relation)
        accountant.compose(event)
        curve[low] = accountant._rdp * (1 + _ROUNDING)
    return curve
