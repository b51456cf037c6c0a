"""Privacy loss distributions of events, through dp_accounting, always pessimistic.

Sequences, groups and failure masses are opened here first, so that dp_accounting only ever sees a shift law whose
sensitivity was stated for the events' own neighbouring relation: it is never given a relation to interpret. What is not
a shift law is replaced by randomized response at its ε, which dominates every ε-DP law.

Privacy:
    Claim: the distribution dominates the events outside their failure masses.
    Proof: one-coordinate shifts dominate (see ``laws``); Poisson samples of a dominated pair are dominated by the
        sample of the dominating pair, because domination is post-processing; convolution keeps domination.
    Needs: dp_accounting rounds losses up and moves truncated mass to infinity, as it documents.
    Ref: Kairouz, Oh, Viswanath 2015; Doroshenko et al. 2022; Zhu, Dong, Wang 2022.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

from hubbub.errors import AccountingError
from hubbub.privacy.events.composed import ComposedEvent, RepeatedEvent, WithFailure
from hubbub.privacy.events.laws import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    RandomizedResponseEvent,
)
from hubbub.privacy.events.record import Event
from hubbub.privacy.events.sampling import GroupOfTwoEvent, PoissonSampledEvent
from hubbub.privacy.rounding import exp_down, float_down, float_up

_INTERVAL = 1e-4
_WIDEST_SIGMA = 1 << 16


def flatten(events: Iterable[Event]) -> Counter[Event]:
    """Each different part and how often it occurs: sequences opened, groups pushed inwards."""
    totals: Counter[Event] = Counter()
    for event in events:
        for part, count in _OPENED.get(type(event), _itself)(event):
            totals[part] += count
    return totals


def _itself(event: Any) -> Iterable[tuple[Event, int]]:
    return ((event, 1),)


def _parts(event: ComposedEvent) -> Iterable[tuple[Event, int]]:
    return flatten(event.events).items()


def _times(event: RepeatedEvent) -> Iterable[tuple[Event, int]]:
    return [(part, count * event.count) for part, count in flatten((event.event,)).items()]


def _group(event: GroupOfTwoEvent) -> Iterable[tuple[Event, int]]:
    """A group of two of a shift law is the same law at twice the shift; of a sequence, a sequence of groups."""
    same_law = event.event.double_shift()
    if same_law is not None:
        return [(replace(part, neighbors=event.neighbors), count) for part, count in flatten((same_law,)).items()]
    inside = flatten((event.event,))
    if inside == {event.event: 1}:
        return ((event, 1),)
    groups = [(flatten((GroupOfTwoEvent(event=part),)), count) for part, count in inside.items()]
    return [(part, inner * count) for group, count in groups for part, inner in group.items()]


_OPENED: dict[type[Event], Callable[[Any], Iterable[tuple[Event, int]]]] = {
    ComposedEvent: _parts,
    RepeatedEvent: _times,
    GroupOfTwoEvent: _group,
}


def distribution_of(parts: Mapping[Event, int]) -> Any:
    """Return the loss distribution of events that occur the given number of times each."""
    several = [_single(event) if count == 1 else _single(event).self_compose(count) for event, count in parts.items()]
    return reduce(lambda whole, part: whole.compose(part), several)


@lru_cache(maxsize=64)
def _single(event: Event) -> Any:
    make: Callable[[Any], Any] = _SINGLE.get(type(event), _response)
    return make(event)


def _response(event: Event) -> Any:
    """Randomized response at the event's ε: the worst of all ε-DP laws."""
    if event.epsilon is None:
        raise AccountingError(f"No loss distribution is proven for a {event.tag} event; use rdp or zcdp.", event=event)
    return _binary(event.epsilon)


def _binary(epsilon: Fraction) -> Any:
    """Two points ±ε: also the law of discrete Laplace noise for a shift of one, which dp_accounting rounds best."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_discrete_laplace_mechanism(float_up(epsilon), 1, **_options(Fraction(1)))


def _k_ary(event: RandomizedResponseEvent) -> Any:
    """More categories are a binary response that is erased with a fixed probability."""
    shrink = exp_down(-event.bound)
    kept = float_up((1 + shrink) / (1 + (event.categories - 1) * shrink))
    binary = _binary(event.bound)
    return binary.compute_mixture(_nothing(), min(1.0, kept))


def _of_poisson_sample(event: PoissonSampledEvent) -> Any:
    law = _SHIFTS.get(type(event.event))
    return _response(event) if law is None else law(event.event, event.rate)


def _with_failure(event: WithFailure) -> Any:
    return distribution_of(flatten((event.event,)))


def _laplace(event: LaplaceEvent, rate: Fraction) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_laplace_mechanism(float_down(event.scale / event.sensitivity), **_options(rate))


def _discrete_laplace(event: DiscreteLaplaceEvent, rate: Fraction) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_discrete_laplace_mechanism(float_up(1 / event.scale), event.sensitivity, **_options(rate))


def _gaussian(event: GaussianEvent, rate: Fraction) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(float_down(event.sigma / event.sensitivity), **_options(rate))


def _discrete_gaussian(event: DiscreteGaussianEvent, rate: Fraction) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    if event.dimension != 1 or event.sigma > _WIDEST_SIGMA:
        raise AccountingError(
            f"No loss distribution is proven for discrete Gaussian vectors, nor computed for σ above {_WIDEST_SIGMA}; "
            "use rdp or zcdp.",
            event=event,
        )
    shift = max(1, math.isqrt(math.floor(event.sensitivity_squared)))
    return pld.from_discrete_gaussian_mechanism(float_down(event.sigma), shift, **_options(rate))


def _nothing() -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.identity(value_discretization_interval=_INTERVAL)


def _options(rate: Fraction) -> dict[str, Any]:
    options: dict[str, Any] = {"pessimistic_estimate": True, "value_discretization_interval": _INTERVAL}
    return options | {"sampling_prob": float_up(rate)}


_SHIFTS: dict[type[Event], Callable[[Any, Fraction], Any]] = {
    LaplaceEvent: _laplace,
    DiscreteLaplaceEvent: _discrete_laplace,
    GaussianEvent: _gaussian,
    DiscreteGaussianEvent: _discrete_gaussian,
}


def _whole_shift(event: Event) -> Any:
    return _SHIFTS[type(event)](event, Fraction(1))


_SINGLE: dict[type[Event], Callable[[Any], Any]] = {
    **dict.fromkeys(_SHIFTS, _whole_shift),
    RandomizedResponseEvent: _k_ary,
    PoissonSampledEvent: _of_poisson_sample,
    WithFailure: _with_failure,
}
