"""hubbub.toml: read exactly, and every mistake found on its line."""

import datetime as dt
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.errors import ParameterError, PolicyError
from hubbub.policy.build import Schema
from hubbub.policy.files.read import parse_policy, read_policy
from hubbub.policy.files.toml_text import DecimalText, Lines, exact
from hubbub.policy.kinds import INT64, Type, integer
from hubbub.policy.tables import Limits, Policy, TableSource
from hubbub.privacy.sensitivity import Neighbors

GOOD = """\
version = "2024-11"
ledger = "clinic.ledger"

[budget]
account = "patients"
epsilon = 0.1
delta = 1e-9
neighbors = "replace-one"

[limits]
max_groups = 5
max_rows = 3
seconds = 7.5
memory = "1GB"

[tables.stays]
path = "stays*.csv"
unit = "patient"
unique = true

[tables.stays.columns]
patient = { type = "integer", nullable = false }
cost = { type = "real", bounds = [0, 0.3], grid = 0.0009765625 }
ward = { type = "text", keys = ["north", "south"], missing_key = true }
day = { type = "date", keys = [2024-02-29] }

[tables.stays.columns.age]
type = "integer(8)"
bounds = [0, 120]

[tables.wards]
path = "wards.csv"
public = true
columns.ward.type = "text"
columns."bed count" = { type = "integer" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("stays1.csv", "stays2.csv", "wards.csv", "clinic.duckdb", "stays.parquet"):
        (tmp_path / name).touch()
    return tmp_path


def read(folder: Path, text: str) -> Policy:
    file = folder / "hubbub.toml"
    file.write_text(text)
    return read_policy(file)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        read(folder, text)
    start = f"{folder / 'hubbub.toml'}, "
    assert caught.value.message.startswith(start)
    return caught.value.message.removeprefix(start)


def test_rows_in_all_groups(folder: Path) -> None:
    found = read(folder, GOOD.replace("max_rows = 3", "max_rows = 3\nmax_total_rows = 7")).limits
    assert (found.max_rows, found.max_total_rows, found.rows) == (3, 7, 3)


def test_blocks_at_once(folder: Path) -> None:
    assert read(folder, GOOD).limits.lanes == 1
    assert read(folder, GOOD.replace("max_rows = 3", "max_rows = 3\nlanes = 4")).limits.lanes == 4


def test_a_whole_policy(folder: Path) -> None:
    policy = read(folder, GOOD)
    assert (policy.account, policy.version, policy.ledger) == ("patients", "2024-11", f"{folder}/clinic.ledger")
    assert policy.budget.epsilon == Fraction(1, 10)
    assert policy.budget.delta == Fraction(1, 10**9)
    assert policy.budget.neighbors is Neighbors.REPLACE_ONE
    assert policy.limits == Limits(max_groups=5, max_rows=3, seconds=7.5, memory="1GB")
    stays, wards = policy.tables["stays"], policy.tables["wards"]
    assert stays.source == TableSource(format="csv", paths=(f"{folder}/stays1.csv", f"{folder}/stays2.csv"))
    assert (stays.unit, stays.unique, wards.unit, wards.unique) == ("patient", True, None, False)
    patient, cost, ward, day, age = stays.columns
    assert patient.kind == integer(*INT64, nullable=False)
    assert (cost.bounds, cost.grid) == ((Fraction(0), Fraction(3, 10)), Fraction(1, 1024))
    assert all(type(number) is Fraction for number in (*(cost.bounds or ()), cost.grid))
    assert ward.keys == ("north", "south", None)
    assert day.keys == (dt.date(2024, 2, 29),)
    assert (age.kind.range, age.bounds) == ((-128, 127), (Fraction(0), Fraction(120)))
    assert [(column.name, column.kind.type) for column in wards.columns] == [
        ("ward", Type.TEXT),
        ("bed count", Type.INTEGER),
    ]


def test_what_need_not_be_said(folder: Path) -> None:
    policy = read(folder, '[budget]\naccount = "a"\nepsilon = 1\n[tables.wards]\npath = "wards.csv"\npublic = true\n'
                          'columns.ward.type = "text"\n')  # fmt: skip
    assert (policy.version, policy.ledger, policy.limits) == ("1", None, Limits())
    assert policy.budget.delta == 0
    assert policy.budget.neighbors is Neighbors.ADD_REMOVE


def test_the_schema_of_the_source_fills_in(folder: Path) -> None:
    asked: list[TableSource] = []

    def describe(source: TableSource) -> Schema:
        asked.append(source)
        return [("Patient", "BIGINT"), ("cost", "DOUBLE"), ("photo", "BLOB")]

    text = GOOD[: GOOD.index("[tables.stays]")] + '[tables.stays]\npath = "clinic.duckdb"\nunit = "patient"\n'
    policy = parse_policy(text + "columns.cost.bounds = [0, 1]\n", file=folder / "p.toml", describe=describe)
    stays = policy.tables["stays"]
    assert asked == [TableSource(format="duckdb", paths=(f"{folder}/clinic.duckdb",), table="stays")]
    assert [column.name for column in stays.columns] == ["Patient", "cost"]
    assert stays.unit == "Patient"
    assert stays.why_not("photo") is not None
    with pytest.raises(
        PolicyError, match=r"p.toml, line 20: The source of table stays has no column csot. Did you mean cost"
    ):
        parse_policy(text + "# one more line\ncolumns.csot = {}", file=folder / "p.toml", describe=describe)


def test_ledgers_elsewhere(folder: Path) -> None:
    text = GOOD.replace('"clinic.ledger"', '"postgresql://host/db"')
    assert read(folder, text).ledger == "postgresql://host/db"
    assert read(folder, GOOD.replace('"clinic.ledger"', '"/var/l"')).ledger == "/var/l"


WRONG = [
    ('version = "2024-11"', "version = 3", 1, "version must be a name"),
    ('ledger = "clinic.ledger"', "ledger = 3", 2, "ledger must be a path or the URL"),
    ('ledger = "clinic.ledger"', 'leger = "l"', 2, "A policy has no key leger. Did you mean ledger?"),
    ('ledger = "clinic.ledger"', "limits = 3", 10, "not TOML"),
    ('account = "patients"', "", 4, "[budget] does not say account. Add a line: account = …"),
    ('account = "patients"', 'account = ""', 5, "account must be a name"),
    ("epsilon = 0.1", "", 4, "[budget] does not say epsilon"),
    ("epsilon = 0.1", "epsilon = 0.0", 6, "epsilon must be a positive number. Got 0.0 instead."),
    ("epsilon = 0.1", "epsilon = inf", 6, "epsilon must be a positive number. Got inf"),
    ("epsilon = 0.1", 'epsilon = "1"', 6, "epsilon must be a positive number"),
    ("epsilon = 0.1", "epsilon = 1e999999999", 6, "epsilon must be a positive number"),
    ("epsilon = 0.1", "epsilon = ", 6, "not TOML"),
    ("epsilon = 0.1", f"epsilon = {'9' * 5000}", None, "not TOML"),
    ("delta = 1e-9", "delta = 1", 7, "delta must be a number in [0, 1)"),
    ("delta = 1e-9", "delta = nan", 7, "delta must be a number in [0, 1). Got nan"),
    ('"replace-one"', '"local"', 8, 'neighbors must be "add-remove" or "replace-one"'),
    ("max_groups = 5", "max_groups = 0", 11, "max_groups must be a whole number from 1"),
    ("max_groups = 5", "max_group = 5", 11, "[limits] has no key max_group. Did you mean max_groups?"),
    ("max_groups = 5", "x = 5", 11, "[limits] has no key x. There is max_groups, max_rows, max_total_rows, max_cells"),
    ("max_rows = 3", "max_rows = 3.0", 12, "max_rows must be a whole number"),
    ("max_rows = 3", "max_total_rows = 0", 12, "max_total_rows must be a whole number from 1"),
    ("seconds = 7.5", "seconds = -1", 13, "seconds must be a positive number"),
    ('memory = "1GB"', 'memory = "much"', 14, 'memory must be an amount such as "512MB"'),
    ('path = "stays*.csv"', "", 16, "Table stays does not say where its rows are"),
    ('path = "stays*.csv"', 'path = "visits.csv"', 17, "There is no file"),
    ('path = "stays*.csv"', 'path = "stays*.csv"\nformat = "xls"', 18, "format must be one of"),
    ('path = "stays*.csv"', 'path = "stays*.csv"\nformat = 3', 18, "format must be a string"),
    ('path = "stays*.csv"', 'path = "stays*.csv"\ntable = "t"', 18, "table must be"),
    ('unit = "patient"', "", 16, "Table stays does not say whose its rows are. Add unit ="),
    ('unit = "patient"', 'unit = "patient"\npublic = true', 19, "said to be public and to have a unit"),
    ('unit = "patient"', 'unit = "patient"\npublic = "no"', 19, "public must be true or false"),
    ('unit = "patient"', 'unit = "nobody"', 18, "Table stays has no usable column nobody"),
    ('unit = "patient"', 'unit = "cost"', 18, "The unit of table stays cannot be cost"),
    ('unit = "patient"', "unit = 3", 18, "unit of table stays must be the name of one column"),
    ('unit = "patient"', 'unit = ["a", "b"]', 18, "about several units, and one is protected"),
    ('unit = "patient"', 'unit = { via = "visits" }', 18, "[tables.stays.unit] has no key via. There is through"),
    ('unit = "patient"', 'unit = "patient"\nreferences = "v"', 19, "A path to the unit is said so: unit = { through ="),
    ('unit = "patient"', 'unit = "patient"\naccount = "b"', 19, "A table has no account of its own"),
    ("unique = true", 'unique = "yes"', 19, "unique of table stays must be true or false"),
    ("unique = true", "uniqe = true", 19, "[tables.stays] has no key uniqe. Did you mean unique?"),
    ("bounds = [0, 0.3]", "bounds = [0.3, 0.1]", 23, "bounds of column cost must be a pair (low, high)"),
    ("bounds = [0, 0.3]", "bounds = [0.3, 0.1]", 23, "Got [0.3, 0.1] instead."),
    ("bounds = [0, 0.3]", "bound = [0, 1]", 23, "[tables.stays.columns.cost] has no key bound. Did you mean bounds?"),
    ("grid = 0.0009765625", "grid = 0.1", 23, "(0.125 is the nearest). Got 0.1 instead."),
    ('type = "real"', 'type = "float8"', 23, "(for DOUBLE, real)"),
    ('"north", "south"', '"north", "north"', 24, "keys of column ward must be different"),
    ('"north", "south"', '"north", 3', 24, "keys of column ward must be text values"),
    ("missing_key = true", "missing_key = 1", 24, "missing_key must be true or false, beside keys"),
    ("keys = [2024-02-29]", "missing_key = true", 25, "missing_key must be true or false, beside keys"),
    ("keys = [2024-02-29]", "keys = [2024-02-29T12:00:00]", 25, "keys of column day must be date values"),
    ("nullable = false", "nullable = 0", 22, "nullable of column patient must be true or false"),
    ("bounds = [0, 120]", "bounds = [0, 128]", 29, "within -128 and 127"),
    ('type = "integer(8)"', 'typ = "integer"', 28, "[tables.stays.columns.age] has no key typ. Did you mean type?"),
    ('columns.ward.type = "text"', "columns.ward = 3", 34, "tables.wards.columns.ward must be a table"),
    ("public = true", 'public = true\ncolumns.WARD.type = "text"', 34, "are declared twice"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "said"), WRONG, ids=[f"{new[:30]}" for _, new, _, _ in WRONG])
def test_mistakes(folder: Path, old: str, new: str, line: int | None, said: str) -> None:
    assert GOOD.count(old) >= 1
    text = GOOD.replace(old, new, 1)
    message = refusal(folder, text)
    assert said in message
    if line is not None:
        assert message.startswith(f"line {line}: ")


def test_sections_must_be_sections(folder: Path) -> None:
    assert "budget must be a table: [budget]" in refusal(folder, "budget = 3")
    assert "tables must be at least one Table" in refusal(folder, '[budget]\naccount = "a"\nepsilon = 1')


def test_files_that_are_no_policy(folder: Path) -> None:
    with pytest.raises(PolicyError, match=r"cannot be read .* Write one with: hubbub init"):
        read_policy(folder / "none.toml")
    (folder / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="is not UTF-8 text"):
        read_policy(folder / "bad.toml")
    assert refusal(folder, "x = " + "[" * 100_000) == "line 1: not TOML: A number or a nesting is too large."
    assert refusal(folder, f"\nx = {'9' * 5000}") == "line 2: not TOML: A number or a nesting is too large."
    assert refusal(folder, "\n\nx =").startswith("line 3: not TOML: ")
    (folder / "mark.toml").write_text("\ufeff" + GOOD)
    assert read_policy(folder / "mark.toml").account == "patients"


def test_decimals_are_what_was_written() -> None:
    assert exact("0.1") == Fraction(1, 10)
    assert exact("1_000.5e-2") == Fraction(10005, 1000)
    assert exact("-1e-400") == -Fraction(1, 10**400)
    assert repr([exact("0.10")]) == "[0.10]"
    assert isinstance(exact("1e400"), DecimalText)
    for wild in ("1e401", "1e-401", "inf", "-inf", "1." + "1" * 400):
        assert exact(wild) == float("inf")
    assert exact("nan") != exact("nan")
    assert exact("0." + "1" * 398) == Fraction("1" * 398) / 10**398


def test_lines_are_found() -> None:
    text = (
        'a = 1\n[b]\n"c d" = """\n[e]\nf = 1\n"""\ng.h.i = 2\n'
        "keys = [\n  'x = 1',\n]\n[ b . 'j' ]\nk = {l = 1}\n# m = 1\n[[n]]\n"
    )
    lines = Lines(text)
    assert lines.of("a") == 1
    assert lines.of("B", "C D") == 3
    assert lines.of("e") == 1
    assert lines.of("b", "g", "h", "i") == 7
    assert lines.of("b", "g", "other") == 7
    assert lines.of("b", "nothing") == 2
    assert lines.of("b", "j", "k", "l") == 12
    assert lines.of("n") == 14
    assert lines.of() == 1
    assert Lines('x = 1\n[t."a.b"]\n"c\\"d" = 1\n').of("t", "a.b", 'c"d') == 3


def test_other_errors_keep_their_own_words(folder: Path) -> None:
    """What a source says when it cannot be described is not a mistake on a line."""

    def describe(source: TableSource) -> Schema:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        parse_policy(GOOD, file=folder / "p.toml", describe=describe)

    def refuse(source: TableSource) -> Schema:
        raise ParameterError("path", "a Parquet file", "x")

    with pytest.raises(PolicyError, match=r"p.toml, line 17: path must be a Parquet file"):
        parse_policy(GOOD, file=folder / "p.toml", describe=refuse)


@pytest.mark.parametrize("row", ['{"id": 1}', '{"id": 1, "rare": 2}'])
def test_names_in_json_are_declared_and_not_looked_up(tmp_path: Path, row: str) -> None:
    """Whether somebody has a name that nobody else has would be told by whether opening succeeds."""
    (tmp_path / "people.jsonl").write_text(row + "\n")
    (tmp_path / "hubbub.toml").write_text(
        '[budget]\naccount = "people"\nepsilon = 1\n[tables.people]\npath = "people.jsonl"\nunit = "id"\n'
        '[tables.people.columns]\nid = { type = "integer" }\nrare = { type = "integer" }\n'
    )
    with DuckDB(standbys=1) as engine:
        policy = read_policy(tmp_path / "hubbub.toml", describe=engine.describe)
    assert [column.name for column in policy.tables["people"].columns] == ["id", "rare"]
