"""A program on blocks of rows, each in a process of its own that can do nothing but compute.

Every block has its slot: it gets its rows, and after a fixed time its answer is taken, if there is one, and the process
is killed. How long a program took, or whether it crashed, shows in nothing but its own output.
"""

import contextlib
import json
import os
import queue
import select
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub.engines import sandboxed
from hubbub.engines.program import Program
from hubbub.errors import ProgramError

Rows = Mapping[str, tuple[str, list[Any]]]
"""Columns: their type, and their values."""
Output = tuple[float, ...] | None
_START = 120.0
"""Seconds for loading a program."""
_MOST_ANSWER = 1 << 20
_COMMANDS = ("/bin", "/usr/bin", "/usr/local/bin", "/usr/share")
"""What a command may read besides: other programs, and what comes with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """How programs run. Only on Linux, with namespaces, Landlock and seccomp: elsewhere it refuses."""

    program: Program
    width: int
    """How many numbers it gives."""
    rehearsal: Rows
    """Made-up rows: the program sees them before the doors close, so that it loads what it loads late."""
    seconds: float = 5.0
    memory: int = 4 << 30
    lanes: int = 1

    def check(self) -> None:
        """Loads the program once, without any rows; ProgramError says why it cannot be. Nothing private is involved."""
        _Runner(self).stop()

    def outputs(self, blocks: Sequence[Rows], *, tick: Callable[[], None] | None = None) -> list[Output]:
        """What the program says of each block; None where it says nothing in time. Takes a time that is known before:
        the slots of a lane, one after the other."""
        found: list[Output] = [None] * len(blocks)
        places = queue.SimpleQueue[int]()
        for place in range(len(blocks)):
            places.put(place)

        def lane(loaders: ThreadPoolExecutor) -> None:
            """While one program runs, the next is loaded. A process dies with the thread that started it, and those of
            ``loaders`` outlive all of them."""
            coming = loaders.submit(self._loaded)
            with contextlib.suppress(queue.Empty):
                while True:
                    place = places.get_nowait()
                    runner, coming = coming.result(), loaders.submit(self._loaded)
                    if runner is not None:
                        found[place] = runner.ask(blocks[place], self.seconds)
                        runner.stop()
                    if tick is not None:
                        tick()
            last = coming.result()
            if last is not None:
                last.stop()

        with ThreadPoolExecutor(self.lanes) as loaders, ThreadPoolExecutor(self.lanes) as lanes:
            for one in [lanes.submit(lane, loaders) for _ in range(self.lanes)]:
                one.result()
        return found

    def _loaded(self) -> "_Runner | None":
        try:
            return _Runner(self)
        except ProgramError:
            return None


class _Runner:
    """One process, loaded and locked, that waits for its rows."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._width, self._command = sandbox.width, bool(sandbox.program.command)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(Path(sandboxed.__file__).resolve()), str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env={
                    "OPENBLAS_NUM_THREADS": "1",
                    "OMP_NUM_THREADS": "1",
                    "MKL_NUM_THREADS": "1",
                    "PYTHONHASHSEED": "0",
                },
            )
        self._channel = ours
        problem: object = None
        try:
            ours.settimeout(_START)
            order = {
                "program": {"text": sandbox.program.text, "name": sandbox.program.name},
                "command": list(sandbox.program.command),
                "readable": [*installation(), *(_COMMANDS if sandbox.program.command else ())],
                "rehearsal": sandbox.rehearsal,
                "memory": sandbox.memory,
                "seconds": sandbox.seconds,
                "width": sandbox.width,
            }
            sandboxed.send(ours, order)
            problem = sandboxed.receive(ours).get("problem")
        except (OSError, EOFError, ValueError):
            problem = "it ended while it was loaded"
        if problem is not None:
            self.stop()
            raise ProgramError(f"The program cannot be run in its sandbox: {problem}.")

    def ask(self, rows: Rows, seconds: float) -> Output:
        """Its answer at the end of the slot, and not before."""
        deadline = time.monotonic() + seconds
        heard = b""
        with contextlib.suppress(OSError, ValueError):
            self._channel.settimeout(seconds)
            sandboxed.send(self._channel, rows)
            while (left := deadline - time.monotonic()) > 0 and len(heard) <= _MOST_ANSWER:
                if select.select([self._channel], [], [], left)[0]:
                    part = self._channel.recv(1 << 16)
                    if not part:
                        break
                    heard += part
        time.sleep(max(0.0, deadline - time.monotonic()))
        return _printed(heard, self._width) if self._command else _read(heard, self._width)

    def stop(self) -> None:
        """Kills it and waits for its end."""
        self._channel.close()
        self._process.kill()
        self._process.wait()


def _read(heard: bytes, width: int) -> Output:
    """The first whole message, if it is a list of so many numbers."""
    size = sandboxed._LENGTH.size
    try:
        (length,) = sandboxed._LENGTH.unpack(heard[:size])
        numbers = json.loads(heard[size : size + length])["output"]
        if isinstance(numbers, list) and len(numbers) == width and all(isinstance(one, float) for one in numbers):
            return tuple(numbers)
    except Exception:
        return None
    return None


def _printed(heard: bytes, width: int) -> Output:
    """What a command printed, if it is so many numbers."""
    try:
        numbers = tuple(float(one) for one in heard.decode("ascii").replace(",", " ").split())
    except ValueError:
        return None
    return numbers if len(numbers) == width else None


def installation() -> Iterator[str]:
    """Where Python and its libraries lie: what a program may read while it is loaded."""
    paths = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()}
    paths |= {path for path in sys.path if "site-packages" in path or "dist-packages" in path}
    yield from sorted(path for path in paths if os.path.exists(path) and path not in {"/", "/usr"})
    yield str(Path(sandboxed.__file__).resolve().parents[1])
    yield from ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo")
    yield from ("/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/sys/devices/system/cpu")
