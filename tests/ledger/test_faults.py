"""Disks that fail and files that vanish under a SQLite ledger: it refuses or recovers, and it never lends."""

import errno
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import (
    BudgetExceeded,
    GrantExpired,
    LedgerCorrupt,
    LedgerError,
    LedgerFull,
    LedgerReadOnly,
    LedgerRolledBack,
    LedgerUnreachable,
)
from hubbub.ledger import Entry, Ledger, Marks, Renewal, Ticket
from hubbub.ledger.ledger import wall_clock
from hubbub.ledger.stores.opening import adopt
from hubbub.ledger.stores.sqlite import SqliteStore
from hubbub.ledger.verify.verify import verify
from hubbub.privacy.filter import Budget
from tests.ledger.checking import findings
from tests.ledger.faults import (
    ACCOUNT,
    BUDGET,
    FIT,
    UNIT,
    Puppet,
    check_books,
    check_refusal,
    eventually,
    outcome,
    question,
    saw,
    small_disk,
    stocked,
)

NO_SECCOMP = "This system lets no process install a seccomp filter, so system calls cannot be made to fail."
NO_DISK = "This user may not mount a disk of its own, so no disk can be filled."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger of a test lies."""
    return tmp_path / "ledger.db"


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    """Where a puppet keeps its marks too."""
    return Marks(tmp_path / "state")


@pytest.fixture
def ram(tmp_path: Path) -> Iterator[Path]:
    """A folder whose disk is quick, for tests that damage a file hundreds of times and need no disk for it."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="hubbub-", dir="/dev/shm"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def puppet(tmp_path: Path) -> Iterator[Puppet]:
    """Another process, with nothing open yet."""
    with Puppet(tmp_path) as puppet:
        yield puppet


class Copy:
    """A ledger's files and marks at one moment, to be put back at will. Its ledger must not be open in this process."""

    def __init__(self, path: Path, state: Path) -> None:
        self._path, self._state = path, state
        self.files = {suffix: self._at(suffix).read_bytes() for suffix in ("", "-wal") if self._at(suffix).exists()}
        self.marks = {file: file.read_bytes() for file in sorted(state.rglob("*")) if file.is_file()}

    def put_back(self, *, marks: bool = True, **changed: bytes | None) -> None:
        """The files, some of them changed (``file``, ``wal``) or left out, and the marks of that moment."""
        new = {"": changed.get("file", self.files[""]), "-wal": changed.get("wal", self.files.get("-wal"))}
        for suffix in ("", "-wal", "-shm", "-lock"):
            self._at(suffix).unlink(missing_ok=True)
        for suffix, content in new.items():
            if content is not None:
                self._at(suffix).write_bytes(content)
        if marks:
            for file, content in self.marks.items():
                file.write_bytes(content)

    def _at(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)


# Disks.


@pytest.mark.parametrize("calls", [["fsync", "fdatasync"], ["fdatasync"], ["fsync"]])
def test_a_disk_that_failed_an_fsync_is_not_trusted_again(
    calls: list[str], puppet: Puppet, path: Path, marks: Marks
) -> None:
    assert puppet.do("open", path.name).error is None
    tickets = [puppet.paid("a"), puppet.paid("b")]
    if not puppet.do("fail", errno.EIO, *calls).value:
        pytest.skip(NO_SECCOMP)
    replies = [puppet.do("reserve", name) for name in ("c", "c", "d")]
    failing = [reply for reply in replies if reply.error]
    for reply in failing:
        reply.check(LedgerUnreachable)
    # A system syncs with one call or the other; when the one in use fails, everything after it is refused.
    assert failing in ([], replies)
    assert failing or len(calls) == 1
    tickets += [saw(name, reply.value) for name, reply in zip("ccd", replies, strict=True) if not reply.error]
    puppet.kill()
    check_books(path, marks, tickets)


def test_a_write_for_which_there_is_no_room_is_refused_and_nothing_is_charged(
    puppet: Puppet, path: Path, marks: Marks
) -> None:
    assert puppet.do("open", path.name).error is None
    tickets = [puppet.paid("a"), puppet.paid("b")]
    if not puppet.do("fail", errno.ENOSPC, "pwrite64", "write").value:
        pytest.skip(NO_SECCOMP)
    for name in ("c", "c", "d"):
        puppet.do("reserve", name).check(LedgerFull)
    puppet.kill()
    check_books(path, marks, tickets, charges=2)


