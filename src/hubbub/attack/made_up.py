"""Made-up people and questions for the lab, the same again for the same seed. Nothing here protects anybody."""

import hashlib
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class MadeUp:
    """A stream of numbers from a seed and a name: independent of every other stream, and of NumPy's version."""

    def __init__(self, seed: int, name: str) -> None:
        self._stem = f"{seed}/{name}/".encode()
        self._blocks = 0

    def _words(self, count: int) -> Array:
        """Uniform 64-bit words."""
        need = -(-count // 8)
        body = b"".join(
            hashlib.blake2b(self._stem + str(self._blocks + step).encode(), digest_size=64).digest()
            for step in range(need)
        )
        self._blocks += need
        return np.frombuffer(body, dtype="<u8")[:count]

    def uniform(self, count: int) -> Array:
        """In [0, 1)."""
        return (self._words(count) >> np.uint64(11)).astype(np.float64) / (1 << 53)

    def bits(self, *shape: int) -> Array:
        """Fair coins, 0 or 1."""
        count = int(np.prod(shape))
        words = self._words(-(-count // 64))
        return np.unpackbits(words.view(np.uint8))[:count].reshape(shape).astype(np.int8)

    def below(self, count: int, most: int) -> Array:
        """Whole numbers from 0 to ``most`` − 1."""
        return np.minimum((self.uniform(count) * most).astype(np.int64), most - 1)

    def laplace(self, count: int, scale: float) -> Array:
        """For targets that protect too little. Never for a release: it is not exact, and it can be repeated."""
        u = self.uniform(count) - 0.5
        return np.asarray(-scale * np.sign(u) * np.log1p(-2 * np.abs(u)))

    def normal(self, count: int) -> Array:
        """Standard normal numbers (Box, Muller)."""
        radius = np.sqrt(-2 * np.log1p(-self.uniform(count)))
        return np.asarray(radius * np.cos(2 * np.pi * self.uniform(count)))
