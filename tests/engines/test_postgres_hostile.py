"""Hostile values in columns of every type: nothing raises while rows are read, and equality stays ours."""

import itertools
from collections.abc import Iterator
from random import Random

import psycopg
import pytest

from hubbub.engines.lower import scalars as lowering
from hubbub.engines.nodes.queries import StoredTable
from hubbub.engines.nodes.scalars import ScanIdentity, ScanValue
from hubbub.engines.nodes.words import alias, cast, count_distinct, name, select, within
from hubbub.engines.postgres.catalogue import read_table
from hubbub.engines.postgres.connection import plain
from hubbub.engines.postgres.engine import name_stored
from hubbub.errors import MayOverflow, NotAllowed, PolicyError, TypeMisfit
from hubbub.policy.kinds import INT128, Kind, Type, integer, of
from hubbub.query.expression import Column
from hubbub.query.functions import call
from tests.engines.stored import StoredTables, printable
from tests.postgres import PostgresServer, running_server
from tests.query.generate import ALL_FUNCTIONS, Expressions

TEXTS = (
    "", " ", "a", "A", "á", "á", "ß", "SS", "ẞ", "İ", "ı", "ﬁ", "\\", "\\\\", "a\\", "%", "_", "'", '"', "$1",
    "today", "now", "infinity", "-infinity", "epoch", "tomorrow", "NaN", "Infinity", "-Infinity", "inf", "1e400",
    "1e-400", "1", "01", "+1", "1.0", "1e0", " 1", "1 ", "0x1F", "1_000", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "170141183460469231731687303715884105728", "9" * 60, "1" * 5000, "0.1", ".5", "5.", ".",
    "-", "+", "e", "1e", "1e+", "--1", "true", "TRUE", "t", "yes", "on", "1.5", "2.5", "2023-02-29", "2024-02-29",
    "0000-01-01", "0001-01-01", "9999-12-31", "10000-01-01", "0044-03-15 BC", "2024-13-01", "2024-1-1", "20240101",
    "2024-06-30T23:59:60", "2024-06-30 24:00:00", "2024-06-30 12:00:00.1234567", "2024-06-30 12:00:00+02",
    "2024-06-30 12:00:00", "2024-06-30T12:00", "12:00", "J2451187", "\x01", "\x7f", "\u00a0", "\u2003", "\U0001f600",
    "e\u0301", "\u00e9", "\uffff", "NULL", "null", "\\N", "ab" * 600,
)  # fmt: skip
NUMBERS = (
    "0", "1", "-1", "0.5", "1.5", "2.5", "-2.5", "1.0", "1.00", "9223372036854775807", "9223372036854775807.5",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775808.5", "99999999999999999999999999999999999999",
    "100000000000000000000000000000000000000", "170141183460469231731687303715884105727",
    "170141183460469231731687303715884105728", "NaN", "Infinity", "-Infinity", "1e-400", "1e400", "-1e400", "1e308",
    "1e309", "1e-307", "1e-308", "0.1", "123456789012345678901234567890.123456789",
)  # fmt: skip
REALS = (
    "0", "-0", "1", "-1", "0.5", "1.5", "2.5", "NaN", "Infinity", "-Infinity", "5e-324", "-5e-324", "710", "-746",
    "2.2250738585072014e-308", "1.7976931348623157e308", "-1.7976931348623157e308", "9.2233720368547758e18",
    "9.223372036854775e18", "-9.2233720368547758e18", "0.1", "1e16",
)  # fmt: skip
DAYS = (
    "0001-01-01",
    "9999-12-31",
    "0044-03-15 BC",
    "infinity",
    "-infinity",
    "10000-01-01",
    "2024-02-29",
    "4713-01-01 BC",
)
MOMENTS = (
    "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "0044-03-15 12:00:00 BC", "infinity", "-infinity",
    "294276-12-31 23:59:59.999999", "4713-01-01 00:00:00 BC", "2024-02-29 12:30:15.000001",
)  # fmt: skip

COLUMNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "small": ("smallint", ("-32768", "32767", "0")),
    "whole": ("integer", ("-2147483648", "2147483647", "0")),
    "large": ("bigint", ("-9223372036854775808", "9223372036854775807", "0", "1")),
    "free": ("numeric", NUMBERS),
    "wide": ("numeric(38, 0)", NUMBERS[:15]),
    "fixed": ("numeric(10, 2)", ("0", "1.5", "-99999999.99", "99999999.99", "NaN")),
    "single": ("real", ("0", "-0", "1.5", "NaN", "Infinity", "-Infinity", "1e-45", "3.4e38", "16777217")),
    "double": ("double precision", REALS),
    "words": ("text", TEXTS),
    "limited": ("varchar(6000)", TEXTS),
    "padded": ("char(10)", ("", " ", "a", "A", "a  ", "1", "01", "true", "2024-02-29", "today")),
    "named": ("name", ("", "a", "A", "1", "today")),
    "label": ("mood", ("sad", "SAD", "1", "2024-02-29")),
    "identifier": ("uuid", ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff")),
    "truth": ("boolean", ("true", "false")),
    "day": ("date", DAYS),
    "moment": ("timestamp", MOMENTS),
    "zoned": ("timestamptz", MOMENTS),
    "domain": ("code", ("a", "A", "today", "1")),
    "counted": ("amount", ("0", "1", "9223372036854775807")),
}
EXTENDED: dict[str, tuple[str, tuple[str, ...]]] = {
    "folded": ("citext", TEXTS),
    "equal": ("text COLLATE caseless", TEXTS),
}
"""What needs Debian's PostgreSQL: citext, and a collation for which texts of different bytes are equal."""
KINDS: tuple[Kind, ...] = (
    *(of(type_) for type_ in Type), integer(0, 255), integer(-5, 5), integer(*INT128),
)  # fmt: skip
OVERLOADED = """
CREATE FUNCTION public.lie(a text, b text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.lie);
CREATE FUNCTION public.fail(a bigint, b bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'seen'; END $$;
CREATE OPERATOR public.>= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.fail);
CREATE FUNCTION public.abs(a double precision) RETURNS double precision LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'seen'; END $$;
CREATE FUNCTION public.length(a text) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'seen'; END $$;
CREATE FUNCTION public.btrim(a text, b text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'seen'; END $$;
"""  # noqa: E501


def made(server: PostgresServer, columns: dict[str, tuple[str, tuple[str, ...]]]) -> StoredTables:
    url = server.fresh_database()
    tables = StoredTables(url)
    tables.execute("CREATE TYPE public.mood AS ENUM ('sad', 'SAD', '1', '2024-02-29')")
    tables.execute("CREATE DOMAIN public.code AS text CHECK (length(VALUE) < 100)")
    tables.execute("CREATE DOMAIN public.amount AS bigint CHECK (VALUE >= 0)")
    if "folded" in columns:
        tables.execute("CREATE EXTENSION citext")
        tables.execute(
            "CREATE COLLATION public.caseless (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
        )
    for called, (type_, values) in columns.items():
        tables.execute(f'CREATE TABLE data."{called}" (place bigint, value {type_})')
        with psycopg.connect(url, autocommit=True) as owner:
            for place, value in enumerate((*values, None)):
                value_ = f"%s::text::{type_.partition(' COLLATE')[0]}"
                owner.execute(f'INSERT INTO data."{called}" VALUES (%s, {value_})'.encode(), [place, value])
    tables.execute(OVERLOADED)
    tables.execute(
        "DO $$ BEGIN EXECUTE format("
        "'ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$"
    )
    tables.close()
    return StoredTables(url)


@pytest.fixture(scope="module")
def stored(postgres_server: PostgresServer) -> Iterator[StoredTables]:
    tables = made(postgres_server, COLUMNS)
    yield tables
    tables.close()


@pytest.fixture(scope="module")
def extended() -> Iterator[StoredTables]:
    with running_server(debian=True) as server:
        tables = made(server, EXTENDED)
        yield tables
        tables.close()


