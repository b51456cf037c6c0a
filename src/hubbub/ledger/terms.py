"""The requests of owners and askers to a ledger, and its replies: frozen, and free of any store."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Protocol

from hubbub.errors import ParameterError
from hubbub.ledger.entry import digest_of, ratio
from hubbub.parameters import between, positive, whole
from hubbub.privacy.events.event import Event
from hubbub.privacy.filter import Budget, Charge, Filter, Room, Spent
from hubbub.privacy.loss import Loss
from hubbub.privacy.ways import ChosenWay

OWNER = "owner"
"""The principal who needs no grant and has no limit of its own."""

ALLOWANCE = 3
"""How many failures after a charge a principal may see on an account before it is frozen there. ``verify`` holds every
ledger against it, so another number must be a new kind of entry."""

_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,200}")


def check_name(parameter: str, value: object) -> str:
    """A name that prints on one line."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ParameterError(parameter, "a name of 1 to 200 printable characters", value)
    return value


def question_digest(question: str, policy: str, version: str) -> str:
    """The short name under which a question is found again."""
    return digest_of([question, policy, version])


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """The budget is good for each period anew: an explicit policy, since k periods cost k budgets together."""

    days: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "days", whole("days", self.days, least=1, most=36_500))

    @property
    def microseconds(self) -> int:
        """One period."""
        return self.days * 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question with its price: all that a ledger needs to know before anything is read."""

    account: str
    question: str
    """The canonical question, without ε."""
    events: tuple[Event, ...]
    """What will be drawn. Each is charged, rounded up by itself, so that a prepaid gate can pay them one by one."""
    epsilon: Fraction | None
    """What was asked for; the same question at this ε or a lower one is served the same answer. None: never again,
    except under the same key."""
    delta: Fraction = Fraction(0)
    principal: str = OWNER
    policy: str = ""
    """The fingerprint of the policy that the question was read under."""
    version: str = "1"
    """The owner's name for the state of the data: never a hash of its content."""
    key: str | None = None
    """An idempotency key, scoped to the principal."""
    ways: tuple[ChosenWay, ...] = ()
    """How the events were chosen from the balance: a charge that lost its answer is answered in the same ways."""
    bought: Fraction = Fraction(0)
    """The part of ``epsilon`` that facts took which were bought for it: an answer says its whole price."""
    beside: tuple[Event, ...] = ()
    """What the principal will ask for next: another's answer is shared only where its limits can pay for these too."""
    digest: str = field(init=False)
    """What makes it the same question: its text, the policy and the version of the data."""
    request: str = field(init=False)
    """What makes it the same request under an idempotency key: the question, its price and the account."""

    def __post_init__(self) -> None:
        for name in ("account", "principal", "version"):
            check_name(name, getattr(self, name))
        if self.key is not None:
            check_name("key", self.key)
        for name in ("question", "policy"):
            if not isinstance(getattr(self, name), str):
                raise ParameterError(name, "text", getattr(self, name))
        events = tuple(self.events)
        if not events or not all(isinstance(event, Event) for event in events):
            raise ParameterError("events", "one or more Events", self.events)
        object.__setattr__(self, "events", events)
        object.__setattr__(self, "beside", tuple(self.beside))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", between("delta", self.delta, 0, 1, high_open=True))
        digest = question_digest(self.question, self.policy, self.version)
        object.__setattr__(self, "digest", digest)
        request = digest_of([self.account, digest, self.epsilon and ratio(self.epsilon), ratio(self.delta)])
        object.__setattr__(self, "request", request)

    @property
    def own_epsilon(self) -> Fraction | None:
        """The ε that its own events use: without the facts that were bought for it, and less where less errs least."""
        if self.ways:
            return sum((epsilon for _, epsilon in self.ways), Fraction(0))
        return None if self.epsilon is None else self.epsilon - self.bought

    @property
    def body(self) -> dict[str, Any]:
        """The JSON that the ledger keeps of it."""
        bought = {"bought": ratio(self.bought)} if self.bought else {}
        return bought | {
            "account": self.account,
            "delta": ratio(self.delta),
            "epsilon": self.epsilon and ratio(self.epsilon),
            "events": [event.to_json() for event in self.events],
            "policy": self.policy,
            "principal": self.principal,
            "question": self.question,
            "request": self.request,
            "version": self.version,
            "ways": [[name, ratio(epsilon)] for name, epsilon in self.ways],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The terms of a charge that has no answer yet, or a stored one: with them, the same plan is made again."""

    ways: tuple[ChosenWay, ...]
    bought: Fraction
    epsilon: Fraction
    """What was asked for."""
    delta: Fraction


class Charged(Protocol):
    """Whatever names the charge that paid for it: a ticket, a payment, a release."""

    @property
    def entry(self) -> int:
        """The charge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The right to answer one question: paid, and good for exactly one stored answer."""

    entry: int
    """The charge."""
    account: str
    paid: Charge
    """What the charge cost when it was made."""
    cost: Charge
    """What this request added to the account: nothing when an earlier charge or answer was found."""
    answer: str | None
    """The stored answer, if there is one; otherwise draw, then settle."""
    terms: Filter
    """How the account counted when this was decided: its events are taken from what was paid in the same way."""
    stored: datetime | None = None
    """When that answer was stored."""
    epsilon: Fraction | None = None
    """What the charge was asked for: an earlier one may have been asked for more than this request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The state of one holder of a budget: an account, a project, or a principal's limit."""

    account: str
    kind: str
    """"account", "project" or "principal"."""
    name: str
    budget: Budget
    renewal: Renewal | None
    opened: datetime
    since: datetime
    """When the present period began."""
    period: int
    spent: Spent
    left: Room
    odometer: Loss
    """What the present period's answers add up to, as a guarantee."""
    closed: bool = False
    """Whether its owner lets nothing more be spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The right of a principal to spend from an account, until a time, and under a project."""

    account: str
    principal: str
    project: str | None
    expires: datetime | None
    revoked: bool
    entry: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The number of engine failures of a principal after a charge, since the owner last thawed it."""

    account: str
    principal: str
    many: int

    @property
    def frozen(self) -> bool:
        """True if the allowance is used up; the owner has the data and needs none."""
        return self.principal != OWNER and self.many >= ALLOWANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something about the data that was bought with budget and may be used again for nothing."""

    account: str
    version: str
    name: str
    value: Any
    entry: int
    paid: int
    """The charge that bought it."""


def budget_json(budget: Budget, renewal: Renewal | None) -> dict[str, Any]:
    """The terms of a holder, as they are kept."""
    return {
        "delta": ratio(budget.delta),
        "epsilon": ratio(budget.epsilon),
        "neighbors": budget.neighbors.value,
        "renewal_days": renewal.days if renewal else None,
    }
