"""Facts that questions may rest on: uniqueness that a constraint of the database enforces in the snapshot that is read.

Privacy:
    Claim: where ``has_one_row`` says so, no unit has two rows in the relation; where ``has_keys`` says so, no row has
        two owners. Both hold of the rows that the same transaction reads.
    Proof: the catalogue is read in the snapshot of the rows. A valid unique index of a whole table that is checked at
        once lets no two rows that a snapshot sees share a value, whoever dropped it afterwards; what it takes for equal
        is at least what we do, so that equal values of ours are equal values of it (``catalogue``: exact types alone).
        Identities are read without making two values one (``scan``). Along a path whose columns are all unique, a unit
        has one row in each table. No other fact is believed, that a public table is joined at most once included.
    Needs: ``catalogue.read_table``; relations as ``query.plan.one_row_a_unit`` has them.
    Ref: SOUNDNESS 7, 36.
"""

from collections.abc import Mapping

from hubbub.engines.postgres.catalogue import CatalogueTable
from hubbub.policy.tables import Table
from hubbub.query.ops import Cap, Filter, Match, Project, Reduce, Relation, Scan, Window, below

Catalogues = Mapping[str, CatalogueTable]
"""What the catalogue says of each declared table, by its name in the policy."""


def has_one_row(relation: Relation, tables: Mapping[str, Table], known: Catalogues) -> bool:
    """Return whether no unit can have two rows."""
    match relation:
        case Scan(table=table, unit=str() as unit, path=path):
            steps = [(table, path[0].column if path else unit)]
            for place, step in enumerate(path):
                steps.append((step.table, path[place + 1].column if place + 1 < len(path) else unit))
            return has_keys(relation, tables, known) and all(_is_unique(*one, tables, known) for one in steps)
        case Filter(input=rows) | Project(input=rows) | Match(input=rows) | Window(input=rows):
            return has_one_row(rows, tables, known)
        case Cap(input=rows, most=most):
            return most == 1 or has_one_row(rows, tables, known)
        case Reduce(keys=keys):
            return not keys
    return False


def has_keys(relation: Relation, tables: Mapping[str, Table], known: Catalogues) -> bool:
    """Return whether every key by which rows find their unit is unique."""
    if isinstance(relation, Scan):
        return all(_is_unique(step.table, step.key, tables, known) for step in relation.path)
    return all(has_keys(one, tables, known) for one in below(relation))


def _is_unique(table: str, column: str, tables: Mapping[str, Table], known: Catalogues) -> bool:
    declared = tables[table].column(column)
    return declared is not None and declared.name in known[table].unique
