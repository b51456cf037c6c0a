"""One file, durable and for its owner alone: what the SQLite store promises, and what it makes of every error."""

import errno
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.errors import LedgerCorrupt, LedgerError, LedgerFull, LedgerReadOnly, LedgerUnreachable
from hubbub.ledger import Ledger, Marks
from hubbub.ledger.stores import sqlite as store_module
from hubbub.ledger.stores.forking import Traffic
from hubbub.ledger.stores.sqlite import SqliteSession, SqliteStore
from tests.ledger.faults import ROOT, check_books, check_refusal, check_sentence, outcome, question, saw, stocked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger of a test lies."""
    return tmp_path / "ledger.db"


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    """High-water marks of this test alone."""
    return Marks(tmp_path / "state")


def pragma(session: SqliteSession, name: str) -> object:
    """A setting of a connection."""
    return session.rows(f"PRAGMA {name}")[0][0]


def test_every_commit_is_forced_to_disk(path: Path) -> None:
    with closing(SqliteStore(path).writer()) as session:
        assert pragma(session, "journal_mode") == "wal"
        assert pragma(session, "synchronous") == 2
        assert pragma(session, "fullfsync") == 1
        assert pragma(session, "cell_size_check") == 1
        assert pragma(session, "trusted_schema") == 0


def test_a_reader_cannot_write(path: Path, marks: Marks) -> None:
    stocked(path, marks)
    with closing(SqliteStore(path).reader()) as session:
        for edit in ("DELETE FROM holders", "UPDATE head SET seq = 1", "CREATE TABLE x (y)"):
            check_refusal(outcome(lambda edit=edit: session.run(edit)), LedgerReadOnly)
    with Ledger(path, marks=marks, writes=False) as ledger:
        assert ledger.statement("patients").spent.charges == 0
        check_refusal(outcome(lambda: ledger.reserve(question("a"))), LedgerReadOnly)


def test_entries_are_never_changed_or_deleted(path: Path, marks: Marks) -> None:
    stocked(path, marks, paid=1)
    with closing(sqlite3.connect(path)) as connection:
        for edit in ("UPDATE entries SET time = 0", "DELETE FROM entries", "DELETE FROM entries WHERE seq = 3"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(edit)


def test_its_files_are_for_its_owner_alone(path: Path, marks: Marks) -> None:
    with Ledger(path, marks=marks):
        pass
    with closing(SqliteStore(path).writer()):
        for file in path.parent.glob("ledger.db*"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_an_empty_file_is_no_ledger_yet(path: Path, marks: Marks) -> None:
    store = SqliteStore(path)
    assert not store.exists()
    path.touch()
    assert not store.exists()
    check_refusal(outcome(lambda: Ledger(path, marks=marks, create=False)), LedgerUnreachable)
    check_refusal(outcome(lambda: Ledger(path, marks=marks, writes=False)), LedgerUnreachable)
    Ledger(path, marks=marks).close()
    assert store.exists()


def test_a_log_is_folded_into_the_file_when_the_ledger_is_closed(path: Path, marks: Marks) -> None:
    stocked(path, marks)
    with Ledger(path, marks=marks) as ledger:
        ledger.reserve(question("a"))
        ledger.statements()
        assert Path(f"{path}-wal").exists()
    assert not Path(f"{path}-wal").exists()


def test_a_link_and_a_detour_lead_to_the_same_ledger(path: Path, marks: Marks, tmp_path: Path) -> None:
    """The log and the lock lie beside the file itself; else nobody would notice that they are gone."""
    tickets = stocked(path, marks, paid=1)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.db").symlink_to(path)
    ways = (tmp_path / "link.db", tmp_path / "sub" / ".." / "ledger.db")
    for way in ways:
        assert SqliteStore(way).location == str(path)
        with Ledger(way, marks=marks) as ledger:
            tickets.append(saw(way.name, ledger.reserve(question(way.name)).entry))
            Path(f"{path}-lock").unlink()
            check_refusal(outcome(lambda ledger=ledger: ledger.reserve(question("more"))), LedgerUnreachable)
    check_books(path, marks, tickets, charges=3)
    path.unlink()
    for way in ways:
        with pytest.raises(LedgerError, match="rolled-back"):
            Ledger(way, marks=marks)


def test_an_open_ledger_keeps_the_locks_that_others_look_for(path: Path, marks: Marks) -> None:
    """Closing any other descriptor of the file would lose them, as POSIX has it; SQLite could not tell."""
    stocked(path, marks)
    code = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0)
try:
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = DELETE")
    print(connection.execute("PRAGMA journal_mode").fetchone()[0])
except sqlite3.OperationalError as problem:
    print(problem)
"""

    def others_find() -> str:
        return subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        ).stdout

    with Ledger(path, marks=marks) as ledger:
        ledger.reserve(question("a"))
        with Ledger(path, marks=marks) as other:
            other.reserve(question("b"))
        assert others_find().strip() == "database is locked"
    assert others_find().strip() == "delete"


