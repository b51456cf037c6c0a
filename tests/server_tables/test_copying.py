"""Tables of a server as Parquet: every value as it is, one snapshot, any size, and nothing but plain tables."""

import datetime
import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.engines.postgres import connection, copying
from hubbub.engines.postgres.copying import LONGEST, CopiedTable, copy_tables
from hubbub.errors import PolicyError
from hubbub.policy.servers import postgres
from tests.postgres import PostgresServer

TYPES = """
CREATE TYPE mood AS ENUM ('fine', 'so''so', 'b\\ad');
CREATE DOMAIN cents AS numeric(12, 2) CHECK (VALUE > -5);
CREATE DOMAIN nested AS cents;
CREATE TABLE kinds (
    small int2, whole int4, large int8, half float4, full_ float8, digits numeric(38, 0), hundreds numeric(3, -2),
    tiny numeric(2, 5), cost nested, anything numeric, flag bool, words text, short varchar(9), padded char(5),
    feeling mood, day date, moment timestamp, zoned timestamptz, own uuid, listed int[],
    document jsonb, raw bytea, span interval)
"""
SAME = datetime.datetime(2024, 2, 29, 23, 59, 59, 123457)


def copied(url: str, *tables: str, directory: Path, part: int = 1 << 20) -> list[CopiedTable]:
    return copy_tables([postgres(url, table=table) for table in tables], directory=str(directory), part=part)


def rows(table: CopiedTable, shown: str = "*") -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT {shown} FROM read_parquet({list(table.paths)})").fetchall()


@pytest.fixture
def kinds(server: PostgresServer, database: str) -> str:
    server.execute(TYPES, url=database)
    return database


def test_types_are_those_that_policies_know(server: PostgresServer, kinds: str, tmp_path: Path) -> None:
    (table,) = copied(kinds, "kinds", directory=tmp_path)
    assert {column.name: column.type for column in table.catalogue.columns} == {
        "small": "SMALLINT",
        "whole": "INTEGER",
        "large": "BIGINT",
        "half": "FLOAT",
        "full_": "DOUBLE",
        "digits": "DECIMAL(38,0)",
        "hundreds": "DECIMAL(5,0)",
        "tiny": "DOUBLE",
        "cost": "DECIMAL(12,2)",
        "anything": "DOUBLE",
        "flag": "BOOLEAN",
        "words": "VARCHAR",
        "short": "VARCHAR",
        "padded": "VARCHAR",
        "feeling": "ENUM",
        "day": "DATE",
        "moment": "TIMESTAMP",
        "zoned": "TIMESTAMP WITH TIME ZONE",
        "own": "UUID",
        "listed": "LIST",
        "document": "JSON",
        "raw": "BLOB",
        "span": "INTERVAL",
    }
    feeling = next(column for column in table.catalogue.columns if column.name == "feeling")
    assert feeling.labels == ("fine", "so'so", "b\\ad")
    assert rows(table) == []


def value(server: PostgresServer, url: str, directory: Path, column: str, literal: str) -> Any:
    server.execute(f"TRUNCATE kinds; INSERT INTO kinds ({column}) VALUES ({literal})", url=url)
    (table,) = copied(url, "kinds", directory=directory)
    ((found,),) = rows(table, column)
    return found


