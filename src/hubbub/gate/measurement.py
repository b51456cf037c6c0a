"""One thing that is measured: what it takes of a sealed result, how far one unit moves that, and with which noise.

Queries, strategies and estimators are tuples of these. Whatever an answer says about its noise follows from them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from hubbub.gate.meter import Meter
from hubbub.gate.release import Release
from hubbub.gate.secret import Facts, Sealed, Secret
from hubbub.mechanisms.base import Mechanism
from hubbub.privacy.sensitivity import Neighbors, Sensitivity

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Generic[R]):
    """A mechanism, and what it is handed of an engine's result.

    Privacy:
        Claim: measuring costs the mechanism's event, for a result of which one unit moves what is taken by at most
            ``sensitivity``.
        Proof: the gate holds the mechanism to the sensitivity (``Facts.check_fit``) and charges before it opens the
            seal; ``take`` runs under the seal.
        Needs: the sensitivity, proven where the measurement is made, for the bounds that the engine has enforced.
        Ref: SOUNDNESS 17.
    """

    mechanism: Mechanism
    sensitivity: Sensitivity
    take: Callable[[R], Any]
    """Make of the exact result what the mechanism is handed: whole numbers, scores, or what else it needs."""
    grid: Fraction | None = Fraction(1)
    """What is taken counts whole steps of this; None for raw reals, scores and multisets."""
    label: str = "value"

    def measure(self, sealed: Sealed[R], meter: Meter, *, account: str, neighbors: Neighbors) -> Release:
        """Charge for it, and only then open the result, take from it and draw."""
        facts = Facts(account=account, sensitivity=self.sensitivity, neighbors=neighbors, grid=self.grid)
        return meter.measure(self.mechanism, Secret(sealed.map(self.take), facts), label=self.label)
