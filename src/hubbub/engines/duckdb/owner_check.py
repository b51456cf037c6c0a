"""The owner's declarations, compared with the data: exact numbers, for the owner's eyes only.

They are counts of real rows. Nothing of a report may reach an analyst, decide a price or appear in an error. What it
may do is let bounding be skipped where a declared fact was seen to hold for this version of the data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hubbub.engines.duckdb import probe
from hubbub.errors import PolicyError
from hubbub.policy.kinds import Type
from hubbub.policy.paths import qualify
from hubbub.policy.sources import REPLACED, UNTYPED
from hubbub.policy.tables import Policy, Table, TableColumn

Ask = Callable[[str], Sequence[Sequence[Any]]]
"""Runs SQL on the owner's own connection, in which every table of the policy has its own name."""


class Check(StrEnum):
    """The facts to compare. The first three are promises; the rest say what bounding and grouping will leave out."""

    NOT_NULL = "not null"
    UNIQUE = "one row a unit"
    KEY = "each value once"
    SIZE = "as many units as declared"
    UNIT = "unit present"
    SPELLING = "in its own spelling"
    WELL_FORMED = "well formed"
    READABLE = "of its type"
    BOUNDS = "within bounds"
    KEYS = "among the keys"
    ROWS = "within max_rows"
    TOTAL = "within max_total_rows"


