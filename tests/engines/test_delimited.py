"""CSV is read row by row: against a reader that goes character by character, and on everything that breaks others."""

import gzip
import io
import itertools
import os
import stat
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hubbub.audit.subjects.in_process.inside import counted
from hubbub.engines.sources import conversion, delimited
from hubbub.engines.sources.conversion import Converted, convert
from hubbub.errors import PolicyError
from hubbub.policy.sources import CONVERTED, source_of
from hubbub.policy.tables import Limits
from hubbub.privacy.filter import Budget
from hubbub.session.opening import open as opened
from tests.engines import reference_csv

CONNECTION = duckdb.connect()
HOSTILE = (
    b'"', b'""', b'"""', b",", b"\n", b"\r", b"\r\n", b"\0", b"\\", b"\\n", b"\\e", b"\\b", b"a", b" ", b"1", b"\xff",
    b"\xc3", b"\xa9", "é".encode(), "\ufeff".encode(), b"\xed\xa0\x80", b"'", b"#", b"NULL", b"\x1a", b"\x0b", b";",
)  # fmt: skip

contents = st.lists(st.sampled_from(HOSTILE), max_size=40).map(b"".join)


def rows_in(converted: Converted) -> list[tuple[Any, ...]]:
    found = CONNECTION.execute("SELECT * FROM read_parquet($1)", [converted.path]).fetchall()
    assert tuple(column[0] for column in CONNECTION.description or ()) == converted.columns
    return found


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(value is None, value) for value in row])


def compare(folder: Path, content: bytes, *, longest: int = delimited.LONGEST) -> None:
    path = folder / "t.csv"
    path.write_bytes(content)
    header, records, bad = reference_csv.read(content, longest=longest)
    if header is None:
        with pytest.raises(PolicyError, match="does not name its columns"):
            convert(str(path), "csv", directory=str(folder))
        return
    made = convert(str(path), "csv", directory=str(folder))
    assert made.columns == header
    assert in_order(rows_in(made)) == in_order(records)
    assert made.rows == len(records)
    assert (made.left_out.count, made.left_out.first) == (len(bad), bad[:10])
    os.unlink(made.path)


@given(header=st.sampled_from([b"a,b\n", b"a\n", b'a,"b ""x""",c\r\n', b"\xef\xbb\xbfa,b\n"]), content=contents)
@example(header=b"a,b\n", content=b'1,"x\n2,y\n3,"z"\n')
@example(header=b"a,b\n", content=b'"1\r\n",2\r\n')
@example(header=b"a\n", content=b'""\n\n"')
@settings(max_examples=150)
def test_what_is_read_is_what_is_written(
    tmp_path_factory: pytest.TempPathFactory, header: bytes, content: bytes
) -> None:
    compare(tmp_path_factory.mktemp("csv"), header + content)


