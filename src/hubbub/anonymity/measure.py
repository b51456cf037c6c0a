"""Measure the anonymity of a table as it is."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hubbub.anonymity.groups import entropy_diversity, known_values, recursive_ratio, scale_of
from hubbub.anonymity.limits import not_covered
from hubbub.anonymity.wanted import Wanted
from hubbub.attack.columns import columns_of, pick
from hubbub.attack.finding import AttackFinding
from hubbub.errors import ParameterError

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
