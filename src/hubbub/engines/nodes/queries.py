"""Nodes that stand for rows: queries, and what can stand behind FROM."""

from dataclasses import dataclass

from hubbub.engines.nodes.scalars import JoinForm, Node, Scalar, Storage


class Query(Node):
    """A statement that gives rows."""

    __slots__ = ()


class RowSource(Node):
    """A node that a query can select from."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Select(Query):
    """The shown values of each row of a source, or of one row where there is none.

    ``by`` groups the rows, ``order`` sorts them, and ``most`` of them are given where it is not 0.
    """

    source: RowSource | None
    shown: tuple[Scalar, ...]
    where: tuple[Scalar, ...] = ()
    by: tuple[Scalar, ...] = ()
    order: tuple[Scalar, ...] = ()
    most: int = 0


@dataclass(frozen=True, slots=True)
class UnionAll(Query):
    """All rows of several queries, one below the other."""

    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class WithOnce(Query):
    """A query that looks several times at the rows of another, which are made once."""

    query: Query
    called: str
    then: Query


@dataclass(frozen=True, slots=True)
class TableName(RowSource):
    """A table, by the parts of its name, or a query of ``WithOnce``; by another name, where it has one."""

    parts: tuple[str, ...]
    called: str | None = None


@dataclass(frozen=True, slots=True)
class ParquetFiles(RowSource):
    """The rows of Parquet files, whose paths a variable of the engine lists.

    ``replaced`` puts one letter for all bytes that are no text; ``by_name`` lets columns be missing in some files.
    """

    variable: str
    replaced: bool = False
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class StoredTable(RowSource):
    """A table of a server, by the parts of its name, with the engine's own types of the columns that are read.

    ``ScanValue`` and ``ScanIdentity`` of a query that selects from it are read by these.
    """

    parts: tuple[str, ...]
    types: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Subquery(RowSource):
    """The rows of a query, by a name; ``columns`` are new names for all of its columns."""

    query: Query
    called: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Join(RowSource):
    """Two sources side by side, where all conditions hold."""

    left: RowSource
    right: RowSource
    on: tuple[Scalar, ...]
    form: JoinForm = "inner"


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The public values of one group, as a table that the query joins with: each value with its place."""

    table: str
    storage: Storage
    places: tuple[int, ...]
    values: tuple[str | None, ...]
    """As text, which the engine casts to the type."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A query, the tables of public keys that it needs, and how many secret numbers of 64 bits it is given."""

    query: Query
    keys: tuple[KeyTable, ...] = ()
    secrets: int = 0
