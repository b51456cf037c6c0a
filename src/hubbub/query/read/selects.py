"""A SELECT within a question: rows that are passed on, or what GROUP BY, windows and DISTINCT make of a unit's."""

from dataclasses import replace

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned, TypeMisfit, UnknownName
from hubbub.policy.kinds import Type
from hubbub.query.check.keys import conjuncts
from hubbub.query.expression import Column, Expression
from hubbub.query.ops import Filter, Reduce
from hubbub.query.read.relation import Derived, Reader, SourceRows, SubqueryColumn, Views
from hubbub.query.read.scalars import read
from hubbub.query.read.scope import Scope, prefer_own
from hubbub.query.read.select_scope import PUBLIC, SelectScope
from hubbub.query.read.unit_aggregates import the_unit

_ROWS = {"expressions", "from_", "joins", "where", "with_", "order", "limit", "offset"}
_CLAUSES = frozenset(_ROWS | {"group", "having", "qualify", "distinct"})
_MOST_COLUMNS = 500


def read_select(reader: Reader, tree: exp.Select, views: Views, outer: Scope | None) -> Derived:
    """Read a SELECT. ``outer``: the names of the question around it, if it may be tied to them."""
    for name, value in tree.args.items():
        if value and name not in _CLAUSES:
            raise NotAllowed(f"{name.strip('_').upper()} is not part of a subquery that can be asked.")
    for clause in ("limit", "offset"):
        if tree.args.get(clause) is not None:
            reader.look(tree.args[clause])
            raise NotOwned(
                f"{clause.upper()} in a subquery lets other people's rows decide whose stay. Put it behind the "
                "question itself, or number each person's rows: ROW_NUMBER() OVER (PARTITION BY unit ORDER BY …)."
            )
    if not tree.expressions:
        raise NotAllowed("A subquery shows no columns. Name them behind SELECT.")
    rows = reader.rows(tree, views, outer=outer)
    return _Select(reader, tree, rows, tied=outer is not None).derive()