def test_a_full_disk_refuses_and_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    with small_disk(tmp_path, "1m") as puppet:
        if puppet is None:
            pytest.skip(NO_DISK)
        assert puppet.do("open", "disk/ledger.db").error is None
        refused = 0
        for name, room in (("a", 0), ("b", 4096), ("c", 12288), ("d", 28672), ("e", 65536)):
            puppet.do("fill", "disk/ballast", room)
            reply = puppet.do("reserve", name)
            if reply.error:
                refused += 1
                reply.check(LedgerFull)
                puppet.do("reserve", name).check(LedgerFull)
            puppet.do("delete", "disk/ballast")
            again = puppet.paid(name)
            assert reply.error or reply.value == again["entry"]
        assert refused > 0
        assert [puppet.do("reserve", name).error for name in "fghi"] == [None, None, None, "BudgetExceeded"]
        assert puppet.do("problems").value == []


def test_a_ledger_on_a_full_disk_cannot_be_opened_halfway(tmp_path: Path) -> None:
    with small_disk(tmp_path, "1m") as puppet:
        if puppet is None:
            pytest.skip(NO_DISK)
        for room in (0, 4096, 8192, 16384, 24576, 40960):
            puppet.do("fill", "disk/ballast", room)
            reply = puppet.do("open", "disk/ledger.db")
            if reply.error:
                assert reply.error in ("LedgerFull", "LedgerUnreachable"), reply
            puppet.do("delete", "disk/ballast")
        assert puppet.do("open", "disk/ledger.db").error is None
        assert [puppet.do("reserve", str(n)).error for n in range(FIT + 1)] == [None] * FIT + ["BudgetExceeded"]
        assert puppet.do("problems").value == []


def test_nothing_is_paid_from_a_ledger_that_cannot_be_written() -> None:
    """As root nothing is read-only, so the puppet becomes somebody else."""
    folder = Path(tempfile.mkdtemp(prefix="hubbub-", dir="/tmp"))
    try:
        (folder / "own").mkdir()
        tickets = stocked(folder / "own" / "ledger.db", Marks(folder / "state"), paid=2)
        for place in (folder, *folder.rglob("*")):
            place.chmod(0o777 if place.is_dir() else 0o666)
        (folder / "own" / "ledger.db").chmod(0o444)
        (folder / "own").chmod(0o555)
        with Puppet(folder) as puppet:
            if os.geteuid() == 0:
                assert puppet.do("become", 65534).error is None
            for _ in range(2):
                puppet.do("open", "own/ledger.db").check(LedgerReadOnly)
            puppet.do("open", "own/another.db").check(LedgerReadOnly)
        (folder / "own").chmod(0o755)
        (folder / "own" / "ledger.db").chmod(0o644)
        check_books(folder / "own" / "ledger.db", Marks(folder / "state"), tickets, charges=2)
    finally:
        shutil.rmtree(folder)


# Files that go away.


@pytest.mark.parametrize("suffix", ["", "-wal", "-lock"])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("used", [False, True])
def test_a_file_that_is_deleted_or_replaced_in_use_is_refused_for_good(
    suffix: str, replaced: bool, used: bool, path: Path, marks: Marks
) -> None:
    tickets = stocked(path, marks, paid=2)
    part, aside = Path(f"{path}{suffix}"), path.with_name("aside")
    with Ledger(path, marks=marks) as ledger:
        tickets.append(saw("a", ledger.reserve(question("a")).entry))
        if used:
            tickets.append(saw("b", ledger.reserve(question("b")).entry))
        part.rename(aside)
        if replaced:
            shutil.copy(aside, part)
        problem = outcome(lambda: ledger.reserve(question("c")))
        check_refusal(problem, LedgerUnreachable)
        part.unlink(missing_ok=True)
        aside.rename(part)
        check_refusal(outcome(lambda: ledger.reserve(question("c"))), LedgerUnreachable)
    check_books(path, marks, tickets, charges=len(tickets))


