"""High-water marks: they only rise, nobody can make one up, and a crash at no point locks anyone out."""

import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hubbub.errors import LedgerCorrupt, LedgerRolledBack, LedgerUnreachable
from hubbub.ledger import Ledger, Marks
from hubbub.ledger.stores.store import Head
from hubbub.ledger.verify.marks import Mark, state_directory
from tests.ledger.faults import BUDGET, ROOT, check_refusal, outcome, question, stocked

NAME = "0123456789abcdef" * 2


def head(seq: int, ledger: str = NAME) -> Head:
    """A head whose hash tells its number."""
    return Head(ledger=ledger, seq=seq, time=0, hash=f"{seq:064x}")


def mark(seq: int) -> Mark:
    """The mark of such a head."""
    return Mark(seq, f"{seq:064x}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The state directory of a test."""
    return tmp_path / "state"


@pytest.fixture
def marks(folder: Path) -> Marks:
    """Marks with one ledger at entry 5."""
    marks = Marks(folder)
    marks.raise_to(head(5))
    return marks


@pytest.fixture
def file(folder: Path, marks: Marks) -> Path:
    """Where that mark is kept."""
    return folder / "marks" / NAME


def test_a_mark_rises_and_never_falls(marks: Marks, folder: Path) -> None:
    assert Marks(folder).of("another") is None
    for seq, expected in ((4, 5), (5, 5), (6, 6), (1, 6), (1000, 1000), (999, 1000)):
        marks.raise_to(head(seq))
        assert marks.of(NAME) == Marks(folder).of(NAME) == mark(expected)


def test_a_mark_at_the_same_number_keeps_what_was_seen_first(marks: Marks) -> None:
    marks.raise_to(Head(ledger=NAME, seq=5, time=0, hash="f" * 64))
    assert marks.of(NAME) == mark(5)


def test_only_the_owner_lowers_a_mark(marks: Marks, folder: Path, file: Path) -> None:
    marks.raise_to(head(123_456))
    inode = file.stat().st_ino
    marks.adopt(head(3))
    assert Marks(folder).of(NAME) == mark(3)
    assert file.stat().st_ino == inode, "whoever has it open must see the new one"
    marks.raise_to(head(4))
    assert marks.of(NAME) == mark(4)
    Marks(folder).adopt(head(9, "unknown"))
    assert marks.of("unknown") == mark(9)


@pytest.mark.parametrize(("seq", "there"), [(5, True), (6, True), (4, False), (1, False)])
def test_a_ledger_is_held_against_its_mark(seq: int, there: bool, marks: Marks) -> None:
    def hash_at(number: int) -> str | None:
        return f"{number:064x}" if number <= seq else None

    result = outcome(lambda: marks.check(head(seq), hash_at))
    if there:
        assert result is None
        forked = outcome(lambda: marks.check(Head(ledger=NAME, seq=seq, time=0, hash="e" * 64), lambda _: "e" * 64))
        check_refusal(forked, LedgerRolledBack)
    else:
        check_refusal(result, LedgerRolledBack)
        assert isinstance(result, LedgerRolledBack)
        assert result.operands == {"head": seq, "mark": 5}
    marks.check(head(1, "never-seen"), lambda _: None)


def test_every_flipped_bit_of_a_mark_is_noticed(marks: Marks, folder: Path, file: Path) -> None:
    whole = file.read_bytes()
    assert len(whole) == 512
    fresh = Marks(folder)
    for place in range(512):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        file.write_bytes(damaged)
        for one in (marks, fresh):
            with pytest.raises(LedgerCorrupt):
                one.of(NAME)
    file.write_bytes(whole)
    assert fresh.of(NAME) == mark(5)


@pytest.mark.parametrize(
    "forged",
    [
        lambda line: b"",
        lambda line: b"\0" * 512,
        lambda line: line[:200],
        lambda line: line[:511],
        lambda line: line + b"\n",
        lambda line: b"[]".ljust(512),
        lambda line: b"7".ljust(512),
        lambda line: b'{"mac":{}}'.ljust(512),
        lambda line: line.replace(b'"seq":5', b'"seq":4'),
        lambda line: line.replace(b'"seq":5', b'"seq":""'),
        lambda line: json.dumps(json.loads(line) | {"mac": "é"}, ensure_ascii=False).encode().ljust(512),
        lambda line: json.dumps({k: v for k, v in json.loads(line).items() if k != "mac"}).encode().ljust(512),
    ],
)
def test_a_mark_that_nobody_signed_is_refused_for_looking_and_for_raising(
    forged: Callable[[bytes], bytes], folder: Path, file: Path
) -> None:
    """An empty one too: a mark is made whole before it has its name, so no crash can leave it empty."""
    file.write_bytes(forged(file.read_bytes()))
    marks = Marks(folder)
    check_refusal(outcome(lambda: marks.of(NAME)), LedgerCorrupt)
    check_refusal(outcome(lambda: marks.raise_to(head(9))), LedgerCorrupt)
    check_refusal(outcome(lambda: marks.check(head(9), lambda _: "")), LedgerCorrupt)
    marks.adopt(head(2))
    assert marks.of(NAME) == mark(2)
    marks.raise_to(head(3))
    assert Marks(folder).of(NAME) == mark(3)


def test_another_ledgers_mark_is_no_mark(marks: Marks, folder: Path, file: Path) -> None:
    marks.raise_to(head(1, "other"))
    file.write_bytes((folder / "marks" / "other").read_bytes())
    check_refusal(outcome(lambda: Marks(folder).of(NAME)), LedgerCorrupt)


def test_a_mark_made_with_another_key_is_no_mark(marks: Marks, folder: Path) -> None:
    (folder / "key").write_bytes(bytes(32))
    check_refusal(outcome(lambda: Marks(folder).of(NAME)), LedgerCorrupt)
    (folder / "key").unlink()
    check_refusal(outcome(lambda: Marks(folder).of(NAME)), LedgerCorrupt)


@pytest.mark.parametrize("key", [b"", b"short", bytes(31), bytes(33)])
def test_a_damaged_key_signs_nothing(key: bytes, folder: Path) -> None:
    folder.mkdir()
    (folder / "key").write_bytes(key)
    check_refusal(outcome(lambda: Marks(folder).raise_to(head(1))), LedgerCorrupt)
    assert not (folder / "marks" / NAME).exists()


@pytest.mark.parametrize("name", ["../../elsewhere", "a/b", "", ".", "nul\0", "é", "x" * 65])
def test_a_damaged_name_of_a_ledger_leads_nowhere(name: str, folder: Path) -> None:
    marks = Marks(folder)
    for work in (lambda: marks.of(name), lambda: marks.raise_to(head(1, name)), lambda: marks.adopt(head(1, name))):
        check_refusal(outcome(work), LedgerCorrupt)
    assert not (folder / "marks").exists()


# Crashes.


@pytest.mark.parametrize("step", ["write", "fsync", "link", "unlink"])
@pytest.mark.parametrize("what", ["key", "mark", "place"])
def test_a_crash_while_a_file_is_made_leaves_it_whole_or_absent(
    step: str, what: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = Marks(folder)
    if what != "key":
        marks.raise_to(head(1, "earlier"))

    def work() -> None:
        marks.settle_at("/a/place", NAME) if what == "place" else marks.raise_to(head(5))

    class Crash(BaseException):
        pass

    def crash(*_: object, **__: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        match step:
            case "write":
                patch.setattr(os, "pwrite", crash)
            case "fsync":
                patch.setattr(os, "fsync", crash)
            case "link":
                patch.setattr(os, "replace" if what == "place" else "link", crash)
            case "unlink":
                patch.setattr(Path, "unlink", crash)
        with suppress(Crash):
            work()
    marks = Marks(folder)
    assert marks.of(NAME) in (None, mark(5))
    assert marks.ledger_at("/a/place") in (None, NAME)
    work()
    assert (marks.of(NAME), marks.ledger_at("/a/place")) == ((None, NAME) if what == "place" else (mark(5), None))


def test_a_write_that_came_out_short_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = Marks(folder)
    monkeypatch.setattr(os, "pwrite", lambda number, text, at: 7)
    check_refusal(outcome(lambda: marks.raise_to(head(1))), LedgerUnreachable)
    assert [file.name for file in folder.rglob("*") if file.is_file()] == []


def test_closing_forces_what_was_raised_to_disk(marks: Marks, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", forced.append)
    marks.raise_to(head(6))
    assert forced == []
    marks.close()
    assert len(forced) == 1
    marks.close()
    assert len(forced) == 1


def test_a_mark_that_was_deleted_meanwhile_is_made_again(marks: Marks, file: Path, folder: Path) -> None:
    file.unlink()
    marks.raise_to(head(7))
    assert Marks(folder).of(NAME) == mark(7)
    file.unlink()
    marks.close()


# Others.


def test_many_processes_and_threads_never_lower_a_mark(folder: Path) -> None:
    """After each raise the mark is at least there; and whoever finds no key makes one."""
    code = f"""
import sys
from hubbub.ledger import Marks
from hubbub.ledger.stores.store import Head
marks = Marks(sys.argv[1])
sys.stdin.readline()
for seq in range(int(sys.argv[2]), 200, 3):
    marks.raise_to(Head(ledger={NAME!r}, seq=seq, time=0, hash=f"{{seq:064x}}"))
    assert marks.of({NAME!r}).seq >= seq
"""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(folder), str(first)],
            stdin=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        for first in (1, 2, 3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.close()
    marks = Marks(folder)
    wrong: list[int] = []

    def work(first: int) -> None:
        for seq in range(first, 150, 4):
            marks.raise_to(head(seq))
            found = marks.of(NAME)
            if found is None or found.seq < seq or found != mark(found.seq):
                wrong.append(seq)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert wrong == []
    assert Marks(folder).of(NAME) == mark(199)


def test_whoever_comes_first_makes_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Marks(folder), Marks(folder)
    link = os.link

    def late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        second.raise_to(head(1))
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    first.raise_to(head(2))
    assert first.of(NAME) == second.of(NAME) == Marks(folder).of(NAME) == mark(2)
    assert sorted(file.name for file in folder.rglob("*") if file.is_file()) == [NAME, "key"]


def test_a_mark_that_is_held_is_waited_for_and_then_refused(folder: Path, file: Path) -> None:
    marks = Marks(folder, patience=0.05)
    with open(file, "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        check_refusal(outcome(lambda: marks.raise_to(head(6))), LedgerUnreachable)
        check_refusal(outcome(lambda: marks.of(NAME)), LedgerUnreachable)
    marks.raise_to(head(6))
    assert marks.of(NAME) == mark(6)


# Where they are kept.


def test_nobody_else_can_read_the_key_or_the_marks(marks: Marks, folder: Path) -> None:
    marks.settle_at("/a/place", NAME)
    for place in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600)
    assert len((folder / "key").read_bytes()) == 32


def test_the_state_directory_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUBBUB_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_directory() == Marks().folder == tmp_path / ".local" / "state" / "hubbub"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_directory() == Marks().folder == tmp_path / "xdg" / "hubbub"
    monkeypatch.setenv("HUBBUB_STATE", str(tmp_path / "own"))
    assert state_directory() == Marks().folder == tmp_path / "own"
    assert Marks(tmp_path / "given").folder == tmp_path / "given"
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HUBBUB_STATE", "")
    assert state_directory() == tmp_path / ".local" / "state" / "hubbub"
    assert list(tmp_path.iterdir()) == []


def test_a_state_directory_that_cannot_be_written_pays_for_nothing(tmp_path: Path) -> None:
    """A file in its place is what even root cannot write into."""
    (tmp_path / "state").write_text("not a folder")
    problem = outcome(lambda: Ledger(tmp_path / "ledger.db", marks=Marks(tmp_path / "state")))
    check_refusal(problem, LedgerUnreachable)
    assert "HUBBUB_STATE" in str(problem)


def test_a_mark_that_cannot_be_raised_gives_no_ticket_and_is_charged_once(tmp_path: Path) -> None:
    path, marks = tmp_path / "ledger.db", Marks(tmp_path / "state")
    stocked(path, marks)
    with Ledger(path, marks=marks) as ledger:
        ledger.reserve(question("a"))
        (tmp_path / "state").rename(tmp_path / "aside")
        (tmp_path / "state").write_text("not a folder")
        for _ in range(2):
            problem = outcome(lambda: ledger.reserve(question("b")))
            check_refusal(problem, LedgerUnreachable)
            assert "HUBBUB_STATE" in str(problem)
        (tmp_path / "state").unlink()
        (tmp_path / "aside").rename(tmp_path / "state")
        entry = ledger.reserve(question("b")).entry
        assert ledger.reserve(question("b")).entry == entry
        assert ledger.statement("patients").spent.charges == 2


def test_places_are_remembered_by_name(marks: Marks, folder: Path) -> None:
    assert marks.ledger_at("/a/place") is None
    marks.settle_at("/a/place", NAME)
    marks.settle_at("/another", "other")
    assert (Marks(folder).ledger_at("/a/place"), marks.ledger_at("/another")) == (NAME, "other")
    marks.settle_at("/a/place", "new")
    assert marks.ledger_at("/a/place") == "new"
    marks.forget("/a/place")
    marks.forget("/a/place")
    assert (marks.ledger_at("/a/place"), marks.ledger_at("/another")) == (None, "other")
    marks.settle_at(os.fsdecode(b"/odd/\xff"), NAME)
    assert marks.ledger_at(os.fsdecode(b"/odd/\xff")) == NAME


def test_a_damaged_place_is_a_ledger_that_was_never_seen(tmp_path: Path) -> None:
    path, marks = tmp_path / "ledger.db", Marks(tmp_path / "state")
    stocked(path, marks)
    (place,) = (tmp_path / "state" / "places").iterdir()
    for damage in (b"", b"\xff\xfe", place.read_bytes()[:-2]):
        place.write_bytes(damage)
        check_refusal(outcome(lambda: Ledger(path, marks=marks)), LedgerRolledBack)


def test_a_ledgers_mark_is_at_its_end_whenever_a_ticket_is_given(tmp_path: Path) -> None:
    path, marks = tmp_path / "ledger.db", Marks(tmp_path / "state")
    with Ledger(path, marks=marks) as ledger:
        ledger.open_account("patients", BUDGET)
        for name in "abc":
            entry = ledger.reserve(question(name)).entry
            (last,) = ledger.entries(first=entry)
            assert marks.of(ledger.name) == Mark(entry, last.hash)
