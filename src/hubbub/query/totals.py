"""Sums of whole numbers over rows that stay where they are: what learning asks of an engine.

A ``Number`` says how to compute a real of one row: it looks at that row's columns and its weight and at nothing else,
and no value makes it fail. Operations are those of 64-bit floats, one by one and in the order that is written, so that
every engine, and numpy, gets the same bits. ``Totals`` adds up whole numbers, in the place that a row's code says.

Privacy:
    Claim: where the values of a row, at weight 1, have norm at most B over all families of codes, and those at weight w
        have norm at most w·B, adding or removing a unit moves the totals by at most ``most``·B in that norm.
    Proof: a unit's rows have the weight 1 if there are at most ``most`` of them, else most/rows rounded down, so that
        its weights sum to at most ``most``. Rows of other units keep their weights. Sums of whole numbers are exact.
    Needs: rows of a private relation, each of one unit (query.ops); for ``single``, that the owner's check saw that a
        unit has one row at most; values whose norms whoever writes them has bounded.
    Ref: SOUNDNESS 1, 29.
"""

from dataclasses import dataclass
from typing import Final

from hubbub.errors import ParameterError
from hubbub.query.expression import Expression
from hubbub.query.ops import Relation

SHARED: Final = 1 - 2.0**-40
"""A shared weight is rounded down by this much: a unit's weights never sum to more than their number."""

FUNCTIONS: Final = frozenset(
    {"column", "weight", "constant", "known", "add", "subtract", "multiply", "divide", "least", "greatest", "truncate"}
    | {"floor", "sqrt", "log2", "asinh", "sign", "above", "equal", "pick", "place"}
)
"""All that a Number can do. ``known(x, c)`` is c where x is missing; ``above(a, b)`` is 1 where a > b, else 0; ``pick``
takes the entry of a list of constants; ``place(m, a, b, …)`` says which of a, b, … is the first that equals m."""


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A real of one row. Equal only to itself, so that what is used twice is computed once."""

    function: str
    arguments: "tuple[Number, ...]" = ()
    constants: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise ParameterError("function", "one that a Number has", self.function)

    def __add__(self, other: "Number | float") -> "Number":
        return Number("add", (self, number(other)))

    def __sub__(self, other: "Number | float") -> "Number":
        return Number("subtract", (self, number(other)))

    def __mul__(self, other: "Number | float") -> "Number":
        return Number("multiply", (self, number(other)))

    def __truediv__(self, other: "Number | float") -> "Number":
        return Number("divide", (self, number(other)))

    def above(self, other: "Number | float") -> "Number":
        """1 where it is greater, else 0."""
        return Number("above", (self, number(other)))

    def equal(self, other: "Number | float") -> "Number":
        """1 where it is the same, else 0."""
        return Number("equal", (self, number(other)))

    def clipped(self, low: float, high: float) -> "Number":
        """Within two constants."""
        return Number("least", (Number("greatest", (self, number(low))), number(high)))

    def known(self, otherwise: float) -> "Number":
        """A constant where it is missing."""
        return Number("known", (self, number(otherwise)))

    def truncated(self) -> "Number":
        """Towards 0."""
        return Number("truncate", (self,))

    def floor(self) -> "Number":
        """Down."""
        return Number("floor", (self,))

    def sqrt(self) -> "Number":
        """Of what is never below 0."""
        return Number("sqrt", (self,))

    def log2(self) -> "Number":
        """Of what is always above 0."""
        return Number("log2", (self,))

    def asinh(self) -> "Number":
        """The inverse of the hyperbolic sine."""
        return Number("asinh", (self,))

    def sign(self) -> "Number":
        """−1, 0 or 1."""
        return Number("sign", (self,))

    def picks(self, entries: "tuple[float, ...]") -> "Number":
        """The entry at this place, which is a whole number from 0 on and below their number."""
        return Number("pick", (self,), entries)


WEIGHT: Final = Number("weight")
"""What the row counts for: at most 1."""


def number(value: "Number | float") -> Number:
    """A constant, or what is a Number already."""
    return value if isinstance(value, Number) else Number("constant", (), (float(value),))


def column(place: int) -> Number:
    """A column of the row by its place among those of ``Totals``; it may be missing."""
    return Number("column", (), (float(place),))


def added(numbers: "list[Number]") -> Number:
    """One after the other, from the first on."""
    total = numbers[0]
    for one in numbers[1:]:
        total = total + one
    return total


def least(numbers: "list[Number]") -> Number:
    """The least of several."""
    return numbers[0] if len(numbers) == 1 else Number("least", tuple(numbers))


def place_of(wanted: Number, among: "list[Number]") -> Number:
    """Which of several is the first that equals this; one of them does."""
    return Number("place", (wanted, *among))


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """In which place a row's values are added up: a whole number from 0 to ``size``, which itself is nowhere."""

    number: Number
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """For each family of codes, or for all rows together, the sums of some whole numbers of each row."""

    input: Relation
    columns: tuple[Expression, ...]
    """Reals, which may be missing."""
    values: tuple[Number, ...]
    """Whole numbers below 2^53 in size, never missing; none of them: rows are counted, each as 1."""
    codes: tuple[Code, ...] = ()
    """Families: a row is added up once in each. None: all rows go to one place."""
    most: int = 1
    """A unit counts for at most so many rows."""
    single: bool = False
    """Whether each unit is known to have at most one row, so that weights are 1."""

    def __post_init__(self) -> None:
        if not self.values and not self.single:
            raise ParameterError("values", "given, where units may have several rows", ())
