"""Names of types: every one that the engine has, with the range that the engine really holds."""

from datetime import date, datetime

import duckdb
import pytest

from hubbub.errors import ParameterError
from hubbub.policy.kinds import INT64, INT128, Kind, Type, integer, of
from hubbub.policy.types import INTEGERS, READABLE, Unusable, base_name, declared_kind, engine_kind

KINDS: list[tuple[str, Kind]] = [
    ("TINYINT", integer(-128, 127)),
    ("SMALLINT", integer(-32768, 32767)),
    ("INTEGER", integer(-(2**31), 2**31 - 1)),
    ("int", integer(-(2**31), 2**31 - 1)),
    ("BIGINT", integer(-(2**63), 2**63 - 1)),
    ("HUGEINT", integer(-(2**127) + 1, 2**127 - 1)),
    ("UTINYINT", integer(0, 255)),
    ("USMALLINT", integer(0, 65535)),
    ("UINTEGER", integer(0, 2**32 - 1)),
    ("UBIGINT", integer(0, 2**64 - 1)),
    ("UHUGEINT", integer(0, 2**127 - 1)),
    ("DECIMAL(18,0)", integer(-(10**18) + 1, 10**18 - 1)),
    ("DECIMAL(38, 0)", integer(-(10**38) + 1, 10**38 - 1)),
    ("DECIMAL(18,3)", of(Type.REAL)),
    ("DECIMAL(4,1)", of(Type.REAL)),
    ("DECIMAL", of(Type.REAL)),
    ("NUMERIC(5,2)", of(Type.REAL)),
    ("FLOAT", of(Type.REAL)),
    ("DOUBLE", of(Type.REAL)),
    ("VARCHAR", of(Type.TEXT)),
    ("VARCHAR(20)", of(Type.TEXT)),
    ("UUID", of(Type.TEXT)),
    ("ENUM('a', 'b (c)[]')", of(Type.TEXT)),
    ("BOOLEAN", of(Type.BOOLEAN)),
    ("DATE", of(Type.DATE)),
    ("TIMESTAMP", of(Type.TIMESTAMP)),
    ("TIMESTAMP_S", of(Type.TIMESTAMP)),
    ("TIMESTAMP_MS", of(Type.TIMESTAMP)),
    ("TIMESTAMP_NS", of(Type.TIMESTAMP)),
    ("TIMESTAMP WITH TIME ZONE", of(Type.TIMESTAMP)),
    ("TIMESTAMPTZ", of(Type.TIMESTAMP)),
]


@pytest.mark.parametrize(("engine", "kind"), KINDS)
def test_engine_types(engine: str, kind: Kind) -> None:
    assert engine_kind(engine) == kind
    missing_never = engine_kind(engine, nullable=False)
    assert isinstance(missing_never, Kind)
    assert not missing_never.nullable


@pytest.mark.parametrize(
    "engine",
    [
        "INTEGER[]",
        "VARCHAR[3]",
        "DECIMAL(5,0)[]",
        "STRUCT(a INTEGER)",
        "STRUCT(a INTEGER)[]",
        "MAP(INTEGER, VARCHAR)",
        "UNION(a INTEGER)",
        "BLOB",
        "BIT",
        "INTERVAL",
        "TIME",
        "TIME WITH TIME ZONE",
        "BIGNUM",
        "JSON",
        "VARIANT",
        '"NULL"',
        "SOMETHING",
        "",
    ],
)
def test_types_that_no_question_can_use(engine: str) -> None:
    found = engine_kind(engine)
    assert isinstance(found, Unusable)
    assert found.reason.startswith(("holds ", "has "))


def test_every_type_of_the_engine_is_known() -> None:
    rows = duckdb.connect().execute("SELECT DISTINCT logical_type FROM duckdb_types()").fetchall()
    unknown = [name for (name,) in rows if engine_kind(name) == Unusable("has a type that is not known here")]
    assert unknown == []


