"""Operations on rows before they are counted, and what can be counted: a closed set of frozen operations.

Every row of a private relation belongs to exactly one unit. The unit is not among the columns: it is carried beside
them, by every operation, and cannot be dropped, changed or shown. That is what makes the bounds below true of people.

Privacy:
    Claim: for tables that differ in the rows of one unit, each private relation differs in rows of that unit alone.
    Proof: by induction. A scan shows each unit's own rows. A filter or projection is a function of one row, total and
        deterministic. A join with a public relation makes of each row a number of rows that depends on it and on public
        data alone. What looks at several rows (capping, joins of private relations, matching, reducing, windows) looks
        at rows of one unit, and is a function of their multiset: the order of rows never decides. A union of private
        relations of the same units puts each unit's rows together. None of them looks at another unit's row.
    Needs: functions of one row (query.functions); one unit a row (policy, and policy.paths where other tables name it);
        public relations that are public.
    Ref: McSherry 2009 (PINQ); Wilson et al. 2020 for bounding at the aggregate.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from hubbub.mechanisms.selection.pieces import StepCounts
from hubbub.policy.kinds import Kind, Type
from hubbub.policy.paths import PathStep
from hubbub.policy.stamps import NO_FILES, Stamp
from hubbub.query.expression import Expression, Value


@dataclass(frozen=True, slots=True, repr=False)
class ScanColumn:
    """A column of a scan: what the operations above call it, its kind, and the column of the table that it reads."""

    name: str
    """Made by ``policy.paths``, so that it stands for one column of one source."""
    kind: Kind
    reads: str
    """As the table declares it. It never follows from the name: a table may have columns ``b`` and ``a.b``."""

    def __repr__(self) -> str:
        """Write the name and the kind: ledgers keep bought facts under names that are made of this (query.bought)."""
        return repr((self.name, self.kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The rows of a declared table, each column made safe: reals finite, dates within four digits of year.

    Rows of a private table whose unit is missing belong to nobody and are dropped.
    """

    table: str
    columns: tuple[ScanColumn, ...]
    unit: str | None
    """The column that names the unit; None for a public table."""
    path: tuple[PathStep, ...] = ()
    """The steps to the table that has this column, if it is another one; rows that find no unit are dropped too."""
    held: Stamp = field(default=NO_FILES, repr=False, compare=False)
    """The files for which the owner's check has seen what is declared unique here, and of the tables on the path. Not
    shown: bought facts are kept under names that are made of what is (query.bought)."""


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
    """The kinds of joins, by which rows are kept where the other side has no match."""

    INNER = "inner"
    LEFT = "left"
    FULL = "full"
    """Both sides; only between private relations of the same units."""


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
    held: Stamp | None = field(default=None, repr=False, compare=False)
    """The files for which that was counted; None where they were being written to, and it may not be relied on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """At most ``most`` rows of each unit, chosen by a hash of their content under a fresh secret key.

    Rows with equal content are alike, and numbered as copies: it does not matter which of them stay, and the kept
    multiset is a function of the unit's own. The same rows are kept wherever the same relation is capped in one
    question. Work above is bounded by it, and so is what one unit can become in a join.
    """

    input: "Relation"
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOwn:
    """Each row beside every row of another private relation that is of the same unit and has equal keys.

    LEFT keeps rows of the left side without a match, and FULL those of the right side too: they belong to their unit
    all the same. Missing keys equal nothing. Columns of the right side come after those of the left; names do not
    collide. Both sides are capped, so the work is bounded.
    """

    input: "Relation"
    other: "Relation"
    kind: JoinKind
    keys: tuple[tuple[Expression, Expression], ...] = ()
    """Pairs that must be equal besides the unit: over the left columns, over the right ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The rows that have a partner in another relation, or, if ``without``, those that have none.

    A partner has equal keys and, if the other relation is private, the same unit: that is what EXISTS and IN mean when
    they are correlated by the unit. ``without`` with a missing key keeps the row (NOT EXISTS); what NOT IN says of
    missing values is put into a Filter by whoever reads it.
    """

    input: "Relation"
    other: "Relation"
    keys: tuple[tuple[Expression, Expression], ...] = ()
    without: bool = False


class Reduction(StrEnum):
    """The ways to reduce a unit's rows that share their keys. Missing values are left out; of none, all but counts are
    missing."""

    ROWS = "rows"
    """How many rows (with a value, if there is an argument)."""
    DISTINCT = "distinct"
    """How many different values."""
    TOTAL = "total"
    """The sum of the values, each clamped and rounded to whole steps first: the order of adding cannot matter."""
    LEAST = "least"
    MOST = "most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """One column of a reduction."""

    name: str
    reduction: Reduction
    argument: Expression | None
    kind: Kind
    """Of the result. A whole number beyond its range is put at the end of it."""
    clamp: tuple[Fraction, Fraction] | None = None
    grid: Fraction = Fraction(1)
    """For totals: each value becomes round(clamp(x) / grid), half to even; the sum of these times the grid is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce:
    """One row for each unit and combination of keys that it has: GROUP BY or SELECT DISTINCT, with the unit.

    The columns are the keys, under their names, and the reduced ones. Missing keys are a combination of their own.
    """

    input: "Relation"
    keys: tuple[tuple[str, Expression], ...]
    columns: tuple[Reduced, ...] = ()


