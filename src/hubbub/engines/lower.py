"""Scalar expressions in DuckDB's words: one builder for each function of ``query.functions``, and no other way in.

Integers are BIGINT, or HUGEINT where their range needs it; an operation is done in the widest type among its arguments
and result, so it cannot overflow. A REAL that would not be finite becomes NULL at once.

Guards look at a value twice. Written out, nested guards would double the text at every level, so an argument that has
grown past ``LIGHT`` characters is bound to a name first, by a lambda over a list of one.
"""

from collections.abc import Callable, Mapping, Sequence

from hubbub.engines.words import (
    NULL,
    Sql,
    among,
    case,
    cast,
    constant,
    function,
    infix,
    missing,
    name,
    negation,
    number,
    present,
    text,
    try_cast,
)
from hubbub.policy.kinds import Kind, Type
from hubbub.query.expression import Call, Column, Expression, Literal

Names = Mapping[str, str]
"""Columns of the relation below, and what they are called in the engine."""

LIGHT = 160
"""How long an expression may be to be written twice."""

_BOUND = "bound"


def lower(expression: Expression, names: Names) -> Sql:
    """An expression in the engine's words."""
    match expression:
        case Column(name=column):
            return name(names[column])
        case Literal(value=value, kind=kind):
            return constant(value, kind)
        case Call(function=called, arguments=arguments):
            return LOWERED[called](expression, [lower(argument, names) for argument in arguments])


def matched(left: Expression, right: Expression, sides: tuple[Names, Names]) -> tuple[Sql, Sql]:
    """Two expressions over two relations, in one engine type, to be compared."""
    nodes = [lower(one, names) for one, names in zip((left, right), sides, strict=True)]
    first, second = _levelled(nodes, [left.kind, right.kind])
    return first, second


def once(arguments: Sequence[Sql], body: Callable[[Sequence[Sql]], Sql]) -> Sql:
    """A body that may look at its arguments many times; long arguments are computed once and bound to a name."""
    heavy = [index for index, argument in enumerate(arguments) if _heavy(argument)]
    if not heavy:
        return body(arguments)
    fields = {index: f"a{index}" for index in heavy}
    packed = function("struct_pack", *(Sql(f"{field} := {arguments[index]}") for index, field in fields.items()))
    inner = [
        function("struct_extract", name(_BOUND), text(fields[index])) if index in fields else argument
        for index, argument in enumerate(arguments)
    ]
    given = Sql(f"lambda {name(_BOUND)}: {body(inner)}")
    return function("list_extract", function("list_transform", Sql(f"[{packed}]"), given), number(1))


def finite(node: Sql) -> Sql:
    """The value where it is finite, else NULL."""
    return once([node], lambda it: case((function("isfinite", it[0]), it[0])))


def _heavy(node: Sql) -> bool:
    return len(node) > LIGHT


def _levelled(nodes: Sequence[Sql], kinds: Sequence[Kind], *also: Kind) -> list[Sql]:
    """Integers all cast to the widest type among them; anything else as it is."""
    if kinds[0].type is not Type.INTEGER or not any(kind.wide for kind in (*kinds, *also)):
        return list(nodes)
    return [node if kind.wide else cast(node, "HUGEINT") for node, kind in zip(nodes, kinds, strict=True)]


def _kinds(call: Call) -> list[Kind]:
    return [argument.kind for argument in call.arguments]


Builder = Callable[[Call, list[Sql]], Sql]


def _connective(operator: str) -> Builder:
    return lambda call, nodes: infix(operator, *nodes)


def _comparison(operator: str) -> Builder:
    def build(call: Call, nodes: list[Sql]) -> Sql:
        return infix(operator, *_levelled(nodes, _kinds(call)))

    return build


def _in(call: Call, nodes: list[Sql]) -> Sql:
    value, *choices = _levelled(nodes, _kinds(call))
    return among(value, choices)


def _arithmetic(operator: str) -> Builder:
    def build(call: Call, nodes: list[Sql]) -> Sql:
        if call.kind.type is Type.REAL:
            return finite(infix(operator, *nodes))
        return _narrowed(infix(operator, *_levelled(nodes, _kinds(call), call.kind)), call)

    return build


def _narrowed(node: Sql, call: Call) -> Sql:
    """A result that fits 64 bits, computed in 128."""
    narrow = call.kind.type is Type.INTEGER and not call.kind.wide
    return try_cast(node, "BIGINT") if narrow and any(argument.kind.wide for argument in call.arguments) else node


