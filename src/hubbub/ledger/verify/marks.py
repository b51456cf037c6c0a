"""Marks of the last entry that this machine has seen of each ledger: kept outside the ledger, so that an old backup is
noticed.

A restored backup is a perfect ledger in which part of the spending has not happened. Nothing inside it can tell. So
the head of every ledger is also kept in the user's state directory, signed with a key that lies there. A ledger that is
shorter than its mark, or that says something else at that place, is refused; so is a ledger's file that is gone.

What this does not catch: the first time that this machine sees a ledger; a state directory that was rolled back, or
deleted, together with the ledger; and whoever can write both.
"""

import errno
import fcntl
import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hubbub.errors import LedgerCorrupt, LedgerError, LedgerRolledBack, LedgerUnreachable
from hubbub.ledger.entry import canonical
from hubbub.ledger.stores.forking import TRAFFIC
from hubbub.ledger.stores.store import Head

_SIZE = 512
"""A mark is one line of this length, made whole and then written in place: no disk tears a sector."""
_KEY = 32
_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)
_PATIENCE = 5.0
"""A mark is held for microseconds, unless whoever holds it was stopped."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The highest head that was seen."""

    seq: int
    hash: str


def state_directory() -> Path:
    """``$HUBBUB_STATE``, or ``hubbub`` in the user's state directory."""
    chosen = os.environ.get("HUBBUB_STATE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "hubbub"


class Marks:
    """The marks of all ledgers that this user has opened. Safe to share between threads, and across a fork."""

    def __init__(self, folder: str | Path | None = None, *, patience: float = _PATIENCE) -> None:
        self.folder = Path(folder).absolute() if folder is not None else state_directory()
        self._patience = patience
        self._known_key: bytes | None = None
        self._raised: set[str] = set()
        self._seen: dict[str, tuple[bytes, Mark]] = {}
        """The last text of each mark whose signature was found good, so that it need not be read again."""

    def ledger_at(self, location: str) -> str | None:
        """The name of the ledger that was last seen at a location."""
        with self._reachable():
            try:
                return self._place(location).read_bytes().decode(errors="replace").strip()
            except FileNotFoundError:
                return None

    def settle_at(self, location: str, ledger: str) -> None:
        """Remember which ledger lies where."""
        if self.ledger_at(location) != ledger:
            with self._reachable():
                path = self._place(location)
                os.replace(self._fresh(path, ledger.encode() + b"\n"), path)
                _sync_folder(path.parent)

    def forget(self, location: str) -> None:
        """Let go of a location, so that a new ledger may be created there."""
        with self._reachable():
            self._place(location).unlink(missing_ok=True)

    def check(self, head: Head, hash_at: Callable[[int], str | None]) -> None:
        """Refuse a ledger that has not got as far as its mark, or that was continued in another way.

        ``hash_at`` is asked after the mark was read, so that others may write meanwhile: they only add entries.
        """
        mark = self.of(head.ledger)
        if mark is None:
            return
        found = head.hash if head.seq == mark.seq else hash_at(mark.seq)
        if found is None:
            raise LedgerRolledBack(
                f"This ledger ends at entry {head.seq}, but this machine has seen entry {mark.seq} of it: an old "
                "backup was restored. Put the newest file back; if it is lost, its owner may run: hubbub ledger adopt.",
                head=head.seq,
                mark=mark.seq,
            )
        if found != mark.hash:
            raise LedgerRolledBack(
                f"Entry {mark.seq} of this ledger is not the one that this machine has seen: a copy was continued, or "
                "the ledger was rewritten. Put the right file back; if it is lost, its owner may run: hubbub ledger "
                "adopt.",
                head=head.seq,
                mark=mark.seq,
            )

    def of(self, ledger: str) -> Mark | None:
        """The mark of a ledger, None at first sight; one that was tampered with is refused."""
        with self._reachable():
            try:
                with self._hold(ledger, os.O_RDONLY, fcntl.LOCK_SH) as number:
                    return self._read(ledger, os.pread(number, _SIZE + 1, 0))
            except FileNotFoundError:
                return None

    def raise_to(self, head: Head) -> None:
        """Move the mark up to a head; it never moves down. Several processes may do so at once.

        It is not forced to disk each time: what a power failure takes from it makes it lower, and never wrong.
        """
        with self._reachable():
            try:
                self._raise(head)
            except FileNotFoundError:
                self._first(Path(self._file(head.ledger)), self._serialize(head))
                self._raise(head)
            self._raised.add(head.ledger)

    def _raise(self, head: Head) -> None:
        with self._hold(head.ledger, os.O_RDWR, fcntl.LOCK_EX) as number:
            if self._read(head.ledger, os.pread(number, _SIZE + 1, 0)).seq < head.seq:
                text = self._serialize(head)
                _write_all(number, text)
                self._seen[head.ledger] = text, Mark(head.seq, head.hash)

    def adopt(self, head: Head) -> None:
        """The owner's word that this is the ledger now: set the mark to it, be it lower, be the old one damaged."""
        with self._reachable():
            Path(self._file(head.ledger)).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._hold(head.ledger, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX) as number:
                _write_all(number, self._serialize(head))
                os.ftruncate(number, _SIZE)
                os.fsync(number)

    def close(self) -> None:
        """Put the marks that were raised on disk."""
        with self._reachable():
            while self._raised:
                try:
                    number = os.open(self._file(self._raised.pop()), os.O_RDONLY | os.O_CLOEXEC)
                except FileNotFoundError:
                    continue
                try:
                    os.fsync(number)
                finally:
                    os.close(number)

    @contextmanager
    def _hold(self, ledger: str, flags: int, kind: int) -> Iterator[int]:
        """The mark's file, opened anew each time: a lock belongs to an opening, so threads exclude each other too."""
        TRAFFIC.enter()
        number = -1
        try:
            number = os.open(self._file(ledger), flags | os.O_CLOEXEC, 0o600)
            deadline = time.monotonic() + self._patience
            while True:
                try:
                    fcntl.flock(number, kind | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise LedgerUnreachable(
                            f"Another program has held a high-water mark in {self.folder} for "
                            f"{self._patience:g} seconds. End it, or let it go on."
                        ) from None
                    time.sleep(0.001)
            yield number
        finally:
            if number >= 0:
                os.close(number)
            TRAFFIC.leave()

    def _serialize(self, head: Head) -> bytes:
        content = {"hash": head.hash, "ledger": head.ledger, "seq": head.seq}
        line = canonical(content | {"mac": self._mac(content)})
        return line.encode().ljust(_SIZE - 1) + b"\n"

    def _read(self, ledger: str, text: bytes) -> Mark:
        seen = self._seen.get(ledger)
        if seen is not None and seen[0] == text:
            return seen[1]
        try:
            content = json.loads(text) if len(text) == _SIZE else {}
            mac = content.pop("mac")
            mark = Mark(int(content["seq"]), str(content["hash"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            content, mac = {}, ""
        if content.get("ledger") != ledger or not hmac.compare_digest(str(mac).encode(), self._mac(content).encode()):
            raise LedgerCorrupt(
                f"The mark of this ledger in {self.folder} is damaged or was not made with the key that lies there. "
                "Verify the ledger, then its owner may run: hubbub ledger adopt."
            )
        self._seen[ledger] = text, mark
        return mark

    def _mac(self, content: dict[str, object]) -> str:
        return hmac.digest(self._key(), canonical(content).encode(), "sha256").hex()

    def _key(self) -> bytes:
        if self._known_key is None:
            path = self.folder / "key"
            if not path.exists():
                self._first(path, os.urandom(_KEY))
            key = path.read_bytes()
            if len(key) != _KEY:
                raise LedgerCorrupt(
                    f"The key {path} is damaged, so no mark can be trusted. Put it back; if it is lost, delete it and "
                    "run: hubbub ledger adopt."
                )
            self._known_key = key
        return self._known_key

    def _file(self, ledger: str) -> str:
        if not _NAME.fullmatch(ledger):  # it comes out of the ledger's file
            raise LedgerCorrupt("The ledger's own name is damaged. Restore the newest backup.")
        return f"{self.folder}/marks/{ledger}"

    def _place(self, location: str) -> Path:
        return self.folder / "places" / hashlib.sha256(os.fsencode(location)).hexdigest()

    def _first(self, path: Path, text: bytes) -> None:
        """Create a file unless there is one: whoever comes first wins, and nobody ever sees half of it."""
        fresh = self._fresh(path, text)
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
        _sync_folder(path.parent)

    def _fresh(self, path: Path, text: bytes) -> Path:
        """The text, on disk, under a name that nobody else has."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(f"{path.name}-{os.urandom(8).hex()}")
        number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _write_all(number, text)
            os.fsync(number)
        except BaseException:
            fresh.unlink()
            raise
        finally:
            os.close(number)
        return fresh

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except LedgerError:
            raise
        except OSError as problem:
            raise LedgerUnreachable(
                f"The high-water marks in {self.folder} cannot be kept ({problem.strerror}). Set HUBBUB_STATE to a "
                "folder that can be written."
            ) from problem


def _write_all(number: int, text: bytes) -> None:
    if os.pwrite(number, text, 0) != len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _sync_folder(folder: Path) -> None:
    """So that a name in it survives a power failure."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
