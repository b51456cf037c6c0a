"""The meaning of names: the tables of a question, and what is made of them, under their aliases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned, UnknownName
from hubbub.policy.kinds import Kind
from hubbub.policy.paths import qualify
from hubbub.policy.stamps import Stamp
from hubbub.policy.tables import Policy, Table, Value
from hubbub.query.check.shape import (
    ColumnFacts,
    facts_of_declaration,
    facts_of_expression,
    leads_of,
    missing_too,
)
from hubbub.query.expression import Call, Column, Expression
from hubbub.query.functions import call
from hubbub.query.ops import Relation, Scan, ScanColumn


class Catalogue(Protocol):
    """The public facts: the policy, and whatever can be read from public tables."""

    @property
    def policy(self) -> Policy: ...

    def fanout(self, relation: Relation, keys: Sequence[Expression]) -> "Fanout":
        """Return the most rows of a public relation that can share one combination of keys."""

    def values(self, table: str, column: str) -> tuple[Value, ...]:
        """The values in a public table's column, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fanout:
    """The most rows of a public relation that share one combination of keys, and the files of which that is true."""

    most: int
    held: Stamp | None = None
    """None where the files were being written to: then it says how much work there is, and nothing may rest on it."""


@dataclass(frozen=True, slots=True)
class Named:
    """A column of a source: what the question calls it, and what the operations do."""

    name: str
    column: Column
    facts: ColumnFacts
    values: Callable[[], tuple[Value, ...] | None]
    """The public values that it can have, if there are any."""
    led: bool = False
    """Whether it is the unit that rows of the table find in another one."""


@dataclass(frozen=True, slots=True)
class NamedSource:
    """Anything with named columns, under the name that it goes by."""

    alias: str
    relation: Relation
    columns: tuple[Named, ...]
    unit: Kind | None
    """What units are like, if its rows belong to some."""
    unusable: Mapping[str, str] = field(default_factory=dict)
    """Columns that are there and cannot be used, each with a sentence that says why."""

    @property
    def private(self) -> bool:
        """Return whether its rows belong to units."""
        return self.unit is not None


def table_source(alias: str, table: Table, catalogue: Catalogue) -> NamedSource:
    """A declared table, with all its columns; those that are not used are left out later."""
    policy = catalogue.policy  # once: another thread may let go of facts meanwhile
    for step in table.path:
        if not policy.has_key(step.table, step.key):
            raise NotOwned(
                f"Whose the rows of {table.name} are is said by {step.key} of {step.table}, which was not seen to be "
                "unique for this state of the data. Let the owner run: hubbub check",
                table=table.name,
            )

    def values(column: str, keys: tuple[Value, ...] | None) -> tuple[Value, ...] | None:
        return keys if keys is not None or table.unit is not None else catalogue.values(table.name, column)

    first = table.path[0].column if table.path else None
    there = [  # rows whose first step is missing are dropped
        replace(one, kind=replace(one.kind, nullable=False)) if one.name == first else one for one in table.show_pair
    ]
    columns = tuple(
        Named(
            one.name,
            Column(qualify(alias, one.name), one.kind),
            facts_of_declaration(one, unit=one.name == table.unit, leads=leads_of(table, one.name, policy)),
            lambda one=one: values(one.name, one.keys),  # type: ignore[misc]
            led=one.name == table.unit and bool(table.path),
        )
        for one in there
    )
    scan = Scan(
        table=table.name,
        columns=tuple(ScanColumn(named.column.name, named.column.kind, named.name) for named in columns),
        unit=table.unit,
        path=table.path,
        held=policy.files_behind(table.name),
    )
    unit = None if table.unit is None else table.column(table.unit)
    return NamedSource(alias, scan, columns, None if unit is None else unit.kind, table.unusable)


