"""Margins of error of a weighted sum of independent noises: the source of intervals around published answers.

An answer is Σ a_j·(x_j + Z_j): its error is S = Σ a_j·Z_j, with coefficients that the strategy's inference gives and
discrete Laplace or Gaussian Z_j whose laws are public. ``margin`` is a t with P(|S| > t) <= β, proven:

- one coefficient: the quantile of the mechanism itself;
- one size of coefficients: S is a multiple of it, and its law is an inverse discrete Fourier transform of the
  characteristic function's power. What the finite period folds in is bounded by Chernoff, and added to β's side;
- several: a small smooth U with |U| <= h is added, P(|S| > t) <= P(|S + U| > t - h), and the law of S + U is a
  Fourier series whose rest is bounded. Coefficients are first put on a few sizes; what that changes is a sum of its
  own, bounded by Chernoff;
- without coefficients: from the variance, by Chernoff where all noise is Gaussian, else by Chebyshev for every law.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.mechanisms import Gaussian, Geometric
from hubbub.mechanisms.base import Mechanism
from hubbub.publish.strategies.layer import Array

_SHARE = 1e-3
"""Of β, for each thing that is bounded instead of computed."""
_RATIO = 1.01
"""Sizes of coefficients lie on powers of this."""
_SMALL = 1e-7
"""Of the variance: coefficients that together have less are put with what the sizes change."""
_UNIFORMS = 8
_SMOOTH = (0.005, 0.02)
"""h, in standard deviations of S: as small as the work allows."""
_WORK = 1 << 22
_MOST_POINTS = 1 << 22
_FLOOR = 1e-12
"""Below this, β is beyond what sums of doubles can tell, and Chernoff decides."""
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True)
class Noises:
    """``many`` independent noises of one law, all with a coefficient of one size."""

    size: float
    many: int
    mechanism: Geometric | Gaussian

    @property
    def variance(self) -> float:
        return self.many * (self.size * self.mechanism.standard_deviation) ** 2

    @property
    def steepest(self) -> float:
        """The λ below which the moment generating function is finite."""
        if isinstance(self.mechanism, Gaussian):
            return math.inf
        return 1 / (float(self.mechanism.scale) * self.size)

    def cumulants(self, slope: float) -> float:
        """At least log E exp(λ·a·Z), summed over all of them."""
        step = slope * self.size
        if isinstance(self.mechanism, Gaussian):
            return self.many * (float(self.mechanism.sigma) * step) ** 2 / 2
        spread = self.mechanism.standard_deviation**2
        inside = -spread * 2 * math.sinh(step / 2) ** 2
        return math.inf if inside <= -1 else -self.many * math.log1p(inside)

    def log_characteristic(self, turns: Array) -> Array:
        """log |φ| of all of them at these frequencies, and no sign: both laws have φ > 0."""
        angles = turns * self.size
        if isinstance(self.mechanism, Geometric):
            spread = self.mechanism.standard_deviation**2
            found: Array = -self.many * np.log1p(2 * spread * np.sin(angles / 2) ** 2)
            return found
        sigma = float(self.mechanism.sigma)
        if sigma < 1:
            places = np.arange(1, math.ceil(40 * sigma) + 2)
            masses = np.exp(-(places**2) / (2 * sigma**2))
            whole = 1 + 2 * masses.sum()
            at = 1 + 2 * sum(mass * np.cos(place * angles) for place, mass in zip(places, masses, strict=True))
            small: Array = self.many * np.log(np.maximum(at / whole, np.finfo(float).tiny))
            return small
        folded = np.remainder(angles + math.pi, 2 * math.pi) - math.pi
        images = sum(np.exp(-(sigma**2) * ((folded + 2 * math.pi * k) ** 2 - folded**2) / 2) for k in (-1, 1))
        large: Array = self.many * (-(sigma**2) * folded**2 / 2 + np.log1p(images))
        return large


def noises(coefficients: Sequence[Array | Sequence[float]], mechanisms: Sequence[Mechanism]) -> list[Noises] | None:
    """One for each size and law that is there; None where some noise has another law."""
    found: list[Noises] = []
    for row, mechanism in zip(coefficients, mechanisms, strict=True):
        sizes = np.abs(np.asarray(row, dtype=float)).reshape(-1)
        sizes = np.sort(sizes[sizes > 0])
        if not sizes.size:
            continue
        if not isinstance(mechanism, Geometric | Gaussian):
            return None
        starts = np.concatenate([[0], np.nonzero(np.diff(sizes) > _EQUAL * sizes[1:])[0] + 1, [sizes.size]])
        found += [
            Noises(float(sizes[end - 1]), int(end - start), mechanism) for start, end in itertools.pairwise(starts)
        ]
    return found


def margin(parts: Sequence[Noises], *, beta: float) -> float:
    """A t that |S| exceeds with probability at most ``beta``.

    Privacy:
        Claim: none is needed: coefficients and laws are public, and no data is looked at.
        Proof: everything here is computed from the strategy, the price and the question.
        Needs: coefficients that do not depend on noisy numbers.
        Ref: SOUNDNESS 11.
    """
    if not parts:
        return 0.0
    if len(parts) == 1 and parts[0].many == 1:
        return parts[0].size * parts[0].mechanism.error(beta=beta)
    bound = chernoff(parts, beta=beta)
    if beta < _FLOOR:
        return bound
    if len(parts) == 1:
        return min(bound, _lattice(parts[0], beta))
    return min(bound, _bound_smoothly(parts, beta))


def from_variance(variance: float, mechanisms: Sequence[Mechanism], *, beta: float) -> float:
    """The same from the variance of S alone: Chebyshev's inequality, or Chernoff's where all noise is Gaussian.

    log E exp(λZ) <= (σλ)²/2 for discrete Gaussian Z, whose variance v is a little below σ²; so for S it is at most
    Var(S) · max(σ²/v) · λ²/2.
    """
    if variance == 0:
        return 0.0
    found = math.sqrt(variance / beta)
    gaussian = [one for one in mechanisms if isinstance(one, Gaussian)]
    if len(gaussian) == len(mechanisms) and gaussian:
        wider = max((float(one.sigma) / one.standard_deviation) ** 2 for one in gaussian)
        found = min(found, math.sqrt(2 * variance * wider * math.log(2 / beta)))
    return found


def chernoff(parts: Sequence[Noises], *, beta: float) -> float:
    """The least (K(λ) + ln(2/β))/λ over a grid of λ: each of them is a bound."""
    variance, target = sum(one.variance for one in parts), math.log(2 / beta)
    if variance == 0:
        return 0.0
    top = min(one.steepest for one in parts)
    around = math.sqrt(2 * target / variance)
    slopes = [around * 2 ** (step / 8) for step in range(-32, 33)]
    slopes += [top * (1 - 2.0**-step) for step in range(1, 30)] if math.isfinite(top) else []
    return min((_cumulants(parts, slope) + target) / slope for slope in slopes if 0 < slope < top)


def _cumulants(parts: Sequence[Noises], slope: float) -> float:
    return sum(one.cumulants(slope) for one in parts)


def _lattice(part: Noises, beta: float) -> float:
    """The quantile of many noises with one coefficient: a whole number of it."""
    kept = beta * (1 - _SHARE)
    reach = chernoff([part], beta=beta * _SHARE) / part.size
    points = 1 << max(4, math.ceil(math.log2(2 * reach + 2)))
    if points > _MOST_POINTS:
        return math.inf
    turns = np.linspace(0, math.pi, points // 2 + 1) / part.size
    masses = np.fft.irfft(np.exp(part.log_characteristic(turns)), points)
    # What lies beyond half a period is folded onto smaller places: its mass is below β·share, and was taken off β.
    inside = masses[0] + 2 * np.cumsum(np.concatenate([[0.0], masses[1 : points // 2]]))
    enough = np.nonzero(1 - inside + _rounding(points) <= kept)[0]
    return math.inf if not enough.size else part.size * int(enough[0])


def _rounding(terms: int) -> float:
    """Bound the rounding error of sums of ``terms`` doubles of size 1."""
    return 1e-15 * math.sqrt(terms) * 8


def _bound_smoothly(parts: Sequence[Noises], beta: float) -> float:
    """A bound for several coefficients by the Fourier series of S + U, closer than Chernoff's."""
    few, rest = _on_sizes(parts)
    aside = chernoff(rest, beta=beta * _SHARE) if rest else 0.0
    kept = beta * (1 - 2 * _SHARE)
    deviation = math.sqrt(sum(one.variance for one in few))
    most = chernoff(few, beta=beta)
    # What lies further out than a period less t is folded onto the inside: no more than a share of β, taken off it.
    half = (chernoff(few, beta=beta * _SHARE) + most) / 2 + _SMOOTH[1] * deviation
    # U is a sum of uniforms; the series stops where their characteristic function is below 1e-14 for good.
    terms_for: float = _UNIFORMS / math.pi * 1e14 ** (1 / _UNIFORMS)
    finest = terms_for * half * len(few) / (_WORK * deviation)
    smooth = deviation * min(max(finest, _SMOOTH[0]), _SMOOTH[1])
    count = min(math.ceil(terms_for * half / smooth), 1 << 21)
    if count * len(few) > 32 * _WORK:
        return math.inf
    places = np.arange(1, count + 1)
    turns = math.pi / half * places
    logs = sum((one.log_characteristic(turns) for one in few), start=np.zeros(count))
    weights = np.exp(logs) * np.sinc(turns * smooth / _UNIFORMS / math.pi) ** _UNIFORMS * (2 / math.pi) / places
    dropped: float = 2 / math.pi / _UNIFORMS * (_UNIFORMS * half / (math.pi * smooth * count)) ** _UNIFORMS
    slack = dropped + _rounding(count)
    used = weights[: int(np.nonzero(np.abs(weights) > 1e-18)[0][-1]) + 1]
    steps = math.pi / half * np.arange(1, len(used) + 1)

    def beyond(end: float) -> float:
        return 1 - end / half - float(used @ np.sin(steps * end)) + slack

    low, high = 0.0, most
    if beyond(high) > kept:
        return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) <= kept else (middle, high)
        if high - low < 1e-6 * deviation:
            break
    return high + smooth + aside


def _on_sizes(parts: Sequence[Noises]) -> tuple[list[Noises], list[Noises]]:
    """Fewer sizes, each near the old one, and the noises of the differences: S is the sum of both sums."""
    floor = _SMALL * sum(one.variance for one in parts)
    ordered = sorted(parts, key=lambda one: one.variance)
    taken = np.searchsorted(np.cumsum([one.variance for one in ordered]), floor, side="right")
    rest = list(ordered[:taken])
    if len(ordered) - taken <= 64:
        return list(ordered[taken:]), rest
    made: dict[tuple[int, Geometric | Gaussian], int] = {}
    for one in ordered[taken:]:
        place = round(math.log(one.size, _RATIO))
        made[place, one.mechanism] = made.get((place, one.mechanism), 0) + one.many
        rest.append(Noises(abs(one.size - _RATIO**place), one.many, one.mechanism))
    few = [Noises(_RATIO**place, many, mechanism) for (place, mechanism), many in made.items()]
    return few, [one for one in rest if one.size > 0]
