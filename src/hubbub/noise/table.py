"""Exact inversion by table: most samples cost one lookup of 16 random bits.

A law over outcomes 0, 1, 2, … is given by its cumulative probabilities, each bracketed to any precision. A uniform real
U falls between two of them and that is the outcome. Sixteen random bits name a bucket of [0, 1); a bucket without a
cumulative probability in it belongs to one outcome, which a guide table knows. Otherwise 48 more bits and a binary
search on 64-bit thresholds settle it, unless the 64-bit word is a threshold's own: then digits of both are added until
they differ. So the result is exact, not close, and the slow path is taken with probability about (number of outcomes) /
2^64.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hubbub.noise.entropy import Source, words
from hubbub.noise.exact import WORD, Uniform

Integers = np.ndarray[Any, np.dtype[np.int64]]
Bounds = Sequence[tuple[int, int]]

BUCKET_BITS = 16
GUIDE_FROM = 2048
CHUNK = 1 << 15
_TOP = (1 << WORD) - 1
_PRECISION = 2 * WORD


class LawTable:
    """A law on ``values``, the last of which takes whatever probability the others leave.

    ``cumulative(bits)`` returns, in order, bounds on P(U falls on one of the first j values), for j = 1, 2, …, one
    fewer than there are values.
    """

    __slots__ = ("_cumulative", "_first", "_first_list", "_guide", "_last", "_last_list", "_undecided", "values")

    def __init__(self, values: Sequence[int], cumulative: Callable[[int], Bounds]) -> None:
        self.values: Integers = np.array(values, dtype=np.int64)
        self._cumulative = cumulative
        bounds = cumulative(_PRECISION)
        self._first_list = [min(low >> WORD, _TOP) for low, _ in bounds]
        self._last_list = [min(high >> WORD, _TOP) for _, high in bounds]
        self._first = np.array(self._first_list, dtype=np.uint64)
        self._last = np.array(self._last_list, dtype=np.uint64)
        self._guide: np.ndarray[Any, Any] | None = None
        self._undecided = 0

    def one(self, source: Source) -> int:
        """One sample."""
        word = source.word()
        at = bisect_right(self._first_list, word)
        if at and word <= self._last_list[at - 1]:
            at = self._resolve(source, word)
        return int(self.values[at])

    def many(self, source: Source, size: int) -> np.ndarray[Any, Any]:
        """Independent samples, in a dtype that holds every value."""
        if size < GUIDE_FROM:
            few: Integers = self.values[self._outcomes(source, words(source, size))]
            return few
        guide = self._build_guide()
        out = np.empty(size, dtype=guide.dtype)
        buckets = np.empty(min(size, CHUNK), dtype=np.uint16)
        for start in range(0, size, CHUNK):
            piece = out[start : start + CHUNK]
            drawn = buckets[: len(piece)]
            source.fill(drawn.view(np.uint8).data)
            np.take(guide, drawn, out=piece, mode="clip")
            open_at = np.flatnonzero(piece == self._undecided)
            if len(open_at):
                low = words(source, len(open_at)) >> np.uint64(BUCKET_BITS)
                word = drawn[open_at].astype(np.uint64) << np.uint64(WORD - BUCKET_BITS) | low
                piece[open_at] = self.values[self._outcomes(source, word)]
        return out

    def _outcomes(self, source: Source, word: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, Any]:
        at = np.searchsorted(self._first, word, side="right")
        if len(self._last):
            for index in np.flatnonzero((at > 0) & (word <= self._last[at - 1])):
                at[index] = self._resolve(source, int(word[index]))
        return at

    def _resolve(self, source: Source, word: int) -> int:
        """The outcome of a uniform real whose first 64 digits are a threshold's own."""
        uniform = Uniform(source, word, WORD)
        while True:
            uniform.extend()
            bounds = self._cumulative(uniform.bits)
            surely_passed = bisect_right([high for _, high in bounds], uniform.value)
            perhaps_passed = bisect_right([low for low, _ in bounds], uniform.value)
            if surely_passed == perhaps_passed:
                return surely_passed

    def _build_guide(self) -> np.ndarray[Any, Any]:
        if self._guide is None:
            extent = int(np.abs(self.values).max(initial=0))
            dtype = np.int16 if extent < np.iinfo(np.int16).max else np.int64
            shift = np.uint64(WORD - BUCKET_BITS)
            starts = np.arange(1 << BUCKET_BITS, dtype=np.uint64) << shift
            guide = self.values[np.searchsorted(self._first, starts, side="right")].astype(dtype)
            self._undecided = int(np.iinfo(dtype).min)
            guide[self._first >> shift] = self._undecided
            guide[self._last >> shift] = self._undecided
            self._guide = guide
        return self._guide
