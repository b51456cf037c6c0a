"""Noise whose scale may itself come from the data: the loss of a change of scale, and the noise that it takes.

A smooth bound S is at least the local sensitivity, and between neighbours it grows or shrinks by at most e^β. Noise of
scale N·S then moves by a shift of at most 1/N of either neighbour's scale, and is dilated by at most e^β. A law with
light tails betrays the dilation there: only a heavy tail keeps the ratio of densities bounded.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, settle
from hubbub.parameters import positive, probability, whole
from hubbub.privacy.events.event import ApproxEvent, Event, PureEvent
from hubbub.privacy.rounding import exp_down, exp_up, log_up, short_down, sqrt_up
from hubbub.privacy.sensitivity import Neighbors

LEAST_BETA = Fraction(1, 1 << 20)
_TRIED = 400
"""Values of β among which the default of the Laplace form is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Student:
    """Student's t with ``degrees`` degrees of freedom, of scale N·S: pure ε.

    One degree (Cauchy) has the least median error, two the least mean error, three a variance. Unless ``beta`` is given
    it is the one that is best where S falls as 1/β, as it does for quantiles of dense data.

    Privacy:
        Claim: Pure(epsilon) for values with |f - f'| <= min(S, S') and |ln S/S'| <= beta, also when rounded.
        Proof: move from one neighbour's location μ and log-scale τ to the other's in proportion, dμ = c·e^τ, so that
            |c| <= 1/N and |dτ| <= β. At u = √d·tan φ the log-density changes by β·((d-1) - (d+1)·cos 2φ)/2 +
            c·(d+1)·sin 2φ/2√d, at most β(d-1)/2 + (d+1)/2·√(β² + 1/dN²) = ε, for every output. Rounding is
            post-processing.
        Needs: noise.rounded_student draws exactly; S is smooth and bounds the local sensitivity.
        Ref: Nissim, Raskhodnikova, Smith 2007; Bun, Steinke 2019, whose (d+1)β + (d+1)/(2√d·N) this sharpens.
    """

    epsilon: Fraction
    degrees: int = 2
    beta: Fraction | None = None
    multiplier: Fraction = field(init=False)
    """N, rounded up."""

    def __post_init__(self) -> None:
        epsilon, d = positive("epsilon", self.epsilon), whole("degrees", self.degrees, least=1, most=64)
        beta = epsilon * _dense_share(d) if self.beta is None else positive("beta", self.beta)
        if not beta >= LEAST_BETA or d * beta >= epsilon:
            raise ParameterError("beta", f"at least 2^-20 and below epsilon / {d}", beta)
        rest = ((2 * epsilon - (d - 1) * beta) / (d + 1)) ** 2 - beta**2
        settle(self, epsilon=epsilon, beta=beta, multiplier=sqrt_up(1 / (d * rest)))

    def event(self, neighbors: Neighbors) -> Event:
        """Return the cost of one answer."""
        return PureEvent(bound=self.epsilon, neighbors=neighbors)

    def draw(self, scale: Fraction, *, reach: int, size: int | None = None) -> int | Array:
        """Whole noise of N times a secret scale, cut at ± reach."""
        wide = self.multiplier * scale
        if size is None:
            return noise.rounded_student(scale=wide, degrees=self.degrees, reach=reach)
        return noise.rounded_student(scale=wide, degrees=self.degrees, reach=reach, size=size)

    def tail(self, steps: Array, scale: Fraction) -> Array:
        """P(noise >= k) for k >= 1, for each k."""
        from scipy.special import stdtr  # late: it takes longer to load than all of ours

        tails: Array = stdtr(self.degrees, -(steps - 0.5) / float(self.multiplier * scale))
        return tails


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceDilated:
    """Laplace noise of scale N·S: (ε, δ), because its tail is light.

    Privacy:
        Claim: Approx(epsilon, delta) for values with |f - f'| <= min(S, S') and |ln S/S'| <= beta, also when rounded.
        Proof: in units of its own scale, an answer of the wider neighbour lies w away from its centre, w exponential,
            and for a dilation t <= β loses at most w(e^t - 1) - t + 1/N on the side away from the other's centre; on
            the other side 1/N counts negative, or the loss is below 1/N <= ε. So δ is the mean of (1 - e^(ε-loss))₊:
            with a = e^t - 1 it is (1 - e^-t)·(exp(-(ε - 1/N + t)/a) + exp(-(ε + 1/N + t)/a))/2, which grows with t. The
            narrower one loses at most t + e^-t/N, greatest at an end of [0, β], and N keeps that within ε. Rounding is
            post-processing.
        Needs: noise.rounded_laplace draws exactly; S is smooth and bounds the local sensitivity.
        Ref: Nissim, Raskhodnikova, Smith 2007, whose β = ε/(2 ln(2/δ)), N = 2/ε this sharpens.
    """

    epsilon: Fraction
    delta: Fraction
    beta: Fraction | None = None
    multiplier: Fraction = field(init=False)
    """N, rounded up."""

    def __post_init__(self) -> None:
        epsilon, delta = positive("epsilon", self.epsilon), probability("delta", self.delta)
        if delta < Fraction(1, 1 << 100):
            raise ParameterError("delta", "at least 2^-100", self.delta)
        beta = self._dense(epsilon, delta) if self.beta is None else positive("beta", self.beta)
        room = _laplace_room_rounded_down(epsilon, delta, beta) if beta < epsilon else Fraction(0)
        if not beta >= LEAST_BETA or room <= 0:
            raise ParameterError("beta", "at least 2^-20, and small enough for this epsilon and delta", beta)
        settle(self, epsilon=epsilon, delta=delta, beta=beta, multiplier=1 / short_down(room))

    @staticmethod
    def _dense(epsilon: Fraction, delta: Fraction) -> Fraction:
        """The β that is best where S falls as 1/β: any will do for privacy, so floats may choose it."""
        e, d = float(epsilon), float(delta)
        betas = e * np.arange(1, _TRIED) / _TRIED
        room = e + betas - np.expm1(betas) * np.log(np.maximum(-np.expm1(-betas) / d, 1))
        room = np.minimum(np.minimum(room, e), (e - betas) * np.exp(betas))
        return epsilon * Fraction(int(np.argmax(betas * room)) + 1, _TRIED)

    def event(self, neighbors: Neighbors) -> Event:
        """Return the cost of one answer."""
        return ApproxEvent(bound=self.epsilon, failure=self.delta, neighbors=neighbors)

    def draw(self, scale: Fraction, *, reach: int, size: int | None = None) -> int | Array:
        """Whole noise of N times a secret scale, cut at ± reach."""
        wide = self.multiplier * scale
        if size is None:
            return noise.rounded_laplace(scale=wide, reach=reach)
        return noise.rounded_laplace(scale=wide, reach=reach, size=size)

    def tail(self, steps: Array, scale: Fraction) -> Array:
        """P(noise >= k) for k >= 1, for each k."""
        tails: Array = np.exp(-(steps - 0.5) / float(self.multiplier * scale)) / 2
        return tails


