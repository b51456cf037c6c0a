"""The requirements on every group of rows that look alike, and the limits of every definition of this kind.

Refs: Sweeney 2002 (k); Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam 2007 (l); Li, Li, Venkatasubramanian 2007
(t).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.errors import ParameterError

SUPPRESSED = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The sensitive values of all rows: their shares, and whether their order counts."""

    values: tuple[Any, ...]
    shares: tuple[float, ...]
    ordered: bool

    def distance(self, counts: Mapping[Any, int]) -> float:
        """The earth mover's distance of a group to all rows, between 0 and 1.

        Values in order are as far apart as there are steps between them, others are all one apart.
        """
        total = sum(counts.values())
        gaps = [counts.get(value, 0) / total - share for value, share in zip(self.values, self.shares, strict=True)]
        if not self.ordered:
            return sum(abs(gap) for gap in gaps) / 2
        moved, work = 0.0, 0.0
        for gap in gaps[:-1]:
            moved += gap
            work += abs(moved)
        return work / max(1, len(gaps) - 1)


def scale_of(secrets: Iterable[Any], *, order: Sequence[Any] | bool | None) -> Scale:
    """``order``: the values from first to last; True to sort them; without it, numbers have one and text has none."""
    counts = Counter(known_values(secrets))
    ordered = order is not False and (order is not None or (bool(counts) and all(map(is_number, counts))))
    if isinstance(order, Sequence):
        missing = [value for value in counts if value not in order]
        if missing:
            raise ParameterError("order", "all the sensitive values, from first to last", missing[0])
        values = tuple(order)
    else:
        values = tuple(sorted(counts, key=_sorting))
    total = sum(counts.values()) or 1
    return Scale(values=values, shares=tuple(counts[value] / total for value in values), ordered=ordered)


def known_values(secrets: Iterable[Any]) -> list[Any]:
    """Drop the values that were left out: they carry no information."""
    return [one for one in secrets if one is not None and one != SUPPRESSED]


def entropy_diversity(counts: Mapping[Any, int]) -> float:
    """e to the entropy: how many values there would be, were they equally common."""
    total = sum(counts.values())
    return math.exp(-math.fsum(count / total * math.log(count / total) for count in counts.values()))


def recursive_ratio(counts: Mapping[Any, int], l: int) -> float:  # noqa: E741 (the letter has its name)
    """The commonest value against all from the l-th on: a group is (c, l)-diverse where this is less than c."""
    ranked = sorted(counts.values(), reverse=True)
    rest = sum(ranked[l - 1 :])
    return ranked[0] / rest if rest else math.inf


def is_number(value: Any) -> bool:
    """Truth values are no numbers here: nothing lies between them."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sorting(value: Any) -> tuple[bool, Any]:
    return (False, value) if is_number(value) else (True, str(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """k rows that look alike, and in each such group a mixture of sensitive values."""

    k: int = 1
    l: int | None = None  # noqa: E741 (the letter has its name)
    """Distinct sensitive values."""
    entropy: float | None = None
    """Entropy l-diversity: e to the entropy is at least this."""
    recursive: tuple[float, int] | None = None
    """(c, l): the commonest value is less than c times all from the l-th on."""
    t: float | None = None
    """The distance from the values of all rows is at most this."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ParameterError("k", "at least 1", self.k)
        if self.l is not None and self.l < 1:
            raise ParameterError("l", "at least 1", self.l)
        if self.entropy is not None and not self.entropy >= 1:
            raise ParameterError("entropy", "at least 1", self.entropy)
        if self.recursive is not None and (not self.recursive[0] > 0 or self.recursive[1] < 1):
            raise ParameterError("recursive", "a positive c and an l of at least 1", self.recursive)
        if self.t is not None and not 0 <= self.t <= 1:
            raise ParameterError("t", "from 0 to 1", self.t)

    @property
    def needs_sensitive(self) -> bool:
        """True if there are requirements on sensitive values."""
        return any(one is not None for one in (self.l, self.entropy, self.recursive, self.t))

    def is_met(self, size: int, secrets: Sequence[Any], scale: Scale | None) -> bool:
        """Return True if a group of this size with these sensitive values meets the requirements."""
        if size < self.k:
            return False
        counts = Counter(known_values(secrets)) if self.needs_sensitive and scale is not None else Counter()
        if not counts:
            return True
        return (
            (self.l is None or len(counts) >= self.l)
            and (self.entropy is None or entropy_diversity(counts) >= self.entropy * (1 - 1e-12))
            and (self.recursive is None or recursive_ratio(counts, self.recursive[1]) < self.recursive[0])
            and (self.t is None or scale is None or scale.distance(counts) <= self.t + 1e-12)
        )

    def __str__(self) -> str:
        parts = [f"k = {self.k}"]
        parts += [] if self.l is None else [f"l = {self.l}"]
        parts += [] if self.entropy is None else [f"entropy l = {self.entropy:g}"]
        parts += [] if self.recursive is None else [f"recursive (c, l) = ({self.recursive[0]:g}, {self.recursive[1]})"]
        parts += [] if self.t is None else [f"t = {self.t:g}"]
        return ", ".join(parts)


ALWAYS = (
    "Not covered: a second release about the same people. Two tables that are each anonymous can pin a person down "
    "together (hubbub attack composition).",
    "Not covered: whoever knows more than the columns that were named. Another column, or a fact about one person, "
    "splits a group.",
    "Not covered: that somebody is in the table at all.",
    "Not covered: what the way of making the table tells. That no finer table was allowed is itself a fact about "
    "its rows.",
    "There is no bound on what can be learned about one person. Questions through a budget have one (hubbub query).",
)
_NO_SENSITIVE = (
    "Not covered: what the rows of a group have in common. No sensitive column was named, so none was looked at."
)
_K_ALONE = "Not covered: a group whose rows all say the same tells it about everybody in it, however large it is."
_DIVERSE = (
    "Not covered: values that differ in name only (two kinds of one illness), and groups in which a rare value is much "
    "commoner than among all."
)
_CLOSE = "Not covered: what is true of all rows; and a group may differ from all by as much as t for everybody in it."


def not_covered(*, sensitive: bool, diverse: bool, close: bool) -> tuple[str, ...]:
    """List the risks that a guarantee leaves open: more, the less was examined or asked for. It is never empty."""
    first = [] if sensitive else [_NO_SENSITIVE]
    if sensitive and not diverse and not close:
        first.append(_K_ALONE)
    if diverse and not close:
        first.append(_DIVERSE)
    if close:
        first.append(_CLOSE)
    return (*first, *ALWAYS)
