"""The relational part of a question: tables, subqueries and CTEs behind FROM, joins, and the conditions of WHERE.

What a subquery gives is a source like a table: named columns, each with what is public about it, and rows that belong
to units, or to nobody if all that it names is public. A CTE is read wherever it is used.
"""

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned, QueryError, TypeMisfit, UnknownName
from hubbub.policy.kinds import Type
from hubbub.policy.paths import qualify
from hubbub.query.check.keys import conjuncts
from hubbub.query.check.work import light
from hubbub.query.expression import Column, Expression
from hubbub.query.functions import call
from hubbub.query.ops import Filter, Project
from hubbub.query.read.joins import Joiner, conjunct_nodes, equal
from hubbub.query.read.relation import Derived, NamedQuery, RowNames, SourceRows, Tie, Views
from hubbub.query.read.scalars import read
from hubbub.query.read.scope import Catalogue, Named, NamedSource, Scope, table_source
from hubbub.query.read.selects import read_select
from hubbub.query.read.subqueries import inside, match_rows
from hubbub.query.read.unions import read_union


class QuestionReader:
    """One reading of a question. ``node`` is the part that is being read, for the caret."""

    def __init__(self, catalogue: Catalogue, node: exp.Expr) -> None:
        self.catalogue, self.node = catalogue, node
        self._unnamed = 0
        self._used: set[int] = set()

    def look(self, node: exp.Expr) -> None:
        """Tell which part is read."""
        self.node = node

    def views(self, tree: exp.Expr, above: Views) -> Views:
        """The CTEs that a query may name: those around it, and its own, each of which may name those before it."""
        clause = tree.args.get("with_")
        if clause is None:
            return above
        found = dict(above)
        self.look(clause)
        if any(value for name, value in clause.args.items() if name != "expressions"):
            raise NotAllowed("WITH takes queries that do not name themselves. Recursive ones are not answered.")
        own: set[str] = set()
        for one in clause.expressions:
            self.look(one)
            if any(value for name, value in one.args.items() if name not in {"this", "alias", "materialized"}):
                raise NotAllowed("WITH takes names and queries: WITH name AS (SELECT …).")
            name = one.alias.lower()
            if name in own:
                raise NotAllowed(f"Two queries are called {one.alias!r}. Give each its own name.")
            own.add(name)
            found[name] = NamedQuery(one.this, dict(found), _columns(one))
        return found

    def read_unused(self, tree: exp.Expr, views: Views) -> None:
        """Read the CTEs that nobody named, too: what is refused does not depend on its being used."""
        for one in getattr(tree.args.get("with_"), "expressions", []):
            if id(one.this) not in self._used:
                view = views[one.alias.lower()]
                self.derive(view.node, view.views)

    def rows(self, tree: exp.Select, views: Views, *, outer: Scope | None = None) -> SourceRows:
        """FROM, JOIN and WHERE. ``outer``: names of the question around it may be compared with own ones."""
        if tree.args.get("from_") is None:
            self.look(tree)
            raise NotOwned("A query names no table. Say FROM and the name of one.")
        scope = Scope()
        names = RowNames(scope, lambda node: self.refusal_of(node, views))
        where = tree.args.get("where")
        parts = [] if where is None else conjunct_nodes(where.this)

        def reading(node: exp.Expr) -> Expression:
            self.look(node)
            return read(node, names)

        joiner = Joiner(
            scope, self.catalogue, source=lambda node: self.source(node, views), reading=reading, looking=self.look
        )
        found = joiner.join(tree, parts)
        rows = SourceRows(scope, names, found.relation, found.unit)
        if where is None:
            return rows
        matches = [part for part in parts if inside(part) is not None]
        apart = found.said | {id(part) for part in matches}
        plain = [part for part in parts if id(part) not in apart]
        if len(plain) == len(parts) and outer is None:
            plain = [where.this]
        read_parts = [one for part in plain if (one := self._condition(part, rows, outer)) is not None]
        if read_parts:
            condition = read_parts[0] if len(read_parts) == 1 else call("and", *read_parts)
            rows.relation = Filter(input=rows.relation, condition=condition)
            rows.conditions = conjuncts(condition)
        for part in matches:
            self.look(part)
            rows.relation = match_rows(self, part, rows, views)
        light(rows.relation)
        return rows

    def _condition(self, node: exp.Expr, rows: SourceRows, outer: Scope | None) -> Expression | None:
        """A condition on one row; None for an equality with the question around it, which is kept apart."""
        self.look(node)
        try:
            condition = read(node, rows.names)
        except UnknownName:
            tie = None if outer is None else self._read_tie(node, rows, outer)
            if tie is None:
                raise
            rows.correlated.append(tie)
            return None
        if condition.kind.type is not Type.BOOLEAN:
            raise TypeMisfit("A condition is true or false; this is a value.")
        return condition

    def _read_tie(self, node: exp.Expr, rows: SourceRows, outer: Scope) -> Tie | None:
        """An equality between a value of the question around and one of these rows, each by itself."""
        bare, around = node.unnest(), RowNames(outer, lambda part: NotAllowed("A subquery stands within a subquery."))
        if not isinstance(bare, exp.EQ):
            for column in node.find_all(exp.Column):
                if _readable(column, around) and not _readable(column, rows.names):
                    raise NotAllowed(
                        "A subquery is tied to the question around it by more than equalities. Compare with =, or join."
                    )
            return None
        for mine, theirs in ((bare.this, bare.expression), (bare.expression, bare.this)):
            if _readable(mine, rows.names) and not _readable(theirs, rows.names) and _readable(theirs, around):
                left, right = equal(read(theirs, around), read(mine, rows.names))
                unit, whole = rows.scope.names_unit(right), rows.scope.is_unit(right)
                return Tie(outer=left, inner=right, unit=unit, whole=whole, leads=rows.scope.leads(right))
        return None

    def source(self, node: exp.Expr, views: Views) -> NamedSource:
        """Read what stands behind FROM or JOIN."""
        self.look(node)
        extra = [name for name, value in node.args.items() if value and name not in {"this", "alias"}]
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query) and not extra:
            self._unnamed += 1
            alias = node.alias or f"subquery{self._unnamed}"
            return self._name_source(alias, self.derive(node.this, views), _columns(node), node)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise NotAllowed("FROM takes the names of tables, and subqueries. Functions are not among them.")
        if extra:
            raise NotAllowed("A table is named by its name and an alias, and nothing else.")
        alias = node.alias or node.name
        view = views.get(node.name.lower())
        if view is not None:
            self._used.add(id(view.node))
            derived = self.derive(view.node, view.views)
            self.look(node)
            return self._name_source(alias, derived, _columns(node) or view.columns, node)
        if _columns(node) is not None:
            raise NotAllowed("A table is named by its name and an alias, and nothing else.")
        known = {table.lower(): declared for table, declared in self.catalogue.policy.tables.items()}
        table = known.get(node.name.lower())
        if table is None:
            raise UnknownName(
                f"There is no table {node.name!r}. There are: {', '.join(sorted(known))}.", table=node.name
            )
        return table_source(alias, table, self.catalogue)

    def derive(self, node: exp.Expr, views: Views, *, outer: Scope | None = None) -> Derived:
        """Read a query within a question."""
        if isinstance(node, exp.Subquery):
            if any(value for name, value in node.args.items() if name not in {"this", "alias"}):
                raise NotAllowed("A query in brackets takes nothing behind them.")
            return self.derive(node.this, views, outer=outer)
        own = self.views(node, views)
        if isinstance(node, exp.SetOperation):
            found = read_union(self, node, own)
        elif isinstance(node, exp.Select):
            found = read_select(self, node, own, outer)
        else:
            self.look(node)
            raise NotAllowed("A subquery is a SELECT, or several behind UNION ALL.")
        self.read_unused(node, own)
        light(found.relation)
        return found

    def _name_source(
        self, alias: str, derived: Derived, columns: tuple[str, ...] | None, node: exp.Expr
    ) -> NamedSource:
        self.look(node)
        names = columns or tuple(one.name for one in derived.outputs)
        if len(names) != len(derived.outputs):
            raise NotAllowed(f"{alias!r} has {len(derived.outputs)} columns, and {len(names)} names are given.")
        found: dict[str, Named] = {}
        for name, one in zip(names, derived.outputs, strict=True):
            unique = qualify(alias, name)
            while unique in found:
                unique += "'"
            found[unique] = Named(name, Column(unique, one.expression.kind), one.facts, one.values)
        shown = tuple(zip(found, (one.expression for one in derived.outputs), strict=True))
        relation = light(Project(input=derived.relation, columns=shown))
        return NamedSource(alias, relation, tuple(found.values()), derived.unit)

    def refusal_of(self, node: exp.Expr, views: Views) -> QueryError:
        """Why a subquery cannot stand where it does."""
        tables = self.catalogue.policy.tables.values()
        private = {table.name.lower() for table in tables if table.unit is not None} | set(views)
        if not isinstance(node, exp.In | exp.Exists):
            if any(table.name.lower() in private for table in node.find_all(exp.Table)):
                return NotOwned(
                    "A subquery would give one number of many people's rows to everyone. Ask for it first, or join "
                    "with a subquery that is grouped by the unit."
                )
            return NotAllowed("A subquery stands for a value. Join with it, or write the value.")
        return NotAllowed(
            "IN and EXISTS with a subquery are conditions of their own in WHERE, beside AND. Or use a join."
        )


def _readable(node: exp.Expr, names: RowNames) -> bool:
    try:
        read(node, names)
    except UnknownName:
        return False
    return True


def _columns(node: exp.Expr) -> tuple[str, ...] | None:
    """Names that an alias gives to columns."""
    alias = node.args.get("alias")
    listed = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return tuple(one.name for one in listed) if listed else None
