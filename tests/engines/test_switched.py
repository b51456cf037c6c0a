"""More ways to have other bytes read than those that facts were seen of, within one read or one conversion.

At ε = 1000 noise is below 1 with probability above 1 − 1e-6, so that an answer shows the exact number that was
measured.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import hubbub as hb
from hubbub.cli import owner
from hubbub.cli.app import app
from hubbub.engines.duckdb import worker
from hubbub.engines.duckdb.engine import DuckDB
from hubbub.engines.duckdb.opened import Opened
from hubbub.engines.held import Read
from hubbub.engines.sources import arrow, conversion
from hubbub.errors import PolicyError
from hubbub.ledger import Marks
from hubbub.policy.stamps import Stamp, database_files, stamp_files
from tests.engines.test_held import write_log
from tests.engines.test_read_through import (
    BUDGET,
    MANY,
    ONE_EACH,
    PEOPLE,
    Switched,
    counted,
    failures,
    opened,
    switching,
    write,
)

POLICY = """
[budget]
account = "people"
epsilon = 1000000
[limits]
max_groups = 1
max_rows = 1
[tables.people]
path = "{path}"
unit = "id"
unique = true
[tables.people.columns]
id = {{ type = "integer" }}
place = {{ type = "integer" }}
"""


def reading(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], Any]) -> list[str]:
    """Do something before each of the first reads; the last act is done after the first read."""
    answer, statements, waiting = DuckDB._answer, list[str](), list(acts)

    def acting(engine: Any, begun: Any) -> Any:
        statements.append(begun.request["statement"])
        if not waiting:
            return answer(engine, begun)
        waiting.pop(0)()
        try:
            return answer(engine, begun)
        finally:
            if waiting:
                waiting.pop(0)()

    monkeypatch.setattr(DuckDB, "_answer", acting)
    return statements


@contextmanager
def open_at(path: Path, folder: Path, **more: Any) -> Iterator[hb.Database]:
    places: dict[str, Any] = {"ledger": folder / "ledger", "marks": Marks(folder / "marks")}
    more = {"max_groups": 1, "max_rows": 1, "unique": ["id"], "unit": "id", **more}
    with hb.open(path, budget=BUDGET, name="people", **places, **more) as db:
        yield db


def log_of(path: Path, folder: Path) -> Path:
    """A write-ahead log that fits a database and holds many rows of one person."""
    folder.mkdir()
    copy = folder / path.name
    shutil.copy2(path, copy)
    write_log(copy)
    return copy.with_name(copy.name + ".wal")


# Logs of databases


def test_a_log_that_is_there_only_within_one_read_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "data" / "people.duckdb", ONE_EACH)
    log, beside = log_of(path, tmp_path / "copy"), path.with_name("people.duckdb.wal")
    with open_at(path, tmp_path) as db:
        assert db.plan("SELECT count(*) AS n FROM people", epsilon=1).aggregate.single
        reading(monkeypatch, lambda: shutil.copy(log, beside), beside.unlink)
        assert counted(db) == PEOPLE
        assert failures(db) == 0


def test_a_log_behind_a_link_that_led_nowhere_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log lies elsewhere, so that nothing in the folder of the database changes."""
    path = write(tmp_path / "data" / "people.duckdb", ONE_EACH)
    log, elsewhere = log_of(path, tmp_path / "copy"), tmp_path / "elsewhere.wal"
    path.with_name("people.duckdb.wal").symlink_to(elsewhere)
    with open_at(path, tmp_path) as db:
        reading(monkeypatch, lambda: shutil.copy(log, elsewhere), elsewhere.unlink)
        assert counted(db) == PEOPLE


