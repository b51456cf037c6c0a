"""Texts over an alphabet, all of which have a cell: as many as could ever be written, and none of them listed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from hubbub.errors import ParameterError
from hubbub.noise.scattered import MOST_SIZE
from hubbub.parameters import whole
from hubbub.publish.strategies.layer import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Words(Sequence[str]):
    """All texts over an alphabet that have at most ``length`` letters, or exactly that many.

    Shorter ones come first; those of the same length are in the order of the alphabet.
    """

    alphabet: str
    length: int
    shorter: bool = False

    def __post_init__(self) -> None:
        if not self.alphabet or len(set(self.alphabet)) != len(self.alphabet) or "\0" in self.alphabet:
            raise ParameterError("alphabet", "different letters, and not U+0000", self.alphabet)
        whole("length", self.length, least=1, most=63)
        if len_of(self) > MOST_SIZE:
            raise ParameterError("length", "short enough for 2^63 texts", self.length)

    @property
    def lengths(self) -> range:
        return range(0 if self.shorter else self.length, self.length + 1)

    def __len__(self) -> int:
        return len_of(self)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return self.decode(np.arange(*place.indices(len(self)), dtype=np.int64))
        if not -len_of(self) <= place < len_of(self):
            raise IndexError(place)
        return self.decode(np.array([place % len_of(self)], dtype=np.int64))[0]

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and len(text) in self.lengths and set(text) <= set(self.alphabet)

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """Return the place of a text."""
        if value not in self:
            raise ValueError(value)
        return int(self.encode([value])[0])

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

    def spelt(self, letters: Sequence[Array]) -> Array:
        """One whole number for each text, whose letters are places in the alphabet; behind its end they are beyond
        it."""
        many, base = len(letters[0]), len(self.alphabet)
        there = np.stack([column < base for column in letters])
        sizes = there.sum(axis=0)
        starts = np.array([sum(base**n for n in self.lengths if n < size) for size in range(self.length + 1)])
        code = np.zeros(many, dtype=np.int64)
        for column, inside in zip(letters, there, strict=True):
            code = np.where(inside, code * base + column, code)
        found: Array = starts[sizes] + code
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


def len_of(labels: Sequence[Any]) -> int:
    """Also of ranges beyond what ``len`` can say."""
    if isinstance(labels, range):
        return max(0, (labels.stop - labels.start + labels.step - (1 if labels.step > 0 else -1)) // labels.step)
    return sum(len(labels.alphabet) ** n for n in labels.lengths) if isinstance(labels, Words) else len(labels)
