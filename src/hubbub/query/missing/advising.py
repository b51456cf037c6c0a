"""Looks at how much people have, from which limits and bounds are advised: one histogram for each number of a person.

A person is in one bin of each histogram: by how many rows they have, by the most rows that they have in a group, by how
many groups they are in, and by one of their values. So each look is the look of a bought fact (``missing.looks``), and
what is advised is post-processing of its noisy counts.

Privacy:
    Claim: k looks at ε/k each cost ε.
    Proof: each is Pure(ε/k) (``missing.looks``), of rows that a reduction makes of the unit's own (``query.ops``);
        sequential composition. Which looks there are follows from the policy and from what was asked for.
    Needs: the claim of missing.looks.
    Ref: SOUNDNESS 10, 12.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hubbub.errors import NotAllowed, UnknownName
from hubbub.policy.kinds import Type, integer
from hubbub.policy.tables import Policy, Table, TableColumn
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import call
from hubbub.query.missing.bought import LIMITS, REALS, VALUE, WHOLE, Lacking, WantedFact
from hubbub.query.missing.lacking import make_real
from hubbub.query.missing.looks import Look
from hubbub.query.ops import Filter, Project, Reduce, Reduced, Reduction, Relation
from hubbub.query.plan.plan import one_row_a_unit

_MANY = integer(1, 1 << 40, nullable=False)
MOST_LOOKS = 24
"""More would each be too noisy to advise anything."""


class Advised(StrEnum):
    """What a look advises."""

    TOTAL = "max_total_rows"
    ROWS = "max_rows"
    GROUPS = "max_groups"
    BOUNDS = "bounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisingLook:
    """One look: what it advises, and of which column."""

    advised: Advised
    column: str | None
    """The column that rows are grouped by, or whose values are looked at; None for all rows of a person."""
    look: Look
    most: int | None = None
    """The greatest limit that can matter: of groups, how many there are."""


Columns = Sequence[tuple[str, Expression]]


def choose_table(policy: Policy, named: str | None) -> Table:
    """Return the private table that is looked at: the one that is named, or the only one."""
    private = {name.lower(): table for name, table in policy.tables.items() if table.unit is not None}
    if named is None and len(private) == 1:
        return next(iter(private.values()))
    if named is None:
        raise NotAllowed(f"There are several private tables. Name one: {', '.join(sorted(private))}.")
    found = private.get(named.lower())
    if found is None:
        raise UnknownName(f"There is no private table {named!r}. There are: {', '.join(sorted(private))}.", table=named)
    return found


def choose_columns(table: Table, by: Sequence[str] | None) -> tuple[list[TableColumn], list[TableColumn]]:
    """Return the columns that rows are grouped by, those with public keys unless they are named, and the numbers."""
    keyed = [column for column in table.columns if column.keys is not None]
    if by is not None:
        known = {column.name.lower(): column for column in keyed}
        missing = [name for name in by if name.lower() not in known]
        if missing:
            raise NotAllowed(f"Column {missing[0]} has no public keys. Let the owner declare them, or leave it out.")
        keyed = [known[name.lower()] for name in by]
    numbers = [
        column
        for column in table.columns
        if column.kind.type in {Type.INTEGER, Type.REAL} and column.keys is None and column.name != table.unit
    ]
    if 1 + 2 * len(keyed) + len(numbers) > MOST_LOOKS:
        raise NotAllowed(
            f"That is more than {MOST_LOOKS} looks, each too noisy to advise anything. Name fewer columns."
        )
    return keyed, numbers


def list_looks(
    relation: Relation, columns: Columns, policy: Policy, keyed: Sequence[TableColumn], numbers: Sequence[TableColumn]
) -> tuple[AdvisingLook, ...]:
    """Return the looks at a table, whose columns are expressions over a relation."""
    known = dict(columns)
    found = []
    if not one_row_a_unit(relation, policy):
        counted = Reduce(input=relation, keys=(), columns=(_rows(VALUE),))
        found.append(_limit(Advised.TOTAL, None, "rows of a person", counted))
        for column in keyed:
            found += _look_at_groups(relation, known[column.name], column)
    for column in numbers:
        rows = Project(input=relation, columns=((VALUE, make_real(known[column.name])),))
        fact = WantedFact(
            lacking=Lacking.BOUNDS,
            text=f"values of {column.name}, one of each person",
            relation=rows,
            edges=WHOLE if column.kind.type is Type.INTEGER else REALS,
            single=one_row_a_unit(relation, policy),
        )
        found.append(AdvisingLook(advised=Advised.BOUNDS, column=column.name, look=Look(facts=(fact,))))
    if not found:
        raise NotAllowed("Every person has one row, and the table has no numbers: there is nothing to advise.")
    return tuple(found)


def _look_at_groups(relation: Relation, key: Expression, column: TableColumn) -> list[AdvisingLook]:
    """Look at how many rows people have in a group, where they have most, and at how many groups they are in."""
    pairs = Reduce(input=_in_keys(relation, key, column), keys=(("key", key),), columns=(_rows("rows"),))
    most = Reduced(name=VALUE, reduction=Reduction.MOST, argument=Column("rows", _MANY), kind=_MANY)
    rows, groups = (Reduce(input=pairs, keys=(), columns=(counted,)) for counted in (most, _rows(VALUE)))
    return [
        _limit(Advised.ROWS, column.name, f"most rows of a person in a group by {column.name}", rows),
        _limit(Advised.GROUPS, column.name, f"groups of a person by {column.name}", groups, len(column.keys or ())),
    ]


def _limit(advised: Advised, column: str | None, text: str, counted: Reduce, most: int | None = None) -> AdvisingLook:
    fact = WantedFact(lacking=Lacking.ROWS, text=text, relation=counted, edges=LIMITS, single=True)
    return AdvisingLook(advised=advised, column=column, look=Look(facts=(fact,)), most=most)


def _rows(name: str) -> Reduced:
    return Reduced(name=name, reduction=Reduction.ROWS, argument=None, kind=_MANY)


def _in_keys(relation: Relation, key: Expression, column: TableColumn) -> Relation:
    """Return the rows in groups that are shown."""
    listed = [literal(value) for value in column.keys or () if value is not None]
    kept = [call("in", key, *listed)] if listed else []
    kept += [call("is_null", key)] if None in (column.keys or ()) else []
    return Filter(input=relation, condition=kept[0] if len(kept) == 1 else call("or", *kept))
