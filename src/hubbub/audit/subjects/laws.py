"""Small mechanisms with their exact laws: what a filter, an accountant or a calibration is held against.

A step is an Event beside two laws that the event must cover. Outcomes whose losses are close are put together, which is
post-processing: every δ and every divergence computed here is at most the true one, so what it refutes is refuted.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from hubbub.privacy.curves import Curve
from hubbub.privacy.events.event import (
    ApproxEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    FixedSizeSampledEvent,
    GaussianEvent,
    GroupOfTwoEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureEvent,
    RandomizedResponseEvent,
    RepeatedEvent,
    ShuffledEvent,
    WithFailure,
)
from hubbub.privacy.sensitivity import Neighbors

CELLS = 1024
_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class TwoLaws:
    """The masses of the same outcomes on two neighbouring inputs."""

    p: Curve
    q: Curve

    @classmethod
    def of(cls, p: Any, q: Any) -> "TwoLaws":
        return cls(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64))

    def then(self, other: "TwoLaws") -> "TwoLaws":
        """Both answers, drawn independently."""
        return TwoLaws(np.outer(self.p, other.p).ravel(), np.outer(self.q, other.q).ravel()).merge()

    def beside(self, other: "TwoLaws") -> "TwoLaws":
        """Outcomes of the one and outcomes of the other: parts of one law."""
        return TwoLaws(np.concatenate([self.p, other.p]), np.concatenate([self.q, other.q]))

    def merge(self, cells: int = CELLS) -> "TwoLaws":
        """Merge to at most about this many outcomes: those of like loss are not distinguished any more."""
        if len(self.p) <= cells:
            return self
        loss = self.losses
        inside = np.isfinite(loss)
        low, high = loss[inside].min(initial=0.0), loss[inside].max(initial=0.0)
        width = max((high - low) / (cells - 3), 1e-12)
        scaled = (np.where(inside, loss, low) - low) / width
        place = np.where(inside, scaled.astype(np.int64), cells - 1 - (loss > 0))
        totals = [np.bincount(place, side, minlength=cells).astype(np.float64) for side in (self.p, self.q)]
        held = (totals[0] > 0) | (totals[1] > 0)
        return TwoLaws.of(totals[0][held], totals[1][held])

    @property
    def losses(self) -> Curve:
        """ln p/q, outcome by outcome."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Curve = np.nan_to_num(np.log(self.p) - np.log(self.q), nan=0.0, posinf=np.inf, neginf=-np.inf)
        return found

    def delta(self, epsilon: float) -> float:
        """The least δ at ε that is true of both orders."""
        grown = math.exp(min(epsilon, 700.0))
        one, other = np.maximum(0.0, self.p - grown * self.q), np.maximum(0.0, self.q - grown * self.p)
        return max(math.fsum(one), math.fsum(other))

    def rho(self) -> float:
        """The largest D_α/α of both orders: no smaller ρ is true."""
        return max(self._rho(self.p, self.q), self._rho(self.q, self.p))

    @staticmethod
    def _rho(p: Curve, q: Curve) -> float:
        p, q = p[p > 0], q[p > 0]
        if (q == 0).any():
            return math.inf
        loss, mass, found = np.log(p) - np.log(q), np.log(p), 0.0
        for order in (1.0001, 1.1, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 65.0):
            found = max(found, float(special.logsumexp(mass + (order - 1) * loss)) / ((order - 1) * order))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LawStep:
    """One mechanism that may be run: its event, and what it does to one pair of neighbours."""

    event: Event
    laws: TwoLaws
    words: str
    loss: Fraction | None = None
    """The exact largest loss of the laws, where it is finite and rational."""
    failure: Fraction = _ZERO
    """The mass that the event need not cover by its ε and ρ."""
    covered: TwoLaws | None = None
    """The laws outside that mass, where they differ."""

    @property
    def inside(self) -> TwoLaws:
        return self.laws if self.covered is None else self.covered


