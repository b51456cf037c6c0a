"""A huge product of columns, and one whole number for each combination of their values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.noise.scattered import MOST_SIZE
from hubbub.parameters import whole
from hubbub.publish.domain import Axis
from hubbub.publish.layer import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """All texts over an alphabet that have at most ``length`` letters, or exactly so many.

    Shorter ones come first; those of the same length are in the order of the alphabet.
    """

    alphabet: str
    length: int
    shorter: bool = False

    def __post_init__(self) -> None:
        if not self.alphabet or len(set(self.alphabet)) != len(self.alphabet):
            raise ParameterError("alphabet", "different letters", self.alphabet)
        whole("length", self.length, least=1, most=63)
        if len_of(self) > MOST_SIZE:
            raise ParameterError("length", "short enough for 2^63 texts", self.length)

    @property
    def lengths(self) -> range:
        return range(0 if self.shorter else self.length, self.length + 1)

    def __len__(self) -> int:
        return len_of(self)

    def encode(self, texts: Sequence[str]) -> Array:
        """One whole number for each text."""
        values = np.asarray(texts, dtype=str)
        found = np.zeros(len(values), dtype=np.int64)
        sizes = np.char.str_len(values)
        if not np.isin(sizes, list(self.lengths)).all():
            raise ParameterError("texts", f"of {self.lengths[0]} to {self.length} letters", "another length")
        letters = values.astype(f"U{self.length}").view(np.uint32).reshape(len(values), self.length)
        order = np.argsort([ord(letter) for letter in self.alphabet])
        known = np.array(sorted(ord(letter) for letter in self.alphabet), dtype=np.uint32)
        start = 0
        for length in self.lengths:
            at = np.flatnonzero(sizes == length)
            near = np.minimum(np.searchsorted(known, letters[at, :length]), len(known) - 1)
            if (known[near] != letters[at, :length]).any():
                raise ParameterError("texts", f"of the letters {self.alphabet}", "other letters")
            code = np.zeros(len(at), dtype=np.int64)
            for place in range(length):
                code = code * len(self.alphabet) + order[near[:, place]]
            found[at] = start + code
            start += len(self.alphabet) ** length
        return found

    def decode(self, places: Array) -> list[str]:
        """The texts again."""
        letters = np.array(list(self.alphabet))
        out = np.full(len(places), "", dtype=f"U{self.length}")
        start = 0
        for length in self.lengths:
            many = len(self.alphabet) ** length
            at = np.flatnonzero((places >= start) & (places - start < many))
            left, grid = places[at] - start, np.zeros((len(at), max(length, 1)), dtype=np.int64)
            for place in reversed(range(length)):
                left, grid[:, place] = np.divmod(left, len(self.alphabet))
            if length:
                out[at] = np.ascontiguousarray(letters[grid]).view(f"U{length}").reshape(-1)
            start += many
        return [str(one) for one in out]


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

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(len_of(labels) for _, labels in self.axes)

    @property
    def size(self) -> int:
        """How many combinations there are, present or not."""
        return math.prod(self.lengths)

    def encode(self, columns: Mapping[str, Any]) -> Array:
        """A code for each row of columns."""
        code: Array | None = None
        for (name, labels), length in zip(self.axes, self.lengths, strict=True):
            if name not in columns:
                raise ParameterError("columns", f"one named {name}", sorted(columns))
            part = _places(name, labels, columns[name])
            code = part if code is None else code * length + part
        assert code is not None
        return code

    def digits(self, codes: Array) -> list[Array]:
        """The place on each axis."""
        out, left = [], np.asarray(codes, dtype=np.int64)
        for length in reversed(self.lengths[1:]):
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


def len_of(labels: Labels) -> int:
    """Also of ranges beyond what ``len`` can say."""
    if isinstance(labels, range):
        return max(0, (labels.stop - labels.start + labels.step - (1 if labels.step > 0 else -1)) // labels.step)
    return sum(len(labels.alphabet) ** n for n in labels.lengths) if isinstance(labels, Words) else len(labels)


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
