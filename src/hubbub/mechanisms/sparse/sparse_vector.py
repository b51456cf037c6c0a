"""The sparse vector technique: answers below a threshold are free, and only answers above it are paid for.

Noise is one-sided here. The proof moves the noisy threshold up, whichever of two neighbours comes first, so nothing is
needed of noise that pushes the other way: geometric noise has the same upper tail as two-sided noise of the same scale,
no lower one, and half the variance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, settle
from hubbub.mechanisms.integers import as_integers, exact_sum
from hubbub.noise import laws
from hubbub.parameters import between, positive, probability, whole
from hubbub.privacy.events.event import ComposedEvent, DiscreteLaplaceEvent, Event, PureEvent, RepeatedEvent
from hubbub.privacy.sensitivity import Neighbors, Norm

Found = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The places of the questions above, their gaps, and their numbers where those were bought."""

MOST_COUNT = 1 << 20
MOST_THRESHOLD = 1 << 62
_NEGLIGIBLE = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """The first ``count`` questions whose answers reach ``threshold``, by noisy comparisons; then it stops.

    The value is a list of whole numbers, one a question; ``Stream`` and ``Meter.watch`` take them one by one. An answer
    is (places, gaps, numbers). A gap is how far the noisy answer is above the noisy threshold, and costs nothing. With
    a share of ε for ``numbers`` each question above also gets a number with noise of its own. A question at the
    threshold is called above at least every other time, one below it less often.

    ``renewed`` takes a fresh noisy threshold, and ε/count, for each answer above: more noise at the same ε, but in zCDP
    it costs ε²/2·count instead of ε²/2.

    Privacy:
        Claim: Pure(epsilon) for any stream of questions that one unit moves by at most ``sensitivity`` each (all the
            same way, if ``monotone``), also where questions are chosen by earlier answers; some pair attains it.
        Proof: let z >= 0 be the threshold's noise, N >= 0 a question's, b its scale. Compare what D does at z with what
            its neighbour D' does at z + Δ, of which P(z + Δ) = e^(-ε₁)·P(z). Below stays below: x + N < t + z gives
            x' + N < t + z + Δ. Above with gap g needs N = t + z + g - x on D and N + s on D', with s = Δ + x - x' from
            0 to 2Δ, and P(N + s) = e^(-s/b)·P(N). So each of the c answers above costs at most 2Δ/b = ε₂/c; sum over z.
            If all answers rise from D to D', s is at most Δ; if all fall, z may stay where it is, and s = x - x' is at
            most Δ again: b = cΔ/ε₂ is enough. A number is a Geometric release at ε₃/c. All steps hold given what came
            before, and on whole numbers >= is > one lower: a rule for ties only renames the threshold.
        Needs: noise.geometric and noise.discrete_laplace draw exactly; gaps come from the noise that was compared,
            numbers from fresh noise; no more than ``count`` answers above.
        Ref: Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Lyu, Su, Li 2017 for the split of ε; Ding, Wang, Zhang, Kifer
            2019 for gaps; Durfee 2023 and Liu, Wang, Liu, Li, Chen 2024 for exponential noise.
    """

    epsilon: Fraction
    threshold: int
    """The least answer that is above, in whole steps of the grid."""
    count: int = 1
    """How many answers above are paid for."""
    sensitivity: int = 1
    monotone: bool = False
    numbers: Fraction = Fraction(0)
    """The share of ε that buys a number for each answer above; 0 for none."""
    renewed: bool = False
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    bar_scale: Fraction = field(init=False, repr=False, compare=False)
    """The scale of the threshold's noise, Δ/ε₁."""
    question_scale: Fraction = field(init=False, repr=False, compare=False)
    """The scale of a question's noise, 2cΔ/ε₂, or cΔ/ε₂ if monotone."""
    number_scale: Fraction | None = field(init=False, repr=False, compare=False)
    """The scale of a number's noise, cΔ/ε₃."""
    least_bar: int = field(init=False, repr=False, compare=False)
    """The noisy threshold without its noise: raised by what makes a question at the threshold a toss-up."""

    def __post_init__(self) -> None:
        epsilon, share = positive("epsilon", self.epsilon), between("numbers", self.numbers, 0, 1, high_open=True)
        threshold = whole("threshold", self.threshold, least=-MOST_THRESHOLD, most=MOST_THRESHOLD)
        count = whole("count", self.count, least=1, most=MOST_COUNT)
        sensitivity = whole("sensitivity", self.sensitivity, least=1)
        if self.monotone and self.neighbors is not Neighbors.ADD_REMOVE:
            raise ParameterError("monotone", "False unless neighbours add or remove one unit", self.monotone)
        settle(self, epsilon=epsilon, numbers=share, threshold=threshold, count=count, sensitivity=sensitivity)
        steps = (1 if self.monotone else 2) * count // self.rounds
        for_bar = self._round_epsilon / (1 + _split(steps))
        bar = noise.discrete.check_scale("sensitivity / epsilon", sensitivity / for_bar)
        question = steps * sensitivity / (self._round_epsilon - for_bar)
        noise.discrete.check_scale("count · sensitivity / epsilon", question)
        number = count * sensitivity / (epsilon * share) if share else None
        if number is not None:
            noise.discrete.check_scale("count · sensitivity / (epsilon · numbers)", number)
        settle(self, bar_scale=bar, question_scale=question, number_scale=number)
        settle(self, least_bar=threshold + _toss_up(bar, question))

    @property
    def rounds(self) -> int:
        """The number of noisy thresholds that are drawn."""
        return self.count if self.renewed else 1

    @property
    def _round_epsilon(self) -> Fraction:
        """ε₁ + ε₂ of one round."""
        return self.epsilon * (1 - self.numbers) / self.rounds

    @property
    def needs(self) -> Needs:
        return Needs(
            norm=Norm.SCORE,
            sensitivity=Fraction(self.sensitivity),
            neighbors=self.neighbors,
            monotone=self.monotone,
        )

    @property
    def event(self) -> Event:
        parts = [_times(PureEvent(bound=self._round_epsilon, neighbors=self.neighbors), self.rounds)]
        if self.number_scale is not None:
            number = DiscreteLaplaceEvent(
                scale=self.number_scale, sensitivity=self.sensitivity, neighbors=self.neighbors
            )
            parts.append(_times(number, self.count))
        return parts[0] if len(parts) == 1 else ComposedEvent(events=tuple(parts))

    def bars(self, times: int) -> Array:
        """Noisy thresholds, a row for each of ``times`` runs and a column for each answer above that they are for."""
        drawn = noise.geometric(scale=self.bar_scale, size=times * self.rounds).reshape(times, self.rounds)
        raised = np.asarray(exact_sum(np.full(drawn.shape, self.least_bar, dtype=object), drawn))
        return np.broadcast_to(raised, (times, self.count))

    def spare(self, times: int) -> Array:
        """Noise for numbers, drawn for all that there may be: how many there are is nothing that the noise may show."""
        if self.number_scale is None:
            return np.empty((times, 0), dtype=np.int64)
        drawn: Array = noise.discrete_laplace(scale=self.number_scale, size=times * self.count)
        return drawn.reshape(times, self.count)

    def draw(self, value: Sequence[int] | Array) -> Found:
        return self.repeat(value, times=1)[0]

    def repeat(self, value: Sequence[int] | Array, *, times: int) -> list[Found]:
        exact = as_integers(value)
        if isinstance(exact, int) or exact.ndim != 1:
            raise ParameterError("value", "a list of whole numbers, one a question", type(value).__name__)
        bars, spare = self.bars(times), self.spare(times)
        drawn = noise.geometric(scale=self.question_scale, size=times * len(exact)).reshape(times, len(exact))
        noisy = np.asarray(exact_sum(exact, drawn))
        return [_find_above(exact, *row) for row in zip(noisy, bars, spare, strict=True)]

    def log_mass(self, value: Sequence[int] | Array, output: Found) -> float:
        values, (places, gaps, numbers) = [int(x) for x in value], output
        bought = len(places) if self.number_scale is not None else 0
        ordered = list(places) == sorted({*places} & {*range(len(values))})
        if not ordered or len(places) > self.count or (len(gaps), len(numbers)) != (len(places), bought):
            return -math.inf
        if any(gap < 0 for gap in gaps):
            return -math.inf
        rounds: list[tuple[list[int], list[int]]] = [([], [])]
        asked = values if len(places) < self.count else values[: places[-1] + 1]
        for place, x in enumerate(asked):
            if place not in places:
                rounds[-1][0].append(x)
                continue
            rounds[-1][1].append(x - gaps[places.index(place)])
            if self.renewed:
                rounds.append(([], []))
        total = sum(self._log_round(below, above) for below, above in rounds)
        if self.number_scale is not None:
            errors = [number - values[place] for place, number in zip(places, numbers, strict=True)]
            total += sum(laws.laplace_log_mass(error, self.number_scale) for error in errors)
        return total

    def _log_round(self, below: list[int], above: list[int]) -> float:
        """ln P that under one noisy threshold some answers stay below, and others less their gaps end exactly on it."""
        bar_rate, rate = float(1 / self.bar_scale), float(1 / self.question_scale)
        below, above = ([x - self.least_bar for x in side] for side in (below, above))
        least = max([0, *(x + 1 for x in below), *above])
        reach = math.ceil(_NEGLIGIBLE / bar_rate + (_NEGLIGIBLE + math.log1p(len(below))) / rate)
        z = np.arange(least, least + reach, dtype=np.float64)
        logs = math.log(-math.expm1(-bar_rate)) - bar_rate * z
        for x in below:
            logs += np.log(-np.expm1(-rate * (z - x)))
        for x in above:
            logs += math.log(-math.expm1(-rate)) - rate * (z - x)
        return float(np.logaddexp.reduce(logs))

    def estimates(self, output: Found) -> tuple[float, ...]:
        """Estimate the answers above the threshold from gap and number, each weighted by its variance: free, being
        released.

        Without bias for answers far above the threshold. Near it those that are found are found for their noise too,
        and a gap is then too large on average; the number is not.
        """
        _, gaps, numbers = output
        known = _variance(self.bar_scale) + _variance(self.question_scale)
        base = self.least_bar + _mean(self.bar_scale) - _mean(self.question_scale)
        if self.number_scale is None:
            return tuple(base + gap for gap in gaps)
        other = laws.laplace_variance(self.number_scale)
        weight = other / (known + other)
        return tuple(weight * (base + gap) + (1 - weight) * x for gap, x in zip(gaps, numbers, strict=True))

    def error(self, *, beta: float, questions: int = 1) -> int:
        """With probability 1 - ``beta`` over so many questions, everything called above is at least the threshold less
        this, and everything called below is less than the threshold plus this.
        """
        half = float(probability("beta", beta)) / 2
        many = whole("questions", questions, least=1)
        bar = _quantile_of_excess(half / self.rounds, self.bar_scale)
        question = _quantile_of_excess(half / many, self.question_scale)
        raised = self.least_bar - self.threshold
        return max(raised + bar, question - raised)

    def number_error(self, *, beta: float) -> int:
        """Return the error that a bought number exceeds with probability at most ``beta``."""
        if self.number_scale is None:
            raise ParameterError("numbers", "above 0 for numbers to have an error", self.numbers)
        return laws.laplace_quantile(float(probability("beta", beta)), self.number_scale)


