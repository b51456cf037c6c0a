"""Columns and values for questions that are written in Python: each is a piece of SQL, quoted where it must be.

A term knows nothing about data. What it means, and whether it may be asked, is decided where its SQL is read, so that a
question in Python and the same question in SQL have one plan.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

from sqlglot.dialects.duckdb import DuckDB

from hubbub.errors import ParameterError

Plain = bool | int | float | str | date | datetime | None
_SIMPLE = re.compile("[a-z_][a-z0-9_]*")
_CHAINED = frozenset({"AND", "OR", "+", "*"})


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A value of a row, or of a group. Operators make new terms; ``&``, ``|`` and ``~`` are AND, OR and NOT."""

    text: str
    chain: str = ""
    """The operator between its parts, where more of them may be added without brackets."""

    def __bool__(self) -> bool:
        raise ParameterError("condition", "put together with &, | and ~, not with and, or, not", self.text)

    def __add__(self, other: "Operand") -> "Term":
        return _infix("+", self, other)

    def __radd__(self, other: "Operand") -> "Term":
        return _infix("+", other, self)

    def __sub__(self, other: "Operand") -> "Term":
        return _infix("-", self, other)

    def __rsub__(self, other: "Operand") -> "Term":
        return _infix("-", other, self)

    def __mul__(self, other: "Operand") -> "Term":
        return _infix("*", self, other)

    def __rmul__(self, other: "Operand") -> "Term":
        return _infix("*", other, self)

    def __truediv__(self, other: "Operand") -> "Term":
        return _infix("/", self, other)

    def __rtruediv__(self, other: "Operand") -> "Term":
        return _infix("/", other, self)

    def __floordiv__(self, other: "Operand") -> "Term":
        return _infix("//", self, other)

    def __mod__(self, other: "Operand") -> "Term":
        return _infix("%", self, other)

    def __neg__(self) -> "Term":
        return Term(f"(- {bracket(self)})")

    def __eq__(self, other: object) -> "Term":  # type: ignore[override]
        return _infix("=", self, other)

    def __ne__(self, other: object) -> "Term":  # type: ignore[override]
        return _infix("<>", self, other)

    def __lt__(self, other: "Operand") -> "Term":
        return _infix("<", self, other)

    def __le__(self, other: "Operand") -> "Term":
        return _infix("<=", self, other)

    def __gt__(self, other: "Operand") -> "Term":
        return _infix(">", self, other)

    def __ge__(self, other: "Operand") -> "Term":
        return _infix(">=", self, other)

    def __and__(self, other: "Operand") -> "Term":
        return _infix("AND", self, other)

    def __or__(self, other: "Operand") -> "Term":
        return _infix("OR", self, other)

    def __invert__(self) -> "Term":
        return Term(f"(NOT {bracket(self)})")

    __hash__ = None  # type: ignore[assignment]

    def is_in(self, values: Iterable["Operand"]) -> "Term":
        """Test whether it is one of these values."""
        listed = ", ".join(bracket(value) for value in values)
        if not listed:
            raise ParameterError("values", "at least one", ())
        return Term(f"({bracket(self)} IN ({listed}))")

    def between(self, low: "Operand", high: "Operand") -> "Term":
        """Test whether it lies between two values, ends included."""
        return (self >= low) & (self <= high)

    def is_null(self) -> "Term":
        """Test whether it is missing."""
        return Term(f"({bracket(self)} IS NULL)")

    def like(self, pattern: str) -> "Term":
        """Test whether text matches a pattern with % and _."""
        return _infix("LIKE", self, pattern)

    def call(self, function: str, *more: "Operand") -> "Term":
        """A scalar function of SQL with this as its first argument: ``col("cost").call("round", 1)``."""
        return function_of(function, self, *more)


Operand = Term | Plain


def col(name: str, *, of: str | None = None) -> Term:
    """A column by its name; ``of`` names its table, where two have it."""
    return Term(quote(name) if of is None else f"{quote(of)}.{quote(name)}")


def when(condition: Term, value: "Operand", *more: "Operand", otherwise: "Operand" = None) -> Term:
    """CASE: ``when(cost > 100, "dear", cost > 10, "fair", otherwise="cheap")``."""
    pairs = [condition, value, *more]
    if len(pairs) % 2:
        raise ParameterError("when", "conditions and values in turn", len(pairs))
    branches = " ".join(
        f"WHEN {bracket(pairs[place])} THEN {bracket(pairs[place + 1])}" for place in range(0, len(pairs), 2)
    )
    return Term(f"CASE {branches} ELSE {bracket(otherwise)} END")


def function_of(function: str, *arguments: "Operand") -> Term:
    """A function of SQL by its name."""
    if not function.isidentifier() or not function.isascii():
        raise ParameterError("function", "the name of a function", function)
    return Term(f"{function}({', '.join(bracket(one) for one in arguments)})")


def quote(name: str) -> str:
    """A name as SQL writes it: in quotes only where it needs them, so that one question is written in one way."""
    if not isinstance(name, str) or not name:
        raise ParameterError("name", "text", name)
    if _SIMPLE.fullmatch(name) and name.upper() not in DuckDB.Tokenizer.KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def bracket(operand: object) -> str:
    """A term or a plain value, safe to stand beside an operator."""
    match operand:
        case Term(chain=""):
            return operand.text
        case Term():
            return f"({operand.text})"
        case None:
            return "NULL"
        case bool():
            return "TRUE" if operand else "FALSE"
        case int():
            return str(operand) if operand >= 0 else f"({operand})"
        case float() if math.isfinite(operand):
            return repr(operand) if operand >= 0 else f"({operand!r})"
        case str():
            return "'" + operand.replace("'", "''") + "'"
        case datetime() if operand.tzinfo is None:
            return f"CAST('{operand.isoformat(sep=' ')}' AS TIMESTAMP)"
        case date() if not isinstance(operand, datetime):
            return f"CAST('{operand.isoformat()}' AS DATE)"
    raise ParameterError("value", "a term, a number, text, a date, true, false or None", operand)


def _infix(operator: str, left: object, right: object) -> Term:
    if operator in _CHAINED and isinstance(left, Term) and left.chain == operator:
        return Term(f"{left.text} {operator} {bracket(right)}", operator)
    text = f"{bracket(left)} {operator} {bracket(right)}"
    return Term(text, operator) if operator in _CHAINED else Term(f"({text})")
