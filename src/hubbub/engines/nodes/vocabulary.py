"""The closed vocabulary of nodes: types that an engine stores, operators, functions, forms of joins, tags of hashes.

None of these is a word of any engine. A ``Dialect`` says each of them in its own, or leaves it out.
"""

from enum import IntEnum
from typing import Literal

from hubbub.policy.kinds import Kind, Type

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
    "abs", "asinh", "ceil", "coalesce", "day", "exp", "floor", "greatest", "hour", "is_finite", "item", "least",
    "length", "ln", "log2", "lower", "minute", "month", "quarter", "random", "sign", "sqrt", "starts_with",
    "start_of_day", "start_of_month", "start_of_quarter", "start_of_week", "start_of_year", "substring", "trim",
    "truncate", "upper", "weekday", "words", "year",
    # of several rows
    "count", "list", "max", "min", "paragraph", "sum",
    # of a row among others
    "dense_rank", "lag", "lead", "rank", "row_number",
]  # fmt: skip
"""Functions by our names. ``item`` of a list counts from 1; ``words`` puts texts of one row, and ``paragraph`` those of
several rows, one after the other with a space between them."""

JoinForm = Literal["inner", "left", "full", "semi", "anti"]
"""Beside each other, or (the last two) the rows of the left side that have a partner, or none."""

Guard = Literal["before", "after", "refuse"]
"""How an engine keeps a function of reals total: look at the arguments first, or at the result, or do without it."""


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
