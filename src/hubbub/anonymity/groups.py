"""Groups of rows that look alike, and how far the sensitive values in one of them are from those of all rows.

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
