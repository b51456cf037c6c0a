"""One run is enough where there are many canaries: audits of what is too slow to be run ten thousand times.

m records that we made up are put into the input, each or not by a fair coin of ours; the algorithm runs once; a score
says of each record how much the output looks as if it had been there. The k₊ highest are guessed "in", the k₋ lowest
"out", and of the others nothing is said. What is private is hard to guess, so many right guesses refute the claim.

    Claim: let the algorithm be (ε, δ)-private, q = e^ε/(1 + e^ε), and W the number of right ones among r guesses. Then
        P(W ≥ v) ≤ P(Bin(r, q) ≥ v) + m·δ·(1 − q)·d, where d is the mean over j = 0 … r − 1 of the greatest
        P(Bin(j, q) = k) with v − r + j ≤ k ≤ v − 1.
    Proof: fix the output y and reveal the coins of guessed canaries one after the other, in an order of our choice. Let
        R be whether the next guess is right. By Bayes with even odds, P(R | y, all other coins) is P₁/(P₁ + P₀) with
        Pᵦ the density of y when this canary is guessed rightly or not; this is at most q + e⁺ with
        e = (1 − q)·(P₁ − e^ε·P₀)/(P₁ + P₀), which is above 0 for at most one of the two guesses; the mean of e⁺ over y
        and both values of the coin is at most (1 − q)·(δ + δ)/2 = (1 − q)·δ. Knowing fewer coins averages P(R | …), and
        the bound with it. Let Φ be the probability of v right guesses in the end if all guesses to come were right with
        probability q, independently: Φ starts as P(Bin(r, q) ≥ v) and ends as whether W ≥ v. A step with j guesses
        still to come after it adds in the mean (P(R | …) − q)·P(Bin(j, q) = v − 1 − w), where w of the r − 1 − j
        guesses before it were right: nothing that is above 0 for pure ε, and at most e⁺ times the greatest such
        probability otherwise. Average over all orders: each guess has each j equally often, so that all steps together
        add at most d·Σ e⁺ over the canaries, in the mean m·(1 − q)·δ·d.
    Needs: independent fair coins that the algorithm does not know; (ε, δ) for adding or removing one record; guesses
        that are a function of the output alone; r fixed beforehand. Several r are tried, each with an equal share of
        1 − confidence (Bonferroni).
    Ref: after Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run", 2023; their term for δ is
        2·m·δ·max over i of P(v − i ≤ Bin(r, q) < v)/i. Ours is exact at v = r, where an algorithm that publishes
        everything with probability δ reaches it.

A δ above 1 − confidence hides everything: with that probability the claim itself allows all canaries to be published.

One bound for δ and many for ε: what is private for ε is private for every larger ε, so whichever ε the bound refutes,
all smaller ones are refuted with it, at the same confidence.
"""

import math
import secrets
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from hubbub.audit.blackbox import CONFIDENCE
from hubbub.audit.bounds import Counts, level_of
from hubbub.audit.chance import Chance
from hubbub.audit.finding import Finding
from hubbub.audit.outputs import Raised
from hubbub.audit.report import Counterexample, Report, Tried
from hubbub.audit.subject import Claim
from hubbub.errors import ParameterError
from hubbub.parameters import between, non_negative, whole

_SHARES = ((4, 4), (8, 8), (8, 0), (32, 0))
"""Guesses "in" and "out" beside guesses about all, as one canary in so many (0: none): the clearest, the copied."""

_SLACK = 1e-9
"""Relative error allowed to the incomplete beta function, always taken towards innocence."""

