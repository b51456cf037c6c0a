"""The least noise for a target loss, every rounding towards privacy, discrete laws by themselves.

Formulas for the continuous Gaussian under-noise on integers (the real δ is up to three times the claim), so one integer
is calibrated by the exact δ(ε) of its own law (``discrete_gaussian``), and vectors by a bound on theirs
(``fine_gaussian``) or by zCDP, which holds for both, whichever asks for less noise.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache

from hubbub.errors import AccountingError, ParameterError
from hubbub.parameters import Real, positive, probability, whole
from hubbub.privacy import convert
from hubbub.privacy.accountant import Method, compose
from hubbub.privacy.events.record import Event
from hubbub.privacy.gaussian_curves import delta_rounded_up, most_coordinates, vector_delta_rounded_up
from hubbub.privacy.loss import Approx, Loss, Pure, Zcdp
from hubbub.privacy.rounding import short_down, short_up, sqrt_up

_TINY = 5e-324
_STRAIGHT = 40
"""Looks after which halves are tried instead of lines. Lines need about eight."""
_SMOOTH = 2
"""Scales above half of which the mass falls as the scale grows, but for a share of exp(-2 pi^2) or less."""
_SIGMA_BITS = 32
_LEAST_SIGMA = Fraction(1, 1 << 20)
_CACHE = 1024


def laplace_scale(*, epsilon: Real, sensitivity: Real = 1) -> Fraction:
    """The scale Δ/ε of (discrete) Laplace noise, exactly."""
    return positive("sensitivity", sensitivity) / positive("epsilon", epsilon)


def rho_of(*, epsilon: Real, delta: Real) -> Fraction:
    """The greatest ρ whose conversion gives (ε, δ), rounded down."""
    return convert.rho_rounded_down(positive("epsilon", epsilon), probability("delta", delta))


def epsilon_of_rho(*, rho: Real, delta: Real) -> Fraction:
    """The least ε that ρ-zCDP gives at δ, rounded up."""
    return convert.epsilon_of_rho_rounded_up(positive("rho", rho), probability("delta", delta))


def delta_of_rho(*, rho: Real, epsilon: Real) -> Fraction:
    """The least δ that ρ-zCDP gives at ε, rounded up."""
    return convert.delta_of_rho_rounded_up(positive("rho", rho), positive("epsilon", epsilon))


def discrete_gaussian_delta(*, sigma: Real, epsilon: Real, sensitivity: int = 1) -> Fraction:
    """An upper bound, close to exact, of the δ(ε) of Gaussian noise on one integer that moves by at most Δ."""
    shift = whole("sensitivity", sensitivity, least=1)
    return delta_rounded_up(positive("sigma", sigma), positive("epsilon", epsilon), shift)


def gaussian_sigma(*, epsilon: Real, delta: Real, sensitivity: int = 1) -> Fraction:
    """A least σ of Gaussian noise on one integer that gives (ε, δ): one a millionth smaller does not.

    Use the very σ returned (its denominator is short): on integers δ(ε) does not always fall as σ grows. At ε = 2,
    σ = 0.6 has a greater δ than σ = 0.5.

    Privacy:
        Claim: discrete Gaussian noise of this σ on an integer that moves by at most Δ is (ε, δ)-DP.
        Proof: the upper bound of its exact δ(ε) is computed for the very rational returned, and is at most δ.
        Needs: ``discrete_gaussian.delta_rounded_up``.
        Ref: Canonne, Kamath, Steinke 2020; Balle, Wang 2018 for the continuous part.
    """
    shift = whole("sensitivity", sensitivity, least=1)
    return _one_integer(positive("epsilon", epsilon), probability("delta", delta), shift)


def gaussian_sigma_zcdp(*, rho: Real, sensitivity_squared: Real = 1) -> Fraction:
    """The least σ for which a Gaussian vector within Δ in L2 is ρ-zCDP, rounded up: Δ/√(2ρ)."""
    squared = positive("sensitivity_squared", sensitivity_squared) / (2 * positive("rho", rho))
    return short_up(sqrt_up(squared), bits=_SIGMA_BITS)


def gaussian_sigma_vector(
    *, epsilon: Real, delta: Real, sensitivity_squared: Real = 1, coordinates: int | None = None
) -> Fraction:
    """The least σ proven to give (ε, δ) to integer vectors within Δ in L2; use the very σ returned.

    ``coordinates`` is in how many places neighbours differ; without it, in as many as Δ allows, which costs little. One
    place is exact; several need about 1/σ² more noise than the continuous Gaussian.

    Privacy:
        Claim: discrete Gaussian noise of this σ on such vectors is (ε, δ)-DP. Its ρ = Δ²/2σ² may be greater than any
            that converts into (ε, δ).
        Proof: σ is at least Δ/√(2ρ) for a ρ that converts into (ε, δ), or an upper bound of δ(ε) was computed for the
            very rational returned and is at most δ.
        Needs: ``convert``, ``discrete_gaussian.delta_rounded_up``, ``fine_gaussian.vector_delta_rounded_up``.
        Ref: Canonne, Kamath, Steinke 2020; Balle, Wang 2018.
    """
    squared = positive("sensitivity_squared", sensitivity_squared)
    named = None if coordinates is None else whole("coordinates", coordinates, least=1)
    loss, mass = positive("epsilon", epsilon), probability("delta", delta)
    by_zcdp = gaussian_sigma_zcdp(rho=convert.rho_rounded_down(loss, mass), sensitivity_squared=squared)
    moved = most_coordinates(squared, named)
    if moved == 1:
        shift = max(1, math.isqrt(math.floor(squared)))
        return min(by_zcdp, _one_integer(loss, mass, shift))
    return min(by_zcdp, _vector(loss, mass, squared, moved))


def least(
    make_event: Callable[[Fraction], Event | Iterable[Event]],
    *,
    target: Loss,
    method: Method = "pld",
    start: Real = 1,
    bits: int = 24,
) -> Fraction:
    """The least scale for which a whole plan reaches the target loss, by bisection through the accountant.

    ``make_event`` turns a scale into the plan (an event or several); more scale must mean less loss. The scale returned
    was itself accounted for and reaches the target; it is within 2^(2−bits) of the least that does.
    """
    if not isinstance(target, Pure | Approx | Zcdp):
        raise ParameterError("target", "a Pure, Approx or Zcdp loss", target)
    digits = whole("bits", bits, least=4, most=60)
    how: Method = "pure" if isinstance(target, Pure) else "zcdp" if isinstance(target, Zcdp) else method

    def enough(scale: Fraction) -> bool:
        made = make_event(scale)
        return compose([made] if isinstance(made, Event) else made, method=how).implies(target)

    return _bisect(enough, positive("start", start), digits)


def _bisect(enough: Callable[[Fraction], bool], start: Fraction, bits: int) -> Fraction:
    """The least scale that is enough, to ``bits`` significant bits; every scale tried has at most that many."""
    low, high = _bracket(enough, start, bits)
    while True:
        middle = short_up((low + high) / 2, bits=bits)
        if middle >= high:
            return high
        low, high = (low, middle) if enough(middle) else (middle, high)


def _bracket(enough: Callable[[Fraction], bool], start: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Return a scale that is not enough, and its double, which is."""
    high = short_up(start, bits=bits)
    for _ in range(256):
        if enough(high):
            break
        high *= 2
    else:
        raise AccountingError("No scale up to 2^255 times the start reaches the target.", start=start)
    low = high / 2
    while enough(low):
        high, low = low, low / 2
        if low < Fraction(1, 1 << 300):
            raise AccountingError("Every scale reaches the target.", start=start)
    return low, high