def test_a_log_beside_another_name_of_the_same_file_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hard link in another folder: the file is the very same, and its log another."""
    path = write(tmp_path / "real" / "people.duckdb", ONE_EACH)
    log = log_of(path, tmp_path / "copy")
    other = tmp_path / "other"
    other.mkdir()
    os.link(path, other / path.name)
    shutil.copy(log, other / log.name)
    time.sleep(0.1)
    link = tmp_path / "folder"
    link.symlink_to(tmp_path / "real")

    def lead(to: str) -> None:
        new = tmp_path / "new"
        new.symlink_to(tmp_path / to)
        os.replace(new, link)

    with open_at(link / path.name, tmp_path) as db:
        reading(monkeypatch, lambda: lead("other"), lambda: lead("real"))
        assert counted(db) == PEOPLE


def test_rows_of_a_log_that_is_there_all_the_time_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "data" / "all.duckdb", "SELECT 1000 AS id, 7 AS place")
    with duckdb.connect(str(path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("SET wal_autocheckpoint = '1TB'")
        connection.execute(f"INSERT INTO people {ONE_EACH}")
    assert path.with_name("all.duckdb.wal").exists()
    link = tmp_path / "data" / "link.duckdb"
    link.symlink_to(path)
    for place in (path, link):
        (tmp_path / place.name).mkdir(exist_ok=True)
        with open_at(place, tmp_path / place.name) as db:
            assert db.plan("SELECT count(*) AS n FROM people", epsilon=1).aggregate.single
            assert counted(db) == PEOPLE + 1


def test_a_database_that_cannot_be_mounted_is_read_and_its_facts_are_not_believed(tmp_path: Path) -> None:
    """Nobody knows then which logs were read."""
    path = write(tmp_path / "people.duckdb", ONE_EACH)
    request = {
        "statement": "SELECT count(*) FROM d.main.people", "secrets": [], "keys": [], "databases": {"d": str(path)},
        "stored": [], "paths": [], "files": [],
    }  # fmt: skip
    with duckdb.connect() as connection:
        ahead = worker.Ahead(connection, request)
        assert ahead.rows() == [[PEOPLE]]
        read, seen = Stamp.of_json(ahead.files()), stamp_files(database_files(str(path)))
    assert seen.agrees(read)
    assert not seen.covers(read)


# Text and Arrow, while they are converted


@pytest.mark.parametrize("suffix", [".csv", ".json", ".arrow"])
def test_a_file_that_is_another_only_while_it_is_converted_is_not_believed(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check has seen the real one; the session converts the other, and the link leads back before it is stamped."""
    table = Texts(tmp_path, suffix=suffix)
    checks(tmp_path, table.path)
    if suffix == ".arrow":
        table.during(monkeypatch, arrow, "write_files")
    else:
        table.path.with_name(table.path.name + ".hubbub.parquet").unlink()
        table.during(monkeypatch, conversion, "_convert")
    with suppress(PolicyError), opened_by_policy(tmp_path) as db:  # or refused: it "is being written to"
        assert db.policy.enforced == frozenset()


@contextmanager
def opened_by_policy(folder: Path) -> Iterator[hb.Database]:
    with hb.open(folder / "hubbub.toml", ledger=folder / "ledger", marks=Marks(folder / "marks")) as db:
        yield db


