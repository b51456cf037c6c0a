"""A source's own schema and the owner's declarations, merged."""

from fractions import Fraction
from typing import Any

import pytest

from hubbub.errors import ParameterError, PolicyError
from hubbub.policy.build import single_table
from hubbub.policy.kinds import INT64, Type, integer
from hubbub.policy.paths import through
from hubbub.policy.sources import source_of, table_name
from hubbub.policy.tables import Table, TableSource

PARQUET = TableSource(format="parquet", paths=("/stays.parquet",))
CSV = TableSource(format="csv", paths=("/stays.csv",))
SCHEMA: list[tuple[str, str | None]] = [
    ("Patient", "INTEGER"),
    ("cost", "DOUBLE"),
    ("ward", "VARCHAR"),
    ("price", "DECIMAL(9,2)"),
    ("notes", "VARCHAR[]"),
    ("thing", None),
]


def stays(source: Any = PARQUET, schema: Any = SCHEMA, unit: Any = "patient", **more: Any) -> Table:
    return single_table(name="stays", source=source, schema=schema, unit=unit, **more)


def test_the_schema_of_the_source_is_enough() -> None:
    made = stays()
    assert [(column.name, column.kind.type) for column in made.columns] == [
        ("Patient", Type.INTEGER),
        ("cost", Type.REAL),
        ("ward", Type.TEXT),
        ("price", Type.REAL),
    ]
    assert made.unit == "Patient"
    assert made.columns[0].kind.range == (-(2**31), 2**31 - 1)
    assert all(column.kind.nullable for column in made.columns)


def test_what_cannot_be_used_says_why() -> None:
    made = stays()
    assert made.why_not("NOTES") == "Column notes holds lists, which no question can use. Convert it in the source."
    assert made.why_not("thing") == (
        "Column thing has no type of its own. Declare one, such as text, integer, real or date: "
        'columns={"thing": "text"} in Python, thing = { type = "text" } in a policy and after --column. '
        "hubbub init guesses those of a file."
    )
    odd = stays(schema=[*SCHEMA, ("a\x1b[1m", "INTEGER")])
    (reason,) = [why for name, why in odd.unusable.items() if name.startswith("a")]
    assert reason.isprintable()
    assert "Rename it" in reason


def test_declarations_find_their_columns_whatever_the_case() -> None:
    made = stays(
        bounds={"COST": (0, 50_000), "patient": (0, 10)},
        keys={"Ward": ["a", "b"]},
        grids={"cost": 0.25},
        nullable={"ward": False},
        types={"thing": "date", "PATIENT": "integer(64)"},
        unique=True,
    )
    cost, ward, thing = made.column("cost"), made.column("ward"), made.column("thing")
    assert cost is not None
    assert ward is not None
    assert thing is not None
    assert (cost.bounds, cost.grid) == ((Fraction(0), Fraction(50_000)), Fraction(1, 4))
    assert (ward.keys, ward.kind.nullable) == (("a", "b"), False)
    assert thing.kind.type is Type.DATE
    assert made.columns[0].kind == integer(*INT64)
    assert made.columns[0].bounds == (Fraction(0), Fraction(10))
    assert made.unique


@pytest.mark.parametrize("source", [CSV, TableSource(format="json", paths=("/stays.json",))])
def test_types_are_never_sniffed(source: TableSource) -> None:
    made = stays(source)
    spelt = "Patient" if source is CSV else "patient"  # a CSV file has a header, and JSON has what is declared
    assert [(column.name, column.kind.type) for column in made.columns] == [(spelt, Type.TEXT)]  # any id
    made = stays(source, types={"patient": "integer", "cost": "real"})
    assert [(column.name, column.kind.type) for column in made.columns] == [(spelt, Type.INTEGER), ("cost", Type.REAL)]
    assert set(made.unusable) == ({"ward", "price", "notes", "thing"} if source is CSV else set())
    with pytest.raises(PolicyError, match=r"No column of table stays can be used. Column [Pp]atient has no type"):
        stays(CSV, unit=None)


@pytest.mark.parametrize("what", ["bounds", "keys", "types", "nullable", "grids"])
def test_a_column_that_is_not_there(what: str) -> None:
    with pytest.raises(PolicyError, match=f"no column wrad to declare {what} of. Did you mean ward"):
        stays(**{what: {"wrad": None}})
    with pytest.raises(PolicyError, match=f"The {what} of column WARD are declared twice"):
        stays(**{what: {"ward": None, "WARD": None}})
    with pytest.raises(ParameterError, match=f"{what} must be a mapping"):
        stays(**{what: ["ward"]})


def test_nothing_can_be_said_of_what_cannot_be_used() -> None:
    for facts in ({"keys": {"notes": ["a"]}}, {"bounds": {"thing": (0, 1)}}, {"types": {"notes": "text"}}):
        with pytest.raises(PolicyError, match="nothing can be declared of it"):
            stays(**facts)
    assert stays(nullable={"notes": False}).why_not("notes")


