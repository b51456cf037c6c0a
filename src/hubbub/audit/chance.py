"""Chance that can be repeated: the same seed makes the same inputs up again, so that a report can be checked.

For inputs of audits alone. It is predictable on purpose and draws no noise.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class Chance:
    """A stream of choices, fixed by its seed."""

    def __init__(self, seed: int | str) -> None:
        self._seed = str(seed)
        self._words = _words(self._seed)

    def below(self, bound: int) -> int:
        """A number from 0 on, below the bound."""
        limit = (1 << 64) - (1 << 64) % bound
        return next(word for word in self._words if word < limit) % bound

    def many_below(self, bound: int, many: int) -> NDArray[np.int64]:
        """So many numbers from 0 on, below a small bound, all at once: fixed by the seed and by nothing else."""
        words = np.frombuffer(hashlib.shake_256(self._seed.encode()).digest(8 * many), dtype="<u8")
        return (words % np.uint64(bound)).astype(np.int64)

    def between(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return low + self.below(high - low + 1)

    def one_in(self, many: int) -> bool:
        """Return True once in this many times."""
        return self.below(many) == 0

    def choice(self, of: Sequence[T]) -> T:
        """One of them."""
        return of[self.below(len(of))]

    def sample(self, of: Sequence[T], many: int) -> list[T]:
        """So many different ones (or all, where there are fewer), in no order."""
        rest = list(of)
        return [rest.pop(self.below(len(rest))) for _ in range(min(many, len(rest)))]

    def shuffle(self, of: Sequence[T]) -> list[T]:
        """All of them, in no order."""
        return self.sample(of, len(of))


def _words(seed: str) -> Iterator[int]:
    place = 0
    while True:
        block = hashlib.sha256(f"{seed}/{place}".encode()).digest()
        yield from (int.from_bytes(block[start : start + 8], "little") for start in range(0, 32, 8))
        place += 1
