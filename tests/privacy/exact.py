"""The obvious way, at fifty digits: what the fast code is compared with."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mpmath import mp, mpf

mp.dps = 50


def real(x: Fraction | float) -> Any:
    """The exact value at fifty digits."""
    exact = Fraction(x)
    return mpf(exact.numerator) / exact.denominator


def rational(x: Any) -> Fraction:
    """A fifty-digit number as a rational, for comparisons."""
    return Fraction(mp.nstr(x, 45))


def renyi(p: dict[Any, Any], q: dict[Any, Any], order: Any) -> Any:
    """D_α of two finite laws."""
    alpha = mpf(order)
    return mp.log(mp.fsum(p[k] ** alpha * q[k] ** (1 - alpha) for k in p)) / (alpha - 1)


def hockey_stick(p: dict[Any, Any], q: dict[Any, Any], epsilon: Any) -> Any:
    """The least δ at ε of two finite laws."""
    grow = mp.exp(real(epsilon))
    return mp.fsum(max(mpf(0), p[k] - grow * q.get(k, mpf(0))) for k in p)


def discrete_laplace(scale: Fraction | float, *, shift: int = 0, reach: int) -> dict[int, Any]:
    """P(k) ∝ e^(−|k − shift|/scale) with its exact normaliser, on −reach … reach."""
    q = mp.exp(-1 / real(scale))
    return {k: (1 - q) / (1 + q) * q ** abs(k - shift) for k in range(-reach, reach + 1)}


def discrete_gaussian(sigma: Fraction | float, *, shift: int = 0, reach: int) -> dict[int, Any]:
    """P(k) ∝ e^(−(k − shift)²/2σ²), normalised over a wide sum."""
    s = real(sigma)
    wide = int(15 * s) + 15
    total = mp.fsum(mp.exp(-(mpf(k) ** 2) / (2 * s * s)) for k in range(-wide, wide + 1))
    return {k: mp.exp(-(mpf(k - shift) ** 2) / (2 * s * s)) / total for k in range(-reach, reach + 1)}


def response(epsilon: Fraction | float, categories: int = 2) -> tuple[dict[int, Any], dict[int, Any]]:
    """The laws of k-ary randomized response on two inputs."""
    grow = mp.exp(real(epsilon))
    lie = 1 / (grow + categories - 1)
    p = dict.fromkeys(range(categories), lie) | {0: grow * lie}
    q = dict.fromkeys(range(categories), lie) | {1: grow * lie}
    return p, q


def product(p: dict[Any, Any], q: dict[Any, Any]) -> dict[Any, Any]:
    """Two independent draws."""
    return {(a, b): p[a] * q[b] for a in p for b in q}


def repeated_response_delta(count: int, epsilon: Fraction | float, at: Fraction | float) -> Any:
    """The exact δ of ``count`` binary responses: a binomial sum."""
    e, t = real(epsilon), real(at)
    truth = 1 / (1 + mp.exp(-e))
    log_truth, log_lie, log_ways, total = mp.log(truth), mp.log(1 - truth), mpf(0), mpf(0)
    for k in range(count + 1):
        if k:
            log_ways += mp.log(mpf(count - k + 1) / k)
        loss = (2 * k - count) * e
        if loss > t:
            total += mp.exp(log_ways + k * log_truth + (count - k) * log_lie) * (1 - mp.exp(t - loss))
    return total


def within(value: Fraction | float, truth: Any, *, relative: float) -> bool:
    """truth ≤ value ≤ truth·(1 + relative): an upper bound, and a tight one."""
    return bool(truth <= real(value) <= truth * (1 + mpf(relative)))


Law = Callable[..., dict[int, Any]]
