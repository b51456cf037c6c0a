"""The information that a table loses to anonymity.

Refs: Bayardo, Agrawal 2005 (discernibility); LeFevre, DeWitt, Ramakrishnan 2006 (average size); Xu, Wang, Pei, Wang,
Shi, Fu 2006 (normalised certainty penalty).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.anonymity.groups import SUPPRESSED, is_number


@dataclass(frozen=True, slots=True, kw_only=True)
class InformationLoss:
    """Figures that are 0, or 1 for the average size, where nothing was lost."""

    penalty: float
    """The share of its range that a value was spread over, on average: 0 exact, 1 all of it."""
    discernibility: int
    """For each row, the number of rows that look like it; for a row that was left out, all of them."""
    average_size: float
    """Of groups, in units of k."""
    left_out: int
    """Rows that are not in the table any more."""


def loss_of(original: Sequence[Sequence[Any]], made: Sequence[Sequence[str] | None], *, k: int) -> InformationLoss:
    """Compare rows of quasi-identifiers with what became of them, in the same order; None where a row is left out."""
    rows = len(made)
    if not rows:
        return InformationLoss(penalty=0.0, discernibility=0, average_size=0.0, left_out=0)
    out = sum(1 for row in made if row is None)
    sizes = Counter(tuple(row) for row in made if row is not None)
    shown = [(SUPPRESSED,) * len(original[0]) if row is None else row for row in made]
    columns = zip(zip(*original, strict=True), zip(*shown, strict=True), strict=True)
    penalties = [_penalty(before, after) for before, after in columns]
    return InformationLoss(
        penalty=sum(penalties) / len(penalties),
        discernibility=sum(size * size for size in sizes.values()) + out * rows,
        average_size=(rows - out) / len(sizes) / k if sizes else 0.0,
        left_out=out,
    )


def _penalty(before: Sequence[Any], after: Sequence[str]) -> float:
    """For one column, the mean over its rows."""
    behind: dict[str, list[Any]] = defaultdict(list)
    for one, shown in zip(before, after, strict=True):
        behind[shown].append(one)
    numbers = all(map(is_number, before))
    whole = _spread(before, numbers=numbers)
    if not whole:
        return float(sum(len(held) for shown, held in behind.items() if shown == SUPPRESSED) / len(before))
    lost = sum(
        len(held) * (1.0 if shown == SUPPRESSED else _spread(held, numbers=numbers) / whole)
        for shown, held in behind.items()
    )
    return float(lost / len(before))


def _spread(values: Sequence[Any], *, numbers: bool) -> float:
    return float(max(values) - min(values)) if numbers else len(set(values)) - 1.0
