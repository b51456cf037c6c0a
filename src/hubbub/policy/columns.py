"""Declarations of columns in Python, column by column, as a policy file says it.

Old spellings (``types=``, ``nullable=``, ``grids=``, ``unique=``) are understood for one version more, with a warning.
"""

import warnings
from collections.abc import Mapping
from typing import Any

from hubbub.errors import ParameterError

Declarations = Mapping[str, str | Mapping[str, object]]
"""Column → its type, or all that is declared of it: ``{"day": "date", "cost": {"bounds": (0, 500), "grid": 1}}``."""

FACTS = {
    "type": "types",
    "nullable": "nullable",
    "bounds": "bounds",
    "grid": "grids",
    "keys": "keys",
    "unique": "uniques",
}
"""What can be declared of a column → the parameter of ``single_table`` that takes it for all columns."""

_OLD = {
    "types": 'columns={"NAME": "TYPE"}',
    "nullable": 'columns={"NAME": {"nullable": …}}',
    "grids": 'columns={"NAME": {"grid": …}}',
    "unique": 'columns={"NAME": {"unique": True}}',
}


def merge_declarations(
    columns: Declarations | None,
    *,
    bounds: Mapping[str, object] | None,
    keys: Mapping[str, object] | None,
    old: Mapping[str, Any],
) -> dict[str, Any]:
    """Sort declarations by what they declare, as ``single_table`` takes them; each may be made once."""
    by_fact: dict[str, Any] = {"bounds": bounds, "keys": keys} | {
        parameter: old.get(parameter) for parameter in ("types", "nullable", "grids")
    }
    by_fact["uniques"] = dict.fromkeys(old.get("unique") or (), True)
    for column, said in (columns or {}).items():
        facts: object = {"type": said} if isinstance(said, str) else said
        if not isinstance(facts, Mapping):
            raise ParameterError("columns", 'a type or a mapping for each column, such as {"bounds": (0, 500)}', facts)
        for fact, value in facts.items():
            if fact not in FACTS:
                raise ParameterError("columns", f"declared by {', '.join(FACTS)}", fact)
            declared = by_fact[FACTS[fact]] or {}
            if column in declared:
                raise ParameterError(fact, f"declared once of column {column}", value)
            by_fact[FACTS[fact]] = {**declared, column: value}
    return by_fact


def warn_of_old(function: str, old: Mapping[str, Any], known: Mapping[str, str] | None = None) -> None:
    """Warn of each old spelling with the new one; refuse a parameter that never was, as Python does."""
    spellings = {**_OLD, **(known or {})}
    for name in old:
        if name not in spellings:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        warnings.warn(
            f"hubbub.{function}({name}=…) will go in the next version; write {spellings[name]}.",
            DeprecationWarning,
            stacklevel=3,
        )
