"""Faults for real: a ledger in another process whose disk fails, whose power is cut, or which stops in the middle.

``python -m tests.ledger.faults`` is the puppet: it reads one command a line and says what came of it. What it can be
made to suffer lies in this file too: system calls that fail (a seccomp filter), a small disk (a tmpfs of its own), no
rights (another user).
"""

import ctypes
import json
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from hubbub.errors import HubbubError, LedgerError, LedgerUnreachable
from hubbub.ledger import Ask, Ledger, Marks
from hubbub.privacy.filter import Budget
from tests.ledger.asking import ask, pure
from tests.ledger.checking import findings

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT = "patients"
UNIT = Fraction(1, 8)
"""What every question here costs."""
BUDGET = Budget(epsilon=Fraction(1))
"""So eight of them fit."""
FIT = 8

_REMEDY = re.compile(r"\b(Put|Make|Open|Look|Set|Try|Check|Restore|Verify|Upgrade|End|Ask|ask again)\b")


def question(name: str, **changes: Any) -> Ask:
    """One question; its name is its key."""
    return ask(name, event=pure(UNIT), **({"epsilon": UNIT, "key": name} | changes))


def stocked(path: Path, marks: Marks, *, paid: int = 0) -> list[dict[str, Any]]:
    """A ledger with an account and some charges, closed; gives back what was seen of it."""
    with Ledger(path, marks=marks) as ledger:
        ledger.open_account(ACCOUNT, BUDGET)
        return [saw(f"stock-{n}", ledger.reserve(question(f"stock-{n}")).entry) for n in range(paid)]


def saw(key: str, entry: int) -> dict[str, Any]:
    """A ticket in somebody's hands, as ``checking`` wants it."""
    return {"saw": "paid", "principal": "owner", "key": key, "entry": entry}


def check_books(path: Path, marks: Marks, tickets: Sequence[Mapping[str, Any]], *, charges: int | None = None) -> None:
    """Opened again, everything is true, every ticket has its entry, and the last unit can be spent but no more."""
    with Ledger(path, marks=marks, create=False) as ledger:
        found = findings(ledger, tickets)
        assert found.problems == [], found.problems
        assert charges is None or found.charges == charges
        more = 0
        while not isinstance(outcome(lambda: ledger.reserve(question(f"last-{os.urandom(8).hex()}"))), HubbubError):
            more += 1
        assert found.charges + more == FIT
        assert findings(ledger, tickets).problems == []


def outcome(work: Any) -> Any:
    """What the work gives back, or the HubbubError that it raised; anything else is a fault of ours."""
    try:
        return work()
    except HubbubError as problem:
        return problem


def eventually(work: Callable[[], T]) -> T:
    """The same request again and again, as an asker with little patience would on a busy machine."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return work()
        except LedgerUnreachable as problem:
            if problem.operands.get("final") or time.monotonic() > deadline:
                raise


def check_refusal(problem: object, kind: type[HubbubError]) -> None:
    """The right class, and a sentence with a remedy."""
    assert type(problem) is kind, repr(problem)
    assert isinstance(problem, HubbubError)
    check_sentence(problem.message)


def check_sentence(message: str) -> None:
    """Whole, and it says what to do."""
    assert message.endswith("."), message
    assert _REMEDY.search(message), message


# The puppet, seen from the test.


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command came to."""

    value: Any = None
    error: str | None = None
    message: str = ""

    def check(self, kind: type[LedgerError]) -> None:
        """That it was refused, like this."""
        assert self.error == kind.__name__, self
        check_sentence(self.message)


