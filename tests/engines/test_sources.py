"""Every way in which a table can come, read through the engine's own process."""

import gzip
import json
import stat
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.sources.origins import Sources
from hubbub.errors import MissingExtra, ParameterError, PolicyError
from hubbub.policy.build import single_table
from hubbub.policy.kinds import INT64, Type, integer, of
from hubbub.policy.sources import source_of
from hubbub.policy.tables import Table, TableColumn, TableSource
from hubbub.policy.types import INTEGERS, OTHERS
from hubbub.query.expression import Column as Named
from hubbub.query.ops import Aggregate, Scan, ScanColumn
from tests.engines.evaluating import group, rows_tally, scan, tallied, total, units_tally

WHOLE, TEXT = integer(*INT64), of(Type.TEXT)
ROWS = [("a", 1, 5), ("a", 2, 7), ("b", 1, 100), ("b", 3, 1), ("", 1, None), (None, 1, 1)]
WANTED = [(3, 3, 15), (1, 1, 7)]
"""Rows, units and values up to 10, for the keys 1 and 2."""


def table(source: TableSource) -> Table:
    columns = (
        TableColumn(name="who", kind=TEXT),
        TableColumn(name="key", kind=WHOLE),
        TableColumn(name='it\'s "x"', kind=WHOLE),
    )
    return Table(name="t", source=source, columns=columns, unit="who")


def question(declared: Table) -> Aggregate:
    value = Named('it\'s "x"', WHOLE)
    return Aggregate(
        input=scan(declared, "key", value.name),
        groups=(group(Named("key", WHOLE), 1, 2),),
        tallies=(rows_tally(9), units_tally(), total(value, 0, 10, bounds=(0, 99))),
        most_groups=2,
    )


def asked(engine: DuckDB, source: TableSource) -> list[tuple[int, ...]]:
    declared = table(source)
    return tallied(engine, question(declared), {"t": declared})


