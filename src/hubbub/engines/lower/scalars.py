"""Scalar expressions as nodes: one builder for each function of ``query.functions``, and no other way in.

Integers have 64 bits, or 128 where their range needs it; an operation is done in the widest type among its arguments
and result, so it cannot overflow. A REAL that would not be finite becomes NULL at once.

Guards look at a value twice. Written out, nested guards would double the text at every level, so they are a ``Let``,
whose values a printer binds to a name where they have grown long.
"""

from collections.abc import Callable, Mapping, Sequence

from hubbub.engines.nodes.scalars import Bound, Function, Guarded, Let, Operator, Prefixed, Scalar, Storage
from hubbub.engines.nodes.words import (
    NULL,
    among,
    case,
    cast,
    constant,
    fit,
    function,
    infix,
    missing,
    name,
    negation,
    number,
    present,
    try_cast,
)
from hubbub.policy.kinds import Kind, Type
from hubbub.query.expression import Call, Column, Expression, Literal

Names = Mapping[str, str]
"""Columns of the relation below, and what they are called in the engine."""


def lower(expression: Expression, names: Names) -> Scalar:
    """Lower an expression."""
    match expression:
        case Column(name=column):
            return name(names[column])
        case Literal(value=value, kind=kind):
            return constant(value, kind)
        case Call(function=called, arguments=arguments):
            return LOWERED[called](expression, [lower(argument, names) for argument in arguments])


def match_types(left: Expression, right: Expression, sides: tuple[Names, Names]) -> tuple[Scalar, Scalar]:
    """Lower two expressions over two relations to one type of the engine, to be compared."""
    nodes = [lower(one, names) for one, names in zip((left, right), sides, strict=True)]
    first, second = _level(nodes, [left.kind, right.kind])
    return first, second


def once(arguments: Sequence[Scalar], body: Callable[[Sequence[Scalar]], Scalar]) -> Let:
    """Let a body look at its arguments as often as it likes; each is computed once where it is long."""
    return Let(tuple(arguments), body([Bound(place) for place in range(len(arguments))]))


def _level(nodes: Sequence[Scalar], kinds: Sequence[Kind], *also: Kind) -> list[Scalar]:
    """Cast integers to the widest type among them; leave anything else as it is."""
    if kinds[0].type is not Type.INTEGER or not any(kind.wide for kind in (*kinds, *also)):
        return list(nodes)
    return [node if kind.wide else cast(node, "int128") for node, kind in zip(nodes, kinds, strict=True)]


def _kinds(call: Call) -> list[Kind]:
    return [argument.kind for argument in call.arguments]


Builder = Callable[[Call, list[Scalar]], Scalar]


def _connective(operator: Operator) -> Builder:
    return lambda call, nodes: infix(operator, *nodes)


def _comparison(operator: Operator) -> Builder:
    def build(call: Call, nodes: list[Scalar]) -> Scalar:
        return infix(operator, *_level(nodes, _kinds(call)))

    return build


def _in(call: Call, nodes: list[Scalar]) -> Scalar:
    value, *choices = _level(nodes, _kinds(call))
    return among(value, choices)


def _arithmetic(operator: Operator) -> Builder:
    def build(call: Call, nodes: list[Scalar]) -> Scalar:
        if call.kind.type is Type.REAL:
            return Guarded(infix(operator, *nodes))
        return _narrow(infix(operator, *_level(nodes, _kinds(call), call.kind)), call)

    return build


def _narrow(node: Scalar, call: Call) -> Scalar:
    """Put a result that fits 64 bits, and was computed in 128, into 64."""
    narrow = call.kind.type is Type.INTEGER and not call.kind.wide
    return fit(node, "int64") if narrow and any(argument.kind.wide for argument in call.arguments) else node


def _whole_division(operator: Operator) -> Builder:
    """Divide; by 0 it is NULL. The least of 64 bits by −1 would raise, also for the remainder: that is done in 128."""

    def build(call: Call, nodes: list[Scalar]) -> Scalar:
        left, right = (cast(node, "int128") for node in nodes)
        if not any(kind.wide or kind.range[0] == -(1 << 63) for kind in _kinds(call)) and not call.kind.wide:
            left, right = nodes
        divided = infix(operator, left, _nonzero(right))
        return divided if call.kind.wide else fit(divided, "int64")

    return build


