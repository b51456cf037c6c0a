"""Sums of whole numbers over rows that stay where they are: the one language in which estimators ask.

A ``Number`` says how to compute a real of one row, or several reals side by side: it looks at that row's columns and
its weight and at nothing else, and no value makes it fail. Operations are those of 64-bit floats, one by one and in the
order that is written, so that every engine gets the same bits. ``Totals`` adds up whole numbers, in the place that a
row's code says. Where it runs is the engine's business: arrays are evaluated in blocks, for which numbers side by side
are one operation; a database is told every number by itself (``query.scalar_numbers``).

Privacy:
    Claim: where the values of a row, at weight 1, have norm at most B over all families of codes, and those at weight w
        have norm at most w·B, adding or removing a unit moves the totals by at most ``most``·B in that norm.
    Proof: a unit's rows have the weight 1 if there are at most ``most`` of them, else most/rows rounded down, so that
        its weights sum to at most ``most``. Rows of other units keep their weights. Sums of whole numbers are exact.
    Needs: rows of a private relation, each of one unit (query.ops); for ``single``, that the owner's check saw that a
        unit has one row at most; values whose norms whoever writes them has bounded.
    Ref: SOUNDNESS 1, 29.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hubbub.errors import ParameterError
from hubbub.query.expression import Expression
from hubbub.query.ops import Relation

SHARED: Final = 1 - 2.0**-40
"""A shared weight is rounded down by this much: a unit's weights never sum to more than their number."""