_HIGHEST = 30.0
_SCAN = 120
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Guessed(Finding):
    """A lower bound on ε from one run: its counts are right and wrong guesses."""

    canaries: int
    tests: int
    """Numbers of guesses that were tried, and share the confidence."""

    def accuses(self, epsilon: float, *, delta: float | None = None) -> bool:
        """Return True if the number of right guesses refutes the claim (ε, δ); δ as audited unless given."""
        right, guesses, many = self.counts.hits, self.counts.draws, self.canaries
        if delta is None or delta == self.delta:
            return 0.0 < self.epsilon >= epsilon
        return proven(right, guesses=guesses, canaries=many, delta=delta, level=self._level) >= max(epsilon, 1e-12)

    @property
    def most(self) -> float:
        """Return the largest ε that this many canaries can prove: when every guess is right."""
        return proven(self.canaries, guesses=self.canaries, canaries=self.canaries, delta=self.delta, level=self._level)

    def sight(self, epsilon: float) -> float | None:
        """Canaries told apart as by randomized response at this ε would refute the claim; None where none can."""
        least = bisect_left(range(self.canaries + 1), True, key=lambda right: self._accusing(right, epsilon))
        if least > self.canaries:
            return None
        return math.log(least / (self.canaries - least)) if least < self.canaries else self.most

    def _accusing(self, right: int, epsilon: float) -> bool:
        of = self.canaries
        return p_value(right, guesses=of, canaries=of, epsilon=epsilon, delta=self.delta) <= self._level

    @property
    def _level(self) -> float:
        return level_of(self.confidence) / self.tests

    @property
    def box(self) -> float:
        """There is one count only, so this is the bound itself."""
        return self.epsilon

    def __repr__(self) -> str:
        return (
            f"<Guessed ε ≥ {math.floor(self.epsilon * 1e4) / 1e4:.4f} at δ = {self.delta:.6g} "
            f"(confidence 1 − {1 - self.confidence:.3g}): {self.event}: right in {self.counts.hits} of "
            f"{self.counts.draws} guesses; {self.canaries} canaries can prove ε ≥ {self.most:.4g} at most>"
        )


def one_run(
    algorithm: Callable[[list[Any]], Any],
    *,
    canaries: Sequence[Any],
    score: Callable[[Any, Any], float],
    epsilon: float,
    base: Sequence[Any] = (),
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
    name: str | None = None,
    seed: int | None = None,
) -> Report:
    """Run ``algorithm`` once on ``base`` and about half of the ``canaries``, and guess which.

    ``score(output, canary)`` is higher the more the output looks as if the canary had been in. The claim (``epsilon``,
    ``delta``) is about adding or removing one record. Canaries are records made up for this; the further apart, the
    better: a basis vector each, or a text that nothing else resembles. The coins follow from ``seed``, which the report
    names; by default it is a fresh one, as the confidence asks. An error is an output: all scores are then equal.
    """
    epsilon, delta = float(non_negative("epsilon", epsilon)), float(between("delta", delta, 0, 1, high_open=True))
    many = whole("the number of canaries", len(canaries), least=2)
    level = level_of(confidence)
    seed = secrets.randbits(63) if seed is None else seed
    start = time.monotonic()
    chance = Chance(f"{seed}/canaries")
    inside = np.array([chance.one_in(2) for _ in canaries])
    output = _ran(algorithm, [*base, *(canary for canary, there in zip(canaries, inside, strict=True) if there)])
    scores = _scores(output, canaries, score)
    order = np.argsort(scores, kind="stable")
    tried = sizes(many, _above(scores))
    found = [
        _judge_guesses(order, inside, size, delta=delta, confidence=confidence, tests=len(tried), level=level)
        for size in tried
    ]
    best = max(range(len(tried)), key=lambda place: (found[place].accuses(epsilon), found[place].epsilon))
    finding = found[best]
    counterexample = None
    if finding.accuses(epsilon):
        about = f"{many} canaries, each in or out by a fair coin; one run"
        shown = _show_guesses(order, tried[best], canaries, inside, scores)
        counterexample = Counterexample(about=about, shown=shown, sentences=(repr(finding),), finding=finding)
    words = Claim.pure(epsilon, delta)
    if isinstance(output, Raised):
        words = Claim(points=words.points, words=f"{words.words}; its run ended with {output!r}")
    return Report(
        subject=str(name or getattr(algorithm, "__name__", type(algorithm).__name__)),
        claim=words,
        findings=(finding,),
        counterexample=counterexample,
        tried=Tried(pairs=many, draws=1),
        confidence=confidence,
        seed=seed,
        seconds=time.monotonic() - start,
    )