VALUES: Sequence[tuple[str, str, Any]] = (
    ("small", "-32768", -32768),
    ("large", "-9223372036854775808", -(1 << 63)),
    ("digits", "99999999999999999999999999999999999999", Decimal(10**38 - 1)),
    ("digits", "'NaN'", None),
    ("hundreds", "-98760", Decimal(-98800)),
    ("tiny", "0.00012", 0.00012),
    ("cost", "-4.99", Decimal("-4.99")),
    ("anything", "'NaN'", math.nan),
    ("anything", "'-Infinity'", -math.inf),
    ("anything", "1e400::numeric", math.inf),
    ("anything", "1e-400::numeric", 0.0),
    ("full_", "4.9e-324", 5e-324),
    ("full_", "'-0'", -0.0),
    ("full_", "0.1::float8 + 0.2::float8", 0.1 + 0.2),
    ("flag", "false", False),
    ("words", "''", ""),
    ("words", "E'\\\\N'", "\\N"),
    ("words", "E'\\\\.'", "\\."),
    ("words", "E'\\\\!\\\\t\\t\\\\\\\\n\\n\\r\\b\\f\\x0b,\"'''", "\\!\\t\t\\\\n\n\r\b\f\v,\"'"),
    ("words", "E'\\u00df\\U0001F600'", "ß😀"),
    ("padded", "'ab'", "ab"),
    ("feeling", "E'b\\\\ad'", "b\\ad"),
    ("day", "'2024-02-29'", datetime.date(2024, 2, 29)),
    ("day", "'0044-03-15 BC'", None),
    ("day", "'10000-01-01'", None),
    ("day", "'infinity'", None),
    ("moment", f"'{SAME}'", SAME),
    ("moment", "'-infinity'", None),
    ("moment", "'0001-01-01 00:00:00 BC'", None),
    ("zoned", "'2024-03-01 04:59:59.123457+05'", SAME),
    ("zoned", "'294276-12-31 00:00+00'", None),
    ("own", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
)


@pytest.mark.parametrize("case", VALUES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_each_value_is_itself_or_missing(
    server: PostgresServer, kinds: str, tmp_path: Path, case: tuple[str, str, Any]
) -> None:
    column, literal, expected = case
    found = value(server, kinds, tmp_path, column, literal)
    assert repr(found) == repr(expected)  # which tells NaN from nothing, and the zeros from each other


def test_a_text_is_as_long_as_a_record_of_a_file_or_missing(server: PostgresServer, kinds: str, tmp_path: Path) -> None:
    assert value(server, kinds, tmp_path, "words", f"repeat(E'\\\\', {LONGEST})") == "\\" * LONGEST
    assert value(server, kinds, tmp_path, "words", f"repeat('x', {LONGEST + 1})") is None


def test_a_large_table_is_copied_part_by_part(server: PostgresServer, database: str, tmp_path: Path) -> None:
    server.execute(
        "CREATE TABLE numbers AS SELECT i, 'row ' || i AS t FROM generate_series(1, 5000) AS i", url=database
    )
    (table,) = copied(database, "numbers", directory=tmp_path, part=10_000)
    assert sorted(rows(table)) == [(i, f"row {i}") for i in range(1, 5001)]
    assert table.rows == 5000
    assert len(table.paths) > 3
    assert sorted(map(str, Path(table.folder).iterdir())) == sorted(table.paths)  # and nothing else is left
    assert all(Path(path).stat().st_mode & 0o777 == 0o600 for path in table.paths)


def rows_while_changed(server: PostgresServer, url: str, directory: Path) -> list[int]:
    """Count the rows of two copied tables, both of which get a row more when the first is copied."""
    server.execute("CREATE TABLE first AS SELECT 1 AS i; CREATE TABLE second AS SELECT 1 AS i", url=url)
    changes: list[int] = []

    def change(*_: int) -> None:
        changes.append(len(changes))
        server.execute("INSERT INTO first VALUES (2); INSERT INTO second VALUES (2)", url=url)

    sources = [postgres(url, table=name) for name in ("first", "second")]
    made = copy_tables(sources, directory=str(directory), progress=change)
    assert changes  # the change was real
    return [len(rows(table)) for table in made]


def test_all_tables_are_of_one_snapshot(server: PostgresServer, database: str, tmp_path: Path) -> None:
    """Whatever is committed between the first table and the second is in neither."""
    assert rows_while_changed(server, database, tmp_path) == [1, 1]


def test_a_copy_of_several_states_would_be_seen(
    server: PostgresServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a transaction that looks anew at each statement."""
    monkeypatch.setattr(connection, "BEGIN", "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
    assert rows_while_changed(server, database, tmp_path) == [1, 2]


def test_rows_of_any_length_need_little_memory(
    server: PostgresServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What writes them has less memory than their text takes, which is 0.3 GB here."""
    monkeypatch.setattr(copying, "MEMORY", "250MB")
    server.execute(
        "CREATE TABLE t AS SELECT i, repeat(md5(i::text), 3000) AS w FROM generate_series(1, 3000) AS i", url=database
    )
    (table,) = copied(database, "t", directory=tmp_path, part=1 << 30)
    assert len(table.paths) > 3
    assert rows(table, "count(*), count(DISTINCT w), min(length(w))") == [(3000, 3000, 96_000)]


SHAPES: Sequence[tuple[str, str]] = (
    ("CREATE TABLE t (i int); ALTER TABLE t ENABLE ROW LEVEL SECURITY", "row-level security"),
    ("CREATE TABLE t (i int); CREATE RULE r AS ON INSERT TO t DO INSTEAD NOTHING", "has rules"),
    (
        "CREATE TABLE t (i int); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; "
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
        "has triggers",
    ),
    ("CREATE TABLE t (i int); CREATE TABLE child () INHERITS (t)", "inherit from it"),
    ("CREATE VIEW t AS SELECT 1 AS i", "is a view"),
    ("CREATE MATERIALIZED VIEW t AS SELECT 1 AS i", "is a view"),
    ("CREATE SEQUENCE t", "is a sequence"),
    (
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; "
        "CREATE FOREIGN TABLE t (i int) SERVER s",
        "is a foreign table",
    ),
    (
        "CREATE TABLE t (i int) PARTITION BY LIST (i); CREATE TABLE p PARTITION OF t FOR VALUES IN (1); "
        "ALTER TABLE p ENABLE ROW LEVEL SECURITY",
        "Partition p of public.t has row-level security",
    ),
)


@pytest.mark.parametrize(("made", "reason"), SHAPES, ids=[reason.replace(" ", "-") for _, reason in SHAPES])
def test_what_is_no_plain_table_is_refused(
    server: PostgresServer, database: str, tmp_path: Path, made: str, reason: str
) -> None:
    server.execute(made, url=database)
    with pytest.raises(PolicyError, match=reason):
        copied(database, "t", directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_partitioned_table_is_read_with_its_partitions(server: PostgresServer, database: str, tmp_path: Path) -> None:
    server.execute(
        "CREATE TABLE t (i int PRIMARY KEY) PARTITION BY RANGE (i); CREATE TABLE p PARTITION OF t FOR VALUES FROM (0) "
        "TO (10); CREATE TABLE q PARTITION OF t FOR VALUES FROM (10) TO (20); INSERT INTO t VALUES (1), (11)",
        url=database,
    )
    (table,) = copied(database, "t", directory=tmp_path)
    assert sorted(rows(table)) == [(1,), (11,)]
    assert table.catalogue.unique == {"i"}


@pytest.mark.parametrize(
    ("made", "unique"),
    [
        ("CREATE TABLE t (k int PRIMARY KEY)", True),
        ("CREATE TABLE t (k int UNIQUE NULLS NOT DISTINCT)", True),
        ('CREATE TABLE t (k text COLLATE "C" UNIQUE)', True),
        ("CREATE TABLE t (k int, i int, UNIQUE (k, i))", False),
        ("CREATE TABLE t (k int); CREATE UNIQUE INDEX ON t (k) WHERE k > 0", False),
        ("CREATE TABLE t (k int); CREATE UNIQUE INDEX ON t ((k + 1))", False),
        ("CREATE TABLE t (k int); CREATE UNIQUE INDEX ON t (k) INCLUDE (k)", True),
        ("CREATE TABLE t (k int UNIQUE DEFERRABLE INITIALLY DEFERRED)", False),
        ("CREATE TABLE t (k int); CREATE INDEX ON t (k)", False),
        ("CREATE TABLE t (k numeric UNIQUE)", False),  # two of them may become one DOUBLE
        ("CREATE TABLE t (k numeric(9, 0) UNIQUE)", True),
        (
            "CREATE FUNCTION public.apart(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'; "
            + "".join(
                f"CREATE OPERATOR public.{name} (LEFTARG = int, RIGHTARG = int, FUNCTION = int4{function}); "
                for name, function in (("<<<", "lt"), ("<<=", "le"), ("===", "eq"), (">>=", "ge"), (">>>", "gt"))
            )
            + "CREATE OPERATOR CLASS public.odd FOR TYPE int USING btree AS OPERATOR 1 public.<<<, "
            "OPERATOR 2 public.<<=, OPERATOR 3 public.===, OPERATOR 4 public.>>=, OPERATOR 5 public.>>>, "
            "FUNCTION 1 public.apart(int, int); "
            "CREATE TABLE t (k int); CREATE UNIQUE INDEX ON t (k public.odd)",
            False,
        ),
    ],
)
def test_uniqueness_is_taken_from_whole_constraints_alone(
    server: PostgresServer, database: str, tmp_path: Path, made: str, unique: bool
) -> None:
    server.execute(made, url=database)
    (table,) = copied(database, "t", directory=tmp_path)
    assert ("k" in table.catalogue.unique) is unique


def test_an_index_that_could_not_be_built_enforces_nothing(
    server: PostgresServer, database: str, tmp_path: Path
) -> None:
    server.execute("CREATE TABLE t AS SELECT 1 AS k FROM generate_series(1, 2)", url=database)
    with pytest.raises(Exception, match="could not create unique index"):
        server.execute("CREATE UNIQUE INDEX CONCURRENTLY ON t (k)", url=database)
    (table,) = copied(database, "t", directory=tmp_path)
    assert table.catalogue.unique == frozenset()


def test_columns_of_which_the_role_may_read_nothing_are_not_there(
    server: PostgresServer, database: str, tmp_path: Path
) -> None:
    server.execute(
        "CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, 2); CREATE ROLE half LOGIN; "
        "GRANT SELECT (a) ON t TO half",
        url=database,
    )
    as_half = database.replace("hubbub@", "half@")
    (table,) = copied(as_half, "t", directory=tmp_path)
    assert rows(table) == [(1,)]
    server.execute("REVOKE SELECT (a) ON t FROM half", url=database)
    with pytest.raises(PolicyError, match="may read no column"):
        copied(as_half, "t", directory=tmp_path)
    server.execute("DROP OWNED BY half; DROP ROLE half", url=database)


def shadowed(server: PostgresServer, url: str, directory: Path) -> list[tuple[Any, ...]]:
    """Copy a row of a database in whose schema ``public`` comparisons of days are false."""
    server.execute(
        "CREATE FUNCTION public.never(date, date) RETURNS bool LANGUAGE sql AS 'SELECT false'; "
        + "".join(
            f"CREATE OPERATOR public.{sign} (LEFTARG = date, RIGHTARG = date, FUNCTION = public.never); "
            for sign in ("<=", ">=")
        )
        + "CREATE TABLE t AS SELECT DATE '2024-01-01' AS d, 'x'::text AS w",
        url=url,
    )
    (table,) = copied(f"{url}&options=-csearch_path%3Dpublic,pg_catalog", "t", directory=directory)
    return rows(table)


def test_operators_of_others_are_not_run(server: PostgresServer, database: str, tmp_path: Path) -> None:
    assert shadowed(server, database, tmp_path) == [(datetime.date(2024, 1, 1), "x")]


def test_operators_of_others_would_be_seen(
    server: PostgresServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: names that are found where the role says."""
    monkeypatch.delitem(copying._SETTINGS, "search_path")
    assert shadowed(server, database, tmp_path) == [(None, "x")]


def test_text_that_is_any_bytes_is_refused(server: PostgresServer, tmp_path: Path) -> None:
    url = server.fresh_database(more="ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
    server.execute("CREATE TABLE t (w text)", url=url)
    with pytest.raises(PolicyError, match="SQL_ASCII"):
        copied(url, "t", directory=tmp_path)


def test_other_encodings_are_converted(server: PostgresServer, tmp_path: Path) -> None:
    url = server.fresh_database(more="ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    server.execute("CREATE TABLE t AS SELECT 'grün' AS w", url=url)
    (table,) = copied(url, "t", directory=tmp_path)
    assert rows(table) == [("grün",)]


def test_many_columns_of_long_texts_fit(server: PostgresServer, database: str, tmp_path: Path) -> None:
    names = list(itertools.islice((f"c{i}" for i in itertools.count()), 20))
    made = ", ".join(f"repeat(E'\\t', {LONGEST}) AS {name}" for name in names)
    server.execute(f"CREATE TABLE t AS SELECT {made}", url=database)
    (table,) = copied(database, "t", directory=tmp_path)
    assert rows(table, ", ".join(f"length({name})" for name in names)) == [(LONGEST,) * len(names)]


def test_types_and_collations_that_ignore_case_are_read_as_they_are(
    full_server: PostgresServer, tmp_path: Path
) -> None:
    url = full_server.fresh_database()
    full_server.execute(
        "CREATE EXTENSION citext; CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', "
        "deterministic = false); CREATE DOMAIN shy AS citext; "
        "CREATE TABLE t (a citext, b text COLLATE blind UNIQUE, c shy); INSERT INTO t VALUES ('Ab', 'aB', 'AB')",
        url=url,
    )
    (table,) = copied(url, "t", directory=tmp_path)
    assert [(column.type, column.is_deterministic) for column in table.catalogue.columns] == [
        ("VARCHAR", True),
        ("VARCHAR", False),
        ("VARCHAR", True),
    ]
    assert rows(table) == [("Ab", "aB", "AB")]
    assert table.catalogue.unique == {"b"}  # whoever takes more for equal keeps more apart
