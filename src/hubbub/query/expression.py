"""Scalar expressions: a column, a literal, or one of our functions. Nothing else can be said about a row."""

from dataclasses import dataclass
from datetime import date, datetime

from hubbub.policy.kinds import Kind, Type, integer

Value = bool | int | float | str | date | datetime | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the relation below."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant from the question."""

    value: Value
    kind: Kind


@dataclass(frozen=True, slots=True)
class Call:
    """One of the functions of ``query.functions``, on arguments that it has been checked for."""

    function: str
    arguments: "tuple[Expression, ...]"
    kind: Kind


Expression = Column | Literal | Call


def literal(value: Value, type_: Type | None = None) -> Literal:
    """A constant with its own kind; NULL needs a type."""
    match value:
        case None:
            kind = integer(0, 0) if type_ in {None, Type.INTEGER} else Kind(type=type_ or Type.INTEGER)
        case bool():
            kind = Kind(type=Type.BOOLEAN, nullable=False)
        case int():
            kind = integer(value, value, nullable=False)
        case float():
            kind = Kind(type=Type.REAL, nullable=False)
        case str():
            kind = Kind(type=Type.TEXT, nullable=False)
        case datetime():
            kind = Kind(type=Type.TIMESTAMP, nullable=False)
        case date():
            kind = Kind(type=Type.DATE, nullable=False)
    return Literal(value, kind)


def columns_of(expression: Expression) -> frozenset[str]:
    """The columns that an expression looks at."""
    match expression:
        case Column(name=name):
            return frozenset({name})
        case Literal():
            return frozenset()
        case Call(arguments=arguments):
            return frozenset().union(*(columns_of(argument) for argument in arguments))
