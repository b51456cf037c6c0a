"""Wide symmetric laws in blocks of equal length: nearly every sample is a block from a table and a uniform low digit.

Let g(x) fall with |x|, and cut the integers into blocks B·h … B·h + B - 1. Over the block h >= 0, and over its mirror
image -1 - h, g lies between G(h + 1) and G(h), where G(h) = g(B·h). So a flat law of height G(h + 1) fits below g, and
what is left lies in a wedge of height G(h) - G(h + 1). One table holds all flat parts and all wedges. A flat part needs
nothing more than a uniform digit. A wedge, three to six samples in a hundred, is kept with a probability that is
compared exactly, and where it is not kept the sample is drawn again from the start.

Privacy:
    Claim: ``FlatBlocks`` draws x with probability proportional to g(x) = G(h) · exp(-drop(h, l)), where |x| = B·h + l.
    Proof: given its block, x is proposed uniformly below the envelope G(h). It is kept for certain at heights below
        G(h + 1), and otherwise with probability (g(x) - G(h + 1)) / (G(h) - G(h + 1)), so each x is kept in proportion
        to g(x). At distance l from the block's inner end that is 1 - (1 - exp(-a)) / (1 - exp(-b)), a = drop(h, l),
        b = drop(h, B). Beyond the table whole blocks come in proportion to G(h) and are kept with exp(-a). Distances
        are 0 … B - 1 for positive blocks and 1 … B for negative ones, so zero counts once.
    Needs: ``table`` inverts the cumulative probabilities exactly; ``bernoulli`` compares exactly; uniform bits.
    Ref: Marsaglia, Tsang 2000 and Karney 2016 for the shape: what is certain first, what must be compared seldom.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import CapacityError
from hubbub.noise.bernoulli import flip, flips_near
from hubbub.noise.entropy import Integers, Source, bits, digits
from hubbub.noise.exact import WORD, Exact, exp_minus
from hubbub.noise.table import CHUNK, LawTable


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatBlocks:
    """A table of signed blocks -r … r - 1, then of their wedges, 3r higher, and 4r for all that lies beyond."""

    table: LawTable
    reach: int
    shift: int
    drop: Callable[[Any, Any, Any], Any]
    """drop(h, l, unit): how far ln g falls over l steps from the inner end of block h, for numbers and for arrays."""
    unit: Fraction
    beyond: Callable[[Source], int]
    """Draws h >= reach in proportion to G(h)."""

    def one(self, source: Source) -> int:
        while True:
            block, low = self.table.one(source), bits(source, self.shift)
            if block < self.reach:
                return (block << self.shift) + low
            block, is_far = self._locate(source, block)
            if not flip(source, self._rejection(block, low, is_far)):
                return (block << self.shift) + low

    def many(self, source: Source, size: int) -> Integers:
        """Fill an array by pieces that stay in the processor's cache, and settle what is not flat at the end."""
        out = np.empty(size, dtype=np.int64)
        special = [np.empty(0, dtype=np.int64)]
        for start in range(0, size, CHUNK):
            piece = out[start : start + CHUNK]
            blocks = self.table.many(source, len(piece))
            np.left_shift(blocks, self.shift, out=piece, dtype=np.int64)
            piece += digits(source, len(piece), self.shift)
            special.append(start + np.flatnonzero(blocks >= self.reach))
        places = np.concatenate(special)
        if len(places):
            out[places] = self._settle(source, out[places])
        return out

    def _settle(self, source: Source, outcomes: Integers) -> Integers:
        """Return a sample for each outcome that is not flat: its own where it is kept, and a fresh one elsewhere."""
        blocks, low = outcomes >> self.shift, outcomes & (1 << self.shift) - 1
        is_far = blocks == 4 * self.reach
        blocks -= 3 * self.reach
        for index in np.flatnonzero(is_far):
            block = self._locate(source, 4 * self.reach)[0]
            if max(block, ~block).bit_length() + self.shift > WORD - 2:
                raise CapacityError("A noise sample passed 2^62; no wrapped value was used. Ask again.")
            blocks[index] = block
        length, unit = 1 << self.shift, float(self.unit)
        negative = blocks < 0
        height = (blocks ^ -negative.astype(np.int64)).astype(np.float64)
        along = np.where(negative, length - low, low).astype(np.float64)
        rejection = -np.expm1(-self.drop(height, along, unit))
        whole = -np.expm1(-self.drop(height, float(length), unit))
        np.divide(rejection, whole, out=rejection, where=~is_far)
        rejected = flips_near(
            source, rejection, lambda i: self._rejection(int(blocks[i]), int(low[i]), bool(is_far[i]))
        )
        values: Integers = (blocks << self.shift) + low
        values[rejected] = self.many(source, int(np.count_nonzero(rejected)))
        return values

    def _locate(self, source: Source, outcome: int) -> tuple[int, bool]:
        """Return the signed block of an outcome that is not flat, and True if it lies beyond the table."""
        if outcome < 4 * self.reach:
            return outcome - 3 * self.reach, False
        height = self.beyond(source)
        return (height if bits(source, 1) else ~height), True

    def _rejection(self, block: int, low: int, is_far: bool) -> Exact:
        """The probability that a sample that is not flat is drawn again."""
        length = 1 << self.shift
        height, along = (block, low) if block >= 0 else (~block, length - low)
        fallen = exp_minus(self.drop(height, along, self.unit)).complement()
        if is_far:
            return fallen
        return fallen / exp_minus(self.drop(height, length, self.unit)).complement()


def table_of_blocks(reach: int, cumulative: Callable[[int], list[tuple[int, int]]]) -> LawTable:
    """Give a law by blocks its outcomes: flat parts 0, -1, 1, -2, …, their wedges in the same order, and the rest."""
    signed = [index // 2 if index % 2 == 0 else ~(index // 2) for index in range(2 * reach)]
    return LawTable([*signed, *(block + 3 * reach for block in signed), 4 * reach], cumulative)