@pytest.mark.parametrize(
    ("code", "kind", "final"),
    [
        (sqlite3.SQLITE_FULL, LedgerFull, False),
        (sqlite3.SQLITE_READONLY, LedgerReadOnly, False),
        (sqlite3.SQLITE_READONLY_DIRECTORY, LedgerReadOnly, False),
        (sqlite3.SQLITE_PERM, LedgerReadOnly, False),
        (sqlite3.SQLITE_CORRUPT, LedgerCorrupt, True),
        (sqlite3.SQLITE_CORRUPT_INDEX, LedgerCorrupt, True),
        (sqlite3.SQLITE_NOTADB, LedgerCorrupt, True),
        (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, LedgerCorrupt, True),
        (sqlite3.SQLITE_BUSY, LedgerUnreachable, False),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, LedgerUnreachable, False),
        (sqlite3.SQLITE_LOCKED, LedgerUnreachable, False),
        (sqlite3.SQLITE_IOERR_FSYNC, LedgerUnreachable, True),
        (sqlite3.SQLITE_IOERR_WRITE, LedgerUnreachable, True),
        (sqlite3.SQLITE_CANTOPEN, LedgerUnreachable, True),
        (sqlite3.SQLITE_NOMEM, LedgerUnreachable, True),
        (None, LedgerUnreachable, True),
    ],
)
def test_every_error_of_sqlite_has_a_class_and_a_remedy(code: int | None, kind: type[LedgerError], final: bool) -> None:
    problem = sqlite3.OperationalError("something")
    if code is not None:
        problem.sqlite_errorcode = code
    error = store_module._of_sqlite("/a/place", problem)
    check_refusal(error, kind)
    assert bool(error.operands.get("final")) is final
    assert "/a/place" in error.message


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EACCES, LedgerReadOnly),
        (errno.EPERM, LedgerReadOnly),
        (errno.EROFS, LedgerReadOnly),
        (errno.ENOSPC, LedgerFull),
        (errno.EDQUOT, LedgerFull),
        (errno.EIO, LedgerUnreachable),
        (errno.ENOTDIR, LedgerUnreachable),
    ],
)
def test_every_error_of_the_system_has_a_class_and_a_remedy(code: int, kind: type[LedgerError]) -> None:
    check_refusal(store_module._of_the_system("/a/place", OSError(code, os.strerror(code))), kind)


def test_text_that_is_no_text_is_damage() -> None:
    undecodable = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    check_refusal(store_module._of_sqlite("/a/place", undecodable), LedgerCorrupt)
    check_refusal(
        store_module._of_sqlite("/a/place", sqlite3.OperationalError("Could not decode to UTF-8 column 'body'")),
        LedgerCorrupt,
    )


@pytest.mark.parametrize("content", [b"this is a letter, and no ledger. " * 300, b"SQLite format 3\0" + bytes(4080)])
def test_a_file_of_another_kind_is_left_alone(content: bytes, path: Path, marks: Marks) -> None:
    path.write_bytes(content)
    problem = outcome(lambda: Ledger(path, marks=marks))
    assert isinstance(problem, LedgerError)
    check_sentence(problem.message)
    assert path.read_bytes() == content


