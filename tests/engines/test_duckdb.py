"""The wall around the engine: what a process can reach, when it ends, and what is left of it."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.engines.dialects.dialect import SqlStatement
from hubbub.engines.duckdb import wire
from hubbub.engines.duckdb.engine import DuckDB, _bits, size
from hubbub.engines.duckdb.pool import Standby
from hubbub.engines.sources.origins import Origin
from hubbub.errors import CapacityError, EngineError, ParameterError
from hubbub.policy.kinds import INT64, Type, integer, of
from hubbub.policy.tables import Limits, Table, TableColumn, TableSource
from hubbub.query.expression import Column as Named
from hubbub.query.ops import Aggregate
from hubbub.query.requests import Tallies
from tests.engines.evaluating import rows_tally, scan, tallied, total, units_tally

FIXED = "[engine-failed] The engine could not answer. The charge stands; ask the owner."
ENDLESS = "SELECT sum(a.range + b.range * c.range) FROM range(100000000) a, range(100000000) b, range(100000000) c"


def raw(engine: DuckDB, sql: str, *paths: str) -> list[list[Any]]:
    """A statement that our ops could never say, as if it had slipped through."""
    return engine._find_rows(SqlStatement(sql), [Origin(clause=None, paths=paths)]).result  # type: ignore[arg-type]


def running(directory: str) -> list[int]:
    """Processes that work in the engine's directory."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                place = os.readlink(f"/proc/{entry}/cwd")
                state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if place.startswith(directory) and state != "Z":
                found.append(int(entry))
    return found


def eventually(condition: Any) -> bool:
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("data") / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT range % 10 AS who, range AS value FROM range(100)) TO '{path}' (FORMAT parquet)"
        )
    return str(path)


def declared(path: str) -> Table:
    whole = integer(*INT64)
    columns = (TableColumn(name="who", kind=whole), TableColumn(name="value", kind=whole))
    return Table(name="t", source=TableSource(format="parquet", paths=(path,)), columns=columns, unit="who")


def question(path: str) -> tuple[Aggregate, dict[str, Table]]:
    table = declared(path)
    value = Named("value", integer(*INT64))
    tallies = (rows_tally(5), units_tally(), total(value, 0, 50, bounds=(0, 10**6)))
    return Aggregate(input=scan(table, "value"), groups=(), tallies=tallies, most_groups=1), {"t": table}


WANTED = [(50, 10, sum(min(value, 50) for value in range(100)))]


def test_it_answers(engine: DuckDB, parquet: str) -> None:
    op, tables = question(parquet)
    engine.prepare(Tallies(aggregate=op), tables=tables)
    assert tallied(engine, op, tables) == WANTED
    assert tallied(engine, op, tables) == WANTED


FORBIDDEN = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_parquet('{other}')",
    "SELECT * FROM '{other}'",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    "ATTACH '{folder}/new.duckdb' AS mine",
    "ATTACH ':memory:' AS mine; COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{parquet}'",
    "EXPORT DATABASE '{folder}/exported'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL httpfs FROM 'http://localhost:1'",
    "SELECT * FROM read_parquet('https://example.com/x.parquet')",
    "SET threads = 4",
    "SET enable_external_access = true",
    "SET allowed_paths = ['/etc/passwd']",
    "SET disabled_optimizers = ''",
    "RESET lock_configuration",
    "RESET ALL",
    "PRAGMA memory_limit = '8GB'",
    "SET python_enable_replacements = true",
    "SELECT * FROM request",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "SELECT getenv('HOME')",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_a_locked_process_reaches_nothing_else(
    engine: DuckDB, told: list[str], parquet: str, tmp_path: Path, statement: str
) -> None:
    other = tmp_path / "other.parquet"
    other.write_bytes(Path(parquet).read_bytes())
    before = Path(parquet).read_bytes()
    text = statement.format(other=other, folder=tmp_path, parquet=parquet)
    with pytest.raises(EngineError) as caught:
        raw(engine, text, parquet)
    assert str(caught.value) == FIXED
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert len(told[-1]) > 10
    assert os.listdir(tmp_path) == ["other.parquet"]
    assert Path(parquet).read_bytes() == before


def test_the_allowed_file_is_allowed(engine: DuckDB, parquet: str) -> None:
    assert raw(engine, f"SELECT CAST(count(*) AS VARCHAR) FROM read_parquet('{parquet}')", parquet) == [["100"]]


