"""Hubbub: learn about a crowd without learning about any person in it."""

from hubbub import report
from hubbub.blocks import sample_and_aggregate
from hubbub.errors import HubbubError
from hubbub.first import first_over
from hubbub.ledger import Ledger, Renewal
from hubbub.meter import Meter
from hubbub.opening import open
from hubbub.policy.beside import private
from hubbub.policy.paths import through
from hubbub.privacy.budget import Budget
from hubbub.privacy.neighbors import Neighbors
from hubbub.privacy.sensitivity import Sensitivity
from hubbub.query.aggregates import (
    correlation,
    count,
    count_distinct,
    covariance,
    histogram,
    max,
    mean,
    median,
    min,
    quantile,
    stddev,
    sum,
    top,
    variance,
)
from hubbub.query.terms import col, when
from hubbub.release import Release
from hubbub.secret import Facts, Secret
from hubbub.session import Database

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Database",
    "Facts",
    "HubbubError",
    "Ledger",
    "Meter",
    "Neighbors",
    "Release",
    "Renewal",
    "Secret",
    "Sensitivity",
    "col",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "first_over",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "open",
    "private",
    "quantile",
    "report",
    "sample_and_aggregate",
    "stddev",
    "sum",
    "through",
    "top",
    "variance",
    "when",
]
