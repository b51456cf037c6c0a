"""Builders of nodes: what lowering says, word by word, with sequences where nodes have tuples."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hubbub.engines.nodes.queries import Join, Query, RowSource, Select, Subquery, TableName, UnionAll, WithOnce
from hubbub.engines.nodes.scalars import (
    Alias,
    Among,
    Apply,
    Case,
    Cast,
    Constant,
    Descending,
    Function,
    Infix,
    IsNull,
    JoinForm,
    KeyedHash,
    ListOf,
    Name,
    Operator,
    Prefixed,
    Scalar,
    ScalarQuery,
    Star,
    Storage,
    Struct,
    Tag,
    WindowNode,
)
from hubbub.policy.kinds import Kind
from hubbub.query.expression import Value

STAR: Scalar = Star()
NULL: Scalar = Constant(None)
TRUE: Scalar = Constant(True)
FALSE: Scalar = Constant(False)


# Values


@lru_cache(maxsize=4096)
def name(column: str, *, of: str | None = None) -> Name:
    """Name a column; of a relation, where two could be meant. Nodes can be shared, and names come again and again."""
    return Name(column, of)


def text(value: str) -> Scalar:
    """Write a text."""
    return Constant(value)


def number(value: int) -> Scalar:
    """Write a whole number of no stated type."""
    return Constant(value)


def constant(value: Value, kind: Kind) -> Scalar:
    """Write a constant of the engine's type for its kind."""
    return Constant(value, kind)


def cast(piece: Scalar, to: Storage) -> Scalar:
    """Cast where it cannot fail for the values that it is used on."""
    return Cast(piece, to)


def try_cast(piece: Scalar, to: Storage) -> Scalar:
    """Cast to NULL where it fails."""
    return Cast(piece, to, True)


def fit(piece: Scalar, to: Storage) -> Scalar:
    """Cast safely where the value is known to fit."""
    return Cast(piece, to, True, True)


def function(called: Function, *arguments: Scalar) -> Apply:
    """Apply a function."""
    return Apply(called, arguments)


def count_distinct(piece: Scalar) -> Apply:
    """Count each value once."""
    return Apply("count", (piece,), True)


def infix(operator: Operator, *pieces: Scalar) -> Infix:
    """Put an operator between pieces."""
    return Infix(operator, pieces)


def negation(piece: Scalar) -> Scalar:
    """Deny a condition."""
    return Prefixed("not", piece)


def missing(piece: Scalar) -> Scalar:
    """Ask for a missing value."""
    return IsNull(piece)


def present(piece: Scalar) -> Scalar:
    """Ask for a value that is there."""
    return IsNull(piece, True)


def case(*pairs: tuple[Scalar, Scalar], otherwise: Scalar | None = None) -> Scalar:
    """Take the value of the first condition that holds."""
    return Case(pairs, otherwise)


def among(piece: Scalar, choices: Sequence[Scalar]) -> Scalar:
    """Ask for one of several values."""
    return Among(piece, tuple(choices))


def over(called: Apply, *, partition: Sequence[Scalar], order: Sequence[Scalar] = ()) -> Scalar:
    """Call a window function; missing values come last."""
    return WindowNode(called, tuple(partition), tuple(order))


def descending(piece: Scalar) -> Scalar:
    """Order by the greatest first."""
    return Descending(piece)


def hash_keyed(tag: Tag, unit: Scalar, *content: Scalar) -> Scalar:
    """Hash a unit and content under the secrets."""
    return KeyedHash(tag, unit, content)


def but(*columns: str) -> Scalar:
    """Show all columns except these."""
    return Star(None, columns)


def struct(fields: Mapping[str, Scalar]) -> Scalar:
    """Put several values into one that is equal where all of them are, missing ones included."""
    return Struct(tuple(fields.items()))


def list_of(*items: Scalar) -> Scalar:
    """Put values into a list."""
    return ListOf(items)


def look_up(query: Query) -> Scalar:
    """Take the one value of a query."""
    return ScalarQuery(query)


# Rows


def alias(piece: Scalar, called: str) -> Scalar:
    """Show a value by a name."""
    return Alias(piece, called)


def relation(*parts: str, called: str | None = None) -> RowSource:
    """Name a table, or a query that was made once."""
    return TableName(parts, called)


def select(
    source: RowSource | None,
    *shown: Scalar,
    where: Sequence[Scalar] = (),
    by: Sequence[Scalar] = (),
    order: Sequence[Scalar] = (),
    most: int = 0,
) -> Query:
    """Select from a source; ``most`` rows, where it is not 0."""
    return Select(source, shown, tuple(where), tuple(by), tuple(order), most)


def within(query: Query, called: str = "q", columns: Sequence[str] = ()) -> RowSource:
    """Make a query something to select from."""
    return Subquery(query, called, tuple(columns))


def join(left: RowSource, right: RowSource, on: Sequence[Scalar], *, form: JoinForm = "inner") -> RowSource:
    """Put two sources side by side."""
    return Join(left, right, tuple(on), form)


def union_all(queries: Sequence[Query]) -> Query:
    """Put the rows of several queries one below the other."""
    return UnionAll(tuple(queries))


def with_once(query: Query, called: str, then: Query) -> Query:
    """Look several times at the rows of a query, which are made once."""
    return WithOnce(query, called, then)
