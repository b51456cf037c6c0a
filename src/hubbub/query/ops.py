"""What can be done with rows before they are counted, and what can be counted: a closed set of frozen operations.

Every row of a private relation belongs to exactly one unit. The unit is not among the columns: it is carried beside
them, by every operation, and cannot be dropped, changed or shown. That is what makes the bounds below true of people.

Privacy:
    Claim: for tables that differ in the rows of one unit, each private relation differs in rows of that unit alone.
    Proof: by induction. A scan shows each unit's own rows. A filter or projection is a function of one row, total and
        deterministic. A join with a public relation makes of each row a number of rows that depends on it and on public
        data alone. None of them looks at another unit's row.
    Needs: functions of one row (query.functions); one unit a row (policy); public relations that are public.
    Ref: McSherry 2009 (PINQ); Wilson et al. 2020 for bounding at the aggregate.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from hubbub.policy.kinds import Kind, Type
from hubbub.query.expression import Expression, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The rows of a declared table, each column made safe: reals finite, dates within four digits of year.

    Rows of a private table whose unit is missing belong to nobody and are dropped.
    """

    table: str
    columns: tuple[tuple[str, Kind], ...]
    unit: str | None
    """The column that names the unit; None for a public table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The rows for which a condition is true: not false, and not missing."""

    input: "Relation"
    condition: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """New columns out of old ones, row by row."""

    input: "Relation"
    columns: tuple[tuple[str, Expression], ...]


class JoinKind(StrEnum):
    """Which rows of the left side are kept where the right side has no match."""

    INNER = "inner"
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPublic:
    """Each row beside every row of a public relation whose keys are equal; missing keys equal nothing.

    Columns of the right side come after those of the left; names do not collide.
    """

    input: "Relation"
    public: "Relation"
    kind: JoinKind
    keys: tuple[tuple[Expression, Expression], ...]
    """Pairs that must be equal: over the left columns, over the right ones."""
    most: int
    """How many matches a row can have at most: known, since the right side is public."""


Relation = Scan | Filter | Project | JoinPublic


class Measure(StrEnum):
    """What is added up for each unit in each group."""

    ROWS = "rows"
    """Its rows (where the argument, if any, is not missing)."""
    UNITS = "units"
    """1, if it has such a row at all."""
    TOTAL = "total"
    """Its values, each clamped and put on a grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """One exact number a group: the sum over units of what each adds, bounded for each unit.

    A TOTAL counts whole steps of ``grid`` from ``origin``: each value becomes round((clamp(x) − origin) / grid), and a
    unit's sum of them is clamped to ``bounds``. ROWS are clamped to ``bounds`` too; UNITS are 0 or 1.
    """

    measure: Measure
    argument: Expression | None
    clamp: tuple[Fraction, Fraction] | None = None
    origin: Fraction = Fraction(0)
    grid: Fraction = Fraction(1)
    bounds: tuple[int, int] = (0, 1)
    """What one unit can add to one group, in steps."""
    most_rows: int | None = None
    """With more values than this in a group, a unit's total is cut in proportion, to a whole number towards zero: it
    adds its average so many times. Beside a count that is clamped there, a mean is then a mean of such averages."""

    @property
    def linf(self) -> int:
        """The most by which one unit moves one group."""
        return max(abs(self.bounds[0]), abs(self.bounds[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A key of the grouping: an expression over the rows, and the public values that it may take."""

    name: str
    expression: Expression
    values: tuple[Value, ...]
    """All that are shown, present in the data or not, in this order; None stands for missing keys."""

    @property
    def type(self) -> Type:
        """The type of the key."""
        return self.expression.kind.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Tallies for every public group, with every unit bounded: at most ``most_groups`` groups of its own are kept.

    Which ones is decided by a hash of unit and group under a fresh secret key, ties by the group: a function of the
    unit's own rows.

    Privacy:
        Claim: adding or removing a unit changes at most ``most_groups`` cells of each tally, each by at most its linf.
        Proof: rows of other units are as they were, and so are their kept groups and what they add; the unit itself
            adds to at most most_groups groups, and to each a number within the tally's bounds.
        Needs: the claim of this module for the relation below; exact sums that do not overflow; for ``single``, that
            the owner's check saw it hold for this version of the data.
        Ref: Wilson et al. 2020.
    """

    input: Relation
    groups: tuple[Group, ...]
    tallies: tuple[Tally, ...]
    most_groups: int
    single: bool = False
    """Whether each unit is known to have at most one row in the relation, so that there is nothing to bound but it."""
