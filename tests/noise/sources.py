"""Sources that tests put in place of the system's, and the one statistical test that laws are held against."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6
"""How often each statistical test here fails although nothing is wrong."""

Array = np.ndarray[Any, Any]


class Script:
    """Gives out chosen bytes and then fails: a draw that takes more than it should is an error."""

    def __init__(self, words: Sequence[int] = (), *, raw: bytes = b"") -> None:
        self._bytes = raw + b"".join(word.to_bytes(8, "little") for word in words)
        self.kinds: list[tuple[str, dict[str, object]]] = []

    @property
    def left(self) -> int:
        return len(self._bytes)

    def begin(self, kind: str, public: Mapping[str, object]) -> None:
        self.kinds.append((kind, dict(public)))

    def fill(self, out: memoryview) -> None:
        assert len(out) <= len(self._bytes), "the script has run out"
        out[:] = self._bytes[: len(out)]
        self._bytes = self._bytes[len(out) :]

    def word(self) -> int:
        assert len(self._bytes) >= 8, "the script has run out"
        value, self._bytes = int.from_bytes(self._bytes[:8], "little"), self._bytes[8:]
        return value


class Untouchable:
    """Fails if anything is drawn, or even begun."""

    def begin(self, kind: str, public: Mapping[str, object]) -> None:
        raise AssertionError(f"a draw of {kind} was begun")

    def fill(self, out: memoryview) -> None:
        raise AssertionError("bytes were drawn")

    def word(self) -> int:
        raise AssertionError("a word was drawn")


def surprise(observed: Sequence[Any] | Array, mass: Sequence[Any] | Array, *, least: float = 20) -> float:
    """The p-value of counts against a law: χ², with cells of small expectation put together with the rest."""
    seen, law = np.asarray(observed, dtype=np.float64), np.asarray(mass, dtype=np.float64)
    total = seen.sum()
    large = law * total >= least
    seen = np.append(seen[large], seen[~large].sum())
    expected = np.append(law[large], max(0.0, 1 - law[large].sum())) * total
    if expected[-1] < 1e-9 * total:
        assert seen[-1] <= 2, "impossible outcomes were drawn"
        seen, expected = seen[:-1], expected[:-1]
    if len(seen) == 1:
        return 1.0
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1))


def counts_of(drawn: Array, support: Sequence[int] | range) -> list[int]:
    """How often each value of the support was drawn; the last cell holds everything else."""
    values, times = np.unique(np.asarray(drawn), return_counts=True)
    seen = dict(zip(values.tolist(), times.tolist(), strict=True))
    inside = [seen.pop(value, 0) for value in support]
    return [*inside, sum(seen.values())]


def follows(drawn: Array, support: Sequence[int] | range, mass: Sequence[float] | Array) -> bool:
    """Whether a sample passes for the law at the false-alarm rate: value by value, and in some sixty coarse bins.

    The first sees a digit that is wrong, the second a scale that is.
    """
    seen, law = np.array(counts_of(drawn, support)), np.append(mass, 0.0)
    bins = np.minimum((np.cumsum(law) * 60).astype(np.int64), 60)
    coarse = surprise(np.bincount(bins, weights=seen), np.bincount(bins, weights=law))
    return min(surprise(seen, law), coarse) > FALSE_ALARM / 2
