"""A huge product of columns, and one whole number for each combination of their values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.noise.scattered import MOST_SIZE
from hubbub.parameters import whole
from hubbub.publish.domain import Axis, Domain
from hubbub.publish.strategies.layer import Array
from hubbub.publish.words import Words, len_of

Labels = Words | Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Columns with their values: ranges, lists, bins or ``Words``; the last column's place changes fastest."""

    axes: tuple[tuple[str, Labels], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.axes]
        if not names or len(set(names)) != len(names):
            raise ParameterError("axes", "at least one, with different names", names)
        checked = tuple(
            (name, one if isinstance(one, Words | range) else Axis(name=name, labels=one).labels)
            for name, one in self.axes
        )
        object.__setattr__(self, "axes", checked)
        if not 1 <= self.size <= MOST_SIZE:
            raise ParameterError("axes", "1 to 2^63 combinations", self.size)

    @classmethod
    def of(cls, over: Mapping[str, Labels] | int) -> "Keys":
        """From names with their values; a number alone stands for bare codes below it."""
        if isinstance(over, Mapping):
            return cls(axes=tuple(over.items()))
        return cls(axes=(("code", range(whole("domain", over, least=1, most=MOST_SIZE))),))

    @classmethod
    def over(cls, domain: Domain) -> "Keys":
        """The axes of a domain."""
        return cls(axes=tuple((axis.name, axis.labels) for axis in domain.axes))

    def pack(self, places: Sequence[Array]) -> Array:
        """A code for each row of places, one column for each axis.

        Codes are numbers in mixed radix, below ``size`` at every step: nothing wraps, and ``digits`` undoes it.
        """
        code = np.zeros(len(places[0]), dtype=np.int64)
        for column, length in zip(places, self.lengths, strict=True):
            here = column.astype(np.int64)
            code = here if length == MOST_SIZE else code * length + here
        return code

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(len_of(labels) for _, labels in self.axes)

    @property
    def size(self) -> int:
        """The number of combinations, present or not."""
        return math.prod(self.lengths)

    def encode(self, columns: Mapping[str, Any]) -> Array:
        """A code for each row of columns."""
        code: Array | None = None
        for (name, labels), length in zip(self.axes, self.lengths, strict=True):
            if name not in columns:
                raise ParameterError("columns", f"one named {name}", sorted(columns))
            part = _places(name, labels, columns[name])
            code = part if code is None or length == MOST_SIZE else code * length + part
        assert code is not None
        return code

    def digits(self, codes: Array) -> list[Array]:
        """The place on each axis."""
        out, left = [], np.asarray(codes, dtype=np.int64)
        for length in reversed(self.lengths[1:]):
            if length == MOST_SIZE:  # the others have one value each, and 2^63 is no number of 64 bits
                left, place = np.zeros_like(left), left
            else:
                left, place = np.divmod(left, length)
            out.append(place)
        return [left, *reversed(out)]

    def decode(self, codes: Array) -> dict[str, list[Any]]:
        """The values of each column."""
        return {
            name: labels.decode(places) if isinstance(labels, Words) else [labels[one] for one in places.tolist()]
            for (name, labels), places in zip(self.axes, self.digits(codes), strict=True)
        }

    def box(self, named: Mapping[str, Any]) -> list[range]:
        """The places on each axis: a value, or two that are both included, for those that are named."""
        unknown = set(named) - {name for name, _ in self.axes}
        if unknown:
            raise ParameterError("axis", f"one of {', '.join(name for name, _ in self.axes)}", min(unknown))
        boxes = []
        for (name, labels), length in zip(self.axes, self.lengths, strict=True):
            wanted = named.get(name, ...)
            if wanted is ...:
                boxes.append(range(length))
            elif isinstance(labels, Words | range):
                ends = wanted if isinstance(wanted, tuple) else (wanted, wanted)
                first, last = _places(name, labels, list(ends)).tolist()
                boxes.append(range(first, last + 1))
            else:
                axis = Axis(name=name, labels=labels)
                found = axis.between(*wanted) if isinstance(wanted, tuple) else axis.place(wanted)
                boxes.append(range(found, found + 1) if isinstance(found, int) else range(found.start, found.stop))
        return boxes


def _places(name: str, labels: Labels, values: Any) -> Array:
    if isinstance(labels, Words):
        return labels.encode(values)
    if isinstance(labels, range):
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "iu" or (len(numbers) and int(numbers.max()) >= MOST_SIZE):
            raise ParameterError(name, "whole numbers of its range", str(numbers.dtype))
        places, rest = np.divmod(numbers.astype(np.int64) - labels.start, labels.step)
        if (rest != 0).any() or (places < 0).any() or (places >= len_of(labels)).any():
            raise ParameterError(name, "values of its range", "others")
        return np.asarray(places, dtype=np.int64)
    known = {label: place for place, label in enumerate(labels)}
    try:
        return np.array([known[one] for one in np.asarray(values, dtype=object).tolist()], dtype=np.int64)
    except KeyError:
        raise ParameterError(name, "its listed values", "others") from None


def axis_to_json(name: str, labels: Labels) -> dict[str, Any]:
    """An axis, also one that is too long for an Axis."""
    if isinstance(labels, range):
        return {"name": name, "range": [labels.start, labels.stop, labels.step]}
    return Axis(name=name, labels=labels).to_json()


def axis_from_json(told: Mapping[str, Any]) -> tuple[str, Labels]:
    """Read an axis back from JSON."""
    axis = Axis.from_json(told)
    return axis.name, axis.labels
