"""Hubbub: learn about a crowd without learning about any person in it.

Public names are loaded when they are first used (PEP 562), so that ``import hubbub`` costs next to nothing and
``import hubbub.noise`` loads neither the SQL parser nor an engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hubbub.gate import pictures

if TYPE_CHECKING:
    from hubbub import learn, publish, report
    from hubbub.errors import HubbubError
    from hubbub.gate.meter import Meter
    from hubbub.gate.release import Release
    from hubbub.gate.secret import Facts, Secret
    from hubbub.ledger import Ledger, Renewal
    from hubbub.policy.in_python import private
    from hubbub.policy.paths import through
    from hubbub.policy.servers import postgres
    from hubbub.policy.tables import Limits
    from hubbub.privacy.filter import Budget
    from hubbub.privacy.sensitivity import Neighbors, Sensitivity
    from hubbub.query.frame.aggregate_functions import (
        bool_and,
        bool_or,
        correlation,
        count,
        count_distinct,
        covariance,
        geometric_mean,
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
        weighted_mean,
    )
    from hubbub.query.frame.columns import col, when
    from hubbub.session.database import Database
    from hubbub.session.first_over import first_over
    from hubbub.session.opening import open
    from hubbub.session.sample_and_aggregate import sample_and_aggregate

__version__ = "0.1.0"

_AGGREGATES = "hubbub.query.frame.aggregate_functions"

# Public name → the module that defines it; a name whose module is itself ends in the name. The block above says the
# same to type checkers, and a test holds the two together.
_HOMES = {
    "Budget": "hubbub.privacy.filter",
    "Database": "hubbub.session.database",
    "Facts": "hubbub.gate.secret",
    "HubbubError": "hubbub.errors",
    "Ledger": "hubbub.ledger",
    "Limits": "hubbub.policy.tables",
    "Meter": "hubbub.gate.meter",
    "Neighbors": "hubbub.privacy.sensitivity",
    "Release": "hubbub.gate.release",
    "Renewal": "hubbub.ledger",
    "Secret": "hubbub.gate.secret",
    "Sensitivity": "hubbub.privacy.sensitivity",
    "bool_and": _AGGREGATES,
    "bool_or": _AGGREGATES,
    "col": "hubbub.query.frame.columns",
    "correlation": _AGGREGATES,
    "count": _AGGREGATES,
    "count_distinct": _AGGREGATES,
    "covariance": _AGGREGATES,
    "first_over": "hubbub.session.first_over",
    "geometric_mean": _AGGREGATES,
    "histogram": _AGGREGATES,
    "learn": "hubbub",
    "max": _AGGREGATES,
    "mean": _AGGREGATES,
    "median": _AGGREGATES,
    "min": _AGGREGATES,
    "open": "hubbub.session.opening",
    "postgres": "hubbub.policy.servers",
    "private": "hubbub.policy.in_python",
    "publish": "hubbub",
    "quantile": _AGGREGATES,
    "report": "hubbub",
    "sample_and_aggregate": "hubbub.session.sample_and_aggregate",
    "stddev": _AGGREGATES,
    "sum": _AGGREGATES,
    "through": "hubbub.policy.paths",
    "top": _AGGREGATES,
    "variance": _AGGREGATES,
    "weighted_mean": _AGGREGATES,
    "when": "hubbub.query.frame.columns",
}

__all__ = [
    "Budget",
    "Database",
    "Facts",
    "HubbubError",
    "Ledger",
    "Limits",
    "Meter",
    "Neighbors",
    "Release",
    "Renewal",
    "Secret",
    "Sensitivity",
    "bool_and",
    "bool_or",
    "col",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "first_over",
    "geometric_mean",
    "histogram",
    "learn",
    "max",
    "mean",
    "median",
    "min",
    "open",
    "postgres",
    "private",
    "publish",
    "quantile",
    "report",
    "sample_and_aggregate",
    "stddev",
    "sum",
    "through",
    "top",
    "variance",
    "weighted_mean",
    "when",
]


pictures.load_with(lambda: import_module("hubbub.report"))


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it, once."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hubbub' has no attribute {name!r}")
    value = import_module(f"hubbub.{name}") if home == "hubbub" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names beside what is loaded."""
    return sorted({*globals(), *__all__})