def test_a_file_that_is_replaced_before_the_first_charge_is_refused(path: Path, marks: Marks, tmp_path: Path) -> None:
    """The writer connects when it is first needed: what was checked at the opening may lie elsewhere by then."""
    stocked(path, marks, paid=2)
    old = Copy(path, tmp_path / "state")
    with Ledger(path, marks=marks) as ledger:
        for name in "abcdef":
            ledger.reserve(question(name))
    new = Copy(path, tmp_path / "state")
    stocked(tmp_path / "other.db", marks)
    other = (tmp_path / "other.db").read_bytes()
    for content in (old.files[""], other):
        with Ledger(path, marks=marks) as ledger:
            path.write_bytes(content)
            check_refusal(outcome(lambda ledger=ledger: ledger.reserve(question("more"))), LedgerRolledBack)
        new.put_back()
    check_books(path, marks, [], charges=FIT)


def test_a_file_that_is_overwritten_in_place_in_use_is_refused(path: Path, marks: Marks, tmp_path: Path) -> None:
    """Its inode stays the same, and SQLite does not look at the file's own counters while there is a log."""
    stocked(path, marks, paid=2)
    old = Copy(path, tmp_path / "state").files[""]
    with Ledger(path, marks=marks) as ledger:
        for name in "abcdef":
            ledger.reserve(question(name))
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with open(path, "r+b") as file:
            file.write(old)
            file.truncate()
        lent = [outcome(lambda n=n: ledger.reserve(question(f"more-{n}"))) for n in range(3)]
        assert not any(isinstance(ticket, Ticket) for ticket in lent), lent
        assert all(isinstance(problem, LedgerError | BudgetExceeded) for problem in lent), lent


@pytest.mark.parametrize("create", [False, True])
def test_a_ledger_that_is_gone_is_not_begun_anew(create: bool, path: Path, marks: Marks, tmp_path: Path) -> None:
    stocked(path, marks, paid=2)
    whole = Copy(path, tmp_path / "state")
    for content in (None, b"", _empty_database(tmp_path)):
        whole.put_back(file=content)
        for _ in range(2):
            check_refusal(outcome(lambda: Ledger(path, marks=marks, create=create)), LedgerRolledBack)
        assert (path.read_bytes() if path.exists() else None) == content
    marks.forget(str(path))
    path.unlink()
    if not create:
        check_refusal(outcome(lambda: Ledger(path, marks=marks, create=False)), LedgerUnreachable)
        assert not path.exists()
    else:
        Ledger(path, marks=marks).close()
        check_refusal(outcome(lambda: _restored(path, marks, whole)), LedgerRolledBack)


