"""Choosing what to look for: from the first draws of an audit, the event that should prove the most.

Candidates, for each view of the outputs and each order of the pair:

- tails of numbers, ≥ t and ≤ t, with t at quantiles of the pooled draws;
- likelihood-ratio sets: cells (values that repeat, or intervals between quantiles) sorted by how much more often they
  came on one input than on the other, and then every prefix of that order. By Neyman and Pearson the best event has
  this form, whatever the claim.

A candidate's worth is a careful forecast of the bound it would prove: Wilson limits along the boundary of the joint
region, widened by two standard errors of the choosing draws themselves, so that a lucky candidate does not beat a good
one; cells are sorted by one half of the choosing draws and their prefixes weighed by the other half. The forecast need
not be right: the draws that test the event are fresh, so a poor choice costs power and never an unjust accusation.

What is counted in the choosing draws is the same whichever claim is tried and whichever order of the pair: `Candidates`
counts once, and each aim is then weighed on the counts.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.outputs import Batch, Outputs, View, views_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Worth = Callable[[Floats, Floats], Floats]
"""What a pair (lower limit of p, upper limit of q) proves."""

_TAILS = 64
_BINS = 24
_CELLS = 512
_REPEATS = 3
"""A value is a cell of its own once it came this often in the choosing draws."""

_DOUBT = 2.0
"""Standard errors of the choosing draws that a candidate's forecast is lowered by."""

_SHOWN = 8


class Region(Protocol):
    """A set of values of a view."""

    def hits(self, view: View, outputs: Outputs | Batch) -> int:
        """Count the outputs in the region."""
        ...

    def words(self, name: str) -> str:
        """The region as a person would say it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputEvent:
    """A set of outputs, fixed before the draws that test it."""

    view: View
    region: Region

    def hits(self, outputs: Outputs | Batch) -> int:
        """Count the outputs in the event."""
        return self.region.hits(self.view, outputs)

    def __str__(self) -> str:
        return self.region.words(self.view.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TailRegion:
    """Numbers at or beyond a threshold."""

    threshold: float
    upper: bool

    def hits(self, view: View, outputs: Outputs | Batch) -> int:
        numbers = view.numbers(outputs)
        return int(np.count_nonzero(numbers >= self.threshold if self.upper else numbers <= self.threshold))

    def words(self, name: str) -> str:
        return f"{name} {'≥' if self.upper else '≤'} {self.threshold:.12g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Numbers in some of the half-open intervals between ``edges``; interval i ends before edge i."""

    edges: tuple[float, ...]
    chosen: frozenset[int]

    def hits(self, view: View, outputs: Outputs | Batch) -> int:
        numbers = view.numbers(outputs)
        places = np.searchsorted(np.array(self.edges), numbers[~np.isnan(numbers)], side="right")
        return int(np.count_nonzero(np.isin(places, list(self.chosen))))

    def words(self, name: str) -> str:
        ends = (-math.inf, *self.edges, math.inf)
        pieces: list[tuple[float, float]] = []
        for place in sorted(self.chosen):
            low, high = ends[place], ends[place + 1]
            if pieces and pieces[-1][1] == low:
                pieces[-1] = (pieces[-1][0], high)
            else:
                pieces.append((low, high))
        listed = " or ".join(f"[{low:.12g}, {high:.12g})" for low, high in pieces[:_SHOWN])
        return f"{name} in {listed}{_more(len(pieces))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryRegion:
    """Some of the common values; ``others`` says whether every value that is not common belongs too."""

    chosen: tuple[Hashable, ...]
    common: frozenset[Hashable]
    others: bool

    def hits(self, view: View, outputs: Outputs | Batch) -> int:
        chosen = frozenset(self.chosen)
        return sum(value in chosen or (self.others and value not in self.common) for value in view.keys(outputs))

    def words(self, name: str) -> str:
        values = sorted(self.common.difference(self.chosen) if self.others else self.chosen, key=repr)
        if not values:
            return f"{name} is anything"
        listed = ", ".join(map(_plain, values[:_SHOWN])) + _more(len(values))
        single = "is not" if self.others else "is"
        several = "is none of" if self.others else "is one of"
        return f"{name} {single if len(values) == 1 else several} {listed}"