class _Select:
    """One SELECT over rows."""

    def __init__(self, reader: Reader, tree: exp.Select, rows: SourceRows, *, tied: bool) -> None:
        self._reader, self._tree, self._rows, self._tied = reader, tree, rows, tied
        self._level = SelectScope(reader, tree, rows)

    def derive(self) -> Derived:
        rows, tree = self._rows, self._tree
        outputs = [self._output(name, node) for name, node in self._expand_stars()]
        having = self._clause("having", windows=False)
        qualify = self._clause("qualify", windows=True)
        for one in getattr(tree.args.get("order"), "expressions", []):
            self._reader.look(one)
            if not isinstance(one.this, exp.Literal):
                read(one.this, self._level)  # the order of rows means nothing here, but what is said has to be right
        self._reader.look(tree)
        relation = self._level.reduce() if self._level.grouped else rows.relation
        if having is not None:
            relation = Filter(input=relation, condition=having)
        relation = self._level.add_windows(relation)
        if qualify is not None:
            relation = Filter(input=relation, condition=qualify)
        conditions = [*([] if self._level.grouped else rows.conditions), *conjuncts(having), *conjuncts(qualify)]
        shown = tuple(
            SubqueryColumn(
                name=name,
                expression=one,
                facts=self._level.facts_of(one),
                values=self._level.values(name, one, conditions),
            )
            for name, one in outputs
        )
        found = Derived(
            relation=relation,
            outputs=shown,
            unit=rows.unit,
            correlated=tuple(rows.correlated),
            conditions=tuple(conditions),
        )
        if rows.correlated and self._level.grouped:
            raise NotAllowed("A subquery that is grouped cannot be tied to the question around it. Join with it.")
        return self._distinct(found) if tree.args.get("distinct") else found

    def _expand_stars(self) -> list[tuple[str, exp.Expr | Expression]]:
        """The SELECT list, stars written out."""
        found: list[tuple[str, exp.Expr | Expression]] = []
        for place, node in enumerate(self._tree.expressions):
            self._reader.look(node)
            bare = node.unalias()
            star = bare if isinstance(bare, exp.Star) else bare.this if isinstance(bare, exp.Column) else None
            if isinstance(star, exp.Star):
                found += self._star(star, bare.args.get("table"))
                continue
            name = node.alias or (bare.name if isinstance(bare, exp.Column) else bare.sql(dialect="duckdb").lower())
            found.append((name or f"column {place + 1}", bare))
        if len(found) > _MOST_COLUMNS:
            raise NotAllowed(f"A subquery has more than {_MOST_COLUMNS} columns. Name those that are used.")
        return found

    def _star(self, star: exp.Star, table: exp.Expr | None) -> list[tuple[str, exp.Expr | Expression]]:
        if any(value for name, value in star.args.items() if name != "except_"):
            raise NotAllowed("A star may leave out columns, * EXCLUDE (…), and nothing else.")
        if self._level.grouped:
            raise NotAllowed("A star stands beside GROUP BY. Name the columns.")
        without = {one.name.lower() for one in star.args.get("except_") or []}
        scope = self._rows.scope
        sources = [one for one in scope.sources if table is None or one.alias.lower() == table.name.lower()]
        if not sources:
            raise UnknownName(f"There is no table {table.name if table else ''!r} here.")
        found: list[tuple[str, exp.Expr | Expression]] = []
        merged: set[str] = set()
        for source in sources:
            for one in source.columns:
                name = one.name.lower()
                if name in without or (table is None and name in merged):
                    continue
                if table is None and one.led and one not in prefer_own(scope.columns_named(name)):
                    continue
                if table is None and scope.merged_columns(name):
                    merged.add(name)
                    found.append((one.name, exp.column(exp.to_identifier(one.name, quoted=True))))
                else:
                    found.append((one.name, one.column))
        return found

    def _output(self, name: str, node: "exp.Expr | Expression") -> tuple[str, Expression]:
        if not isinstance(node, exp.Expr):
            return name, node
        self._reader.look(node)
        return name, read(node, self._level)

    def _clause(self, clause: str, *, windows: bool) -> Expression | None:
        node = self._tree.args.get(clause)
        if node is None:
            return None
        self._reader.look(node)
        if clause == "having" and not self._level.grouped:
            raise NotAllowed("HAVING is about groups, and there are none. Use WHERE.")
        self._level.windows_allowed = windows
        condition = read(node.this, self._level)
        self._level.windows_allowed = True
        if condition.kind.type is not Type.BOOLEAN:
            raise TypeMisfit("A condition is true or false; this is a value.")
        return condition

    def _distinct(self, found: Derived) -> Derived:
        """Each combination of values once for each unit, which must be among them."""
        distinct = self._tree.args["distinct"]
        self._reader.look(self._tree.expressions[0])
        if distinct.args.get("on"):
            raise NotAllowed(
                "DISTINCT ON is not answered. Number the rows: ROW_NUMBER() OVER (PARTITION BY unit …) = 1."
            )
        if found.unit is None:
            if not self._tied:
                raise NotAllowed(PUBLIC)
            return found  # whether a row is there once or twice does not matter
        if found.correlated:
            raise NotAllowed("A DISTINCT subquery is tied to the question around it. Leave DISTINCT out.")
        if not any((one.facts.unit and not one.facts.optional) or one.facts.tells_unit for one in found.outputs):
            raise NotOwned(
                "DISTINCT makes one row of several people's. SELECT DISTINCT the unit's column too, as it is."
            )
        keys, units, shown = [], [], []
        for place, one in enumerate(found.outputs):
            name = f"distinct {place}"
            if one.facts.unit and not one.facts.optional:
                units.append(the_unit(name, one.expression).columns[0])
            else:
                keys.append((name, one.expression))
            shown.append(replace(one, expression=Column(name, one.expression.kind)))
        reduce = Reduce(input=found.relation, keys=tuple(keys), columns=tuple(units))
        return Derived(relation=reduce, outputs=tuple(shown), unit=found.unit)
