"""A table as PostgreSQL's catalogue describes it: columns with the types that policies know, keys, and surprises.

The catalogue is metadata: what is refused here is refused for reasons that are public, before anything is read or paid.
It is read in the caller's transaction, so that it describes the same snapshot as the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hubbub.errors import PolicyError
from hubbub.policy.kinds import Kind, Type
from hubbub.policy.types import engine_kind

if TYPE_CHECKING:
    from psycopg import Cursor

_PLAIN: Mapping[str, str] = {
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "name": "VARCHAR",
    "uuid": "UUID",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "json": "JSON",
    "jsonb": "JSON",
    "bytea": "BLOB",
    "bit": "BIT",
    "varbit": "BIT",
    "interval": "INTERVAL",
    "time": "TIME",
    "timetz": "TIME WITH TIME ZONE",
    "point": "GEOMETRY",
    "line": "GEOMETRY",
    "lseg": "GEOMETRY",
    "box": "GEOMETRY",
    "path": "GEOMETRY",
    "polygon": "GEOMETRY",
    "circle": "GEOMETRY",
}
"""PostgreSQL's own types → what policies call them (``policy.types``); all others cannot be used."""
_EXTENSIONS: Mapping[str, str] = {"citext": "VARCHAR"}
"""Types of extensions whose values are read as others. The equality of citext ignores case, and is not used."""
LEAST_VERSION = 140000
"""What questions run on; a copy can be made of older ones."""
_MOST_DIGITS = 38
_HEADER = 4
"""Of the modifier of a type, before what it says."""

_TABLE = """
SELECT c.oid, c.relkind::text, c.relpersistence::text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s"""
_COLUMNS = """
WITH RECURSIVE named AS (
  SELECT a.attnum, a.attname, a.attnotnull, a.attgenerated::text AS generated, a.atttypid AS type,
    a.atttypmod AS modifier, a.attcollation AS collation_id,
    pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') AS readable
  FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
), based AS (
  SELECT n.attnum, n.type, n.modifier, 0 AS depth FROM named AS n
  UNION ALL
  SELECT b.attnum, t.typbasetype, CASE WHEN b.modifier >= 0 THEN b.modifier ELSE t.typtypmod END, b.depth + 1
  FROM based AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.type WHERE t.typtype = 'd'
)
SELECT n.attname::text, t.typname::text, s.nspname::text, t.typtype::text, t.typcategory::text, b.modifier,
  n.generated, n.readable, coalesce(l.collisdeterministic, true),
  n.attnotnull AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_constraint AS k
    WHERE k.conrelid = %s AND k.contype = 'n' AND NOT k.convalidated AND n.attnum = ANY (k.conkey)),
  ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)
FROM named AS n
JOIN (SELECT DISTINCT ON (attnum) attnum, type, modifier FROM based ORDER BY attnum, depth DESC) AS b USING (attnum)
JOIN pg_catalog.pg_type AS t ON t.oid = b.type
JOIN pg_catalog.pg_namespace AS s ON s.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = n.collation_id
ORDER BY n.attnum"""
_KEYS = """
SELECT a.attname::text, i.indisprimary
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
JOIN pg_catalog.pg_opclass AS o ON o.oid = i.indclass[0]
JOIN pg_catalog.pg_namespace AS s ON s.oid = o.opcnamespace
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
  AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] > 0 AND NOT i.indisexclusion
  AND s.nspname = 'pg_catalog'
ORDER BY 1"""
_FOREIGN = """
SELECT a.attname::text, s.nspname::text, c.relname::text, b.attname::text
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
JOIN pg_catalog.pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1]
JOIN pg_catalog.pg_class AS c ON c.oid = k.confrelid
JOIN pg_catalog.pg_namespace AS s ON s.oid = c.relnamespace
WHERE k.conrelid = %s AND k.contype = 'f' AND k.convalidated AND pg_catalog.cardinality(k.conkey) = 1
  AND coalesce((pg_catalog.to_jsonb(k) ->> 'conenforced')::pg_catalog.bool, true)
ORDER BY 1, 2, 3, 4"""
_PARTS = """
SELECT c.relname::text, c.relkind::text, c.relpersistence::text, c.relrowsecurity,
  EXISTS (SELECT FROM pg_catalog.pg_rewrite AS r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN'),
  EXISTS (SELECT FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal),
  c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits AS h WHERE h.inhparent = c.oid)
FROM pg_catalog.pg_class AS c
WHERE c.oid = %s OR c.oid IN (SELECT t.relid FROM pg_catalog.pg_partition_tree(%s) AS t)
ORDER BY c.oid = %s DESC, 1"""
_ENCODING = (
    "SELECT pg_catalog.pg_encoding_to_char(d.encoding) FROM pg_catalog.pg_database AS d "
    "WHERE d.datname = pg_catalog.current_database()"
)
_LISTED = """
SELECT s.nspname::text, c.relname::text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS s ON s.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND s.nspname = ANY (%s)
  AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1, 2"""
