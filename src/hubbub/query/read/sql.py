"""From SQL to a question over one private relation: FROM, WHERE, GROUP BY, aggregates, HAVING, ORDER BY, LIMIT."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned, QueryError, TypeMisfit
from hubbub.policy.kinds import Type
from hubbub.query.check.keys import group_of
from hubbub.query.check.prune import prune
from hubbub.query.check.shape import shape
from hubbub.query.expression import Column, Expression, columns_of
from hubbub.query.ops import Group
from hubbub.query.plan.collect import Set
from hubbub.query.question import Asked, Order, Output, Question, key_name, noisy_name
from hubbub.query.read.aggregates import AggregateReader, is_aggregate, is_list, is_nested, name_level, rewrite
from hubbub.query.read.from_clause import QuestionReader
from hubbub.query.read.grouping import grouping, grouping_sets
from hubbub.query.read.relation import is_subquery
from hubbub.query.read.scalars import read, short
from hubbub.query.read.scope import Catalogue
from hubbub.query.read.text.sql_text import at, parse_select

_CLAUSES = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_"}
_MOST_COLUMNS = 200


def question(text: str, catalogue: Catalogue) -> Question:
    """Read a question, or refuse it with a reason, a caret at the place and a remedy."""
    tree = parse_select(text)
    reader = _Reader(tree, text, catalogue)
    try:
        return reader.question()
    except QueryError as problem:
        raise at(problem, reader.node, text) from None
    except RecursionError:
        raise NotAllowed("The question nests too deeply. Split it.") from None


class _Reader:
    """One reading of the question itself; its tables, and what is made of them, are read by ``reading``."""

    def __init__(self, tree: exp.Select, text: str, catalogue: Catalogue) -> None:
        self.tree, self.text = tree, text
        self.reading = QuestionReader(catalogue, tree)
        self.keys: list[tuple[str, Expression]] = []
        self.key_nodes: list[exp.Expr] = []
        self.sets: tuple[Set, ...] = ()
        self.asked: list[Asked] = []
        self.aliases: dict[str, exp.Expr] = {}
        self.meanings: dict[int, Expression | None] = {}

    def question(self) -> Question:
        self._check_clauses()
        self.views = self.reading.views(self.tree, {})
        found = self.reading.rows(self.tree, self.views)
        self.reading.read_unused(self.tree, self.views)
        self.scope, self.rows = found.scope, found.names
        if found.unit is None:
            self.node = self.tree.args["from_"]
            raise NotOwned("All tables of the question are public. Name a private one, or read them without Hubbub.")
        self._name_outputs()
        self._read_keys()
        self.aggregates = AggregateReader(self.rows, self.scope, found.conditions)
        outputs = tuple(one for place, node in enumerate(self.tree.expressions) for one in self._outputs(place, node))
        having = self.tree.args.get("having")
        kept = None if having is None else self._condition(having.this)
        order = tuple(self._order(node) for node in getattr(self.tree.args.get("order"), "expressions", []))
        limit, offset = (self._number(name) for name in ("limit", "offset"))
        groups = tuple(self._group(place, found.conditions) for place in range(len(self.keys)))
        if not self.asked and not any(group.private for group in groups):
            self.node = (self.tree.expressions or [self.tree])[0]
            raise NotAllowed("Rows of people are not shown. Ask for counts, sums or averages of them.")
        relation = prune(found.relation, self._columns_used(groups))
        facts, columns = self.scope.all_facts(), shape(relation)
        return Question(
            text=self.tree.sql(dialect="duckdb", normalize=True, comments=False, copy=False),
            relation=relation,
            groups=groups,
            asked=tuple(self.asked),
            outputs=outputs,
            columns={name: facts[name] for name in facts if name in columns},
            sets=self.sets,
            having=kept,
            order=order,
            limit=limit,
            offset=offset or 0,
        )

    @property
    def node(self) -> exp.Expr:
        """The part that is being read, for the caret."""
        return self.reading.node

    @node.setter
    def node(self, node: exp.Expr) -> None:
        self.reading.look(node)

    def _columns_used(self, groups: Sequence[Group]) -> frozenset[str]:
        """The columns that groups and aggregates need."""
        needed = [group.expression for group in groups] + [value for one in self.asked for value in one.arguments]
        return frozenset[str]().union(*(columns_of(one) for one in needed))

    def _check_clauses(self) -> None:
        for name, value in self.tree.args.items():
            if value and name not in _CLAUSES:
                raise NotAllowed(f"{name.strip('_').upper()} is not part of a question that can be asked.")
        if self.tree.args.get("from_") is None:
            raise NotOwned("The question names no table. Say FROM and the name of one.")
        if len(self.tree.expressions) > _MOST_COLUMNS:
            raise NotAllowed(f"The answer would have more than {_MOST_COLUMNS} columns.")

    def _condition(self, node: exp.Expr) -> Expression:
        self.node = node
        condition = read(node, self)
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
        self.sets = grouping_sets(group, self._key)

    def _key(self, written: exp.Expr) -> int:
        """The place of a key, which is read here."""
        self.node = written
        node = self._meant(written)
        self.node = node
        key = read(node, self.rows)
        if key.kind.type is Type.REAL:
            raise NotAllowed("Reals make no groups. Group by floor(…) or CASE of them.")
        same = [place for place, (_, other) in enumerate(self.keys) if key == other]
        if not same:
            self.keys.append((_write(node), key))
            self.key_nodes.append(written)
        return same[0] if same else len(self.keys) - 1

    def _group(self, place: int, conditions: list[Expression]) -> Group:
        (name, key), self.node = self.keys[place], self.key_nodes[place]
        budget, unit = self.reading.catalogue.policy.budget, self.scope.names_unit(key)
        return group_of(name, key, conditions, self.scope, budget=budget, unit=unit)

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """Behind an ordinal or an alias of the SELECT list."""
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdigit() else 0
            if not 1 <= place <= len(self.tree.expressions):
                raise NotAllowed(f"There is no column {node.name} in the SELECT list.")
            chosen: exp.Expr = self.tree.expressions[place - 1].unalias()
            return chosen
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self.aliases:
            return node if self.scope.has(node.name) else self.aliases[node.name.lower()]
        return node

    def _outputs(self, place: int, node: exp.Expr) -> list[Output]:
        """One column; of a list of quantiles, one for each."""
        bare = node.unalias()
        if not is_list(bare) and not is_nested(bare):
            return [self._output(place, node)]
        self.node = bare
        name = node.alias or _write(bare).lower()
        if is_nested(bare):
            (only,) = self.aggregates.read(rewrite(bare))
            return [Output(name=name, expression=self._noisy(only))]
        asked = self.aggregates.read(bare)
        return [Output(name=name_level(name, one), expression=self._noisy(one)) for one in asked]

    def _output(self, place: int, node: exp.Expr) -> Output:
        self.node = node
        bare = node.unalias()
        if isinstance(bare, exp.Star) or (isinstance(bare, exp.Column) and isinstance(bare.this, exp.Star)):
            raise NotAllowed("Rows of people are not shown. Ask for counts, sums or averages of them.")
        name = node.alias or (bare.name if isinstance(bare, exp.Column) else _write(bare).lower())
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
        self.scope.column(node)
        raise NotAllowed(
            f"{node.sql()} has many values in a group. Group by it, or put it into an aggregate.", column=node.name
        )

    def _meaning(self, node: exp.Expr, alias: str) -> Expression:
        """Read an alias once and return its meaning; one used again must be short, or aliases of aliases explode."""
        if id(node) not in self.meanings:
            self.meanings[id(node)] = None
            self.meanings[id(node)] = read(node, self)
        found = self.meanings[id(node)]
        if found is None:
            raise NotAllowed(f"The alias {alias!r} stands for itself. Write out what is meant.")
        return short(found)

    def other(self, node: exp.Expr) -> Expression | None:
        """An aggregate, or an expression that the question groups by."""
        if isinstance(node, exp.Window) or node.args.get("order"):
            raise NotAllowed("Windows and ordered aggregates are not among what can be asked.")
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._grouping(node)
        if is_aggregate(node):
            self.node = node
            return self._aggregate(rewrite(node))
        if is_subquery(node):
            raise self.reading.refusal_of(node, self.views)
        if isinstance(node, exp.Literal) or not self.keys:
            return None
        try:
            value = read(node, self.rows)
        except QueryError:
            return None
        for place, (_, key) in enumerate(self.keys):
            if key == value:
                return Column(key_name(place), replace(key.kind, nullable=True) if self.sets else key.kind)
        return None

    def _grouping(self, node: exp.Expr) -> Expression:
        self.node = node
        read_keys = [read(self._meant(one), self.rows) for one in node.expressions]
        places = [place for value in read_keys for place, (_, key) in enumerate(self.keys) if key == value]
        if len(places) != len(read_keys):
            raise NotAllowed("GROUPING takes keys of the GROUP BY.")
        return grouping(places)

    def _aggregate(self, node: exp.Expr) -> Expression:
        if is_list(node):
            raise NotAllowed("A list of quantiles makes several columns. Let it stand alone in SELECT, or ask for one.")
        if is_nested(node):
            raise NotAllowed("A top-k or a histogram makes lists. Let it stand alone in SELECT.")
        (asked,) = self.aggregates.read(node)
        return self._noisy(asked)

    def _noisy(self, asked: Asked) -> Expression:
        """The noisy number of an aggregate, which is measured once however often it is written."""
        same = [place for place, one in enumerate(self.asked) if replace(one, text=asked.text) == asked]
        if not same:
            self.asked.append(asked)
        return Column(noisy_name(same[0] if same else len(self.asked) - 1), asked.function.kind(asked))


def _write(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb", comments=False)
