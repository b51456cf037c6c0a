"""From SQL to a question over one private relation: FROM, WHERE, GROUP BY, aggregates, HAVING, ORDER BY, LIMIT."""

from collections.abc import Mapping

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned, QueryError, TypeMisfit
from hubbub.policy.kinds import Kind, Type, integer
from hubbub.query.expression import Column, Expression, Literal
from hubbub.query.joins import joined
from hubbub.query.keys import conjuncts, public_values
from hubbub.query.ops import Filter, Group
from hubbub.query.question import Aggregation, Asked, Order, Output, Question, key_name, noisy_name
from hubbub.query.scalars import read, short
from hubbub.query.scope import Catalogue, Scope
from hubbub.query.text import at, parsed

_CLAUSES = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"}
_MOST_NOISY = 1 << 62
_MOST_COLUMNS = 200

_AGGREGATES: Mapping[type[exp.Expr], Aggregation] = {
    exp.Sum: Aggregation.SUM,
    exp.Avg: Aggregation.AVG,
    exp.VariancePop: Aggregation.VAR_POP,
    exp.Variance: Aggregation.VAR_SAMP,
    exp.StddevPop: Aggregation.STDDEV_POP,
    exp.Stddev: Aggregation.STDDEV_SAMP,
    exp.StddevSamp: Aggregation.STDDEV_SAMP,
}


def question(text: str, catalogue: Catalogue) -> Question:
    """Read a question, or refuse it with a reason, a caret at the place and a remedy."""
    tree = parsed(text)
    reader = _Reader(tree, text, catalogue)
    try:
        return reader.question()
    except QueryError as problem:
        raise at(problem, reader.node, text) from None
    except RecursionError:
        raise NotAllowed("The question nests too deeply. Split it.") from None


