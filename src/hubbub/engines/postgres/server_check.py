"""The owner's check of servers: what a role can see beyond the policy, settings that are missing, facts that hold.

It reads the catalogue and settings, and no row. What it finds is for the owner, with the statements that mend it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hubbub.engines.postgres.catalogue import (
    CatalogueTable,
    explain_unfitness,
    quote_identifier,
    quote_relation,
    read_table,
)
from hubbub.engines.postgres.copying import read_snapshot
from hubbub.engines.postgres.roles import Declared, Excess, find_excess, limit_temporary
from hubbub.errors import PolicyError
from hubbub.policy.constraints import columns_kept_unique
from hubbub.policy.paths import qualify
from hubbub.policy.servers import has_password
from hubbub.policy.sources import SNAPSHOT
from hubbub.policy.tables import Policy, Table, TableSource

if TYPE_CHECKING:
    from psycopg import Cursor

_LOGGED = {
    "log_statement": ("all",),
    "log_min_duration_statement": None,
    "log_min_duration_sample": None,
    "auto_explain.log_min_duration": None,
}
"""Settings by which a server writes statements down: with these values, or with any that is not off."""
_KEPT = "pg_stat_statements.track"
_SETTINGS = "SELECT s.name, s.setting FROM pg_catalog.pg_settings AS s WHERE s.name = ANY (%s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnforcedFact:
    """Something that is declared, and whether a constraint of the database keeps it so."""

    table: str
    column: str
    fact: str
    is_enforced: bool
    remedy: str

    def __str__(self) -> str:
        place = qualify(self.table, self.column)
        if self.is_enforced:
            return f"{place}: {self.fact}, enforced by a constraint."
        return f"{place}: {self.fact}, which no constraint enforces, so that it is not believed. {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReport:
    """What was found about one database."""

    place: str
    role: str
    excess: tuple[Excess, ...]
    """What must be taken from the role, or given to it, before questions run there."""
    facts: tuple[EnforcedFact, ...]
    warnings: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Return whether questions may run there."""
        return not self.excess

    @property
    def statements(self) -> tuple[str, ...]:
        """Return the statements that mend it, each once."""
        return tuple(dict.fromkeys(statement for one in self.excess for statement in one.statements))


def check_servers(policy: Policy, *, is_pushed: bool) -> list[ServerReport]:
    """Look at each database that a policy names; ``is_pushed`` says that questions run there, and not on copies."""
    places: dict[str, list[Table]] = {}
    for table in policy.tables.values():
        if table.source.format in SNAPSHOT:
            places.setdefault(table.source.paths[0], []).append(table)
    return [_check_server(tables, policy, is_pushed=is_pushed) for tables in places.values()]


def check_role(tables: Sequence[Table], *, temporary: str) -> None:
    """Refuse a role that can see or do more than to read what is declared, with the statements that would mend it."""
    with read_snapshot(tables[0].source) as cursor:
        role, excess = find_excess(cursor, _declare(tables), temporary=temporary)
    if excess:
        more = f" (and {len(excess) - 1} more: run hubbub check)" if len(excess) > 1 else ""
        statements = "\n".join(dict.fromkeys(statement for one in excess for statement in one.statements))
        raise PolicyError(
            f"Questions do not run as {role}: {excess[0].sentence}{more} Let a copy be asked (copy = true), or run as "
            f"the owner of the database:\n{statements}",
            name="path",
        )


def find_unfitness(source: TableSource) -> str | None:
    """Return why no questions run on a server, as the end of a sentence; None where they can."""
    with read_snapshot(source) as cursor:
        return explain_unfitness(cursor)