def sizes(canaries: int, above: int) -> list[tuple[int, int]]:
    """Guesses (in, out) that are tried: how many in all follows from the number of canaries alone.

    In a guess about all, those whose score is above the mean are in: about half are, though not to the very one.
    """
    found = [(above, canaries - above)]
    found += [(canaries // high, canaries // low if low else 0) for high, low in _SHARES]
    return [size for size in dict.fromkeys(found) if sum(size)]


def p_value(right: int, *, guesses: int, canaries: int, epsilon: float, delta: float = 0.0) -> float:
    """Bound the probability of this many right guesses, or more, if the claim holds."""
    right = whole("right", right, least=0, most=guesses)
    if right == 0:
        return 1.0
    q = 1 / (1 + math.exp(-epsilon))
    tail = float(special.betainc(right, guesses - right + 1, q))
    more = canaries * delta * (1 - q) * _reach(right, guesses, q) if delta else 0.0
    return min(1.0, (tail + more) * (1 + _SLACK))


def proven(right: int, *, guesses: int, canaries: int, delta: float, level: float) -> float:
    """Return the largest ε that this many right guesses refute; 0 when they refute none."""

    def refutes(epsilon: float) -> bool:
        return p_value(right, guesses=guesses, canaries=canaries, epsilon=epsilon, delta=delta) <= level

    steps = [_HIGHEST * step / _SCAN for step in range(_SCAN + 1)]
    last = max((place for place, step in enumerate(steps) if refutes(step)), default=None)
    if last is None or last == _SCAN:
        return 0.0 if last is None else _HIGHEST
    low, high = steps[last], steps[last + 1]
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return low


def _reach(right: int, guesses: int, q: float) -> float:
    """``d`` of the claim. The greatest of a binomial's probabilities is at its mode, or at the end nearest to it."""
    later = np.arange(guesses)
    least = np.maximum(0, right - guesses + later)
    most = np.minimum(later, right - 1)
    k = np.clip(np.floor((later + 1) * q), least, most)
    log = (
        special.gammaln(later + 1)
        - special.gammaln(k + 1)
        - special.gammaln(later - k + 1)
        + special.xlogy(k, q)
        + special.xlog1py(later - k, -q)
    )
    return float(np.mean(np.exp(log)))


def _ran(algorithm: Callable[[list[Any]], Any], rows: list[Any]) -> Any:
    try:
        return algorithm(rows)
    except Exception as error:
        return Raised(type(error).__name__, str(error))


def _scores(output: Any, canaries: Sequence[Any], score: Callable[[Any, Any], float]) -> np.ndarray[Any, Any]:
    """One number a canary; what is no number ranks lowest."""
    if isinstance(output, Raised):
        return np.zeros(len(canaries))
    scores = np.array([score(output, canary) for canary in canaries], dtype=np.float64)
    if scores.ndim != 1:
        raise ParameterError("score", "a function that gives one number", scores.shape)
    return np.where(np.isnan(scores), -np.inf, scores)


def _above(scores: np.ndarray[Any, Any]) -> int:
    """Count the scores above the mean of those that are finite."""
    finite = scores[np.isfinite(scores)]
    return int(np.count_nonzero(scores > finite.mean())) if len(finite) else len(scores) // 2


def _judge_guesses(
    order: Any, inside: Any, size: tuple[int, int], *, delta: float, confidence: float, tests: int, level: float
) -> Guessed:
    high, low = size
    many, guesses = len(inside), high + low
    right = int(np.count_nonzero(inside[order[many - high :]]) + np.count_nonzero(~inside[order[:low]]))
    return Guessed(
        epsilon=proven(right, guesses=guesses, canaries=many, delta=delta, level=level / tests),
        delta=delta,
        bounds="epsilon",
        event=f"the {high} canaries of the highest score are guessed in, the {low} of the lowest out",
        likelier="x",
        counts=Counts(hits=right, draws=guesses, other_hits=guesses - right, other_draws=guesses),
        confidence=confidence,
        canaries=many,
        tests=tests,
    )


def _show_guesses(order: Any, size: tuple[int, int], canaries: Sequence[Any], inside: Any, scores: Any) -> str:
    """The clearest guesses, from both ends, and what was true."""
    high, low = size
    each = _SHOWN // 2 if low else _SHOWN
    guesses = [(int(place), "in") for place in order[::-1][: min(high, each)]]
    guesses += [(int(place), "out") for place in order[: min(low, each)]]
    return "\n".join(
        f"canary {place} = {_short(canaries[place])}: score {scores[place]:.6g}, "
        f"guessed {guess}, was {'in' if inside[place] else 'out'}"
        for place, guess in guesses
    )


def _short(canary: Any) -> str:
    text = " ".join(repr(canary).split())
    return text if len(text) <= 60 else text[:59] + "…"
