"""The entry point of audits: search for a counterexample to a claim as hard as a few seconds allow, and report it.

First what needs no counting: faults of every pair. Then a search for the pair that tells most: a pilot of few draws on
each, steps from the best one to its neighbours. Last, fresh draws on the best pairs, which had no part in any choice,
give the bound and its confidence. A counterexample is made smaller before it is shown.

Of these last draws a quarter is looked at first, and the rest is drawn where it looks odd: where a bound at even odds
passes the claim.

    Claim: an honest subject is accused no more often than by all draws at once.
    Proof: it is accused only where the test of all its draws rejects, the event chosen by the first eighth of all of
        them, as if they had been drawn at once; whether they are drawn is decided before. A bound that is read from
        the first look alone is a second reading: each of the two has half of what may be wrong (Bonferroni).
    Power: what all draws see at s standard errors a quarter sees at s/2. All draws need more than five of them, and the
        first look about one and a half: of what all would see but for one case in 1,000, it lets a few in 1,000 go.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hubbub.audit.blackbox import CONFIDENCE, Drawn
from hubbub.audit.bounds import level_of
from hubbub.audit.chance import Chance
from hubbub.audit.finding import Finding
from hubbub.audit.outputs import Outputs
from hubbub.audit.report import Counterexample, Report, Tried
from hubbub.audit.subject import Pair, Remembering, Subject

_EVEN = 0.5
"""The confidence of what is only a hint."""
_LEAST = 1_000
"""Draws of a first look, at least."""

Progress = Callable[[str, float], None]
"""Hears what is being done, and which share of the audit is behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The effort of an audit. Every planted fault must be found with the defaults."""

    pairs: int = 24
    """Pairs that are looked at without counting."""
    pilots: int = 12
    """Pairs on which a pilot is drawn, the worst known first."""
    pilot: int = 600
    steps: int = 6
    """Steps from the best pair to pairs near it."""
    finals: int = 2
    """Pairs that are put to the last test, the worst known one among them; they share the confidence."""
    samples: int = 20_000
    first: int = 4
    """One draw in so many of these is looked at before the others are drawn; 1 draws all at once."""
    confidence: float = CONFIDENCE
    shrinking: int = 120
    """How many simpler pairs are tried before a counterexample is shown."""


def examine(
    subject: Subject, *, settings: Settings | None = None, seed: int = 0, progress: Progress | None = None
) -> Report:
    """Everything, in order; it ends with the first counterexample that needs no counting."""
    held = subject.remembering() if isinstance(subject, Remembering) else subject
    return _Examination(held, settings or Settings(), seed, progress or (lambda doing, done: None)).report()


class _Examination:
    def __init__(self, subject: Subject, settings: Settings, seed: int, progress: Progress) -> None:
        self._subject, self._settings, self._seed, self._progress = subject, settings, seed, progress
        self._chance = Chance(f"{seed}/{subject.name}")
        self._start = time.monotonic()
        self._tried = Tried()

    def report(self) -> Report:
        pairs = list(islice(self._subject.pairs(self._chance), self._settings.pairs))
        for place, pair in enumerate(pairs):
            self._progress(f"looking at {pair.about}", 0.4 * place / len(pairs))
            faults = self._faults(pair)
            if faults:
                return self._end([], self._smallest(pair, faults))
        best = self._search(pairs[: self._settings.pilots])
        findings: list[tuple[Pair, Finding]] = []
        for place, pair in enumerate(best):
            self._progress(f"counting answers on {pair.about}", 0.7 + 0.3 * place / len(best))
            findings += [(pair, one) for one in self._test(pair, self._settings.samples, share=len(best))]
        accused = [(pair, one) for pair, one in findings if self._accuses(one)]
        counted = self._shrink(*accused[0]) if accused else None
        return self._end([one for _, one in findings], counted)

    def _faults(self, pair: Pair) -> list[str]:
        self._tried = self._tried.more(pairs=1)
        return self._subject.faults(pair)

    def _smallest(self, pair: Pair, faults: list[str]) -> Counterexample:
        """A simpler pair with a fault, again and again, until no simpler one has any."""
        left, found = self._settings.shrinking, True
        while found and left > 0:
            found = False
            for smaller in self._subject.smaller(pair):
                self._progress("making the counterexample smaller", 0.9)
                left -= 1
                seen = self._subject.faults(smaller)
                if seen:
                    pair, faults, found = smaller, seen, True
                    break
                if left <= 0:
                    break
        return Counterexample(
            about=pair.about, shown=self._subject.show_pair(pair), sentences=tuple(faults), finding=None
        )

    def _search(self, pairs: list[Pair]) -> list[Pair]:
        """The pairs on which most seems to be lost: nothing is claimed yet, so looking costs no confidence."""
        ranked: list[tuple[float, int, Pair]] = []
        for place, pair in enumerate(pairs):
            self._progress(f"a pilot on {pair.about}", 0.4 + 0.2 * place / len(pairs))
            ranked.append((self._pilot(pair), -place, pair))
        for step in range(self._settings.steps if ranked else 0):
            self._progress("moving to worse neighbours", 0.6 + 0.1 * step / self._settings.steps)
            near = self._subject.near(max(ranked)[2], self._chance)
            if near is None:
                break
            ranked.append((self._pilot(near), -len(ranked), near))
        worst = [pair for _, _, pair in sorted(ranked, reverse=True, key=lambda one: one[:2])]
        return [*pairs[:1], *(pair for pair in worst if pair is not pairs[0])][: self._settings.finals]

    def _pilot(self, pair: Pair) -> float:
        """By how much a pilot passes the claim, at no confidence to speak of."""
        return max(
            one.epsilon - epsilon if one.bounds == "epsilon" else one.delta - delta
            for (epsilon, delta), one in zip(
                self._subject.claim.points, self._bound_loss(pair, self._settings.pilot, confidence=_EVEN), strict=True
            )
        )

    def _test(self, pair: Pair, samples: int, *, share: int) -> list[Finding]:
        """One finding for each point of the claim; all of them together have the confidence."""
        first = max(_LEAST, samples // self._settings.first)
        looks = 1 if first >= samples else 2
        level = level_of(self._settings.confidence) / (share * looks * len(self._subject.claim.points))
        drawn = self._draw(pair, min(first, samples))
        if looks == 2 and any(self._accuses(one) for one in self._read(drawn, confidence=_EVEN)):
            self._tried = self._tried.more(draws=2 * (samples - first))
            drawn.more(samples - first)
        return self._read(drawn, confidence=1 - level)

    def _bound_loss(self, pair: Pair, samples: int, *, confidence: float) -> list[Finding]:
        return self._read(self._draw(pair, samples), confidence=confidence)

    def _draw(self, pair: Pair, samples: int) -> Drawn:
        self._tried = self._tried.more(draws=2 * samples)
        return Drawn(_Answers(self._subject), pair.x, pair.y, samples=samples)

    def _read(self, drawn: Drawn, *, confidence: float) -> list[Finding]:
        """One set of draws for all points: each point has its share of the confidence, whatever the others see."""
        return [
            drawn.epsilon(confidence=confidence) if delta == 0 else drawn.delta(epsilon=epsilon, confidence=confidence)
            for epsilon, delta in self._subject.claim.points
        ]

    def _accuses(self, finding: Finding) -> bool:
        return any(finding.accuses(epsilon, delta=delta) for epsilon, delta in self._subject.claim.points)

    def _shrink(self, pair: Pair, finding: Finding) -> Counterexample:
        """Simpler pairs that are accused too, each by draws of its own; the first accusation stands by itself."""
        left = self._settings.shrinking // 10
        for smaller in self._subject.smaller(pair):
            if left <= 0:
                break
            left -= 1
            self._progress("making the counterexample smaller", 0.98)
            accused = [one for one in self._test(smaller, self._settings.samples, share=1) if self._accuses(one)]
            if accused:
                pair, finding = smaller, accused[0]
                break
        return Counterexample(
            about=pair.about, shown=self._subject.show_pair(pair), sentences=(str(finding),), finding=finding
        )

    def _end(self, findings: list[Finding], counterexample: Counterexample | None) -> Report:
        self._progress("done", 1.0)
        return Report(
            subject=self._subject.name,
            claim=self._subject.claim,
            findings=tuple(findings),
            counterexample=counterexample,
            tried=self._tried,
            confidence=self._settings.confidence,
            seed=self._seed,
            seconds=time.monotonic() - self._start,
            samples=self._settings.samples,
        )


@dataclass(frozen=True, slots=True)
class _Answers:
    """A subject as `lower_bound` asks: many answers at once."""

    subject: Subject

    def repeat(self, value: Any, *, times: int) -> Outputs:
        return self.subject.answers(value, times=times)