PROMISES = frozenset({Check.NOT_NULL, Check.UNIQUE, Check.KEY, Check.SIZE})
_REMEDIES = {
    Check.NOT_NULL: "Take the declaration back: nullable = true.",
    Check.UNIQUE: "Take the declaration back: unique = false.",
    Check.KEY: "Take the declaration back: unique = false. No path to the unit may go by it.",
    Check.SIZE: "So many units are there in excess, or are missing. Declare the size that there is, or none.",
    Check.UNIT: "These rows belong to nobody, and are left out of every answer.",
    Check.SPELLING: "Another id could be read as the same (07 as 7; where there is a ? in Parquet, bytes that are no "
    "text), so these rows belong to nobody. Write each id in one way, or declare the column as text.",
    Check.WELL_FORMED: "These records could not be read, and were left out.",
    Check.READABLE: "These values count as missing.",
    Check.BOUNDS: "These values are clamped when they are added up.",
    Check.KEYS: "These rows are in no group.",
    Check.ROWS: "Of these units, rows beyond the limit may count for nothing.",
    Check.TOTAL: "Of these units, rows beyond the limit may count for nothing, whatever groups they are in.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFinding:
    """One declaration, and how many rows (or units) do not keep it."""

    table: str
    column: str | None
    fact: Check
    against: int
    out_of: int

    @property
    def holds(self) -> bool:
        """Return whether nothing speaks against it."""
        return self.against == 0

    @property
    def broken(self) -> bool:
        """Return whether it is a promise that the data does not keep."""
        return self.fact in PROMISES and not self.holds

    @property
    def place(self) -> str:
        """The table, or the column of it."""
        return self.table if self.column is None else qualify(self.table, self.column)

    @property
    def remedy(self) -> str:
        """Return what follows, or what to do, where it does not hold."""
        return _REMEDIES[self.fact]

    def __str__(self) -> str:
        units = dict.fromkeys((Check.UNIQUE, Check.ROWS, Check.TOTAL), "units")
        what = {**units, Check.KEY: "values"}.get(self.fact, "rows")
        start = f"{self.place}: {self.fact}"
        if self.holds:
            return f"{start}: yes, all {self.out_of} {what}."
        return f"{start}: not {self.against} of {self.out_of} {what}. {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReport:
    """All findings for one version of the data. Not for analysts."""

    version: str
    fingerprint: str
    findings: tuple[CheckFinding, ...]

    @property
    def holds(self) -> bool:
        """Return whether every promise is kept."""
        return not any(finding.broken for finding in self.findings)

    @property
    def unique(self) -> frozenset[str]:
        """The tables in which each unit was declared to have one row, and has; if they have a size, it is the one."""
        wrong = {finding.table for finding in self.findings if finding.fact is Check.SIZE and not finding.holds}
        held = {finding.table for finding in self.findings if finding.fact is Check.UNIQUE and finding.holds}
        return frozenset(held - wrong)

    @property
    def keys(self) -> frozenset[tuple[str, str]]:
        """The columns that were declared to have each value once, and have."""
        found = (one for one in self.findings if one.fact is Check.KEY and one.holds)
        return frozenset((one.table, one.column) for one in found if one.column is not None)

    def __str__(self) -> str:
        head = f"Version {self.version}: {'every promise is kept' if self.holds else 'broken promises'}."
        return "\n".join([head, *(f"{'✗' if f.broken else '·' if not f.holds else '✓'} {f}" for f in self.findings)])


def check(policy: Policy, ask: Ask, *, left_out: Mapping[str, tuple[int, int]] | None = None) -> OwnerReport:
    """Compare every declaration with the rows, in one or two scans of each table.

    ``left_out`` says for tables of text how many records were left out, of how many.
    """
    malformed = [
        CheckFinding(table=table, column=None, fact=Check.WELL_FORMED, against=count, out_of=records)
        for table, (count, records) in (left_out or {}).items()
    ]
    findings = [finding for table in policy.tables.values() for finding in _table(table, policy, ask)]
    return OwnerReport(version=policy.version, fingerprint=policy.fingerprint, findings=(*malformed, *findings))


def _table(table: Table, policy: Policy, ask: Ask) -> list[CheckFinding]:
    facts: list[tuple[str, Check, str]] = []
    for column in table.columns:
        value, raw = probe.value_of(column), probe.quote(column.name)
        facts.append((column.name, Check.READABLE, f"{raw} IS NOT NULL AND {value} IS NULL"))
        if column.name == table.unit:
            facts.append((column.name, Check.UNIT, f"{probe.identity_of(table, column)} IS NULL"))
        if _is_spelt(table, column):
            facts.append(
                (column.name, Check.SPELLING, f"{value} IS NOT NULL AND {probe.identity_of(table, column)} IS NULL")
            )
        if not column.kind.nullable:
            facts.append((column.name, Check.NOT_NULL, f"{value} IS NULL"))
        if column.bounds is not None:
            facts.append((column.name, Check.BOUNDS, probe.outside(column)))
        if column.keys is not None:
            facts.append((column.name, Check.KEYS, probe.elsewhere(column)))
    (row,) = ask(probe.statement(table, [condition for *_, condition in facts]))
    if len(row) != len(facts) + 1:
        raise PolicyError("The answer of the data has another shape than the question. Check the connection.")
    rows, *against = (int(number) for number in row)
    found = [
        CheckFinding(table=table.name, column=column, fact=fact, against=number, out_of=rows)
        for (column, fact, _), number in zip(facts, against, strict=True)
    ]
    return found + _keys(table, ask) + _units(table, policy, ask) + _totals(table, policy, ask)


def _is_spelt(table: Table, column: TableColumn) -> bool:
    """Return whether a column names the unit, or leads to it, and could be read from several texts."""
    leads = table.through.column if table.through is not None else table.unit
    several = REPLACED if column.kind.type is Type.TEXT else UNTYPED
    return column.name == leads and table.source.format in several


def _keys(table: Table, ask: Ask) -> list[CheckFinding]:
    """Columns of which no two rows are to share a value; missing values are nobody's key."""
    found = []
    for column in table.columns:
        if column.unique:
            ((values, several),) = ask(probe.count_repeated(table, column))
            found.append(
                CheckFinding(
                    table=table.name, column=column.name, fact=Check.KEY, against=int(several), out_of=int(values)
                )
            )
    return found


def _units(table: Table, policy: Policy, ask: Ask) -> list[CheckFinding]:
    """Check what is said about the rows of a unit, taken over the whole table: a group cannot hold more."""
    unit, most = None if table.unit is None else table.column(table.unit), policy.limits.max_rows
    found = []
    if table.path:
        ((rows, lost),) = ask(probe.count_lost(table, policy.tables))
        where = table.path[0].column
        found.append(CheckFinding(table=table.name, column=where, fact=Check.UNIT, against=int(lost), out_of=int(rows)))
    if unit is None or not (table.unique or most):
        return found
    ((everyone, several, many),) = ask(probe.units(table, policy.tables, most or 1))
    if table.unique:
        found.append(
            CheckFinding(
                table=table.name, column=unit.name, fact=Check.UNIQUE, against=int(several), out_of=int(everyone)
            )
        )
    if table.size is not None:
        apart = abs(int(everyone) - table.size)
        found.append(
            CheckFinding(table=table.name, column=unit.name, fact=Check.SIZE, against=apart, out_of=table.size)
        )
    if most:
        found.append(
            CheckFinding(table=table.name, column=unit.name, fact=Check.ROWS, against=int(many), out_of=int(everyone))
        )
    return found


def _totals(table: Table, policy: Policy, ask: Ask) -> list[CheckFinding]:
    """Rows of a unit in all groups: those of the whole table, if a question leaves none out."""
    unit, most = None if table.unit is None else table.column(table.unit), policy.limits.max_total_rows
    if unit is None or most is None:
        return []
    ((everyone, _, many),) = ask(probe.units(table, policy.tables, most))
    return [CheckFinding(table=table.name, column=unit.name, fact=Check.TOTAL, against=int(many), out_of=int(everyone))]
