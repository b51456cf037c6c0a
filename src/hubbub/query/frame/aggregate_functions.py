"""Aggregates for questions that are written in Python, under the names that data frames use."""

import math
from collections.abc import Sequence

from hubbub.errors import ParameterError
from hubbub.query.frame.columns import Operand, Term, bracket, col
from hubbub.query.read.aggregate_clauses import PER_GROUP, PER_ROW

Bounds = tuple[float, float]
"""A low and a high number."""


def count(value: Operand | None = None, *, most: int | None = None) -> Term:
    """Rows; with a value, the rows where it is not missing. Of one unit at most so many in a group, if you say so."""
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise ParameterError("most", "a whole number from 1 on", most)
    return _with_bounds("count", "*" if value is None else _value(value), None if most is None else (0, most), None)


def count_distinct(value: Operand) -> Term:
    """Different values; of the unit's own column, units."""
    return Term(f"count(DISTINCT {_value(value)})")


def sum(value: Operand, *, per_group: Bounds | None = None, per_row: Bounds | None = None) -> Term:
    """The sum of the values; what a unit adds to a group, or each value, is clamped to bounds that you give."""
    return _with_bounds("sum", _value(value), per_group, per_row)


def mean(value: Operand, *, per_group: Bounds | None = None, per_row: Bounds | None = None) -> Term:
    """The average; with bounds for a group, that of the units' own averages, each clamped to them."""
    return _with_bounds("avg", _value(value), per_group, per_row)


def geometric_mean(value: Operand) -> Term:
    """The geometric mean of values whose lower bound is above 0."""
    return Term(f"geometric_mean({_value(value)})")


def weighted_mean(value: Operand, weight: Operand) -> Term:
    """The average in which each row has a weight."""
    return Term(f"weighted_avg({_value(value)}, {_value(weight)})")


def bool_and(condition: Operand) -> Term:
    """Test whether a condition holds everywhere, as far as a noisy number of units can tell."""
    return Term(f"bool_and({_value(condition)})")


def bool_or(condition: Operand) -> Term:
    """Test whether a condition holds anywhere, as far as a noisy number of units can tell."""
    return Term(f"bool_or({_value(condition)})")


def variance(value: Operand) -> Term:
    """The variance of a sample."""
    return Term(f"var_samp({_value(value)})")


def stddev(value: Operand) -> Term:
    """The standard deviation of a sample."""
    return Term(f"stddev_samp({_value(value)})")


def min(value: Operand) -> Term:
    """About the least value."""
    return Term(f"min({_value(value)})")


def max(value: Operand) -> Term:
    """About the greatest value."""
    return Term(f"max({_value(value)})")


def median(value: Operand) -> Term:
    """The value in the middle."""
    return Term(f"median({_value(value)})")


def quantile(value: Operand, q: float | Sequence[float]) -> Term:
    """The value below which this share of the values lies; several shares are paid for together."""
    levels = [q] if isinstance(q, int | float) else list(q)
    if not levels or not all(isinstance(one, int | float) and 0 <= one <= 1 for one in levels):
        raise ParameterError("q", "between 0 and 1", q)
    listed = repr(levels[0]) if isinstance(q, int | float) else "[" + ", ".join(repr(one) for one in levels) + "]"
    return Term(f"quantile_cont({_value(value)}, {listed})")


def top(value: Operand, k: int) -> Term:
    """The most frequent of public values, in a noisy order: a list in each cell."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ParameterError("k", "a whole number from 1 on", k)
    return Term(f"approx_top_k({_value(value)}, {k})")


def histogram(value: Operand, edges: Sequence[float] | None = None) -> Term:
    """Count each public value, or the numbers up to each edge and above the one before: a mapping in each cell."""
    if edges is None:
        return Term(f"histogram({_value(value)})")
    listed = list(edges)
    if not listed or not all(isinstance(one, int | float) and math.isfinite(one) for one in listed):
        raise ParameterError("edges", "a list of numbers", edges)
    return Term(f"histogram({_value(value)}, [{', '.join(map(bracket, listed))}])")


def covariance(one: Operand, other: Operand) -> Term:
    """The covariance of a sample."""
    return Term(f"covar_samp({_value(one)}, {_value(other)})")


def correlation(one: Operand, other: Operand) -> Term:
    """The correlation."""
    return Term(f"corr({_value(one)}, {_value(other)})")


def _with_bounds(function: str, value: str, per_group: Bounds | None, per_row: Bounds | None) -> Term:
    said = [value]
    for name, bounds in ((PER_GROUP, per_group), (PER_ROW, per_row)):
        if bounds is None:
            continue
        if len(bounds) != 2 or not all(isinstance(one, int | float) and math.isfinite(one) for one in bounds):
            raise ParameterError("bounds", "a low and a high number", bounds)
        said.append(f"{name} => ({bracket(bounds[0])}, {bracket(bounds[1])})")
    return Term(f"{function}({', '.join(said)})")


def _value(value: Operand) -> str:
    """Text names a column here: an aggregate of a constant text is nothing that anybody asks for."""
    return bracket(col(value) if isinstance(value, str) else value)