def _whole_division(operator: str) -> Builder:
    """By 0 it is NULL in the engine too. The least BIGINT by −1 would raise, also for the remainder: in 128 bits."""

    def build(call: Call, nodes: list[Sql]) -> Sql:
        left, right = (cast(node, "HUGEINT") for node in nodes)
        if not any(kind.wide or kind.range[0] == -(1 << 63) for kind in _kinds(call)) and not call.kind.wide:
            left, right = nodes
        divided = infix(operator, left, _nonzero(right))
        return divided if call.kind.wide else try_cast(divided, "BIGINT")

    return build


def _nonzero(node: Sql) -> Sql:
    return once([node], lambda it: case((infix("<>", it[0], number(0)), it[0])))


def _unary(build_one: Callable[[Sql], Sql]) -> Builder:
    """An operation on a number: whole ones in the wider of the two types."""

    def build(call: Call, nodes: list[Sql]) -> Sql:
        return _narrowed(build_one(_levelled(nodes, _kinds(call), call.kind)[0]), call)

    return build


def _extreme(name_: str) -> Builder:
    """The engine leaves missing arguments out; ours make the result missing."""

    def build(call: Call, nodes: list[Sql]) -> Sql:
        def body(it: Sequence[Sql]) -> Sql:
            return case((infix("AND", *(present(one) for one in it)), function(name_, *it)))

        return _narrowed(once(_levelled(nodes, _kinds(call), call.kind), body), call)

    return build


def _case(call: Call, nodes: list[Sql]) -> Sql:
    *pairs, otherwise = nodes
    kinds = _kinds(call)
    values = _levelled([*pairs[1::2], otherwise], [*kinds[1:-1:2], kinds[-1]], call.kind)
    return case(*zip(pairs[::2], values[:-1], strict=True), otherwise=values[-1])


def _coalesce(call: Call, nodes: list[Sql]) -> Sql:
    return function("coalesce", *_levelled(nodes, _kinds(call), call.kind))


def _nullif(call: Call, nodes: list[Sql]) -> Sql:
    def body(it: Sequence[Sql]) -> Sql:
        return case((infix("=", *it), NULL), otherwise=it[0])

    return _narrowed(once(_levelled(nodes, _kinds(call)), body), call)


def _plain(name_: str, *extra: Sql, type_: str | None = None) -> Builder:
    def build(call: Call, nodes: list[Sql]) -> Sql:
        called = function(name_, *nodes, *extra)
        return try_cast(called, type_) if type_ else called

    return build


def _real(name_: str) -> Builder:
    def build(call: Call, nodes: list[Sql]) -> Sql:
        return finite(function(name_, *nodes))

    return build


def _start_of(span: str) -> Builder:
    def build(call: Call, nodes: list[Sql]) -> Sql:
        return try_cast(function("date_trunc", text(span), nodes[0]), "DATE")

    return build


LOWERED: Mapping[str, Builder] = {
    "and": _connective("AND"),
    "or": _connective("OR"),
    "not": lambda call, nodes: negation(nodes[0]),
    "is_null": lambda call, nodes: missing(nodes[0]),
    "eq": _comparison("="),
    "ne": _comparison("<>"),
    "lt": _comparison("<"),
    "le": _comparison("<="),
    "gt": _comparison(">"),
    "ge": _comparison(">="),
    "in": _in,
    "add": _arithmetic("+"),
    "subtract": _arithmetic("-"),
    "multiply": _arithmetic("*"),
    "divide": _arithmetic("/"),
    "quotient": _whole_division("//"),
    "remainder": _whole_division("%"),
    "negate": _unary(lambda node: Sql(f"(- {node})")),
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
    "trim": _plain("trim", text(" ")),
    "length": _plain("length", type_="BIGINT"),
    "like": lambda call, nodes: infix("LIKE", *nodes),
    "starts_with": _plain("starts_with"),
    "substring": _plain("substring"),
    **{part: _plain(part, type_="BIGINT") for part in ("year", "quarter", "month", "day", "hour", "minute")},
    "weekday": _plain("dayofweek", type_="BIGINT"),
    **{f"start_of_{span}": _start_of(span) for span in ("year", "quarter", "month", "week", "day")},
    "days_between": lambda call, nodes: infix("-", *nodes),
}
"""Every function of ``query.functions``. LIKE has no escape character; case is changed character by character."""