FUNCTIONS: Final = frozenset(
    {"column", "weight", "constant", "known", "add", "subtract", "multiply", "divide", "least", "greatest", "truncate"}
    | {"floor", "sqrt", "log2", "asinh", "sign", "above", "equal", "pick", "place"}
)
"""What an engine has to know, of single numbers. ``known(x, c)`` is c where x is missing; ``above(a, b)`` is 1 where
a > b, else 0; ``pick`` takes the entry of a list of constants; ``place(m, a, b, …)`` says which of a, b, … is the first
that equals m."""
WIDE: Final = frozenset(
    {"columns", "constants", "beside", "part", "added", "clip", "known_by", "exponent", "shorten", "nearest"}
    | {"project"}
)
"""What is made of those, and what an engine may do at once (``query.scalar_numbers`` says what each means)."""


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A real of one row, or ``width`` of them. Equal only to itself, so that what is used twice is computed once."""

    function: str
    arguments: "tuple[Number, ...]" = ()
    constants: tuple[float, ...] = ()
    width: int | None = None
    """How many numbers stand side by side; None for a single one."""

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS and self.function not in WIDE:
            raise ParameterError("function", "one that a Number has", self.function)

    def _with(self, function: str, *others: "Number | float | Sequence[float]") -> "Number":
        return combine(function, self, *others)

    def __add__(self, other: "Number | float | Sequence[float]") -> "Number":
        return self._with("add", other)

    def __sub__(self, other: "Number | float | Sequence[float]") -> "Number":
        return self._with("subtract", other)

    def __mul__(self, other: "Number | float | Sequence[float]") -> "Number":
        return self._with("multiply", other)

    def __truediv__(self, other: "Number | float | Sequence[float]") -> "Number":
        return self._with("divide", other)

    def __getitem__(self, place: "int | slice") -> "Number":
        """Take one of the numbers side by side, or some of them."""
        assert self.width is not None
        if isinstance(place, slice):
            start, stop, _ = place.indices(self.width)
            return Number("part", (self,), (float(start), float(stop)), stop - start)
        (at,) = range(self.width)[place : place + 1 or None]
        return Number("part", (self,), (float(at), float(at + 1)))

    def above(self, other: "Number | float") -> "Number":
        """Return 1 where it is greater, else 0."""
        return self._with("above", other)

    def equal(self, other: "Number | float") -> "Number":
        """Return 1 where it is the same, else 0."""
        return self._with("equal", other)

    def clip(self, low: "float | Sequence[float]", high: "float | Sequence[float]") -> "Number":
        """Keep it within constants."""
        if isinstance(low, float) and isinstance(high, float):
            return Number("clip", (self,), (low, high), self.width)
        return self._with("greatest", low)._with("least", high)

    def fill_missing(self, otherwise: "float | Sequence[float]") -> "Number":
        """Put a constant where it is missing."""
        return self._with("known", otherwise)

    def truncate(self) -> "Number":
        """Cut it towards 0."""
        return self._with("truncate")

    def floor(self) -> "Number":
        """Round it down."""
        return self._with("floor")

    def sqrt(self) -> "Number":
        """Take the root of what is never below 0."""
        return self._with("sqrt")

    def log2(self) -> "Number":
        """Take the logarithm of what is always above 0."""
        return self._with("log2")

    def asinh(self) -> "Number":
        """Take the inverse of the hyperbolic sine."""
        return self._with("asinh")

    def sign(self) -> "Number":
        """Return −1, 0 or 1."""
        return self._with("sign")

    def pick(self, entries: Sequence[float]) -> "Number":
        """Take the entry at this place, which is a whole number from 0 on and below their number."""
        return Number("pick", (self,), tuple(entries), self.width)

    def pick_row(self, rows: Sequence[Sequence[float]]) -> "Number":
        """Take the row at this place of a matrix, as numbers side by side."""
        return Number(
            "pick", (self,), tuple(one for entries in zip(*rows, strict=True) for one in entries), len(rows[0])
        )

    def known_by(self, other: "Number", otherwise: float) -> "Number":
        """Put a constant where another number is missing."""
        return Number("known_by", (self, other), (otherwise,), self.width)

    def exponent(self, least: int, most: int) -> "Number":
        """Return e with 2^(e − 1) <= |x| < 2^e, between two whole numbers; the least of 0. It is never missing."""
        return Number("exponent", (self,), (float(least), float(most)), self.width)

    def added(self) -> "Number":
        """Add up what stands side by side, from the first number on."""
        return Number("added", (self,))

    def shorten(self, *, bits: int, weight: "Number | None" = None) -> "Number":
        """Return whole numbers: 2^bits times a row of length at most 1, longer ones shortened, times √weight.

        The sum of their squares is at most weight·2^2bits, whatever roundings did: where it would be more, every number
        is moved by 1 towards 0.
        """
        return Number("shorten", (self,) if weight is None else (self, weight), (float(1 << bits),), self.width)

    def nearest(self, points: Sequence[Sequence[float]]) -> "Number":
        """Return the place of the first nearest point, where all are whole numbers of which 53 bits hold products."""
        return Number("nearest", (self,), tuple(one for point in points for one in point))

    def project(self, matrix: Sequence[Sequence[float]]) -> "Number":
        """Multiply by a matrix with one row for each number; products and sums must be exact in any order."""
        return Number("project", (self,), tuple(one for row in matrix for one in row), len(matrix[0]))


WEIGHT: Final = Number("weight")
"""What the row counts for: at most 1."""


def combine(function: str, *parts: "Number | float | Sequence[float]") -> Number:
    """Apply a function to single numbers, or to those that stand side by side, one by one."""
    given = tuple(number(part) for part in parts)
    (width,) = {part.width for part in given} - {None} or {None}
    return Number(function, given, (), width)


def number(value: "Number | float | Sequence[float]") -> Number:
    """Return a constant, constants side by side, or what is a Number already."""
    if isinstance(value, Number):
        return value
    if isinstance(value, float | int):
        return Number("constant", (), (float(value),))
    held = tuple(float(one) for one in value)
    return Number("constants", (), held, len(held))


def column(place: int) -> Number:
    """Return a column of the row by its place among those of ``Totals``; it may be missing."""
    return Number("column", (), (float(place),))


def columns(first: int, width: int) -> Number:
    """Return some columns side by side, from a place on."""
    return Number("columns", (), (float(first),), width)


def beside(*parts: "Number | float") -> Number:
    """Put numbers side by side."""
    given = tuple(number(part) for part in parts)
    return Number("beside", given, (), sum(1 if part.width is None else part.width for part in given))


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """In which place a row's values are added up: a whole number from 0 to ``size``, which itself is nowhere.

    Numbers side by side are one family of places each.
    """

    number: Number
    size: int

    @property
    def families(self) -> int:
        return 1 if self.number.width is None else self.number.width


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsRequest:
    """For each family of codes, or for all rows together, the sums of some whole numbers of each row."""

    values: Number | None = None
    """Whole numbers of at most 2^bits in size, never missing; None of them: rows are counted, each as 1."""
    codes: tuple[Code, ...] = ()
    """A row is added up once in each family. None: all rows go to one place."""
    bits: int = 52
    products: bool = False
    """Whether the sums are those of all products of two values, as a matrix; without codes."""

    @property
    def sizes(self) -> list[int]:
        """The number of places of each family; 1 for all rows together."""
        return [code.size for code in self.codes for _ in range(code.families)] or [1]

    @property
    def width(self) -> int:
        return 1 if self.values is None or self.values.width is None else self.values.width

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """The shape of each array that an engine returns."""
        return [(self.width, self.width)] if self.products else [(size, self.width) for size in self.sizes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over the rows of a relation, to which no unit adds more than ``most`` rows do."""

    input: Relation
    columns: tuple[Expression, ...]
    """Reals, which may be missing."""
    sums: SumsRequest
    most: int = 1
    """A unit counts for at most so many rows."""
    single: bool = False
    """Whether each unit is known to have at most one row, so that weights are 1."""

    def __post_init__(self) -> None:
        check_weighed(self.sums, single=self.single)


def check_weighed(sums: SumsRequest, *, single: bool) -> None:
    """Refuse to count rows where a unit may have several: each of them has a weight to be added up."""
    if sums.values is None and not single:
        raise ParameterError("values", "given, where units may have several rows", ())


Exact = list[Any]
"""One array of exact whole numbers for each family."""
