"""Two people never become one by the way their ids are read, and one never becomes two."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.audit.subjects.in_process.inside import counted
from hubbub.engines.duckdb.owner_check import Check, check
from hubbub.engines.duckdb.scan import scan_identity, scan_value
from hubbub.errors import HubbubError, PolicyError
from hubbub.policy.in_python import private
from hubbub.policy.kinds import INT128, Kind, Type, integer, of
from hubbub.policy.paths import through
from hubbub.policy.tables import Limits, Policy, Table, TableColumn, TableSource
from hubbub.privacy.filter import Budget
from hubbub.session.opening import open as opened

SHARED = duckdb.connect()
KINDS = {
    "integer": of(Type.INTEGER),
    "integer(8)": integer(-128, 127),
    "integer(128)": integer(*INT128),
    "date": of(Type.DATE),
    "boolean": of(Type.BOOLEAN),
}
SPELLINGS = {
    "integer": ("7", "07", " 7", "7 ", "+7", "7.0", "6.9", "0x7", "7e0", "7_0", "0b111", "७", "-0", "1e0", "７"),
    "integer(8)": ("7", "007", "7.4", "-7", "--7", "128"),
    "integer(128)": ("7", "07", "170141183460469231731687303715884105728", "1e30"),
    "date": ("2024-01-05", "2024-1-5", "2024/01/05", " 2024-01-05", "2024-01-05 (BC)", "20240105", "2024-01-05 12:00"),
    "boolean": ("true", "TRUE", "t", "1", "yes", "false", "0", "F", "True"),
}


def read(texts: list[str], kind: Kind, scan: Callable[[str, Kind], str] = scan_identity) -> list[Any]:
    rows = SHARED.execute(
        f"SELECT p, {scan('v', kind)} FROM (SELECT unnest($1::VARCHAR[]) AS v, unnest($2::INT[]) AS p) ORDER BY p",
        [texts, list(range(len(texts)))],
    ).fetchall()
    return [value for _, value in rows]


@pytest.mark.parametrize("name", KINDS)
def test_only_the_spelling_of_the_value_itself_is_an_id(name: str) -> None:
    texts = list(SPELLINGS[name])
    values = read(texts, KINDS[name])
    kept = [value for value in values if value is not None]
    assert kept
    assert len(set(kept)) == len(kept), "no two of these texts are one id"
    assert len(set(read(texts, KINDS[name], scan_value))) < len(texts), "as values some of them are alike"


@given(texts=st.lists(st.text(alphabet="0123456789+-. eExX_:/tTrRuUfFaAlLsS\u0660", max_size=12), unique=True))
@settings(max_examples=60)
def test_reading_an_id_is_injective(texts: list[str]) -> None:
    for kind in KINDS.values():
        kept = [value for value in read(texts, kind) if value is not None]
        assert len(set(kept)) == len(kept)


@pytest.mark.parametrize(
    ("engine", "values", "kind", "wanted"),
    [
        ("TINYINT", "7, -7, NULL", "integer", [7, -7, None]),
        ("UBIGINT", "18446744073709551615, 7", "integer(128)", [18446744073709551615, 7]),
        ("HUGEINT", "9223372036854775808, 7", "integer", [None, 7]),
        ("DECIMAL(18,0)", "7, 8", "integer", [7, 8]),
        ("DATE", "DATE '2024-01-05', NULL", "date", ["2024-01-05", None]),
        ("BOOLEAN", "true, false", "boolean", [True, False]),
        ("DOUBLE", "7.0, 6.9, 7.1", "integer", [None, None, None]),
        ("TIMESTAMP", "TIMESTAMP '2024-01-05 00:00:00'", "date", [None]),
        ("INTEGER", "1, 2", "boolean", [None, None]),
    ],
)
def test_typed_ids_are_read_as_they_are_or_not_at_all(engine: str, values: str, kind: str, wanted: list[Any]) -> None:
    made = f"SELECT unnest([{values}]::{engine}[]) AS v"
    found = SHARED.execute(f"SELECT {scan_identity('v', KINDS[kind])} FROM ({made})").fetchall()
    assert [str(value) if kind == "date" and value else value for (value,) in found] == wanted


@pytest.fixture
def stays(tmp_path: Path) -> Path:
    """Twenty people whose ids an integer would merge with those of twenty others."""
    lines = [f"{person},north" for person in range(20)] + [f"0{person},south" for person in range(20)]
    path = tmp_path / "stays.csv"
    path.write_text("who,ward\n" + "\n".join(lines) + "\n")
    return path


def test_one_person_who_leaves_moves_nobody_else(stays: Path, tmp_path: Path) -> None:
    """The leak itself: 7 and 07 were one person with two groups, of which max_groups kept one or the other."""
    question = "SELECT ward, count(*) FROM stays GROUP BY ward"
    found = []
    for place, left_out in enumerate((None, "07,south")):
        path = tmp_path / str(place) / "stays.csv"
        path.parent.mkdir()
        path.write_text("\n".join(line for line in stays.read_text().splitlines() if line != left_out) + "\n")
        with opened(
            path,
            unit="who",
            columns={"who": "integer", "ward": "text"},
            limits=Limits(max_groups=1, max_rows=1),
            budget=Budget(epsilon=Fraction(10)),
            keys={"ward": ["north", "south"]},
            ledger=tmp_path / f"ledger{place}",
        ) as db:
            found.append(counted(db, db.plan(question, epsilon=1))[0].tallies)
    assert found == [[(20,), (0,)], [(20,), (0,)]]


def test_the_check_says_how_many_ids_are_spelt_otherwise() -> None:
    table = Table(
        name="t",
        source=TableSource(format="csv", paths=("/nowhere.csv",)),
        columns=(TableColumn(name="who", kind=of(Type.INTEGER)),),
        unit="who",
    )
    policy = Policy(account="a", budget=Budget(epsilon=Fraction(1)), tables={"t": table})
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT unnest(['7', '07', '7.0', 'x', NULL]) AS who")
    report = check(policy, lambda sql: connection.execute(sql).fetchall())
    found = {finding.fact: (finding.against, finding.out_of) for finding in report.findings}
    assert found == {Check.READABLE: (1, 5), Check.SPELLING: (2, 5), Check.UNIT: (4, 5)}
    assert report.holds


def test_keys_on_a_path_are_read_as_ids(tmp_path: Path) -> None:
    """Notes that say 07 lead nowhere, since the stay is called 7."""
    (tmp_path / "stays.csv").write_text("id,who\n7,a\n8,b\n")
    (tmp_path / "notes.csv").write_text("stay\n7\n07\n8\n8.0\n")
    types = {"id": "integer", "who": "text"}
    with opened(
        tmp_path / "stays.csv",
        unit="who",
        columns=types,
        unique=["id"],
        budget=Budget(epsilon=Fraction(10)),
        max_groups=1,
        max_rows=5,
        ledger=tmp_path / "ledger",
        tables={
            "notes": private(
                tmp_path / "notes.csv",
                unit=through("stay", to="stays", key="id"),
                columns={"stay": "integer"},
            )
        },
    ) as db:
        assert counted(db, db.plan("SELECT count(*) FROM notes", epsilon=1))[0].tallies == [(2,)]


def test_units_of_two_types_are_not_compared(tmp_path: Path) -> None:
    """An integer and a text could only be compared in a type that merges some; nothing is paid."""
    for name, value in (("a", "7::BIGINT"), ("b", "'7'")):
        with duckdb.connect() as made:
            made.execute(f"COPY (SELECT {value} AS who, 1 AS n) TO '{tmp_path / name}.parquet'")
    with opened(
        tmp_path / "a.parquet",
        unit="who",
        budget=Budget(epsilon=Fraction(10)),
        limits=Limits(max_groups=1, max_rows=1),
        tables={"b": private(tmp_path / "b.parquet", unit="who")},
        ledger=tmp_path / "ledger",
    ) as db:
        for question in (
            "SELECT count(*) FROM a JOIN b ON a.who = b.who",
            "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.who = a.who)",
            "SELECT count(*) FROM (SELECT who, n FROM a UNION ALL SELECT who, n FROM b) AS u",
        ):
            with pytest.raises(HubbubError):
                db.sql(question, epsilon=1)
        assert db.ledger.statement(db.policy.account).spent.loss == 0


@pytest.mark.parametrize("value", ["7.5::DOUBLE", "TIMESTAMP '2024-01-05 00:00:00'", "7::DECIMAL(9,2)", "7::FLOAT"])
def test_reals_and_moments_name_nobody(tmp_path: Path, value: str) -> None:
    with duckdb.connect() as made:
        made.execute(f"COPY (SELECT {value} AS who, 1 AS n) TO '{tmp_path}/a.parquet'")
    for types in ({}, {"who": "text"}):
        with pytest.raises(PolicyError, match="cannot"):
            opened(
                tmp_path / "a.parquet", unit="who", columns=types, budget=Budget(epsilon=Fraction(1)),
                ledger=tmp_path / "ledger",
            )  # fmt: skip


def bytes_as_text(values: list[bytes]) -> Any:
    pa = pytest.importorskip("pyarrow", reason="pyarrow writes text that is not UTF-8, and is not installed")
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), raw.buffers())


@pytest.mark.parametrize("dictionary", [True, False])
def test_text_that_is_not_utf8_fails_no_question_and_merges_nobody(tmp_path: Path, dictionary: bool) -> None:
    """The engine reads each wrong byte as ?, so ids with a ? in them could be several: their rows belong to nobody."""
    ids = [b"ann", b"\xff", b"\xfe", b"?", b"b\xc3"]
    made = pytest.importorskip("pyarrow").table({"who": bytes_as_text(ids), "word": bytes_as_text([b"x\xff"] * 5)})
    pytest.importorskip("pyarrow.parquet").write_table(made, tmp_path / "a.parquet", use_dictionary=dictionary)
    with opened(
        tmp_path / "a.parquet",
        unit="who",
        budget=Budget(epsilon=Fraction(10)),
        limits=Limits(max_groups=1, max_rows=1),
        ledger=tmp_path / "ledger",
    ) as db:
        (found,) = counted(db, db.plan("SELECT count(*), count(word) FROM a WHERE length(word) = 2", epsilon=1))
    assert found.tallies == [(1, 1)]


@pytest.mark.parametrize("engine", ["TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
def test_moments_beyond_the_calendar_have_no_text(engine: str) -> None:
    made = f"SELECT unnest(['infinity', '-infinity', '2024-01-05 00:00:00']::{engine}[]) AS v"
    found = SHARED.execute(f"SELECT {scan_value('v', of(Type.TEXT))} FROM ({made})").fetchall()
    assert [value and value[:10] for (value,) in found] == [None, None, "2024-01-05"]


def test_the_last_moments_of_the_engine_do_not_stop_it(tmp_path: Path) -> None:
    """DuckDB 2.0 cannot write these as text: read so, they ended the question and the engine."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow writes such moments, and is not installed")
    ends = pa.array([0, 2**63 - 1, -(2**63), 2**62], pa.int64()).view(pa.timestamp("us"))
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"v": ends}), tmp_path / "a.parquet")
    source = f"read_parquet('{tmp_path}/a.parquet')"
    found = duckdb.connect().execute(f"SELECT {scan_value('v', of(Type.TEXT))} FROM {source}").fetchall()
    assert sorted(value for (value,) in found if value is not None) == ["1970-01-01 00:00:00"]
