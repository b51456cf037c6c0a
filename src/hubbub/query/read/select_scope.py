"""Names over one SELECT within a question: columns and aliases, keys and aggregates of a unit's rows, and windows.

What it is asked for it remembers, so that the operations which make it can be built when all has been read.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from hubbub.errors import MissingKeys, NotAllowed, NotOwned, QueryError
from hubbub.policy.kinds import Type
from hubbub.policy.tables import Value
from hubbub.query.check.keys import public_values
from hubbub.query.check.shape import ColumnFacts, facts_of_expression, window_kind
from hubbub.query.expression import Column, Expression, columns_of, literal
from hubbub.query.functions import call
from hubbub.query.ops import JoinKind, JoinOwn, Project, Reduce, Relation, Window
from hubbub.query.read.relation import Reader, SourceRows, is_subquery
from hubbub.query.read.scalars import read, short
from hubbub.query.read.unit_aggregates import Result, reduction, the_unit, usual_rows
from hubbub.query.read.windows import WindowCall, over

_MOST_PLACES = 1000
"""Up to which a row's place makes groups."""
_ZEROS: dict[Type, object] = {Type.BOOLEAN: False, Type.INTEGER: 0, Type.REAL: 0.0, Type.TEXT: ""}
PUBLIC = (
    "GROUP BY, DISTINCT and windows over public tables are not answered. Keep what they give as a table of its own."
)

Values = Callable[[], tuple[Value, ...] | None]


