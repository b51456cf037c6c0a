"""Rows that find their unit in other tables: a join with the keys and units that the path leads to.

Privacy:
    Claim: each row is read once for every unit that its path leads to, and with unique keys that is one or none.
    Proof: an inner join of the rows with pairs of key and unit, which are made alike from the next table and end where
        the unit is a column. It holds no row without a partner, and no row whose unit is missing. No row of one unit
        takes another's away: whatever pairs there are besides, a row stays beside those of its own.
    Needs: unique keys, for the one (policy.paths, where the proof for neighbours is).
    Ref: SOUNDNESS 3, 4 and 7.
"""

from collections.abc import Callable, Mapping, Sequence

from hubbub.engines.nodes.queries import Query, RowSource
from hubbub.engines.nodes.scalars import Scalar
from hubbub.engines.nodes.vocabulary import storage_of
from hubbub.engines.nodes.words import alias, cast, infix, join, name, present, select, within
from hubbub.errors import PolicyError
from hubbub.policy.kinds import Kind
from hubbub.policy.paths import PathStep, own
from hubbub.policy.tables import Table, TableColumn
from hubbub.query.check.shape import hull

KEY, NEXT = "key", "next"

Read = Callable[[Table, TableColumn], Scalar]
"""A column of a table's source as its kind; what is not of it is missing."""


def find_owners(
    table: Table,
    shown: Sequence[tuple[Scalar, str]],
    path: Sequence[PathStep],
    unit: str,
    *,
    tables: Mapping[str, Table],
    origins: Mapping[str, RowSource],
    read: Read,
    called: str,
) -> Query:
    """Show these columns of a table's rows by their names, each row with the unit at the end of its path, called so."""
    made = [alias(value, as_) for value, as_ in shown]
    if not path:
        return select(origins[table.name], *made, alias(read(table, column_of(table, unit)), called))
    step, there = path[0], tables[path[0].table]
    column, key = column_of(table, step.column), column_of(there, step.key)
    rows = select(origins[table.name], *made, alias(_in_common(read(table, column), column.kind, key.kind), NEXT))
    keys = [(_in_common(read(there, key), column.kind, key.kind), KEY)]
    found = find_owners(there, keys, path[1:], unit, tables=tables, origins=origins, read=read, called=called)
    pairs = select(within(found), name(KEY), name(called), where=[present(name(called))])
    same = [infix("=", name(NEXT, of="l"), name(KEY, of="o"))]
    mine = [name(as_, of="l") for _, as_ in shown]
    return select(join(within(rows, "l"), within(pairs, "o"), same), *mine, name(called, of="o"))


def unit_column(table: Table, path: Sequence[PathStep], unit: str, tables: Mapping[str, Table]) -> TableColumn:
    """Return the column at the end of a path that names the unit."""
    return column_of(tables[path[-1].table] if path else table, unit)


def column_of(table: Table, column: str) -> TableColumn:
    """Find a column of a table's source."""
    found = own(table, column)
    if found is None:
        raise PolicyError(f"Table {table.name} has no column {column}. Declare it.", name=table.name)
    return found


def _in_common(value: Scalar, one: Kind, other: Kind) -> Scalar:
    """Cast to a type that holds the values of both sides."""
    return cast(value, storage_of(hull([one, other])))
