"""Measure the anonymity of a table as it is, and the information that it has lost.

Refs: Bayardo, Agrawal 2005 (discernibility); LeFevre, DeWitt, Ramakrishnan 2006 (average size); Xu, Wang, Pei, Wang,
Shi, Fu 2006 (normalised certainty penalty).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hubbub.anonymity.wanted import (
    SUPPRESSED,
    Wanted,
    entropy_diversity,
    is_number,
    known_values,
    not_covered,
    recursive_ratio,
    scale_of,
)
from hubbub.attack.columns import columns_of, pick
from hubbub.attack.finding import AttackFinding
from hubbub.errors import ParameterError


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


_RECURSIVE = 3
"""(c, l) is given for l from 2 to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The figures of the worst group of a table. Without a sensitive column there is only k."""

    quasi: tuple[str, ...]
    sensitive: str | None
    rows: int
    sizes: tuple[int, ...]
    """Of all groups, smallest first."""
    l: int | None = None  # noqa: E741 (the letter has its name)
    entropy: float | None = None
    recursive: tuple[tuple[int, float], ...] = ()
    """For each l the number that c must exceed."""
    t: float | None = None
    ordered: bool = False
    alike: int = 0
    """Rows in groups whose rows all say the same."""

    @property
    def k(self) -> int:
        """The size of the smallest group; 0 for a table without rows."""
        return self.sizes[0] if self.sizes else 0

    @property
    def alone(self) -> int:
        """Rows that look like no other."""
        return sum(1 for size in self.sizes if size == 1)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """The risks that these figures do not cover."""
        return not_covered(sensitive=self.sensitive is not None, diverse=(self.l or 0) > 1, close=False)

    def satisfies(self, wanted: Wanted) -> bool:
        """Return True if every group meets the requirements."""
        if wanted.needs_sensitive and self.sensitive is None:
            raise ParameterError("sensitive", "the column that l and t are about", None)
        ratios = dict(self.recursive)
        if wanted.recursive is not None and wanted.recursive[1] not in ratios:
            raise ParameterError("recursive", f"with an l from 2 to {_RECURSIVE}, as measured", wanted.recursive)
        return (
            self.k >= wanted.k
            and (wanted.l is None or self.l is None or self.l >= wanted.l)
            and (wanted.entropy is None or self.entropy is None or self.entropy >= wanted.entropy * (1 - 1e-12))
            and (wanted.recursive is None or ratios[wanted.recursive[1]] < wanted.recursive[0])
            and (wanted.t is None or self.t is None or self.t <= wanted.t + 1e-12)
        )

    def lines(self) -> list[tuple[str, str]]:
        """Names and figures, for a table."""
        found = [
            ("rows", f"{self.rows:,}"),
            ("groups", f"{len(self.sizes):,}"),
            ("k-anonymity: smallest group", str(self.k)),
            ("rows that look like no other", f"{self.alone:,}"),
        ]
        if self.sensitive is not None:
            kind = "ordered" if self.ordered else "equal distances"
            found += [
                ("rows in groups that all say the same", f"{self.alike:,}"),
                ("l-diversity, distinct", "–" if self.l is None else str(self.l)),
                ("l-diversity, entropy", "–" if self.entropy is None else f"{self.entropy:.3g}"),
                *((f"l-diversity, recursive: c for l = {many}", _above(c)) for many, c in self.recursive),
                (f"t-closeness ({kind})", "–" if self.t is None else f"{self.t:.3g}"),
            ]
        return found

    def finding(self, title: str = "Anonymity of a table") -> AttackFinding:
        """As a report: the figures, and what they do not cover."""
        told_of = f", and {self.alike:,} are in groups that all say the same" if self.sensitive is not None else ""
        return AttackFinding(
            title=title,
            verdict=f"Each row looks like at least {max(self.k - 1, 0)} others; {self.alone:,} of {self.rows:,} rows "
            f"are alone{told_of}.",
            works=self.alone > 0 or self.alike > 0,
            notes=(f"An attacker is taken to know: {', '.join(self.quasi)}.", *self.not_covered),
            columns=("figure", "worst group"),
            rows=tuple(self.lines()),
            numbers={
                name: value
                for name, value in (("k", self.k), ("l", self.l), ("entropy", self.entropy), ("t", self.t))
                if value is not None
            },
            draw=partial(_draw, self.sizes) if self.sizes else None,
        )

    def __str__(self) -> str:
        return str(self.finding())


def measure(
    table: Any, *, quasi: Sequence[str], sensitive: str | None = None, order: Sequence[Any] | bool | None = None
) -> Measured:
    """k, l (distinct, entropy, recursive) and t of a table whose ``quasi`` columns an attacker may know.

    ``order`` makes t-closeness count steps between sensitive values: a list of them from first to last, or True to sort
    them. Without it numbers have an order, and text has none. Values that were left out (``*``) tell nothing.
    """
    columns = columns_of(table)
    keys = pick(columns, quasi, what="quasi")
    if sensitive is None:
        return Measured(quasi=tuple(quasi), sensitive=None, rows=len(keys), sizes=tuple(sorted(Counter(keys).values())))
    if sensitive in quasi:
        raise ParameterError("sensitive", "a column that is not among quasi", sensitive)
    secrets = [one for (one,) in pick(columns, [sensitive], what="sensitive")]
    scale = scale_of(secrets, order=order)
    held: dict[tuple[Any, ...], list[Any]] = {}
    for key, secret in zip(keys, secrets, strict=True):
        held.setdefault(key, []).append(secret)
    groups = [counts for one in held.values() if (counts := Counter(known_values(one)))]
    return Measured(
        quasi=tuple(quasi),
        sensitive=sensitive,
        rows=len(keys),
        sizes=tuple(sorted(len(one) for one in held.values())),
        l=min((len(counts) for counts in groups), default=None),
        entropy=min((entropy_diversity(counts) for counts in groups), default=None),
        recursive=tuple(
            (many, max((recursive_ratio(counts, many) for counts in groups), default=math.inf))
            for many in range(2, _RECURSIVE + 1)
        ),
        t=max((scale.distance(counts) for counts in groups), default=None),
        ordered=scale.ordered,
        alike=sum(counts.total() for counts in groups if len(counts) == 1),
    )


def _above(ratio: float) -> str:
    return f"> {ratio:.3g}" if ratio < math.inf else "none"


def _draw(sizes: Sequence[int], axes: Any) -> None:
    counted = Counter(min(size, 20) for size in sizes)
    axes.bar(range(1, 21), [size * counted[size] if size < 20 else sum(one for one in sizes if one >= 20)
                            for size in range(1, 21)], color=["crimson", *["steelblue"] * 19])  # fmt: skip
    axes.set_xticks(range(1, 21))
    axes.set_xlabel("size of the group (20: 20 and more)")
    axes.set_ylabel("rows")