def test_a_type_that_the_values_cannot_be_read_as() -> None:
    assert stays(types={"cost": "integer", "ward": "date"}).columns[1].kind.type is Type.INTEGER
    with pytest.raises(PolicyError, match="Column cost holds real values in its source, which cannot be read as date"):
        stays(types={"cost": "date"})
    with pytest.raises(ParameterError, match="nullable of column ward must be true or false"):
        stays(nullable={"ward": "no"})


@pytest.mark.parametrize(
    ("engine", "type_", "good"),
    [
        ("INTEGER", None, True),
        ("DECIMAL(18,0)", None, True),
        ("UUID", None, True),
        ("DATE", None, True),
        ("INTEGER", "text", True),
        ("DATE", "text", True),
        (None, "integer", True),
        ("DOUBLE", None, False),
        ("DOUBLE", "integer", False),
        ("DOUBLE", "text", False),
        ("TIMESTAMP", "date", False),
        ("VARCHAR", "integer", False),
        ("DECIMAL(18,2)", None, False),
        ("DECIMAL(18,2)", "text", False),
        ("TIMESTAMP", "text", False),
        ("TIMESTAMP_NS", "text", False),
        ("TIMESTAMP WITH TIME ZONE", "text", False),
        ("FLOAT", "integer", False),
        ("BOOLEAN", "integer", False),
    ],
)
def test_no_two_units_become_one(engine: str | None, type_: str | None, good: bool) -> None:
    facts: dict[str, Any] = {"types": {"who": type_}} if type_ else {}
    schema = [("who", engine), ("x", "INTEGER")]
    path = through("who", to="people")
    if good:
        assert stays(schema=schema, unit="who", **facts).unit == "who"
        assert stays(schema=schema, unit=path, **facts).through == path
        assert stays(schema=schema, unit="x", uniques={"who": True}, **facts).columns[0].unique
        return
    with pytest.raises(PolicyError, match="unit"):
        stays(schema=schema, unit="who", **facts)
    with pytest.raises(PolicyError, match="unit"):
        stays(schema=schema, unit=path, **facts)
    if type_ is not None:
        with pytest.raises(PolicyError, match="cannot be unique"):
            stays(schema=schema, unit="x", uniques={"who": True}, **facts)
    assert stays(schema=schema, unit=None, **facts).column("who")


def test_a_name_that_prints_comes_before_everything_that_prints_it() -> None:
    with pytest.raises(ParameterError, match="name of a table must be"):
        single_table(name="\x1b[1m", source=PARQUET, schema=SCHEMA, unit=None, bounds={"none": (0, 1)})


def test_files(tmp_path: Any) -> None:
    for name in ("b.parquet", "a.parquet", "[x].parquet", "c.csv", "d.csv.gz", "e.bin", "clinic.v2.duckdb"):
        (tmp_path / name).touch()
    here = str(tmp_path)
    assert source_of("a.parquet", base=tmp_path).paths == (f"{here}/a.parquet",)
    assert source_of("[ab].parquet", base=tmp_path).paths == (f"{here}/a.parquet", f"{here}/b.parquet")
    assert source_of("[x].parquet", base=tmp_path).paths == (f"{here}/[x].parquet",)
    assert source_of(["b.parquet", "a.parquet"], base=tmp_path).paths == (f"{here}/b.parquet", f"{here}/a.parquet")
    assert source_of(tmp_path / "c.csv").format == "csv"
    assert source_of("d.csv.gz", base=tmp_path).format == "csv"
    assert source_of("e.bin", base=tmp_path, format="parquet").format == "parquet"
    assert source_of("clinic.v2.duckdb", base=tmp_path, table="s").table == "s"
    assert source_of("clinic.v2.duckdb", base=tmp_path, name="stays").table == "stays"
    assert source_of("a.parquet", base=tmp_path, name="stays").table is None


@pytest.mark.parametrize(
    ("path", "more", "said"),
    [
        ("none.parquet", {}, "There is no file"),
        ("*.csv.*", {"format": "excel"}, "format must be one of"),
        ("*", {}, "of several formats"),
        ("e.bin", {}, "does not follow from its name"),
        ([], {}, "a path, a glob, or a list"),
        (3, {}, "a path, a glob, or a list"),
        ([3], {}, "a path, a glob, or a list"),
        ("c.csv", {"table": "t"}, "table must be"),
        (["c.csv", "a.parquet"], {"format": "duckdb"}, "one DuckDB file"),
    ],
)
def test_files_that_are_not_there(tmp_path: Any, path: Any, more: dict[str, Any], said: str) -> None:
    for name in ("a.parquet", "c.csv", "d.csv.gz", "e.bin"):
        (tmp_path / name).touch()
    with pytest.raises((PolicyError, ParameterError), match=said):
        source_of(path, base=tmp_path, **more)


@pytest.mark.parametrize(
    ("path", "name"),
    [("stays.parquet", "stays"), ("a/b/stays.csv.gz", "stays"), ("data/stays/*.parquet", "stays"), ("s_*.csv", "s")],
)
def test_the_name_of_a_file_is_the_name_of_a_table(path: str, name: str) -> None:
    assert table_name(path) == name
