"""The work and the result of an audit: for a person, and as JSON for a file."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hubbub.audit.blackbox import draws_that_count
from hubbub.audit.bounds import Counts, refutes
from hubbub.audit.finding import Finding
from hubbub.audit.subject import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The amount of work done."""

    pairs: int = 0
    draws: int = 0

    def more(self, *, pairs: int = 0, draws: int = 0) -> "Tried":
        """So much more."""
        return replace(self, pairs=self.pairs + pairs, draws=self.draws + draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """Two neighbouring inputs on which the claim fails, and why."""

    about: str
    shown: str
    sentences: tuple[str, ...]
    finding: Finding | None
    """The counts behind it; None where none were needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Either a counterexample, or how far the audit could see without one."""

    subject: str
    claim: Claim
    findings: tuple[Finding, ...]
    counterexample: Counterexample | None
    tried: Tried
    confidence: float
    seed: int
    seconds: float
    samples: int = 0
    """Draws on each input that are made where fewer look odd; 0: as many as the findings have."""

    @property
    def accused(self) -> bool:
        """True if the claim was refuted."""
        return self.counterexample is not None

    @property
    def sight(self) -> float | None:
        """Randomized response at this ε would have been accused by as many draws; None without counts, or for δ."""
        return None if not self.findings else _sight(self.claim, self.findings[0], self.samples)

    def __str__(self) -> str:
        found = self.counterexample
        head = f"{self.subject}: claims {self.claim.words}"
        if found is None:
            best = [repr(one) for one in self.findings]
            seen = "" if self.sight is None else f"; so many accuse randomized response from ε = {self.sight:.4g} on"
            looked = f"no counterexample in {self.tried.pairs} pairs and {self.tried.draws:,} draws{seen}"
            return "\n".join([head, f"  {looked}", *(f"  {one}" for one in best)])
        lines = [head, f"  COUNTEREXAMPLE: {found.about}", *(f"  {one}" for one in found.sentences)]
        return "\n".join([*lines, *(f"    {line}" for line in found.shown.splitlines())])

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types."""
        found = self.counterexample
        return {
            "subject": self.subject,
            "claim": {"words": self.claim.words, "points": [list(point) for point in self.claim.points]},
            "accused": self.accused,
            "counterexample": None
            if found is None
            else {
                "about": found.about,
                "inputs": found.shown,
                "sentences": list(found.sentences),
                "finding": None if found.finding is None else _finding(found.finding),
            },
            "findings": [_finding(one) for one in self.findings],
            "sight": self.sight,
            "pairs": self.tried.pairs,
            "draws": self.tried.draws,
            "confidence": self.confidence,
            "seed": self.seed,
            "seconds": self.seconds,
        }


def _finding(finding: Finding) -> dict[str, Any]:
    counts = finding.counts
    return {
        "bounds": finding.bounds,
        "epsilon": finding.epsilon,
        "delta": finding.delta,
        "event": finding.event,
        "likelier": finding.likelier,
        "hits": [counts.hits, counts.draws],
        "other_hits": [counts.other_hits, counts.other_draws],
        "confidence": finding.confidence,
    }


def _sight(claim: Claim, finding: Finding, samples: int) -> float | None:
    epsilon, delta = claim.points[0]
    own: Callable[[float], float | None] | None = getattr(finding, "sight", None)
    if own is not None:
        return own(epsilon)
    if delta > 0:
        return None
    draws = max(finding.counts.draws, draws_that_count(samples))
    other = max(finding.counts.other_draws, draws_that_count(samples))
    low, high = epsilon, max(2 * epsilon, epsilon + 12)
    for _ in range(40):
        middle = (low + high) / 2
        truth = 1 / (1 + math.exp(-middle))
        seen = Counts(
            hits=math.floor(draws * truth),
            draws=draws,
            other_hits=math.ceil(other * (1 - truth)),
            other_draws=other,
        )
        accused = refutes(seen, epsilon=epsilon, delta=0.0, confidence=(1 + finding.confidence) / 2)
        low, high = (low, middle) if accused else (middle, high)
    return high
