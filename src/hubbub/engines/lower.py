"""Scalar expressions in DuckDB's words: one builder for each function of ``query.functions``, and no other way in.

Names are ours and quoted, constants are quoted literals of a stated type, so nothing that an analyst wrote is read as
SQL. Integers are BIGINT, or HUGEINT where their range needs it; an operation is done in the widest type among its
arguments and result, so it cannot overflow. A REAL that would not be finite becomes NULL at once.

Guards look at a value twice. Written out, nested guards would double the text at every level, so an argument that has
grown past ``LIGHT`` nodes is bound to a name first, by a lambda over a list of one.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime

from sqlglot import exp

from hubbub.errors import ParameterError
from hubbub.policy.kinds import Kind, Type
from hubbub.query.expression import Call, Column, Expression, Literal, Value

Node = exp.Expr
Names = Mapping[str, str]
"""Columns of the relation below, and what they are called in the engine."""

LIGHT = 24
"""How many nodes an expression may have to be written twice."""

_BOUND = "bound"

_TYPES = {
    Type.BOOLEAN: "BOOLEAN",
    Type.REAL: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


def engine_type(kind: Kind) -> str:
    """DuckDB's type for a kind."""
    if kind.type is Type.INTEGER:
        return "HUGEINT" if kind.wide else "BIGINT"
    return _TYPES[kind.type]


def name(identifier: str) -> Node:
    """A quoted name."""
    return exp.column(exp.to_identifier(identifier, quoted=True))


def cast(node: Node, type_: str) -> Node:
    """A cast that cannot fail for the values it is used on."""
    return exp.Cast(this=node, to=_data_type(type_).copy())


def try_cast(node: Node, type_: str) -> Node:
    """A cast that gives NULL where it fails."""
    return exp.TryCast(this=node, to=_data_type(type_).copy())


@functools.cache
def _data_type(type_: str) -> exp.DataType:
    return exp.DataType.build(type_, dialect="duckdb")


def function(name_: str, *arguments: Node) -> Node:
    """A function of the engine, by its own name."""
    return exp.Anonymous(this=name_, expressions=list(arguments))


def case(*pairs: tuple[Node, Node], otherwise: Node | None = None) -> Node:
    """CASE WHEN … THEN … ELSE … END."""
    return exp.Case(ifs=[exp.If(this=when, true=then) for when, then in pairs], default=otherwise)


def binary(operator: type[exp.Binary], left: Node, right: Node) -> Node:
    """An operator between two arguments, in parentheses."""
    return exp.Paren(this=operator(this=left, expression=right))


def text(value: str) -> Node:
    """A text literal. NUL would end a statement early, so it is put together from its number."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParameterError("text", "valid UTF-8", value) from None
    if "\0" not in value:
        return exp.Literal.string(value)
    pieces: list[Node] = []
    for index, piece in enumerate(value.split("\0")):
        pieces += [function("chr", exp.Literal.number(0))] if index else []
        pieces += [exp.Literal.string(piece)] if piece else []
    return function("concat", *pieces)


def constant(value: Value, kind: Kind) -> Node:
    """A literal of the engine's type for its kind, exact to the last bit."""
    type_ = engine_type(kind)
    match value:
        case None:
            return cast(exp.Null(), type_)
        case bool():
            return exp.Boolean(this=value)
        case int():
            return cast(exp.Literal.number(str(value)), type_)
        case float() if math.isfinite(value):
            return cast(exp.Literal.string(repr(value)), type_)
        case str():
            return text(value)
        case datetime() if value.tzinfo is None:
            return cast(exp.Literal.string(value.isoformat(sep=" ")), type_)
        case date() if not isinstance(value, datetime):
            return cast(exp.Literal.string(value.isoformat()), type_)
    raise ParameterError("constant", "finite, and without a time zone", value)


def lower(expression: Expression, names: Names) -> Node:
    """An expression in the engine's words."""
    match expression:
        case Column(name=column):
            return name(names[column])
        case Literal(value=value, kind=kind):
            return constant(value, kind)
        case Call(function=called, arguments=arguments):
            return LOWERED[called](expression, [lower(argument, names) for argument in arguments])


def matched(left: Expression, right: Expression, sides: tuple[Names, Names]) -> tuple[Node, Node]:
    """Two expressions over two relations, in one engine type, to be compared."""
    nodes = [lower(one, names) for one, names in zip((left, right), sides, strict=True)]
    first, second = _levelled(nodes, [left.kind, right.kind])
    return first, second