class _Rows:
    """Names over the rows of the relation: columns, and nothing else."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def column(self, node: exp.Column) -> Expression:
        return self._scope.column(node)

    def other(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.AggFunc):
            raise NotAllowed("An aggregate stands where only values of one row may. Use HAVING, or SELECT it.")
        return None


class _Reader:
    """One reading. ``node`` is the part that is being read, for the caret."""

    def __init__(self, tree: exp.Select, text: str, catalogue: Catalogue) -> None:
        self.tree, self.text = tree, text
        self.node: exp.Expr = tree
        self.scope = Scope(catalogue)
        self.rows = _Rows(self.scope)
        self.keys: list[tuple[str, Expression]] = []
        self.key_nodes: list[exp.Expr] = []
        self.asked: list[Asked] = []
        self.aliases: dict[str, exp.Expr] = {}
        self.meanings: dict[int, Expression | None] = {}

    def question(self) -> Question:
        self._check_clauses()
        where = self.tree.args.get("where")
        build = joined(self.tree, self.scope, self._reading, self._look)
        condition = None if where is None else self._condition(where.this, self.rows)
        self._name_outputs()
        self._read_keys()
        outputs = tuple(self._output(place, node) for place, node in enumerate(self.tree.expressions))
        having = self.tree.args.get("having")
        kept = None if having is None else self._condition(having.this, self)
        order = tuple(self._order(node) for node in getattr(self.tree.args.get("order"), "expressions", []))
        limit, offset = (self._number(name) for name in ("limit", "offset"))
        if not self.asked:
            self.node = self.tree.expressions[0]
            raise NotAllowed("Rows of people are not shown. Ask for counts, sums or averages of them.")
        self.node = (self.tree.args.get("joins") or [self.tree])[-1]
        relation, conditions = build(), conjuncts(condition)
        if condition is not None:
            relation = Filter(input=relation, condition=condition)
        groups = tuple(self._group(place, conditions) for place in range(len(self.keys)))
        return Question(
            text=self.tree.sql(dialect="duckdb", normalize=True, comments=False),
            relation=relation,
            groups=groups,
            asked=tuple(self.asked),
            outputs=outputs,
            columns=self.scope.origins(),
            having=kept,
            order=order,
            limit=limit,
            offset=offset or 0,
        )

    def _look(self, node: exp.Expr) -> None:
        self.node = node

    def _reading(self, node: exp.Expr) -> Expression:
        self.node = node
        return read(node, self.rows)

    def _check_clauses(self) -> None:
        for name, value in self.tree.args.items():
            if value and name not in _CLAUSES:
                raise NotAllowed(f"{name.strip('_').upper()} is not part of a question that can be asked.")
        if self.tree.args.get("from_") is None:
            raise NotOwned("The question names no table. Say FROM and the name of one.")
        if len(self.tree.expressions) > _MOST_COLUMNS:
            raise NotAllowed(f"The answer would have more than {_MOST_COLUMNS} columns.")

    def _condition(self, node: exp.Expr, names: "_Rows | _Reader") -> Expression:
        self.node = node
        condition = read(node, names)
        if condition.kind.type is not Type.BOOLEAN:
            raise TypeMisfit("A condition is true or false; this is a value.")
        return condition

    def _name_outputs(self) -> None:
        for node in self.tree.expressions:
            if isinstance(node, exp.Alias):
                self.aliases[node.alias.lower()] = node.this

    def _read_keys(self) -> None:
        group = self.tree.args.get("group")
        if group is None:
            return
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise NotAllowed("GROUP BY takes expressions. ROLLUP, CUBE, GROUPING SETS and ALL are not among them.")
        for written in group.expressions:
            self.node = written
            node = self._meant(written)
            self.node = node
            key = read(node, self.rows)
            if key.kind.type is Type.REAL:
                raise NotAllowed("Reals make no groups. Group by floor(…) or CASE of them.")
            if all(key != other for _, other in self.keys):
                self.keys.append((_written(node), key))
                self.key_nodes.append(written)

    def _group(self, place: int, conditions: list[Expression]) -> Group:
        (name, key), self.node = self.keys[place], self.key_nodes[place]
        return Group(name=name, expression=key, values=public_values(name, key, conditions, self.scope))

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """Behind an ordinal or an alias of the SELECT list."""
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdigit() else 0
            if not 1 <= place <= len(self.tree.expressions):
                raise NotAllowed(f"There is no column {node.name} in the SELECT list.")
            chosen: exp.Expr = self.tree.expressions[place - 1].unalias()
            return chosen
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self.aliases:
            hidden = any(source.table.column(node.name) for source in self.scope.sources)
            return node if hidden else self.aliases[node.name.lower()]
        return node

    def _output(self, place: int, node: exp.Expr) -> Output:
        self.node = node
        bare = node.unalias()
        if isinstance(bare, exp.Star) or (isinstance(bare, exp.Column) and isinstance(bare.this, exp.Star)):
            raise NotAllowed("Rows of people are not shown. Ask for counts, sums or averages of them.")
        name = node.alias or (bare.name if isinstance(bare, exp.Column) else _written(bare).lower())
        return Output(name=name or f"column {place + 1}", expression=read(bare, self))

    def _order(self, node: exp.Expr) -> Order:
        self.node = node
        if node.args.get("with_fill"):
            raise NotAllowed("ORDER BY takes expressions, ASC or DESC, and NULLS FIRST or LAST.")
        expression = read(self._meant(node.this), self)
        return Order(
            expression=expression,
            descending=bool(node.args.get("desc")),
            nulls_first=bool(node.args.get("nulls_first")),
        )

    def _number(self, clause: str) -> int | None:
        node = self.tree.args.get(clause)
        if node is None:
            return None
        self.node = node
        value = node.expression
        if any(given for name, given in node.args.items() if name != "expression"):
            raise NotAllowed(f"{clause.upper()} takes a whole number, and nothing else.")
        if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit() or len(value.name) > 9:
            raise NotAllowed(f"{clause.upper()} takes a whole number.")
        return int(value.name)

    # Names over the groups: keys, aggregates, and aliases of either.

    def column(self, node: exp.Column) -> Expression:
        """A key of the grouping, or the alias of an output."""
        meant = self._meant(node)
        if meant is not node:
            return self._meaning(meant, node.name)
        value = self.scope.column(node)
        raise NotAllowed(
            f"{node.sql()} has many values in a group. Group by it, or put it into an aggregate.", column=value.name
        )

    def _meaning(self, node: exp.Expr, alias: str) -> Expression:
        """What an alias stands for, read once; one that is used again must be short, or aliases of aliases explode."""
        if id(node) not in self.meanings:
            self.meanings[id(node)] = None
            self.meanings[id(node)] = read(node, self)
        found = self.meanings[id(node)]
        if found is None:
            raise NotAllowed(f"The alias {alias!r} stands for itself. Write out what is meant.")
        return short(found)

    def other(self, node: exp.Expr) -> Expression | None:
        """An aggregate, or an expression that the question groups by."""
        if isinstance(node, exp.Window) or node.args.get("order") or isinstance(node, exp.Filter):
            raise NotAllowed("Windows, FILTER and ordered aggregates are not among what can be asked.")
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node)
        if isinstance(node, exp.Literal) or not self.keys:
            return None
        try:
            value = read(node, self.rows)
        except QueryError:
            return None
        for place, (_, key) in enumerate(self.keys):
            if key == value:
                return Column(key_name(place), key.kind)
        return None

    def _aggregate(self, node: exp.AggFunc) -> Expression:
        self.node = node
        function, argument = self._count(node) if isinstance(node, exp.Count) else self._over_values(node)
        asked = Asked(function=function, argument=argument, text=_written(node).lower())
        same = [place for place, one in enumerate(self.asked) if (one.function, one.argument) == (function, argument)]
        if not same:
            self.asked.append(asked)
        return Column(noisy_name(same[0] if same else len(self.asked) - 1), _noisy_kind(function, argument))

    def _count(self, node: exp.Count) -> tuple[Aggregation, Expression | None]:
        inner = node.this
        if inner is None or (isinstance(inner, exp.Star) and not any(inner.args.values())):
            return Aggregation.ROWS, None
        if node.expressions:
            raise NotAllowed("COUNT takes one value.")
        if isinstance(inner, exp.Distinct):
            if len(inner.expressions) == 1 and isinstance(inner.expressions[0], exp.Column):
                value = self.scope.column(inner.expressions[0])
                source, column = self.scope.owner(value.name)
                if source.table.unit is not None and source.table.unit.lower() == column.lower():
                    return Aggregation.UNITS, None
            raise NotAllowed("COUNT(DISTINCT …) counts units: name the unit's column.")
        value_read = read(inner, self.rows)
        if isinstance(value_read, Literal):
            return (Aggregation.ROWS, None) if value_read.value is not None else (Aggregation.VALUES, value_read)
        return (Aggregation.VALUES, value_read) if value_read.kind.nullable else (Aggregation.ROWS, None)

    def _over_values(self, node: exp.AggFunc) -> tuple[Aggregation, Expression | None]:
        function = _AGGREGATES.get(type(node))
        if function is None or isinstance(node.this, exp.Distinct) or node.expressions:
            known = "COUNT, SUM, AVG, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP"
            raise NotAllowed(f"{node.sql_name()} in this form is not among the aggregates: {known}.")
        value = read(node.this, self.rows)
        if value.kind.type not in {Type.INTEGER, Type.REAL}:
            raise TypeMisfit(f"{node.sql_name()} takes numbers, not {value.kind}.")
        return function, value


def _written(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb", comments=False)


def _noisy_kind(function: Aggregation, argument: Expression | None) -> Kind:
    if argument is None or function is Aggregation.VALUES:
        return integer(-_MOST_NOISY, _MOST_NOISY, nullable=False)
    return Kind(type=Type.REAL)
