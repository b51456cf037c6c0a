"""Nodes as text, in the words of a dialect.

What is printed is whole in itself: a name, a literal, a call, or something in parentheses. Names are quoted, and
constants are literals of a stated type, so nothing that an analyst or a table says is read as SQL.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeVar

from hubbub.engines.dialects.dialect import Dialect, KeyList, SqlStatement
from hubbub.engines.nodes import queries as rows
from hubbub.engines.nodes import scalars as values
from hubbub.engines.nodes.lookups import join_lookups
from hubbub.engines.nodes.queries import Lowered, Query
from hubbub.engines.nodes.scalars import (
    Apply,
    Bound,
    Case,
    Function,
    Infix,
    JoinForm,
    Let,
    Node,
    Operator,
    Scalar,
    storage_of,
)
from hubbub.engines.nodes.shown_columns import Queries, list_columns, list_source
from hubbub.errors import NotAllowed, ParameterError

_Word = TypeVar("_Word")


def print_statement(lowered: Lowered, dialect: Dialect) -> SqlStatement:
    """Print a query with its tables of keys."""
    keys = tuple(KeyList(one.table, dialect.types[one.storage], one.places, one.values) for one in lowered.keys)
    printer = Printer(dialect)
    return SqlStatement(printer.say(lowered.query), keys, secrets=lowered.secrets, texts=tuple(printer.texts))


def print_node(node: Node, dialect: Dialect) -> str:
    """Print a node."""
    return Printer(dialect).say(node)


class Printer:
    """Prints one statement. A query that stands in several places is printed once."""

    __slots__ = ("_bound", "_once", "_printed", "_stored", "dialect", "texts")

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.texts: dict[str, int] = {}
        """The constant texts that are parameters, with their places from 1 on."""
        self._bound: Sequence[str] = ()
        self._printed: dict[int, str] = {}
        self._once: Queries = {}
        self._stored: Mapping[str, str] | None = None

    def say(self, node: Node) -> str:
        """Print one node."""
        return FORMS[type(node)](self, node)

    def say_all(self, nodes: Sequence[Node], between: str = ", ") -> str:
        """Print nodes one after the other."""
        return between.join([FORMS[type(node)](self, node) for node in nodes])

    def _find(self, words: Mapping[_Word, str], word: _Word) -> str:
        try:
            return words[word]
        except KeyError:
            raise NotAllowed(f"{self.dialect.name} cannot answer this: it has no {word}. Ask without it.") from None

    # Values

    def _name(self, node: values.Name) -> str:
        quote = self.dialect.quote_name
        return quote(node.column) if node.of is None else f"{quote(node.of)}.{quote(node.column)}"

    def _constant(self, node: values.Constant) -> str:
        value, kind = node.value, node.kind
        match value:
            case bool():
                return "TRUE" if value else "FALSE"
            case str():
                return self._text(value)
            case int():
                literal = f"{value:d}" if value >= 0 else f"({value:d})"
            case None:
                literal = "NULL"
            case float() if math.isfinite(value):
                literal = self.dialect.quote_text(repr(value))
            case datetime() if value.tzinfo is None:
                literal = self.dialect.quote_text(value.isoformat(sep=" "))
            case date() if not isinstance(value, datetime):
                literal = self.dialect.quote_text(value.isoformat())
            case _:
                raise ParameterError("constant", "finite, and without a time zone", value)
        return literal if kind is None else self.dialect.cast(literal, self._find(self.dialect.types, storage_of(kind)))

    def _text(self, value: str) -> str:
        if self.dialect.parameter is None:
            return self.dialect.quote_text(value)
        if not is_storable(value):
            raise NotAllowed(f"{self.dialect.name} has no text with NUL or half a letter in it. Ask without it.")
        return self.dialect.parameter(self.texts.setdefault(value, len(self.texts) + 1))

    def _apply(self, node: Apply) -> str:
        form = self._find(self.dialect.functions, node.function)
        if "{" in form:
            arguments = [self.say(one) for one in node.arguments]
            if form.count("{0}") > 1:
                return self._write(arguments, lambda given: form.format(*given))
            return form.format(*arguments, all=", ".join(arguments))
        arguments_ = self.say_all(node.arguments)
        return f"{form}(DISTINCT {arguments_})" if node.distinct else f"{form}({arguments_})"

    def _infix(self, node: Infix) -> str:
        form = self._find(self.dialect.operators, node.operator)
        pieces = [FORMS[type(piece)](self, piece) for piece in node.pieces]
        if "{" in form:
            left, right = pieces
            return form.format(left, right)
        return f"({f' {form} '.join(pieces)})"

    def _prefixed(self, node: values.Prefixed) -> str:
        return f"({self._find(self.dialect.prefixes, node.operator)} {self.say(node.piece)})"

    def _is_null(self, node: values.IsNull) -> str:
        return f"({self.say(node.piece)} IS NOT NULL)" if node.denied else f"({self.say(node.piece)} IS NULL)"

    def _cast(self, node: values.Cast) -> str:
        value, type_ = self.say(node.piece), self._find(self.dialect.types, node.to)
        if self.dialect.cast_condition is not None and _is_condition(node.piece):
            return self.dialect.cast_condition(value, type_)
        if not node.safe:
            return self.dialect.cast(value, type_)
        if not self.dialect.repeats:
            return self.dialect.safe_cast(value, type_)
        if node.fits:
            return self.dialect.cast(value, type_)
        return self._write([value], lambda given: self.dialect.safe_cast(given[0], type_))

    def _case(self, node: Case) -> str:
        whens = " ".join([f"WHEN {self.say(when)} THEN {self.say(then)}" for when, then in node.pairs])
        return f"CASE {whens} END" if node.otherwise is None else f"CASE {whens} ELSE {self.say(node.otherwise)} END"

    def _among(self, node: values.Among) -> str:
        return f"({self.say(node.piece)} IN ({self.say_all(node.choices)}))"

    def _guarded(self, node: values.Guarded) -> str:
        operation, called, given = node.operation, _called(node.operation), _given(node.operation)
        match self.dialect.guard(called):
            case "after" if node.beyond != "missing":
                return self.say(operation)
            case "after":
                result = Bound(0)
                return self._let(Let((operation,), Case(((Apply("is_finite", (result,)), result),))))
            case "before":
                known = [one if isinstance(one, values.Constant) else Bound(place) for place, one in enumerate(given)]
                return self._let(Let(given, self.dialect.domains[called](known, node.beyond)))
            case "refuse":
                raise NotAllowed(f"{self.dialect.name} cannot keep {called} from failing. Ask without it.")

    def _let(self, node: Let) -> str:
        def write(given: Sequence[str]) -> str:
            around, self._bound = self._bound, given
            body = self.say(node.body)
            self._bound = around
            return body

        return self._write([self.say(value) for value in node.values], write)

    def _write(self, given: list[str], write: Callable[[Sequence[str]], str]) -> str:
        """Write what may repeat its values, of which long ones are bound."""
        heavy = {place: text for place, text in enumerate(given) if len(text) > self.dialect.light}
        for place in heavy:
            given[place] = self.dialect.reference(place)
        body = write(given)
        once = [place for place in heavy if body.count(given[place]) == 1] if self.dialect.repeats else []
        if once:
            for place in once:
                given[place] = heavy.pop(place)
            body = write(given)
        return self.dialect.bind(heavy, body) if heavy else body

    def _bound_value(self, node: Bound) -> str:
        return self._bound[node.place]

    def _hash(self, node: values.KeyedHash) -> str:
        return self.dialect.hash(node.tag, self.say(node.unit), [self.say(one) for one in node.content])

    def _descending(self, node: values.Descending) -> str:
        return f"{self.say(node.piece)} DESC"

    def _window(self, node: values.WindowNode) -> str:
        parts = [f"PARTITION BY {self.say_all(node.partition)}"] if node.partition else []
        parts += [f"ORDER BY {', '.join([f'{self.say(one)} NULLS LAST' for one in node.order])}"] if node.order else []
        return f"{self.say(node.called)} OVER ({' '.join(parts)})"

    def _struct(self, node: values.Struct) -> str:
        return self.dialect.struct({field: self.say(value) for field, value in node.fields})

    def _field(self, node: values.StructField) -> str:
        if self.dialect.field is not None:
            return self.dialect.field(self.say(node.struct), node.field)
        return f"{self.say(node.struct)}.{self.dialect.quote_name(node.field)}"

    def _list(self, node: values.ListOf) -> str:
        return self.dialect.list([self.say(one) for one in node.items])

    def _scalar_query(self, node: values.ScalarQuery) -> str:
        return f"({self.say(node.query)})"

    def _scan_value(self, node: values.ScanValue) -> str:
        if self._stored is not None:
            return self._read_stored(node, self._stored)
        return self.dialect.read_value(self.dialect.quote_name(node.column), node.kind)

    def _scan_identity(self, node: values.ScanIdentity) -> str:
        if self._stored is not None:
            return self._read_stored(node, self._stored)
        return self.dialect.read_identity(self.dialect.quote_name(node.column), node.kind, node.replaced)

    def _read_stored(self, node: values.ScanValue | values.ScanIdentity, types: Mapping[str, str]) -> str:
        if self.dialect.read_stored is None or node.column not in types:
            raise NotAllowed(f"Column {node.column} cannot be read on the server. Ask the owner.")
        column, is_identity = self.dialect.quote_name(node.column), isinstance(node, values.ScanIdentity)
        return self.dialect.read_stored(column, node.kind, types[node.column], is_identity)

    def _alias(self, node: values.Alias) -> str:
        return f"{self.say(node.piece)} AS {self.dialect.quote_name(node.called)}"

    def _star(self, node: values.Star) -> str:
        if node.but:
            return self.dialect.all_but([self.dialect.quote_name(column) for column in node.but])
        return "*" if node.of is None else f"{self.dialect.quote_name(node.of)}.*"

    def _grouping_sets(self, node: values.GroupingSets) -> str:
        return f"GROUPING SETS ({', '.join([f'({self.say(key)})' for key in node.keys])})"

    # Rows

    def _select(self, node: rows.Select) -> str:
        around, self._stored = self._stored, _types_of(node.source)
        text = self._select_from(node)
        self._stored = around
        return text

    def _select_from(self, node: rows.Select) -> str:
        if self.dialect.join_same and node.by:
            node = join_lookups(node)
        shown, source, where = node.shown, node.source, [self.say(one) for one in node.where]
        if self.dialect.lists_columns:
            shown = tuple(piece for one in shown for piece in self._list_shown(one, source))
        listed = [self.say(one) for one in shown]
        text = f"SELECT {', '.join(listed)}"
        if isinstance(source, rows.Join) and source.form in _EXISTS and source.form not in self.dialect.joins:
            partners = f"SELECT 1 FROM {self.say(source.right)} WHERE {self.say_all(source.on, ' AND ')}"
            where.insert(0, f"{_EXISTS[source.form]} ({partners})")
            source = source.left
        if source is not None:
            text += f" FROM {self.say(source)}"
        if where:
            text += f" WHERE {' AND '.join(where)}"
        if node.by:
            text += f" GROUP BY {self.say_all(node.by)}"
        if node.order:
            text += f" ORDER BY {self.say_all(node.order)}"
        if node.most:
            text += f" LIMIT {node.most:d}"
        if self.dialect.fence and any(len(one) > self.dialect.light for one in listed):
            text += self.dialect.fence
        return text

    def _union_all(self, node: rows.UnionAll) -> str:
        return " UNION ALL ".join([f"({self.say(query)})" for query in node.queries])

    def _list_shown(self, shown: Scalar, source: rows.RowSource | None) -> Sequence[Scalar]:
        """List the columns of a star that leaves some out."""
        if not isinstance(shown, values.Star) or not shown.but:
            return (shown,)
        return [values.Name(column) for column in list_source(source, self._once) if column not in shown.but]

    def _with_once(self, node: rows.WithOnce) -> str:
        named = self.dialect.quote_name(node.called)
        query = self.say(node.query)
        around = self._once
        if self.dialect.lists_columns:
            self._once = {**around, node.called: list_columns(node.query, around)}
        then = self.say(node.then)
        self._once = around
        return self.dialect.with_once(named, query, then)

    def _name_stored(self, node: rows.StoredTable) -> str:
        return ".".join(map(self.dialect.quote_name, node.parts))

    def _table(self, node: rows.TableName) -> str:
        text = ".".join(map(self.dialect.quote_name, node.parts))
        return text if node.called is None else f"{text} AS {self.dialect.quote_name(node.called)}"

    def _files(self, node: rows.ParquetFiles) -> str:
        if self.dialect.files is None:
            raise NotAllowed(f"{self.dialect.name} reads no files. Put the rows into a table of it.")
        return self.dialect.files(node.variable, node.replaced, node.by_name)

    def _subquery(self, node: rows.Subquery) -> str:
        called = self.dialect.quote_name(node.called)
        if node.columns:
            called += f"({', '.join(map(self.dialect.quote_name, node.columns))})"
        return f"({self._print_once(node.query)}) AS {called}"

    def _print_once(self, query: Query) -> str:
        """Print a query, or say again what was printed of it."""
        text = self._printed.get(id(query))
        if text is None:
            text = self._printed[id(query)] = self.say(query)
        return text

    def _join(self, node: rows.Join) -> str:
        form = self._find(self.dialect.joins, node.form)
        return f"{self.say(node.left)} {form} {self.say(node.right)} ON {self._join_on(node.on)}"

    def _join_on(self, on: Sequence[Scalar]) -> str:
        if not self.dialect.join_same or not all(isinstance(one, Infix) and one.operator == "same" for one in on):
            return self.say_all(on, " AND ")
        pairs = [[self.say(piece) for piece in one.pieces] for one in on if isinstance(one, Infix)]
        return " AND ".join([self.dialect.join_same.format(*pair) for pair in pairs])


_EXISTS: Mapping[JoinForm, str] = {"semi": "EXISTS", "anti": "NOT EXISTS"}
_CONDITIONS = frozenset({"and", "or", "=", "<>", "<", "<=", ">", ">=", "same", "like"})


def is_storable(value: str) -> bool:
    """Return whether a text is one that servers keep, which have no NUL in it."""
    try:
        return "\0" not in value and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _is_condition(node: Node) -> bool:
    match node:
        case Infix(operator=operator):
            return operator in _CONDITIONS
        case values.Prefixed(operator=operator):
            return operator == "not"
    return isinstance(node, values.IsNull | values.Among)


def _types_of(source: rows.RowSource | None) -> Mapping[str, str] | None:
    return dict(source.types) if isinstance(source, rows.StoredTable) else None


def _called(operation: Apply | Infix) -> Function | Operator:
    return operation.function if isinstance(operation, Apply) else operation.operator


def _given(operation: Apply | Infix) -> tuple[Scalar, ...]:
    return operation.arguments if isinstance(operation, Apply) else operation.pieces


FORMS: dict[type[Node], Callable[[Printer, Any], str]] = {
    values.Name: Printer._name,
    values.Constant: Printer._constant,
    values.Apply: Printer._apply,
    values.Infix: Printer._infix,
    values.Prefixed: Printer._prefixed,
    values.IsNull: Printer._is_null,
    values.Cast: Printer._cast,
    values.Case: Printer._case,
    values.Among: Printer._among,
    values.Guarded: Printer._guarded,
    values.Let: Printer._let,
    values.Bound: Printer._bound_value,
    values.KeyedHash: Printer._hash,
    values.Descending: Printer._descending,
    values.WindowNode: Printer._window,
    values.Struct: Printer._struct,
    values.StructField: Printer._field,
    values.ListOf: Printer._list,
    values.ScalarQuery: Printer._scalar_query,
    values.ScanValue: Printer._scan_value,
    values.ScanIdentity: Printer._scan_identity,
    values.Alias: Printer._alias,
    values.Star: Printer._star,
    values.GroupingSets: Printer._grouping_sets,
    rows.Select: Printer._select,
    rows.UnionAll: Printer._union_all,
    rows.WithOnce: Printer._with_once,
    rows.TableName: Printer._table,
    rows.StoredTable: Printer._name_stored,
    rows.ParquetFiles: Printer._files,
    rows.Subquery: Printer._subquery,
    rows.Join: Printer._join,
}
"""A form for each node. Nothing else is printed."""