def choose(first: Outputs, second: Outputs, *, worth: Worth, draws: int, level: float) -> OutputEvent:
    """The event that ``draws`` fresh draws a side should prove most with, more likely on ``first``'s input."""
    return Candidates(Batch(first), Batch(second)).best(worth=worth, draws=draws, level=level)


class Candidates:
    """All that may be looked for in outputs like these, with how often each came in the draws that choose."""

    def __init__(self, first: Batch, second: Batch) -> None:
        self._families: list[_Tails | _Prefixes] = []
        for view in views_of(first, second):
            if view.numeric:
                numbers = view.numbers(first), view.numbers(second)
                self._families += [*_tails(view, numbers), *_intervals(view, numbers)]
            else:
                self._families.append(_cells(view, (view.keys(first), view.keys(second))))

    def best(self, *, worth: Worth, draws: int, level: float, likelier: int = 0) -> OutputEvent:
        """The one that ``draws`` fresh draws a side should prove most with, more likely on the side ``likelier``."""
        weighed = [family.weigh(likelier) for family in self._families]
        scores = _scores(weighed, worth=worth, draws=draws, level=level)
        best, start = int(np.argmax(scores)), 0
        for family, offered in zip(self._families, weighed, strict=True):
            if best < start + len(offered.hits):
                return OutputEvent(view=family.view, region=offered.at(best - start))
            start += len(offered.hits)
        raise AssertionError("the best of all candidates is one of them")


@dataclass(frozen=True, slots=True)
class _Weighed:
    """Candidates ``at(0), at(1), …`` of one view with their counts among ``of`` draws on the two inputs."""

    hits: Ints
    other: Ints
    of: tuple[int, int]
    at: Callable[[int], Region]


