"""What happened: frozen, versioned records of what running a mechanism once has cost.

One import for every event: ``record`` says what an event is and how it is stored, ``laws`` has the single laws,
``composed`` sequences and failure masses, ``sampling`` samples, shuffles and groups.
"""

from hubbub.privacy.composed import ApproxEvent, ComposedEvent, RepeatedEvent, WithFailure
from hubbub.privacy.laws import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from hubbub.privacy.record import Event, event_classes, event_from_json
from hubbub.privacy.sampling import FixedSizeSampledEvent, GroupOfTwoEvent, PoissonSampledEvent, ShuffledEvent

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
