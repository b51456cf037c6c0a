"""What names mean: the tables of a question, under their aliases, and the columns that it really uses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from hubbub.errors import NotAllowed, UnknownName
from hubbub.policy.tables import Policy, Table, Value
from hubbub.query.expression import Column, Expression
from hubbub.query.ops import Relation, Scan


class Catalogue(Protocol):
    """What is public: the policy, and whatever can be read from public tables."""

    policy: Policy

    def fanout(self, relation: Relation, keys: Sequence[Expression]) -> int:
        """How many rows of a public relation can share one combination of keys, at most."""

    def values(self, table: str, column: str) -> tuple[Value, ...]:
        """The values in a public table's column, sorted."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table of the question, under the name that it goes by."""

    alias: str
    table: Table

    @property
    def private(self) -> bool:
        """Whether its rows belong to units."""
        return self.table.unit is not None


class Scope:
    """The tables of a question. A column is called ``alias.column`` in the operations, so that no two are alike."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.sources: list[Source] = []
        self._used: dict[str, set[str]] = {}
        self._optional: set[str] = set()

    def add(self, node: exp.Expr) -> Source:
        """A table of the FROM clause."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise NotAllowed("FROM takes the names of tables. Functions and subqueries are not among them.")
        extra = [name for name, value in node.args.items() if value and name not in {"this", "alias"}]
        if extra or (node.args.get("alias") and node.args["alias"].args.get("columns")):
            raise NotAllowed("A table is named by its name and an alias, and nothing else.")
        name = node.name
        known = {table.lower(): declared for table, declared in self.catalogue.policy.tables.items()}
        table = known.get(name.lower())
        if table is None:
            raise UnknownName(f"There is no table {name!r}. There are: {', '.join(sorted(known))}.", table=name)
        alias = node.alias or name
        if any(source.alias.lower() == alias.lower() for source in self.sources):
            raise NotAllowed(f"Two tables are called {alias!r}. Give each its own alias.")
        if "." in alias:
            raise NotAllowed(f"The table name {alias!r} has a dot in it. Give it an alias without one.")
        source = Source(alias, table)
        self.sources.append(source)
        self._used[source.alias] = set()
        return source

    def optional(self, source: Source) -> None:
        """From here on the table's columns may be missing: a LEFT JOIN keeps rows that it has no match for."""
        self._optional.add(source.alias)

    def column(self, node: exp.Column) -> Column:
        """A column by its name, with or without its table's."""
        if node.args.get("db") or node.args.get("catalog") or not isinstance(node.this, exp.Identifier):
            raise NotAllowed("A column is named by its name, or by its table's and its own.")
        wanted = node.args.get("table")
        found = [
            (source, declared)
            for source in self.sources
            if wanted is None or source.alias.lower() == node.table.lower()
            if (declared := source.table.column(node.name)) is not None
        ]
        if not found:
            here = sorted(f"{source.alias}.{column.name}" for source in self.sources for column in source.table.columns)
            raise UnknownName(f"There is no column {node.sql()!r}. There are: {', '.join(here)}.", column=node.name)
        if len(found) > 1:
            raise UnknownName(f"Several tables have a column {node.name!r}. Say which: table.{node.name}.")
        ((source, declared),) = found
        self._used[source.alias].add(declared.name)
        kind = replace(declared.kind, nullable=True) if source.alias in self._optional else declared.kind
        return Column(f"{source.alias}.{declared.name}", kind)

    def scan(self, source: Source) -> Scan:
        """The table with the columns that were used so far."""
        used = self._used[source.alias]
        columns = tuple(
            (f"{source.alias}.{column.name}", column.kind) for column in source.table.columns if column.name in used
        )
        return Scan(table=source.table.name, columns=columns, unit=source.table.unit)

    def owner(self, name: str) -> tuple[Source, str]:
        """The table and column behind an operation's column."""
        alias, _, column = name.partition(".")
        return next(source for source in self.sources if source.alias == alias), column

    def origins(self) -> dict[str, tuple[str, str]]:
        """The table and column behind every name that was used."""
        return {
            f"{source.alias}.{column}": (source.table.name, column)
            for source in self.sources
            for column in sorted(self._used[source.alias])
        }

    def values(self, name: str) -> tuple[Value, ...] | None:
        """The public values of a column."""
        source, column = self.owner(name)
        declared = source.table.column(column)
        if declared is not None and declared.keys is not None:
            return declared.keys
        return None if source.private else self.catalogue.values(source.table.name, column)
