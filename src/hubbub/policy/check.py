"""What the owner declared, compared with the data: exact numbers, for the owner's eyes only.

They are counts of real rows. Nothing of a report may reach an analyst, decide a price or appear in an error. What it
may do is let bounding be skipped where a declared fact was seen to hold for this version of the data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hubbub.errors import PolicyError
from hubbub.policy import probe
from hubbub.policy.kinds import Type
from hubbub.policy.qualified_names import qualify
from hubbub.policy.sources import REPLACED, UNTYPED
from hubbub.policy.tables import Column, Policy, Table

Ask = Callable[[str], Sequence[Sequence[Any]]]
"""Runs SQL on the owner's own connection, in which every table of the policy has its own name."""


class Fact(StrEnum):
    """What is compared. The first three are promises; the rest say what bounding and grouping will leave out."""

    NOT_NULL = "not null"
    UNIQUE = "one row a unit"
    KEY = "each value once"
    UNIT = "unit present"
    SPELLING = "in its own spelling"
    WELL_FORMED = "well formed"
    READABLE = "of its type"
    BOUNDS = "within bounds"
    KEYS = "among the keys"
    ROWS = "within max_rows"
    TOTAL = "within max_total_rows"


PROMISES = frozenset({Fact.NOT_NULL, Fact.UNIQUE, Fact.KEY})
_REMEDIES = {
    Fact.NOT_NULL: "Take the declaration back: nullable = true.",
    Fact.UNIQUE: "Take the declaration back: unique = false.",
    Fact.KEY: "Take the declaration back: unique = false. No path to the unit may go by it.",
    Fact.UNIT: "These rows belong to nobody, and are left out of every answer.",
    Fact.SPELLING: "Another id could be read as the same (07 as 7; where there is a ? in Parquet, bytes that are no "
    "text), so these rows belong to nobody. Write each id in one way, or declare the column as text.",
    Fact.WELL_FORMED: "These records could not be read, and were left out.",
    Fact.READABLE: "These values count as missing.",
    Fact.BOUNDS: "These values are clamped when they are added up.",
    Fact.KEYS: "These rows are in no group.",
    Fact.ROWS: "Of these units, rows beyond the limit may count for nothing.",
    Fact.TOTAL: "Of these units, rows beyond the limit may count for nothing, whatever groups they are in.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One declaration, and how many rows (or units) do not keep it."""

    table: str
    column: str | None
    fact: Fact
    against: int
    out_of: int

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it."""
        return self.against == 0

    @property
    def broken(self) -> bool:
        """Whether it is a promise that the data does not keep."""
        return self.fact in PROMISES and not self.holds

    @property
    def place(self) -> str:
        """The table, or the column of it."""
        return self.table if self.column is None else qualify(self.table, self.column)

    @property
    def remedy(self) -> str:
        """What follows, or what to do, where it does not hold."""
        return _REMEDIES[self.fact]

    def __str__(self) -> str:
        units = dict.fromkeys((Fact.UNIQUE, Fact.ROWS, Fact.TOTAL), "units")
        what = {**units, Fact.KEY: "values"}.get(self.fact, "rows")
        start = f"{self.place}: {self.fact}"
        if self.holds:
            return f"{start}: yes, all {self.out_of} {what}."
        return f"{start}: not {self.against} of {self.out_of} {what}. {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All findings for one version of the data. Not for analysts."""

    version: str
    fingerprint: str
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether every promise is kept."""
        return not any(finding.broken for finding in self.findings)

    @property
    def unique(self) -> frozenset[str]:
        """The tables in which each unit was declared to have one row, and has."""
        return frozenset(finding.table for finding in self.findings if finding.fact is Fact.UNIQUE and finding.holds)

    @property
    def keys(self) -> frozenset[tuple[str, str]]:
        """The columns that were declared to have each value once, and have."""
        found = (one for one in self.findings if one.fact is Fact.KEY and one.holds)
        return frozenset((one.table, one.column) for one in found if one.column is not None)

    def __str__(self) -> str:
        head = f"Version {self.version}: {'every promise is kept' if self.holds else 'broken promises'}."
        return "\n".join([head, *(f"{'✗' if f.broken else '·' if not f.holds else '✓'} {f}" for f in self.findings)])


def check(policy: Policy, ask: Ask, *, left_out: Mapping[str, tuple[int, int]] | None = None) -> Report:
    """Compare every declaration with the rows, in one or two scans of each table.

    ``left_out`` says for tables of text how many records were left out, of how many.
    """
    malformed = [
        Finding(table=table, column=None, fact=Fact.WELL_FORMED, against=count, out_of=records)
        for table, (count, records) in (left_out or {}).items()
    ]
    findings = [finding for table in policy.tables.values() for finding in _table(table, policy, ask)]
    return Report(version=policy.version, fingerprint=policy.fingerprint, findings=(*malformed, *findings))


def _table(table: Table, policy: Policy, ask: Ask) -> list[Finding]:
    facts: list[tuple[str, Fact, str]] = []
    for column in table.columns:
        value, raw = probe.value_of(column), probe.quoted(column.name)
        facts.append((column.name, Fact.READABLE, f"{raw} IS NOT NULL AND {value} IS NULL"))
        if column.name == table.unit:
            facts.append((column.name, Fact.UNIT, f"{probe.identity_of(table, column)} IS NULL"))
        if _is_spelt(table, column):
            facts.append(
                (column.name, Fact.SPELLING, f"{value} IS NOT NULL AND {probe.identity_of(table, column)} IS NULL")
            )
        if not column.kind.nullable:
            facts.append((column.name, Fact.NOT_NULL, f"{value} IS NULL"))
        if column.bounds is not None:
            facts.append((column.name, Fact.BOUNDS, probe.outside(column)))
        if column.keys is not None:
            facts.append((column.name, Fact.KEYS, probe.elsewhere(column)))
    (row,) = ask(probe.statement(table, [condition for *_, condition in facts]))
    if len(row) != len(facts) + 1:
        raise PolicyError("The answer of the data has another shape than the question. Check the connection.")
    rows, *against = (int(number) for number in row)
    found = [
        Finding(table=table.name, column=column, fact=fact, against=number, out_of=rows)
        for (column, fact, _), number in zip(facts, against, strict=True)
    ]
    return found + _keys(table, ask) + _units(table, policy, ask) + _totals(table, policy, ask)


def _is_spelt(table: Table, column: Column) -> bool:
    """Return whether a column names the unit, or leads to it, and could be read from several texts."""
    leads = table.through.column if table.through is not None else table.unit
    several = REPLACED if column.kind.type is Type.TEXT else UNTYPED
    return column.name == leads and table.source.format in several


def _keys(table: Table, ask: Ask) -> list[Finding]:
    """Columns of which no two rows are to share a value; missing values are nobody's key."""
    found = []
    for column in table.columns:
        if column.unique:
            ((values, several),) = ask(probe.repeated(table, column))
            found.append(
                Finding(table=table.name, column=column.name, fact=Fact.KEY, against=int(several), out_of=int(values))
            )
    return found


def _units(table: Table, policy: Policy, ask: Ask) -> list[Finding]:
    """What is said about the rows of a unit, taken over the whole table: a group cannot hold more."""
    unit, most = None if table.unit is None else table.column(table.unit), policy.limits.max_rows
    found = []
    if table.path:
        ((rows, lost),) = ask(probe.lost(table, policy.tables))
        where = table.path[0].column
        found.append(Finding(table=table.name, column=where, fact=Fact.UNIT, against=int(lost), out_of=int(rows)))
    if unit is None or not (table.unique or most):
        return found
    ((everyone, several, many),) = ask(probe.units(table, policy.tables, most or 1))
    if table.unique:
        found.append(
            Finding(table=table.name, column=unit.name, fact=Fact.UNIQUE, against=int(several), out_of=int(everyone))
        )
    if most:
        found.append(
            Finding(table=table.name, column=unit.name, fact=Fact.ROWS, against=int(many), out_of=int(everyone))
        )
    return found


def _totals(table: Table, policy: Policy, ask: Ask) -> list[Finding]:
    """Rows of a unit in all groups: those of the whole table, if a question leaves none out."""
    unit, most = None if table.unit is None else table.column(table.unit), policy.limits.max_total_rows
    if unit is None or most is None:
        return []
    ((everyone, _, many),) = ask(probe.units(table, policy.tables, most))
    return [Finding(table=table.name, column=unit.name, fact=Fact.TOTAL, against=int(many), out_of=int(everyone))]
