"""The second accountant agrees with the first on every event, and would notice a charge that is a little too small."""

import math
from fractions import Fraction

import pytest

from hubbub.errors import EventError
from hubbub.ledger.entry import canonical
from hubbub.ledger.verify.recount import ALLOWANCE, Recount, covers, recount
from hubbub.mechanisms.specimens.registry import build_specimens
from hubbub.privacy.events.event import (
    ApproxEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    FixedSizeSampledEvent,
    GaussianEvent,
    GroupOfTwoEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureEvent,
    RandomizedResponseEvent,
    RepeatedEvent,
    ShuffledEvent,
    WithFailure,
    event_classes,
)
from hubbub.privacy.sensitivity import Neighbors


def laws(epsilon: Fraction) -> list[Event]:
    return [
        LaplaceEvent(scale=1 / epsilon),
        LaplaceEvent(scale=3 / epsilon, sensitivity=Fraction(3)),
        DiscreteLaplaceEvent(scale=1 / epsilon),
        DiscreteLaplaceEvent(scale=7 / epsilon, sensitivity=7),
        DiscreteLaplaceEvent(scale=10**6 / epsilon, sensitivity=10**6),
        GaussianEvent(sigma=1 / epsilon),
        DiscreteGaussianEvent(sigma=1 / epsilon),
        DiscreteGaussianEvent(sigma=1 / epsilon, sensitivity_squared=Fraction(3), dimension=None),
        PureEvent(bound=epsilon),
        BoundedRangeEvent(range=epsilon),
        RandomizedResponseEvent(bound=epsilon, categories=5),
        RandomizedResponseEvent(bound=epsilon, categories=50),
        ApproxEvent(bound=epsilon, failure=Fraction(1, 10**7)),
    ]


def built(law: Event) -> list[Event]:
    found: list[Event] = [
        PoissonSampledEvent(event=law, rate=Fraction(1, 50)),
        RepeatedEvent(event=law, count=1000),
        ComposedEvent(events=(law, LaplaceEvent(scale=Fraction(3)))),
    ]
    if law.epsilon is not None or not law.failure:
        found += [GroupOfTwoEvent(event=law), GroupOfTwoEvent(event=RepeatedEvent(event=law, count=3))]
    if not law.failure:
        found.append(WithFailure(event=law, failure=Fraction(1, 10**8)))
    return found


ALL = [
    law
    for epsilon in (Fraction(1, 10**5), Fraction(1, 3000), Fraction(1, 10), Fraction(2), Fraction(40))
    for law in laws(epsilon)
]
REPLACED = LaplaceEvent(scale=Fraction(2), neighbors=Neighbors.REPLACE_ONE)
ALL += [part for law in laws(Fraction(1, 2)) for part in built(law)]
ALL += [
    PoissonSampledEvent(event=PureEvent(bound=Fraction(700)), rate=Fraction(1, 2)),
    FixedSizeSampledEvent(event=REPLACED, size=10, population=1000),
    ShuffledEvent(
        event=RandomizedResponseEvent(bound=Fraction(1), neighbors=Neighbors.LOCAL),
        reports=10_000,
        failure=Fraction(1, 10**8),
    ),
    *(specimen.mechanism.event for specimen in build_specimens()),
]


def counted(event: Event) -> Recount:
    return recount(canonical([event.to_json()]))


@pytest.mark.parametrize("event", ALL, ids=lambda event: event.tag)
def test_no_event_is_charged_less_than_the_second_accountant_finds(event: Event) -> None:
    found = counted(event)
    if event.epsilon is not None:
        assert covers(float(event.epsilon), found.epsilon)
    else:
        assert found.epsilon == math.inf
    if event.rho is not None:
        assert covers(float(event.rho), found.rho)
    assert covers(float(event.failure), found.failure)


TIGHT = [
    LaplaceEvent(scale=Fraction(10)),
    LaplaceEvent(scale=Fraction(1, 3)),
    DiscreteLaplaceEvent(scale=Fraction(10), sensitivity=4),
    DiscreteLaplaceEvent(scale=Fraction(10**7), sensitivity=10**6),
    DiscreteLaplaceEvent(scale=Fraction(10**5), sensitivity=4),
    PureEvent(bound=Fraction(1, 10)),
    PureEvent(bound=Fraction(1, 10**5)),
    RandomizedResponseEvent(bound=Fraction(1), categories=4),
    GaussianEvent(sigma=Fraction(7)),
    DiscreteGaussianEvent(sigma=Fraction(7), sensitivity_squared=Fraction(2), dimension=2),
    BoundedRangeEvent(range=Fraction(1, 2)),
    ApproxEvent(bound=Fraction(1, 4), failure=Fraction(1, 10**6)),
    RepeatedEvent(event=LaplaceEvent(scale=Fraction(10)), count=17),
    GroupOfTwoEvent(event=DiscreteGaussianEvent(sigma=Fraction(9))),
    GroupOfTwoEvent(event=ApproxEvent(bound=Fraction(1, 4), failure=Fraction(1, 10**6))),
    PoissonSampledEvent(event=PureEvent(bound=Fraction(2)), rate=Fraction(1, 10)),
    FixedSizeSampledEvent(event=REPLACED, size=10, population=100),
]


@pytest.mark.parametrize("event", TIGHT, ids=lambda event: event.tag)
def test_a_charge_two_percent_too_small_is_noticed(event: Event) -> None:
    found = counted(event)
    if event.epsilon is not None:
        assert not covers(float(event.epsilon) * 0.98, found.epsilon)
    assert event.rho is not None
    assert not covers(float(event.rho) * 0.98, found.rho)
    if event.failure:
        assert not covers(float(event.failure) * 0.98 - 1e-12, found.failure)


def test_the_events_of_an_entry_add_up() -> None:
    one, two = LaplaceEvent(scale=Fraction(10)), ApproxEvent(bound=Fraction(1, 5), failure=Fraction(1, 1000))
    found = recount(canonical([one.to_json(), two.to_json(), two.to_json()]))
    assert found.epsilon == pytest.approx(0.5, rel=ALLOWANCE)
    assert found.failure == pytest.approx(0.002)
    assert found.rho > counted(one).rho


def test_what_no_second_accountant_knows_is_said_to_be_on_trust() -> None:
    (shuffled,) = (event for event in ALL if isinstance(event, ShuffledEvent))
    assert counted(shuffled).on_trust == {"shuffled"}
    assert not any(counted(event).on_trust for event in TIGHT)


def test_every_event_that_can_be_stored_is_recounted() -> None:
    known = {(event.tag, event.version) for event in ALL}
    assert known >= set(event_classes())


def test_an_event_of_tomorrow_is_refused() -> None:
    with pytest.raises(EventError, match="No recount"):
        recount('[{"event":"laplace","version":2}]')
