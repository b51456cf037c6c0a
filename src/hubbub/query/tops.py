"""Top values and histograms: aggregates that put a list or a mapping into a cell of the answer.

Both are made of the engine's histogram over public values, or over bins between constants. A top-k peels it: the most
frequent value by the exponential mechanism, then the most frequent of those that are left, and so on. A histogram shows
all of it, with noise in every bin, empty ones too.

Privacy:
    Claim: one unit moves the bins of at most ``groups`` groups, those of one group together by at most ``rows`` in L1,
        so the vector of all bins by groups · rows in L1 and groups · rows² in L2²; the score of a value by ``rows``.
    Proof: a unit adds to the bins of a group as many as it has rows there, each to one bin, and at most ``rows`` are
        kept, by a function of its own rows (ops.Histogram); a sum of squares of whole numbers is at most the square of
        their sum. Replaced, it takes rows away and adds others: ``groups`` counts those of both (plan), and a bin in
        which both have rows moves by less. Bins follow from constants of the question and public values, so which
        there are tells nothing. A top-k is TopK in each group (choices).
    Needs: ops.Histogram and ops.Aggregate; public values from query.keys.
    Ref: SOUNDNESS 5 and 10; Durfee, Rogers 2019.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sqlglot import exp

from hubbub.errors import NotAllowed, TypeMisfit
from hubbub.policy.kinds import Type
from hubbub.query.choices import MOST_VALUES
from hubbub.query.clauses import TopValues, ValueCounts, constant
from hubbub.query.expression import Expression, Value, literal
from hubbub.query.functions import call
from hubbub.query.ops import Histogram
from hubbub.query.question import Aggregation, Asked


def nested(node: exp.Expr) -> bool:
    """Whether an aggregate makes lists or mappings, of which nothing further is computed."""
    return isinstance(node.this if isinstance(node, exp.Filter) else node, TopValues | ValueCounts)


# As the question writes them


def how_many(node: exp.Expr, values: Sequence[Value]) -> int:
    """The k of a top-k."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit() or len(node.name) > 9:
        raise NotAllowed("A top-k takes a value and a whole number: approx_top_k(ward, 3).")
    if not 1 <= int(node.name) <= len(values):
        raise NotAllowed(f"There are {len(values)} values, and {node.name} are asked for. Ask for 1 to {len(values)}.")
    return int(node.name)


def edges_of(node: exp.Expr, argument: Expression) -> tuple[Fraction, ...]:
    """The upper ends of the bins of a histogram, ascending; one more bin has what is above the last."""
    if argument.kind.type not in {Type.INTEGER, Type.REAL}:
        raise TypeMisfit(f"A histogram has edges where it is of numbers, not of {argument.kind}.")
    found = [constant(one) for one in node.expressions] if isinstance(node, exp.Array) else []
    edges = tuple(one for one in found if one is not None)
    if not edges or len(edges) < len(found) or not 1 <= len(edges) < MOST_VALUES:
        raise NotAllowed(
            f"The edges of a histogram are a list of 1 to {MOST_VALUES - 1} constants: histogram(cost, [10, 20, 50])."
        )
    exact = argument.kind.type is Type.INTEGER
    ends = edges if exact else tuple(Fraction(float(one)) for one in edges)
    if any(low >= high for low, high in itertools.pairwise(ends)):
        raise NotAllowed("The edges of a histogram ascend, each above the one before.")
    return edges


def _end(edge: Fraction, argument: Expression) -> int | float:
    """What a value is compared with: of whole numbers, the last one that is not above the edge."""
    return math.floor(edge) if argument.kind.type is Type.INTEGER else float(edge)


# What is counted


def bins_of(asked: Asked) -> tuple[Value, ...]:
    """The names of the bins: values, or the upper ends of ranges, the last one of which has none."""
    if not asked.edges:
        return asked.values
    assert asked.argument is not None
    whole = asked.argument.kind.type is Type.INTEGER
    return *(int(one) if whole and one.denominator == 1 else float(one) for one in asked.edges), math.inf


def binned(argument: Expression, edges: Sequence[Fraction], *, rows: int) -> Histogram:
    """The bin of each value: 0 up to the first edge and including it, i above edge i - 1 and up to edge i."""
    place = _place(argument, [_end(one, argument) for one in edges], 0, len(edges))
    if argument.kind.nullable:
        place = call("case", call("is_null", argument), literal(None, Type.INTEGER), place)
    ends = Fraction(0), Fraction(len(edges))
    return Histogram(argument=place, clamp=ends, origin=Fraction(0), grid=Fraction(1), most_rows=rows)


def _place(value: Expression, ends: Sequence[int | float], low: int, high: int) -> Expression:
    """By halving: few comparisons a row."""
    if low == high:
        return literal(low)
    middle = (low + high) // 2
    below, above = _place(value, ends, low, middle), _place(value, ends, middle + 1, high)
    return call("case", call("le", value, literal(ends[middle])), below, above)


# What is shown

Shown = tuple[Any, Any, Any]
"""A cell, and the ends of its interval, in the same form; None where there are none."""


def shown(asked: Asked, drawn: Sequence[int], margin: int) -> Shown:
    """A list of values, or a mapping from bins to noisy numbers, each with its own interval."""
    if asked.function is Aggregation.TOP:
        return [asked.values[step] for step in drawn], None, None
    bins = bins_of(asked)
    lows, highs = ([one + sign * margin for one in drawn] for sign in (-1, 1))
    value, low, high = (dict(zip(bins, found, strict=True)) for found in (drawn, lows, highs))
    return value, low, high
