"""The interface of an event, and the stable JSON that ledgers keep of it.

An event knows its least proven ε and ρ (exact rationals, rounded up), its failure mass δ₀ and its Rényi curve. It knows
nothing of data, budgets or noise. ``epsilon``, ``rho`` and ``rdp`` speak about the event *outside its failure mass*:
for each pair of neighbours there are laws N and N' within the claim, and with probability 1 − δ₀ the mechanism draws
from them. Every (ε, δ) law splits so.

A ledger written today must be readable for ever, so a tag never changes its meaning and a changed schema is a new
version: ``{"event": tag, "version": n, "neighbors": relation, field: value, …}``, rationals as strings "p/q" in lowest
terms. Unknown tags, versions, fields and malformed values are refused: never imported by name, never ignored.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np

from hubbub.errors import EventError, HubbubError, ParameterError
from hubbub.privacy.curves import Curve
from hubbub.privacy.rounding import float_up
from hubbub.privacy.sensitivity import Neighbors

ZERO = Fraction(0)

_RATIONAL = re.compile(r"-?(0|[1-9][0-9]{0,4000})/[1-9][0-9]{0,4000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Codec:
    """Conversion of one field to JSON and back; ``key`` is its name there where that differs."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(ABC):
    """The contract between mechanisms, accountants and the gate."""

    tag: ClassVar[str]
    version: ClassVar[int] = 1
    schema: ClassVar[Mapping[str, Codec]]

    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        if not isinstance(self.neighbors, Neighbors):
            raise ParameterError("neighbors", "one of the Neighbors", self.neighbors)
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Take every parameter at its exact value, or refuse it."""

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def epsilon(self) -> Fraction | None:
        """The least proven pure ε outside the failure mass, rounded up; None when there is none."""
        return None

    @property
    @abstractmethod
    def rho(self) -> Fraction | None:
        """The least proven zCDP ρ outside the failure mass, rounded up; None when there is none."""

    @property
    def failure(self) -> Fraction:
        """δ₀: the probability that ``epsilon``, ``rho`` and ``rdp`` do not cover."""
        return ZERO

    def rdp(self, orders: Sequence[float] | Curve) -> Curve:
        """Upper bounds of the Rényi divergence outside the failure mass, at each order above 1."""
        alphas = np.asarray(orders, dtype=np.float64)
        if alphas.size and not (np.isfinite(alphas).all() and alphas.min() > 1):
            raise ParameterError("orders", "finite numbers above 1", orders)
        curve = self._curve(alphas)
        if self.rho is not None:
            curve = np.minimum(curve, alphas * float_up(self.rho) * (1 + 2.0**-50))
        if self.epsilon is not None:
            curve = np.minimum(curve, float_up(self.epsilon))
        return curve

    def _curve(self, orders: Curve) -> Curve:
        return np.full(orders.shape, np.inf)

    def double_shift(self) -> "Event | None":
        """The same noise read for two such changes at once, where that is an event of the same law."""
        return None

    def to_json(self) -> dict[str, Any]:
        """The stable form, for ledgers and certificates; rationals are strings "p/q"."""
        return write(self)


_TABLE: dict[tuple[str, int], type[Event]] = {}
_Class = TypeVar("_Class", bound=type["Event"])


def register(cls: _Class) -> _Class:
    """Enter an event class into the table; a second class under the same tag and version is a mistake."""
    key = (cls.tag, cls.version)
    if key in _TABLE:
        raise EventError(f"The event {key} is defined twice.", tag=cls.tag, version=cls.version)
    _TABLE[key] = cls
    return cls


def event_classes() -> Mapping[tuple[str, int], type[Event]]:
    """Every event this version can read, by tag and version."""
    return dict(_TABLE)


def write(event: Event) -> dict[str, Any]:
    """The stable form of an event."""
    head = {"event": event.tag, "version": event.version, "neighbors": event.neighbors.value}
    return head | {codec.key or name: codec.encode(getattr(event, name)) for name, codec in event.schema.items()}


def event_from_json(stored: object) -> Event:
    """The event that ``to_json`` wrote, or an EventError that says what this version cannot read."""
    if not isinstance(stored, dict):
        raise EventError("A stored event must be a JSON object.", got=stored)
    tag, version = stored.get("event"), stored.get("version")
    cls = _TABLE.get((tag, version)) if isinstance(tag, str) and type(version) is int else None
    if cls is None:
        raise EventError(f"This Hubbub knows no event {tag!r} of version {version!r}.", tag=tag, version=version)
    keys = {name: codec.key or name for name, codec in cls.schema.items()}
    if set(stored) != {"event", "version", "neighbors", *keys.values()}:
        raise EventError(f"A stored {tag!r} event must have the fields {sorted(keys.values())}.", got=[*stored])
    try:
        fields = {name: codec.decode(stored[keys[name]]) for name, codec in cls.schema.items()}
        event = cls(neighbors=Neighbors(stored["neighbors"]), **fields)
    except EventError:
        raise
    except (HubbubError, ValueError, TypeError, RecursionError) as problem:
        raise EventError(f"A stored {tag!r} event does not hold: {problem}", tag=tag) from problem
    if event.neighbors != stored["neighbors"]:
        raise EventError(f"A stored {tag!r} event names another relation than its parts.", got=stored["neighbors"])
    return event


def _write_rational(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _read_rational(stored: object) -> Fraction:
    if not isinstance(stored, str) or not _RATIONAL.fullmatch(stored):
        raise EventError('A stored rational must be a string "p/q".', got=stored)
    value = Fraction(stored)
    if _write_rational(value) != stored:
        raise EventError(f"A stored rational must be in lowest terms: {stored} is not.", got=stored)
    return value


def _read_whole(stored: object) -> int:
    if type(stored) is not int:
        raise EventError("A stored count must be a whole number.", got=stored)
    return stored


def _read_events(stored: object) -> tuple[Event, ...]:
    if not isinstance(stored, list):
        raise EventError("Stored parts must be a list of events.", got=stored)
    return tuple(event_from_json(part) for part in stored)


RATIONAL = Codec(_write_rational, _read_rational)
WHOLE = Codec(int, _read_whole)
OPTIONAL_WHOLE = Codec(lambda value: value, lambda stored: None if stored is None else _read_whole(stored))
EVENT = Codec(write, event_from_json, key="base")
EVENTS = Codec(lambda events: [write(event) for event in events], _read_events)