@pytest.mark.parametrize("suffix", [".csv", ".arrow"])
def test_a_check_of_text_that_was_led_elsewhere_is_not_recorded(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hubbub check converts a file without repeated ids, in the place of one with many."""
    table = Texts(tmp_path, suffix=suffix)
    table.real, table.other = table.other, table.real
    table.lead(table.real)
    (tmp_path / "hubbub.toml").write_text(POLICY.format(path=table.path))
    connect = owner.connect

    @contextmanager
    def connected(*given: Any, **more: Any) -> Iterator[Any]:
        with table.elsewhere(), connect(*given, **more) as data:
            yield data

    monkeypatch.setattr(owner, "connect", connected)
    CliRunner().invoke(app, ["check", "--policy", str(tmp_path / "hubbub.toml")])
    with opened_by_policy(tmp_path) as db:
        assert not db.policy.enforced
        assert counted(db) == PEOPLE


def test_what_was_converted_in_another_folder_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder leads elsewhere while the engine's own stamp is taken: beside the other text lie its own rows."""
    for folder, select in (("real", ONE_EACH), ("other", MANY)):
        (tmp_path / folder).mkdir()
        duckdb.connect().execute(f"COPY ({select}) TO '{tmp_path / folder / 'people.csv'}' (FORMAT csv, HEADER)")
    link = tmp_path / "folder"

    def lead(to: str) -> None:
        new = tmp_path / "new"
        new.symlink_to(tmp_path / to)
        os.replace(new, link)

    time.sleep(0.1)
    lead("other")
    conversion.convert(str(link / "people.csv"), "csv", directory=str(tmp_path))
    lead("real")
    checks(tmp_path, link / "people.csv")
    own = DuckDB.stamp_at_rest

    def stamped(engine: DuckDB, about: Any) -> Stamp | None:
        lead("other")
        try:
            return own(engine, about)
        finally:
            lead("real")

    monkeypatch.setattr(DuckDB, "stamp_at_rest", stamped)
    with opened_by_policy(tmp_path) as db:
        lead("other")
        assert not db.policy.enforced
        assert counted(db) == PEOPLE


class Texts(Switched):
    """The same, as text or Arrow."""

    def __init__(self, folder: Path, *, suffix: str) -> None:
        self.real, self.other = folder / "real" / f"people{suffix}", folder / "other" / f"people{suffix}"
        for path, select in ((self.real, ONE_EACH), (self.other, MANY)):
            path.parent.mkdir()
            if suffix == ".arrow":
                import pyarrow as pa

                found = duckdb.connect().sql(select).to_arrow_table()
                with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, found.schema) as writer:
                    writer.write_table(found)
            else:
                form = "json" if suffix == ".json" else "csv, HEADER"
                duckdb.connect().execute(f"COPY ({select}) TO '{path}' (FORMAT {form})")
        self._link, self._of_folder = folder / f"people{suffix}", False
        self.path = self._link
        self.lead(self.real)
        time.sleep(0.1)

    def during(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        """Let the link lead elsewhere during a call."""
        own = getattr(module, name)

        def acting(*given: Any, **more: Any) -> Any:
            with self.elsewhere():
                return own(*given, **more)

        monkeypatch.setattr(module, name, acting)


def checks(folder: Path, path: Path) -> None:
    (folder / "hubbub.toml").write_text(POLICY.format(path=path))
    found = CliRunner().invoke(app, ["check", "--policy", str(folder / "hubbub.toml")])
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize("of_folder", [False, True])
@pytest.mark.parametrize("suffix", [".parquet", ".duckdb"])
def test_a_link_that_leads_elsewhere_while_a_record_is_looked_up_is_not_believed(
    tmp_path: Path, suffix: str, of_folder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's own stamp is of the other file, and that of the record is compared with the real one."""
    table = Switched(tmp_path, suffix=suffix, of_folder=of_folder)
    time.sleep(0.1)
    checks(tmp_path, table.path)
    own = DuckDB.stamp_at_rest

    def stamped(engine: DuckDB, about: Any) -> Stamp | None:
        with table.elsewhere():
            return own(engine, about)

    monkeypatch.setattr(DuckDB, "stamp_at_rest", stamped)
    with opened_by_policy(tmp_path) as db:
        table.lead(table.other)
        assert not db.policy.enforced
        assert counted(db) == PEOPLE


@pytest.mark.parametrize("suffix", [".parquet", ".duckdb"])
def test_a_check_that_was_led_elsewhere_is_not_recorded(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hubbub check reads a table without repeated ids, in the place of one with many."""
    table = Switched(tmp_path, suffix=suffix, of_folder=False, real=MANY, other=ONE_EACH)
    time.sleep(0.1)
    (tmp_path / "hubbub.toml").write_text(POLICY.format(path=table.path))
    connect = owner.connect

    @contextmanager
    def connected(*given: Any, **more: Any) -> Iterator[Any]:
        with table.elsewhere(), connect(*given, **more) as data:
            yield data

    monkeypatch.setattr(owner, "connect", connected)
    CliRunner().invoke(app, ["check", "--policy", str(tmp_path / "hubbub.toml")])
    with opened_by_policy(tmp_path) as db:
        assert not db.policy.enforced
        assert counted(db) == PEOPLE


# What stands where a file was


def test_a_pipe_in_the_place_of_a_file_does_not_hold_a_question_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "data" / "people.parquet", ONE_EACH)
    aside = tmp_path / "aside.parquet"
    with open_at(path, tmp_path) as db:
        db.ledger.grant("people", "ann", limit=BUDGET)
        db._session.principal = "ann"

        def pipe() -> None:
            os.rename(path, aside)
            os.mkfifo(path)

        statements = reading(monkeypatch, pipe, lambda: os.replace(aside, path))
        began = time.monotonic()
        assert counted(db) == PEOPLE
        assert time.monotonic() - began < 20
        assert len(statements) == 2
        assert failures(db) == 0


@pytest.mark.parametrize("kind", ["folder", "device", "nothing"])
def test_something_else_in_the_place_of_a_file_is_no_failure_while_files_move(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "data" / "people.parquet", ONE_EACH)
    aside = tmp_path / "aside.parquet"
    with open_at(path, tmp_path) as db:

        def put() -> None:
            os.rename(path, aside)
            if kind == "folder":
                path.mkdir()
            elif kind == "device":
                path.symlink_to("/dev/zero")

        def back() -> None:
            if kind == "folder":
                path.rmdir()
            os.replace(aside, path)

        reading(monkeypatch, put, back)
        assert counted(db) == PEOPLE
        assert failures(db) == 0


def in_place(path: Path, select: str, folder: Path) -> None:
    """Write other rows into the very file, with the size and the time that it had."""
    status, new = path.stat(), write(folder / "new.parquet", select).read_bytes()
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(new)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("memory", [False, True])
def test_a_file_rewritten_in_its_place_and_back_within_one_read_is_seen(
    tmp_path: Path, memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Truncated, grown again and given its time back; in memory (tmpfs) too, whose clock is that of ticks."""
    if memory and not os.access("/dev/shm", os.W_OK):
        pytest.skip("no file system in memory")
    folder = Path("/dev/shm") / f"hubbub-{os.getpid()}" if memory else tmp_path
    try:
        path = write(folder / "data" / "people.parquet", ONE_EACH)
        content = path.read_bytes()
        with open_at(path, tmp_path) as db:
            before = path.stat()

            def back() -> None:
                path.write_bytes(content)
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

            statements = reading(monkeypatch, lambda: in_place(path, MANY, tmp_path), back)
            assert counted(db) == PEOPLE
            assert len(statements) == 2
            after = path.stat()
            assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
                before.st_size,
                before.st_mtime_ns,
                before.st_ino,
            )
    finally:
        if memory:
            shutil.rmtree(folder)


def test_another_file_renamed_over_and_back_within_one_read_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "data" / "people.parquet", ONE_EACH)
    other = write(tmp_path / "other.parquet", MANY)

    def swap() -> None:
        os.rename(path, tmp_path / "aside")
        os.rename(other, path)

    def back() -> None:
        os.rename(path, other)
        os.rename(tmp_path / "aside", path)

    with open_at(path, tmp_path) as db:
        statements = reading(monkeypatch, swap, back)
        assert counted(db) == PEOPLE
        assert len(statements) == 2


def test_a_folder_renamed_away_and_back_within_one_read_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the file nor its own folder is touched: the folder above is another for a moment."""
    path = write(tmp_path / "a" / "data" / "people.parquet", ONE_EACH)
    write(tmp_path / "b" / "data" / "people.parquet", MANY)

    def swap() -> None:
        for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
            os.rename(tmp_path / old, tmp_path / new)

    with open_at(path, tmp_path) as db:
        statements = reading(monkeypatch, swap, swap)
        assert counted(db) == PEOPLE
        assert len(statements) == 2


def test_a_mount_over_a_file_within_one_read_is_seen(tmp_path: Path) -> None:
    """In a process with mounts of its own, which takes an administrator."""
    path = write(tmp_path / "data" / "people.parquet", ONE_EACH)
    other = write(tmp_path / "other.parquet", MANY)
    script = f"""
import ctypes, os, sys
from pathlib import Path
libc = ctypes.CDLL(None)
if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None):
    sys.exit(3)
