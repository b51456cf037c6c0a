"""The hash that stands for a policy in the canonical form of a question.

Two policies share it if every question is read and bounded alike under both, and read from the same places: the
tables, where their rows come from, whose they are (paths to the unit included), their columns in order, with kinds,
bounds, steps and keys, what was enforced, and the limits on what a unit may add.

A file is named by its absolute path and format, a table of a database by its name beside them, one of a server by the
server's place and its own name (never by who logs in there, or how): never by its content, of which a hash would be an
oracle (SOUNDNESS 13). The owner says by the version, which stands beside the fingerprint in
every question, when the rows at that place are others. A frame has no place. Its owner may name a version, and then
the version alone says which rows it holds; otherwise every opening of it is a source of its own, with a random name, so
that no answer about one frame is ever served for another.

Not part of it are

- account and budget: they say who pays and how much there is, and stand beside it too (that units are replaced is
  part of it, with the reckoning of their noise, which has changed);
- time, memory, threads, lanes and the number of groups: they decide whether a question is answered, not what its
  answer means;
- columns that cannot be used: no question that was answered has looked at them.

A declaration that changes makes earlier answers unfindable, which costs budget and never privacy. So whatever is in
doubt is in.
"""

import hashlib
import json
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.privacy.sensitivity import Neighbors

if TYPE_CHECKING:
    from hubbub.policy.tables import Policy, Table, TableColumn, TableSource, Value

FORMAT = 2
"""Of the JSON below; a new number where its meaning changes. Format 1 left sources out."""
UNIT_ROWS = 1000
"""The limit on a unit's rows that is not written down: there was a time before it, with fingerprints of its own."""

REPLACED = 2
"""How the noise of units that are replaced is reckoned: answers of before had more, and are told with their own."""


def fingerprint(policy: "Policy") -> str:
    """Return SHA-256 over the canonical JSON of the declarations, in hexadecimal."""
    return hashlib.sha256(canonical(policy).encode("ascii")).hexdigest()


def canonical(policy: "Policy") -> str:
    """Return the text that is hashed: tables in the order of their names, columns in their own."""
    limits = policy.limits
    content = {
        "format": FORMAT,
        "limits": {
            "groups": limits.groups,
            "rows": limits.max_rows,
            **({} if limits.max_total_rows is None else {"total rows": limits.max_total_rows}),
            "fanout": limits.max_fanout,
            **({} if limits.max_unit_rows == UNIT_ROWS else {"unit rows": limits.max_unit_rows}),
        },
        **({"replaced": REPLACED} if policy.budget.neighbors is Neighbors.REPLACE_ONE else {}),
        **({"enforced": sorted(policy.enforced)} if policy.enforced else {}),
        **({"keys": sorted(map(list, policy.enforced_keys))} if policy.enforced_keys else {}),
        "tables": [_table(table) for table in sorted(policy.tables.values(), key=lambda table: table.name)],
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _table(table: "Table") -> dict[str, Any]:
    return {
        "name": table.name,
        "source": _source(table.source),
        "unit": table.unit,
        "unique": table.unique,
        **({} if table.size is None else {"size": table.size}),
        **({"path": [[step.column, step.table, step.key] for step in table.path]} if table.path else {}),
        "columns": [_column(column) for column in table.columns],
    }


def _source(source: "TableSource") -> dict[str, Any]:
    return {
        "format": source.format,
        "paths": list(source.paths),
        **({} if source.table is None else {"table": source.table}),
        **({} if source.schema is None else {"schema": source.schema}),
        **({} if source.opening is None else {"opening": source.opening}),
    }


def _column(column: "TableColumn") -> dict[str, Any]:
    kind = column.kind
    return {
        "name": column.name,
        "type": kind.type.value,
        "nullable": kind.nullable,
        "range": None if kind.low is None else list(kind.range),
        "bounds": None if column.bounds is None else [_ratio(end) for end in column.bounds],
        "step": None if column.step is None else _ratio(column.step),
        **({"unique": True} if column.unique else {}),
        "keys": None if column.keys is None else [_value(key) for key in column.keys],
    }


def _ratio(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _value(value: "Value") -> bool | int | str | None:
    match value:
        case float():
            return value.hex()
        case datetime():
            return value.isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
    return value