class Ranking(StrEnum):
    """The values that a window can add to a row."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    LAG = "lag"
    LEAD = "lead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One more column: a row's place among the rows of its unit (and part), or the value of the row before or after it.

    Rows are in the order of ``order``, each expression ascending or descending, missing values last, and then of all
    columns of the input in theirs: rows that are still tied are alike, and it does not matter which is which.
    RANK and DENSE_RANK look at ``order`` alone.
    """

    input: "Relation"
    name: str
    ranking: Ranking
    argument: Expression | None
    """The value that LAG and LEAD show; None for places."""
    offset: int = 1
    part: tuple[Expression, ...] = ()
    order: tuple[tuple[Expression, bool], ...] = ()
    """Expressions, and whether they descend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationUnion:
    """All rows of several private relations of the same units, with the same columns (UNION ALL)."""

    inputs: tuple["Relation", ...]

    def __repr__(self) -> str:
        """Write the name that ledgers know: they keep bought facts under names that are made of this."""
        return f"Union(inputs={self.inputs!r})"


Relation = Scan | Filter | Project | JoinPublic | Cap | JoinOwn | Match | Reduce | Window | RelationUnion


def below(op: Relation) -> tuple[Relation, ...]:
    """The relations that an operation takes its rows from, its own rows first."""
    match op:
        case Scan():
            return ()
        case JoinPublic(input=rows, public=other) | JoinOwn(input=rows, other=other) | Match(input=rows, other=other):
            return rows, other
        case RelationUnion(inputs=inputs):
            return inputs
        case Filter() | Project() | Cap() | Reduce() | Window():
            return (op.input,)


class Measure(StrEnum):
    """The quantity that is added up for each unit in each group."""

    ROWS = "rows"
    """Its rows (where the argument, if any, is not missing)."""
    UNITS = "units"
    """1, if it has such a row at all."""
    TOTAL = "total"
    """Its values, each clamped and put on a grid."""
    DISTINCT = "distinct"
    """Not a sum: how many different values the units have together, when each brings at most ``bounds[1]`` of its own
    to a group, chosen by the keyed hash of unit, group and value. One unit moves it by no more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Bounds of what limits drop of one unit: they keep ``rows`` rows of it in a group, and it has ``within`` in all.

    The groups are gone through in the order that chooses them, so that those that are kept come first. Of a unit with
    more than ``within`` rows, those in the first groups count up to that, and the others nowhere.
    """

    rows: int
    within: int


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
    a_row: tuple[int, int] | None = None
    """What one row can add, in steps, from at most 0 to at least 0, where the rows that a unit may count are shared out
    to its groups (``Aggregate.together``): it adds to a group no more than the rows that count there can."""
    dropped: Dropped | None = None
    """In place of what a unit adds: what the limits drop of it. This is what all its rows would add less what it adds,
    clamped to what the rows that are dropped can add, by ``a_row``; of units, those in groups that they do not keep."""

    def is_kept_of(self, other: "Tally") -> bool:
        """Return whether the other tally counts what the limits drop of this one."""
        return self.dropped is None and replace(other, dropped=None, a_row=self.a_row) == self

    @property
    def linf(self) -> int:
        """The most by which one unit moves one group."""
        return max(abs(self.bounds[0]), abs(self.bounds[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """For each group, how many rows lie on each step of a grid; of each unit at most ``most_rows`` rows of a group.

    A value becomes round((clamp(x) − origin) / grid), half to even; rows without one are not counted. Which rows of a
    unit are kept is decided by the keyed hash of unit, group and step: rows on the same step are alike.
    """

    argument: Expression
    clamp: tuple[Fraction, Fraction]
    origin: Fraction
    grid: Fraction
    most_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A key of the grouping: an expression over the rows, and the public values that it may take."""

    name: str
    expression: Expression
    values: tuple[Value, ...] | range
    """All that are shown, present in the data or not, in this order; None stands for missing keys. A range from 0 on
    stands for places that the expression gives itself: nobody lists them, and rows beyond it are in no group."""
    private: bool = False
    """Whether its values are not known beforehand: none are listed, and one is shown only if a selection lets it."""

    @property
    def type(self) -> Type:
        """The type of the key."""
        return self.expression.kind.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Rows of a unit that count: in each group, and in all groups that it keeps. The first are no more than the second.

    The groups are gone through in the order that chooses them. With n rows in a group, min(n, rows) of them may count,
    as long as those of earlier groups leave so many of the total: the others do not. How many count is a function of
    the secrets and of the unit's own numbers of rows.
    """

    rows: int
    total: int

    @property
    def squares(self) -> int:
        """The most that the squares of the rows that count in each group add up to.

        Numbers from 0 to ``rows`` that add up to at most ``total``: a sum of squares is convex, so it is largest at a
        corner, where all but one of them are 0 or ``rows``.
        """
        full, rest = divmod(self.total, self.rows)
        return full * self.rows**2 + rest**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Tallies for every public group, with every unit bounded: at most ``most_groups`` groups of its own are kept.

    Which ones is decided by a hash of unit and group under a fresh secret key, ties by the group: a function of the
    unit's own rows. In the same order the rows that count are shared out, where they are counted ``together``: a count
    is at most the rows that count, a total within what these can add, or cut in proportion to them. Units, different
    values and histograms are not: they are bounded group by group.

    Privacy:
        Claim: adding or removing a unit changes at most ``most_groups`` cells of each tally, each by at most its linf.
            Of a tally that has ``a_row``, the changes add up to at most total · r, and their squares to at most
            squares · r², where r is the larger end of a_row.
            A tally of what is ``dropped`` changes by x · r in a cell at most, where the x add up to at most
            within − k over all cells, and k is the least of the limits that can drop something: the rows kept in a
            group, most_groups where there are more groups than these, and the total of ``together``.
        Proof: rows of other units are as they were, and so are their kept groups and what they add; the unit itself
            adds to at most most_groups groups, and to each a number within the tally's bounds. If c rows count in a
            group, it adds at most c · r there; the c are at most ``rows`` each, and ``total`` together. Of what is
            dropped let a be the rows of a group that are looked at, which add up to at most ``within``, and c those
            that are kept: x = max(0, a − c), so the x add up to at most within − Σ min(a, c). Let some x be above 0.
            In a group that is kept, c is the limit of rows, or what the total leaves, or all rows there are; in the
            first two cases the min(a, c) add up to that limit or total, since earlier groups have a >= c. Otherwise it
            is in a group that is not kept, and all most_groups that are come before it, with a row each that counts,
            unless the total is used up.
        Needs: the claim of this module for the relation below; exact sums that do not overflow; for ``single``, that
            the owner's check saw it hold for this version of the data.
        Ref: Wilson et al. 2020.
    """

    input: Relation
    groups: tuple[Group, ...]
    tallies: tuple[Tally, ...]
    most_groups: int
    histograms: tuple[Histogram, ...] = ()
    single: bool = False
    """Whether each unit is known to have at most one row in the relation, so that there is nothing to bound but it."""
    together: Together | None = None
    """Where some tallies count rows over all groups."""
    weight_bits: int | None = None
    """With private groups: None counts the units of each combination of these; else a unit that keeps t combinations
    gives each the weight ⌊2^weight_bits / √t⌋."""


Cell = tuple[Value, ...]
"""A combination of keys, one for each group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactCounts:
    """The result of an engine: exact numbers, which belong into Secrets at once."""

    cells: tuple[Cell, ...]
    """The combinations that the numbers are about: all public ones, the last group's values changing fastest; with a
    private group among them, those that some unit has, in an order that depends on the keys alone."""
    tallies: list[tuple[int, ...]]
    """For each cell, one number a tally."""
    histograms: tuple[tuple[StepCounts, ...], ...] = ()
    """For each histogram and cell, the steps that have rows, each with its number of rows."""
    units: tuple[tuple[Cell, int], ...] = ()
    """With private groups: each combination of them that some unit has, and how many units have it, or their weights
    (``Aggregate.weight_bits``). Cells are then only those that some unit has, and no zeros are filled in."""
