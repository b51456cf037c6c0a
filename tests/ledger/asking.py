"""Small questions for tests: what is asked does not matter here, only what it costs."""

from fractions import Fraction
from typing import Any

from hubbub.ledger import Ask, Ledger
from hubbub.privacy.events.event import ApproxEvent, DiscreteGaussianEvent, Event, PureEvent

HALF = Fraction(1, 2)
UNIT = Fraction(1, 1 << 40)
DAY = 86_400_000_000


class Clock:
    """A clock that is set by hand, in microseconds."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now


def pure(epsilon: Fraction | int = HALF) -> PureEvent:
    """A pure event."""
    return PureEvent(bound=Fraction(epsilon))


def gaussian(rho: Fraction) -> DiscreteGaussianEvent:
    """A discrete Gaussian with σ = 1 whose squared sensitivity makes it cost just this ρ."""
    return DiscreteGaussianEvent(sigma=Fraction(1), sensitivity_squared=2 * rho, dimension=None)


def thresholded(epsilon: Fraction, failure: Fraction) -> ApproxEvent:
    """An event with a failure mass."""
    return ApproxEvent(bound=epsilon, failure=failure)


def ask(question: str = "q", *, event: Event | None = None, **changes: Any) -> Ask:
    """One question to account "patients" at ε = 1/2."""
    fields: dict[str, Any] = {
        "account": "patients",
        "question": question,
        "events": (event or pure(),),
        "epsilon": HALF,
    }
    return Ask(**(fields | changes))


def charges(ledger: Ledger) -> int:
    """How many charges account "patients" has paid."""
    return ledger.statement("patients").spent.charges


def loss(ledger: Ledger, kind: str = "account", name: str = "") -> Fraction:
    """What account "patients", or someone below it, has spent."""
    return ledger.statement("patients", kind, name).spent.loss * UNIT
