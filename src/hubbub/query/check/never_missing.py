"""Values that no row lacks, because a condition lets only rows through that have them.

WHERE cost > 0 leaves no row without a cost, so that AVG(cost) is over all rows, and one noisy count serves both.
"""

from collections.abc import Iterator

from hubbub.query.check.keys import conjuncts
from hubbub.query.expression import Call, Expression
from hubbub.query.ops import Cap, Filter, Match, Relation, Window

_STRICT = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "in", "not", "like", "starts_with"}
    | {"add", "subtract", "multiply", "divide", "negate", "abs", "to_real"}
)
"""Missing wherever one of their arguments is: so where one of them is there, all its arguments are."""


def always_there(value: Expression, relation: Relation) -> bool:
    """Return whether no row lacks a value: it is never missing, or rows without it are filtered out."""
    return not value.kind.nullable or any(value in _present_if_true(one) for one in _conditions(relation))


def _conditions(relation: Relation) -> Iterator[Expression]:
    """Yield conditions that hold for all rows, as long as columns below are the same ones."""
    while isinstance(relation, Filter | Cap | Match | Window):
        if isinstance(relation, Filter):
            yield from conjuncts(relation.condition)
        relation = relation.input


def _present_if_true(condition: Expression) -> Iterator[Expression]:
    """Yield the values that are not missing where a condition is true."""
    match condition:
        case Call(function="not", arguments=(Call(function="is_null", arguments=(value,)),)):
            return _present_if_present(value)
        case _:
            return _present_if_present(condition)


def _present_if_present(value: Expression) -> Iterator[Expression]:
    """Yield the values that are not missing where a value is not, itself included."""
    yield value
    if isinstance(value, Call) and value.function in _STRICT:
        for argument in value.arguments:
            yield from _present_if_present(argument)