def source(tables: StoredTables, column: str) -> StoredTable:
    """The table as the engine finds it in the catalogue."""
    with tables.snapshot() as cursor:
        return name_stored(read_table(plain(cursor), "data", column))


def check(tables: StoredTables, column: str) -> None:
    """Read a column as every kind, and apply every function to what was read."""
    table, readable = source(tables, column), 0
    for kind in KINDS:
        for scan in (ScanValue("value", kind), ScanIdentity("value", kind)):
            try:
                read = printable(select(table, name("place"), alias(cast(scan, "text"), "read")))
            except PolicyError:
                continue
            readable += 1
            found = dict(tables.run(read))
            if isinstance(scan, ScanIdentity):
                check_identity(tables, column, found, kind)
        try:
            check_functions(tables, table, kind)
        except PolicyError:
            continue
    assert readable > 2, column


def check_identity(tables: StoredTables, column: str, found: dict[int, str | None], kind: Kind) -> None:
    """No two rows are of one unit unless their values are one in the source, by their bytes."""
    own = dict(tables.query(f'SELECT place, value::text COLLATE "C" FROM data."{column}"'))
    for one, other in itertools.combinations([place for place, value in found.items() if value is not None], 2):
        if found[one] == found[other]:
            assert own[one] == own[other] or tables.query(
                f"SELECT a.value = b.value AND a.value::text !~ '[[:alpha:]]' FROM data.\"{column}\" a, "
                f'data."{column}" b WHERE a.place = {one} AND b.place = {other}'
            ) == [(True,)], (column, kind, own[one], own[other])


def check_functions(tables: StoredTables, table: StoredTable, kind: Kind) -> None:
    """Apply every function that takes one such value, or it beside others."""
    shown = [alias(ScanValue("value", kind), "c0"), alias(ScanValue("value", kind), "c1")]
    read = select(table, *shown)
    for function in ALL_FUNCTIONS:
        pattern = Expressions(Random(1), []).of_function(function, 0)
        if pattern.arguments[0].kind.type is not kind.type:
            continue
        arguments = [
            Column(f"c{place % 2}", kind) if place < 2 and one.kind.type is kind.type and _is_free(function) else one
            for place, one in enumerate(pattern.arguments)
        ]
        arguments[0] = Column("c0", kind)
        try:
            node = lowering.lower(call(function, *arguments), {"c0": "c0", "c1": "c1"})
        except (MayOverflow, TypeMisfit):
            continue
        try:
            tables.run(printable(select(within(read), node)))
        except NotAllowed:
            continue


def _is_free(function: str) -> bool:
    return function not in {"in", "like", "starts_with", "substring"}


@pytest.mark.parametrize("column", list(COLUMNS))
def test_every_value_of_every_type(stored: StoredTables, column: str) -> None:
    check(stored, column)


def test_an_operator_of_somebody_else_would_be_seen(stored: StoredTables) -> None:
    """Planted: names that are found in ``public`` first make two spellings one unit."""
    table = source(stored, "words")
    read = printable(select(table, name("place"), alias(ScanIdentity("value", of(Type.INTEGER)), "v")))
    with stored.snapshot() as cursor:
        rightly = dict(stored.run_in(cursor, read, ()))
        cursor.execute("SET LOCAL search_path = public, pg_catalog")
        wrongly = dict(stored.run_in(cursor, read, ()))
    spelt = TEXTS.index("01"), TEXTS.index("1")
    assert [rightly[place] for place in spelt] == [None, 1]
    assert [wrongly[place] for place in spelt] == [1, 1]


@pytest.mark.parametrize("column", list(EXTENDED))
def test_types_and_collations_with_an_equality_of_their_own(extended: StoredTables, column: str) -> None:
    check(extended, column)
    table = source(extended, column)
    read = select(table, alias(ScanIdentity("value", of(Type.TEXT)), "v"))
    ((many,),) = extended.run(printable(select(within(read), count_distinct(name("v")))))
    assert many == len(set(TEXTS))
