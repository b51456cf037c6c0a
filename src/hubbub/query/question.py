"""A question that was read: what is asked of which rows, and what is made of the noisy numbers afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from hubbub.query.check.bounds import Interval
from hubbub.query.check.shape import ColumnFacts
from hubbub.query.expression import Expression, Value
from hubbub.query.ops import Group, Relation

if TYPE_CHECKING:
    from hubbub.query.aggregates.function import AggregateFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One aggregate of the question."""

    function: "AggregateFunction"
    argument: Expression | None
    """What is counted or added up; None for rows and units."""
    text: str
    """As the question writes it."""
    second: Expression | None = None
    """The other value of those of two: for a regression, the one that explains."""
    level: Fraction | None = None
    """Which quantile."""
    values: tuple[Value, ...] = ()
    """What a mode may be, or a histogram counts: public values."""
    many: int = 1
    """How many of them a top-k shows."""
    edges: tuple[Fraction, ...] = ()
    """The upper ends of a histogram's bins, where it is of numbers."""
    per_group: Interval | None = None
    """Where the question itself clamps what one unit adds to a group, or a unit's own average there."""
    per_row: Interval | None = None
    """Where it clamps each value."""

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """Everything that it looks at."""
        return tuple(one for one in (self.argument, self.second) if one is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One column of the answer, over ``key 0``, ``key 1``, … and ``noisy 0``, ``noisy 1``, …"""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of the answer's rows; ties stay in the order of the public keys."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One grouping of one private relation. Everything after the aggregates is post-processing."""

    text: str
    """Canonical: the same question always reads the same."""
    relation: Relation
    groups: tuple[Group, ...]
    asked: tuple[Asked, ...]
    outputs: tuple[Output, ...]
    columns: Mapping[str, ColumnFacts]
    """What is public about each column of the relation."""
    sets: tuple[tuple[int, ...], ...] = ()
    """With ROLLUP, CUBE or GROUPING SETS: of each set, the places of its keys among the groups."""
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    bought: Mapping[Expression, Interval] = field(default_factory=dict)
    """Bounds of what aggregates look at that nobody declared (query.bought)."""
    beyond: Mapping[str, float] = field(default_factory=dict)
    """What bounds that were bought plainly clip: of each, what it is about, and the share of units that are beyond."""
    limited: bool = False
    """Whether the question itself states in how many groups a unit counts."""
    grouped: bool | None = None
    """Whether its conditions are measured as one grouping (plan.conditions); None lets the plan decide."""
    known_as: str = ""
    """What the ledger knows it as, if that is more than its text: with bounds that were bought."""

    @property
    def identity(self) -> str:
        """The same for the same question with the same bounds."""
        return self.known_as or self.text


def key_name(place: int) -> str:
    """Return the name by which an output refers to a key of the grouping."""
    return f"key {place}"


def absent_name(place: int) -> str:
    """Return the name for whether a key is left out of the row's grouping set: 1, or 0 where it is grouped by."""
    return f"absent {place}"


def noisy_name(place: int) -> str:
    """Return the name by which an output refers to a noisy aggregate."""
    return f"noisy {place}"
