"""Aggregates for questions that are written in Python, under the names that data frames use."""

from collections.abc import Sequence

from hubbub.errors import ParameterError
from hubbub.query.terms import Operand, Term, bracketed, col


def count(value: Operand | None = None) -> Term:
    """Rows; with a value, the rows where it is not missing."""
    return Term("count(*)" if value is None else f"count({_value(value)})")


def count_distinct(value: Operand) -> Term:
    """Different values; of the unit's own column, units."""
    return Term(f"count(DISTINCT {_value(value)})")


def sum(value: Operand) -> Term:
    """The sum of the values."""
    return Term(f"sum({_value(value)})")


def mean(value: Operand) -> Term:
    """The average."""
    return Term(f"avg({_value(value)})")


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


def covariance(one: Operand, other: Operand) -> Term:
    """The covariance of a sample."""
    return Term(f"covar_samp({_value(one)}, {_value(other)})")


def correlation(one: Operand, other: Operand) -> Term:
    """The correlation."""
    return Term(f"corr({_value(one)}, {_value(other)})")


def _value(value: Operand) -> str:
    """Text names a column here: an aggregate of a constant text is nothing that anybody asks for."""
    return bracketed(col(value) if isinstance(value, str) else value)