from tests.engines.test_switched import open_at, reading, counted
import pytest
path, other = {str(path)!r}, {str(other)!r}
with pytest.MonkeyPatch.context() as patch, open_at(Path(path), Path({str(tmp_path)!r})) as db:
    statements = reading(
        patch,
        lambda: libc.mount(other.encode(), path.encode(), None, 0x1000, None),
        lambda: libc.umount2(path.encode(), 2),
    )
    assert counted(db) == {PEOPLE}
    assert statements
"""
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=False, capture_output=True, text=True
    )
    if run.returncode == 3:
        pytest.skip("mounts of one's own are not allowed here")
    assert run.returncode == 0, run.stderr


# Names of files


def test_a_glob_is_what_it_matched_when_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in range(3):
        write(tmp_path / "data" / f"{place}.parquet", f"SELECT {place} AS id, 7 AS place")
    more = write(tmp_path / "more.parquet", MANY)
    with open_at(Path(str(tmp_path / "data" / "*.parquet")), tmp_path) as db:
        reading(monkeypatch, lambda: shutil.copy(more, tmp_path / "data" / "9.parquet"))
        assert counted(db) == 3


@pytest.mark.parametrize("folder", ["plain", "year=2024"])
@pytest.mark.parametrize("named", ["a*", "a?", "a[b]", "{ab,a}", "a\\b"])
def test_a_name_that_is_a_pattern_is_that_file_alone(tmp_path: Path, folder: str, named: str) -> None:
    """What is called a*.parquet would match ab.parquet too, whose rows would then be read twice."""
    write(tmp_path / "made" / "x.parquet", "SELECT 1 AS id, 7 AS place")
    write(tmp_path / "made" / "y.parquet", ONE_EACH + " WHERE i > 1")
    (tmp_path / folder).mkdir()
    shutil.copy(tmp_path / "made" / "x.parquet", tmp_path / folder / f"{named}.parquet")
    for other in ("ab", "a"):
        write(tmp_path / "made" / "z.parquet", f"SELECT {2000 + len(other)} AS id, 7 AS place")
        shutil.copy(tmp_path / "made" / "z.parquet", tmp_path / folder / f"{other}.parquet")
    with open_at(Path(str(tmp_path / folder / "*.parquet")), tmp_path) as db:
        assert counted(db) == 3


def test_a_check_of_a_name_that_is_a_pattern_is_of_that_file(tmp_path: Path) -> None:
    """What is called a[b].parquet was checked as ab.parquet, which lies beside it."""
    for name, select in (("many", MANY), ("ab", ONE_EACH)):
        write(tmp_path / "data" / f"{name}.parquet", select)
    odd = tmp_path / "data" / "a[b].parquet"
    os.rename(tmp_path / "data" / "many.parquet", odd)
    time.sleep(0.1)
    (tmp_path / "hubbub.toml").write_text(POLICY.format(path=odd))
    assert CliRunner().invoke(app, ["check", "--policy", str(tmp_path / "hubbub.toml")]).exit_code == 1
    with opened_by_policy(tmp_path) as db:
        assert not db.policy.enforced
        assert counted(db) == PEOPLE


def test_two_names_of_one_file_are_rows_twice_and_not_unique(tmp_path: Path) -> None:
    path = write(tmp_path / "data" / "a.parquet", ONE_EACH)
    os.link(path, path.with_name("b.parquet"))
    with pytest.raises(hb.HubbubError), open_at(Path(str(tmp_path / "data" / "*.parquet")), tmp_path):
        pass


# Descriptors


@pytest.mark.parametrize("times", [0, 1, 2])
def test_facts_are_not_believed_of_files_that_could_not_be_held_open(
    tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Switched(tmp_path, suffix=".parquet", of_folder=False)
    with opened(table, tmp_path) as db:
        statements = switching(monkeypatch, table, times)
        switched = DuckDB._answer

        def unheld(engine: Any, begun: Any) -> Any:
            return Read(switched(engine, begun).result)

        monkeypatch.setattr(DuckDB, "_answer", unheld)
        assert counted(db) == PEOPLE
        assert len(statements) == 2
        assert failures(db) == 0


def test_a_link_that_leads_elsewhere_in_every_read_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one read of other files the rows are bounded, whatever they are: three were thrown away, and counted."""
    table = Switched(tmp_path, suffix=".parquet", of_folder=False)
    with opened(table, tmp_path) as db:
        statements = switching(monkeypatch, table, 10)
        assert counted(db) == PEOPLE
        assert len(statements) == 2
        assert failures(db) == 0