def once(arguments: Sequence[Node], body: Callable[[Sequence[Node]], Node]) -> Node:
    """A body that may look at its arguments many times; long arguments are computed once and bound to a name."""
    heavy = [index for index, argument in enumerate(arguments) if _heavy(argument)]
    if not heavy:
        return body(arguments)
    fields = {index: f"a{index}" for index in heavy}
    packed = function(
        "struct_pack",
        *(
            exp.PropertyEQ(this=exp.to_identifier(field), expression=arguments[index])
            for index, field in fields.items()
        ),
    )
    inner = [
        function("struct_extract", name(_BOUND), exp.Literal.string(fields[index])) if index in fields else argument
        for index, argument in enumerate(arguments)
    ]
    given = exp.Lambda(this=body(inner), expressions=[exp.to_identifier(_BOUND, quoted=True)])
    listed = function("list_transform", exp.Array(expressions=[packed]), given)
    return function("list_extract", listed, exp.Literal.number(1))


def finite(node: Node) -> Node:
    """The value where it is finite, else NULL."""
    return once([node], lambda it: case((function("isfinite", it[0]), it[0].copy())))


def _heavy(node: Node) -> bool:
    return next(itertools.islice(node.walk(), LIGHT, None), None) is not None


def _levelled(nodes: Sequence[Node], kinds: Sequence[Kind], *also: Kind) -> list[Node]:
    """Integers all cast to the widest type among them; anything else as it is."""
    if kinds[0].type is not Type.INTEGER or not any(kind.wide for kind in (*kinds, *also)):
        return list(nodes)
    return [node if kind.wide else cast(node, "HUGEINT") for node, kind in zip(nodes, kinds, strict=True)]


def _kinds(call: Call) -> list[Kind]:
    return [argument.kind for argument in call.arguments]


Builder = Callable[[Call, list[Node]], Node]


def _connective(operator: type[exp.Binary]) -> Builder:
    def build(call: Call, nodes: list[Node]) -> Node:
        joined = nodes[0]
        for node in nodes[1:]:
            joined = operator(this=joined, expression=node)
        return exp.Paren(this=joined)

    return build


def _comparison(operator: type[exp.Binary]) -> Builder:
    def build(call: Call, nodes: list[Node]) -> Node:
        return binary(operator, *_levelled(nodes, _kinds(call)))

    return build


def _in(call: Call, nodes: list[Node]) -> Node:
    value, *choices = _levelled(nodes, _kinds(call))
    return exp.Paren(this=exp.In(this=value, expressions=choices))


def _arithmetic(operator: type[exp.Binary]) -> Builder:
    def build(call: Call, nodes: list[Node]) -> Node:
        if call.kind.type is Type.REAL:
            return finite(binary(operator, *nodes))
        return _narrowed(binary(operator, *_levelled(nodes, _kinds(call), call.kind)), call)

    return build


def _narrowed(node: Node, call: Call) -> Node:
    """A result that fits 64 bits, computed in 128."""
    narrow = call.kind.type is Type.INTEGER and not call.kind.wide
    return try_cast(node, "BIGINT") if narrow and any(argument.kind.wide for argument in call.arguments) else node


def _whole_division(operator: type[exp.Binary]) -> Builder:
    """By 0 it is NULL in the engine too. The least BIGINT by −1 would raise, also for the remainder: in 128 bits."""

    def build(call: Call, nodes: list[Node]) -> Node:
        left, right = (cast(node, "HUGEINT") for node in nodes)
        if not any(kind.wide or kind.range[0] == -(1 << 63) for kind in _kinds(call)) and not call.kind.wide:
            left, right = nodes
        divided = binary(operator, left, _nonzero(right))
        return divided if call.kind.wide else try_cast(divided, "BIGINT")

    return build


def _nonzero(node: Node) -> Node:
    zero = exp.Literal.number(0)
    return once([node], lambda it: case((binary(exp.NEQ, it[0], zero), it[0].copy())))


def _unary(build_one: Callable[[Node], Node]) -> Builder:
    """An operation on a number: whole ones in the wider of the two types."""

    def build(call: Call, nodes: list[Node]) -> Node:
        return _narrowed(build_one(_levelled(nodes, _kinds(call), call.kind)[0]), call)

    return build


