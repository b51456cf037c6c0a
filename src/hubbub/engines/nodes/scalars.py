"""Nodes that stand for values, and the closed vocabulary of types, operators and functions that they are made of.

None of these is a word of any engine. A ``Dialect`` says each of them in its own, or leaves it out.

Nodes are frozen and hold nothing but what is said; how it is said is for a dialect's printer. One node may stand in
several places of a statement.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from hubbub.policy.kinds import Kind, Type
from hubbub.query.expression import Value

if TYPE_CHECKING:
    from hubbub.engines.nodes.queries import Query

Storage = Literal["boolean", "int32", "uint32", "int64", "uint64", "int128", "real", "text", "date", "timestamp"]
"""What a value is held in: whole numbers by their bits, the rest by their type."""

Operator = Literal[
    "and", "or", "=", "<>", "<", "<=", ">", ">=", "same", "like",
    "+", "-", "*", "/", "//", "%", "&", "|", "<<", ">>",
]  # fmt: skip
"""Between two pieces or more. ``same`` holds of two missing values too; ``//`` divides whole numbers towards zero."""

Prefix = Literal["not", "-"]

Function = Literal[
    # of a row
    "abs", "asinh", "ceil", "coalesce", "day", "days_between", "exp", "floor", "greatest", "hour", "is_finite", "item",
    "least", "length", "ln", "log2", "lower", "minute", "month", "quarter", "random", "sign", "sqrt", "starts_with",
    "start_of_day", "start_of_month", "start_of_quarter", "start_of_week", "start_of_year", "substring", "trim",
    "truncate", "upper", "weekday", "words", "year",
    # of several rows
    "any_true", "all_true", "count", "list", "max", "min", "paragraph", "sum", "sum_small",
    # of a row among others
    "dense_rank", "lag", "lead", "rank", "row_number",
]  # fmt: skip
"""Functions by our names. ``item`` of a list counts from 1; ``words`` puts texts of one row, and ``paragraph`` those of
several rows, one after the other with a space between them. ``sum_small`` adds whole numbers that 32 bits hold.
``any_true`` and ``all_true`` are the greatest and the least of conditions; ``days_between`` is a whole number."""

JoinForm = Literal["inner", "left", "full", "semi", "anti"]
"""Beside each other, or (the last two) the rows of the left side that have a partner, or none."""

Guard = Literal["before", "after", "refuse"]
"""How an engine keeps a function of reals total: look at the arguments first, or at the result, or do without it."""


Beyond = Literal["missing", "never", "infinite"]
"""What a result is that no real can hold: NULL; nothing, since there is none; or what IEEE 754 says, which is no number
or infinite, for whoever bounds it afterwards."""


class Tag(IntEnum):
    """The purpose of a keyed hash. Hashes of different tags that can meet in one statement are of different things.

    The number is what a dialect mixes in, where it does. Listed groups, unlisted groups and blocks never meet in one
    statement; each of them can meet capping and row limits, which therefore have numbers of their own in DuckDB.
    """

    CAP = 1
    """Which rows of a unit stay where a relation is capped."""
    ROWS = 2
    """Which rows of a unit stay in a group, where values are looked at themselves."""
    LISTED = 3
    """Which groups of a unit stay, where groups have small codes."""
    UNLISTED = 4
    """Which groups of a unit stay, where a code is a key, or a wide number."""
    BLOCK = 5
    """Which block a unit is dealt to."""


def storage_of(kind: Kind) -> Storage:
    """Return what values of a kind are held in."""
    if kind.type is Type.INTEGER:
        return "int128" if kind.wide else "int64"
    return _STORAGE[kind.type]