def test_a_descriptor_is_opened_again_and_has_its_own_place(tmp_path: Path) -> None:
    """Two scans of one file in one statement read all of it each, and so does one after our own was read."""
    path = write(tmp_path / "people.parquet", ONE_EACH)
    scan = "(SELECT count(*) FROM read_parquet(getvariable('f')))"
    asked = f"SELECT {scan} + {scan}"
    request = {
        "statement": asked, "secrets": [], "keys": [], "databases": {}, "stored": [], "paths": [str(path)],
        "files": [["f", [str(path)]]],
    }  # fmt: skip
    with duckdb.connect() as connection:
        ahead = worker.Ahead(connection, request)
        reserved = ahead._opened._reserved[str(path)]
        assert ahead.rows() == [[2 * PEOPLE]]
        assert os.read(reserved, 4) == b"PAR1"


def test_a_file_that_was_removed_after_it_was_opened_is_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "people.parquet", ONE_EACH)
    own = Opened.open

    def gone(made: Any) -> None:
        own(made)
        path.unlink()

    monkeypatch.setattr(Opened, "open", gone)
    request = {
        "statement": "SELECT count(*) FROM read_parquet(getvariable('f'))", "secrets": [], "keys": [], "databases": {},
        "stored": [], "paths": [str(path)], "files": [["f", [str(path)]]],
    }  # fmt: skip
    with duckdb.connect() as connection:
        assert worker.Ahead(connection, request).rows() == [[PEOPLE]]