_SCHEMAS = """
SELECT s.nspname::text FROM pg_catalog.pg_namespace AS s
WHERE s.nspname <> 'information_schema' AND s.nspname NOT LIKE 'pg\\_%' ORDER BY 1"""
_VIEWS = {"v": "a view", "m": "a materialized view"}
_OTHER_RELATIONS = {"f": "a foreign table", "S": "a sequence", "c": "a composite type", "i": "an index"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueColumn:
    """One column, with the type that a policy knows and what PostgreSQL itself calls it."""

    name: str
    type: str
    """As ``policy.types.engine_kind`` reads it."""
    base: str
    """PostgreSQL's type, domains resolved."""
    is_required: bool
    """Whether a valid NOT NULL holds."""
    is_readable: bool
    """Whether the role may select it."""
    labels: tuple[str, ...] = ()
    """The labels of an enum, in order."""
    is_deterministic: bool = True
    """Whether its collation takes texts for equal only if their bytes are."""

    @property
    def is_exact(self) -> bool:
        """Whether different values stay different when they are read: a numeric becomes the nearest DOUBLE."""
        kind = engine_kind(self.type)
        return isinstance(kind, Kind) and (self.base != "numeric" or kind.type is Type.INTEGER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A column all values of which are in a column of another table, as a valid constraint enforces it."""

    column: str
    schema: str
    table: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueTable:
    """One table, its columns in order, and what constraints enforce of single columns."""

    schema: str
    name: str
    columns: tuple[CatalogueColumn, ...]
    unique: frozenset[str]
    """Columns in which no value is there twice, by a valid index of the whole table that is checked at once."""
    primary: str | None
    foreign: tuple[ForeignKey, ...]
    is_view: bool
    surprises: tuple[str, ...]
    """Sentences about what makes its rows something else than the rows that are stored under its name."""

    @property
    def readable(self) -> tuple[CatalogueColumn, ...]:
        """Return the columns that the role may select."""
        return tuple(column for column in self.columns if column.is_readable)

    @property
    def enforced(self) -> dict[str, str]:
        """Return the columns that a constraint keeps unique, with their types."""
        return {column.name: column.type for column in self.columns if column.name in self.unique}


def read_table(cursor: "Cursor[Any]", schema: str, table: str) -> CatalogueTable:
    """Read all that the catalogue says of a table; PolicyError where there is none."""
    found = cursor.execute(_TABLE, [schema, table]).fetchone()
    if found is None:
        raise PolicyError(
            f"There is no table {show_name(schema, table)} in the database. Correct schema and table, whose capitals "
            "count here.",
            name="table",
        )
    oid, kind, _ = found
    columns = tuple(_column(row) for row in cursor.execute(_COLUMNS, [oid, oid]).fetchall())
    own = {column.name: column for column in columns}
    keys = cursor.execute(_KEYS, [oid]).fetchall()
    return CatalogueTable(
        schema=schema,
        name=table,
        columns=columns,
        unique=frozenset(name for name, _ in keys if own[name].is_exact),
        primary=next((name for name, is_primary in keys if is_primary), None),
        foreign=tuple(
            ForeignKey(column=column, schema=other, table=target, key=key)
            for column, other, target, key in cursor.execute(_FOREIGN, [oid]).fetchall()
        ),
        is_view=kind in _VIEWS,
        surprises=tuple(_surprises(show_name(schema, table), cursor.execute(_PARTS, [oid, oid, oid]).fetchall())),
    )


def describe_table(cursor: "Cursor[Any]", schema: str, table: str) -> tuple[tuple[str, str], ...]:
    """Return the columns that the role may read, with their types as policies know them."""
    readable = read_table(cursor, schema, table).readable
    if not readable:
        where = quote_relation(schema, table)
        raise PolicyError(
            f"The role may read no column of {show_name(schema, table)}. Grant what the policy needs: GRANT USAGE ON "
            f"SCHEMA {quote_identifier(schema)}; GRANT SELECT (…) ON {where}.",
            name="table",
        )
    return tuple((column.name, column.type) for column in readable)


def check_shape(table: CatalogueTable, *, allows_view: bool = False) -> None:
    """Raise PolicyError where rows under this name are no plain rows that are stored there."""
    if table.is_view and not allows_view:
        raise PolicyError(
            f"{show_name(table.schema, table.name)} is a view, whose rows are computed while it is read, perhaps of "
            "several people's rows. Declare its tables; or say view = true, if each of its rows is made of one unit's "
            "rows alone.",
            name="table",
        )
    if table.surprises:
        raise PolicyError(table.surprises[0], name="table")


def check_encoding(cursor: "Cursor[Any]") -> str:
    """Return the database's encoding; PolicyError where its bytes need not be text at all."""
    ((encoding,),) = cursor.execute(_ENCODING).fetchall()
    if encoding == "SQL_ASCII":
        raise PolicyError(
            "The database keeps text as SQL_ASCII, which is any bytes. Create one with ENCODING 'UTF8', and load the "
            "data there.",
            name="path",
        )
    return str(encoding)


def explain_unfitness(cursor: "Cursor[Any]") -> str | None:
    """Return why no questions run on a server, as the end of a sentence; None where they can."""
    if cursor.connection.info.server_version < LEAST_VERSION:
        return f"the server is older than PostgreSQL {LEAST_VERSION // 10000}"
    encoding = check_encoding(cursor)
    return None if encoding == "UTF8" else f"the database keeps text as {encoding}"


def list_tables(cursor: "Cursor[Any]", schemas: Sequence[str]) -> list[tuple[str, str]]:
    """Name the tables of some schemas of which the role may read something, partitions left out."""
    return [(str(schema), str(table)) for schema, table in cursor.execute(_LISTED, [list(schemas)]).fetchall()]


def list_schemas(cursor: "Cursor[Any]") -> list[str]:
    """Name the schemas but the system's."""
    return [str(schema) for (schema,) in cursor.execute(_SCHEMAS).fetchall()]


def quote_identifier(name: str) -> str:
    """Quote a name, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def quote_relation(schema: str, table: str) -> str:
    """Quote the two parts of a table's name."""
    return f"{quote_identifier(schema)}.{quote_identifier(table)}"


def show_name(schema: str, table: str) -> str:
    """Write a table's name for a sentence: both parts quoted where they could be misread."""
    plain = all(part.isidentifier() and part.isascii() and part == part.lower() for part in (schema, table))
    return f"{schema}.{table}" if plain else quote_relation(schema, table)


def _column(row: Sequence[Any]) -> CatalogueColumn:
    name, base, namespace, kind, category, modifier, generated, readable, deterministic, required, labels = row
    type_ = _type_name(base, namespace, kind, category, modifier)
    return CatalogueColumn(
        name=name,
        type="GENERATED" if generated == "v" else type_,  # computed while it is read
        base=base,
        is_required=required,
        is_readable=readable,
        labels=tuple(labels),
        is_deterministic=deterministic,
    )


def _type_name(base: str, namespace: str, kind: str, category: str, modifier: int) -> str:
    """Name a type as policies do."""
    if kind == "e":
        return "ENUM"
    if kind in {"c", "r", "m"}:
        return "STRUCT"
    if category == "A":
        return "LIST"
    if namespace != "pg_catalog":
        return _EXTENSIONS.get(base, "UNKNOWN")
    if base == "numeric":
        return _numeric(modifier)
    if base == "bpchar":  # of no length, texts that differ in their last spaces are one
        return "VARCHAR" if modifier >= 0 else "UNKNOWN"
    return _PLAIN.get(base, "UNKNOWN")


def _numeric(modifier: int) -> str:
    """Name a numeric by its digits: whole ones are integers, as far as 38 digits hold them."""
    if modifier < _HEADER:
        return "DOUBLE"
    precision, scale = (modifier - _HEADER) >> 16, (modifier - _HEADER) & 0x7FF
    scale = (scale ^ 1024) - 1024  # 11 bits with a sign
    if scale <= 0 and precision - scale <= _MOST_DIGITS:
        return f"DECIMAL({precision - scale},0)"
    if 0 <= scale <= precision <= _MOST_DIGITS:
        return f"DECIMAL({precision},{scale})"
    return "DOUBLE"


def _surprises(shown: str, parts: Sequence[Sequence[Any]]) -> list[str]:
    """Say what there is about a table, or one of its partitions, that its declaration does not say."""
    found = []
    for place, (part, kind, persistence, secured, ruled, triggered, parent) in enumerate(parts):
        what = shown if place == 0 else f"Partition {part} of {shown}"
        if kind in _OTHER_RELATIONS:
            found.append(f"{what} is {_OTHER_RELATIONS[kind]}, and no table of this database. Declare a table.")
        if persistence == "t":
            found.append(f"{what} is a temporary table, which no other session sees. Declare a table.")
        if secured:
            found.append(
                f"{what} has row-level security: who asks, and when, would decide which rows are there. Give it a "
                "table, or a copy, without: ALTER TABLE … DISABLE ROW LEVEL SECURITY."
            )
        if ruled:
            found.append(f"{what} has rules, which rewrite what is asked of it. Drop them, or declare a copy of it.")
        if triggered:
            found.append(
                f"{what} has triggers, by which one person's rows can change another's. Drop them, or declare a copy."
            )
        if parent:
            found.append(
                f"{what} has tables that inherit from it, whose rows would be read with its own, and which its keys do "
                "not cover. Declare each, or a partitioned table."
            )
    return found
