"""Declarations in Python: columns one by one, and private tables beside the first one.

Old spellings (``types=``, ``nullable=``, ``grids=``, ``unique=``) are understood for one version more, with a warning.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hubbub.errors import ParameterError, PolicyError
from hubbub.policy.build import Schema, single_table
from hubbub.policy.paths import PathStep, own
from hubbub.policy.stamps import Stamp
from hubbub.policy.tables import Policy, Table, TableColumn, TableSource

Declarations = Mapping[str, str | type | Mapping[str, object]]
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
        facts: object = {"type": said} if isinstance(said, str | type) else said
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateTable:
    """A table that is opened beside another, and is about the same units."""

    data: Any = field(repr=False)
    unit: str | PathStep
    declared: Mapping[str, Any]

    def table(self, *, name: str, source: TableSource, schema: Schema) -> Table:
        """With the schema of its source."""
        return single_table(name=name, source=source, schema=schema, unit=self.unit, **self.declared)


def private(
    data: Any,
    *,
    unit: str | PathStep,
    bounds: Mapping[str, object] | None = None,
    keys: Mapping[str, object] | None = None,
    columns: Declarations | None = None,
    **old: Any,
) -> PrivateTable:
    """Declare a file, a glob or a frame that is opened beside another.

    ``unit`` names the column of the unit, or the path to it: ``through("order_id", to="orders")``.
    ``columns`` says of columns what a policy file says: type, nullable, bounds, grid, keys and unique.
    """
    warn_of_old("private", old)
    declared = merge_declarations(columns, bounds=bounds, keys=keys, old=old)
    return PrivateTable(data=data, unit=unit, declared=declared)


def with_keys_seen(
    policy: Policy, repeated: Callable[[Table, TableColumn], int], at_rest: Callable[[Table], Stamp | None]
) -> Policy:
    """Look at the data, and return the policy with what is declared unique of private tables and is so.

    That holds for files in the state that ``at_rest`` stamps, which must be the same before and after. For the owner's
    side.
    """
    own_tables = [table for table in policy.tables.values() if table.unit is not None]
    wanted = {(step.table, step.key) for table in own_tables for step in table.path}
    wanted |= {(table.name, column.name) for table in own_tables for column in table.columns if column.unique}
    stamps = {name: at_rest(policy.tables[name]) for name in sorted({name for name, _ in wanted})}
    seen = {name: stamp for name, stamp in stamps.items() if stamp is not None}
    for name, key in sorted(wanted):
        table = policy.tables[name]
        column = own(table, key)
        assert column is not None
        if repeated(table, column):
            raise PolicyError(
                f"Column {key} of table {name} is declared unique, and some rows share a value of it. Take it out of "
                "unique; a path to the unit cannot go by it, since a row could have two owners.",
                name=f"unique of column {key}",
            )
    moving = [name for name, _ in sorted(wanted) if name not in seen or not seen[name].holds()]
    if moving:
        raise PolicyError(
            f"The files of table {moving[0]} are being written to, so nobody can say what is unique in them. Open it "
            "when they are at rest.",
            name=moving[0],
        )
    return replace(policy, enforced_keys=frozenset(wanted), seen={**policy.seen, **seen})
