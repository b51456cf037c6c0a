"""JSON is read object by object: no line, and no value in it, stops the reading or touches another row."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.audit.subjects.in_process.inside import counted
from hubbub.engines.sources.conversion import Converted, convert
from hubbub.errors import PolicyError
from hubbub.privacy.filter import Budget
from hubbub.session.opening import open as opened

CONNECTION = duckdb.connect()


def made(folder: Path, content: bytes) -> tuple[Converted, list[dict[str, Any]]]:
    path = folder / "t.json"
    path.write_bytes(content)
    found = convert(str(path), "json", directory=str(folder))
    rows = CONNECTION.execute("SELECT * FROM read_parquet($1)", [found.path]).fetchall()
    return found, [dict(zip(found.columns, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[1]", b"7", b"null", b'"x"', b'{"a": 1', b'{"a": 1, "a": 2}', b'{"a": 1, "A": 2}', b'{"a": \xff}',
        b"nan", b"[" * 100_000, b'{"a": ' * 100_000, b'{"a": "' + b"x" * (1 << 20) + b'"}', b"\0", b"{} {}",
        b'{"a": 1}, {"a": 2}', b"'", b'{a: 1}', b'{"a": 01}', b"\xef\xbb\xbf{",
        b"{" + b", ".join(b'"k%d": 1' % number for number in range(10_001)) + b"}",
    ],
    ids=range(21),
)  # fmt: skip
def test_a_line_that_is_no_object_concerns_that_line_alone(tmp_path: Path, line: bytes) -> None:
    found, rows = made(tmp_path, b'{"a": 1}\n' + line + b'\n{"a": 3}\n')
    assert sorted(row["a"] for row in rows) == ["1", "3"]
    assert found.left_out.count == line.count(b"\n") + 1
    assert found.left_out.first[0] == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1", "1"), ("1.0", "1"), ("1e2", "100"), ('"1"', "1"), ("0.10", "0.1"), ("true", "true"), ("null", None),
        ('""', ""), ('"\\n,\\\\"', "\n,\\"), ('"\\u0000"', "\0"), ('"\\ud800"', None), ("NaN", None),
        ("-Infinity", None), ("1e999", None), ("1" * 5000, None), ("12345678901234567890", "12345678901234567890"),
        ('[1, "x"]', '[1,"x"]'), ('{"b": {"c": [1.5, null]}}', '{"b":{"c":[1.5,null]}}'), ('{"b": 1, "b": 2}', None),
        ("0.1234567890123456789", "0.1234567890123456789"), ("-0", "0"), ('"\\uD83D\\uDE00"', "😀"),
    ],
    ids=range(22),
)  # fmt: skip
def test_values_as_text(tmp_path: Path, value: str, text: str | None) -> None:
    lines = f'{{"a": {value}, "z": "1"}}\n'
    assert made(tmp_path, lines.encode())[1] == [{"a": text, "z": "1"}]
    found, rows = made(tmp_path, f"\ufeff [{lines},\n{lines}]".encode())
    assert rows == [{"a": text, "z": "1"}] * 2
    assert found.left_out.count == 0


def test_columns_are_the_names_in_all_objects(tmp_path: Path) -> None:
    found, rows = made(tmp_path, b'{"a": 1}\n{"b": 2, "A": 3}\n\n{"": 1, "c\\u0000": 2, "\\ud800": 3}\r\n')
    assert found.columns == ("a", "b")
    assert sorted(rows, key=str) == sorted([{"a": "1", "b": None}, {"a": "3", "b": "2"}], key=str)
    assert found.left_out.count == 0


def test_elements_of_an_array_that_are_no_objects_are_left_out(tmp_path: Path) -> None:
    found, rows = made(tmp_path, b'[{"a": 1}, 7, null, {"a": 1, "a": 2}, [], {"a": 2}]')
    assert [row["a"] for row in rows] == ["1", "2"]
    assert str(found.left_out) == "4 malformed records were left out: element 2, 3, 4, 5"


@pytest.mark.parametrize("content", [b"[", b'[{"a": 1}', b'[{"a": 1}] x', b"[\xff]", b"[" * 100_000])
def test_a_malformed_array_is_refused_when_it_is_opened(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(PolicyError, match="must be one whole array"):
        made(tmp_path, content)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"x\n", b"[]", b"{}"])
def test_a_file_without_columns_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(PolicyError, match="holds no JSON objects"):
        made(tmp_path, content)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(objects=st.lists(st.dictionaries(st.sampled_from("abc"), values, min_size=1), min_size=1, max_size=8))
@settings(max_examples=60)
def test_lines_and_arrays_hold_the_same_rows(tmp_path_factory: pytest.TempPathFactory, objects: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("json")
    (one, first), (other, second) = (
        made(folder, content.encode())
        for content in ("\n".join(map(json.dumps, objects)), json.dumps(objects, ensure_ascii=True))
    )
    assert one.columns == other.columns
    assert sorted(first, key=repr) == sorted(second, key=repr)
    assert one.left_out.count == other.left_out.count == 0
    assert one.rows == sum(any(value is not None for value in found.values()) for found in objects)


def test_what_is_asked_does_not_depend_on_names_in_the_rows(tmp_path: Path) -> None:
    """A name that only one person has is no column, and one that nobody has is missing in every row."""
    common: dict[str, Any] = {
        "unit": "who", "types": {"who": "integer", "sick": "boolean"}, "budget": Budget(epsilon=Fraction(10)),
        "max_groups": 1, "max_rows": 1,
    }  # fmt: skip
    tables = []
    for place, lines in enumerate(('{"who": 1, "sick": true, "rare": 1}\n{"who": 2}\n', '{"who": 2}\n')):
        folder = tmp_path / str(place)
        folder.mkdir()
        (folder / "t.jsonl").write_text(lines)
        with opened(folder / "t.jsonl", ledger=folder / "ledger", **common) as db:
            tables.append((db.policy.tables["t"].columns, db.policy.tables["t"].unusable))
            found = counted(db, db.plan("SELECT count(*), count(sick) FROM t", epsilon=1))[0].tallies
            assert found == [(2 - place, 1 - place)]
    assert tables[0] == tables[1]