@pytest.mark.parametrize("place", ["missing/ledger.db", "file/ledger.db", "."])
def test_a_place_where_no_file_can_be_is_unreachable(place: str, tmp_path: Path, marks: Marks) -> None:
    (tmp_path / "file").write_text("")
    problem = outcome(lambda: Ledger(tmp_path / place, marks=marks))
    check_refusal(problem, LedgerUnreachable)


def test_a_disk_without_a_write_ahead_log_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def in_memory(*_: object, **options: object) -> sqlite3.Connection:
        return connect(":memory:", isolation_level=None, check_same_thread=False)

    monkeypatch.setattr(sqlite3, "connect", in_memory)
    check_refusal(outcome(lambda: SqliteStore(path).writer()), LedgerUnreachable)


def test_a_session_that_failed_to_open_leaves_nothing_open(path: Path) -> None:
    path.write_bytes(b"no ledger at all" * 1000)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else None
    for _ in range(3):
        check_refusal(outcome(lambda: SqliteStore(path).writer()), LedgerCorrupt)
    assert before is None or len(os.listdir("/proc/self/fd")) == before


# Forks.


class Connection:
    """Something that must be put down."""

    writes = False

    def __init__(self) -> None:
        self.down = self.left = 0

    def put_down(self) -> None:
        self.down += 1

    def abandon(self) -> None:
        self.left += 1


def test_a_fork_waits_for_whoever_works_and_keeps_the_next_ones_waiting() -> None:
    traffic, connection = Traffic(), Connection()
    traffic.watch(connection)
    traffic.enter()
    traffic.enter()
    traffic.leave()  # still inside
    stopped, entered = threading.Event(), threading.Event()

    def fork() -> None:
        traffic.stop()
        stopped.set()

    def work() -> None:
        traffic.enter()
        entered.set()
        traffic.leave()

    forking = threading.Thread(target=fork)
    forking.start()
    while not traffic._forks:
        pass
    assert connection.down == 0
    traffic.enter()  # whoever is inside may go on, or nobody would ever leave
    traffic.leave()
    later = threading.Thread(target=work)
    later.start()
    assert not stopped.is_set()
    traffic.leave()
    stopped.wait()
    assert connection.down == 1
    assert not entered.is_set()
    traffic.go()
    entered.wait()
    forking.join()
    later.join()
    assert (connection.down, connection.left) == (1, 0)


def test_a_child_begins_anew() -> None:
    traffic, connection = Traffic(), Connection()
    traffic.watch(connection)
    traffic.enter()
    traffic._forks = 1
    traffic.begin_anew()
    assert connection.left == 1
    traffic.enter()
    traffic.leave()
    traffic.stop()
    assert connection.down == 0


def test_a_child_that_was_born_in_the_middle_of_something_may_not_use_the_file(path: Path, marks: Marks) -> None:
    """A read that goes on for long is not waited for; its connection would harm parent and child."""
    stocked(path, marks)
    code = """
import os, sys
from pathlib import Path
from hubbub.errors import LedgerUnreachable
from hubbub.ledger import Ledger, Marks
from hubbub.ledger.stores.sqlite import SqliteStore
path, marks = Path(sys.argv[1]), Marks(sys.argv[2])
reader = SqliteStore(path).reader()
reader.run("BEGIN")
before = reader.rows("SELECT seq FROM head")
child = os.fork()
if child == 0:
    try:
        Ledger(path, marks=marks)
    except LedgerUnreachable:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert reader.rows("SELECT seq FROM head") == before
reader.rollback()
reader.close()
Ledger(path, marks=marks).close()
"""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    subprocess.run([sys.executable, "-c", code, str(path), str(marks.folder)], check=True, env=environment)


def test_a_file_that_was_replaced_while_a_fork_was_made_is_noticed(path: Path, marks: Marks) -> None:
    stocked(path, marks)
    with Ledger(path, marks=marks) as ledger:
        ledger.reserve(question("a"))
        from hubbub.ledger.stores.forking import TRAFFIC

        TRAFFIC.stop()
        path.rename(path.with_name("aside"))
        path.write_bytes(path.with_name("aside").read_bytes())
        TRAFFIC.go()
        check_refusal(outcome(lambda: ledger.reserve(question("b"))), LedgerUnreachable)
        path.with_name("aside").replace(path)
    check_books(path, marks, [], charges=1)