def response(epsilon: Fraction, *, categories: int = 2, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> LawStep:
    """Randomized response: as bad as ε-DP can be."""
    grown = math.exp(epsilon)
    p, q = (np.full(categories, 1 / (grown + categories - 1)) for _ in range(2))
    p[0] *= grown
    q[1] *= grown
    event: Event = PureEvent(bound=epsilon, neighbors=neighbors)
    if categories > 2:
        event = RandomizedResponseEvent(bound=epsilon, categories=categories, neighbors=neighbors)
    return LawStep(event=event, laws=TwoLaws(p, q), loss=epsilon, words=f"randomized response at ε = {epsilon}")


def laplace(scale: Fraction, sensitivity: int = 1, *, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> LawStep:
    """Discrete Laplace noise: outside of the two values the loss is the same everywhere, so that is one outcome."""
    rate = math.exp(-1 / scale)
    steps = np.arange(1, sensitivity)
    between = (1 - rate) / (1 + rate) * rate**steps
    end, far = 1 / (1 + rate), rate**sensitivity / (1 + rate)
    return LawStep(
        event=DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity, neighbors=neighbors),
        laws=TwoLaws.of([end, *between, far], [far, *between[::-1], end]),
        loss=sensitivity / scale,
        words=f"whole Laplace noise of scale {scale} on a value that moves by {sensitivity}",
    )


def gaussian(sigma: Fraction, shift: int = 1, *, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> LawStep:
    """Discrete Gaussian noise on one integer."""
    event = DiscreteGaussianEvent(sigma=sigma, sensitivity_squared=Fraction(shift * shift), neighbors=neighbors)
    words = f"whole Gaussian noise of σ = {float(sigma):.6g} on a value that moves by {shift}"
    return LawStep(event=event, laws=gaussian_laws(float(sigma), shift).merge(128), words=words)


def gaussian_laws(sigma: float, shift: int) -> TwoLaws:
    """Its masses around both values, out to where no double holds them."""
    reach = math.ceil(25 * sigma) + 1
    place = np.arange(-reach, reach + shift + 1)
    total = math.fsum(np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2))
    return TwoLaws(*(np.exp(-(((place - at) / sigma) ** 2) / 2) / total for at in (0, shift)))


def choice_step(epsilon: Fraction, top: Fraction) -> LawStep:
    """A choice whose loss is ``top`` or ``top`` − ε: what an exponential mechanism can come to."""
    high, low = math.exp(top), math.exp(top - epsilon)
    q = (1 - low) / (high - low)
    laws = TwoLaws.of([high * q, low * (1 - q)], [q, 1 - q])
    words = f"a choice of range ε = {epsilon} with losses {float(top):.3g} and {float(top - epsilon):.3g}"
    return LawStep(event=BoundedRangeEvent(range=epsilon), laws=laws, loss=max(top, epsilon - top), words=words)


def failing(step: LawStep, failure: Fraction) -> LawStep:
    """The step, but with this chance the input itself is shown."""
    mass = float(failure)
    laws = TwoLaws((1 - mass) * step.laws.p, (1 - mass) * step.laws.q).beside(TwoLaws.of([mass, 0], [0, mass]))
    event: Event = WithFailure(event=step.event, failure=failure)
    if isinstance(step.event, PureEvent) and step.event.neighbors is Neighbors.ADD_REMOVE:
        event = ApproxEvent(bound=step.event.bound, failure=failure)
    words = f"{step.words}, which shows the input with chance {mass:.3g}"
    return replace(step, event=event, laws=laws, failure=failure, covered=step.laws, words=words)


def continuous(scale: Fraction, *, normal: bool) -> LawStep:
    """Laplace or Gaussian noise on a real that moves by 1, looked at through bins."""
    width = float(scale)
    edges = np.linspace(0, 1, 65) if not normal else np.linspace(-6 * width, 6 * width + 1, 129)
    if normal:
        p, q = (special.ndtr((edges - at) / width) for at in (0, 1))
    else:
        p, q = (
            np.where(edges < at, 0, 1) + np.sign(at - edges) * np.exp(-abs(edges - at) / width) / 2 for at in (0, 1)
        )
        p[0], q[-1] = 0.5, 0.5
    laws = TwoLaws(*(np.diff(np.concatenate([[0], side, [1]])) for side in (p, q)))
    event: Event = GaussianEvent(sigma=scale) if normal else LaplaceEvent(scale=scale)
    words = f"{'Gaussian' if normal else 'Laplace'} noise of scale {scale} on a real"
    return LawStep(event=event, laws=laws, loss=None if normal else 1 / scale, words=words)


def sample_step(step: LawStep, rate: Fraction) -> LawStep:
    """The step on a secret sample: the unit is in it with this chance. What fails in it fails as often."""
    event: Event
    if step.event.neighbors is Neighbors.ADD_REMOVE:
        event = PoissonSampledEvent(event=step.event, rate=rate)
    else:
        event = FixedSizeSampledEvent(event=step.event, size=rate.numerator, population=rate.denominator)
    return LawStep(
        event=event,
        laws=_mix(step.laws, float(rate)),
        words=f"{step.words}, on a secret sample of {rate}",
        failure=rate * step.failure,
        covered=_mix(step.inside, float(rate)),
    )


def _mix(both: TwoLaws, share: float) -> TwoLaws:
    return TwoLaws(share * both.p + (1 - share) * both.q, both.q)


def shuffle_step(local: Fraction, reports: int, failure: Fraction) -> LawStep:
    """Binary responses in random order: one device differs, all others say no."""
    lie = 1 / (1 + math.exp(local))
    others = np.arange(reports)
    law = np.exp(
        special.gammaln(reports) - special.gammaln(others + 1) - special.gammaln(reports - others)
        + others * math.log(lie) + (reports - 1 - others) * math.log1p(-lie)
    )  # fmt: skip
    p, q = (np.append(law, 0) * (1 - own) + np.insert(law, 0, 0) * own for own in (1 - lie, lie))
    event = ShuffledEvent(event=PureEvent(bound=local, neighbors=Neighbors.LOCAL), reports=reports, failure=failure)
    words = f"{reports} shuffled responses at ε = {local} each"
    return LawStep(
        event=event, laws=TwoLaws(p, q).merge(256), words=words, failure=failure, covered=TwoLaws.of([1], [1])
    )


def repeat_step(step: LawStep, times: int) -> LawStep:
    """Return an event of this many runs."""
    laws = step.laws
    for _ in range(times - 1):
        laws = laws.then(step.laws)
    return LawStep(
        event=RepeatedEvent(event=step.event, count=times),
        laws=laws.merge(256),
        loss=None if step.loss is None else times * step.loss,
        words=f"{times} times {step.words}, as one event",
    )


def of_two(step: LawStep, both: LawStep) -> LawStep:
    """An add/remove step read for a unit that is replaced: ``both`` is what it does to two changes at once."""
    return replace(both, event=GroupOfTwoEvent(event=step.event), words=f"{step.words}, read for a replaced unit")


def of_two_failing(epsilon: Fraction, failure: Fraction) -> LawStep:
    """(ε, δ) read for a replaced unit, where nothing but the failure tells: δ·(1 + e^ε) on one side, δ in between."""
    mass = float(failure) * (1 + math.exp(epsilon))
    event = GroupOfTwoEvent(event=ApproxEvent(bound=epsilon, failure=failure))
    words = f"(ε, δ) = ({epsilon}, {float(failure):.3g}), read for a replaced unit"
    laws, same = TwoLaws.of([mass, 1 - mass], [0, 1]), TwoLaws.of([1], [1])
    return LawStep(event=event, laws=laws, covered=same, failure=Fraction(mass * (1 - 1e-9)), words=words)
