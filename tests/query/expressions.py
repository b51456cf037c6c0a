"""Random kinds, values and expressions of every function.

Everything is made from one seed, so that a case can be made again from the number that a failing test prints.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from hubbub.errors import MayOverflow, TypeMisfit
from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer, of
from hubbub.query.expression import Call, Column, Expression, Literal, literal
from hubbub.query.functions import FUNCTIONS, call
from hubbub.testing.odd_values import GOOD, POISON

TIMES = int(os.environ.get("HUBBUB_TORTURE", "1"))
"""How many times more cases than usual; ``make torture`` raises it."""

CALENDAR = (Type.DATE, Type.TIMESTAMP)


def seeds() -> SearchStrategy[Random]:
    """A generator of chance for one case."""
    return st.integers(0, (1 << 63) - 1).map(Random)


def good(rng: Random, kind: Kind) -> Any:
    """A value of a kind, missing now and then where that may be."""
    if kind.nullable and rng.random() < 0.15:
        return None
    if kind.type is not Type.INTEGER:
        return rng.choice(GOOD[kind.type])
    low, high = kind.range
    choices = [low, high, rng.randint(low, high), *(one for one in GOOD[Type.INTEGER] if low <= one <= high)]
    return rng.choice(choices)


def raw(rng: Random, kind: Kind) -> Any:
    """A value as a source may hold it: now and then one that the kind does not allow, where it may be missing."""
    if kind.nullable and kind.type in POISON and rng.random() < 0.2:
        return rng.choice(POISON[kind.type])
    return good(rng, kind)


def kind_of(rng: Random, type_: Type) -> Kind:
    """A kind of a type; integers of many widths."""
    nullable = rng.random() < 0.7
    if type_ is not Type.INTEGER:
        return of(type_, nullable=nullable)
    ranges = (INT64, INT64, (0, 1), (-5, 5), (0, 255), (-(1 << 31), (1 << 31) - 1), (-(1 << 90), 1 << 80), INT128)
    return integer(*rng.choice(ranges), nullable=nullable)


# Expressions

Maker = Callable[["Expressions", int], Call]


@dataclass
class Expressions:
    """Makes expressions over columns."""

    rng: Random
    columns: Sequence[Column]

    def leaf(self, type_: Type) -> Expression:
        own = [column for column in self.columns if column.kind.type is type_]
        if own and self.rng.random() < 0.75:
            return self.rng.choice(own)
        if self.rng.random() < 0.1:
            return literal(None, type_)
        return self.constant(type_)

    def constant(self, type_: Type) -> Literal:
        return literal(good(self.rng, of(type_, nullable=False)))

    def any_type(self, *types: Type) -> Type:
        return self.rng.choice(types or tuple(Type))

    def make(self, type_: Type, depth: int) -> Expression:
        """An expression of a type; where whole numbers could get too large, a simpler one."""
        if depth > 0:
            for _ in range(4):
                try:
                    return self.rng.choice(MAKERS[type_])(self, depth - 1)
                except (MayOverflow, TypeMisfit):
                    continue
        return self.leaf(type_)

    def of_function(self, function: str, depth: int) -> Call:
        """A call of one function."""
        makers = [maker for type_ in Type for maker in MAKERS[type_] if getattr(maker, "function", "") == function]
        for _ in range(50):
            try:
                return self.rng.choice(makers)(self, depth)
            except (MayOverflow, TypeMisfit):
                continue
        raise AssertionError(f"no call of {function} could be made")


def _plain(function: str, *types: Type) -> Maker:
    return _named(function, lambda made, depth: call(function, *(made.make(type_, depth) for type_ in types)))


def _named(function: str, maker: Maker) -> Maker:
    def named(made: Expressions, depth: int) -> Call:
        return maker(made, depth)

    named.function = function  # type: ignore[attr-defined]
    return named


def _several(function: str, type_: Type) -> Maker:
    def maker(made: Expressions, depth: int) -> Call:
        return call(function, *(made.make(type_, depth) for _ in range(made.rng.randint(2, 3))))

    return _named(function, maker)


def _same_type(function: str) -> Maker:
    def maker(made: Expressions, depth: int) -> Call:
        type_ = made.any_type()
        return call(function, made.make(type_, depth), made.make(type_, depth))

    return _named(function, maker)


def _is_null(made: Expressions, depth: int) -> Call:
    return call("is_null", made.make(made.any_type(), depth))


def _in(made: Expressions, depth: int) -> Call:
    type_ = made.any_type()
    return call("in", made.make(type_, depth), *(made.constant(type_) for _ in range(made.rng.randint(1, 4))))


def _pattern(function: str) -> Maker:
    def maker(made: Expressions, depth: int) -> Call:
        rng = made.rng
        signs = "".join(rng.choice("%%__aAw\\\U0001f600d ") for _ in range(rng.randint(0, 6)))
        pattern = rng.choice([signs, *(one for one in GOOD[Type.TEXT] if len(one) < 100)])
        constant = literal(pattern) if rng.random() < 0.9 else literal(None, Type.TEXT)
        return call(function, made.make(Type.TEXT, depth), constant)

    return _named(function, maker)


def _substring(made: Expressions, depth: int) -> Call:
    start, length = made.rng.choice((1, 2, 3, 1199, 1 << 31)), made.rng.choice((0, 1, 2, 5, 1 << 31))
    return call("substring", made.make(Type.TEXT, depth), literal(start), literal(length))


def _case(type_: Type) -> Maker:
    def maker(made: Expressions, depth: int) -> Call:
        branches = made.rng.randint(1, 2)
        parts = [made.make(one, depth) for _ in range(branches) for one in (Type.BOOLEAN, type_)]
        return call("case", *parts, made.make(type_, depth))

    return _named("case", maker)


def _of_calendar(function: str, *types: Type) -> Maker:
    return _named(function, lambda made, depth: call(function, made.make(made.any_type(*types), depth)))


def _generic(type_: Type) -> list[Maker]:
    return [_case(type_), _several("coalesce", type_), _plain("nullif", type_, type_)]


_I, _R, _B, _T = Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT

MAKERS: Mapping[Type, list[Maker]] = {
    Type.BOOLEAN: [
        _several("and", _B),
        _several("or", _B),
        _plain("not", _B),
        _named("is_null", _is_null),
        *(_same_type(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
        _named("in", _in),
        _pattern("like"),
        _pattern("starts_with"),
        *_generic(_B),
    ],
    Type.INTEGER: [
        *(_plain(name, _I, _I) for name in ("add", "subtract", "multiply", "quotient", "remainder")),
        *(_plain(name, _I) for name in ("negate", "abs")),
        *(_several(name, _I) for name in ("least", "greatest")),
        *(_plain(name, _R) for name in ("to_integer", "floor", "ceil")),
        _plain("length", _T),
        *(_of_calendar(name, *CALENDAR) for name in ("year", "quarter", "month", "day", "weekday")),
        *(_of_calendar(name, Type.TIMESTAMP) for name in ("hour", "minute")),
        _plain("days_between", Type.DATE, Type.DATE),
        *_generic(_I),
    ],
    Type.REAL: [
        *(_plain(name, _R, _R) for name in ("add", "subtract", "multiply", "divide")),
        *(_plain(name, _R) for name in ("negate", "abs", "sqrt", "ln", "exp")),
        *(_several(name, _R) for name in ("least", "greatest")),
        _plain("to_real", _I),
        *_generic(_R),
    ],
    Type.TEXT: [
        *(_plain(name, _T) for name in ("lower", "upper", "trim")),
        _named("substring", _substring),
        *_generic(_T),
    ],
    Type.DATE: [
        *(_of_calendar(f"start_of_{span}", *CALENDAR) for span in ("year", "quarter", "month", "week", "day")),
        *_generic(Type.DATE),
    ],
    Type.TIMESTAMP: _generic(Type.TIMESTAMP),
}


def functions_in(expression: Expression) -> Iterator[str]:
    """Every function that an expression calls."""
    if isinstance(expression, Call):
        yield expression.function
        for argument in expression.arguments:
            yield from functions_in(argument)


ALL_FUNCTIONS = tuple(sorted(FUNCTIONS))