@given(content=contents)
@settings(max_examples=60)
def test_no_first_line_breaks_it(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    compare(tmp_path_factory.mktemp("csv"), content)


@given(content=st.lists(st.sampled_from((*HOSTILE, b"abcdefgh", b"a,b\n" * 5)), max_size=60).map(b"".join))
@settings(max_examples=120)
def test_blocks_and_chunks_may_end_anywhere(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """The same, with blocks of 16 bytes, chunks of 7, and records of 24 at most."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_BLOCK", 16)
        patch.setattr(delimited, "_CHUNK", 7)
        patch.setattr(delimited, "LONGEST", 24)
        patch.setattr(conversion, "_PART", 64)
        compare(tmp_path_factory.mktemp("csv"), b"a,b\n" + content, longest=24)


@pytest.mark.parametrize(
    ("content", "kept", "bad"),
    [
        (b'1,"x\n2,y\n3,z\n', [("2", "y"), ("3", "z")], [2]),
        (b'1,"x\ny"\n2,z\n', [("1", "x\ny"), ("2", "z")], []),
        (b'1,"x"y\n2,z\n', [("2", "z")], [2]),
        (b'1,5" pipe\n2,z\n', [("1", '5" pipe'), ("2", "z")], []),
        (b"1,\xff\n2,z\n", [("2", "z")], [2]),
        (b"1,\xed\xa0\x80\n2,z\n", [("2", "z")], [2]),
        (b"1,a\0b\n2,z\n", [("1", "a\0b"), ("2", "z")], []),
        (b"1,a\rb\n2,z\r\n", [("1", "a\rb"), ("2", "z")], []),
        (b"1,x,y\n2,z\n", [("2", "z")], [2]),
        (b"1\n2,z\n", [("1", None), ("2", "z")], []),
        (b'1,""\n2,\n', [("1", ""), ("2", None)], []),
        (b"1," + b"x" * (1 << 20) + b"\n2,z\n", [("2", "z")], [2]),
        (b"1," + b"x" * ((1 << 20) - 2) + b"\n2,z\n", [("1", "x" * ((1 << 20) - 2)), ("2", "z")], []),
        (b"1," + b"x" * (1 << 25) + b"\n2,z", [("2", "z")], [2]),
        (b"2,z\n1," + b"x" * (1 << 25), [("2", "z")], [3]),
        (b'1,"' + b"x\n" * (1 << 20) + b'"\n', None, None),
    ],
    ids=itertools.count(),
)
def test_a_malformed_row_concerns_that_row_alone(tmp_path: Path, content: bytes, kept: Any, bad: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + content)
    made = convert(str(path), "csv", directory=str(tmp_path))
    if kept is None:  # a quote that is closed after more than a record may have: its lines are records by themselves
        assert made.left_out.count == 2
        assert made.rows == (1 << 20) - 1
        return
    assert in_order(rows_in(made)) == in_order(kept)
    assert made.left_out.first == bad


def test_large_files_are_read_whole(tmp_path: Path) -> None:
    """Parts, blocks with and without quotes, and quoted line ends all over a file of some megabytes."""
    lines, wanted = [b"id,text"], 0
    for number in range(200_000):
        text = b'"x\ny"' if number % 1000 == 0 else b'"q, ""z"""' if 100_000 < number < 101_000 else b"plain\\n"
        lines.append(b"%d,%s" % (number, text))
        wanted += 1
    path = tmp_path / "t.csv"
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversion, "_PART", 1 << 20)
        made = convert(str(path), "csv", directory=str(tmp_path))
    counted = CONNECTION.execute(
        "SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE text = 'x' || chr(10) || 'y'), "
        "count(*) FILTER (WHERE text = 'q, \"z\"'), count(*) FILTER (WHERE text = 'plain\\n') FROM read_parquet($1)",
        [made.path],
    ).fetchone()
    assert counted == (wanted, wanted, 200, 999, wanted - 1199)
    assert made.left_out.count == 0


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_blocks_of_whole_records_are_not_looked_at_line_by_line(end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited.Delimited, "_rewrite_lines", None)
    records = delimited.Delimited(io.BytesIO(b"a,b" + end + b"1,2" + end + b'"3, ""x""",4').read)
    assert b"".join(records.rows()) == b'1,2\n3\\c "x",4\n'


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is ahead, so that files are at rest as soon as they are written."""
    monkeypatch.setattr(time, "time_ns", lambda: os.stat(__file__).st_ctime_ns + (1 << 62))


def text(folder: Path, content: str = "a,b\n1,2\n") -> Path:
    path = folder / "t.csv"
    path.write_text(content)
    return path


@pytest.mark.usefixtures("later")
def test_a_result_is_used_again_until_the_file_changes(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    path = text(tmp_path, 'a,b\n1,2\n"x\n')
    first = convert(str(path), "csv", directory=str(own))
    assert first.path == str(path) + CONVERTED
    assert not list(own.iterdir())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["own", "t.csv", "t.csv" + CONVERTED]
    assert stat.S_IMODE(os.stat(first.path).st_mode) == 0o600
    inode = os.stat(first.path).st_ino
    assert convert(str(path), "csv", directory=str(own)) == first
    assert os.stat(first.path).st_ino == inode
    os.utime(path)
    time.sleep(0.02)
    path.write_text("a,b\n1,3\n")
    again = convert(str(path), "csv", directory=str(own))
    assert rows_in(again) == [("1", "3")]
    assert os.stat(first.path).st_ino != inode


def test_a_file_that_was_just_written_is_not_trusted_to_stay(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    path = text(tmp_path)
    made = convert(str(path), "csv", directory=str(own))
    assert os.path.dirname(made.path) == str(own)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["own", "t.csv"]


@pytest.mark.usefixtures("later")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, real = tmp_path / "own", conversion._empty
    own.mkdir()
    path = text(tmp_path)

    def refused(folder: str) -> str:
        if folder == str(tmp_path):
            raise PermissionError
        return real(folder)

    monkeypatch.setattr(conversion, "_empty", refused)
    assert os.path.dirname(convert(str(path), "csv", directory=str(own)).path) == str(own)


@pytest.mark.usefixtures("later")
def test_what_somebody_else_put_beside_a_file_is_not_read(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    path = text(tmp_path)
    made = convert(str(path), "csv", directory=str(own))
    inode = os.stat(made.path).st_ino
    os.chmod(made.path, 0o666)
    assert os.stat(convert(str(path), "csv", directory=str(own)).path).st_ino != inode
    elsewhere = tmp_path / "elsewhere.parquet"
    os.replace(made.path, elsewhere)
    os.symlink(elsewhere, made.path)
    convert(str(path), "csv", directory=str(own))
    assert not os.path.islink(made.path)
    Path(made.path).write_bytes(b"PAR1 nonsense PAR1")
    assert rows_in(convert(str(path), "csv", directory=str(own))) == [("1", "2")]


@pytest.mark.usefixtures("later")
def test_other_rules_make_another_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    own.mkdir()
    path = text(tmp_path)
    inode = os.stat(convert(str(path), "csv", directory=str(own)).path).st_ino
    monkeypatch.setattr(conversion, "FORMAT", conversion.FORMAT + 1)
    assert os.stat(convert(str(path), "csv", directory=str(own)).path).st_ino != inode


def test_a_file_that_does_not_come_to_rest_is_refused(tmp_path: Path) -> None:
    path = text(tmp_path)

    def write(done: int, size: int) -> None:
        with path.open("a") as file:
            file.write("1,2\n")

    with pytest.raises(PolicyError, match="is being written to"):
        convert(str(path), "csv", directory=str(tmp_path), progress=write)
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


def test_a_packed_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    content = gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)
    path.write_bytes(content)
    assert convert(str(path), "csv", directory=str(tmp_path)).rows == 10_000
    for damaged in (content[:-9], content[: len(content) // 2], b"a,b\n1,2\n", content[:-8] + b"12345678"):
        path.write_bytes(damaged)
        with pytest.raises(PolicyError, match="damaged or cut short"):
            convert(str(path), "csv", directory=str(tmp_path))


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    path = text(tmp_path)
    told: list[tuple[int, int]] = []
    convert(str(path), "csv", directory=str(tmp_path), progress=lambda done, size: told.append((done, size)))
    assert told[-1] == (8, 8)


@pytest.mark.usefixtures("later")
def test_no_glob_matches_a_result(tmp_path: Path) -> None:
    path = text(tmp_path)
    convert(str(path), "csv", directory=str(tmp_path))
    (tmp_path / "u.parquet").touch()
    assert source_of("*.parquet", base=tmp_path).paths == (str(tmp_path / "u.parquet"),)


@pytest.mark.parametrize(
    "hostile",
    [b'7,"two\nlines"', b'7,"open', b"7,\xff", b"7," + b"x" * (1 << 22), b'7,"a"b', b"7,a,b,c", b"7,a\0b", b"\0" * 9],
    ids=range(8),
)
def test_one_row_fails_no_question_and_hides_nobody(tmp_path: Path, hostile: bytes) -> None:
    """The leak itself: such a row ended every question after the charge, or took the rows behind it away."""
    others = [b"%d,north" % person for person in range(100, 30_100)]
    path = tmp_path / "stays.csv"
    path.write_bytes(b"\n".join([b"who,ward", *others[:20_000], hostile, *others[20_000:]]) + b"\n")
    with opened(
        path,
        unit="who",
        columns={"who": "integer", "ward": "text"},
        limits=Limits(max_groups=1, max_rows=1),
        keys={"ward": ["north"]},
        budget=Budget(epsilon=Fraction(10)),
        ledger=tmp_path / "ledger",
    ) as db:
        (found,) = counted(db, db.plan("SELECT ward, count(*) FROM stays GROUP BY ward", epsilon=1))
    assert found.tallies == [(30_000,)]