class Puppet:
    """A process with a ledger that does as it is told."""

    def __init__(self, folder: Path, *, prefix: Sequence[str] = ()) -> None:
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.ledger.faults", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def do(self, command: str, *values: object) -> Reply:
        """Tell it, and wait for what it says."""
        self.tell(command, *values)
        return self.hear()

    def tell(self, command: str, *values: object) -> None:
        """Tell it, and do not wait."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([command, *values]) + "\n")
        self.process.stdin.flush()

    def hear(self) -> Reply:
        """The next thing that it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the puppet has died"
        return Reply(**json.loads(line))

    def paid(self, name: str) -> dict[str, Any]:
        """A charge that must succeed."""
        reply = self.do("reserve", name)
        assert reply.error is None, reply
        return saw(name, reply.value)

    def kill(self) -> None:
        """As a power failure would, with whatever it has open."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.send_signal(signal.SIGCONT)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Puppet | None]:
    """A puppet on a disk of its own at ``folder/disk``, which goes when it ends; None where that is not allowed."""
    (folder / "disk").mkdir()
    mount = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    for namespace in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        prefix = [*namespace, "sh", "-c", mount, str(folder / "disk")]
        try:
            possible = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            possible = False
        if possible:
            with Puppet(folder, prefix=prefix) as puppet:
                yield puppet
            return
    yield None


# The puppet, from inside.


class _Stage:
    """What a puppet can do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marks = Marks(folder / "state")
        self.ledger: Ledger | None = None
        self.asleep: int | None = None

    def open(self, name: str, patience: float = 5.0, used: bool = True) -> None:
        self.ledger = Ledger(self.folder / name, marks=self.marks, patience=patience)
        if used:
            self.ledger.open_account(ACCOUNT, BUDGET)

    def reserve(self, name: str) -> int:
        assert self.ledger is not None
        return self.ledger.reserve(question(name)).entry

    def problems(self) -> list[str]:
        assert self.ledger is not None
        return findings(self.ledger).problems

    def close(self) -> None:
        assert self.ledger is not None
        self.ledger.close()

    def fail(self, code: int, *calls: str) -> bool:
        return fail_calls(code, calls)

    def fill(self, name: str, keep: int) -> int:
        """Fill the disk but for some bytes."""
        ballast = self.folder / name
        disk = os.statvfs(ballast.parent)
        size = disk.f_bavail * disk.f_frsize - keep
        ballast.write_bytes(b"\0" * size)
        return size

    def delete(self, name: str) -> None:
        (self.folder / name).unlink()

    def become(self, user: int) -> None:
        """Somebody without rights."""
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)

    def fork(self, *names: str) -> list[Any]:
        """Children that each pay for one question at once; what each of them got, in order."""
        pipes = []
        for name in names:
            read, write = os.pipe()
            if os.fork() == 0:
                os.write(write, json.dumps(_reply(lambda name=name: self.reserve(name))).encode())
                os._exit(0)
            os.close(write)
            pipes.append(read)
        return [_all_of(pipe) for pipe in pipes]

    def nest(self, now: str, later: str) -> None:
        """A child that pays for one question, and for another one when it is woken."""
        read, self.asleep = os.pipe()
        if os.fork() == 0:
            os.close(self.asleep)
            for name in (now, later):
                print(json.dumps(_reply(lambda name=name: self.reserve(name))), flush=True)
                os.read(read, 1)
            os._exit(0)

    def wake(self) -> None:
        assert self.asleep is not None
        os.write(self.asleep, b".")

    def orphan(self, name: str) -> None:
        """Die in the middle of a transaction, and leave a child that was born before it and asks after it."""
        ours, theirs = os.pipe()
        if os.fork() == 0:
            os.close(theirs)
            os.read(ours, 1)  # the end of the file: the parent is dead
            print(json.dumps(_reply(lambda: self.reserve(name))), flush=True)
            os._exit(0)
        self._in_transaction(signal.SIGKILL)

    def stall(self) -> None:
        """Stop in the middle of a transaction."""
        self._in_transaction(signal.SIGSTOP)

    def _in_transaction(self, number: int) -> None:
        assert self.ledger is not None
        # To the writer's own thread: sent to the process, it may go on a little before a busy system stops it.
        self.ledger._write(lambda tx: signal.pthread_kill(threading.get_ident(), number))


def _all_of(pipe: int) -> Any:
    with open(pipe) as text:
        return json.loads(text.read())


def _reply(work: Any) -> dict[str, Any]:
    try:
        return {"value": work()}
    except HubbubError as problem:
        return {"error": type(problem).__name__, "message": problem.message}
    except BaseException as problem:
        return {"error": f"not ours: {type(problem).__name__}", "message": str(problem)}


def fail_calls(code: int, calls: Sequence[str]) -> bool:
    """From now on these system calls fail with this error in every thread, except on the standard streams.

    A filter cannot be taken away again. False where there is no seccomp.
    """
    numbers = {
        "x86_64": (0xC000003E, 317, {"write": 1, "pwrite64": 18, "fsync": 74, "fdatasync": 75}),
        "aarch64": (0xC00000B7, 277, {"write": 64, "pwrite64": 68, "fsync": 82, "fdatasync": 83}),
    }.get(platform.machine())
    if numbers is None or sys.platform != "linux":
        return False
    machine, seccomp, table = numbers
    load, equal, greater, give = 0x20, 0x15, 0x25, 0x06
    allow, fail = 0x7FFF0000, 0x00050000 | code
    program = [(load, 0, 0, 4), (equal, 0, len(calls) + 3, machine), (load, 0, 0, 16), (greater, 0, len(calls) + 1, 2)]
    program += [(load, 0, 0, 0)]
    program += [(equal, len(calls) - at, 0, table[call]) for at, call in enumerate(calls)]
    program += [(give, 0, 0, allow), (give, 0, 0, fail)]
    text = b"".join(struct.pack("=HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(text, len(text))
    filters = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(38, 1, 0, 0, 0) != 0:
        return False
    return int(library.syscall(seccomp, 1, 1, filters)) == 0


def main() -> None:
    """Do as told until nobody tells."""
    stage = _Stage(Path(sys.argv[1]))
    for line in sys.stdin:
        command, *values = json.loads(line)
        print(json.dumps(_reply(lambda: getattr(stage, command)(*values))), flush=True)  # noqa: B023


if __name__ == "__main__":
    main()
