"""Kinds of values, known before any value is read: the type, missing values, and the range.

Every expression is total because of two rules that hold at every node. A REAL is finite: what would be NaN or infinite
is missing instead. An INTEGER stays within its stated range, which is computed from its parts, and an expression whose
range does not fit 128 bits is refused. So nothing that one person's row holds can raise an error in the engine.
"""

from dataclasses import dataclass
from enum import StrEnum

from hubbub.errors import ParameterError


class Type(StrEnum):
    """Six types are all there is."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"


INT64 = (-(1 << 63), (1 << 63) - 1)
INT128 = (-(1 << 127) + 1, (1 << 127) - 1)
"""DuckDB's HUGEINT, without its lowest value, whose negation would not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The type of an expression, and the facts known about its values. ``low`` and ``high`` are for integers alone."""

    type: Type
    nullable: bool = True
    low: int | None = None
    high: int | None = None

    def __post_init__(self) -> None:
        if (self.low is None) is not (self.type is not Type.INTEGER) or (self.low is None) is not (self.high is None):
            raise ParameterError("range", "given for integers, and for nothing else", self)
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ParameterError("range", "in order, the least value first", (self.low, self.high))

    @property
    def range(self) -> tuple[int, int]:
        """The least and greatest value of an integer."""
        if self.low is None or self.high is None:
            raise ParameterError("kind", "an integer", self.type)
        return self.low, self.high

    @property
    def wide(self) -> bool:
        """True if an integer needs 128 bits."""
        low, high = self.range
        return low < INT64[0] or high > INT64[1]

    def __str__(self) -> str:
        return self.type.value


def integer(low: int, high: int, *, nullable: bool = True) -> Kind:
    """An integer within a range."""
    return Kind(type=Type.INTEGER, nullable=nullable, low=low, high=high)


def of(type_: Type, *, nullable: bool = True) -> Kind:
    """A type; an integer of 64 bits."""
    if type_ is Type.INTEGER:
        return integer(*INT64, nullable=nullable)
    return Kind(type=type_, nullable=nullable)