def _extreme(name_: str) -> Builder:
    """The engine leaves missing arguments out; ours make the result missing."""

    def build(call: Call, nodes: list[Node]) -> Node:
        def body(it: Sequence[Node]) -> Node:
            known = [exp.Not(this=exp.Is(this=one, expression=exp.Null())) for one in it]
            return case((exp.and_(*known), function(name_, *(one.copy() for one in it))))

        return _narrowed(once(_levelled(nodes, _kinds(call), call.kind), body), call)

    return build


def _case(call: Call, nodes: list[Node]) -> Node:
    *pairs, otherwise = nodes
    kinds = _kinds(call)
    values = _levelled([*pairs[1::2], otherwise], [*kinds[1:-1:2], kinds[-1]], call.kind)
    return case(*zip(pairs[::2], values[:-1], strict=True), otherwise=values[-1])


def _coalesce(call: Call, nodes: list[Node]) -> Node:
    return function("coalesce", *_levelled(nodes, _kinds(call), call.kind))


def _nullif(call: Call, nodes: list[Node]) -> Node:
    def body(it: Sequence[Node]) -> Node:
        return case((binary(exp.EQ, *it), exp.Null()), otherwise=it[0].copy())

    return _narrowed(once(_levelled(nodes, _kinds(call)), body), call)


def _plain(name_: str, *extra: Node, type_: str | None = None) -> Builder:
    def build(call: Call, nodes: list[Node]) -> Node:
        called = function(name_, *nodes, *(one.copy() for one in extra))
        return try_cast(called, type_) if type_ else called

    return build


def _real(name_: str) -> Builder:
    def build(call: Call, nodes: list[Node]) -> Node:
        return finite(function(name_, *nodes))

    return build


def _start_of(span: str) -> Builder:
    def build(call: Call, nodes: list[Node]) -> Node:
        return try_cast(function("date_trunc", exp.Literal.string(span), nodes[0]), "DATE")

    return build


LOWERED: Mapping[str, Builder] = {
    "and": _connective(exp.And),
    "or": _connective(exp.Or),
    "not": lambda call, nodes: exp.Paren(this=exp.Not(this=nodes[0])),
    "is_null": lambda call, nodes: exp.Paren(this=exp.Is(this=nodes[0], expression=exp.Null())),
    "eq": _comparison(exp.EQ),
    "ne": _comparison(exp.NEQ),
    "lt": _comparison(exp.LT),
    "le": _comparison(exp.LTE),
    "gt": _comparison(exp.GT),
    "ge": _comparison(exp.GTE),
    "in": _in,
    "add": _arithmetic(exp.Add),
    "subtract": _arithmetic(exp.Sub),
    "multiply": _arithmetic(exp.Mul),
    "divide": _arithmetic(exp.Div),
    "quotient": _whole_division(exp.IntDiv),
    "remainder": _whole_division(exp.Mod),
    "negate": _unary(lambda node: exp.Paren(this=exp.Neg(this=node))),
    "abs": _unary(lambda node: function("abs", node)),
    "least": _extreme("least"),
    "greatest": _extreme("greatest"),
    "to_real": lambda call, nodes: cast(nodes[0], "DOUBLE"),
    "to_integer": lambda call, nodes: try_cast(nodes[0], "BIGINT"),
    "floor": _plain("floor", type_="BIGINT"),
    "ceil": _plain("ceil", type_="BIGINT"),
    "sqrt": _real("sqrt"),
    "ln": _real("ln"),
    "exp": _real("exp"),
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "lower": _plain("lower"),
    "upper": _plain("upper"),
    "trim": _plain("trim", exp.Literal.string(" ")),
    "length": _plain("length", type_="BIGINT"),
    "like": lambda call, nodes: exp.Paren(this=exp.Like(this=nodes[0], expression=nodes[1])),
    "starts_with": _plain("starts_with"),
    "substring": _plain("substring"),
    **{part: _plain(part, type_="BIGINT") for part in ("year", "quarter", "month", "day", "hour", "minute")},
    "weekday": _plain("dayofweek", type_="BIGINT"),
    **{f"start_of_{span}": _start_of(span) for span in ("year", "quarter", "month", "week", "day")},
    "days_between": lambda call, nodes: binary(exp.Sub, *nodes),
}
"""Every function of ``query.functions``. LIKE has no escape character; case is changed character by character."""
