"""Private tables beside the first one, declared in Python: the same units, in other tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hubbub.errors import PolicyError
from hubbub.policy.build import Schema, single_table
from hubbub.policy.columns import Declarations, merge_declarations, warn_of_old
from hubbub.policy.paths import PathStep, own
from hubbub.policy.stamps import Stamp
from hubbub.policy.tables import Policy, Table, TableColumn, TableSource


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
