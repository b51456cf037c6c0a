"""The shape of a relation from above: its columns, their kinds, and public facts about their values.

Bounds are where values are clamped when they are added up, so bounds that do not hold cost accuracy and never privacy.
Whether a column is the unit itself decides who owns rows: only a column that is passed on as it is keeps that.

WHERE cost > 0 leaves no row without a cost, so that AVG(cost) is over all rows, and one noisy count serves both.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, Kind, Type, integer
from hubbub.policy.tables import Policy, Table
from hubbub.policy.tables import TableColumn as Declared
from hubbub.query.check.bounds import Interval, interval_of
from hubbub.query.check.keys import conjuncts
from hubbub.query.expression import Call, Column, Expression
from hubbub.query.ops import (
    Cap,
    Filter,
    JoinKind,
    JoinOwn,
    JoinPublic,
    Match,
    Project,
    Ranking,
    Reduce,
    Relation,
    RelationUnion,
    Scan,
    Window,
    below,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """One column."""

    kind: Kind
    bounds: Interval | None = None
    """Where its values are clamped when they are added up."""
    step: Fraction | None = None
    """The grid that they are put on then."""
    unit: bool = False
    """Whether it names the unit that the row belongs to, in every row that has a value here."""
    optional: bool = False
    """Whether rows may lack it although their table has it: an outer join kept them."""
    leads: frozenset[tuple[str, str]] = frozenset()
    """Tables, each with a key that was seen to be unique: a value here is that of a row there, of the same unit."""

    @property
    def tells_unit(self) -> bool:
        """Return whether all rows with equal values here belong to one unit."""
        return bool(self.leads) and not self.kind.nullable and not self.optional


def facts_of_declaration(
    column: Declared, *, unit: bool, leads: frozenset[tuple[str, str]] = frozenset()
) -> ColumnFacts:
    """Return the facts that the owner declared about a column."""
    return ColumnFacts(kind=column.kind, bounds=column.clamp, step=column.step, unit=unit, leads=leads)


def leads_of(table: Table, column: str, policy: Policy) -> frozenset[tuple[str, str]]:
    """Keys of which a column's values are: that which it is itself, and that by which rows find their unit.

    Privacy:
        Claim: rows whose columns lead to the same key, and have the same value, belong to the same unit.
        Proof: every row that is read has found its unit. If it did so by this column, the row there with this key has
            the same unit; if the column is the key, that row is itself. The key is unique, so it is one row for both.
            A column that is passed on stays beside the unit of its row, as every operation keeps the unit.
        Needs: keys that the owner's check has seen to be unique (policy.paths).
        Ref: SOUNDNESS, ruling 7.
    """
    own = {(table.name, column)} if table.unit is not None and policy.has_key(table.name, column) else set()
    steps = {(step.table, step.key) for step in table.path[:1] if step.column == column}
    return frozenset(own | {one for one in steps if policy.has_key(*one)})


def missing_too(facts: ColumnFacts) -> ColumnFacts:
    """The same column where an outer join may have left it out."""
    return replace(facts, kind=replace(facts.kind, nullable=True), optional=True)


def facts_of_expression(
    expression: Expression, below: Mapping[str, ColumnFacts] | Callable[[str], ColumnFacts]
) -> ColumnFacts:
    """Derive the facts of a new column: an old column's if it is one, else what follows from how it is computed."""
    found = below.__getitem__ if isinstance(below, Mapping) else below
    if isinstance(expression, Column):
        return replace(found(expression.name), kind=expression.kind)
    return ColumnFacts(kind=expression.kind, bounds=interval_of(expression, lambda name: found(name).bounds))


PLACE = integer(1, INT64[1], nullable=False)
"""A row's place among others."""

Shape = dict[str, Kind]


def private(op: Relation) -> bool:
    """Return whether each row belongs to a unit."""
    return op.unit is not None if isinstance(op, Scan) else private(below(op)[0])


def shape(op: Relation) -> Shape:
    """The columns of a relation, in order, with what their values can be."""
    match op:
        case Scan(columns=columns):
            return {column.name: column.kind for column in columns}
        case Filter() | Cap() | Match():
            return shape(op.input)
        case Project(columns=made):
            return {name: expression.kind for name, expression in made}
        case JoinPublic(input=rows, public=other, kind=kind) | JoinOwn(input=rows, other=other, kind=kind):
            left, right = shape(rows), shape(other)
            if kind is JoinKind.FULL:
                left = _optional(left)
            return {**left, **(right if kind is JoinKind.INNER else _optional(right))}
        case Reduce(keys=keys, columns=reduced):
            return {name: key.kind for name, key in keys} | {one.name: one.kind for one in reduced}
        case Window(input=rows, name=name):
            return shape(rows) | {name: window_kind(op)}
        case RelationUnion(inputs=inputs):
            return _together([shape(one) for one in inputs])


def window_kind(op: Window) -> Kind:
    """A place, or the value of another row, which may not be there."""
    if op.ranking not in {Ranking.LAG, Ranking.LEAD}:
        return PLACE
    if op.argument is None:
        raise ParameterError("argument", f"given for {op.ranking}", None)
    return replace(op.argument.kind, nullable=True)


def _optional(columns: Shape) -> Shape:
    return {name: replace(kind, nullable=True) for name, kind in columns.items()}


def _together(shapes: list[Shape]) -> Shape:
    if any(list(one) != list(shapes[0]) for one in shapes):
        raise ParameterError("inputs", "relations with the same columns", [list(one) for one in shapes])
    return {name: hull([one[name] for one in shapes]) for name in shapes[0]}


def hull(kinds: list[Kind]) -> Kind:
    """The kind that holds the values of several, which are of one type."""
    if any(kind.type is not kinds[0].type for kind in kinds):
        raise ParameterError("kinds", "of one type", [str(kind) for kind in kinds])
    nullable = any(kind.nullable for kind in kinds)
    if kinds[0].type is not Type.INTEGER:
        return replace(kinds[0], nullable=nullable)
    ranges = [kind.range for kind in kinds]
    return integer(min(low for low, _ in ranges), max(high for _, high in ranges), nullable=nullable)


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
