"""Samples of the noisy counts of a huge domain: larger numbers more often, so that sums over many cells stay right.

A number v that is kept with probability min(|v|/τ, 1) stands for its like: max(|v|, τ) with its sign has the mean v.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Array
from hubbub.mechanisms.sparse.sparse_cells import Nonzeros, Scattered, apart, by_place, enough, log_at_most, read_answer
from hubbub.noise import laws, scattered
from hubbub.parameters import whole

DIGITS = 60
"""A uniform draw of 60 binary digits decides what is kept."""
_NEAR = 2.0**-44


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseSample(Scattered):
    """Every cell gets geometric noise; numbers v with |v| >= ``least`` are kept with probability min(|v|/level, 1).

    At level 1 this is the two-sided filter: whatever is at least ``least`` away from 0. An answer is an array of two
    rows: places and noisy numbers.

    Privacy:
        Claim: Pure(epsilon) for cells with ‖x - x'‖₁ <= sensitivity.
        Proof: what is shown has exactly the law of Geometric on all ``size`` cells followed by coins that see nothing
            but the noisy numbers: cells that are not empty are drawn and sampled one by one, the others by
            ``scattered.sample_empty``, whose law is that of drawing and sampling them all. Sampling noisy numbers is
            post-processing; places are sorted.
        Needs: all of the domain is public, and so are level and least; noise.scattered and noise.laplace_for_each.
        Ref: Cormode, Procopiuc, Srivastava, Tran 2012; Duffield, Lund, Thorup 2005.
    """

    level: int
    """A power of two."""
    least: int = 1

    def _settle(self) -> None:
        level = whole("level", self.level, least=1, most=1 << DIGITS)
        whole("least", self.least, least=1, most=1 << DIGITS)
        if level & (level - 1):
            raise ParameterError("level", "a power of two", level)

    @property
    def false_cells(self) -> float:
        """The mean number of empty cells that are released, if all are empty: public, and at least the true mean."""
        return self.size * _keeping(self.scale, self.least, self.level)

    def _select_cells(self, cells: Nonzeros, noisy: Array, times: int) -> list[Array]:
        # Whether too many empty cells pass would tell how many are empty, so it is never left to chance.
        if 2 * self.false_cells > scattered.MOST_SHOWN:
            raise ParameterError(
                "level", f"such that at most 2^26 empty cells pass, not {self.false_cells:.3g}", self.level
            )
        draws = scattered.uniform_draws(count=len(noisy), digits=DIGITS)
        size = np.abs(noisy)
        kept = (size >= self.least) & scattered.passes(size, draws, self.level, DIGITS)
        where, numbers, _ = next(_of_zeros(self, cells, times, DIGITS, (self.level,)))
        columns = by_place((cells.places[kept], noisy[kept]), (where, numbers))
        return [np.stack(one) for one in apart(columns, self.size, times)]

    def log_mass(self, value: Any, output: Any) -> float:
        shown = read_answer(output)
        cells = Nonzeros.read(value, size=self.size).dense(self.size)
        if shown is None or any(place >= self.size or abs(one) < self.least for place, one in shown.items()):
            return -math.inf
        total = 0.0
        for place, count in enumerate(cells):
            if place in shown:
                number = shown[place]
                total += laws.laplace_log_mass(number - count, self.scale) + math.log(min(abs(number) / self.level, 1))
            else:
                total += math.log1p(-self._kept_share(count))
        return total

    def _kept_share(self, count: int) -> float:
        most = max(self.level, self.least)
        inner = (v for size in range(self.least, most) for v in (size, -size))
        near = math.fsum(
            math.exp(laws.laplace_log_mass(v - count, self.scale)) * min(abs(v) / self.level, 1) for v in inner
        )
        return near + math.exp(log_at_most(-most - count, self.scale)) + math.exp(log_at_most(count - most, self.scale))

    def estimates(self, answer: Array) -> Array:
        """A number for each that is kept, such that sums over cells are right on average."""
        return np.asarray(np.sign(answer[1]) * np.maximum(np.abs(answer[1].astype(float)), self.level))


@dataclass(frozen=True, slots=True, kw_only=True)
class SparsePriority(Scattered):
    """Every cell gets geometric noise; of the numbers v with |v| >= ``least`` those of greatest priorities are kept.

    A priority is |v|/u, where u is uniform: U/2^digits for a whole U from 1 on. Of equal ones the first place is
    greater. An answer is an array of two rows: the places of the ``count`` greatest in order, and then -1; their noisy
    numbers, and then |v| of the next greatest priority, with its U in one more column of place -2: both 0 if there is
    none.

    Privacy:
        Claim: Pure(epsilon) for cells with ‖x - x'‖₁ <= sensitivity.
        Proof: what is shown has exactly the law of Geometric on all ``size`` cells followed by priorities from draws
            that see nothing but the noisy numbers. Empty cells are drawn from the greatest priorities on, level by
            level, with the law of drawing them all (``scattered.sample_empty``); once count + 1 cells have the priority
            of a level, no cell below it is needed. Levels are public. The rest is post-processing; places are sorted.
        Needs: all of the domain is public, and so are count and least; noise.scattered and noise.laplace_for_each.
        Ref: Cormode, Procopiuc, Srivastava, Tran 2012; Duffield, Lund, Thorup 2007.
    """

    count: int
    least: int = 1
    digits: int = DIGITS

    def _settle(self) -> None:
        whole("count", self.count, least=1, most=scattered.MOST_SHOWN >> 3)
        whole("digits", self.digits, least=1, most=DIGITS)
        whole("least", self.least, least=1, most=1 << DIGITS)

    def levels(self) -> Iterator[int]:
        """Powers of two, from where slightly more than ``count`` empty cells are expected down to 1."""
        wanted = self.count + 4 * math.isqrt(self.count) + 4
        power = self.digits
        while power and self.size * _keeping(self.scale, self.least, 1 << power) < wanted:
            power -= 1
        return (1 << one for one in range(power, -1, -1))

    def _select_cells(self, cells: Nonzeros, noisy: Array, times: int) -> list[Array]:
        draws = scattered.uniform_draws(count=len(noisy), digits=self.digits)
        eligible = np.abs(noisy) >= self.least
        parts = [(cells.places[eligible], noisy[eligible], draws[eligible])]
        levels = list(self.levels())
        for level, found in zip(levels, _of_zeros(self, cells, times, self.digits, levels), strict=True):
            parts.append(found)
            reached = [one[0][scattered.passes(np.abs(one[1]), one[2], level, self.digits)] for one in parts]
            if enough(np.concatenate(reached), self.size, times, self.count + 1):
                break
        return [self._answer(*one) for one in apart(by_place(*parts), self.size, times)]

    def _answer(self, places: Array, numbers: Array, draws: Array) -> Array:
        kept, cut = _greatest(numbers, draws, self.count)
        answer = np.empty((2, len(kept) + 2), dtype=np.int64)
        answer[0, :-2], answer[1, :-2] = places[kept], numbers[kept]
        answer[0, -2:] = -1, -2
        answer[1, -2:] = (0, 0) if cut is None else (abs(numbers[cut]), draws[cut])
        return answer

    def log_mass(self, value: Any, output: Any) -> float:
        places, numbers = ([int(one) for one in row] for row in output)
        shown = read_answer((places[:-2], numbers[:-2]))
        cells = Nonzeros.read(value, size=self.size).dense(self.size)
        if places[-2:] != [-1, -2] or shown is None or len(shown) > self.count:
            return -math.inf
        if any(abs(one) < self.least or place >= self.size for place, one in shown.items()):
            return -math.inf
        others = [place for place in range(self.size) if place not in shown]
        size, drawn = numbers[-2:]
        if (size, drawn) == (0, 0):
            return math.fsum(self._log_all(cells[p], shown.get(p)) for p in range(self.size))
        if len(shown) < self.count or not others or min(size, drawn) < 1:
            return -math.inf

        def with_cut(at: int) -> float:
            """The cut is the cell at this place."""
            ahead = (self._log_ahead(cells[p], number, size, drawn, p < at) for p, number in shown.items())
            behind = (self._log_behind(cells[p], size, drawn, p > at) for p in others if p != at)
            return math.fsum(ahead) + math.fsum(behind) + self._log_exactly(cells[at], size, drawn)

        return float(np.logaddexp.reduce([with_cut(at) for at in others]))

    def _log_all(self, count: int, number: int | None) -> float:
        """ln P(this number), or that a cell is not eligible."""
        numbers = range(1 - self.least, self.least) if number is None else (number,)
        return _log_sum([laws.laplace_log_mass(v - count, self.scale) for v in numbers])

    def _log_ahead(self, count: int, number: int, size: int, drawn: int, before: bool) -> float:
        """ln P(this number, and a priority ahead of the cut): |v|·drawn > size·u, or equal to it and before."""
        draws = 1 << self.digits
        lower, rest = divmod(abs(number) * drawn, size)
        share = min(draws, lower - (rest == 0 and not before)) / draws
        return laws.laplace_log_mass(number - count, self.scale) + math.log(share) if share > 0 else -math.inf

    def _log_exactly(self, count: int, size: int, drawn: int) -> float:
        if size < self.least or not 0 < drawn <= 1 << self.digits:
            return -math.inf
        both = [laws.laplace_log_mass(v - count, self.scale) for v in (size, -size)]
        return _log_sum(both) - self.digits * math.log(2)

    def _log_behind(self, count: int, size: int, drawn: int, after: bool) -> float:
        """ln P(not eligible, or a priority behind the cut): |v|·drawn < size·u, or equal to it and a later place."""
        draws = 1 << self.digits
        logs = [laws.laplace_log_mass(v - count, self.scale) for v in range(1 - self.least, self.least)]
        for v in itertools.takewhile(lambda v: v * drawn <= size * draws, itertools.count(self.least)):
            lower = v * drawn // size  # u above this is behind; at it, where it divides, a tie
            behind = draws - lower + (after and v * drawn % size == 0 and lower >= 1)
            if behind > 0:
                both = _log_sum([laws.laplace_log_mass(one - count, self.scale) for one in (v, -v)])
                logs.append(both + math.log(behind / draws))
        return _log_sum(logs)

    def estimates(self, answer: Array) -> Array:
        """A number for each that is kept, such that sums over cells are right on average, but for 2^-digits."""
        numbers = answer[1, :-2].astype(float)
        return np.asarray(np.sign(numbers) * np.maximum(np.abs(numbers), self.cut(answer)))

    def cut(self, answer: Array) -> float:
        """The next greatest priority; 0 if there is none."""
        size, drawn = answer[1, -2:].tolist()
        return float(Fraction(size << self.digits, drawn)) if drawn else 0.0


def _of_zeros(
    mechanism: SparseSample | SparsePriority, cells: Nonzeros, times: int, digits: int, levels: Sequence[int]
) -> Iterator[tuple[Array, Array, Array]]:
    return scattered.sample_empty(
        size=mechanism.size * times,
        taken=cells.places,
        scale=mechanism.scale,
        least=mechanism.least,
        digits=digits,
        levels=levels,
    )


def _greatest(numbers: Array, draws: Array, count: int) -> tuple[Array, int | None]:
    """Return the places of the greatest priorities, in order, and the next priority; floats decide where they can."""
    if len(numbers) <= count:
        return np.arange(len(numbers)), None
    about = np.abs(numbers) / draws.astype(float)
    edge = np.partition(about, len(about) - count - 1)[len(about) - count - 1 :]
    low, high = float(edge[0]) * (1 - _NEAR), float(edge[1:].min()) * (1 + _NEAR)
    sure = np.flatnonzero(about > high)
    close = np.flatnonzero((about >= low) & (about <= high)).tolist()
    close.sort(key=lambda i: (-Fraction(abs(int(numbers[i])), int(draws[i])), i))
    left = count - len(sure)
    return np.sort(np.concatenate([sure, np.array(close[:left], dtype=np.int64)])), close[left]


@lru_cache(maxsize=1024)
def _keeping(scale: Fraction, least: int, level: int) -> float:
    """P(an empty cell is kept), as a float; of public numbers, so that it may be remembered."""
    low, high = scattered.keeping(scale, least, level).bounds(256)
    return (low + high) / 2 / 2.0**256


def _log_sum(logs: list[float]) -> float:
    return float(np.logaddexp.reduce(logs)) if logs else -math.inf
