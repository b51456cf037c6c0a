"""Events of secret samples, shuffled local reports, and groups of two.

A sample amplifies only if *we* draw it and nobody sees it; Poisson samples under add/remove, samples of fixed size
under replace-one with a public population, shuffles of local reports only. Other relations are refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from hubbub.errors import AccountingError, ParameterError
from hubbub.parameters import between, whole
from hubbub.privacy import amplify, curves
from hubbub.privacy.curves import Curve
from hubbub.privacy.events.composed import part
from hubbub.privacy.events.laws import GaussianEvent
from hubbub.privacy.events.record import EVENT, RATIONAL, WHOLE, ZERO, Codec, Event, register
from hubbub.privacy.rounding import exp_up
from hubbub.privacy.sensitivity import Neighbors

_ONE = Fraction(1)
_CACHE = 4096


def _check_relation(event: object, neighbors: Neighbors, *, of: str) -> Event:
    base = part("event", event)
    if base.neighbors is not neighbors:
        raise AccountingError(
            f"{of} is only proven for {neighbors} events. Got one under {base.neighbors}.", needed=neighbors, event=base
        )
    return base


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSampledEvent(Event):
    """An event on a secret sample into which each unit comes independently with probability ``rate``.

    Privacy:
        Claim: Pure(ln(1 + q(e^ε − 1))), outside q·δ₀; ρ no worse than the base event's.
        Proof: a neighbour's extra unit is in the sample with chance q; the two laws share the other 1 − q. Rényi
            divergence is jointly quasi-convex, so a mixture of neighbouring pairs costs no more than one pair.
        Needs: add/remove; the sample is drawn by us and never shown.
        Ref: Balle, Barthe, Gaboardi 2018, theorem 8.
    """

    tag: ClassVar[str] = "poisson-sampled"
    schema: ClassVar[Mapping[str, Codec]] = {"event": EVENT, "rate": RATIONAL}

    event: Event
    rate: Fraction

    def _check(self) -> None:
        base = _check_relation(self.event, Neighbors.ADD_REMOVE, of="Poisson sampling")
        self._set(rate=between("rate", self.rate, 0, 1, low_open=True), neighbors=base.neighbors)

    @property
    def epsilon(self) -> Fraction | None:
        return _mixture_epsilon(self.event, self.rate)

    @property
    def rho(self) -> Fraction | None:
        return _mixture_rho(self.event, self.rate)

    @property
    def failure(self) -> Fraction:
        return self.rate * self.event.failure

    def _curve(self, orders: Curve) -> Curve:
        if isinstance(self.event, GaussianEvent):
            return curves.poisson_gaussian_rdp(orders, self.event.sigma / self.event.sensitivity, self.rate)
        return _pure_curve(self.epsilon, orders)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSizeSampledEvent(Event):
    """An event on a secret sample of ``size`` units out of ``population``, drawn without replacement.

    Privacy:
        Claim: Pure(ln(1 + (m/n)(e^ε − 1))), outside (m/n)·δ₀; ρ no worse than the base event's.
        Proof: the replaced unit is in the sample with chance m/n; otherwise both samples are the same.
        Needs: replace-one, so that n is the same on both sides and may be public; the sample is ours and never shown.
        Ref: Balle, Barthe, Gaboardi 2018, theorem 9.
    """

    tag: ClassVar[str] = "fixed-size-sampled"
    schema: ClassVar[Mapping[str, Codec]] = {"event": EVENT, "size": WHOLE, "population": WHOLE}

    event: Event
    size: int
    population: int

    def _check(self) -> None:
        base = _check_relation(self.event, Neighbors.REPLACE_ONE, of="Sampling of a fixed size")
        population = whole("population", self.population, least=1)
        size = whole("size", self.size, least=1, most=population)
        self._set(size=size, population=population, neighbors=base.neighbors)

    @property
    def rate(self) -> Fraction:
        """The chance that one unit is in the sample."""
        return Fraction(self.size, self.population)

    @property
    def epsilon(self) -> Fraction | None:
        return _mixture_epsilon(self.event, self.rate)

    @property
    def rho(self) -> Fraction | None:
        return _mixture_rho(self.event, self.rate)

    @property
    def failure(self) -> Fraction:
        return self.rate * self.event.failure

    def _curve(self, orders: Curve) -> Curve:
        if isinstance(self.event, GaussianEvent):
            ratio = self.event.sigma / self.event.sensitivity
            return curves.fixed_size_gaussian_rdp(orders, ratio, self.size, self.population)
        return _pure_curve(self.epsilon, orders)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOfTwoEvent(Event):
    """An add/remove event read under replace-one: one unit removed, another added.

    Privacy:
        Claim: Pure(2ε), Zcdp(4ρ), and a failure mass (1 + e^ε)·δ₀ beside Pure(2ε).
        Proof: P(x) ≤ e^ε·P(x″) + δ ≤ e^2ε·P(x') + (1 + e^ε)·δ through the dataset x″ between them; for zCDP the
            triangle inequality of Rényi divergences at k = 2.
        Needs: the base event is about add/remove; a failure mass needs an ε to be multiplied by, else refused.
        Ref: Dwork, Roth 2014, theorem 2.2; Bun, Steinke 2016, proposition 27.
    """

    tag: ClassVar[str] = "group-of-two"
    schema: ClassVar[Mapping[str, Codec]] = {"event": EVENT}

    event: Event

    def _check(self) -> None:
        base = _check_relation(self.event, Neighbors.ADD_REMOVE, of="A group of two")
        if base.failure and base.epsilon is None:
            raise AccountingError("A group of two multiplies a failure mass by e^ε; this event has no ε.", event=base)
        self._set(neighbors=Neighbors.REPLACE_ONE)

    @property
    def epsilon(self) -> Fraction | None:
        return None if self.event.epsilon is None else 2 * self.event.epsilon

    @property
    def rho(self) -> Fraction | None:
        return _group_rho(self.event)

    @property
    def failure(self) -> Fraction:
        if not self.event.failure or self.event.epsilon is None:
            return ZERO
        return _group_failure_rounded_up(self.event.epsilon, self.event.failure)

    def _curve(self, orders: Curve) -> Curve:
        same_law = self.event.double_shift()
        if same_law is not None:
            return same_law.rdp(orders)
        return _pure_curve(self.epsilon, orders)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledEvent(Event):
    """Local reports that reach the analyst in random order, without their senders.

    Privacy:
        Claim: outside ``failure``, Pure(amplify.shuffled_epsilon_rounded_up(ε₀, reports, failure)), never above ε₀.
        Proof: with chance at least e^-ε₀ any other device's report looks as if it were the first one's, so the changed
            report hides among a binomial number of clones.
        Needs: a local event that is pure; every report randomised independently by the same public mechanism; the
            shuffler shows only the multiset. The relation becomes replace-one.
        Ref: Feldman, McMillan, Talwar 2021; Feldman, McMillan, Talwar 2023.
    """

    tag: ClassVar[str] = "shuffled"
    schema: ClassVar[Mapping[str, Codec]] = {"event": EVENT, "reports": WHOLE, "failure": RATIONAL}

    event: Event
    reports: int
    failure: Fraction = ZERO

    def _check(self) -> None:
        base = _check_relation(self.event, Neighbors.LOCAL, of="Shuffling")
        if base.epsilon is None or base.failure:
            raise ParameterError("event", "a local event that is pure", base)
        self._set(
            reports=whole("reports", self.reports, least=1),
            failure=between("failure", self.failure, 0, 1, high_open=True),
            neighbors=Neighbors.REPLACE_ONE,
        )

    @property
    def epsilon(self) -> Fraction:
        assert self.event.epsilon is not None
        return amplify.shuffled_epsilon_rounded_up(self.event.epsilon, self.reports, self.failure)

    @property
    def rho(self) -> Fraction:
        pure = curves.response_rho_rounded_up(self.epsilon)
        return pure if self.event.rho is None else min(pure, self.event.rho)

    def _curve(self, orders: Curve) -> Curve:
        return curves.response_rdp(orders, self.epsilon)


def _mixture_epsilon(event: Event, rate: Fraction) -> Fraction | None:
    return None if event.epsilon is None else amplify.sampled_epsilon_rounded_up(event.epsilon, rate)


def _mixture_rho(event: Event, rate: Fraction) -> Fraction | None:
    epsilon = _mixture_epsilon(event, rate)
    pure = None if epsilon is None else curves.response_rho_rounded_up(epsilon)
    return event.rho if pure is None else pure if event.rho is None else min(pure, event.rho)


def _pure_curve(epsilon: Fraction | None, orders: Curve) -> Curve:
    return np.full(orders.shape, np.inf) if epsilon is None else curves.response_rdp(orders, epsilon)


@lru_cache(maxsize=_CACHE)
def _group_rho(event: Event) -> Fraction | None:
    same_law = event.double_shift()
    if same_law is not None:
        return same_law.rho
    found = [] if event.epsilon is None else [curves.response_rho_rounded_up(2 * event.epsilon)]
    if event.rho is not None and not event.failure:
        found.append(4 * event.rho)
    return min(found, default=None)


@lru_cache(maxsize=_CACHE)
def _group_failure_rounded_up(epsilon: Fraction, failure: Fraction) -> Fraction:
    return _ONE if epsilon > 1000 else min(_ONE, (1 + exp_up(epsilon)) * failure)