def _check_server(tables: Sequence[Table], policy: Policy, *, is_pushed: bool) -> ServerReport:
    with read_snapshot(tables[0].source) as cursor:
        role, excess = _find(cursor, _declare(tables), temporary=policy.limits.temporary, is_pushed=is_pushed)
        catalogue = {table.name: read_table(cursor, *_place(table)) for table in tables}
        warnings = _settings(cursor) if is_pushed else []
    dsn = tables[0].source.dsn
    if dsn is not None and has_password(dsn):
        warnings.insert(0, "The policy holds a password. Put it into a passfile (PGPASSFILE), and take it out.")
    return ServerReport(
        place=tables[0].source.paths[0],
        role=role,
        excess=excess,
        facts=tuple(fact for table in tables for fact in _facts(table, catalogue, policy)),
        warnings=tuple(warnings),
    )


def _find(
    cursor: "Cursor[Any]", declared: Declared, *, temporary: str, is_pushed: bool
) -> tuple[str, tuple[Excess, ...]]:
    role, excess = find_excess(cursor, declared, temporary=temporary)
    ((limit,),) = cursor.execute("SELECT pg_catalog.current_setting('temp_file_limit')").fetchall()
    if is_pushed and limit == "-1":
        statement = limit_temporary(quote_identifier(role), temporary)
        unlimited = Excess(
            sentence=f"Temporary files of {role} have no limit, so that one question could fill the server's disk.",
            statements=(statement,),
        )
        is_proposed = any("temp_file_limit" in each for one in excess for each in one.statements)
        excess = excess if is_proposed else (*excess, unlimited)
    return role, excess


def _declare(tables: Iterable[Table]) -> Declared:
    found: dict[tuple[str, str], frozenset[str]] = {}
    for table in tables:
        place = _place(table)
        found[place] = found.get(place, frozenset()) | {column.name for column in table.columns}
    return found


def _place(table: Table) -> tuple[str, str]:
    return table.source.schema or "", table.source.table or ""


def _facts(table: Table, catalogue: Mapping[str, CatalogueTable], policy: Policy) -> list[EnforcedFact]:
    """Say of each declared key, and of each step to the unit, whether the database enforces it."""
    found, there = [], catalogue[table.name]
    kept = frozenset[str]() if there.is_view else columns_kept_unique(table, there.enforced)
    where = quote_relation(there.schema, there.name)
    unique = {column.name: "each value once" for column in table.columns if column.unique}
    if table.unique and not table.path and table.unit is not None:
        unique.setdefault(table.unit, "one row a unit")
    for column, fact in unique.items():
        remedy = f"ALTER TABLE {where} ADD UNIQUE ({quote_identifier(column)});"
        found.append(
            EnforcedFact(table=table.name, column=column, fact=fact, is_enforced=column in kept, remedy=remedy)
        )
    if table.through is not None and table.through.table in catalogue:
        step, target = table.through, catalogue[table.through.table]
        aims = (target.schema, target.name)
        has_key = any(
            (key.column, key.key) == (step.column, step.key) and (key.schema, key.table) == aims
            for key in there.foreign
        )
        remedy = (
            f"ALTER TABLE {where} ADD FOREIGN KEY ({quote_identifier(step.column)}) REFERENCES "
            f"{quote_relation(*aims)} ({quote_identifier(step.key)});"
        )
        fact = f"leads to {qualify(step.table, step.key)}"
        found.append(EnforcedFact(table=table.name, column=step.column, fact=fact, is_enforced=has_key, remedy=remedy))
    return found


def _settings(cursor: "Cursor[Any]") -> list[str]:
    """Say which settings write down statements, where the role may see them."""
    found = dict(cursor.execute(_SETTINGS, [[*_LOGGED, _KEPT]]).fetchall())
    warnings = [
        f"The server writes statements to its log ({name} = {found[name]}). Questions, though not their answers or "
        "secret numbers, are then in it: bound its readers, or turn it off for the role."
        for name, values in _LOGGED.items()
        if name in found and (found[name] in values if values else found[name] != "-1")
    ]
    if found.get(_KEPT, "none") != "none":
        warnings.append(
            "pg_stat_statements keeps the statements of questions, and how many rows each has read: for members of "
            "pg_read_all_stats alone."
        )
    return warnings