def written(path: Path, sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE t(who VARCHAR, key BIGINT, "it\'s ""x""" BIGINT)')
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
        connection.execute(sql.format(path=str(path).replace("'", "''")))


def test_parquet_files(engine: DuckDB, tmp_path: Path) -> None:
    one, two = tmp_path / "it's 1.parquet", tmp_path / "2.parquet"
    written(one, "COPY (SELECT * FROM t WHERE key = 1) TO '{path}' (FORMAT parquet)")
    written(two, "COPY (SELECT * FROM t WHERE key <> 1) TO '{path}' (FORMAT parquet)")
    source = TableSource(format="parquet", paths=(str(one), str(two)))
    assert asked(engine, source) == WANTED
    assert engine.describe(source) == (("who", "VARCHAR"), ("key", "BIGINT"), ('it\'s "x"', "BIGINT"))


def test_csv_is_read_as_text(engine: DuckDB, tmp_path: Path) -> None:
    text = 'who,key,"it\'s ""x"""\na,1,5\r\na,2,7\nb,01,100\nb,x,1\n"",1,oops\n,1,1\n'
    plain, packed = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    plain.write_text(text, newline="")
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        source = TableSource(format="csv", paths=(str(path),))
        assert engine.describe(source) == (("who", "VARCHAR"), ("key", "VARCHAR"), ('it\'s "x"', "VARCHAR"))
        assert asked(engine, source) == WANTED


def test_a_csv_file_names_its_columns(engine: DuckDB, tmp_path: Path) -> None:
    for number, text in enumerate(("", "a,A\n1,2\n", "a,,b\n")):
        path = tmp_path / f"{number}.csv"
        path.write_text(text)
        with pytest.raises(PolicyError, match="first line"):
            engine.describe(TableSource(format="csv", paths=(str(path),)))


def test_json_lines(engine: DuckDB, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    names = ("who", "key", 'it\'s "x"')
    path.write_text("\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in ROWS))
    assert asked(engine, TableSource(format="json", paths=(str(path),))) == WANTED


def test_a_table_of_a_database(engine: DuckDB, tmp_path: Path) -> None:
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE TABLE "a ""b"(who VARCHAR, key BIGINT, "it\'s ""x""" BIGINT)')
        connection.executemany('INSERT INTO "a ""b" VALUES (?, ?, ?)', ROWS)
    source = TableSource(format="duckdb", paths=(str(path),), table='a "b')
    assert asked(engine, source) == WANTED
    assert [name for name, _ in engine.describe(source)] == ["who", "key", 'it\'s "x"']


def relation() -> Any:
    """A table in memory that needs no package but the engine's."""
    return duckdb.sql('SELECT * FROM (VALUES (1, 5), (1, 6), (2, 5)) AS t("user", key)')


def test_frames_are_written_once_for_their_owner_alone(tmp_path: Path) -> None:
    frame = relation()
    sources = Sources(str(tmp_path))
    first = sources.origin(TableSource(format="frame", frame=frame))
    assert first.paths == sources.origin(TableSource(format="frame", frame=frame)).paths
    (path,) = first.paths
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT sum(\"user\"), sum(key) FROM '{path}'").fetchone() == (4, 16)
    other = sources.origin(TableSource(format="frame", frame=relation()))
    assert other.paths != first.paths


def test_frames_through_the_engine(engine: DuckDB) -> None:
    columns = (TableColumn(name="user", kind=WHOLE), TableColumn(name="key", kind=WHOLE))
    declared = Table(name="t", source=TableSource(format="frame", frame=relation()), columns=columns, unit="user")
    op = Aggregate(
        input=Scan(table="t", columns=(ScanColumn("t.key", WHOLE, "key"),), unit="user"),
        groups=(group(Named("t.key", WHOLE), 5, 6),),
        tallies=(units_tally(),),
        most_groups=2,
    )
    assert tallied(engine, op, {"t": declared}) == [(2,), (1,)]
    assert engine.describe(declared.source) == (("user", "INTEGER"), ("key", "INTEGER"))


@pytest.mark.parametrize("frame", [None, 5, {"user": [12345]}, {12345}, b"12345", (one for one in [12345])])
def test_what_is_no_frame(engine: DuckDB, told: list[str], frame: Any) -> None:
    before = len(told)
    with pytest.raises(ParameterError, match=r"a table of pandas, polars or pyarrow .*pandas\.DataFrame") as refused:
        engine.describe(TableSource(format="frame", frame=frame))
    assert "12345" not in str(refused.value)
    assert len(told) == before


def test_a_frame_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    frame = duckdb.sql("SELECT error('12345')")
    with pytest.raises(duckdb.Error):
        Sources(str(tmp_path)).origin(TableSource(format="frame", frame=frame))
    assert list(tmp_path.iterdir()) == []


def test_the_package_that_frames_need_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("hubbub.engines.sources.arrow", "hubbub.engines.sources.frames"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr("hubbub.engines.sources.arrow", raising=False)
    monkeypatch.delattr("hubbub.engines.sources.frames", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.arrow").touch()
    for source in (
        TableSource(format="frame", frame=Path()),
        TableSource(format="arrow", paths=(str(tmp_path / "a.arrow"),)),
    ):
        with pytest.raises(MissingExtra, match=r"pip install \"hubbub\[arrow\]\""):
            Sources(str(tmp_path)).origin(source)
    assert [path.name for path in tmp_path.iterdir()] == ["a.arrow"]


@pytest.mark.parametrize("paths", [[{"user": 12345}], ["a.csv", 12345], [("a.csv", 12345)]])
def test_a_list_is_a_list_of_paths(paths: Any) -> None:
    with pytest.raises(ParameterError, match="path must be a path") as refused:
        source_of(paths)
    assert "12345" not in str(refused.value)


def test_no_type_that_can_be_used_is_missing_throughout(engine: DuckDB) -> None:
    """The engine has types that it cannot convert: their values would be missing without a word."""
    samples = {"BOOLEAN": "true", "UUID": "00000000-0000-0000-0000-000000000005"} | dict.fromkeys(INTEGERS, "5")
    usable = {name: samples.get(name, "2026-01-02" if "DATE" in name or "TIME" in name else "5") for name in OTHERS}
    usable |= {name: samples[name] for name in INTEGERS} | {"DECIMAL(9,2)": "5", "DECIMAL(9,0)": "5"}
    usable["ENUM('5')"] = usable.pop("ENUM")
    listed = ", ".join(
        f"CAST('{value}' AS {name}) AS \"{place}\"" for place, (name, value) in enumerate(usable.items())
    )
    source = TableSource(format="frame", frame=duckdb.sql(f"SELECT {listed}"))
    public = single_table(name="t", source=source, schema=engine.describe(source), unit=None)
    assert len(public.columns) == len(usable) == len(INTEGERS) + len(OTHERS) + 2
    for column in public.columns:
        listed_column = scan(public, column.name)
        found = engine.values(listed_column, Named(column.name, column.kind), tables={"t": public}, most=5)
        assert len(found) == 1, list(usable)[int(column.name)]


def test_public_facts(engine: DuckDB, tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    written(path, "COPY t TO '{path}' (FORMAT parquet)")
    columns = (TableColumn(name="who", kind=TEXT), TableColumn(name="key", kind=WHOLE))
    public = Table(name="p", source=TableSource(format="parquet", paths=(str(path),)), columns=columns, unit=None)
    listed = scan(public, "who", "key")
    who, key = Named("who", TEXT), Named("key", WHOLE)
    assert engine.fanout(listed, [key], tables={"p": public}).most == 4
    assert engine.fanout(listed, [key, who], tables={"p": public}).most == 1
    assert engine.values(listed, who, tables={"p": public}, most=5) == ("", "a", "b")
    assert engine.values(listed, key, tables={"p": public}, most=1) == (1, 2)
