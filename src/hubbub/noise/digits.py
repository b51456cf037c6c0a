"""The geometric law at any scale: independent digits, each from a small table.

Privacy:
    Claim: a sampler of rate r draws k = 0, 1, 2, … with probability proportional to exp(-r·k).
    Proof: q^(B·h + l) = (q^B)^h · q^l, so the digits of k in base B are independent; each table is inverted exactly
        (``table``), and the top digit, which has no end, starts again by memorylessness where its table is passed.
    Needs: uniform, independent, secret bits from ``entropy``.
    Ref: Canonne, Kamath, Steinke 2020 for the law.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.errors import CapacityError
from hubbub.noise import table as tables
from hubbub.noise.entropy import Integers, Source
from hubbub.noise.table import LawTable

DIGIT_BITS = 10
DIRECT_SCALE = 32
"""Up to this scale a law is one table (about a thousand entries, which keep 98% of the guide's buckets decided)."""


@dataclass(frozen=True, slots=True)
class _Geometric:
    """Digits 0 to 1023 below, and above them a digit without end whose table starts again when it is passed."""

    digits: tuple[LawTable, ...]
    top: LawTable
    reach: int

    def one(self, source: Source) -> int:
        value = self._top_one(source)
        for digit in reversed(self.digits):
            value = value << DIGIT_BITS | digit.one(source)
        return value

    def _top_one(self, source: Source) -> int:
        passed = 0
        while (value := self.top.one(source)) == self.reach:
            passed += self.reach
        return passed + value

    def many(self, source: Source, size: int) -> Integers:
        high = self.top.many(source, size).astype(np.int64)
        for index in np.flatnonzero(high == self.reach):
            high[index] = self.reach + self._top_one(source)
        return _with_digits(source, high, self.digits)


@lru_cache(maxsize=512)
def geometric_sampler(rate: Fraction) -> _Geometric:
    """P(k) proportional to exp(-rate·k): digits below while the scale is large, then one open table."""
    digits = []
    while rate * DIRECT_SCALE < 1:
        digits.append(LawTable(range(1 << DIGIT_BITS), tables.digit(rate, 1 << DIGIT_BITS)))
        rate *= 1 << DIGIT_BITS
    reach = tables.reach(rate)
    return _Geometric(tuple(digits), LawTable(range(reach + 1), tables.geometric(rate, reach)), reach)


def _with_digits(source: Source, high: Integers, digits: tuple[LawTable, ...]) -> Integers:
    if len(high) and int(high.max()) >= 1 << 62 - DIGIT_BITS * len(digits):
        raise CapacityError("A noise sample passed 2^62; no wrapped value was used. Ask again.")
    for digit in reversed(digits):
        high <<= DIGIT_BITS
        high += digit.many(source, len(high))
    return high
