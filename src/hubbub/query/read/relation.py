"""Types that the parts of a question about rows hand to each other: rows, subqueries, and names over them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from hubbub.errors import NotAllowed, QueryError
from hubbub.policy.kinds import Kind
from hubbub.policy.tables import Value
from hubbub.query.check.shape import ColumnFacts
from hubbub.query.expression import Expression
from hubbub.query.ops import Relation
from hubbub.query.read.scope import Catalogue, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class SubqueryColumn:
    """A column that a subquery gives."""

    name: str
    expression: Expression
    facts: ColumnFacts
    values: Callable[[], tuple[Value, ...] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """A value of the question around a subquery, and one of the subquery's rows, that must be equal."""

    outer: Expression
    inner: Expression
    unit: bool
    """Whether the inner one names the unit of its row, wherever it is there."""
    whole: bool
    """Whether it is there in every row."""
    leads: frozenset[tuple[str, str]] = frozenset()
    """Keys of rows of the same unit, of which the inner one is one (query.facts)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """The result of a subquery: rows, and columns over them."""

    relation: Relation
    outputs: tuple[SubqueryColumn, ...]
    unit: Kind | None
    correlated: tuple[Tie, ...] = ()
    """Equalities with the question around it."""
    conditions: tuple[Expression, ...] = ()
    """What holds for all rows."""


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A CTE, with the CTEs that it may name itself."""

    node: exp.Expr
    views: "Views"
    columns: tuple[str, ...] | None


Views = Mapping[str, NamedQuery]


@dataclass(slots=True)
class SourceRows:
    """Rows before they are shown: FROM and WHERE of one SELECT."""

    scope: Scope
    names: "RowNames"
    relation: Relation
    unit: Kind | None
    conditions: list[Expression] = field(default_factory=list)
    correlated: list[Tie] = field(default_factory=list)


class RowNames:
    """Names over the rows of a relation: columns, and nothing else."""

    def __init__(self, scope: Scope, refuse: Callable[[exp.Expr], QueryError]) -> None:
        self._scope, self._refuse = scope, refuse

    def column(self, node: exp.Column) -> Expression:
        """A column of the tables."""
        return self._scope.column(node)

    def other(self, node: exp.Expr) -> Expression | None:
        """Neither aggregates nor windows nor subqueries."""
        if isinstance(node, exp.Window):
            raise NotAllowed(
                "A window stands where only values of one row may. SELECT it in a subquery, and use it there."
            )
        if isinstance(node, exp.AggFunc):
            raise NotAllowed("An aggregate stands where only values of one row may. Use HAVING, or SELECT it.")
        if is_subquery(node):
            raise self._refuse(node)
        return None


def is_subquery(node: exp.Expr) -> bool:
    """Return whether a part of an expression looks at a table."""
    looks = isinstance(node, exp.Subquery | exp.Exists | exp.Query)
    return looks or (isinstance(node, exp.In) and node.args.get("query") is not None)


class Reader(Protocol):
    """Whoever reads the whole question; parts of it ask for others."""

    catalogue: Catalogue

    def look(self, node: exp.Expr) -> None:
        """Tell which part is read, for the caret."""

    def rows(self, tree: exp.Select, views: Views, *, outer: Scope | None = None) -> SourceRows:
        """FROM, JOIN and WHERE."""

    def derive(self, node: exp.Expr, views: Views, *, outer: Scope | None = None) -> Derived:
        """Read a query within a question."""
