"""The subject of an audit: something that makes a claim, and that can be asked on inputs that it makes up itself.

A subject never sees real data. It names its worst neighbours first and random ones after them, says what can be seen of
a pair without counting (`faults`: replayed noise, exact masses, the order of charge and reading), and gives independent
answers to be counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from hubbub.audit.chance import Chance
from hubbub.audit.exact import zcdp_delta
from hubbub.audit.outputs import Outputs
from hubbub.errors import AccountingError
from hubbub.privacy.events.event import Event

_SEEN = (0.02, 0.5)
"""Where a claim of ρ-zCDP is put to the test: at an ε whose δ can be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """(ε, δ) at one or more places: all of them are claimed."""

    points: tuple[tuple[float, float], ...]
    words: str
    """As its owner states it: "ε = 1", "ρ = 0.125 (zCDP)"."""

    @classmethod
    def pure(cls, epsilon: float, delta: float = 0.0) -> "Claim":
        """One pair of numbers."""
        words = f"ε = {epsilon:.6g}" if delta == 0 else f"(ε, δ) = ({epsilon:.6g}, {delta:.6g})"
        return cls(points=((float(epsilon), float(delta)),), words=words)

    @classmethod
    def of(cls, event: Event) -> "Claim":
        """Return the claim of an event; of zCDP, the points of its (ε, δ) curve that an audit can count."""
        failure = float(event.failure)
        if event.epsilon is not None:
            return cls.pure(float(event.epsilon), failure)
        if event.rho is None:
            raise AccountingError("The event claims neither an ε nor a ρ, so there is nothing to audit.")
        rho = float(event.rho)
        curve = [(epsilon, min(1.0, failure + zcdp_delta(rho, epsilon))) for epsilon in _steps(rho)]
        points = [point for point in curve if _SEEN[0] <= point[1] <= _SEEN[1]]
        words = f"ρ = {rho:.6g} (zCDP)" + (f" beside δ = {failure:.6g}" if failure else "")
        return cls(points=tuple(points[:: max(1, len(points) // 3)][:3]) or (curve[-1],), words=words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two neighbouring inputs, and what differs between them in a few words."""

    x: Any
    y: Any
    about: str


class Subject(Protocol):
    """Anything that claims a guarantee."""

    @property
    def name(self) -> str:
        """The name of the subject."""
        ...

    @property
    def claim(self) -> Claim:
        """The claim of the subject."""
        ...

    def pairs(self, chance: Chance) -> Iterator[Pair]:
        """Neighbouring inputs: the worst that are known, then others, for as long as it makes sense."""
        ...

    def near(self, pair: Pair, chance: Chance) -> Pair | None:
        """A pair not far from this one, to climb from a good pair to a better one; None where there is none."""
        ...

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Simpler pairs, simplest first: a counterexample is printed once it has no simpler one."""
        ...

    def faults(self, pair: Pair) -> list[str]:
        """List the faults of the pair that show without any counting, a sentence each; none where nothing is wrong."""
        ...

    def answers(self, value: Any, *, times: int) -> Outputs:
        """Independent answers on one input; errors are outputs (`Raised`)."""
        ...

    def show_pair(self, pair: Pair) -> str:
        """The pair so that a person can follow it."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A subject that works the same thing out again and again, and can keep it for as long as one audit lasts.

    No longer: who changes the product between two audits, as a gallery of bugs does, must see the change.
    """

    def remembering(self) -> Subject:
        """The same subject, which keeps what follows from its own parameters and inputs; no answer twice."""
        ...


def _steps(rho: float) -> list[float]:
    """Values of ε around the ρ whose δ is neither nearly 0 nor nearly 1."""
    return [rho + (2 * rho) ** 0.5 * step / 8 for step in range(0, 33)]