def _find_above(exact: Array, noisy: Array, bars: Array, spare: Array) -> Found:
    places: list[int] = []
    gaps: list[int] = []
    start = 0
    for bar in bars.tolist():
        reached = noisy[start:] >= bar
        if not reached.any():
            break
        place = start + int(reached.argmax())
        places.append(place)
        gaps.append(int(noisy[place]) - bar)
        start = place + 1
    numbers = tuple(int(exact[place]) + extra for place, extra in zip(places, spare.tolist(), strict=False))
    return tuple(places), tuple(gaps), numbers


def _split(steps: int) -> Fraction:
    """ε₂/ε₁ = steps^(2/3), which minimises 1/ε₁² + steps²/ε₂²; any ratio is private, so that a rounded one will do."""
    return Fraction(round(1000 * steps ** (2 / 3)), 1000)


def _toss_up(bar: Fraction, question: Fraction) -> int:
    """The most m with P(N >= z + m) at least one half: (1 - p)·q^m / (1 - p·q), p and q the ratios of both laws."""
    bar_rate, rate = float(1 / bar), float(1 / question)
    return math.floor(math.log(2 * math.expm1(-bar_rate) / math.expm1(-bar_rate - rate)) / rate)


def _quantile_of_excess(chance: float, scale: Fraction) -> int:
    """The least t with P(N > t) = exp(-(t + 1)/scale) at most ``chance``."""
    guess = max(0, math.ceil(-float(scale) * math.log(chance)) - 2)
    while math.exp(-(guess + 1) / float(scale)) > chance:
        guess += 1
    return guess


def _mean(scale: Fraction) -> float:
    return 1 / math.expm1(min(float(1 / scale), 700.0))


def _variance(scale: Fraction) -> float:
    """Half of what two-sided noise of the same scale has."""
    return laws.laplace_variance(scale) / 2


def _times(event: Event, count: int) -> Event:
    return RepeatedEvent(event=event, count=count) if count > 1 else event
