"""What a role can see and do beyond what a policy declares, with the statements that would mend it.

A question's statement is ours, but an operator, a cast or a function that somebody put in its way would run with the
role's rights. So these are what the policy declares and no more: then nothing else can be read, whatever is run.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hubbub.engines.postgres.catalogue import quote_identifier, quote_relation, show_name

if TYPE_CHECKING:
    from psycopg import Cursor

Declared = Mapping[tuple[str, str], frozenset[str]]
"""Schema and table → the columns that a policy declares."""

_MINE = "(SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER'))"
"""The role that has logged in, which can go back to itself from any that it took, and all whose rights it can take."""
_GRANTEES = f"(x.grantee = 0 OR x.grantee IN {_MINE})"
_NOT_OURS = """n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%'
  AND n.nspname NOT LIKE 'pg\\_temp%'"""
_NO_EXTENSION = """NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend AS d WHERE d.classid = '{catalog}'::pg_catalog.regclass AND d.objid = {oid}
    AND d.deptype = 'e')"""
_ROLE = """
SELECT r.rolname::text, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb, r.rolreplication
FROM pg_catalog.pg_roles AS r WHERE r.rolname = session_user"""
_MEMBER = f"""
SELECT r.rolname::text FROM pg_catalog.pg_roles AS r WHERE r.oid IN {_MINE} AND r.rolname LIKE 'pg\\_%' ORDER BY 1"""
_GRANTS = f"""
WITH shown AS (
  SELECT c.oid, n.nspname, c.relname, c.relkind, c.relowner,
    coalesce(c.relacl, pg_catalog.acldefault(CASE c.relkind WHEN 'S' THEN 's'::"char" ELSE 'r'::"char" END, c.relowner))
      AS acl
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND {_NOT_OURS}
    AND {_NO_EXTENSION.format(catalog="pg_catalog.pg_class", oid="c.oid")}
    AND EXISTS (SELECT FROM pg_catalog.pg_roles AS r
      WHERE r.oid IN {_MINE} AND pg_catalog.has_schema_privilege(r.oid, n.oid, 'USAGE'))
), granted AS (
  SELECT s.oid, x.grantee, x.privilege_type, NULL::pg_catalog.name AS attname
  FROM shown AS s, pg_catalog.aclexplode(s.acl) AS x WHERE {_GRANTEES}
  UNION ALL
  SELECT s.oid, x.grantee, x.privilege_type, a.attname
  FROM shown AS s JOIN pg_catalog.pg_attribute AS a ON a.attrelid = s.oid AND NOT a.attisdropped,
    pg_catalog.aclexplode(a.attacl) AS x WHERE {_GRANTEES}
)
SELECT s.nspname::text, s.relname::text, s.relkind::text, s.relowner IN {_MINE},
  coalesce((SELECT r.rolname::text FROM pg_catalog.pg_roles AS r WHERE r.oid = g.grantee), ''),
  g.privilege_type, g.attname::text,
  ARRAY(SELECT pg_catalog.json_build_array(pn.nspname, pc.relname)::pg_catalog.text
    FROM pg_catalog.pg_partition_ancestors(s.oid) AS p
    JOIN pg_catalog.pg_class AS pc ON pc.oid = p.relid JOIN pg_catalog.pg_namespace AS pn ON pn.oid = pc.relnamespace
    WHERE s.relkind IN ('r', 'p')),
  ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = s.oid AND a.attnum > 0 AND NOT a.attisdropped)
FROM shown AS s JOIN granted AS g ON g.oid = s.oid
ORDER BY 1, 2, 5, 6, 7"""
_SCHEMAS = f"""
SELECT n.nspname::text, coalesce((SELECT r.rolname::text FROM pg_catalog.pg_roles AS r WHERE r.oid = x.grantee), '')
FROM pg_catalog.pg_namespace AS n,
  pg_catalog.aclexplode(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) AS x
WHERE {_NOT_OURS} AND x.privilege_type = 'CREATE' AND {_GRANTEES}
ORDER BY 1, 2"""
_FUNCTIONS = f"""
SELECT p.oid::pg_catalog.regprocedure::text, coalesce(
  (SELECT r.rolname::text FROM pg_catalog.pg_roles AS r WHERE r.oid = x.grantee), '')
FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace,
  pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) AS x
WHERE p.prosecdef AND {_NOT_OURS} AND x.privilege_type = 'EXECUTE' AND {_GRANTEES}
  AND {_NO_EXTENSION.format(catalog="pg_catalog.pg_proc", oid="p.oid")}