_STORAGE: dict[Type, Storage] = {
    Type.BOOLEAN: "boolean",
    Type.REAL: "real",
    Type.TEXT: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


class Node:
    """Anything that a printer prints. Put into a text it would be no SQL, so that this raises."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        raise TypeError("A node is printed in a dialect")


class Scalar(Node):
    """A value, or what can be shown by a SELECT."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Name(Scalar):
    """A column; of a relation, where two could be meant."""

    column: str
    of: str | None = None


@dataclass(frozen=True, slots=True)
class Constant(Scalar):
    """A literal, exact to the last bit: of the type of its kind, or of no stated type."""

    value: Value
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Apply(Scalar):
    """A function; ``distinct`` lets an aggregate see each value once."""

    function: Function
    arguments: tuple[Scalar, ...] = ()
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Infix(Scalar):
    """An operator between pieces."""

    operator: Operator
    pieces: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Prefixed(Scalar):
    """An operator before a piece."""

    operator: Prefix
    piece: Scalar


@dataclass(frozen=True, slots=True)
class IsNull(Scalar):
    """A test whether a value is missing; or, where that is denied, whether it is there."""

    piece: Scalar
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Cast(Scalar):
    """A value as another type. A safe one gives NULL where it fails; any other cannot fail where it is used.

    Of a safe one that ``fits``, it is proven where it is built that it does not fail either. An engine that casts
    safely without looking at the value first may forget that.
    """

    piece: Scalar
    to: Storage
    safe: bool = False
    fits: bool = False


@dataclass(frozen=True, slots=True)
class Case(Scalar):
    """The value of the first condition that holds; otherwise the last, or NULL."""

    pairs: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Among(Scalar):
    """A test whether a value equals one of several."""

    piece: Scalar
    choices: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Guarded(Scalar):
    """A function or an operator on reals, made total: never an error, and ``beyond`` what a real can hold NULL.

    How an engine keeps that promise is its dialect's ``guard`` for the function. What is proven never to be beyond
    where it is built may raise in an engine even so, where a result is too small to be told from zero.
    """

    operation: Apply | Infix
    beyond: Beyond = "missing"


@dataclass(frozen=True, slots=True)
class Let(Scalar):
    """A body that looks at values as often as it likes, by ``Bound``; long ones are computed once.

    A value may have a Let inside. The body sees the values of its own Let alone.
    """

    values: tuple[Scalar, ...]
    body: Scalar


@dataclass(frozen=True, slots=True)
class Bound(Scalar):
    """One of the values of the Let around it, by its place from 0 on."""

    place: int


@dataclass(frozen=True, slots=True)
class KeyedHash(Scalar):
    """A hash of a unit and of content under both secret numbers: 64 bits that nobody without them can foresee.

    It depends on the values alone, and missing ones have a hash too. Ties are for whoever orders by it to break.
    """

    tag: Tag
    unit: Scalar
    content: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class Descending(Scalar):
    """In an order: the greatest first. Missing values come last all the same."""

    piece: Scalar


@dataclass(frozen=True, slots=True)
class WindowNode(Scalar):
    """A function of a row among the rows of its partition, in an order; missing values come last."""

    called: Apply
    partition: tuple[Scalar, ...] = ()
    order: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class Struct(Scalar):
    """Several values as one that is equal where all of them are, missing ones included."""

    fields: tuple[tuple[str, Scalar], ...]


@dataclass(frozen=True, slots=True)
class StructField(Scalar):
    """One of them, of a column that holds such a value."""

    struct: Name
    field: str


@dataclass(frozen=True, slots=True)
class ListOf(Scalar):
    """Values of one type as one list."""

    items: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class ScalarQuery(Scalar):
    """The one value of a query that has one row at most; missing where it has none."""

    query: "Query"


@dataclass(frozen=True, slots=True)
class ScanValue(Scalar):
    """A column of a source, read as a kind: what the type, the range or the calendar cannot hold is missing."""

    column: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class ScanIdentity(Scalar):
    """A column that names a unit or leads to one: missing unless no other value is read as the same.

    ``replaced`` says that the source's reader puts one letter for all bytes that are no text.
    """

    column: str
    kind: Kind
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class Alias(Scalar):
    """A shown value, by a name."""

    piece: Scalar
    called: str


@dataclass(frozen=True, slots=True)
class Star(Scalar):
    """All columns: of one relation, or but some."""

    of: str | None = None
    but: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupingSets(Scalar):
    """Several groupings of the same rows: by each of these alone."""

    keys: tuple[Scalar, ...]