class SelectScope:
    """The names that may stand in SELECT, HAVING and QUALIFY."""

    def __init__(self, reader: Reader, tree: exp.Select, rows: SourceRows) -> None:
        self._reader, self._tree, self._rows = reader, tree, rows
        self._limits = reader.catalogue.policy.limits
        self._aliases = {one.alias.lower(): one.this for one in tree.expressions if isinstance(one, exp.Alias)}
        self._meaning: list[str] = []
        self._keys: list[tuple[str, Expression]] = []
        self._units: list[Expression] = []
        self._results: list[tuple[exp.Expr, str, Result]] = []
        self._facts: dict[str, ColumnFacts] = {}
        self._known: dict[str, Values] = {}
        self._windows: list[tuple[WindowCall, str, Callable[[Relation, Relation], Relation]]] = []
        self.windows_allowed = True
        parts = [*tree.expressions, *(tree.args[name] for name in ("having", "qualify") if tree.args.get(name))]
        self.grouped = tree.args.get("group") is not None or any(_aggregates(one) for one in parts)
        if self.grouped:
            self._read_keys()

    def add_windows(self, relation: Relation) -> Relation:
        """The rows with what windows add to them."""
        base = relation
        for *_, add in self._windows:
            relation = add(relation, base)
        return relation

    def _read_keys(self) -> None:
        group = self._tree.args.get("group")
        self._reader.look(group or self._tree)
        if self._rows.unit is None:
            raise NotAllowed(PUBLIC)
        if group is not None and any(value for name, value in group.args.items() if name != "expressions"):
            raise NotAllowed("GROUP BY in a subquery takes expressions: no ROLLUP, CUBE, GROUPING SETS or ALL.")
        scope = self._rows.scope
        for node in getattr(group, "expressions", []):
            self._reader.look(node)
            value = read(self._meant(node), self._rows.names)
            if scope.is_unit(value):
                self._units.append(value)
            elif all(value != other for _, other in self._keys):
                name = f"key {len(self._keys)}"
                self._keys.append((name, value))
                self._facts[name] = scope.facts_of(value)
                self._known[name] = self._public(node.sql(), value, self._rows.conditions, scope.values)
        if not self._units and not any(self._facts[name].tells_unit for name, _ in self._keys):
            self._reader.look(group or self._tree)
            raise NotOwned(
                "A subquery makes one row of several people's. GROUP BY the unit's column too, as it is, or aggregate "
                "in the question itself."
            )

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """Behind an ordinal or an alias of the SELECT list."""
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdigit() else 0
            if not 1 <= place <= len(self._tree.expressions):
                raise NotAllowed(f"There is no column {node.name} in the SELECT list.")
            node = self._tree.expressions[place - 1].unalias()
        elif isinstance(node, exp.Column) and not node.table and not self._rows.scope.has(node.name):
            node = self._aliases.get(node.name.lower(), node)
        return node

    def reduce(self) -> Relation:
        """One row a unit and key; then each aggregate by a name of its own."""
        columns = tuple(column for *_, result in self._results for column in result.columns)
        reduce = Reduce(input=self._rows.relation, keys=tuple(self._keys), columns=columns)
        if all(result.value == Column(name, result.value.kind) for _, name, result in self._results):
            return reduce
        passed = tuple((name, Column(name, key.kind)) for name, key in self._keys)
        return Project(input=reduce, columns=(*passed, *((name, result.value) for _, name, result in self._results)))

    def _result(self, node: exp.Expr, find: Callable[[str], Result]) -> Column:
        """An aggregate as a column; the same one is made once."""
        for other, name, result in self._results:
            if other == node:
                return Column(name, result.value.kind)
        name = f"value {len(self._results)}"
        result = find(name)
        self._results.append((node, name, result))
        self._facts[name] = result.facts
        return Column(name, result.value.kind)

    # Names: columns, aliases, aggregates and windows.

    def column(self, node: exp.Column) -> Expression:
        """A column of the rows or groups, or the alias of an output."""
        meant = self._meant(node)
        if meant is node:
            value = self._rows.scope.column(node)
            if not self.grouped:
                return value
            raise NotAllowed(
                f"{node.sql()} has many values in a group. Group by it, or put it into an aggregate.", column=node.name
            )
        if node.name.lower() in self._meaning:
            raise NotAllowed(f"The alias {node.name!r} stands for itself. Write out what is meant.")
        self._meaning.append(node.name.lower())
        try:
            return short(read(meant, self))
        finally:
            self._meaning.pop()

    def other(self, node: exp.Expr) -> Expression | None:
        """A window, an aggregate of the unit's rows, or a key."""
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.AggFunc | exp.Filter):
            return self._aggregate(node)
        if is_subquery(node):
            return self._rows.names.other(node)
        if not self.grouped or isinstance(node, exp.Literal):
            return None
        try:
            value = read(node, self._rows.names)
        except QueryError:
            return None
        for unit in self._units:
            if unit == value:
                return self._result(node, lambda name: the_unit(name, value))
        return next((Column(name, key.kind) for name, key in self._keys if key == value), None)

    def _aggregate(self, node: exp.Expr) -> Expression:
        self._reader.look(node)
        return self._result(
            node, lambda name: reduction(node, name, self._rows.names, self._rows.scope.facts, self._limits)
        )

    # Windows

    def _window(self, node: exp.Window) -> Expression:
        self._reader.look(node)
        if not self.windows_allowed:
            raise NotAllowed("A window stands in HAVING. Use QUALIFY.")
        if self._rows.unit is None:
            raise NotAllowed(PUBLIC)
        if any(isinstance(part, exp.Window) for child in node.iter_expressions() for part in child.walk()):
            raise NotAllowed("A window stands within a window. Put one into a subquery.")
        found = over(node, self, self._is_owned, lambda value: self.facts_of(value).tells_unit)
        if found.ranking is None:
            return self._spread(node, found)
        for known, name, _ in self._windows:
            if known == found:
                return self._place_window(found, name)
        name = f"window {len(self._windows)}"
        self._windows.append((found, name, lambda relation, base: _placing(found, name, relation)))
        return self._place_window(found, name)

    def _place_window(self, found: WindowCall, name: str) -> Column:
        kind = window_kind(_placing(found, name, self._rows.relation))
        if found.argument is not None:
            about = self.facts_of(found.argument)
            self._facts[name] = replace(about, kind=kind, unit=False, optional=False)
            self._known[name] = self.values(name, found.argument, [])
        else:
            bounds = (Fraction(0), Fraction(usual_rows(self._limits)))
            self._facts[name] = ColumnFacts(kind=kind, bounds=bounds, step=Fraction(1))
            most = self._limits.max_unit_rows
            self._known[name] = lambda: tuple(range(1, most + 1)) if most <= _MOST_PLACES else None
        return Column(name, kind)

    def _spread(self, node: exp.Window, found: WindowCall) -> Expression:
        """An aggregate over a unit's rows, beside each of them: they are reduced, and joined with what that gives."""
        if self.grouped:
            raise NotAllowed("An aggregate over groups stands beside GROUP BY. Group in a subquery first.")
        place = len(self._windows)
        result = reduction(node.this, f"over {place}", self._rows.names, self._rows.scope.facts, self._limits)
        pairs = [
            pair for number, one in enumerate(found.part) for pair in _null_safe(one, f"over {place} part {number}")
        ]
        keys = tuple((column.name, one) for one, column in pairs)

        def add(relation: Relation, base: Relation) -> Relation:
            reduced: Relation = Reduce(input=base, keys=keys, columns=result.columns)
            joined = tuple((one, column) for one, column in pairs)
            return JoinOwn(input=relation, other=reduced, kind=JoinKind.INNER, keys=joined)

        self._windows.append((found, f"over {place}", add))
        for column in result.columns:
            self._facts[column.name] = replace(result.facts, kind=column.kind)
        return result.value

    # What is public about what comes out

    def _is_owned(self, value: Expression) -> bool:
        if self.grouped:
            return isinstance(value, Column) and value.name in self._facts and self._facts[value.name].unit
        return self._plain(value) and self._rows.scope.is_unit(value)

    def _plain(self, value: Expression) -> bool:
        return not columns_of(value) & self._facts.keys()

    def facts_of(self, value: Expression) -> ColumnFacts:
        if not self.grouped and self._plain(value):
            return self._rows.scope.facts_of(value)
        return facts_of_expression(
            value, lambda name: self._facts[name] if name in self._facts else self._rows.scope.facts(name)
        )

    def values(self, name: str, value: Expression, conditions: list[Expression]) -> Values:
        def values(column: str) -> tuple[Value, ...] | None:
            if column in self._facts:
                return self._known[column]() if column in self._known else None
            return self._rows.scope.values(column)

        return self._public(name, value, conditions, values)

    def _public(
        self,
        name: str,
        value: Expression,
        conditions: list[Expression],
        values: Callable[[str], tuple[Value, ...] | None],
    ) -> Values:
        known = _Known(values)

        def find() -> tuple[Value, ...] | None:
            try:
                return public_values(name, value, conditions, known)
            except MissingKeys:
                return None

        return find


