"""Declarations that a database's own constraints enforce: they hold in every state that it can be in.

Privacy:
    Claim: what is believed here holds of the rows that are read, and would hold of them without any one unit.
    Proof: a valid unique constraint over the whole table, of one column that is read without loss, leaves no two rows
        with one value in any committed state, and to take rows away breaks none. Its own equality may only be coarser
        than ours (a collation that ignores case), which makes it the stronger. How many units there are is enforced by
        no constraint, so that a table with a declared size is not believed.
    Needs: constraints that are read in the snapshot of the rows; a column that is declared as what it is.
    Ref: SOUNDNESS 7, 36, 37.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from hubbub.policy.kinds import Kind
from hubbub.policy.stamps import Stamp
from hubbub.policy.tables import Policy, Table
from hubbub.policy.types import engine_kind

Enforced = Mapping[str, str]
"""Columns that a constraint keeps unique, each with the type that its source says it has."""


def columns_kept_unique(table: Table, enforced: Enforced) -> frozenset[str]:
    """Return the columns that a constraint keeps unique as they are declared: read as another type, two values of a
    source could become one.
    """
    kinds = {name.lower(): engine_kind(type_) for name, type_ in enforced.items()}
    found = set()
    for column in table.columns:
        kind = kinds.get(column.name.lower())
        if isinstance(kind, Kind) and kind.type is column.kind.type:
            found.add(column.name)
    return frozenset(found)


def with_constraints(
    policy: Policy, *, enforced: Callable[[Table], Enforced], at_rest: Callable[[Table], Stamp | None]
) -> Policy:
    """Return the policy with what is declared unique and is kept so by constraints.

    ``at_rest`` stamps what the engine reads for a table.
    """
    rows, keys, seen = set(policy.enforced), set(policy.enforced_keys), dict(policy.seen)
    for table in policy.tables.values():
        declared = {column.name for column in table.columns if column.unique}
        is_single = table.unique and not table.path and table.size is None
        if not declared and not is_single:
            continue
        kept, stamp = columns_kept_unique(table, enforced(table)), at_rest(table)
        is_single = is_single and table.unit in kept
        if stamp is None or not (is_single or declared & kept):
            continue
        rows |= {table.name} if is_single else set()
        keys |= {(table.name, name) for name in declared & kept}
        seen[table.name] = stamp
    return replace(policy, enforced=frozenset(rows), enforced_keys=frozenset(keys), seen=seen)
