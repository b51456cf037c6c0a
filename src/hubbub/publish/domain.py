"""The meaning of the cells of a published array: a column for each axis, a label or an interval for each place."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any, overload

from hubbub.errors import ParameterError
from hubbub.ledger.entry import digest_of, ratio
from hubbub.parameters import Real, rational, whole
from hubbub.publish.words import Words, len_of

_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Bins(Sequence[str]):
    """Intervals of one width, closed below and open above: what a column of reals is counted by."""

    low: Fraction
    high: Fraction
    steps: int

    @property
    def width(self) -> Fraction:
        return (self.high - self.low) / self.steps

    def edge(self, place: int) -> float:
        """Return the edge where a bin begins, or where the last one ends."""
        return float(self.low + place * self.width)

    def __len__(self) -> int:
        return self.steps

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(self.steps))]
        if not -self.steps <= place < self.steps:
            raise IndexError(place)
        at = place % self.steps
        return f"[{self.edge(at):.12g}, {self.edge(at + 1):.12g})"

    def place_of(self, edge: object) -> int | None:
        """Return the place of the edge that a number is; None for numbers between two edges."""
        if isinstance(edge, bool) or not isinstance(edge, int | float | Fraction):
            return None
        exact = float((Fraction(edge) - self.low) / self.width) if math.isfinite(edge) else math.inf
        near = round(exact) if math.isfinite(exact) else -1
        return near if 0 <= near <= self.steps and abs(exact - near) < _CLOSE * max(1, near) else None


def bins(low: Real, high: Real, steps: int) -> Bins:
    """``steps`` intervals of the same width from ``low`` to ``high``, for columns of reals; values outside are left
    out."""
    many, least = whole("steps", steps, least=1), rational("low", low)
    most = rational("high", high)
    if most <= least:
        raise ParameterError("high", f"above low, which is {float(least):g}", high)
    return Bins(Fraction(least), Fraction(most), many)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One column: the values that have a cell, in order."""

    name: str
    labels: Sequence[Any]
    """A range stays a range, however long, and so do bins and the words over an alphabet."""

    def __post_init__(self) -> None:
        if isinstance(self.labels, str) or not isinstance(self.labels, Sequence):
            raise ParameterError(self.name, "a range, a list of values, or bins", self.labels)
        if not isinstance(self.labels, range | Bins | Words):
            object.__setattr__(self, "labels", tuple(self.labels))
            if len(set(self.labels)) != len(self.labels):
                raise ParameterError(self.name, "a list of different values", self.labels)
        if not len_of(self.labels):
            raise ParameterError(self.name, "at least one value", self.labels)

    def place(self, label: Any) -> int:
        """Return the place of a label."""
        try:
            return self.labels.index(label)
        except ValueError:
            raise ParameterError(self.name, "one of its published values", label) from None

    def between(self, low: Any, high: Any) -> slice:
        """The places from one value to another, both included; of bins, those between two of their edges."""
        if isinstance(self.labels, Bins):
            first, last = self.labels.place_of(low), self.labels.place_of(high)
            if first is not None and last is not None and first < last:
                return slice(first, last)
            if not (isinstance(low, str) and isinstance(high, str)):
                raise ParameterError(self.name, "two edges of its bins, the lower first", (low, high))
        first, last = self.place(low), self.place(high)
        if first > last:
            raise ParameterError(self.name, "two values, the first first", (low, high))
        return slice(first, last + 1)

    def to_json(self) -> dict[str, Any]:
        """Everything about it."""
        labels = self.labels
        if isinstance(labels, range):
            told: dict[str, Any] = {"range": [labels.start, labels.stop, labels.step]}
        elif isinstance(labels, Bins):
            told = {"bins": [ratio(labels.low), ratio(labels.high), labels.steps]}
        elif isinstance(labels, Words):
            told = {"words": [labels.alphabet, labels.length, labels.shorter]}
        else:
            told = {"values": [_label_to_json(one) for one in labels]}
        return {"name": self.name} | told

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Axis":
        """Read an axis back from JSON; ParameterError for anything else."""
        match told:
            case {"name": str(name), "range": [int(start), int(stop), int(step)]} if step:
                return cls(name=name, labels=range(start, stop, step))
            case {"name": str(name), "bins": [str(low), str(high), int(steps)]}:
                return cls(name=name, labels=bins(Fraction(low), Fraction(high), steps))
            case {"name": str(name), "words": [str(alphabet), int(length), bool(shorter)]}:
                return cls(name=name, labels=Words(alphabet=alphabet, length=length, shorter=shorter))
            case {"name": str(name), "values": [*values]}:
                return cls(name=name, labels=[_label_from_json(one) for one in values])
        raise ParameterError("axis", "a name with a range, bins or values", dict(told))


def _label_to_json(label: Any) -> Any:
    if isinstance(label, datetime):
        return {"timestamp": label.isoformat()}
    if isinstance(label, date):
        return {"date": label.isoformat()}
    if label is None or isinstance(label, bool | int | float | str):
        return label
    raise ParameterError("label", "a number, a text, a truth value, a date or None", label)


def _label_from_json(told: Any) -> Any:
    match told:
        case {"timestamp": str(text)}:
            return datetime.fromisoformat(text)
        case {"date": str(text)}:
            return date.fromisoformat(text)
        case None | bool() | int() | float() | str():
            return told
    raise ParameterError("label", "a number, a text, a truth value, a date or None", told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """All axes, in the order of the array's dimensions."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if not names or len(set(names)) != len(names):
            raise ParameterError("axes", "at least one, with different names", names)

    @classmethod
    def of(cls, over: Mapping[str, Sequence[Any]]) -> "Domain":
        """From names with their values."""
        return cls(axes=tuple(Axis(name=name, labels=labels) for name, labels in over.items()))

    @classmethod
    def without_names(cls, shape: Sequence[int]) -> "Domain":
        """For a bare array."""
        return cls.of({f"axis{place}": range(length) for place, length in enumerate(shape)})

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len_of(axis.labels) for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    def axis(self, name: str) -> Axis:
        """By its name."""
        found = next((axis for axis in self.axes if axis.name == name), None)
        if found is None:
            raise ParameterError("axis", f"one of {', '.join(axis.name for axis in self.axes)}", name)
        return found

    def box(self, named: Mapping[str, Any]) -> tuple[slice, ...]:
        """The places of a box: a label, or two of them, for each axis that is named; all of the others."""
        places = [slice(None)] * len(self.axes)
        for name, wanted in named.items():
            axis = self.axis(name)
            if isinstance(wanted, tuple) and len(wanted) == 2:
                found = axis.between(*wanted)
            else:
                found = slice(axis.place(wanted), axis.place(wanted) + 1)
            places[self.axes.index(axis)] = found
        return tuple(places)

    def to_json(self) -> list[dict[str, Any]]:
        """Everything about it."""
        return [axis.to_json() for axis in self.axes]

    @classmethod
    def from_json(cls, told: Sequence[Mapping[str, Any]]) -> "Domain":
        """Read a domain back from JSON."""
        return cls(axes=tuple(Axis.from_json(one) for one in told))

    @property
    def fingerprint(self) -> str:
        """A short name for all of it."""
        return digest_of(self.to_json())