def test_settings_that_answers_depend_on(engine: DuckDB) -> None:
    names = ("ieee_floating_point_ops", "TimeZone", "disabled_optimizers", "enable_external_access", "threads")
    shown = ", ".join(f"CAST(current_setting('{name}') AS VARCHAR)" for name in names)
    assert raw(engine, f"SELECT {shown}") == [["true", "UTC", "top_n_window_elimination", "false", "1"]]


def test_no_state_passes_from_one_question_to_the_next(engine: DuckDB) -> None:
    raw(engine, "SET VARIABLE x = 5")
    assert raw(engine, "SELECT getvariable('x')") == [[None]]
    raw(engine, "CREATE TABLE left_over AS SELECT 1")
    with pytest.raises(EngineError):
        raw(engine, "SELECT * FROM left_over")


def test_children_have_no_network_no_cores_and_no_environment() -> None:
    """Looked at from outside, while a child waits for its request."""
    os.environ["HUBBUB_TEST_SECRET"] = "xyzzy"
    try:
        with DuckDB(standbys=1) as engine:
            standby = engine._pool._take()
            process = standby.process
            assert process is not None
            assert b"xyzzy" not in Path(f"/proc/{process}/environ").read_bytes()
            assert os.getpgid(process) == process
            limits = Path(f"/proc/{process}/limits").read_text()
            assert re.search(r"Max core file size +0 +0 ", limits)
            if os.geteuid() == 0:
                assert os.readlink(f"/proc/{process}/ns/net") != os.readlink("/proc/self/ns/net")
            standby.end()
            assert eventually(lambda: not Path(f"/proc/{process}").exists())
    finally:
        del os.environ["HUBBUB_TEST_SECRET"]


def test_a_question_that_takes_too_long_is_stopped() -> None:
    told: list[str] = []
    with DuckDB(limits=Limits(seconds=0.5, threads=1), log=told.append, standbys=1) as engine:
        with pytest.raises(EngineError) as caught:
            raw(engine, ENDLESS)
        assert str(caught.value) == FIXED
        assert "longer than 0.5 seconds" in told[0]
        directory = engine._directory
        waiting = [Path(standby.scratch).name for standby in engine._pool._waiting]
        assert sorted(name for name in os.listdir(directory) if name.startswith("scratch-")) == sorted(waiting)
        assert raw(engine, "SELECT 1") == [[1]]
    assert running(directory) == []
    assert not os.path.exists(directory)


def test_too_little_memory_is_the_same_error() -> None:
    told: list[str] = []
    limits = Limits(memory="20MB", temporary="1MB", threads=1)
    with DuckDB(limits=limits, log=told.append, standbys=1) as engine:
        with pytest.raises(EngineError) as caught:
            raw(engine, "SELECT count(*) FROM (SELECT range, count(*) FROM range(10000000) GROUP BY range)")
        assert str(caught.value) == FIXED
        assert "memory" in told[0].lower()