ORDER BY 1, 2"""
_SYSTEM = ("pg_statistic", "pg_authid", "pg_largeobject", "pg_user_mapping")
"""Catalogues that hold values of rows, or passwords; nobody but superusers reads them unless they are granted."""
_OPEN_SYSTEM = (
    "SELECT c.relname::text FROM pg_catalog.pg_class AS c WHERE c.relname = ANY (%s) AND c.relnamespace = "
    "'pg_catalog'::pg_catalog.regnamespace AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT') ORDER BY 1"
)
_FILES = (
    "pg_read_file(text)",
    "pg_read_binary_file(text)",
    "pg_ls_dir(text)",
    "lo_import(text)",
    "lo_export(oid,text)",
)
_OPEN_FILES = (
    "SELECT f FROM pg_catalog.unnest(%s::pg_catalog.text[]) AS f WHERE pg_catalog.has_function_privilege("
    "('pg_catalog.' || f)::pg_catalog.regprocedure, 'EXECUTE') ORDER BY 1"
)
_LARGE = f"""
SELECT EXISTS (SELECT FROM pg_catalog.pg_largeobject_metadata AS o
  WHERE o.lomowner IN {_MINE} OR EXISTS (SELECT FROM pg_catalog.aclexplode(o.lomacl) AS x WHERE {_GRANTEES}))
  OR pg_catalog.current_setting('lo_compat_privileges')::pg_catalog.bool"""
_ATTRIBUTES = ("BYPASSRLS", "CREATEROLE", "CREATEDB", "REPLICATION")
_CAN = {
    "BYPASSRLS": "looks past row-level security",
    "CREATEROLE": "can create roles",
    "CREATEDB": "can create databases",
    "REPLICATION": "can read everything that is written",
}
_UNITS = {"K": "k", "M": "M", "G": "G", "T": "T"}
"""As PostgreSQL writes them: 1024 of one are one of the next."""
READER = "hubbub_reader"
"""The name of the role that we propose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """Something that a role can see or do and need not, and the statements that take it away."""

    sentence: str
    statements: tuple[str, ...]


def find_excess(cursor: "Cursor[Any]", declared: Declared, *, temporary: str) -> tuple[str, tuple[Excess, ...]]:
    """Return the role's name, and what it can see or do beyond reading what is declared.

    ``temporary`` is the room for temporary files that a proposed role gets.
    """
    ((role, is_super, *attributes),) = cursor.execute(_ROLE).fetchall()
    if is_super:
        everything = Excess(
            sentence=f"{role} is a superuser, who can read and change everything. Let questions run as a role that "
            "can read what the policy declares, and name it in the path.",
            statements=propose_role(cursor, declared, temporary=temporary),
        )
        return role, (everything,)
    own = quote_identifier(role)
    found = [
        Excess(sentence=f"{role} {_CAN[name]}.", statements=(f"ALTER ROLE {own} NO{name};",))
        for name, has in zip(_ATTRIBUTES, attributes, strict=True)
        if has
    ]
    found += [
        Excess(
            sentence=f"{role} is a member of {group}, which is more than to read declared tables.",
            statements=(f"REVOKE {quote_identifier(group)} FROM {own};",),
        )
        for (group,) in cursor.execute(_MEMBER).fetchall()
    ]
    found += _relations(role, cursor.execute(_GRANTS).fetchall(), declared)
    found += [
        Excess(
            sentence=f"{role} can create things in schema {schema}.",
            statements=(f"REVOKE CREATE ON SCHEMA {quote_identifier(schema)} FROM {_grantee(grantee)};",),
        )
        for schema, grantee in cursor.execute(_SCHEMAS).fetchall()
    ]
    found += [
        Excess(
            sentence=f"{role} can call {function}, which runs with the rights of whoever made it.",
            statements=(f"REVOKE EXECUTE ON FUNCTION {function} FROM {_grantee(grantee)};",),
        )
        for function, grantee in cursor.execute(_FUNCTIONS).fetchall()
    ]
    found += [
        Excess(
            sentence=f"{role} can read pg_catalog.{table}, which holds values of other tables' rows, or passwords.",
            statements=(f"REVOKE ALL ON pg_catalog.{table} FROM PUBLIC, {own};",),
        )
        for (table,) in cursor.execute(_OPEN_SYSTEM, [list(_SYSTEM)]).fetchall()
    ]
    found += [
        Excess(
            sentence=f"{role} can call pg_catalog.{function}, which reaches files of the server.",
            statements=(f"REVOKE EXECUTE ON FUNCTION pg_catalog.{function} FROM PUBLIC, {own};",),
        )
        for (function,) in cursor.execute(_OPEN_FILES, [list(_FILES)]).fetchall()
    ]
    ((large,),) = cursor.execute(_LARGE).fetchall()
    if large:
        found.append(
            Excess(
                sentence=f"{role} can read large objects.",
                statements=(f"REVOKE ALL ON LARGE OBJECT … FROM PUBLIC, {own};  -- those of \\lo_list",),
            )
        )
    return role, tuple(found)


