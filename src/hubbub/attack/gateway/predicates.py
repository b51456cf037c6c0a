"""Simple conditions out of a log of questions, read and evaluated on an own or a made-up table.

This is the lab's own small reader: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL. What it cannot read it names,
and the planner goes on without it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import sqlglot
from sqlglot import exp

from hubbub.attack.columns import columns_of
from hubbub.errors import HubbubError

Truth = bool | None
"""SQL's three: true, false, and not known."""
Row = Mapping[str, Any]
_ORDER: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: lambda a, b: bool(a == b),
    exp.NEQ: lambda a, b: bool(a != b),
    exp.LT: lambda a, b: bool(a < b),
    exp.LTE: lambda a, b: bool(a <= b),
    exp.GT: lambda a, b: bool(a > b),
    exp.GTE: lambda a, b: bool(a >= b),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """The rows that a question is about, and the text of the condition."""

    text: str
    tree: exp.Expr | None

    def rows(self, table: Any) -> frozenset[int]:
        """The rows for which it is true, by their numbers."""
        columns = columns_of(table)
        everybody = range(len(next(iter(columns.values()), [])))
        if self.tree is None:
            return frozenset(everybody)
        names = {column.name for column in self.tree.find_all(exp.Column)}
        missing = sorted(names - set(columns))
        if missing:
            raise HubbubError(f"The table has no column {missing[0]!r}, which {self.text!r} asks about.")
        return frozenset(one for one in everybody if _true(self.tree, {name: columns[name][one] for name in names}))

    def parts(self) -> frozenset[str]:
        """Return the parts that must all be true, each written in one way."""
        if self.tree is None:
            return frozenset()
        whole = self.tree.unnest()
        parts = whole.flatten() if isinstance(whole, exp.And) else [whole]
        return frozenset(part.unnest().sql(dialect="duckdb") for part in parts)


def condition(text: str) -> Condition:
    """From a question, or from what would stand after WHERE."""
    wanted = text.strip().rstrip(";")
    whole = wanted if re.match(r"(?i)(select|with)\b", wanted) else f"SELECT count(*) FROM t WHERE {wanted}"
    try:
        tree = sqlglot.parse_one(whole, read="duckdb")
    except sqlglot.errors.SqlglotError as problem:
        raise HubbubError(f"{wanted!r} could not be read: write a question, or what stands after WHERE.") from problem
    if tree.find(exp.Subquery, exp.Join) is not None or not isinstance(tree, exp.Select):
        raise HubbubError(f"{wanted!r} asks more than one table; the planner reads questions about one.")
    where = tree.args.get("where")
    inner = None if where is None else where.this
    if inner is not None:
        _true(inner, dict.fromkeys((column.name for column in inner.find_all(exp.Column)), None))
    return Condition(wanted, inner)


def _true(node: exp.Expr, row: Row) -> Truth:
    match node:
        case exp.Paren():
            return _true(node.this, row)
        case exp.Not():
            truth = _true(node.this, row)
            return None if truth is None else not truth
        case exp.And():
            both = (_true(node.left, row), _true(node.right, row))
            return False if False in both else None if None in both else True
        case exp.Or():
            both = (_true(node.left, row), _true(node.right, row))
            return True if True in both else None if None in both else False
        case exp.In(expressions=[_, *_] as listed):
            value = _value(node.this, row)
            each = [_compare(exp.EQ, value, _value(one, row)) for one in listed]
            return True if True in each else None if None in each else False
        case exp.Between():
            value = _value(node.this, row)
            low, high = _value(node.args["low"], row), _value(node.args["high"], row)
            both = (_compare(exp.GTE, value, low), _compare(exp.LTE, value, high))
            return False if False in both else None if None in both else True
        case exp.Like():
            value, wanted = _value(node.this, row), _value(node.expression, row)
            if value is None or wanted is None:
                return None
            shape = re.escape(str(wanted)).replace("%", ".*").replace("_", ".")
            return re.fullmatch(shape, str(value), re.DOTALL) is not None
        case exp.Is():
            if isinstance(node.expression, exp.Null):
                return _value(node.this, row) is None
        case exp.Boolean():
            return bool(node.this)
        case exp.Column():
            value = _value(node, row)
            return None if value is None else bool(value)
        case exp.Binary() if type(node) in _ORDER:
            return _compare(type(node), _value(node.left, row), _value(node.right, row))
    _unread(node)


def _value(node: exp.Expr, row: Row) -> Any:
    match node:
        case exp.Paren():
            return _value(node.this, row)
        case exp.Column():
            return row[node.name]
        case exp.Literal():
            return node.this if node.is_string else _number(node.this)
        case exp.Neg():
            value = _value(node.this, row)
            return None if value is None else -value
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
    _unread(node)


def _number(text: str) -> float | int:
    return int(text) if text.isdigit() else float(text)


def _compare(how: type[exp.Expr], a: Any, b: Any) -> Truth:
    if a is None or b is None:
        return None
    if isinstance(a, str) != isinstance(b, str):
        a, b = str(a), str(b)
    return _ORDER[how](a, b)


def _unread(node: exp.Expr) -> NoReturn:
    raise HubbubError(f"{node.sql()!r} is not a condition that the planner reads: compare columns with constants.")
