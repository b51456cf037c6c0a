"""Jobs, which ask something of the data, whatever it is asked in: SQL, a publication, a fit, a program on blocks.

A ``Job`` is ready to be paid for. A ``Draft`` may still lack facts (bounds and limits that nobody declared), which are
bought first, with a share of its price. Both are made of public facts alone; ``Session.run`` is the one door for them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

from hubbub.gate.meter import Meter, Reply
from hubbub.gate.secret import Sealed
from hubbub.policy.tables import Policy
from hubbub.privacy.events.event import Event
from hubbub.privacy.ways import ChosenWay, Payer
from hubbub.query.missing.bought import WantedFact
from hubbub.query.requests import Request

T = TypeVar("T")
P = TypeVar("P")

Known = dict[WantedFact, Any]
"""Facts, with what was measured of each."""


class SealedReader(Protocol):
    """Reads the data for a request, which is paid for by then; what it returns is sealed."""

    def __call__(self, request: Request, /) -> Sealed[Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """The terms of a plan: what is left of its price, and who pays."""

    rest: Fraction
    payer: Payer
    ways: tuple[ChosenWay, ...] | None = None
    """Those of a charge that is there already, and waits for its answer."""
    grouped: bool | None = None
    """Whether conditions are measured as one grouping; None lets the plan decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[T]):
    """A question with its price and its data, and how the answer is made, stored and shown."""

    question: str
    """Its identity in the ledger: the same question under the same policy and version is answered once."""
    policy: Policy
    """Under which it is asked, with the limits that the question names itself."""
    events: tuple[Event, ...]
    """Everything that will be measured: what is charged before the data is read."""
    epsilon: Fraction
    delta: Fraction
    """The price, facts that were bought for it included; an answer at a higher one may be served for it."""
    requests: tuple[Request, ...]
    """What is read at any rate. Each is prepared before the charge, so that public failures come before it."""
    measure: Callable[[SealedReader, Meter], str]
    """Read, measure, and return the text to store. It may read further requests that depend on what was measured."""
    present: Callable[[Reply], T]
    """Make what is returned of the stored text alone."""
    ways: tuple[ChosenWay, ...] = ()
    """The ways of measuring that were chosen from the balance, where there was a choice."""
    bought: Fraction = Fraction(0)
    """The part of the price that facts took which were bought for it."""
    renamed: str | None = None
    """What it would be in the ledger if its conditions were measured in the other way (plan.conditions)."""
    stage: str = "answering"
    """What it does, in public words, for whoever waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Generic[P, T]):
    """A plan that may lack facts, and the job that it becomes with them."""

    wanted: tuple[WantedFact, ...]
    """The facts that it lacks, whether the asker holds them or not."""
    price: Fraction
    plan: Callable[[Known, Purchase], P]
    """Plan with these facts, for what is left of the price."""
    job: Callable[[P], Job[T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen(Generic[P]):
    """A draft's plan as far as it is known for nothing."""

    plan: P
    """With facts of which any value serves, where the asker holds none."""
    known: Known
    unknown: dict[Any, Fraction]
    """The looks that would be bought, each with its share of the price."""