@pytest.mark.parametrize("name", sorted(INTEGERS))
def test_ranges_are_those_of_the_engine(name: str) -> None:
    """Both ends fit; one further does not, or is what we leave out on purpose."""
    low, high = INTEGERS[name]
    connection = duckdb.connect()

    def fits(number: int) -> bool:
        (row,) = connection.execute(f"SELECT TRY_CAST('{number}' AS {name}) IS NOT NULL").fetchall()
        return bool(row[0])

    assert fits(low)
    assert fits(high)
    assert fits(low - 1) is (name == "HUGEINT")
    assert fits(high + 1) is (name == "UHUGEINT")


def test_values_of_an_enum_are_not_part_of_its_name() -> None:
    assert base_name("ENUM('Ann', 'Bob')") == "ENUM"
    assert base_name("STRUCT(ann INTEGER)[]") == "LIST"
    assert base_name("INTEGER[][3]") == "ARRAY"
    assert base_name("'); DROP") == "UNKNOWN"


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("boolean", of(Type.BOOLEAN)),
        ("integer", integer(*INT64)),
        ("Integer", integer(*INT64)),
        ("integer(8)", integer(-128, 127)),
        (" integer ( 32 ) ", integer(-(2**31), 2**31 - 1)),
        ("integer(64)", integer(*INT64)),
        ("integer(128)", integer(*INT128)),
        ("real", of(Type.REAL)),
        ("text", of(Type.TEXT)),
        ("date", of(Type.DATE)),
        ("timestamp", of(Type.TIMESTAMP)),
        (Type.TEXT, of(Type.TEXT)),
        (integer(0, 9), integer(0, 9)),
        ("int", integer(*INT64)),
        ("Float", of(Type.REAL)),
        ("str", of(Type.TEXT)),
        ("bool", of(Type.BOOLEAN)),
        ("datetime", of(Type.TIMESTAMP)),
        (int, integer(*INT64)),
        (float, of(Type.REAL)),
        (str, of(Type.TEXT)),
        (bool, of(Type.BOOLEAN)),
        (date, of(Type.DATE)),
        (datetime, of(Type.TIMESTAMP)),
    ],
)
def test_declared_types(written: object, kind: Kind) -> None:
    assert declared_kind("x", written) == kind
    assert not declared_kind("x", written, nullable=False).nullable


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("varchar", r"\(for VARCHAR, text\)"),
        ("bigint", r"\(for BIGINT, integer\)"),
        ("DECIMAL(9,2)", r"\(for DECIMAL, real\)"),
        ("intger", r"\(perhaps integer\)"),
        ("integer(7)", "one of boolean"),
        ("real(32)", "one of boolean"),
        ("text(8)", "one of boolean"),
        ("blob", "one of boolean"),
        ("", "one of boolean"),
        (3, "one of boolean"),
        (None, "one of boolean"),
        (bytes, "one of boolean"),
        ("int(8)", "one of boolean"),
        (type("int", (), {}), "one of boolean"),
    ],
)
def test_types_that_nobody_can_declare(written: object, said: str) -> None:
    with pytest.raises(ParameterError, match=f"type of column x must be .*{said}"):
        declared_kind("x", written)


def test_a_kind_keeps_what_it_knows() -> None:
    known = integer(0, 9, nullable=False)
    assert declared_kind("x", known, nullable=True) == known


SAMPLES = {
    Type.BOOLEAN: "true",
    Type.INTEGER: "1::BIGINT",
    Type.REAL: "1.0::DOUBLE",
    Type.DATE: "DATE '2024-02-29'",
    Type.TIMESTAMP: "TIMESTAMP '2024-02-29 12:00:00'",
}
ENGINE = {
    Type.BOOLEAN: "BOOLEAN",
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


@pytest.mark.parametrize("target", list(Type))
@pytest.mark.parametrize("own", list(SAMPLES))
def test_what_may_be_read_as_what_is_what_the_engine_can_read(own: Type, target: Type) -> None:
    ((found,),) = duckdb.connect().execute(f"SELECT TRY_CAST({SAMPLES[own]} AS {ENGINE[target]})").fetchall()
    if target is Type.BOOLEAN and own in {Type.INTEGER, Type.REAL}:
        assert target not in READABLE[own]  # the engine would, and calls 2 true
    else:
        assert (found is not None) is (target is own or target in READABLE[own])
