"""The processes of one block, seen from outside: loaded and locked, they wait for rows, answer once and are killed."""

import contextlib
import os
import platform
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hubbub.errors import ProgramError
from hubbub.programs import sandboxed
from hubbub.programs.sandboxed import calls, system
from hubbub.programs.wire import MOST_ANSWER, decode_problem

_COMMANDS = ("/bin", "/usr/bin", "/usr/local/bin", "/usr/share", "/etc/alternatives")
"""What a command may read besides: other programs, and what comes with them."""
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "GLIBC_TUNABLES": "glibc.pthread.rseq=0",  # else the kernel shows a program when it is interrupted
}
_PART = 1 << 16
_PATIENCE = 10.0
"""Seconds that a supervisor has to see its program's end, before it is killed itself."""


class Runner:
    """A program that waits for its rows, with its supervisor."""

    def __init__(self, order: dict[str, Any], *, lane: int, seconds: float) -> None:
        """Load the program within ``seconds``; ProgramError if that cannot be done."""
        if platform.system() != "Linux" or platform.machine() not in calls.MACHINES:
            raise ProgramError(f"Programs run on Linux only, on {' or '.join(calls.MACHINES)}.")
        processors = sorted(os.sched_getaffinity(0))
        self._program: int | None = None
        """A handle of the program's process."""
        readable = [*installation(), *(_COMMANDS if order["command"] else ())]
        whole = {**order, "readable": readable, "processor": processors[lane % len(processors)]}
        try:
            self._control, control = socket.socketpair()
            self._channel, channel = socket.socketpair()
            with control, channel:
                self._process = subprocess.Popen(
                    [
                        *(sys.executable, "-s", "-P", str(Path(sandboxed.__file__).resolve().with_name("__main__.py"))),
                        *(str(control.fileno()), str(os.getpid())),
                    ],
                    pass_fds=[control.fileno()],
                    stdin=channel.fileno(),
                    stdout=channel.fileno(),
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                    env=_ENVIRONMENT,
                )
        except OSError as problem:
            raise ProgramError(f"The program cannot be run in its sandbox: {problem}.") from None
        if (why := self._load(whole, seconds)) is not None:
            self.stop(wait=True)
            raise ProgramError(f"The program cannot be run in its sandbox: {why}.")

    def _load(self, order: dict[str, Any], seconds: float) -> Any:
        """Send the order and wait until the program is ready; say why not, if it is not."""
        try:
            self._control.settimeout(max(seconds, 0.001))
            system.send(self._control, order)
            answer = system.receive(self._control)
            if "ready" in answer:
                _, files, _, _ = socket.recv_fds(self._control, 1, 1)
                self._program = files[0]
            return answer.get("problem")
        except TimeoutError:
            return "it takes too long to load, or to run on made-up rows"
        except (OSError, EOFError, ValueError, IndexError):
            self._channel.setblocking(False)
            with contextlib.suppress(OSError):
                return decode_problem(self._channel.recv(_PART)) or "it ended while it was loaded"
            return "it ended while it was loaded"

    def ask(self, body: bytes, *, until: float) -> bytes:
        """Send the rows and return all that comes back, until the end of the slot or of the program."""
        heard, left = bytearray(), memoryview(body)
        watch = select.poll()
        watch.register(self._channel, select.POLLIN | select.POLLOUT)
        self._channel.setblocking(False)
        with contextlib.suppress(OSError):
            while (seconds := until - time.monotonic()) > 0 and len(heard) <= MOST_ANSWER:
                for _, event in watch.poll(1000 * seconds):
                    if event & select.POLLOUT:
                        left = self._send(left)
                        if not left:
                            watch.modify(self._channel, select.POLLIN)
                    if event & ~select.POLLOUT:
                        part = self._channel.recv(_PART)
                        if not part:
                            return bytes(heard)
                        heard += part
        return bytes(heard)

    def _send(self, left: memoryview) -> memoryview:
        """Send some of the rows, and their end behind the last; nothing is left for a program that listens no more."""
        try:
            left = left[self._channel.send(left[:_PART]) :]
            if not left:
                self._channel.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return left
        except OSError:
            return left[:0]
        return left

    def stop(self, *, wait: bool = False) -> None:
        """Kill it: no more of its code runs when this returns, and nothing is left of it if one waits for its end."""
        if self._program is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._program, signal.SIGKILL)
            os.close(self._program)
            self._program = None
        self._control.close()
        self._channel.close()
        self._process.terminate()
        if wait:
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def has_ended(self) -> bool:
        """Return True if its processes are gone."""
        return self._process.poll() is not None


def installation() -> Iterator[str]:
    """Yield the paths of Python and its libraries, which a program may read while it is loaded."""
    paths = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()}
    paths |= {path for path in sys.path if "site-packages" in path or "dist-packages" in path}
    yield from sorted(path for path in paths if os.path.exists(path) and path not in {"/", "/usr"})
    yield str(Path(sandboxed.__file__).resolve().parents[2])
    yield from ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/etc/ld.so.cache")
