"""The large ones among the noisy counts of a huge domain: by a threshold, or by a sparse vector."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array, Needs, draw_each, settle
from hubbub.mechanisms.sparse.sparse_cells import Nonzeros, Scattered, apart, by_place, enough, log_at_most, read_answer
from hubbub.mechanisms.sparse.sparse_vector import Found, SparseVector
from hubbub.noise import laws, scattered
from hubbub.parameters import whole
from hubbub.privacy.events.event import Event

SLACK = 512
"""So many more cells than asked for are expected above 0, where there are too many to be drawn one by one."""
_FEW = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseThreshold(Scattered):
    """Every cell gets geometric noise; those at or above ``threshold`` are shown, in order of their places.

    The value is ``Nonzeros``, or all cells of a small domain. An answer is an array of two rows: places and numbers.

    Privacy:
        Claim: Pure(epsilon) for cells with ‖x - x'‖₁ <= sensitivity.
        Proof: what is shown has exactly the law of Geometric on all ``size`` cells followed by a fixed rule: cells that
            are not empty are drawn and compared; of the others those at or above the threshold are drawn by
            ``scattered.above``, whose law is that of drawing them all. Places are sorted, so that the answer is a
            function of the set that is shown and of nothing else. The rule is post-processing. The time that a draw
            takes depends on how many cells are not empty.
        Needs: all of the domain is public, and so is the threshold; noise.scattered and noise.laplace_for_each.
        Ref: Cormode, Procopiuc, Srivastava, Tran 2012; Ghosh, Roughgarden, Sundararajan 2009.
    """

    threshold: int

    def _settle(self) -> None:
        whole("threshold", self.threshold, least=1, most=1 << 62)
        # Whether too many empty cells pass would tell how many are empty, so it is never left to chance.
        if 2 * self.false_cells > scattered.MOST_SHOWN:
            raise ParameterError(
                "threshold", f"such that at most 2^26 empty cells pass, not {self.false_cells:.3g}", self.threshold
            )

    @property
    def false_cells(self) -> float:
        """The mean number of empty cells that are released, if all are empty: public, and at least the true mean."""
        return self.size * laws.laplace_tail(self.threshold, self.scale)

    def _select_cells(self, cells: Nonzeros, noisy: Array, times: int) -> list[Array]:
        kept = noisy >= self.threshold
        size = self.size * times
        false = next(scattered.above(size=size, taken=cells.places, scale=self.scale, levels=(self.threshold,)))
        columns = by_place((cells.places[kept], noisy[kept]), false)
        return [np.stack(one) for one in apart(columns, self.size, times)]

    def log_mass(self, value: Any, output: Any) -> float:
        shown = read_answer(output)
        cells = Nonzeros.read(value, size=self.size).dense(self.size)
        if shown is None or any(place >= self.size or one < self.threshold for place, one in shown.items()):
            return -math.inf
        return sum(
            laws.laplace_log_mass(shown[place] - count, self.scale)
            if place in shown
            else log_at_most(self.threshold - 1 - count, self.scale)
            for place, count in enumerate(cells)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseLargest(Scattered):
    """Every cell gets geometric noise; the ``count`` largest are shown, in order of their places.

    Of equal numbers the first places are taken. An answer is an array of two rows: places and numbers.

    Privacy:
        Claim: Pure(epsilon) for cells with ‖x - x'‖₁ <= sensitivity.
        Proof: what is shown has exactly the law of Geometric on all ``size`` cells followed by a fixed rule. Empty
            cells are drawn from the top, level by level, with the law of drawing them all (``scattered.above``); once
            ``count`` cells are at or above a level, no cell below it is among the largest. Which levels are tried
            depends on public numbers alone, how many of them on the cells: that takes time, and moves no law.
        Needs: all of the domain is public; noise.scattered and noise.laplace_for_each.
        Ref: Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    count: int

    def _settle(self) -> None:
        count = whole("count", self.count, least=1, most=min(self.size, scattered.MOST_SHOWN >> 3))
        positive = self.size * laws.laplace_tail(1, self.scale)
        if self.size > _FEW and positive < 2 * count + SLACK:
            raise ParameterError("count", f"at most {max(0, int(positive - SLACK) // 2)} at this noise", count)

    def levels(self) -> Iterator[int]:
        """From where slightly more than ``count`` empty cells are expected, on to twice as many and so on."""
        wanted, last = self.count + 4 * math.isqrt(self.count) + 4, None
        while (level := level_for(self.size, self.scale, wanted)) >= 1:
            if level != last:
                yield level
            wanted, last = 2 * wanted, level
        if last != 1:
            yield 1
        yield 0

    def _select_cells(self, cells: Nonzeros, noisy: Array, times: int) -> list[Array]:
        levels, parts = list(self.levels()), [(cells.places, noisy)]
        found = scattered.above(size=self.size * times, taken=cells.places, scale=self.scale, levels=levels)
        for level, part in zip(levels, found, strict=False):
            parts.append(part)
            reached = [one[0][one[1] >= level] for one in parts]
            if enough(np.concatenate(reached), self.size, times, self.count):
                break
        shown = []
        for places, numbers in apart(by_place(*parts), self.size, times):
            best = _largest(numbers, self.count)
            shown.append(np.stack([places[best], numbers[best]]))
        return shown

    def log_mass(self, value: Any, output: Any) -> float:
        shown = read_answer(output)
        cells = Nonzeros.read(value, size=self.size).dense(self.size)
        if shown is None or len(shown) != self.count or any(place >= self.size for place in shown):
            return -math.inf
        least = min(shown.values())
        last = max(place for place, number in shown.items() if number == least)
        return sum(
            laws.laplace_log_mass(shown[place] - count, self.scale)
            if place in shown
            else log_at_most(least - count - (place < last), self.scale)
            for place, count in enumerate(cells)
        )


