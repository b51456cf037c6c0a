"""Events: frozen, versioned records of the cost of running a mechanism once.

One import for every event: ``record`` says what an event is and how it is stored, ``laws`` has the single laws,
``composed`` sequences and failure masses, ``sampling`` samples, shuffles and groups.
"""

from hubbub.privacy.events.composed import ApproxEvent, ComposedEvent, RepeatedEvent, WithFailure
from hubbub.privacy.events.laws import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from hubbub.privacy.events.record import Event, event_classes, event_from_json
from hubbub.privacy.events.sampling import FixedSizeSampledEvent, GroupOfTwoEvent, PoissonSampledEvent, ShuffledEvent

__all__ = [
    "ApproxEvent",
    "BoundedRangeEvent",
    "ComposedEvent",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "FixedSizeSampledEvent",
    "GaussianEvent",
    "GroupOfTwoEvent",
    "LaplaceEvent",
    "PoissonSampledEvent",
    "PureEvent",
    "RandomizedResponseEvent",
    "RepeatedEvent",
    "ShuffledEvent",
    "WithFailure",
    "event_classes",
    "event_from_json",
]
