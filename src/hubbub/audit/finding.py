"""The result of an audit, in words and numbers that a reviewer can check by hand."""

import math
from dataclasses import dataclass

from hubbub.audit.bounds import Counts, clopper_pearson, delta_box, epsilon_box, refutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A lower bound on what a mechanism really loses, with the evidence for it.

    A mechanism that really is private for a smaller ε (at this δ) would give such a finding with probability at most
    1 − confidence. A small bound is no evidence of privacy: it says that this audit, on this pair of inputs, saw
    nothing worse.
    """

    epsilon: float
    """The bound itself, or the ε that was given when δ is what is bounded."""

    delta: float
    """The δ that was given, or the bound itself when ε was given."""

    bounds: str
    """Which of the two is the lower bound: "epsilon" or "delta"."""

    event: str
    """The set of outputs that told the inputs apart."""

    likelier: str
    """The input, "x" or "y", on which the event is the more likely: the order of the pair that the bound speaks of."""

    counts: Counts
    """How often the event came on the likelier input, and on the other, in draws that did not choose it."""

    confidence: float
    """Over both orders of the pair together."""

    def accuses(self, epsilon: float, *, delta: float | None = None) -> bool:
        """Return True if this evidence refutes the claim (ε, δ), at this finding's confidence; δ as audited unless
        given.

        One region of probabilities bounds every claim at once, so that asking about several costs no confidence.
        """
        if delta is None:
            delta = self.delta if self.bounds == "epsilon" else 0.0
        return refutes(self.counts, epsilon=epsilon, delta=delta, confidence=self._confidence_in_one_order)

    @property
    def box(self) -> float:
        """The same bound from two plain Clopper–Pearson intervals: the textbook figure, usually the lower one.

        Do not report the larger of the two bounds: each spends the whole confidence.
        """
        confidence = self._confidence_in_one_order
        if self.bounds == "epsilon":
            return epsilon_box(self.counts, confidence=confidence, delta=self.delta)
        return delta_box(self.counts, confidence=confidence, epsilon=self.epsilon)

    @property
    def probabilities(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Clopper–Pearson intervals for the event's probability on the likelier input and on the other."""
        counts = self.counts
        return (
            clopper_pearson(counts.hits, counts.draws, confidence=self.confidence),
            clopper_pearson(counts.other_hits, counts.other_draws, confidence=self.confidence),
        )

    @property
    def _confidence_in_one_order(self) -> float:
        return (1 + self.confidence) / 2

    def __repr__(self) -> str:
        bound, given = ("ε", "δ"), (self.epsilon, self.delta)
        if self.bounds == "delta":
            bound, given = bound[::-1], given[::-1]
        counts, other = self.counts, "y" if self.likelier == "x" else "x"
        return (
            f"<Finding {bound[0]} ≥ {_down(given[0])} at {bound[1]} = {given[1]:.6g} "
            f"(confidence 1 − {1 - self.confidence:.3g}): {self.event}: "
            f"{counts.hits} of {counts.draws} draws on {self.likelier}, "
            f"{counts.other_hits} of {counts.other_draws} on {other}>"
        )


def _down(value: float) -> str:
    return f"{math.floor(value * 10_000) / 10_000:.4f}"