class _Known:
    def __init__(self, find: Callable[[str], tuple[Value, ...] | None]) -> None:
        self.values = find


def _aggregates(node: exp.Expr) -> bool:
    """Return whether an aggregate of rows stands in it, other than the one of a window or a subquery."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.Window):
            called = one.this
            while isinstance(called, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                called = called.this
            waiting += [part for key, value in one.args.items() if key != "this" for part in _parts(value)]
            waiting += [part for value in called.args.values() for part in _parts(value)]
            continue
        if isinstance(one, exp.Query):
            continue
        if isinstance(one, exp.AggFunc):
            return True
        waiting += list(one.iter_expressions())
    return False


def _parts(value: object) -> list[exp.Expr]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, exp.Expr)]


def _placing(found: WindowCall, name: str, relation: Relation) -> Window:
    assert found.ranking is not None
    return Window(
        input=relation,
        name=name,
        ranking=found.ranking,
        argument=found.argument,
        offset=found.offset,
        part=found.part,
        order=found.order,
    )


def _null_safe(value: Expression, name: str) -> list[tuple[Expression, Column]]:
    """A value as keys that are never missing, and their names: missing values are to be equal to each other here."""
    if not value.kind.nullable:
        return [(value, Column(name, value.kind))]
    if value.kind.type not in _ZEROS:
        raise NotAllowed(f"A window over {value.kind} values that may be missing is not answered. Use coalesce(…).")
    missing = call("is_null", value)
    there = call("coalesce", value, literal(_ZEROS[value.kind.type]))  # type: ignore[arg-type]
    return [(missing, Column(f"{name} missing", missing.kind)), (there, Column(name, there.kind))]