def test_a_process_that_dies_is_the_same_error_and_replaced(parquet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    op, tables = question(parquet)
    answer = Standby.answer
    with DuckDB(limits=Limits(threads=1), log=told.append, standbys=1) as engine:

        def kill() -> None:
            for one in running(engine._directory):
                os.kill(one, signal.SIGKILL)

        def answered(standby: Standby, seconds: float) -> Any:
            threading.Timer(0.3, kill).start()
            return answer(standby, seconds)

        with monkeypatch.context() as patched:
            patched.setattr(Standby, "answer", answered)
            with pytest.raises(EngineError):
                raw(engine, ENDLESS)
        assert "without an answer" in told[0]
        assert tallied(engine, op, tables) == WANTED


def test_standbys_that_died_waiting_cost_nobody_anything(parquet: str) -> None:
    op, tables = question(parquet)
    with DuckDB(limits=Limits(threads=1), standbys=2) as engine:
        for standby in engine._pool._waiting:
            standby.ready()
            process = standby.process
            assert process is not None
            os.kill(process, signal.SIGKILL)
            assert eventually(lambda process=process: not os.path.exists(f"/proc/{process}"))
        assert tallied(engine, op, tables) == WANTED


def test_nothing_is_left(parquet: str) -> None:
    op, tables = question(parquet)
    engine = DuckDB(limits=Limits(threads=1), standbys=2)
    directory = engine._directory
    assert os.stat(directory).st_mode & 0o777 == 0o700
    engine.prepare(Tallies(aggregate=op), tables=tables)()
    assert running(directory)
    engine.close()
    engine.close()
    assert running(directory) == []
    assert not os.path.exists(directory)
    with pytest.raises(EngineError):
        engine.prepare(Tallies(aggregate=op), tables=tables)()


@pytest.mark.parametrize("busy", [False, True])
def test_everything_ends_with_its_parent(tmp_path: Path, busy: bool) -> None:
    """The parent is killed without a chance to tidy up."""
    program = textwrap.dedent(
        f"""
        import threading, time
        from hubbub.engines.duckdb.engine import DuckDB
        from hubbub.engines.dialects.dialect import SqlStatement
        engine = DuckDB(standbys=2)
        engine._find_rows(SqlStatement("SELECT 1"), [])
        if {busy}:
            threading.Thread(target=lambda: engine._find_rows(SqlStatement({ENDLESS!r}), []), daemon=True).start()
            time.sleep(0.5)
        print(engine._directory, flush=True)
        time.sleep(600)
        """
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert parent.stdout is not None
    directory = parent.stdout.readline().strip()
    assert eventually(lambda: len(running(directory)) >= 2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert eventually(lambda: not running(directory))
    assert eventually(lambda: not os.path.exists(directory))


def test_a_fork_of_ours_starts_its_own(parquet: str) -> None:
    """A forked child neither uses nor ends what belongs to its parent."""
    op, tables = question(parquet)
    with DuckDB(limits=Limits(threads=1), standbys=1) as engine:
        assert tallied(engine, op, tables) == WANTED
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if tallied(engine, op, tables) == WANTED else 2
                engine.close()
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert os.path.isdir(engine._directory)
        assert tallied(engine, op, tables) == WANTED


def test_threads_share_an_engine(engine: DuckDB, parquet: str) -> None:
    op, tables = question(parquet)
    found: list[Any] = []
    asking = [threading.Thread(target=lambda: found.append(tallied(engine, op, tables))) for _ in range(4)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert found == [WANTED] * 4


def test_what_cannot_be_held_is_said_before_anything_is_read(engine: DuckDB, parquet: str) -> None:
    op, tables = question("/does/not/exist.parquet")
    engine.prepare(Tallies(aggregate=op), tables=tables)
    value = Named("value", of(Type.REAL))
    heavy = Aggregate(input=op.input, groups=(), tallies=(total(value, 0, 1 << 63, bounds=(0, 1)),), most_groups=1)
    with pytest.raises(CapacityError):
        engine.prepare(Tallies(aggregate=heavy), tables=tables)
    with pytest.raises(EngineError):
        engine.prepare(Tallies(aggregate=op), tables=tables)()


@pytest.mark.parametrize(
    ("amount", "wanted"),
    [("20GB", 20 * 10**9), ("1.5 MB", 1_500_000), ("2GiB", 2 << 30), ("100B", 100), ("3kb", 3000), ("1TiB", 1 << 40)],
)
def test_sizes(amount: str, wanted: int) -> None:
    assert size(amount) == wanted


@pytest.mark.parametrize("amount", ["", "GB", "5", "5XB", "-", "1e"])
def test_what_is_no_size(amount: str) -> None:
    with pytest.raises(ParameterError):
        size(amount)


def test_messages_are_whole() -> None:
    import socket

    ours, theirs = socket.socketpair()
    message = {"x": "é" * 300_000, "y": [1, None, "\0"]}
    sender = threading.Thread(target=wire.send, args=(ours, message))
    sender.start()
    assert wire.receive(theirs) == message
    sender.join()
    ours.sendall(b"\0" * 3)
    ours.close()
    with pytest.raises(EOFError):
        wire.receive(theirs)
    theirs.close()


@pytest.mark.parametrize(
    ("memory", "threads", "bits"), [("4GiB", 2, 21), ("4GB", 2, 20), ("1MB", 8, 12), ("9TB", 1, 24)]
)
def test_places_for_whole_numbers_take_little_of_the_memory(memory: str, threads: int, bits: int) -> None:
    assert _bits(Limits(memory=memory, threads=threads)) == bits
