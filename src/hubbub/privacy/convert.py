"""From one currency of loss to another: zCDP and Rényi curves into (ε, δ), rounded towards privacy.

For every order α > 1 a divergence D_α bounds δ(ε) ≤ exp((α−1)(D_α − ε + ln(1 − 1/α)))/α. Each order gives a valid
bound, so the best one is looked for in floats and the bound at that order is then computed from exact rationals with
every rounding in the direction that the name says.

Privacy:
    Claim: a ρ-zCDP law is (ε, δ)-DP for the values returned; ``rho_rounded_down`` returns a ρ that gives (ε, δ).
    Proof: proposition 12 of the reference at the order chosen, D_α ≤ αρ.
    Needs: nothing; a poor order only makes the bound looser.
    Ref: Canonne, Kamath, Steinke 2020; Asoodeh, Liao, Calmon, Kosut, Sankar 2020.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.errors import AccountingError
from hubbub.privacy.curves import Curve
from hubbub.privacy.rounding import exp_up, log_down, log_up, short_down, short_up

_CACHE = 4096
_ONE = Fraction(1)
_SLACK = 1 + 2.0**-40
_GRID = np.linspace(-30, 60, 361)


@lru_cache(maxsize=_CACHE)
def epsilon_of_rho_rounded_up(rho: Fraction, delta: Fraction) -> Fraction:
    """An ε ≥ 0, close to the least, such that every ρ-zCDP law is (ε, δ)-DP."""
    if rho == 0:
        return Fraction(0)
    r, log_delta = _float(rho), _log(delta)
    order = _best_order(lambda a: r * a + np.log1p(-1 / a) - (log_delta + np.log(a)) / (a - 1))
    exact = rho * order - log_down(order / (order - 1)) + _log_inverse_up(delta * order) / (order - 1)
    return short_up(max(Fraction(0), exact))


@lru_cache(maxsize=_CACHE)
def delta_of_rho_rounded_up(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A δ ≤ 1, close to the least, such that every ρ-zCDP law is (ε, δ)-DP."""
    if rho == 0:
        return Fraction(0)
    r, e = _float(rho), _float(epsilon)
    order = _best_order(lambda a: (a - 1) * (r * a - e + np.log1p(-1 / a)) - np.log(a))
    exponent = (order - 1) * (rho * order - epsilon - log_down(order / (order - 1))) - log_down(order)
    return _ONE if exponent >= 0 else exp_up(exponent)


@lru_cache(maxsize=_CACHE)
def rho_rounded_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A ρ, close to the greatest, whose conversion gives (ε, δ)."""
    e, log_delta = _float(epsilon), _log(delta)
    order = _best_order(lambda a: -(e - np.log1p(-1 / a) + (log_delta + np.log(a)) / (a - 1)) / a)
    exact = (epsilon + log_down(order / (order - 1)) - _log_inverse_up(delta * order) / (order - 1)) / order
    if exact <= 0:
        raise AccountingError("No ρ is small enough for this ε and δ.", epsilon=epsilon, delta=delta)
    return short_down(exact)


def epsilon_of_curve_rounded_up(orders: Curve, curve: Curve, delta: Fraction) -> float:
    """The least ε over the orders of a Rényi curve; infinite where none gives one."""
    bounds = curve * _SLACK + np.log1p(-1 / orders) - (_log(delta) + np.log(orders)) / (orders - 1)
    magnitudes = curve + np.abs(_log(delta)) / (orders - 1) + 1
    return max(0.0, float(np.min(bounds + magnitudes * 2.0**-44)))


def delta_of_curve_rounded_up(orders: Curve, curve: Curve, epsilon: Fraction) -> float:
    """The least δ over the orders of a Rényi curve, at most 1."""
    exponents = (orders - 1) * (curve * _SLACK - _float(epsilon) + np.log1p(-1 / orders)) - np.log(orders)
    return float(np.exp(min(0.0, np.min(exponents) + 2.0**-40 * (1 + abs(np.min(exponents))))))


def _log_inverse_up(x: Fraction) -> Fraction:
    """At least ln(1/x)."""
    return log_up(1 / x) if x <= 1 else -log_down(x)


def _best_order(objective: Callable[[Curve], Curve]) -> Fraction:
    """Return the order α = 1 + e^t at which the objective is about least: a coarse grid, then two finer ones in it."""
    points = _GRID
    for _ in range(5):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            values = np.nan_to_num(objective(1 + np.exp(points)), nan=np.inf)
        best = int(np.argmin(values))
        low, high = points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)]
        points = np.linspace(low, high, 41)
    return 1 + Fraction(math.exp(float(points[20])))


def _float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)
