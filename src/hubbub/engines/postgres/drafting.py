"""Drafts of a policy's tables out of a server's catalogue: types, keys and paths, for the owner to confirm.

No row is read. A column that a foreign key leads to the unit's may name the unit itself, or somebody else (the doctor
who is a patient too); a foreign key to any other unique column of a table that leads to the unit is a step of a path.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hubbub.engines.postgres.catalogue import CatalogueTable, list_schemas, list_tables, read_table
from hubbub.engines.postgres.copying import read_snapshot
from hubbub.errors import PolicyError
from hubbub.policy.files.write import ColumnConstraints, TableDraft
from hubbub.policy.paths import PathStep
from hubbub.policy.servers import postgres, without_password

Place = tuple[str, str]


def draft_tables(url: str, *, schemas: Sequence[str], unit: str | None) -> list[TableDraft]:
    """Draft the tables of a server of which the role may read something; ``unit`` is the column that names the unit.

    Without ``schemas`` they are those of all schemas but the system's.
    """
    shown = without_password(url)
    with read_snapshot(postgres(url, table="-")) as cursor:
        places = list_tables(cursor, schemas or list_schemas(cursor))
        catalogue = {place: read_table(cursor, *place) for place in places}
    if not catalogue:
        raise PolicyError("The role may read no table there. Name its schema, or grant it: GRANT SELECT ON … TO ….")
    names = _name_tables(places)
    units = _find_units(catalogue, unit)
    keys = _find_keys(catalogue, units)
    return [
        replace(_draft(table, shown, names), unit=units.get(place), unit_keys=keys[place])
        for place, table in catalogue.items()
    ]


def _name_tables(places: Sequence[Place]) -> dict[Place, str]:
    """Name tables by themselves, and where two have one name by their schemas too."""
    alone = [table.lower() for _, table in places]
    return {
        (schema, table): table if alone.count(table.lower()) == 1 else f"{schema}_{table}" for schema, table in places
    }


def _find_units(catalogue: Mapping[Place, CatalogueTable], unit: str | None) -> dict[Place, str]:
    """Find the column of each table that names the unit by its own name."""
    if unit is None:
        return {}
    found: dict[Place, str] = {}
    for place, table in catalogue.items():
        own = next((column.name for column in table.readable if column.name.lower() == unit.lower()), None)
        if own is not None:
            found[place] = own
    return found


def _find_keys(catalogue: Mapping[Place, CatalogueTable], units: Mapping[Place, str]) -> dict[Place, tuple[str, ...]]:
    """Find the columns of tables without a unit that a foreign key leads to one."""
    found = {}
    for place, table in catalogue.items():
        leads = (key.column for key in table.foreign if units.get((key.schema, key.table)) == key.key)
        found[place] = () if place in units else tuple(leads)
    return found


def _draft(table: CatalogueTable, url: str, names: Mapping[Place, str]) -> TableDraft:
    place = (table.schema, table.name)
    foreign = tuple(
        PathStep(column=key.column, table=names[key.schema, key.table], key=key.key)
        for key in table.foreign
        if (key.schema, key.table) in names and (key.schema, key.table) != place
    )
    facts = {
        column.name: ColumnConstraints(
            is_required=column.is_required, is_unique=column.name in table.unique, labels=column.labels
        )
        for column in table.readable
    }
    draft = TableDraft(
        name=names[place],
        path=url,
        format="postgres",
        schema=tuple((column.name, column.type) for column in table.readable),
        table=table.name,
        schema_name=table.schema,
        facts=facts,
        foreign=foreign,
    )
    return draft if not table.surprises else replace(draft, problem=table.surprises[0])
