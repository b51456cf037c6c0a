"""A drafted policy: readable once the unit is named, and without a single value."""

import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.policy.build import Schema
from hubbub.policy.files.read import parse_policy
from hubbub.policy.files.toml_text import header, key, text
from hubbub.policy.files.write import TableDraft, starter
from hubbub.policy.kinds import Type
from hubbub.policy.tables import TableSource

SCHEMA: list[tuple[str, str | None]] = [
    ("patient", "BIGINT"),
    ("cost", "DOUBLE"),
    ("ward", "ENUM('Ann Smith', 'Bob')"),
    ("late", "BOOLEAN"),
    ("day", "DATE"),
    ("at", "TIMESTAMP"),
    ("photo", "BLOB"),
    ("odd name\n[tables.evil]", "INTEGER"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("stays.parquet", "stays.csv", "wards.duckdb"):
        (tmp_path / name).touch()
    return tmp_path


def describe(source: TableSource) -> Schema:
    return SCHEMA


def test_it_reads_as_soon_as_the_unit_is_there(folder: Path) -> None:
    drafts = [
        TableDraft(name="stays", path="stays.parquet", format="parquet", schema=SCHEMA, unit="patient"),
        TableDraft(name="my wards", path="wards.duckdb", format="duckdb", table="w", schema=SCHEMA[:2], unit="Patient"),
    ]
    policy = parse_policy(starter(drafts, account="people"), file=folder / "p.toml", describe=describe)
    assert policy.account == "people"
    assert policy.ledger == f"{folder}/hubbub.ledger"
    assert list(policy.tables) == ["stays", "my wards"]
    assert policy.tables["my wards"].source.table == "w"
    assert policy.tables["stays"].unit == "patient"


def test_without_a_unit_it_says_what_is_missing(folder: Path) -> None:
    written = starter([TableDraft(name="stays", path="stays.parquet", format="parquet", schema=SCHEMA)])
    with pytest.raises(PolicyError, match="Table stays does not say whose its rows are"):
        parse_policy(written, file=folder / "p.toml", describe=describe)
    for line in ('unit = "patient"', "public = true"):
        named = written.replace('format = "parquet"', f'format = "parquet"\n{line}')
        assert parse_policy(named, file=folder / "p.toml", describe=describe)


def test_every_hint_is_a_declaration_that_reads(folder: Path) -> None:
    usable = SCHEMA[:6]
    written = starter([TableDraft(name="stays", path="stays.parquet", format="parquet", schema=usable, unit="late")])
    opened = [line.removeprefix("# ") if " = { " in line else line for line in written.splitlines()]
    shown = "\n".join(opened).replace('"…", "…"', '"a", "b"')
    policy = parse_policy(shown, file=folder / "p.toml", describe=lambda source: usable)
    columns = {column.name: column for column in policy.tables["stays"].columns}
    assert columns["cost"].bounds == (Fraction(0), Fraction(100))
    assert columns["patient"].bounds == (Fraction(0), Fraction(100))
    assert columns["ward"].keys == ("a", "b")
    assert not columns["at"].kind.nullable
    assert columns["day"].keys is not None


def test_untyped_sources_get_a_place_for_types(folder: Path) -> None:
    written = starter([TableDraft(name="stays", path="stays.csv", format="csv", schema=SCHEMA, unit="patient")])
    policy = parse_policy(written, file=folder / "p.toml", describe=describe)
    assert [(column.name, column.kind.type) for column in policy.tables["stays"].columns] == [("patient", Type.TEXT)]
    assert '# cost = { type = "…" }' in written


def test_no_value_and_no_line_of_a_name_slips_in() -> None:
    written = starter([TableDraft(name="stays", path="stays.parquet", format="parquet", schema=SCHEMA)])
    assert "Ann" not in written
    assert "evil" not in tomllib.loads(written)["tables"]
    assert "# photo holds bytes: it cannot be used." in written
    assert all(line.isprintable() for line in written.splitlines())


@pytest.mark.parametrize(
    "value", ["a", 'a"b', "a\\b", "a\nb", "\x00\x1f\x7f\x85", "é", "\u202e", "\U000e0001", "", "a.b"]
)
def test_strings_and_keys_come_back(value: str) -> None:
    assert tomllib.loads(f"x = {text(value)}") == {"x": value}
    assert tomllib.loads(f"{key(value)} = 1") == {value: 1}
    assert tomllib.loads(header("tables", value)) == {"tables": {value: {}}}
    assert tomllib.loads(f"x = {text(chr(0xD800))}") == {"x": "\ufffd"}
