"""Make a table satisfy a definition: by cuts (Mondrian), or by levels of given hierarchies with some rows left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.anonymity.hierarchies import GeneralizationHierarchy, Suppress
from hubbub.anonymity.lattice import find_levels
from hubbub.anonymity.measure import InformationLoss, Measured, loss_of, measure
from hubbub.anonymity.mondrian import describe_values, partitions
from hubbub.anonymity.wanted import Wanted, not_covered, scale_of
from hubbub.attack.columns import columns_of, pick
from hubbub.attack.finding import AttackFinding
from hubbub.errors import HubbubError, ParameterError

MONDRIAN, LEVELS = "cuts", "levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A table that meets the requirements, and the information that it lost."""

    rows: tuple[dict[str, Any], ...]
    wanted: Wanted
    before: Measured
    after: Measured
    loss: InformationLoss
    method: str
    dropped: tuple[str, ...]
    """Columns that are not in it."""
    levels: Mapping[str, int] | None = None

    @property
    def not_covered(self) -> tuple[str, ...]:
        """The risks that are not covered, whatever was asked for."""
        diverse = any(one is not None for one in (self.wanted.l, self.wanted.entropy, self.wanted.recursive))
        return not_covered(sensitive=self.after.sensitive is not None, diverse=diverse, close=self.wanted.t is not None)

    def finding(self) -> AttackFinding:
        """As a report: before, after, what was lost, and what is not covered."""
        after = dict(self.after.lines())
        lost = (
            ("share of its range that a value is spread over", "0", f"{self.loss.penalty:.3f}"),
            ("rows that look like a row, summed over rows", f"{sum(n * n for n in self.before.sizes):,}",
             f"{self.loss.discernibility:,}"),
            ("average size of a group, in k", "–", f"{self.loss.average_size:.3g}"),
            ("rows left out", "0", f"{self.loss.left_out:,}"),
        )  # fmt: skip
        rows = tuple((name, was, after.get(name, "–")) for name, was in self.before.lines()) + lost
        notes = [f"Made by {self.method}, for {self.wanted}."]
        if self.levels is not None:
            notes.append("Levels: " + ", ".join(f"{name} {level}" for name, level in self.levels.items()) + ".")
        if self.dropped:
            notes.append(f"Columns that were dropped: {', '.join(self.dropped)}.")
        return AttackFinding(
            title="A table made anonymous, as far as that goes",
            verdict=f"Every row looks like at least {max(self.after.k - 1, 0)} others in "
            f"{', '.join(self.after.quasi)}.",
            works=False,
            notes=(*notes, *self.not_covered),
            columns=("figure", "before", "after"),
            rows=rows,
            numbers={"k": self.after.k, "penalty": self.loss.penalty, "left out": self.loss.left_out},
            draw=self.after.finding().draw,
        )

    def __str__(self) -> str:
        return str(self.finding())


def make(
    table: Any,
    *,
    quasi: Sequence[str],
    wanted: Wanted,
    sensitive: str | None = None,
    order: Sequence[Any] | bool | None = None,
    hierarchies: Mapping[str, GeneralizationHierarchy] | None = None,
    suppress: float = 0.0,
    keep: Sequence[str] = (),
) -> Made:
    """Coarsen ``quasi`` until every group is as ``wanted``; columns that are neither named nor kept are dropped.

    Without hierarchies the table is cut by Mondrian. With them each column is written at one level in all rows (one
    that has no hierarchy is kept or left out), and up to a share ``suppress`` of the rows is left out.
    """
    columns = columns_of(table)
    keys = pick(columns, quasi, what="quasi")
    if wanted.needs_sensitive and sensitive is None:
        raise ParameterError("sensitive", "the column that l and t are about", None)
    if not 0 <= suppress <= 1:
        raise ParameterError("suppress", "a share of the rows, from 0 to 1", suppress)
    if suppress and hierarchies is None:
        raise ParameterError("suppress", "0 without hierarchies: cuts leave no row out", suppress)
    strange = [name for name in hierarchies or {} if name not in quasi]
    if strange:
        raise ParameterError("hierarchies", f"for columns of quasi ({', '.join(quasi)})", strange[0])
    before = measure(columns, quasi=quasi, sensitive=sensitive, order=order)
    secrets = columns[sensitive] if sensitive is not None else [None] * len(keys)
    scale = None if sensitive is None else scale_of(secrets, order=order)
    if not keys or not wanted.is_met(len(keys), secrets, scale):
        raise HubbubError(f"Not even all rows as one group give {wanted}. Ask for less, or for more rows.")
    if hierarchies is None:
        method, levels = MONDRIAN, None
        made: list[tuple[str, ...] | None] = [None] * len(keys)
        for group in partitions(keys, secrets, wanted=wanted, scale=scale):
            shown = tuple(describe_values(column) for column in zip(*(keys[one] for one in group), strict=True))
            for one in group:
                made[one] = shown
    else:
        method = LEVELS
        chosen = [hierarchies.get(name, Suppress()) for name in quasi]
        found, made = find_levels(keys, secrets, hierarchies=chosen, wanted=wanted, scale=scale, suppress=suppress)
        levels = dict(zip(quasi, found, strict=True))
    kept = [name for name in dict.fromkeys([*([sensitive] if sensitive else []), *keep]) if name not in quasi]
    beside = pick(columns, kept, what="keep") if kept else [()] * len(keys)
    rows = tuple(
        dict(zip(quasi, shown, strict=True)) | dict(zip(kept, rest, strict=True))
        for shown, rest in zip(made, beside, strict=True)
        if shown is not None
    )
    return Made(
        rows=rows,
        wanted=wanted,
        before=before,
        after=measure(rows, quasi=quasi, sensitive=sensitive, order=order),
        loss=loss_of(keys, made, k=wanted.k),
        method=method,
        dropped=tuple(name for name in columns if name not in (*quasi, *kept)),
        levels=levels,
    )
