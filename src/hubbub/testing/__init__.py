"""Tools for testing private systems: replayed noise, and Hypothesis strategies for tables, neighbours and questions.

``from hubbub.testing import trace, differences, neighbors`` loads what is asked for and no more; strategies need
``pip install "hubbub[testing]"``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.testing.replay import Trace, differences, replayed, trace
    from hubbub.testing.strategies import neighbors, questions, tables, values

_HOMES = {
    "Trace": "replay",
    "differences": "replay",
    "neighbors": "strategies",
    "questions": "strategies",
    "replayed": "replay",
    "tables": "strategies",
    "trace": "replay",
    "values": "strategies",
}

__all__ = ["Trace", "differences", "neighbors", "questions", "replayed", "tables", "trace", "values"]


def __getattr__(name: str) -> Any:
    """Load a name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hubbub.testing' has no attribute {name!r}")
    return getattr(import_module(f"hubbub.testing.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names beside what is loaded."""
    return sorted({*globals(), *__all__})