class Scope:
    """The sources of one SELECT. The operations name their columns by alias and column (``policy.paths``)."""

    def __init__(self) -> None:
        self.sources: list[NamedSource] = []
        self._merged: dict[str, tuple[exp.Column, ...]] = {}
        self._owners: set[frozenset[str]] = set()
        """Sets of columns of the unit: every row has a value in one of each."""

    def add(self, source: NamedSource) -> NamedSource:
        """A table of the FROM clause; how it is joined is said afterwards."""
        if any(one.alias.lower() == source.alias.lower() for one in self.sources):
            raise NotAllowed(f"Two tables are called {source.alias!r}. Give each its own alias.")
        self.sources.append(source)
        return source

    def join(
        self, left: Sequence[NamedSource], right: NamedSource, *, keeps: tuple[bool, bool] = (False, False)
    ) -> None:
        """Join the last source to those before it: ``keeps`` says which side's rows stay without a match.

        Columns of a side may be missing from here on, if rows of the other stay without it.
        """
        mine, others = self._owners, _owners(right)
        match keeps:
            case (False, False):
                self._owners = mine | others
            case (True, False):
                self._maybe([right])
            case (False, True):
                self._owners = others
                self._maybe(left)
            case _:
                self._owners = {one | other for one in mine for other in others}
                self._maybe([*left, right])

    def _maybe(self, sources: Sequence[NamedSource]) -> None:
        for place, source in enumerate(self.sources):
            if any(source.alias == one.alias for one in sources):
                self.sources[place] = replace(source, columns=tuple(_maybe(named) for named in source.columns))

    def merge(self, name: str, *nodes: exp.Column) -> None:
        """USING: from here on the name without a table means these, the first that is not missing."""
        self._merged[name.lower()] = nodes

    def merged_columns(self, name: str) -> tuple[exp.Column, ...]:
        """Return the columns that a name without a table means after USING."""
        return self._merged.get(name.lower(), ())

    def column(self, node: exp.Column) -> Expression:
        """A column by its name, with or without its table's."""
        if node.args.get("db") or node.args.get("catalog") or not isinstance(node.this, exp.Identifier):
            raise NotAllowed("A column is named by its name, or by its table's and its own.")
        wanted = node.args.get("table")
        if wanted is None and node.name.lower() in self._merged:
            first, *others = (self.column(one) for one in self._merged[node.name.lower()])
            return call("coalesce", first, *others) if others else first
        found = [
            named
            for source in self.sources
            if wanted is None or source.alias.lower() == node.table.lower()
            for named in source.columns
            if named.name.lower() == node.name.lower()
        ]
        found = prefer_own(found)
        if not found:
            for source in self.sources:
                if wanted is None or source.alias.lower() == node.table.lower():
                    for name, reason in source.unusable.items():
                        if name.lower() == node.name.lower():
                            raise UnknownName(reason, column=node.name)
            here = sorted(qualify(source.alias, named.name) for source in self.sources for named in source.columns)
            raise UnknownName(f"There is no column {node.sql()!r}. There are: {', '.join(here)}.", column=node.name)
        if len(found) > 1:
            where = f"Say which: table.{node.name}" if wanted is None else "Give each its own name"
            raise UnknownName(f"Several columns are called {node.name!r}. {where}.")
        return found[0].column

    def has(self, name: str) -> bool:
        """Return whether some column has this name."""
        return bool(self.columns_named(name))

    def columns_named(self, name: str) -> list[Named]:
        """The columns that are called so."""
        return [one for source in self.sources for one in source.columns if one.name.lower() == name.lower()]

    def facts(self, name: str) -> ColumnFacts:
        """Return what is public about a column of the operations."""
        return self._column_named(name).facts

    def values(self, name: str) -> tuple[Value, ...] | None:
        """The public values of a column of the operations."""
        return self._column_named(name).values()

    def is_unit(self, value: Expression) -> bool:
        """Return whether an expression is the unit of the row, in every row.

        A column is, or the first of several that is there, if every row has one of them: a full join keeps no row
        that is missing on both sides.
        """
        names = _columns(value)
        return self.names_unit(value) and any(one <= names for one in self._owners)

    def names_unit(self, value: Expression) -> bool:
        """Return whether an expression is the unit of the row wherever it is not missing."""
        names = _columns(value)
        return bool(names) and all(self.facts(name).unit for name in names)

    def leads(self, value: Expression) -> frozenset[tuple[str, str]]:
        """Keys of rows of the same unit, of which an expression is one wherever it is not missing."""
        return self.facts(value.name).leads if isinstance(value, Column) else frozenset()

    def may_lack(self, value: Expression) -> bool:
        """Return whether rows of its own table may lack a column of the unit."""
        return any(self.facts(name).optional for name in _columns(value))

    def facts_of(self, value: Expression) -> ColumnFacts:
        """Return what is public about a new column."""
        found = facts_of_expression(value, self.facts)
        return replace(found, unit=True, optional=False) if self.is_unit(value) else found

    def all_facts(self) -> Mapping[str, ColumnFacts]:
        """Return what is public about every column."""
        return {one.column.name: one.facts for source in self.sources for one in source.columns}

    def _column_named(self, name: str) -> Named:
        return next(one for source in self.sources for one in source.columns if one.column.name == name)


def _columns(value: Expression) -> frozenset[str]:
    """The columns of which an expression is one: a column, or the first that is not missing. Empty for others."""
    match value:
        case Column(name=name):
            return frozenset({name})
        case Call(function="coalesce", arguments=parts) if all(isinstance(part, Column) for part in parts):
            return frozenset(part.name for part in parts if isinstance(part, Column))
        case _:
            return frozenset()


def _owners(source: NamedSource) -> set[frozenset[str]]:
    return {frozenset({one.column.name}) for one in source.columns if one.facts.unit and not one.facts.optional}


def _maybe(named: Named) -> Named:
    column = Column(named.column.name, replace(named.column.kind, nullable=True))
    return replace(named, column=column, facts=missing_too(named.facts))


def prefer_own(found: Sequence[Named]) -> list[Named]:
    """Of columns with one name those that are meant: a table's own before the units that rows find in other tables.

    Those are the same unit, wherever they are there: one that is there in every row will do.
    """
    own = [one for one in found if not one.led]
    return own or [one for one in found if not one.facts.optional][:1] or list(found)