def _nonzero(node: Scalar) -> Scalar:
    return once([node], lambda it: case((infix("<>", it[0], number(0)), it[0])))


def _unary(build_one: Callable[[Scalar], Scalar]) -> Builder:
    """Build an operation on a number: on whole ones in the wider of the two types."""

    def build(call: Call, nodes: list[Scalar]) -> Scalar:
        return _narrow(build_one(_level(nodes, _kinds(call), call.kind)[0]), call)

    return build


def _extreme(name_: Function) -> Builder:
    """Build an extreme. The engine leaves missing arguments out; ours make the result missing."""

    def build(call: Call, nodes: list[Scalar]) -> Scalar:
        def body(it: Sequence[Scalar]) -> Scalar:
            return case((infix("and", *(present(one) for one in it)), function(name_, *it)))

        return _narrow(once(_level(nodes, _kinds(call), call.kind), body), call)

    return build


def _case(call: Call, nodes: list[Scalar]) -> Scalar:
    *pairs, otherwise = nodes
    kinds = _kinds(call)
    values = _level([*pairs[1::2], otherwise], [*kinds[1:-1:2], kinds[-1]], call.kind)
    return case(*zip(pairs[::2], values[:-1], strict=True), otherwise=values[-1])


def _coalesce(call: Call, nodes: list[Scalar]) -> Scalar:
    return function("coalesce", *_level(nodes, _kinds(call), call.kind))


def _nullif(call: Call, nodes: list[Scalar]) -> Scalar:
    def body(it: Sequence[Scalar]) -> Scalar:
        return case((infix("=", *it), NULL), otherwise=it[0])

    return _narrow(once(_level(nodes, _kinds(call)), body), call)


def _plain(name_: Function, to: Storage | None = None) -> Builder:
    def build(call: Call, nodes: list[Scalar]) -> Scalar:
        called = function(name_, *nodes)
        return fit(called, to) if to else called

    return build


def _round_by(name_: Function) -> Builder:
    return lambda call, nodes: try_cast(function(name_, *nodes), "int64")


def _real(name_: Function) -> Builder:
    def build(call: Call, nodes: list[Scalar]) -> Scalar:
        return Guarded(function(name_, *nodes))

    return build


LOWERED: Mapping[str, Builder] = {
    "and": _connective("and"),
    "or": _connective("or"),
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
    "negate": _unary(lambda node: Prefixed("-", node)),
    "abs": _unary(lambda node: function("abs", node)),
    "least": _extreme("least"),
    "greatest": _extreme("greatest"),
    "to_real": lambda call, nodes: cast(nodes[0], "real"),
    "to_integer": lambda call, nodes: try_cast(nodes[0], "int64"),
    "floor": _round_by("floor"),
    "ceil": _round_by("ceil"),
    "sqrt": _real("sqrt"),
    "ln": _real("ln"),
    "exp": _real("exp"),
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "lower": _plain("lower"),
    "upper": _plain("upper"),
    "trim": _plain("trim"),
    "length": _plain("length", "int64"),
    "like": lambda call, nodes: infix("like", *nodes),
    "starts_with": _plain("starts_with"),
    "substring": _plain("substring"),
    "year": _plain("year", "int64"),
    "quarter": _plain("quarter", "int64"),
    "month": _plain("month", "int64"),
    "day": _plain("day", "int64"),
    "hour": _plain("hour", "int64"),
    "minute": _plain("minute", "int64"),
    "weekday": _plain("weekday", "int64"),
    "start_of_year": _plain("start_of_year", "date"),
    "start_of_quarter": _plain("start_of_quarter", "date"),
    "start_of_month": _plain("start_of_month", "date"),
    "start_of_week": _plain("start_of_week", "date"),
    "start_of_day": _plain("start_of_day", "date"),
    "days_between": _plain("days_between"),
}
"""Every function of ``query.functions``. LIKE has no escape character; case is changed character by character."""