def _scores(weighed: Sequence[_Weighed], *, worth: Worth, draws: int, level: float) -> Floats:
    """Return the expected proof of each candidate; all of them at once, since there are thousands
    in dozens of families.
    """
    from scipy import special  # late: it takes longer to load than all of ours

    wide = float(-special.ndtri(level)) + 0.25
    turns = np.linspace(0.0, math.pi / 2, 9)[:, None]
    sizes = [len(one.hits) for one in weighed]
    of, of_other = (np.repeat([one.of[side] for one in weighed], sizes) for side in (0, 1))
    hits, other = (np.concatenate(counts) for counts in zip(*((one.hits, one.other) for one in weighed), strict=True))

    def limit(share: Floats, choosing: Ints, turn: Floats) -> Floats:
        """Wilson's limit, with ``turn`` of the width that the testing draws and our doubt in the choosing ones ask."""
        width = turn * (wide + _DOUBT * np.sqrt(draws / choosing))
        squared = width**2
        middle = share + squared / (2 * draws)
        spread = width * np.sqrt(share * (1 - share) / draws + squared / (4 * draws**2))
        return np.clip((middle + spread) / (1 + squared / draws), 1e-12, 1.0)

    p = limit(hits / of, of, -np.cos(turns))
    q = limit((other + 1) / (of_other + 1), of_other, np.sin(turns))
    return np.asarray(np.min(worth(p, q), axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tails:
    """One event for each threshold."""

    view: View
    counts: tuple[Ints, Ints]
    of: tuple[int, int]
    at: Callable[[int], Region]

    def weigh(self, likelier: int) -> _Weighed:
        one, other = likelier, 1 - likelier
        return _Weighed(self.counts[one], self.counts[other], (self.of[one], self.of[other]), self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prefixes:
    """Cells are sorted by the even draws; every prefix is weighed by the odd ones."""

    view: View
    even: tuple[Ints, Ints]
    odd: tuple[Ints, Ints]
    of: tuple[int, int]
    at: Callable[[Sequence[int]], Region]

    @classmethod
    def count(cls, view: View, places: tuple[Ints, Ints], cells: int, at: Callable[..., Region]) -> "_Prefixes":
        """From the cell of each draw on both sides; −1 is none."""

        def counts(side: Ints) -> Ints:
            return np.bincount(side[side >= 0], minlength=cells)

        one, other = places
        even, odd = ((counts(one[start::2]), counts(other[start::2])) for start in (0, 1))
        return cls(view=view, even=even, odd=odd, of=(len(one) // 2, len(other) // 2), at=at)

    def weigh(self, likelier: int) -> _Weighed:
        one, other = likelier, 1 - likelier
        order = np.argsort(-(self.even[one] + 0.5) / (self.even[other] + 0.5), kind="stable")
        hits, others = (np.cumsum(self.odd[side][order]) for side in (one, other))
        of = self.of[one], self.of[other]
        return _Weighed(hits, others, of, lambda last: self.at([int(place) for place in order[: last + 1]]))


def _tails(view: View, numbers: tuple[Floats, Floats]) -> list[_Tails]:
    one, other = (np.sort(side[~np.isnan(side)]) for side in numbers)
    thresholds = _quantiles(np.concatenate([one, other]), _TAILS)
    if len(thresholds) == 0:
        return []
    of = len(numbers[0]), len(numbers[1])

    def family(upper: bool) -> _Tails:
        below = (np.searchsorted(side, thresholds, side="left" if upper else "right") for side in (one, other))
        first, second = (len(side) - under if upper else under for side, under in zip((one, other), below, strict=True))
        return _Tails(
            view=view,
            counts=(first, second),
            of=of,
            at=lambda place: TailRegion(threshold=float(thresholds[place]), upper=upper),
        )

    return [family(False), family(True)]


def _intervals(view: View, numbers: tuple[Floats, Floats]) -> list[_Prefixes]:
    pooled = np.concatenate(numbers)
    edges = _quantiles(pooled[~np.isnan(pooled)], _BINS)
    if len(edges) == 0:
        return []
    ends = tuple(map(float, edges))
    one, other = (np.where(np.isnan(side), -1, np.searchsorted(edges, side, side="right")) for side in numbers)

    def at(cells: Sequence[int]) -> Region:
        return Intervals(edges=ends, chosen=frozenset(cells))

    return [_Prefixes.count(view, (one, other), len(edges) + 1, at)]


def _cells(view: View, keys: tuple[Sequence[Hashable], Sequence[Hashable]]) -> _Prefixes:
    pooled = Counter(keys[0])
    pooled.update(keys[1])
    cells = [value for value, count in pooled.most_common(_CELLS) if count >= _REPEATS]
    places, rest = {value: place for place, value in enumerate(cells)}, len(cells)
    one, other = (np.array([places.get(value, rest) for value in side], dtype=np.int64) for side in keys)

    def at(chosen: Sequence[int]) -> Region:
        named = tuple(cells[place] for place in chosen if place != rest)
        return CategoryRegion(chosen=named, common=frozenset(cells), others=rest in chosen)

    return _Prefixes.count(view, (one, other), rest + 1, at)


def _quantiles(pooled: Floats, pieces: int) -> Floats:
    """Values among the draws themselves, so that ties fall on one side of every threshold."""
    if len(pooled) == 0:
        return pooled
    return np.unique(np.sort(pooled)[np.linspace(0, len(pooled) - 1, pieces + 1).astype(np.int64)])


def _plain(value: Hashable) -> str:
    text = str(value) if isinstance(value, str) and not value else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _more(total: int) -> str:
    return f" … ({total} in all)" if total > _SHOWN else ""
