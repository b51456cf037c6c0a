"""Events made of other events: failure masses, sequences, repetitions.

Privacy:
    Claim: the ε, ρ, Rényi curves and failure masses of events add up, also where each is chosen by earlier answers.
    Proof: the loss of a sequence is the sum of its losses, each bounded whatever came before. For failure masses: a run
        either had some failure, of chance at most Σ δ₀, or was drawn from the covered laws throughout.
    Needs: every part speaks of the same neighbouring relation; other mixtures are refused.
    Ref: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006; Bun, Steinke 2016; Mironov 2017.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from hubbub.errors import AccountingError, ParameterError
from hubbub.parameters import positive, probability, whole
from hubbub.privacy import curves
from hubbub.privacy.curves import Curve
from hubbub.privacy.events.record import EVENT, EVENTS, RATIONAL, WHOLE, ZERO, Codec, Event, register
from hubbub.privacy.sensitivity import Neighbors

_CACHE = 1024
_ONE = Fraction(1)


def part(name: str, value: object) -> Event:
    """An event inside another, checked."""
    if not isinstance(value, Event):
        raise ParameterError(name, "an Event", value)
    return value


def same_neighbors(events: Iterable[Event]) -> Neighbors:
    """The one relation that all events speak of; mixtures have no meaning and are refused."""
    relations = {event.neighbors for event in events}
    if len(relations) != 1:
        named = ", ".join(sorted(relations)) or "no events"
        raise AccountingError(f"Events only add up under one neighbouring relation. Got {named}.", got=relations)
    return relations.pop()


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxEvent(Event):
    """Anything that is only known to be (ε, δ)-DP.

    Privacy:
        Claim: outside a failure mass δ₀ = δ, Pure(ε) and Zcdp(ε·tanh(ε/2)).
        Proof: every (ε, δ) pair of laws is a post-processing of: with chance δ show the input, else answer by
            randomized response at ε. So each law is (1 − δ)·N + δ·F with N, N' within e^ε of each other.
        Needs: the mechanism is (ε, δ)-DP.
        Ref: Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016.
    """

    tag: ClassVar[str] = "approx"
    schema: ClassVar[Mapping[str, Codec]] = {"bound": RATIONAL, "failure": RATIONAL}

    bound: Fraction
    failure: Fraction

    def _check(self) -> None:
        self._set(bound=positive("bound", self.bound), failure=probability("failure", self.failure))

    @property
    def epsilon(self) -> Fraction:
        return self.bound

    @property
    def rho(self) -> Fraction:
        return curves.response_rho_rounded_up(self.bound)

    def _curve(self, orders: Curve) -> Curve:
        return curves.response_rdp(orders, self.bound)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class WithFailure(Event):
    """An event beside which something uncovered happens with chance at most ``failure``: a threshold passed, a tail.

    Privacy:
        Claim: the base event's ε, ρ and curve, outside ``failure``.
        Proof: for each pair of neighbours the law is (1 − δ)·N + δ·F, N the base event's; the flag of failure is
            independent of what N draws.
        Needs: the failure is separable in that sense (an unknown key's own, independent noise; a cut tail).
        Ref: Korolova, Kenthapadi, Mishra, Ntoulas 2009.
    """

    tag: ClassVar[str] = "with-failure"
    schema: ClassVar[Mapping[str, Codec]] = {"event": EVENT, "failure": RATIONAL}

    event: Event
    failure: Fraction

    def _check(self) -> None:
        base = part("event", self.event)
        if base.failure:
            raise ParameterError("event", "an event without a failure mass of its own", base)
        self._set(failure=probability("failure", self.failure), neighbors=base.neighbors)

    @property
    def epsilon(self) -> Fraction | None:
        return self.event.epsilon

    @property
    def rho(self) -> Fraction | None:
        return self.event.rho

    def _curve(self, orders: Curve) -> Curve:
        return self.event.rdp(orders)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedEvent(Event):
    """Several events about the same units, one after the other: everything adds up (see the module)."""

    tag: ClassVar[str] = "composed"
    schema: ClassVar[Mapping[str, Codec]] = {"events": EVENTS}

    events: tuple[Event, ...]

    def _check(self) -> None:
        if not isinstance(self.events, tuple | list) or not self.events:
            raise ParameterError("events", "a tuple of at least one Event", self.events)
        events = tuple(part("events", event) for event in self.events)
        self._set(events=events, neighbors=same_neighbors(events))

    @property
    def epsilon(self) -> Fraction | None:
        return _total(self, _epsilon_of)

    @property
    def rho(self) -> Fraction | None:
        return _total(self, _rho_of)

    @property
    def failure(self) -> Fraction:
        return min(_ONE, sum((event.failure for event in self.events), ZERO))

    def _curve(self, orders: Curve) -> Curve:
        total: Curve = np.sum([event.rdp(orders) for event in self.events], axis=0)
        return total

    def double_shift(self) -> Event | None:
        parts = tuple(event.double_shift() for event in self.events)
        known = tuple(event for event in parts if event is not None)
        return ComposedEvent(events=known) if len(known) == len(parts) else None


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedEvent(Event):
    """The same event ``count`` times, with fresh noise each time: everything is multiplied (see the module)."""

    tag: ClassVar[str] = "repeated"
    schema: ClassVar[Mapping[str, Codec]] = {"event": EVENT, "count": WHOLE}

    event: Event
    count: int

    def _check(self) -> None:
        base = part("event", self.event)
        self._set(count=whole("count", self.count, least=1), neighbors=base.neighbors)

    @property
    def epsilon(self) -> Fraction | None:
        return None if self.event.epsilon is None else self.count * self.event.epsilon

    @property
    def rho(self) -> Fraction | None:
        return None if self.event.rho is None else self.count * self.event.rho

    @property
    def failure(self) -> Fraction:
        return min(_ONE, self.count * self.event.failure)

    def _curve(self, orders: Curve) -> Curve:
        return self.event.rdp(orders) * self.count

    def double_shift(self) -> Event | None:
        base = self.event.double_shift()
        return None if base is None else RepeatedEvent(event=base, count=self.count)


def _epsilon_of(event: Event) -> Fraction | None:
    return event.epsilon


def _rho_of(event: Event) -> Fraction | None:
    return event.rho


@lru_cache(maxsize=_CACHE)
def _total(event: ComposedEvent, of: Callable[[Event], Fraction | None]) -> Fraction | None:
    """Sums are kept: a long composition is asked for its cost more than once."""
    costs = [of(part) for part in event.events]
    known = [cost for cost in costs if cost is not None]
    return sum(known, ZERO) if len(known) == len(costs) else None