def _dense_share(degrees: int) -> Fraction:
    """The β/ε that makes N/β least: the root of a quadratic; a short rational will do, since any β keeps the claim."""
    a, b = 2 / (degrees + 1), (degrees - 1) / (degrees + 1)
    return Fraction(a * (math.sqrt(b * b + 8) - 3 * b) / (4 * (1 - b * b))).limit_denominator(1000)


def _laplace_room_rounded_down(epsilon: Fraction, delta: Fraction, beta: Fraction) -> Fraction:
    """The greatest 1/N that the three conditions on N leave.

    The first one, (1 - e^-β)·(1 + e^(-2/aN))·exp(-(ε + β - 1/N)/a)/2 <= δ with a = e^β - 1, is solved with the middle
    factor at 2 and then once more with what it is at most for the 1/N found.
    """
    growth = exp_up(beta) - 1
    cut = (1 - exp_down(-beta)) / (2 * delta)
    room, sides = Fraction(0), Fraction(2)
    for _ in range(2):
        wider = epsilon + beta - growth * (log_up(cut * sides) if cut * sides > 1 else 0)
        room = min(wider, epsilon, (epsilon - beta) * exp_down(beta))
        sides = 1 + exp_up(max(-2 * room / growth, Fraction(-1000))) if room > 0 else sides
    return room