def _interpolate(mass: Callable[[Fraction], Fraction], most: Fraction, start: Fraction) -> Fraction:
    """Return a least scale whose mass is at most ``most``, as ``_bisect`` would, with a quarter of its looks.

    The logarithm of the mass is nearly straight in that of the scale, so a line through both ends finds the next place
    to look at. What is returned was looked at itself, and so was its lower neighbour, which has a greater mass.
    Below 1 the mass of whole numbers goes up and down with the scale, and halves find a lesser one.
    """
    if start < _SMOOTH:
        return _bisect(lambda scale: scale >= _LEAST_SIGMA and mass(scale) <= most, start, _SIGMA_BITS)

    def height(scale: Fraction) -> float:
        found = mass(scale) if scale >= _LEAST_SIGMA else Fraction(1)
        above = math.log(float(found) or _TINY) - goal
        return abs(above) if found > most else -abs(above)  # the sign is exact

    goal = math.log(float(most) or _TINY)
    low, high = _bracket(lambda scale: height(scale) <= 0, start, _SIGMA_BITS)
    below, above = height(high), height(low)
    last, looks = 0, 0
    while True:
        share = above / (above - below) if above > below and looks < _STRAIGHT else 0.5
        middle = short_up(low * Fraction(float(high / low) ** share), bits=_SIGMA_BITS)
        middle = min(max(middle, _next(low)), _previous(high))
        if middle <= low:
            return high
        found = height(middle)
        looks += 1
        if found <= 0:
            high, below, above = middle, found, above / 2 if last < 0 else above
            last = -1
        else:
            low, above, below = middle, found, below / 2 if last > 0 else below
            last = 1


def _next(scale: Fraction) -> Fraction:
    return short_up(scale * (1 + Fraction(1, 2 << _SIGMA_BITS)), bits=_SIGMA_BITS)


def _previous(scale: Fraction) -> Fraction:
    return short_down(scale * (1 - Fraction(1, 2 << _SIGMA_BITS)), bits=_SIGMA_BITS)


@lru_cache(maxsize=_CACHE)
def _one_integer(epsilon: Fraction, delta: Fraction, shift: int) -> Fraction:
    start = shift * sqrt_up(1 / (2 * convert.rho_rounded_down(epsilon, delta)))
    return _interpolate(lambda sigma: delta_rounded_up(sigma, epsilon, shift), delta, start)


@lru_cache(maxsize=_CACHE)
def _vector(epsilon: Fraction, delta: Fraction, squared: Fraction, moved: int) -> Fraction:
    start = sqrt_up(squared / (2 * convert.rho_rounded_down(epsilon, delta)))
    return _interpolate(lambda sigma: vector_delta_rounded_up(sigma, epsilon, squared, moved), delta, start)
