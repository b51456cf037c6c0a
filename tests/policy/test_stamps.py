"""Stamps see every way in which a file can become another one, and are believed only once the clock has moved on."""

import json
import os
import time
from pathlib import Path

import duckdb
import pytest

from hubbub.policy import stamps
from hubbub.policy.stamps import GRAIN_NS, TICK_NS, Stamp, stamp_at_rest, stamp_files, stamp_of
from hubbub.policy.tables import TableSource


def _csv(path: Path) -> TableSource:
    return TableSource(format="csv", paths=(str(path),))


def _waited(path: Path) -> None:
    """Let the file system's clock tick."""
    first = os.stat(path).st_ctime_ns
    while True:
        (path.parent / "tick").write_text("")
        if os.stat(path.parent / "tick").st_ctime_ns > first:
            return
        time.sleep(0.001)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("id,n\n1,2\n")
    _waited(path)
    return path


def test_a_file_at_rest_keeps_its_stamp(file: Path) -> None:
    before = stamp_of(_csv(file))
    file.read_text()
    assert stamp_of(_csv(file)) == before


def test_other_content_of_the_same_length_and_time_changes_the_stamp(file: Path) -> None:
    before, status = stamp_of(_csv(file)), os.stat(file)
    file.write_text("id,n\n1,3\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    now = os.stat(file)
    assert (now.st_size, now.st_mtime_ns, now.st_ino) == (status.st_size, status.st_mtime_ns, status.st_ino)
    assert stamp_of(_csv(file)) != before


def test_a_file_put_in_its_place_changes_the_stamp(file: Path, tmp_path: Path) -> None:
    before, status = stamp_of(_csv(file)), os.stat(file)
    other = tmp_path / "other.csv"
    other.write_text("id,n\n1,3\n")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(file)
    assert stamp_of(_csv(file)) != before


def test_a_link_that_leads_elsewhere_changes_the_stamp(file: Path, tmp_path: Path) -> None:
    link, other = tmp_path / "link.csv", tmp_path / "other.csv"
    link.symlink_to(file)
    before = stamp_of(_csv(link))
    other.write_bytes(file.read_bytes())
    link.unlink()
    link.symlink_to(other)
    assert stamp_of(_csv(link)) != before


def test_a_file_that_goes_away_has_no_mark(file: Path) -> None:
    before = stamp_of(_csv(file))
    file.unlink()
    assert stamp_of(_csv(file)) == Stamp(((str(file), None),)) != before


@pytest.mark.parametrize("linked", [False, True])
def test_rows_in_a_write_ahead_log_change_the_stamp_of_a_database(tmp_path: Path, linked: bool) -> None:
    path = tmp_path / "a.duckdb"
    opened = tmp_path / "folder" / "b.duckdb" if linked else path
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t AS SELECT 1 AS id")
    if linked:
        opened.parent.mkdir()
        opened.symlink_to(path)
    source = TableSource(format="duckdb", paths=(str(opened),), table="t")
    before, file = stamp_of(source), stamp_files([str(path)])
    with duckdb.connect(str(path), config={"checkpoint_threshold": "1GB"}) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
        assert stamp_files([str(path)]) == file, "the rows are in the log alone"
        assert stamp_of(source) != before


@pytest.mark.parametrize(
    ("changed", "grain"), [(7_000_000_001, TICK_NS), (7_000_000_000, GRAIN_NS), (7_010_000_000, GRAIN_NS)]
)
def test_only_what_rested_for_a_tick_of_its_clock_is_settled(changed: int, grain: int) -> None:
    stamp = Stamp((("a", (1, 2, 3, 4, changed)),))
    assert not stamp.is_settled(changed)
    assert not stamp.is_settled(changed + grain - 1)
    assert stamp.is_settled(changed + grain)


def test_files_at_rest_are_stamped_and_moving_ones_are_not(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamp = stamp_at_rest(lambda: stamp_of(_csv(file)))
    assert stamp is not None
    assert stamp.is_settled(time.time_ns())
    monkeypatch.setattr(stamps, "GRAIN_NS", 1)
    ahead = Stamp((("a", (1, 2, 3, 4, 1 << 62)),))
    assert stamp_at_rest(lambda: ahead) is None


def test_a_stamp_holds_until_a_file_is_written_to_or_comes_or_goes(file: Path, tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    stamp = stamp_files([str(file), str(absent)])
    assert stamp.holds()
    absent.touch()
    assert not stamp.holds()
    absent.unlink()
    assert stamp.holds()
    file.write_text(file.read_text() + " ")
    assert not stamp.holds()


def test_two_stamps_that_disagree_never_hold(file: Path) -> None:
    before = stamp_of(_csv(file))
    file.write_text("more than before")
    assert stamp_of(_csv(file)).holds()
    assert not (before | stamp_of(_csv(file))).holds()
    assert (stamp_of(_csv(file)) | stamp_of(_csv(file))).holds()
    assert Stamp().holds()


def test_a_file_from_the_future_is_not_settled(file: Path) -> None:
    assert not stamp_of(_csv(file)).is_settled(os.stat(file).st_ctime_ns - 10 * GRAIN_NS)


def test_one_file_that_moves_unsettles_all(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.csv"
    other.write_text("id\n")
    late = os.stat(other).st_ctime_ns
    both = stamp_files([str(file), str(other), str(tmp_path / "absent")])
    assert not both.is_settled(late + TICK_NS - 1)
    assert both.is_settled(late + GRAIN_NS)


def test_a_frame_is_always_settled_and_equal() -> None:
    stamp = stamp_of(TableSource(format="frame", frame=object()))
    assert stamp == stamp_of(TableSource(format="frame", frame=object()))
    assert stamp.is_settled(0)


def test_a_stamp_survives_json(file: Path, tmp_path: Path) -> None:
    stamp = stamp_files([str(file), str(tmp_path / "absent")])
    assert Stamp.of_json(json.loads(json.dumps(stamp.as_json()))) == stamp


@pytest.mark.parametrize("kept", [None, 1, [1], [["a"]], [["a", 1]], [["a", [1, 2]]], [[1, None]], [["a", ["1"] * 5]]])
def test_what_is_no_stamp_is_refused(kept: object) -> None:
    with pytest.raises(ValueError, match="no stamp"):
        Stamp.of_json(kept)