def _empty_database(folder: Path) -> bytes:
    with closing(sqlite3.connect(folder / "empty.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("VACUUM")
    return (folder / "empty.db").read_bytes()


def _restored(path: Path, marks: Marks, copy: Copy) -> None:
    copy.put_back(marks=False)
    Ledger(path, marks=marks).close()


# The log, after a power failure.


def test_a_log_that_lost_its_end_is_noticed_wherever_it_was_cut(
    puppet: Puppet, path: Path, marks: Marks, tmp_path: Path
) -> None:
    assert puppet.do("open", path.name).error is None
    tickets = [puppet.paid(name) for name in "abcd"]
    puppet.kill()
    whole = Copy(path, tmp_path / "state")
    log = whole.files["-wal"]
    frame = 24 + 4096
    frames = (len(log) - 32) // frame
    chance = random.Random(5)
    cuts = {0, 1, 31, 32, 33, len(log) - 1, len(log) - frame, len(log) - frame - 1}
    cuts |= {32 + frame * chance.randrange(frames) + chance.choice((0, 1, 23, 24, 25, 2000)) for _ in range(24)}
    for cut in sorted(cuts):
        whole.put_back(wal=log[:cut])
        problem = outcome(lambda: Ledger(path, marks=marks))
        assert isinstance(problem, LedgerRolledBack | LedgerCorrupt), (cut, problem)
    for lost in (None, bytes(len(log)), log[:-100] + bytes(100), log[:40] + bytes(8) + log[48:]):
        whole.put_back(wal=lost)
        problem = outcome(lambda: Ledger(path, marks=marks))
        assert isinstance(problem, LedgerRolledBack | LedgerCorrupt), problem
    whole.put_back(wal=log + b"the beginning of a frame that never got whole")
    check_books(path, marks, tickets, charges=4)
    whole.put_back()
    check_books(path, marks, tickets, charges=4)


def test_a_cut_log_is_noticed_at_any_later_time_too(puppet: Puppet, path: Path, marks: Marks, tmp_path: Path) -> None:
    """Opening it must not have changed the file so that the second look finds nothing wrong."""
    assert puppet.do("open", path.name).error is None
    puppet.paid("a")
    puppet.kill()
    whole = Copy(path, tmp_path / "state")
    whole.put_back(wal=whole.files["-wal"][:-5000])
    for _ in range(3):
        assert isinstance(outcome(lambda: Ledger(path, marks=marks)), LedgerRolledBack | LedgerCorrupt)


# Bits.


class Story:
    """The same requests to a ledger, damaged or not, until something is found wrong with it."""

    ANN, BOB = "ann", "bob"
    LIMIT = Budget(epsilon=UNIT * 2)
    ASKED = (
        ("stock-1", "owner"),
        *(("hers", "bob"), ("more-1", "bob"), ("more-2", "bob")),
        *(("more-3", "ann"), ("more-4", "ann")),
        *(("more-5", "owner"), ("more-6", "owner")),
    )

    def __init__(self, tmp_path: Path) -> None:
        self.path, self.state = tmp_path / "ledger.db", tmp_path / "state"
        with Ledger(self.path, marks=Marks(self.state), clock=lambda: 10**15) as ledger:
            ledger.open_account(ACCOUNT, BUDGET, renewal=Renewal(days=1))
            for who in (self.ANN, self.BOB):
                ledger.grant(ACCOUNT, who, limit=self.LIMIT)
            for n in range(5):
                ledger.settle(ledger.reserve(question(f"stock-{n}")), "41")
            ledger.settle(ledger.reserve(question("hers", principal=self.ANN)), "42")
        self.copy = Copy(self.path, self.state)

    def tell(self) -> str:
        """How it ends: with a LedgerError, or with nobody having got anything that was not paid for."""
        given: list[tuple[str, str, Ticket]] = []
        try:
            with Ledger(self.path, marks=Marks(self.state), clock=lambda: 10**15 + 1) as ledger:
                self.owe(lambda: ledger.open_account(ACCOUNT, BUDGET, renewal=Renewal(days=1)))
                self.owe(lambda: ledger.grant(ACCOUNT, self.ANN, limit=self.LIMIT))
                for name, who in self.ASKED:
                    ticket = self.owe(partial(ledger.reserve, question(name, principal=who)))
                    if isinstance(ticket, Ticket):
                        given.append((name, who, ticket))
                entries = list(ledger.entries())
        except LedgerError as problem:
            return type(problem).__name__
        self._check(given, entries)
        return f"{len(given)} given"

    @staticmethod
    def owe(step: Callable[[], Any]) -> Any:
        """A refusal is no damage."""
        result = outcome(step)
        if isinstance(result, LedgerError):
            raise result
        return result

    def _check(self, given: list[tuple[str, str, Ticket]], entries: list[Entry]) -> None:
        """By the entries alone: no cap is broken, and whoever got something has paid for it, once for each."""
        spent: Counter[str] = Counter()
        paid: set[tuple[str, int, str]] = set()
        for entry in entries:
            if entry.kind in ("charge", "share"):
                body = entry.content
                spent.update({kind + name: body["loss"] for kind, name in body["holders"]})
                charge = entry.seq if entry.kind == "charge" else body["charge"]
                paid.add((body["principal"], charge, entries[charge - 1].content["question"]))
        assert spent["account"] <= BUDGET.filter.loss_cap
        assert max(spent["principalann"], spent["principalbob"]) <= self.LIMIT.filter.loss_cap
        assert not any(entry.kind == "renewal" for entry in entries)
        for name, who, ticket in given:
            assert (who, ticket.entry, name) in paid


def test_a_flipped_bit_is_found_or_makes_no_difference(ram: Path) -> None:
    story = Story(ram)
    whole = story.copy.files[""]
    undamaged = story.tell()
    assert undamaged == "4 given"
    places = [(page * 4096 + at, bit) for page in range(len(whole) // 4096) for at, bit in _places(page, whole)]
    assert len(places) >= 300
    ends: dict[str, int] = {}
    for at, bit in places:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        story.copy.put_back(file=bytes(damaged))
        end = story.tell()
        ends[end] = ends.get(end, 0) + 1
    assert ends["LedgerCorrupt"] > 50, ends
    assert ends[undamaged] > 50, ends


def _places(page: int, whole: bytes) -> list[tuple[int, int]]:
    """Some of the page's head, and some of what it holds; an empty place would only be luck."""
    chance = random.Random(page)
    filled = [at for at in range(64, 4096) if whole[page * 4096 + at]]
    chosen = [chance.randrange(12) for _ in range(4)] + [chance.choice(filled) for _ in range(18) if filled]
    return [(at, chance.randrange(8)) for at in chosen]


def test_a_file_that_was_cut_short_is_found_out(ram: Path) -> None:
    story = Story(ram)
    whole = story.copy.files[""]
    for length in (1, 15, 16, 99, 100, 512, 4095, 4096, 4097, *range(8192, len(whole), 8192), len(whole) - 1):
        story.copy.put_back(file=whole[:length])
        assert story.tell() in ("LedgerCorrupt", "LedgerUnreachable", "LedgerRolledBack"), length


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE holders SET loss = 0 WHERE kind = 'account'",
        "UPDATE holders SET loss = loss - 1 WHERE kind = 'account'",
        "UPDATE holders SET period = 1 WHERE kind = 'account'",
        "UPDATE holders SET opened = opened + 1 WHERE kind = 'account'",
        "UPDATE holders SET terms = replace(terms, '1/1', '9/1') WHERE kind = 'account'",
        "UPDATE holders SET loss = 0 WHERE kind = 'principal'",
        "UPDATE holders SET failure = -1 WHERE kind = 'principal'",
        "UPDATE holders SET name = 'dan' WHERE kind = 'principal'",
        "DELETE FROM holders WHERE kind = 'principal'",
        "UPDATE grants SET expires = expires + 1",
        "UPDATE grants SET expires = NULL",
        "UPDATE grants SET project = 'other'",
        "UPDATE grants SET entry = 1",
        "UPDATE head SET time = time + 1",
        "UPDATE head SET time = time * 2",
        "UPDATE head SET seq = seq - 1",
        "UPDATE head SET hash = '0'",
        "UPDATE head SET time = NULL",
        "UPDATE head SET seq = NULL",
        "UPDATE head SET hash = x'00'",
        "DELETE FROM head",
    ],
)
@pytest.mark.parametrize("running", [False, True])
def test_a_balance_or_grant_that_was_changed_by_hand_pays_for_nothing(edit: str, running: bool, ram: Path) -> None:
    path, marks = ram / "ledger.db", Marks(ram / "state")
    stocked(path, marks, paid=2)
    expires = datetime.now(UTC) + timedelta(days=1)
    with Ledger(path, marks=marks) as ledger:
        ledger.grant(ACCOUNT, "ann", limit=Budget(epsilon=UNIT * 2), expires=expires)
        ledger.reserve(question("hers", principal="ann"))
        if running:
            _edit(path, edit)
            problem = outcome(lambda: ledger.reserve(question("more", principal="ann")))
    if not running:
        _edit(path, edit)
        problem = outcome(lambda: _reserved(path, marks, question("more", principal="ann")))
    check_refusal(problem, LedgerCorrupt)


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize(
    ("edit", "who"),
    [
        ("UPDATE charges SET answer = NULL WHERE seq = 5", "ann"),
        ("UPDATE charges SET answer = 4 WHERE seq = 5", "ann"),
        ("UPDATE charges SET public = 1 WHERE seq = 5", "bob"),
        ("UPDATE charges SET principal = 'bob' WHERE seq = 5", "bob"),
        ("UPDATE keys SET charge = 7 WHERE charge = 5", "ann"),
        ("UPDATE keys SET charge = 6 WHERE charge = 5", "ann"),
    ],
)
def test_a_charge_whose_record_was_changed_by_hand_is_not_answered_again(
    edit: str, who: str, running: bool, ram: Path
) -> None:
    """An answer that got lost would be drawn once more, and published ones are free."""
    path, marks = ram / "ledger.db", Marks(ram / "state")
    stocked(path, marks)
    with Ledger(path, marks=marks) as ledger:
        for name in ("ann", "bob"):
            ledger.grant(ACCOUNT, name, limit=Budget(epsilon=UNIT * 2))
        ledger.settle(ledger.reserve(question("hers", principal="ann")), "42")
        ledger.settle(ledger.reserve(question("other", principal="ann")), "43")
        if running:
            _edit(path, edit)
            problem = outcome(lambda: ledger.reserve(question("hers", principal=who)))
    if not running:
        _edit(path, edit)
        problem = outcome(lambda: _reserved(path, marks, question("hers", principal=who)))
    check_refusal(problem, LedgerCorrupt)


def _edit(path: Path, edit: str) -> None:
    """Whatever the schema forbids, a flipped bit can do."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        text = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'head'").fetchone()[0]
        if "NULL" in edit:
            loose = text.replace(" NOT NULL", "")
            connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'head'", (loose,))
            connection.commit()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(edit).rowcount == 1
        connection.commit()


def _reserved(path: Path, marks: Marks, asked: Any) -> Ticket:
    with Ledger(path, marks=marks) as ledger:
        return ledger.reserve(asked)


# Old backups.


@pytest.mark.parametrize("with_log", [False, True])
def test_an_old_backup_is_refused_until_its_owner_adopts_it(
    with_log: bool, puppet: Puppet, path: Path, marks: Marks, tmp_path: Path
) -> None:
    if with_log:
        assert puppet.do("open", path.name).error is None
        for name in "ab":
            puppet.paid(name)
        puppet.kill()
    else:
        stocked(path, marks, paid=2)
    backup = Copy(path, tmp_path / "state")
    assert ("-wal" in backup.files) is with_log
    with Ledger(path, marks=marks) as ledger:
        for name in "cde":
            ledger.reserve(question(name))
    for _ in range(2):
        backup.put_back(marks=False)
        check_refusal(outcome(lambda: Ledger(path, marks=marks)), LedgerRolledBack)
        check_refusal(outcome(lambda: Ledger(path, marks=marks, writes=False)), LedgerRolledBack)
        check_refusal(outcome(lambda: _moved(path, tmp_path / "elsewhere.db", marks)), LedgerRolledBack)
    backup.put_back(marks=False)
    assert adopt(SqliteStore(path), marks=marks, clock=wall_clock).seq == 5
    check_books(path, marks, [], charges=2)
    check_books(path, marks, [], charges=FIT)


def _moved(path: Path, elsewhere: Path, marks: Marks) -> None:
    """The same old file at another place."""
    for suffix in ("", "-wal"):
        elsewhere.with_name(elsewhere.name + suffix).unlink(missing_ok=True)
        if Path(f"{path}{suffix}").exists():
            shutil.copy(f"{path}{suffix}", f"{elsewhere}{suffix}")
    Ledger(elsewhere, marks=marks).close()


@pytest.mark.parametrize("more", [1, 2, 3])
def test_a_copy_that_was_continued_in_another_way_is_refused(
    more: int, path: Path, marks: Marks, tmp_path: Path
) -> None:
    stocked(path, marks, paid=2)
    fork = tmp_path / "fork.db"
    shutil.copy(path, fork)
    with Ledger(path, marks=marks) as ledger:
        for name in "ab":
            ledger.reserve(question(name))
    with Ledger(fork, marks=Marks(tmp_path / "another-machine")) as ledger:
        for n in range(more):
            ledger.reserve(question(f"fork-{n}"))
    shutil.copy(fork, path)
    for place in (path, fork):
        check_refusal(outcome(lambda place=place: Ledger(place, marks=marks)), LedgerRolledBack)
    adopt(SqliteStore(path), marks=marks, clock=wall_clock)
    check_books(path, marks, [], charges=2 + more)


def test_another_ledger_in_the_place_of_a_known_one_is_refused_until_it_is_forgotten(
    path: Path, marks: Marks, tmp_path: Path
) -> None:
    stocked(path, marks, paid=2)
    stocked(tmp_path / "other.db", Marks(tmp_path / "another-machine"))
    shutil.copy(tmp_path / "other.db", path)
    check_refusal(outcome(lambda: Ledger(path, marks=marks)), LedgerRolledBack)
    marks.forget(str(path))
    check_books(path, marks, [], charges=0)


# Clocks.

DAY = 86_400_000_000


def test_a_clock_that_jumps_back_takes_no_time_back(path: Path, marks: Marks) -> None:
    now = 100 * DAY
    with Ledger(path, marks=marks, clock=lambda: now) as ledger:
        ledger.open_account(ACCOUNT, BUDGET, renewal=Renewal(days=1))
        ledger.grant(ACCOUNT, "ann", limit=BUDGET, expires=datetime.fromtimestamp(101 * 86_400, UTC))
        ledger.reserve(question("a", principal="ann"))
        now = 101 * DAY
        check_refusal(outcome(lambda: ledger.reserve(question("b", principal="ann"))), GrantExpired)
        ledger.reserve(question("b"))
        for now in (101 * DAY - 1, 50 * DAY, 0, -DAY):  # noqa: B007
            check_refusal(outcome(lambda: ledger.reserve(question("c", principal="ann"))), GrantExpired)
            for n in range(FIT):
                outcome(lambda n=n: ledger.reserve(question(f"d-{n}")))
        entries = list(ledger.entries())
        assert [entry.time for entry in entries] == sorted(entry.time for entry in entries)
        assert [entry.content["period"] for entry in entries if entry.kind == "renewal"] == [1]
        assert sum(entry.kind == "charge" for entry in entries) == 1 + FIT
    with Ledger(path, marks=marks, clock=lambda: 0) as ledger:
        check_refusal(outcome(lambda: ledger.reserve(question("c", principal="ann"))), GrantExpired)
        check_refusal(outcome(lambda: ledger.reserve(question("e"))), BudgetExceeded)
        verify(ledger)


def test_a_clock_that_jumps_far_ahead_and_back_gains_one_renewal_at_most(path: Path, marks: Marks) -> None:
    now = 100 * DAY
    with Ledger(path, marks=marks, clock=lambda: now) as ledger:
        ledger.open_account(ACCOUNT, BUDGET, renewal=Renewal(days=1))

        def spent() -> int:
            number = 0
            while isinstance(outcome(lambda: ledger.reserve(question(os.urandom(8).hex()))), Ticket):
                number += 1
            return number

        assert spent() == FIT
        now = 3000 * DAY
        assert spent() == FIT
        assert [spent() for now in (100 * DAY, 101 * DAY, 102 * DAY, 2000 * DAY, 3000 * DAY, 3001 * DAY - 1)] == [0] * 6
        now = 3001 * DAY
        assert spent() == FIT
        verify(ledger)


# Others who hold the ledger.


def test_a_foreign_lock_is_waited_for_and_then_refused(path: Path, marks: Marks) -> None:
    tickets = stocked(path, marks, paid=2)
    with eventually(lambda: Ledger(path, marks=marks, patience=0.2)) as ledger:
        tickets.append(saw("a", eventually(lambda: ledger.reserve(question("a"))).entry))
        with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            for _ in range(2):
                check_refusal(outcome(lambda: ledger.reserve(question("b"))), LedgerUnreachable)
            assert ledger.statement(ACCOUNT).spent.charges == 3
        tickets.append(saw("b", eventually(lambda: ledger.reserve(question("b"))).entry))
    check_books(path, marks, tickets, charges=4)


def test_a_writer_that_was_stopped_holds_nobody_up_for_ever(puppet: Puppet, path: Path, marks: Marks) -> None:
    tickets = stocked(path, marks, paid=2)
    assert puppet.do("open", path.name).error is None
    with eventually(lambda: Ledger(path, marks=marks, patience=0.2)) as ledger:
        tickets.append(saw("a", eventually(lambda: ledger.reserve(question("a"))).entry))
        puppet.tell("stall")
        assert os.WIFSTOPPED(os.waitpid(puppet.process.pid, os.WUNTRACED)[1])
        for name in ("b", "b", "c"):
            check_refusal(outcome(lambda name=name: ledger.reserve(question(name))), LedgerUnreachable)
        check_refusal(outcome(lambda: Ledger(path, marks=marks, patience=0.2)), LedgerUnreachable)
        assert ledger.statement(ACCOUNT).spent.charges == 3
        puppet.process.send_signal(signal.SIGCONT)
        assert puppet.hear().error is None
        tickets += [saw("b", eventually(lambda: ledger.reserve(question("b"))).entry), puppet.paid("d")]
    puppet.kill()
    check_books(path, marks, tickets)


def test_two_ledgers_on_one_file_and_sixteen_threads_spend_the_last_unit_once(path: Path, marks: Marks) -> None:
    tickets = stocked(path, marks, paid=2)
    with Ledger(path, marks=marks) as one, Ledger(path, marks=Marks(marks.folder)) as other:
        results: list[tuple[str, object]] = []
        together = threading.Barrier(16)

        def work(number: int) -> None:
            together.wait()
            name = f"t-{number}"
            results.append((name, outcome(lambda: (one, other)[number % 2].reserve(question(name)))))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tickets += [saw(name, ticket.entry) for name, ticket in results if isinstance(ticket, Ticket)]
        assert len(tickets) == FIT
        assert {type(problem) for _, problem in results} == {Ticket, BudgetExceeded}
        assert findings(one, tickets).problems == findings(other, tickets).problems == []
    check_books(path, marks, tickets, charges=FIT)


# Forks.


@pytest.mark.parametrize("used", [False, True])
def test_a_ledger_and_its_forked_children_spend_the_last_units_exactly(
    used: bool, puppet: Puppet, path: Path, marks: Marks
) -> None:
    stocked(path, marks, paid=2)
    assert puppet.do("open", path.name, *(() if used else (5.0, False))).error is None
    tickets = [puppet.paid("a")] if used else []
    names = [f"child-{n}" for n in range(7)]
    replies = puppet.do("fork", *names).value
    tickets += [saw(name, reply["value"]) for name, reply in zip(names, replies, strict=True) if "value" in reply]
    assert {reply["error"] for reply in replies if "error" in reply} <= {"BudgetExceeded"}
    assert 2 + len(tickets) == FIT
    assert puppet.do("reserve", "one-more").error == "BudgetExceeded"
    puppet.kill()
    check_books(path, marks, tickets, charges=FIT)


def test_children_go_on_when_their_parent_is_killed_with_the_ledger_in_its_hands(
    puppet: Puppet, path: Path, marks: Marks
) -> None:
    assert puppet.do("open", path.name).error is None
    tickets = [puppet.paid("a")]
    puppet.tell("orphan", "child")
    reply = puppet.hear()
    assert reply.error is None, reply
    puppet.kill()
    check_books(path, marks, [*tickets, saw("child", reply.value)], charges=2)


def test_a_child_keeps_the_log_alive_when_its_parent_and_others_close(puppet: Puppet, path: Path, marks: Marks) -> None:
    """A child that only believed in its locks would have the log deleted under it."""
    assert puppet.do("open", path.name).error is None
    tickets = [puppet.paid("a")]
    assert puppet.do("nest", "child-1", "child-2").error is None
    tickets.append(saw("child-1", puppet.hear().value))
    assert puppet.do("close").error is None
    with Ledger(path, marks=marks) as ledger:
        tickets.append(saw("b", ledger.reserve(question("b")).entry))
    puppet.do("wake")
    tickets.append(saw("child-2", puppet.hear().value))
    puppet.kill()
    check_books(path, marks, tickets, charges=4)


def test_a_process_that_leaves_does_not_take_the_log_from_the_others(puppet: Puppet, path: Path, marks: Marks) -> None:
    tickets = stocked(path, marks, paid=1)
    with Ledger(path, marks=marks) as ledger:
        tickets.append(saw("a", ledger.reserve(question("a")).entry))
        for name in "bcd":
            assert puppet.do("open", path.name).error is None
            tickets.append(puppet.paid(name))
            assert puppet.do("close").error is None
            tickets.append(saw(f"{name}-2", ledger.reserve(question(f"{name}-2")).entry))
    check_books(path, marks, tickets, charges=FIT)


def test_what_every_question_here_costs_divides_the_budget() -> None:
    assert BUDGET.epsilon / UNIT == FIT
    assert BUDGET.filter.loss_cap == FIT * UNIT * Fraction(1 << 40)