def _largest(numbers: Array, count: int) -> Array:
    """Return the places of the largest numbers, in order; of equal ones the first."""
    least = np.partition(numbers, len(numbers) - count)[len(numbers) - count]
    sure, ties = np.flatnonzero(numbers > least), np.flatnonzero(numbers == least)
    return np.sort(np.concatenate([sure, ties[: count - len(sure)]]))


def level_for(size: int, scale: Fraction, expected: float) -> int:
    """Return the least level that at most ``expected`` of ``size`` empty cells are expected to
    reach; 0 where all of them may.
    """
    if expected >= size * laws.laplace_tail(1, scale):
        return 0 if expected >= size / 2 else 1
    ratio = math.log(size) - math.log(expected) - math.log1p(math.exp(-float(1 / scale)))
    guess = max(1, math.floor(float(scale) * ratio) - 1)
    while size * laws.laplace_tail(guess, scale) > expected:
        guess += 1
    return guess


_FEW_PASSES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseFirst:
    """``SparseVector`` on all ``size`` cells, in order of their places, in time of those that are not empty.

    Privacy:
        Claim: what ``vector`` claims, for cells that one unit moves by at most ``vector.sensitivity`` each, however
            many it moves.
        Proof: the answer has exactly the law of ``vector`` on the list of all cells. The noisy threshold comes first.
            Given it, cells are independent: those that are not empty are drawn, and of the others only the first
            ``count`` that reach it, with the law of drawing all (``scattered.first_reached``); a place beyond the
            ``count``-th cannot be among the first that are above. Sorted by place, the first ``count`` are answered.
        Needs: SparseVector with one noisy threshold; all of the domain is public; noise.scattered.
        Ref: Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    vector: SparseVector
    size: int

    def __post_init__(self) -> None:
        settle(self, size=whole("size", self.size, least=1, most=scattered.MOST_SIZE))
        if self.vector.renewed:
            raise ParameterError("renewed", "False for cells of a domain", True)

    @property
    def needs(self) -> Needs:
        return self.vector.needs

    @property
    def event(self) -> Event:
        return self.vector.event

    def draw(self, value: Nonzeros | Any) -> Found:
        cells, vector = Nonzeros.read(value, size=self.size), self.vector
        bar, spare = int(vector.bars(1)[0, 0]), vector.spare(1)[0].tolist()
        noisy = cells.counts + noise.scattered.one_sided(scale=vector.question_scale, count=len(cells.counts))
        reached = np.flatnonzero(noisy >= bar)[: vector.count]
        where, drawn = scattered.first_reached(
            size=self.size, taken=cells.places, scale=vector.question_scale, level=bar, wanted=vector.count
        )
        true = zip(cells.places[reached], noisy[reached], cells.counts[reached], strict=True)
        empty = zip(where, drawn, np.zeros_like(where), strict=True)
        first = sorted((int(p), int(n), int(c)) for p, n, c in (*true, *empty))[: vector.count]
        numbers = tuple(count + extra for (_, _, count), extra in zip(first, spare, strict=False))
        return tuple(p for p, _, _ in first), tuple(n - bar for _, n, _ in first), numbers

    def repeat(self, value: Any, *, times: int) -> list[Found]:
        cells = Nonzeros.read(value, size=self.size)
        if self.size <= _FEW_PASSES:  # all of them, at once: the same law
            return self.vector.repeat(cells.dense(self.size), times=times)
        return draw_each(self, cells, times)

    def log_mass(self, value: Any, output: Found) -> float:
        if any(place >= self.size for place in output[0]):
            return -math.inf
        return self.vector.log_mass(Nonzeros.read(value, size=self.size).dense(self.size), output)

    def error(self, *, beta: float) -> int:
        """As ``vector.error``, over all cells."""
        return self.vector.error(beta=beta, questions=self.size)
