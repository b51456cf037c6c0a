"""Expressions over public values: the same meaning as the reference interpreter, for every function and every value."""

import itertools
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from hubbub.policy.kinds import INT64, Type, integer, of
from hubbub.query.check.evaluate import EVALUATED, evaluate
from hubbub.query.expression import Column, Expression, literal
from hubbub.query.functions import FUNCTIONS, call
from tests.query import generate, interpreter
from tests.query.generate import GOOD, TIMES, Expressions, seeds

TEXT = Column("x", of(Type.TEXT))
REAL = Column("x", of(Type.REAL))


def same(expression: Expression, row: dict[str, Any]) -> None:
    meant, found = interpreter.value(expression, row), evaluate(expression, row)
    assert (type(found), found) == (type(meant), meant), (expression, row)


def test_every_function_is_evaluated() -> None:
    assert FUNCTIONS.keys() == EVALUATED


@pytest.mark.parametrize("function", generate.ALL_FUNCTIONS)
def test_each_function_means_what_the_interpreter_says(function: str) -> None:
    """Each on every edge value of its arguments, and missing ones."""
    for seed in range(30 * TIMES):
        rng = Random(seed)
        made = Expressions(rng, [])
        pattern = made.of_function(function, 0)
        fixed = {"in": 1, "like": 1, "starts_with": 1, "substring": 1}.get(function, len(pattern.arguments))
        kinds = [argument.kind.type for argument in pattern.arguments[:fixed]]
        columns = [Column(f"c{place}", _narrow(type_)) for place, type_ in enumerate(kinds)]
        expression = call(function, *columns, *pattern.arguments[fixed:])
        edges = [[None, *(one for one in GOOD[type_] if interpreter.fits(one, _narrow(type_)))] for type_ in kinds]
        rows = list(itertools.product(*edges))
        for values in rows if len(rows) < 400 else rng.sample(rows, 60):
            same(expression, {column.name: one for column, one in zip(columns, values, strict=True)})


def _narrow(type_: Type) -> Any:
    """Whole numbers of 64 bits: their products still fit."""
    return integer(*INT64) if type_ is Type.INTEGER else of(type_)


@given(rng=seeds())
@settings(max_examples=400 * TIMES, derandomize=True)
def test_random_expressions_mean_what_the_interpreter_says(rng: Random) -> None:
    columns = [Column(f"c{place}", generate.kind_of(rng, type_)) for place, type_ in enumerate([*Type, *Type])]
    made = Expressions(rng, columns)
    expression = made.make(made.any_type(), 5)
    for _ in range(10):
        same(expression, {column.name: generate.good(rng, column.kind) for column in columns})


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("", "", True),
        ("", "%", True),
        ("", "_", False),
        ("a", "", False),
        ("abc", "a%c", True),
        ("ac", "a%c", True),
        ("a", "a%a", False),
        ("aba", "a%a", True),
        ("abcabc", "%b_%b%", True),
        ("abcabc", "%b_b%", False),
        ("a%b", "a\\%b", False),
        ("a\\xb", "a\\%b", True),
        ("\U0001f600", "_", True),
        ("line\nline", "%\n%", True),
    ],
)
def test_like(text: str, pattern: str, matches: bool) -> None:
    expression = call("like", TEXT, literal(pattern))
    assert evaluate(expression, {"x": text}) is matches
    assert interpreter.value(expression, {"x": text}) is matches


def test_like_takes_time_in_proportion() -> None:
    """A pattern that made a regular expression try every way to split the text; this returns at all."""
    expression = call("like", TEXT, literal("%a" * 300 + "b"))
    assert evaluate(expression, {"x": "a" * 5000}) is False


@pytest.mark.parametrize("function", ["to_integer", "floor", "ceil"])
@pytest.mark.parametrize(
    ("real", "whole"),
    [(2.0**63, None), (-(2.0**63), -(2**63)), (2.0**63 - 1024, 2**63 - 1024), (-(2.0**63) - 2048, None), (1e308, None)],
)
def test_whole_numbers_beyond_64_bits_are_missing(function: str, real: float, whole: int | None) -> None:
    assert evaluate(call(function, REAL), {"x": real}) == whole


@pytest.mark.parametrize(
    ("function", "text", "changed"),
    [
        ("lower", "ΑΣ", "ασ"),
        ("lower", "İ", "i"),
        ("upper", "straße", "STRAẞE"),
        ("upper", "ﬁ", "ﬁ"),
        ("upper", "ᾳ", "ᾼ"),
        ("upper", "ŉ", "ŉ"),
        ("trim", " \ta\u00a0 ", "\ta\u00a0"),
    ],
)
def test_text_changes_character_by_character(function: str, text: str, changed: str) -> None:
    assert evaluate(call(function, TEXT), {"x": text}) == changed