def propose_role(cursor: "Cursor[Any]", declared: Declared, *, temporary: str) -> tuple[str, ...]:
    """Return the statements that make a role which can read what is declared, and nothing else."""
    ((database,),) = cursor.execute("SELECT pg_catalog.current_database()::text").fetchall()
    reader = READER
    schemas = dict.fromkeys(schema for schema, _ in sorted(declared))
    return (
        f"CREATE ROLE {reader} LOGIN;  -- and give it a password, or a line in pg_hba.conf",
        f"GRANT CONNECT ON DATABASE {quote_identifier(database)} TO {reader};",
        *(f"GRANT USAGE ON SCHEMA {quote_identifier(schema)} TO {reader};" for schema in schemas),
        *(grant_columns(place, columns, to=reader) for place, columns in sorted(declared.items())),
        limit_temporary(reader, temporary),
    )


def limit_temporary(role: str, amount: str) -> str:
    """Return the statement that bounds a role's temporary files, which only a superuser can run."""
    spelt = re.sub(r"(?i)([kmgt])i?b", lambda unit: f"{_UNITS[unit[1].upper()]}B", amount.replace(" ", ""))
    return f"ALTER ROLE {role} SET temp_file_limit = '{spelt}';"


def grant_columns(place: tuple[str, str], columns: Iterable[str], *, to: str) -> str:
    """Return the statement that lets a role read some columns."""
    listed = ", ".join(quote_identifier(column) for column in sorted(columns))
    return f"GRANT SELECT ({listed}) ON {quote_relation(*place)} TO {to};"


def _relations(role: str, grants: Sequence[Sequence[Any]], declared: Declared) -> list[Excess]:
    """Say what can be read and written beyond what is declared, one table at a time."""
    tables: dict[tuple[str, str], list[Sequence[Any]]] = {}
    for grant in grants:
        tables.setdefault((grant[0], grant[1]), []).append(grant)
    found = []
    for place, rows in tables.items():
        owned, ancestors = rows[0][3], {tuple(json.loads(ancestor)) for ancestor in rows[0][7]}
        columns = declared.get(place)
        where = quote_relation(*place)
        if owned:
            found.append(
                Excess(
                    sentence=f"{role} owns {show_name(*place)}, and can do anything with it.",
                    statements=(
                        f"ALTER TABLE {where} OWNER TO …;  -- to a role that asks nothing",
                        *(() if columns is None else [grant_columns(place, columns, to=quote_identifier(role))]),
                    ),
                )
            )
        elif columns is None and not ancestors & declared.keys():
            statements = dict.fromkeys(f"REVOKE ALL ON {where} FROM {_grantee(row[4])};" for row in rows)
            can = "read" if any(row[5] == "SELECT" for row in rows) else "change"
            found.append(
                Excess(
                    sentence=f"{role} can {can} {show_name(*place)}, which the policy does not declare.",
                    statements=tuple(statements),
                )
            )
        else:
            found += _beyond(role, place, rows, columns)
    return found


def _beyond(
    role: str, place: tuple[str, str], rows: Sequence[Sequence[Any]], columns: frozenset[str] | None
) -> list[Excess]:
    """Say what can be done with a declared table, or a partition of one, beyond reading its declared columns."""
    where, found = quote_relation(*place), []
    writes = [row for row in rows if row[5] != "SELECT"]
    if writes:
        what = ", ".join(dict.fromkeys(row[5] for row in writes))
        statements = dict.fromkeys(f"REVOKE {row[5]} ON {where} FROM {_grantee(row[4])};" for row in writes)
        found.append(
            Excess(
                sentence=f"{role} has {what} on {show_name(*place)}, and needs to read it alone.",
                statements=tuple(statements),
            )
        )
    return found if columns is None else [*found, *_columns(role, place, rows, columns)]


def _columns(role: str, place: tuple[str, str], rows: Sequence[Sequence[Any]], columns: frozenset[str]) -> list[Excess]:
    """Say which columns can be read that no question may use."""
    reads = [row for row in rows if row[5] == "SELECT"]
    single = {row[6] for row in reads if row[6] is not None}
    whole = any(row[6] is None for row in reads)
    extra = set(rows[0][8]) - columns if whole else single - columns
    if not extra:
        return []
    grantees = dict.fromkeys(_grantee(row[4]) for row in reads if row[6] is None or row[6] in extra)
    return [
        Excess(
            sentence=f"{role} can read {', '.join(sorted(extra))} of {show_name(*place)}, which no question can use.",
            statements=(
                *(f"REVOKE SELECT ON {quote_relation(*place)} FROM {grantee};" for grantee in grantees),
                grant_columns(place, columns, to=quote_identifier(role)),
            ),
        )
    ]


def _grantee(name: str) -> str:
    return quote_identifier(name) if name else "PUBLIC"
